// Package fuzz grows random graphs, runs them under every choice of passes and backends, and shrinks those that differ. It is for tests.
package fuzz

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/internal/ref"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// Case is a graph with what is fed to it.
type Case struct {
	Graph *ir.Graph
	Feed  rlx.Feed
	Seed  uint64 // that it was grown from
}

// draws is how many times each graph is computed with errors, to see how they grow.
const draws = 3

// known is what a value is in this run: computed without the compiler, and again with random errors in every rounding step.
type known struct {
	base  *ir.Tensor
	drawn [draws]*ir.Tensor // the same tensor as base where no rounding is on the way
	exact bool              // every backend gives these bits
}

// bench computes graphs node by node, each result in memory of its own.
type bench struct {
	rng     *rand.Rand
	symbols map[string]int64
	values  map[ir.Value]*known
}

func newBench(seed uint64) *bench {
	return &bench{rand.New(rand.NewPCG(seed, 77)), map[string]int64{}, map[ir.Value]*known{}}
}

func (b *bench) leaf(v ir.Value, t *ir.Tensor) {
	k := &known{base: t, exact: true}
	for i := range k.drawn {
		k.drawn[i] = t
	}
	b.values[v] = k
}

// node computes the results of n from those of its operands.
func (b *bench) node(n *ir.Node, feed rlx.Feed) error {
	if t, ok := n.Out(0).Const(); ok {
		b.leaf(n.Out(0), t)
		return nil
	}
	if name, ok := n.ParamName(); ok {
		b.leaf(n.Out(0), n.Graph().ParamData(name))
		return nil
	}
	if name, ok := n.InputName(); ok {
		b.leaf(n.Out(0), feed[name])
		for k, d := range n.Types[0].Shape {
			if s, ok := d.Symbol(); ok {
				b.symbols[s] = feed[name].Shape()[k]
			}
		}
		return nil
	}
	exact := deterministic(n)
	for _, v := range n.In {
		exact = exact && (v.IsZero() || b.values[v].exact)
	}
	base, err := b.apply(n, func(_ int, k *known) *ir.Tensor { return k.base })
	if err != nil {
		return err
	}
	out := make([]*known, len(base))
	for i, t := range base {
		out[i] = &known{base: t, exact: exact}
		b.values[n.Out(i)] = out[i]
	}
	for d := range draws {
		drawn := base
		if !b.sameAsBase(n, d) || !moves(n) {
			drawn, err = b.apply(n, func(i int, k *known) *ir.Tensor { return b.disturbed(n, i, k.drawn[d]) })
			if err != nil {
				return err
			}
			for i := range drawn {
				drawn[i] = b.rounded(n, drawn[i])
			}
		}
		for i := range out {
			out[i].drawn[d] = drawn[i]
		}
	}
	return nil
}

// sameAsBase says whether no operand differs in a draw.
func (b *bench) sameAsBase(n *ir.Node, d int) bool {
	for _, v := range n.In {
		if !v.IsZero() && b.values[v].drawn[d] != b.values[v].base {
			return false
		}
	}
	return true
}

// apply runs n's row on tensors of its operands.
func (b *bench) apply(n *ir.Node, of func(int, *known) *ir.Tensor) ([]*ir.Tensor, error) {
	in := make([]*ir.Tensor, len(n.In))
	for i, v := range n.In {
		if v.IsZero() {
			continue
		}
		in[i] = of(i, b.values[v])
		if want := b.bound(v.Type()); !in[i].Type().Equal(want) {
			return nil, fmt.Errorf("operand %d is %s, expected %s", i, in[i].Type(), want)
		}
	}
	if n.Row.Has(ir.Control) {
		return b.control(n, in)
	}
	attrs, err := n.Row.BindAttrs(n.Attrs, b.symbols)
	if err != nil {
		return nil, err
	}
	types := make([]ir.Type, len(n.Types))
	for i, t := range n.Types {
		types[i] = b.bound(t)
	}
	return ref.Apply(n.Row, attrs, in, types)
}

// bound is t with the sizes of this run.
func (b *bench) bound(t ir.Type) ir.Type {
	u := ir.Type{DType: t.DType}
	for _, d := range t.Shape {
		u.Shape = append(u.Shape, d.Bind(b.symbols))
	}
	return u
}

// control runs a node with sub-graphs as a graph of its own.
func (b *bench) control(n *ir.Node, in []*ir.Tensor) ([]*ir.Tensor, error) {
	g, feed := ir.NewGraph("control"), rlx.Feed{}
	args := make([]ir.Value, len(in))
	for i, x := range in {
		name := fmt.Sprint("in", i)
		args[i], feed[name] = g.Input(name, x.DType(), x.Type().Shape), x
	}
	attrs, err := n.Row.BindAttrs(n.Attrs, b.symbols)
	if err != nil {
		return nil, err
	}
	c, err := g.Add(n.Row, "control", attrs, args...)
	if err != nil {
		return nil, err
	}
	for i, v := range c.Results() {
		g.Output(fmt.Sprint("out", i), v)
	}
	p, err := rlx.Compile(context.Background(), g, rlx.On("ref"), rlx.OnlyPasses())
	if err != nil {
		return nil, err
	}
	defer p.Close()
	got, err := p.Run(context.Background(), feed)
	if err != nil {
		return nil, err
	}
	out := make([]*ir.Tensor, len(n.Types))
	for i := range out {
		out[i] = got[fmt.Sprint("out", i)]
	}
	return out, nil
}

// moves says that n selects or moves elements and rounds nothing.
func moves(n *ir.Node) bool {
	if n.Row.Name == "Cast" || n.Row.Has(ir.Control) {
		return false
	}
	if n.Row.Has(ir.Exact) {
		return true
	}
	switch a := n.Attrs.(type) {
	case *op.ActivationAttrs:
		s, ok := op.Unary(string(a.Fn))
		return ok && s.ULP == 0 && s.AbsErr == 0
	case *op.BinaryAttrs:
		s, ok := op.Binary(string(a.Fn))
		return ok && s.ULP == 0
	case *op.ReduceAttrs:
		return a.Fn == "max" || a.Fn == "min"
	}
	return n.Row.Name == "Clamp" || !ir.Float.Has(n.Types[0].DType) && n.Types[0].DType != ir.C64 || n.Row.Tol == (ir.Tolerance{})
}

// deterministic says that every backend gives the same bits for n where it has the same operands: it moves, or rounds correctly.
func deterministic(n *ir.Node) bool {
	if n.Row.Has(ir.Control) || n.Row.Has(ir.Random) {
		return false
	}
	if moves(n) || n.Row.Name == "Cast" {
		return true
	}
	switch a := n.Attrs.(type) {
	case *op.ActivationAttrs:
		return a.Fn == "square"
	case *op.BinaryAttrs:
		return a.Fn == "add" || a.Fn == "sub" || a.Fn == "mul"
	}
	return false
}

var epsilon = map[ir.DType]float64{ir.F16: 0x1p-10, ir.BF16: 0x1p-7, ir.F32: 0x1p-23, ir.F64: 0x1p-52}

// disturbed is an operand of a rounding node with an error of some last places in every element: kernels differ in the order of sums.
func (b *bench) disturbed(n *ir.Node, i int, x *ir.Tensor) *ir.Tensor {
	index := len(n.Row.In) > 0 && n.Row.In[min(i, len(n.Row.In)-1)].DTypes == ir.IndexT
	if x == nil || index || moves(n) || deterministic(n) {
		return x
	}
	return b.shaken(x, 4, 0)
}

// rounded is a result with the error that its row allows.
func (b *bench) rounded(n *ir.Node, y *ir.Tensor) *ir.Tensor {
	if moves(n) {
		return y
	}
	if deterministic(n) {
		return b.shaken(y, 1, 0)
	}
	if n.Row.Has(ir.Control) { // of several nodes
		return b.shaken(y, 64, 2e-6)
	}
	return b.shaken(y, n.Row.Tol.Ulp+1, n.Row.Tol.Abs)
}

// shaken moves every finite element by up to so many last places. Of a half float that is one, and what is less than a step now and then.
func (b *bench) shaken(x *ir.Tensor, ulps, abs float64) *ir.Tensor {
	d := x.DType()
	eps, ok := epsilon[d]
	if !ok {
		return x
	}
	if d == ir.F64 {
		abs *= 0x1p-29
	}
	if d.Size() == 2 {
		ulps, abs = 1+ulps*0x1p-23/eps, abs+ulps*0x1p-24
	}
	y := copyOf(x)
	for i := range x.Len() {
		v := x.Float(i)
		if v == 0 && abs == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		u := 2*b.rng.Float64() - 1
		w := v + u*(ulps*eps*math.Abs(v)+abs)
		if !math.IsInf(w, 0) && (w != 0 || v == 0) {
			ir.PutFloat(d, y.Bytes(), i, w)
		}
	}
	return y
}

func copyOf(x *ir.Tensor) *ir.Tensor {
	y, err := ir.FromBytes(x.DType(), slices.Clone(x.Shape()), bytes.Clone(x.Bytes()))
	if err != nil { // a tensor that exists has a legal shape
		return x
	}
	return y
}

// steady says whether the value is worth comparing: small errors stay small, and NaN and infinities stay where they are.
func (k *known) steady() bool {
	if d := k.base.DType(); k.exact || d == ir.C64 || ir.Code.Has(d) {
		return k.exact
	} else if !ir.Float.Has(d) {
		return k.sameBits()
	}
	limit := max(2e-3, 8*epsilon[k.base.DType()])
	for i := range k.base.Len() {
		v := k.base.Float(i)
		for _, d := range k.drawn {
			w := d.Float(i)
			if v != w && !(math.IsNaN(v) && math.IsNaN(w)) && !(math.Abs(v-w) <= limit*max(1, math.Abs(v))) {
				return false
			}
		}
	}
	return true
}

func (k *known) sameBits() bool {
	for _, d := range k.drawn {
		if !bytes.Equal(d.Bytes(), k.base.Bytes()) {
			return false
		}
	}
	return true
}

// tolerance is how far element i may be from base: several times what the draws show there, and a part of what they show elsewhere, since an
// element may have been lucky in all of them; where others moved by a step of their dtype, so may this one.
func (k *known) tolerance() []float64 {
	tol := make([]float64, k.base.Len())
	if !ir.Float.Has(k.base.DType()) {
		return tol
	}
	most, relative := 0.0, 0.0
	for i := range tol {
		v := k.base.Float(i)
		for _, d := range k.drawn {
			if e := math.Abs(d.Float(i) - v); !math.IsNaN(e) && !math.IsInf(e, 0) {
				tol[i] = max(tol[i], e)
				most = max(most, e)
				if v != 0 {
					relative = max(relative, e/math.Abs(v))
				}
			}
		}
	}
	share := 0x1p-10 // no less than a step of f16
	if k.base.DType() == ir.BF16 {
		share = 0x1p-7
	}
	for i, e := range tol {
		tol[i] = 4*e + most/4 + min(relative, share)*math.Abs(k.base.Float(i))
		if math.IsNaN(tol[i]) || math.IsInf(tol[i], 0) {
			tol[i] = 0
		}
	}
	return tol
}

// sameTensor says how got differs from want bit for bit; NaN equals NaN.
func sameTensor(got, want *ir.Tensor) error { return within(got, want, nil) }

// within says how got differs from want by more than tol, nil for bit for bit.
func within(got, want *ir.Tensor, tol []float64) error {
	if got == nil {
		return fmt.Errorf("no result")
	}
	if got.DType() != want.DType() || !slices.Equal(got.Shape(), want.Shape()) {
		return fmt.Errorf("got %s, expected %s", got.Type(), want.Type())
	}
	if bytes.Equal(got.Bytes(), want.Bytes()) {
		return nil
	}
	bad, first, size := 0, "", want.DType().Size()
	for i := range want.Len() {
		g, w := got.Bytes()[i*size:(i+1)*size], want.Bytes()[i*size:(i+1)*size]
		if bytes.Equal(g, w) || bothNaN(want.DType(), g, w) {
			continue
		}
		if tol != nil && ir.Float.Has(want.DType()) && math.Abs(got.Float(i)-want.Float(i)) <= tol[i] {
			continue
		}
		if bad++; bad == 1 {
			first = fmt.Sprintf("element %d: got %v, expected %v", i, got.At(i), want.At(i))
			if tol != nil {
				first += fmt.Sprintf(" within %.3g", tol[i])
			}
		}
	}
	if bad == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d differ, %s", bad, want.Len(), first)
}

func bothNaN(d ir.DType, a, b []byte) bool {
	if d == ir.C64 {
		same := func(k int) bool {
			return bytes.Equal(a[4*k:4*k+4], b[4*k:4*k+4]) || math.IsNaN(ir.FloatAt(ir.F32, a, k)) && math.IsNaN(ir.FloatAt(ir.F32, b, k))
		}
		return same(0) && same(1)
	}
	return (ir.Float.Has(d) || ir.Code.Has(d)) && math.IsNaN(ir.FloatAt(d, a, 0)) && math.IsNaN(ir.FloatAt(d, b, 0))
}
