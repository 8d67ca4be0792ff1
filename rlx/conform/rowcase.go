package conform

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/internal/ref"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// rowCase is one call of a row: attributes, operands, and how each operand reaches the node.
type rowCase struct {
	row   *ir.Row
	attrs any
	text  string       // of the attributes, for messages
	in    []*ir.Tensor // nil: absent
	via   []via
	label string

	optional bool // may be refused: the row decides whether the shapes are legal
	bound    bool // operands are neither constants nor views
	fixed    bool // the values must stay as they are: no stride-0 operands
	through  bool // results pass through memory of the arena, so that they may take over an operand's
	fails    string
	linear   bool                       // results are sums of products of operands: errors are measured against the sum of absolute terms
	sizes    func(c *rowCase) []float64 // what the errors of result 0 are measured against; nil: its absolute values
	least    float64                    // what that measure is at least
	tight    *ir.Tolerance              // of native kernels, where it is stricter than the row's
	compare  func(got, want []*ir.Tensor) error

	types []ir.Type
	*expectation
}

// expectation is what ref makes of a case. Cases that differ only in how their operands come share one.
type expectation struct {
	want     []*ir.Tensor // nil until expect
	terms    []float64    // what the errors of result 0 are measured against; nil: its absolute values
	measured bool         // terms are there
}

func (c *rowCase) String() string {
	s := c.label
	for i, x := range c.in {
		if x == nil {
			s += " nil"
			continue
		}
		s += " " + x.Type().String() + c.via[i].String()
	}
	if c.through {
		s += " through the arena"
	}
	return s + " " + c.text
}

// folds says whether every operand is constant, so that the node is computed when the graph is compiled.
func (c *rowCase) folds() bool {
	for i, x := range c.in {
		if x != nil && c.via[i].kind != viaConstant {
			return false
		}
	}
	return true
}

// expect computes the results with package ref.
func (c *rowCase) expect() (err error) {
	if c.want == nil {
		c.want, err = ref.Apply(c.row, c.attrs, c.in, c.types)
	}
	return err
}

// measure computes what errors are measured against: sizes, or the sums of absolute terms of a linear row. It takes longer than the
// results, and equal bits need none.
func (c *rowCase) measure() error {
	if c.measured {
		return nil
	}
	c.measured = true
	if c.sizes != nil {
		c.terms = c.sizes(c)
	}
	if !c.linear || !ir.Float.Has(c.types[0].DType) {
		return nil
	}
	abs := make([]*ir.Tensor, len(c.in))
	for i, x := range c.in {
		if abs[i] = x; x != nil && ir.Float.Has(x.DType()) && c.row.In[min(i, len(c.row.In)-1)].DTypes != ir.IndexT {
			abs[i] = absolute(x)
		}
	}
	sums, err := ref.Apply(c.row, c.attrs, abs, c.types)
	if err != nil {
		return fmt.Errorf("ref: %w", err)
	}
	c.terms = make([]float64, sums[0].Len())
	for i := range c.terms {
		c.terms[i] = sums[0].Float(i)
	}
	return nil
}

func absolute(x *ir.Tensor) *ir.Tensor {
	y := clone(x)
	for i := range y.Len() {
		if f := y.Float(i); f < 0 {
			ir.PutFloat(y.DType(), y.Bytes(), i, -f)
		}
	}
	return y
}

// build adds the case to a graph of many.
func (c *rowCase) build(g *ir.Graph, feed rlx.Feed, number int) error {
	in := make([]ir.Value, len(c.in))
	for i, x := range c.in {
		if x == nil {
			continue
		}
		v := c.via[i]
		base := v.base(x)
		if v.kind == viaConstant {
			in[i] = g.Constant(base)
			continue
		}
		name := fmt.Sprintf("in%d_%d", number, i)
		feed[name] = base
		in[i] = v.view(g.Input(name, base.DType(), base.Type().Shape), x.Shape())
	}
	n, err := g.Add(c.row, caseName(number), c.attrs, in...)
	if err != nil {
		return err
	}
	for k, y := range n.Results() {
		if c.through {
			y = op.Copy(y)
		}
		g.Output(resultName(number, k), y)
	}
	return g.Err()
}

// check compares results with what ref computed.
func (c *rowCase) check(got []*ir.Tensor, native bool) error {
	if c.compare != nil {
		return c.compare(got, c.want)
	}
	if c.sameBits(got) {
		return nil
	}
	if err := c.measure(); err != nil {
		return err
	}
	tol := c.row.Tol
	if native && c.tight != nil {
		tol = *c.tight
	}
	if c.linear && c.types[0].DType == ir.F64 { // ref has no wider type to sum in
		for _, x := range c.in {
			if x != nil {
				tol.Ulp = max(tol.Ulp, c.row.Tol.Ulp+float64(x.Len())/2)
			}
		}
	}
	for k, w := range c.want {
		m := measure{exact: c.row.Has(ir.Exact), tol: tol, least: c.least}
		if k == 0 {
			m.terms = c.terms
		}
		if err := m.compare(got[k], w); err != nil {
			if len(c.want) > 1 {
				err = fmt.Errorf("result %d: %w", k, err)
			}
			return err
		}
	}
	return nil
}

func (c *rowCase) sameBits(got []*ir.Tensor) bool {
	for k, w := range c.want {
		if got[k] == nil || !got[k].Type().Equal(w.Type()) || !bytes.Equal(got[k].Bytes(), w.Bytes()) {
			return false
		}
	}
	return true
}

func unsupportedReason(u *rlx.UnsupportedError) string {
	var l []string
	for _, n := range u.Nodes {
		l = append(l, fmt.Sprintf("%s %s: %s", n.Op, n.DType, n.Reason))
	}
	return u.Backend + " does not support " + strings.Join(l, ", ")
}
