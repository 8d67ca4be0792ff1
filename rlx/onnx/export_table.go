package onnx

import (
	"fmt"
	"maps"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// exportRow says how one kind is written.
type exportRow struct {
	// emit adds nodes and returns the names of the results. It refuses operands for which there is no operator.
	emit func(x *emission) []string
	// lower is a composition of kinds that have rows, for operands that emit refuses; nil means the kind's own.
	lower func(n *ir.Node) []ir.Value
	// widen: the operator is written on f32 for operands of bf16.
	widen bool
	// static: the composition needs known dims.
	static bool
	// reason is why the kind, or what emit refuses, has no ONNX form.
	reason string
}

// exportTable holds the row of each kind, by name. It is filled by init: rows write other rows.
var exportTable map[string]exportRow

func init() {
	exportTable = map[string]exportRow{}
	for _, family := range []map[string]exportRow{
		leafExports, scalarExports, shapeExports, indexExports, productExports, normExports, reduceExports, windowExports, quantExports,
		recurrentExports, attentionExports, signalExports, randomExports, controlExports,
	} {
		maps.Copy(exportTable, family)
	}
}

// none is a kind that ONNX has no form for.
func none(reason string) exportRow { return exportRow{reason: reason} }

// composedStatic is a kind whose composition needs known dims. One that is written as its composition whatever its dims are has no row.
func composedStatic() exportRow { return exportRow{static: true} }

// direct is a kind with an operator for operands that emit does not refuse, and a composition for others.
func direct[A any](emit func(x *emission, a *A) []string) exportRow {
	return exportRow{emit: func(x *emission) []string { return emit(x, x.n.Attrs.(*A)) }}
}

// elseStatic says that the composition needs known dims.
func (r exportRow) elseStatic() exportRow {
	r.static = true
	return r
}

// inF32 is a direct row whose operator has no bf16 in runtimes.
func inF32[A any](emit func(x *emission, a *A) []string) exportRow {
	r := direct(emit)
	r.widen = true
	return r
}

// lowered is a kind with another composition than its own.
func lowered[A any](build func(n *ir.Node, a *A) []ir.Value) exportRow {
	return exportRow{lower: func(n *ir.Node) []ir.Value { return build(n, n.Attrs.(*A)) }}
}

// elseLowered gives the composition for operands that emit refuses.
func elseLowered[A any](r exportRow, build func(n *ir.Node, a *A) []ir.Value) exportRow {
	r.lower = lowered(build).lower
	return r
}

// emission writes one node: the names of its operands, and a place for why that does not work.
type emission struct {
	*exporter
	n      *ir.Node
	in     []string
	reason string
}

func (x *emission) refuse(format string, args ...any) []string {
	if x.reason == "" {
		x.reason = fmt.Sprintf(format, args...)
	}
	return nil
}

// has says whether operand i is there.
func (x *emission) has(i int) bool { return i < len(x.n.In) && !x.n.In[i].IsZero() }

func (x *emission) typ(i int) ir.Type     { return x.n.In[i].Type() }
func (x *emission) dtype(i int) ir.DType  { return x.typ(i).DType }
func (x *emission) shape(i int) []ir.Dim  { return x.typ(i).Shape }
func (x *emission) result(i int) ir.DType { return x.n.Types[i].DType }

// op adds a node with one result and returns its name. in is a name or a list of names; an empty one is a value left out.
func (x *emission) op(operator string, in any, attrs ...AttributeProto) string {
	return x.ops(operator, 1, in, attrs...)[0]
}

// ops adds a node with several results.
func (x *emission) ops(operator string, results int, in any, attrs ...AttributeProto) []string {
	list, ok := in.([]string)
	if !ok {
		list = []string{in.(string)}
	}
	for len(list) > 0 && list[len(list)-1] == "" {
		list = list[:len(list)-1]
	}
	name := x.fresh(x.prefix + x.n.Name + "/" + operator)
	out := []string{name}
	for len(out) < results {
		out = append(out, x.fresh(name+".out"))
	}
	kept := attrs[:0:0]
	for _, a := range attrs {
		if a.Type != AttributeUndefined {
			kept = append(kept, a)
		}
	}
	x.graph.Nodes = append(x.graph.Nodes, NodeProto{Name: name, OpType: operator, Input: append([]string{}, list...), Output: append([]string{}, out...), Attribute: kept})
	return out
}

// one is a node that is the whole of the kind: operands in order, one result.
func (x *emission) one(operator string, attrs ...AttributeProto) []string {
	return []string{x.op(operator, x.in, attrs...)}
}

// attr is an attribute; a nil list is left out.
func attr(name string, v any) AttributeProto {
	a := AttributeProto{Name: name}
	switch v := v.(type) {
	case bool:
		a.Type = AttributeInt
		if v {
			a.I = 1
		}
	case int:
		a.Type, a.I = AttributeInt, int64(v)
	case int32:
		a.Type, a.I = AttributeInt, int64(v)
	case int64:
		a.Type, a.I = AttributeInt, v
	case float64:
		a.Type, a.F = AttributeFloat, float32(v)
	case string:
		a.Type, a.S = AttributeString, v
	case *GraphProto:
		a.Type, a.G = AttributeGraph, v
	case []int64:
		if len(v) > 0 {
			a.Type, a.Ints = AttributeInts, v
		}
	case []string:
		if len(v) > 0 {
			a.Type, a.Strings = AttributeStrings, v
		}
	}
	return a
}

// ints is a constant vector of i64.
func (x *emission) ints(v ...int64) string { return x.constant("ints", ir.New(v, len(v))) }

// scalar is a constant of rank 0: v in dtype d.
func (x *emission) scalar(d ir.DType, v float64) string {
	t, err := ir.Zeros(d)
	if err != nil {
		x.refuse("%v", err)
		return ""
	}
	ir.PutFloat(d, t.Bytes(), 0, v)
	return x.constant("scalar", t)
}

// filled is a constant vector of n times v.
func (x *emission) filled(d ir.DType, v float64, shape ...int64) string {
	t, err := ir.Zeros(d, shape...)
	if err != nil {
		x.refuse("%v", err)
		return ""
	}
	for i := range t.Len() {
		ir.PutFloat(d, t.Bytes(), i, v)
	}
	return x.constant("filled", t)
}

// cast is v, of dtype from, in dtype to.
func (x *emission) cast(v string, from, to ir.DType) string {
	if from == to {
		return v
	}
	return x.op("Cast", v, attr("to", x.elem(to)))
}

// carrier is the dtype in which an operator that takes the dtypes of a set computes values of d: d itself, or one that holds them. Integers
// that wrap keep their low bits in it.
func (x *emission) carrier(d ir.DType, takes ir.DTypeSet) ir.DType {
	order := []ir.DType{d}
	switch {
	case d == ir.C64:
	case ir.Float.Has(d) && d != ir.F64, ir.Code.Has(d):
		order = append(order, ir.F32)
	case d == ir.Bool:
		order = append(order, ir.U8, ir.I32, ir.F32)
	case ir.Int.Has(d) && d.Size() < 4:
		order = append(order, ir.I32, ir.F32)
	case d == ir.U32:
		order = append(order, ir.I64)
	case d == ir.I32, d == ir.U64:
		order = append(order, ir.I64, ir.F64)
	}
	for _, c := range order {
		if takes.Has(c) {
			return c
		}
	}
	x.refuse("dtype %s", d)
	return ir.Invalid
}

// carry writes an operator over operands of one dtype that may not take it: they are cast to what it takes, and the result back.
func (x *emission) carry(takes ir.DTypeSet, f func(in []string, d ir.DType) string) []string {
	d := x.dtype(0)
	c := x.carrier(d, takes)
	if x.reason != "" {
		return nil
	}
	in := make([]string, len(x.in))
	for i, name := range x.in {
		if name != "" && x.dtype(i) == d {
			name = x.cast(name, d, c)
		}
		in[i] = name
	}
	return []string{x.cast(f(in, c), c, x.result(0))}
}

// axis is an axis counted from the front.
func wrapped(axis, rank int) int {
	k, _ := ir.WrapAxis(axis, rank)
	return k
}

// What operators take: the dtypes of the standard for which ONNX Runtime has kernels. Others travel in a dtype that holds them, and bf16
// computes in f32, as it does here.
var (
	wideFloats = ir.Set(ir.F16, ir.F32, ir.F64)
	reals      = ir.Int | wideFloats
	movable    = ir.Numeric | ir.Set(ir.Bool)
	selectable = ir.Set(ir.I8, ir.I32, ir.I64, ir.U8, ir.U32) | wideFloats
	expandable = movable &^ ir.Set(ir.BF16)
	paddable   = movable &^ ir.Set(ir.I16, ir.U16)
	triangular = ir.Set(ir.Bool, ir.I32, ir.I64) | wideFloats
	resizable  = ir.Set(ir.I8, ir.I32, ir.U8, ir.F16, ir.F32)
	reducible  = ir.Set(ir.I32, ir.I64, ir.U32, ir.U64) | wideFloats
	orderable  = reals &^ ir.Set(ir.I16, ir.U16)
)
