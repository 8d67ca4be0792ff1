package onnx

import (
	"fmt"
	"slices"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// row says how one operator is read, from one version of its operator set on.
type row struct {
	domain string // "" for the default one
	op     string
	since  int64 // first operator set version with this meaning; a later row of the same operator ends it
	attrs  []attrDecl
	in     arity
	// build appends nodes and sets the node's outputs. Nil for operators that need no node because track always succeeds.
	build func(n *node)
	// track computes the outputs as dims, without nodes, where the operands allow it; nil means they do not.
	track func(n *node) []*dimTensor
	// ofShape: the results depend on the shapes of the operands alone.
	ofShape bool
	lists   bool // takes sequences and optional values too
}

// key finds the rows of an operator.
type key struct{ domain, op string }

// arity is how many inputs a node may have.
type arity struct{ least, most int }

const many = 1 << 30

// attrDecl declares an attribute that a row reads. Others are reported as unsupported.
type attrDecl struct {
	name     string
	kind     AttributeType
	def      any   // int64, float32 or string; nil for what has no default
	allowed  []any // values that are supported; empty for all
	required bool
}

// integer declares an int attribute; with allowed values, others are reported as unsupported.
func integer(name string, def int64, allowed ...int64) attrDecl {
	d := attrDecl{name: name, kind: AttributeInt, def: def}
	for _, v := range allowed {
		d.allowed = append(d.allowed, v)
	}
	return d
}

// str declares a string attribute; def is supported too.
func str(name, def string, allowed ...string) attrDecl {
	d := attrDecl{name: name, kind: AttributeString, def: def, allowed: []any{def}}
	for _, v := range allowed {
		d.allowed = append(d.allowed, v)
	}
	return d
}

func float(name string, def float32) attrDecl {
	return attrDecl{name: name, kind: AttributeFloat, def: def}
}

func listOf(name string, kind AttributeType) attrDecl { return attrDecl{name: name, kind: kind} }
func integers(name string) attrDecl                   { return listOf(name, AttributeInts) }
func floats(name string) attrDecl                     { return listOf(name, AttributeFloats) }
func tensorAttr(name string) attrDecl                 { return listOf(name, AttributeTensor) }

// required makes an attribute one that must be there.
func required(d attrDecl) attrDecl {
	d.required, d.def = true, nil
	return d
}

// table holds the rows of each operator, oldest first. It is filled by init: rows that read sub-graphs look up other rows.
var table map[key][]*row

func init() {
	table = indexRows(slices.Concat(
		arithmeticRows, logicRows, activationRows, constantRows, shapeRows, layoutRows, gatherRows, reduceRows, linearRows, normRows,
		controlRows, sequenceRows, selectRows, lossRows, poolRows, recurrentRows, attentionRows, signalRows,
		sampleRows, einsumRows, quantRows, randomRows, optimizerRows, flexRows, microsoftRows, fusedRows,
		qlinearRows, oldRows, mlRows,
	))
}

func indexRows(rows []row) map[key][]*row {
	t := map[key][]*row{}
	for i := range rows {
		r := &rows[i]
		k := key{r.domain, r.op}
		t[k] = append(t[k], r)
	}
	for _, l := range t {
		slices.SortFunc(l, func(a, b *row) int { return int(a.since - b.since) })
	}
	return t
}

// newestOpset is the last version of the default operator set whose changes the rows know.
const newestOpset = 28

// find returns the row for an operator, or why there is none.
func find(domain, op string, opset int64) (*row, string) {
	rows := table[key{domain, op}]
	if len(rows) == 0 {
		return nil, "operator is not supported"
	}
	for _, r := range slices.Backward(rows) {
		if r.since <= opset {
			return r, ""
		}
	}
	return nil, fmt.Sprintf("operator set %d, supported from %d on", opset, rows[0].since)
}

// unary declares an operator of one operand that is one builder call.
func unary(op string, since int64, build func(x ir.Value) ir.Value, attrs ...attrDecl) row {
	return row{op: op, since: since, attrs: attrs, in: arity{1, 1}, build: func(n *node) {
		if x := n.val(0); n.ok() {
			n.ret(build(x))
		}
	}}
}

// activation declares a function whose parameters are float attributes, passed to build in order.
func activation(op string, since int64, build func(x ir.Value, p []float64) ir.Value, params ...attrDecl) row {
	return row{op: op, since: since, attrs: params, in: arity{1, 1}, build: func(n *node) {
		p := make([]float64, len(params))
		for i, d := range params {
			p[i] = n.float(d.name)
		}
		if x := n.val(0); n.ok() {
			n.ret(build(x, p))
		}
	}}
}

// binaryOp declares an operator of two operands that is one builder call.
func binaryOp(op string, since int64, build func(a, b ir.Value) ir.Value, track func(*node) []*dimTensor, attrs ...attrDecl) row {
	return row{op: op, since: since, attrs: attrs, in: arity{2, 2}, track: track, build: func(n *node) {
		if a, b := n.val(0), n.val(1); n.ok() {
			n.ret(build(a, b))
		}
	}}
}

// fold declares an operator of any number of operands that combines them from the left.
func fold(op string, since int64, build func(a, b ir.Value) ir.Value, track func(*node) []*dimTensor) row {
	return row{op: op, since: since, in: arity{1, many}, track: track, build: func(n *node) {
		v := n.vals()
		if !n.ok() {
			return
		}
		y := v[0]
		for _, x := range v[1:] {
			y = build(y, x)
		}
		n.ret(y)
	}}
}
