package pass_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx/backend"
	"github.com/rlx-ml/rlx-go/rlx/internal/pass"
	"github.com/rlx-ml/rlx-go/rlx/internal/ref"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// evaluate computes the outputs of a static graph node by node, each result in memory of its own: no pass, no plan.
func evaluate(t *testing.T, g *ir.Graph, feed map[string]*ir.Tensor) []*ir.Tensor {
	t.Helper()
	out, err := interpret(g, feed)
	if err != nil {
		t.Fatalf("%v\n%s", err, g)
	}
	return out
}

func interpret(g *ir.Graph, feed map[string]*ir.Tensor) ([]*ir.Tensor, error) {
	if err := g.Verify(); err != nil {
		return nil, err
	}
	values := map[ir.Value]*ir.Tensor{}
	for _, n := range g.Nodes {
		if c, ok := n.Out(0).Const(); ok {
			values[n.Out(0)] = c
		} else if name, ok := n.InputName(); ok {
			values[n.Out(0)] = feed[name]
		} else if name, ok := n.ParamName(); ok {
			values[n.Out(0)] = g.ParamData(name)
		} else {
			in := make([]*ir.Tensor, len(n.In))
			for i, v := range n.In {
				in[i] = values[v]
			}
			out, err := ref.Apply(n.Row, n.Attrs, in, n.Types)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", n, err)
			}
			for i, o := range out {
				values[n.Out(i)] = o
			}
		}
	}
	var out []*ir.Tensor
	for _, o := range g.Outputs {
		out = append(out, values[o.Value])
	}
	return out, nil
}

// sameBits wants equal types and bytes.
func sameBits(t *testing.T, got, want []*ir.Tensor, g *ir.Graph) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d outputs, expected %d", len(got), len(want))
	}
	for i := range got {
		if !got[i].Type().Equal(want[i].Type()) || !bytes.Equal(got[i].Bytes(), want[i].Bytes()) {
			t.Fatalf("output %d: got %s, expected %s\n%s", i, got[i], want[i], g)
		}
	}
}

func apply(t *testing.T, g *ir.Graph, f func(*ir.Graph) (*ir.Graph, error)) *ir.Graph {
	t.Helper()
	out, err := f(g)
	if err != nil {
		t.Fatalf("%v\n%s", err, g)
	}
	if err := out.Verify(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return out
}

func noInputs(g *ir.Graph) ([]*ir.Tensor, error) { return interpret(g, nil) }

func fold(limit int64) func(*ir.Graph) (*ir.Graph, error) {
	return func(g *ir.Graph) (*ir.Graph, error) { return pass.Fold(g, nil, limit, noInputs) }
}

func kinds(g *ir.Graph) string {
	var l []string
	for _, n := range g.Nodes {
		l = append(l, n.Row.Name)
	}
	return strings.Join(l, " ")
}

func wantKinds(t *testing.T, g *ir.Graph, want string) {
	t.Helper()
	if got := kinds(g); got != want {
		t.Errorf("got %s, expected %s\n%s", got, want, g)
	}
}

func floats(n int) *ir.Tensor {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(i) + 0.5
	}
	return ir.New(v, n)
}

func TestDCE(t *testing.T) {
	g := ir.NewGraph("g")
	x := g.Input("x", ir.F32, ir.Dims(4))
	g.Input("unused", ir.F32, ir.Dims(4))
	g.Param("dead", floats(4))
	values, index := op.TopK(op.Exp(x), 2, 0, true)
	op.Neg(values)
	g.Output("i", index)
	g.Output("x", x)
	out := apply(t, g, pass.DCE)
	wantKinds(t, out, "Input Input Activation TopK")
	feed := map[string]*ir.Tensor{"x": floats(4)}
	sameBits(t, evaluate(t, out, feed), evaluate(t, g, feed), out)
}

func TestCSE(t *testing.T) {
	g := ir.NewGraph("g")
	x := g.Input("x", ir.F32, ir.Dims(4))
	w, w2 := g.Param("w", floats(4)), g.Param("w2", floats(4))
	a, b := op.Add(op.Exp(x), 2), op.Add(op.Exp(x), 2)
	g.Output("same", op.Mul(a, b))
	g.Output("again", op.Mul(b, a))
	g.Output("other fn", op.Add(op.Expm1(x), 2))
	g.Output("other attr", op.Add(op.LeakyRelu(x, 0.5), op.LeakyRelu(x, 0.25)))
	g.Output("params", op.Add(op.Neg(w), op.Neg(w2))) // equal today, bound anew tomorrow
	v1, _ := op.TopK(x, 2, 0, true)
	_, i2 := op.TopK(x, 2, 0, true)
	g.Output("v", v1)
	g.Output("i", i2)
	out := apply(t, g, pass.CSE)
	count := map[string]int{}
	for _, n := range out.Nodes {
		count[n.Row.Name+n.AttrText()]++
	}
	for what, want := range map[string]int{"Activation{fn=exp}": 1, "Binary{fn=add}": 4, "Binary{fn=mul}": 1, "TopK{k=2, axis=0}": 1, "Activation{fn=neg}": 2} {
		if count[what] != want {
			t.Errorf("%d of %s, expected %d\n%s", count[what], what, want, out)
		}
	}
	if out.Outputs[0].Value != out.Outputs[1].Value {
		t.Error("equal outputs are computed twice")
	}
	feed := map[string]*ir.Tensor{"x": floats(4)}
	sameBits(t, evaluate(t, out, feed), evaluate(t, g, feed), out)
}

// Constants merge when their type and bits are the same, and only then.
func TestCSEConstants(t *testing.T) {
	nan := func(bits uint32) *ir.Tensor { return ir.Scalar(math.Float32frombits(bits)) }
	g := ir.NewGraph("g")
	x := g.Input("x", ir.F32, nil)
	for i, c := range []*ir.Tensor{
		ir.Scalar(float32(0)), ir.Scalar(float32(math.Copysign(0, -1))), nan(0x7fc00000), nan(0x7fc00001), nan(0xffc00000), ir.Scalar(int32(0)), ir.New([]float32{0}, 1), ir.New([]float32{}, 0), ir.New([]float32{}, 0, 1),
		ir.Scalar(float32(0)), nan(0x7fc00001), ir.New([]float32{}, 0), // these three are there already
	} {
		g.Output(fmt.Sprint(i), g.Constant(c))
	}
	// The payload of a NaN attribute counts too.
	for i, bits := range []uint64{0x7ff8000000000000, 0x7ff8000000000001, 0x7ff8000000000002, 0x7ff8000000000001} {
		g.Output(fmt.Sprint("pad", i), op.Pad(op.Reshape(x, ir.D(1)), ir.Dims(1, 1), "constant", ir.FloatNumber(math.Float64frombits(bits))))
	}
	out := apply(t, g, pass.CSE)
	count := map[string]int{}
	for _, n := range out.Nodes {
		count[n.Row.Name]++
	}
	if count["Constant"] != 9 || count["Pad"] != 3 {
		t.Errorf("%v, expected 9 constants and 3 pads", count)
	}
	feed := map[string]*ir.Tensor{"x": ir.Scalar(float32(1))}
	sameBits(t, evaluate(t, out, feed), evaluate(t, g, feed), out)
}

func TestBind(t *testing.T) {
	g := ir.NewGraph("g")
	n := ir.Sym("n")
	x := g.Input("x", ir.F32, []ir.Dim{n, ir.D(4)})
	y := op.Reshape(op.Add(op.Exp(x), 1), n.Mul(ir.D(2)), ir.D(2)).Named("r")
	g.Output("y", y)
	out := apply(t, g, func(g *ir.Graph) (*ir.Graph, error) { return pass.Bind(g, map[string]int64{"n": 3}) })
	if got := out.Outputs[0].Value.Type().String(); got != "f32[6, 2]" || out.Inputs[0].Types[0].String() != "f32[3, 4]" || out.Outputs[0].Value.Node().Name != "r" {
		t.Errorf("got %s\n%s", got, out)
	}
	if got := g.Outputs[0].Value.Type().String(); got != "f32[2*n, 2]" {
		t.Errorf("the graph that was bound became %s", got)
	}
	// A constraint that these sizes alone violate is found, with the node's name.
	bad := ir.NewGraph("g")
	m := bad.Input("m", ir.F32, []ir.Dim{ir.Sym("m")})
	bad.Output("y", op.Add(m, bad.Input("k", ir.F32, []ir.Dim{ir.Sym("k")})).Named("sum"))
	if err := bad.Verify(); err != nil {
		t.Fatal(err)
	}
	apply(t, bad, func(g *ir.Graph) (*ir.Graph, error) { return pass.Bind(g, map[string]int64{"m": 5, "k": 1}) })
	_, err := pass.Bind(bad, map[string]int64{"m": 5, "k": 2})
	if err == nil || !strings.Contains(err.Error(), "[5] and [2]") || !strings.Contains(err.Error(), "node sum") {
		t.Errorf("got error %v", err)
	}
	if _, err := pass.Bind(bad, map[string]int64{"m": -1, "k": 1}); err == nil {
		t.Error("a negative length is bound")
	}
}

func TestFold(t *testing.T) {
	g := ir.NewGraph("g")
	x := g.Input("x", ir.F32, ir.Dims(4))
	w := g.Param("w", floats(8))
	scaled := op.Mul(op.Cast(g.Constant(ir.New([]int8{1, 2, 3, -4}, 4)), ir.F32), 0.5)
	view := op.Reshape(op.Exp(w), ir.D(2), ir.D(4)) // the view stays, what it shows is computed
	values, index := op.TopK(w, 2, 0, true)
	g.Output("y", op.Add(op.Add(x, scaled), view))
	g.Output("const", op.Exp(scaled))
	g.Output("v", op.Add(values, op.Narrow(x, 0, 0, 2)))
	g.Output("i", index)
	g.Output("w", op.Reshape(w, ir.D(4), ir.D(2)))
	out := apply(t, g, fold(0))
	feed := map[string]*ir.Tensor{"x": floats(4)}
	sameBits(t, evaluate(t, out, feed), evaluate(t, g, feed), out)
	wantKinds(t, apply(t, out, pass.DCE), "Input Param Constant Constant Reshape Constant Constant Binary Binary Constant Narrow Binary Reshape")
	// Nothing to do: the same graph.
	if again := apply(t, out, fold(0)); again != out {
		t.Errorf("folded twice\n%s", again)
	}
	// Results beyond the limit stay nodes; their small operands fold.
	big := ir.NewGraph("g")
	x = big.Input("x", ir.F32, ir.Dims(64))
	big.Output("y", op.Add(x, op.Expand(op.Exp(big.Constant(ir.Scalar(float32(1)))), ir.D(64))))
	big.Output("z", op.Add(x, op.Tile(op.Exp(big.Constant(ir.New([]float32{2}, 1))), ir.D(64))))
	out = apply(t, apply(t, big, fold(16)), pass.DCE)
	wantKinds(t, out, "Input Constant Expand Binary Constant Tile Binary")
	feed = map[string]*ir.Tensor{"x": floats(64)}
	sameBits(t, evaluate(t, out, feed), evaluate(t, big, feed), out)
	wantKinds(t, apply(t, apply(t, big, fold(256)), pass.DCE), "Input Constant Expand Binary Constant Binary")
	// What depends on symbols waits until they are bound.
	sym := ir.NewGraph("g")
	x = sym.Input("x", ir.F32, []ir.Dim{ir.Sym("n")})
	sym.Output("y", op.Add(x, op.Tile(sym.Constant(ir.New([]float32{2}, 1)), ir.Sym("n"))))
	if out := apply(t, sym, fold(0)); out != sym {
		t.Errorf("folded a symbol\n%s", out)
	}
	_, err := pass.Fold(g, nil, 0, func(*ir.Graph) ([]*ir.Tensor, error) { return nil, errors.New("no memory") })
	if err == nil || !strings.Contains(err.Error(), "folding constants: no memory") {
		t.Errorf("got error %v", err)
	}
}

// support has kernels for the rows in native and stages those in host.
func support(native, host func(*ir.Row) bool) *pass.Support {
	var caps []backend.Cap
	for _, r := range ir.Rows() {
		if !r.Has(ir.Leaf) && native(r) {
			caps = append(caps, backend.Cap{Op: r.Num(), DTypes: ^uint32(0), Strided: true})
		}
	}
	return pass.NewSupport("toy", caps, host)
}

func named(names ...string) func(*ir.Row) bool {
	return func(r *ir.Row) bool { return slices.Contains(names, r.Name) }
}

func legalize(s *pass.Support) func(*ir.Graph) (*ir.Graph, error) {
	return func(g *ir.Graph) (*ir.Graph, error) { return pass.Legalize(g, s) }
}

func TestLegalize(t *testing.T) {
	g := ir.NewGraph("g")
	x := g.Input("x", ir.F32, ir.Dims(2, 4))
	soft := op.Softmax(x, -1).Named("soft")
	_, index := op.Sort(soft, -1, false)
	g.Output("y", op.Transpose(soft, 1, 0))
	g.Output("i", index)
	feed := map[string]*ir.Tensor{"x": ir.New([]float32{1, 2, 3, 4, -1, 0.5, 80, -80}, 2, 4)}
	want := evaluate(t, g, feed)

	// All native: nothing changes.
	out := apply(t, g, legalize(support(func(*ir.Row) bool { return true }, nil)))
	wantKinds(t, out, kinds(g))

	// Composed: parts that name where they came from. Views need no kernel.
	parts := support(basic, nil)
	out = apply(t, g, legalize(parts))
	n := 0
	for _, m := range out.Nodes {
		if m.Row.Name == "Softmax" || !m.Row.Has(ir.Leaf) && !m.Row.Has(ir.View) && !parts.Native(m) {
			t.Errorf("%s is left", m)
		}
		if m.From == (ir.Origin{Op: "Softmax", Name: "soft"}) {
			n++
		}
	}
	if n < 3 {
		t.Errorf("%d nodes come from soft\n%s", n, out)
	}
	got := evaluate(t, out, feed)
	for i := range 8 {
		if d := math.Abs(got[0].Float(i) - want[0].Float(i)); d > 1e-6 {
			t.Errorf("element %d is %g, expected %g", i, got[0].Float(i), want[0].Float(i))
		}
	}
	sameBits(t, got[1:], want[1:], out)

	// Host: what is neither native nor composed stays, and runs elsewhere. A composition is preferred.
	s := support(named(), named("Sort", "Softmax"))
	out = apply(t, g, legalize(s))
	wantKinds(t, out, kinds(g))
	s = support(func(r *ir.Row) bool { return basic(r) && r.Name != "ArgSort" }, named("Sort", "ArgSort", "Softmax"))
	out = apply(t, g, legalize(s))
	if k := kinds(out); strings.Contains(k, "Softmax") || !strings.Contains(k, "Sort") {
		t.Errorf("got %s", k)
	}

	// Unsupported: every node, each once, with what is missing.
	_, err := pass.Legalize(g, support(named("Copy"), nil))
	var ue *pass.UnsupportedError
	if !errors.As(err, &ue) || ue.Backend != "toy" || len(ue.Nodes) != 2 || ue.Nodes[0].Node != "soft" || ue.Nodes[1].Op != "Sort" || ue.Nodes[0].DType != ir.F32 ||
		!strings.Contains(ue.Nodes[0].Reason, "its part ") || !strings.Contains(ue.Nodes[1].Reason, "no kernel and no decomposition") {
		t.Errorf("got %v", err)
	}
}

// A kernel for some dtypes serves those alone.
func TestLegalizeDTypes(t *testing.T) {
	row, err := ir.RowByName("Activation")
	if err != nil {
		t.Fatal(err)
	}
	s := pass.NewSupport("toy", []backend.Cap{{Op: row.Num(), DTypes: 1 << ir.F32, Strided: true}, {Op: row.Num(), DTypes: 1 << ir.F64}}, nil)
	g := ir.NewGraph("g")
	for _, d := range []ir.DType{ir.F16, ir.F32, ir.F64} {
		v := op.Exp(g.Input("x"+d.String(), d, ir.Dims(2))).Named("exp_" + d.String())
		g.Output(d.String(), v)
		if got := s.Native(v.Node()); got != (d != ir.F16) {
			t.Errorf("%s native: %v", d, got)
		}
		if got := s.Strided(v.Node()); got != (d == ir.F32) {
			t.Errorf("%s strided: %v", d, got)
		}
	}
	_, err = pass.Legalize(g, s)
	var ue *pass.UnsupportedError
	if !errors.As(err, &ue) || len(ue.Nodes) != 1 || ue.Nodes[0].Node != "exp_f16" || !strings.Contains(err.Error(), "toy does not support 1 of the graph's nodes: exp_f16 (Activation f16") {
		t.Errorf("got %v", err)
	}
}

// basic rows are those without a decomposition, and the few whose functions decompose into each other.
func basic(r *ir.Row) bool {
	return !r.Composite() || named("Activation", "Binary", "Compare", "Reduce")(r)
}

// Composite rows unfold through rows that are composite themselves.
func TestNestedDecompositions(t *testing.T) {
	s := support(basic, nil)
	g := ir.NewGraph("g")
	x := g.Input("x", ir.F32, ir.Dims(2, 3, 4))
	gamma := g.Param("gamma", floats(4))
	h := op.LayerNorm(x, gamma, gamma, -1, 1e-5)
	h = op.Softmax(op.Roll(op.Tile(h, ir.Dims(1, 2, 1)...), []int64{1}, []int{1}), 1)
	g.Output("y", op.Reduce(op.Clamp(h, 0.1, 0.9), "l2", []int{0}, false))
	feed := map[string]*ir.Tensor{"x": randomTensor(rand.New(rand.NewPCG(1, 1)), ir.F32, 2, 3, 4)}
	want := evaluate(t, g, feed)
	out := apply(t, g, legalize(s))
	for _, n := range out.Nodes {
		if !basic(n.Row) && !n.Row.Has(ir.View) {
			t.Errorf("%s is left", n)
		}
		if !n.Row.Has(ir.Leaf) && !n.Row.Has(ir.View) && n.From.Op == "" && g.Nodes[0] != n && !slices.ContainsFunc(g.Nodes, func(m *ir.Node) bool { return m.Name == n.Name }) {
			t.Errorf("%s comes from nowhere", n)
		}
	}
	got := evaluate(t, out, feed)
	for i := range want[0].Len() {
		if d := math.Abs(got[0].Float(i) - want[0].Float(i)); d > 1e-5 {
			t.Errorf("element %d is %g, expected %g", i, got[0].Float(i), want[0].Float(i))
		}
	}
}

// run is a pipeline of passes without those called off.
func run(g *ir.Graph, verify bool, off string, passes ...pass.Pass) (*ir.Graph, error) {
	return pass.Pipeline{Passes: passes, Skip: func(name string) bool { return name == off }, Verify: verify}.Run(g)
}

func TestPipeline(t *testing.T) {
	g := ir.NewGraph("g")
	g.Output("y", op.Exp(g.Input("x", ir.F32, nil)))
	var ran []string
	step := func(name string, f func(*ir.Graph) (*ir.Graph, error)) pass.Pass {
		return pass.Pass{Name: name, Run: pass.Plain(func(g *ir.Graph) (*ir.Graph, error) { ran = append(ran, name); return f(g) })}
	}
	same := func(g *ir.Graph) (*ir.Graph, error) { return g, nil }
	breaks := func(g *ir.Graph) (*ir.Graph, error) {
		out, err := pass.DCE(g)
		if err == nil {
			out.Outputs = nil
		}
		return out, err
	}
	if out, err := run(g, true, "b", step("a", same), step("b", breaks), step("c", same)); err != nil || out != g || strings.Join(ran, "") != "ac" {
		t.Errorf("ran %v: %v", ran, err)
	}
	if _, err := run(g, true, "", step("b", breaks)); err == nil || !strings.Contains(err.Error(), "pass b broke the graph") {
		t.Errorf("got error %v", err)
	}
	if _, err := run(g, false, "", step("b", breaks)); err != nil {
		t.Error(err)
	}
	if _, err := run(g, true, "", step("d", func(*ir.Graph) (*ir.Graph, error) { return nil, errors.New("no") }), step("a", same)); err == nil || err.Error() != "no" {
		t.Errorf("got error %v", err)
	}
}

func randomTensor(r *rand.Rand, d ir.DType, shape ...int64) *ir.Tensor {
	x, _ := ir.Zeros(d, shape...)
	for i := range x.Len() {
		ir.PutFloat(d, x.Bytes(), i, float64(r.IntN(9))/2-2)
	}
	return x
}

// randomGraph has a few dozen nodes over small tensors: constants, params and inputs mixed, equal subtrees, dead ends.
func randomGraph(r *rand.Rand) (*ir.Graph, map[string]*ir.Tensor) {
	g, feed := ir.NewGraph("g"), map[string]*ir.Tensor{}
	var pool []ir.Value
	for i := range 3 {
		x := randomTensor(r, ir.F32, 3, 4)
		feed[fmt.Sprint("x", i)] = x
		pool = append(pool, g.Input(fmt.Sprint("x", i), ir.F32, ir.Dims(3, 4)), g.Constant(randomTensor(r, ir.F32, 3, 4)), g.Param(fmt.Sprint("w", i), randomTensor(r, ir.F32, 1, 4)))
	}
	pick := func() ir.Value { return pool[r.IntN(len(pool))] }
	for range 30 {
		a, b := pick(), pick()
		switch r.IntN(9) {
		case 0:
			pool = append(pool, op.Add(a, b))
		case 1:
			pool = append(pool, op.Max(a, 0.5))
		case 2:
			pool = append(pool, op.Neg(a))
		case 3:
			v, _ := op.Sort(a, r.IntN(2), r.IntN(2) == 0)
			pool = append(pool, v)
		case 4:
			pool = append(pool, op.Reverse(a, r.IntN(2)))
		case 5:
			pool = append(pool, op.Narrow(op.Concat(1, a, a), 1, int64(r.IntN(5)), 4))
		case 6:
			pool = append(pool, op.Expand(a, ir.D(3), ir.D(4)))
		case 7:
			pool = append(pool, op.Mul(op.Sign(a), b))
		case 8:
			pool = append(pool, op.Reduce(a, "max", []int{0}, true))
		}
	}
	for i := range 4 {
		g.Output(fmt.Sprint("y", i), pick())
	}
	return g, feed
}

// Each pass alone, all in order, and all twice leave the bits of every output as they are.
func TestRandomGraphs(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	all := []func(*ir.Graph) (*ir.Graph, error){pass.DCE, pass.CSE, fold(0), fold(20), legalize(support(func(*ir.Row) bool { return true }, nil)),
		func(g *ir.Graph) (*ir.Graph, error) { return pass.Bind(g, nil) }}
	for range 150 {
		g, feed := randomGraph(r)
		want := evaluate(t, g, feed)
		chain := g
		for _, f := range append(all, all...) {
			sameBits(t, evaluate(t, apply(t, g, f), feed), want, g)
			chain = apply(t, chain, f)
			sameBits(t, evaluate(t, chain, feed), want, chain)
		}
		if len(chain.Nodes) > len(g.Nodes) {
			t.Errorf("%d nodes became %d", len(g.Nodes), len(chain.Nodes))
		}
	}
}

// A constant that a kernel without strides reads through a view is laid out once, unless the view makes more of it or leaves it in order.
func TestFoldLaysOutConstants(t *testing.T) {
	conv, err := ir.RowByName("Conv")
	if err != nil {
		t.Fatal(err)
	}
	dense := pass.NewSupport("dense", []backend.Cap{{Op: conv.Num(), DTypes: uint32(ir.Float)}}, nil)
	w := ir.New(make([]float32, 8*4*3*3), 3, 3, 4, 8)
	for i := range w.Len() {
		ir.PutFloat(ir.F32, w.Bytes(), i, float64(i%17)-8)
	}
	for name, c := range map[string]struct {
		view func(w ir.Value) ir.Value
		want string
	}{
		"transposed": {func(w ir.Value) ir.Value { return op.Transpose(w, 3, 2, 0, 1) }, "Conv"},
		"reshaped":   {func(w ir.Value) ir.Value { return op.ReshapeInts(w, 8, 4, 3, 3) }, "Reshape Conv"},
		"expanded": {func(w ir.Value) ir.Value {
			return op.Expand(op.ReshapeInts(op.Narrow(w, 0, 0, 1), 24, 4, 1, 1), ir.Dims(24, 4, 3, 3)...)
		}, "Narrow Reshape Expand Conv"},
	} {
		g := ir.NewGraph("g")
		x := g.Input("x", ir.F32, ir.Dims(1, 4, 5, 5))
		g.Output("y", op.Conv2d(x, c.view(g.Param("w", w)), ir.Value{}, op.ConvAttrs{}))
		after := apply(t, g, func(g *ir.Graph) (*ir.Graph, error) { return pass.Fold(g, dense, 0, noInputs) })
		var left []string
		for _, n := range after.Nodes {
			if !n.Row.Has(ir.Leaf) {
				left = append(left, n.Row.Name)
			}
		}
		if got := strings.Join(left, " "); got != c.want {
			t.Errorf("%s: got %q, expected %q", name, got, c.want)
		}
		feed := map[string]*ir.Tensor{"x": specialTensor(rand.New(rand.NewPCG(1, 2)), ir.F32, 1, 4, 5, 5)}
		sameBits(t, evaluate(t, after, feed), evaluate(t, g, feed), after)
	}
}
