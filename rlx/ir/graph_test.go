package ir_test

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// here is file:line of the line that is back lines before its caller's.
func here(back int) string {
	_, file, line, _ := runtime.Caller(1)
	return fmt.Sprintf("%s:%d", file[strings.LastIndexByte(file, '/')+1:], line-back)
}

func wantError(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("got no error, expected %q", parts)
		return
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("got error %v, expected %q", err, p)
		}
	}
}

func TestBuilderErrors(t *testing.T) {
	g := NewGraph("g")
	x, y := g.Input("x", F32, Dims(2, 3)), g.Input("y", F32, Dims(4))
	if g.Err() != nil || x.Poisoned() {
		t.Fatal(g.Err())
	}
	bad := op.Add(x, y)
	pos := here(1)
	wantError(t, g.Err(), pos, "Binary: C4", "[2, 3]", "[4]")
	var ne *NodeError
	if !errors.As(g.Err(), &ne) || ne.Pos != pos || ne.Op != "Binary" || ne.Graph != "g" {
		t.Errorf("got %#v", ne)
	}
	first := g.Err()
	// A poisoned value goes through every builder; the first error stays, and nothing is added.
	n := len(g.Nodes)
	chain := op.MatMul(op.Exp(bad), op.Softmax(bad, 99))
	values, index := op.TopK(chain, 1, 0, true)
	if !bad.Poisoned() || !chain.Poisoned() || !values.Poisoned() || !index.Poisoned() || len(g.Nodes) != n || g.Err() != first {
		t.Errorf("after an error: %d nodes, %v", len(g.Nodes), g.Err())
	}
	if chain.Rank() != 0 || chain.DType() != Invalid || !chain.Dim(0).Is(0) || chain.Named("z").Poisoned() != true || !strings.Contains(bad.Node().String(), "failed") {
		t.Error("a poisoned value has a type")
	}
	op.Add(x, op.Concat(0, x, bad, y))
	g.Output("z", chain)
	if g.Err() != first || g.Verify() != first {
		t.Errorf("got %v, expected the first error", g.Err())
	}
	// A good part of the graph still grows.
	if op.Exp(x).Poisoned() {
		t.Error("a value that has nothing to do with the error is poisoned")
	}
}

// A builder that gets no Value knows no graph; its error shows, with its position, where the value meets one.
func TestOrphans(t *testing.T) {
	use := map[string]func(g *Graph, x, v Value){
		"output":         func(g *Graph, _, v Value) { g.Output("y", v) },
		"operand":        func(_ *Graph, x, v Value) { op.MatMul(x, v) },
		"first operand":  func(_ *Graph, x, v Value) { op.MatMul(v, x) },
		"through others": func(_ *Graph, x, v Value) { op.MatMul(op.Exp(v), x) },
		"many":           func(_ *Graph, x, v Value) { op.Concat(0, v, v, x) },
	}
	for name, f := range use {
		g := NewGraph("g")
		x := g.Input("x", F32, Dims(2, 2))
		v := op.Add(1, 2)
		pos := here(1)
		if f(g, x, v); g.Err() == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		wantError(t, g.Err(), pos, "both operands are numbers")
	}
	g := NewGraph("g")
	g.Output("y", op.Exp(Value{}))
	wantError(t, g.Err(), here(1), "Activation", "no operand")

	// A value of another graph is refused with both names.
	g, h := NewGraph("g"), NewGraph("h")
	x, y := g.Input("x", F32, nil), h.Input("y", F32, nil)
	op.Add(y, x)
	wantError(t, h.Err(), `belongs to graph "g", expected "h"`)
	k := NewGraph("k")
	k.Output("y", x)
	wantError(t, k.Err(), `output "y" belongs to graph "g", expected "k"`)
}

func TestOutputs(t *testing.T) {
	for name, f := range map[string]func(g *Graph, x Value){
		`output "y" is named twice`:                                func(g *Graph, x Value) { g.Output("y", x); g.Output("y", x) },
		`output "y" has no value`:                                  func(g *Graph, x Value) { g.Output("y", Value{}) },
		"an output without a name":                                 func(g *Graph, x Value) { g.Output("", x) },
		`output "y" belongs to graph "g"`:                          func(g *Graph, x Value) { h := NewGraph("h"); h.Output("y", x); g.Fail("", h.Err()) },
		`output "y" is not a value of the graph`:                   func(g *Graph, x Value) { g.Output("y", x.Node().Out(1)) },
		`output "z" is not a value of the graph`:                   func(g *Graph, x Value) { g.Output("z", x.Node().Out(-1)) },
		`graph "g" has no outputs`:                                 func(*Graph, Value) {},
		"Input: C1: name \"x\" is taken":                           func(g *Graph, x Value) { g.Input("x", F32, nil) },
		"Param: C1: name \"x\" is taken":                           func(g *Graph, x Value) { g.Param("x", Scalar(1.0)) },
		"Input: C1: name is empty":                                 func(g *Graph, x Value) { g.Input("", F32, nil) },
		"Input: C2: n: shape [-2] has a negative":                  func(g *Graph, x Value) { g.Input("n", F32, Dims(-2)) },
		"Input: result has rank 9":                                 func(g *Graph, x Value) { g.Input("n", F32, Dims(1, 1, 1, 1, 1, 1, 1, 1, 1)) },
		"Input: result: tensor: got invalid, which is not a dtype": func(g *Graph, x Value) { g.Input("n", Invalid, nil) },
		"Param: C3: w: shape [n] has symbolic":                     func(g *Graph, x Value) { g.DeclareParam(ParamAttrs{Name: "w", Dtype: F32, Shape: []Dim{Sym("n")}}) },
		"got 1 elements, expected 2":                               func(g *Graph, x Value) { g.Param("w", New([]int8{1}, 2)) },
		"Constant: C1: tensor: got nil, expected a tensor":         func(g *Graph, x Value) { g.Constant(nil) },
	} {
		g := NewGraph("g")
		f(g, g.Input("x", F32, nil))
		wantError(t, g.Verify(), name)
	}
	// Ten thousand outputs are a matter of milliseconds, and passes may write the list.
	start, g := time.Now(), NewGraph("g")
	x := g.Input("x", F32, nil)
	g.Outputs = append(g.Outputs, Output{Name: "o7", Value: x})
	for i := range 20000 {
		if i != 7 {
			g.Output(fmt.Sprint("o", i), x)
		}
	}
	if g.Err() != nil || len(g.Outputs) != 20000 || time.Since(start) > 5*time.Second {
		t.Errorf("%d outputs in %v: %v", len(g.Outputs), time.Since(start), g.Err())
	}
	g.Output("o7", x)
	wantError(t, g.Err(), "named twice")
}

func TestNames(t *testing.T) {
	g := NewGraph("g")
	x := g.Input("x", F32, nil)
	var names []string
	for range 4 {
		names = append(names, op.Exp(x).Named("e").Node().Name)
	}
	if !slices.Equal(names, []string{"e", "e.1", "e.2", "e.3"}) {
		t.Errorf("got %v", names)
	}
	y := op.Exp(x)
	if name := y.Node().Name; y.Named("").Node().Name != name || y.Named(name).Node().Name != name {
		t.Errorf("renaming changed %s to %s", name, y.Node().Name)
	}
	// A node may have the name that an input wants: the input is still bound by its own.
	op.Exp(x).Named("late")
	late := g.Input("late", F32, nil)
	if name, _ := late.Node().InputName(); g.Err() != nil || name != "late" || late.Node().Name == "late" {
		t.Errorf("input %s is node %s: %v", name, late.Node().Name, g.Err())
	}
	late.Named("x2")
	g.Input("late", F32, nil)
	wantError(t, g.Err(), `name "late" is taken`)

	start := time.Now()
	g = NewGraph("g")
	x = g.Input("x", F32, nil)
	for range 20000 {
		op.Exp(x).Named("same")
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("20000 equal names took %v", took)
	}
}

func TestUnknownLengths(t *testing.T) {
	g := NewGraph("g")
	r := func() Value {
		return op.Resize(g.Input(fmt.Sprint("x", len(g.Nodes)), F32, []Dim{D(1), D(1), Sym("h")}), op.ResizeAttrs{Scales: []float64{1, 1, 1.7}, Axes: []int64{0, 1, 2}})
	}
	a, b := r().Named("up"), r().Named("up")
	g.Output("a", a)
	g.Output("b", b)
	if err := g.Verify(); err != nil {
		t.Fatal(err)
	}
	if a.Dim(2).IsStatic() || a.Dim(2) == b.Dim(2) {
		t.Errorf("two lengths that inference cannot express are %s and %s", a.Dim(2), b.Dim(2))
	}
	back, err := ParseGraph(strings.NewReader(g.String()))
	if err != nil || back.String() != g.String() {
		t.Errorf("%v\n%s", err, g)
	}
}

func TestParams(t *testing.T) {
	g := NewGraph("g")
	w := g.DeclareParam(ParamAttrs{Name: "w", Dtype: F32, Shape: Dims(2)})
	g.Output("y", op.Exp(w))
	if g.ParamData("w") != nil {
		t.Error("an unbound param has data")
	}
	wantError(t, g.BindParam("v", Scalar(1.0)), `no param is called "v"`)
	wantError(t, g.BindParam("w", Scalar(float32(1))), "Param: C2", "f32[]", "f32[2]")
	wantError(t, g.BindParam("w", New([]float32{1}, 3)), "got 1 elements")
	data := New([]float32{1, 2}, 2)
	if err := g.BindParam("w", data); err != nil || g.ParamData("w") != data || g.Verify() != nil {
		t.Error(err, g.Verify())
	}
	c, err := g.Rebuild(false, func(*Graph, *Node, []Value) ([]Value, error) { return nil, nil })
	if err != nil || c.ParamData("w") != data {
		t.Errorf("a rebuilt graph has param %v (%v)", c.ParamData("w"), err)
	}
}

// Every defect that is planted in a sound graph is found.
func TestVerify(t *testing.T) {
	build := func() (*Graph, *Node, *Node) {
		g := NewGraph("g")
		x := g.Input("x", F32, Dims(4))
		w := g.Param("w", New([]float32{1, 2, 3, 4}, 4))
		e := op.Exp(x).Named("e")
		s := op.Add(e, w).Named("s")
		g.Output("y", s)
		return g, e.Node(), s.Node()
	}
	if g, _, _ := build(); g.Verify() != nil {
		t.Fatal(g.Verify())
	}
	other := NewGraph("other").Input("o", F32, Dims(4))
	for want, plant := range map[string]func(g *Graph, e, s *Node){
		"stands at":                                    func(g *Graph, e, s *Node) { g.Nodes[2], g.Nodes[3] = g.Nodes[3], g.Nodes[2] },
		"computed later":                               func(g *Graph, e, s *Node) { e.In[0] = s.Out(0) },
		"operand 0 is computed later":                  func(g *Graph, e, s *Node) { e.In[0] = e.Out(0) },
		"belongs to another graph":                     func(g *Graph, e, s *Node) { s.In[1] = other },
		"is result 1 of":                               func(g *Graph, e, s *Node) { s.In[0] = e.Out(1) },
		"result 0 has type f32[5]":                     func(g *Graph, e, s *Node) { e.Types[0].Shape = Dims(5) },
		"result 0 has type f64[4]":                     func(g *Graph, e, s *Node) { s.Types[0].DType = F64 },
		"2 results, expected 1":                        func(g *Graph, e, s *Node) { e.Types = append(e.Types, e.Types[0]) },
		"0 results, expected 1":                        func(g *Graph, e, s *Node) { s.Types = nil },
		"two nodes are called s":                       func(g *Graph, e, s *Node) { e.Name = "s" },
		"expected 1 to 1":                              func(g *Graph, e, s *Node) { e.In = append(e.In, e.In[0]) },
		"operand b is missing":                         func(g *Graph, e, s *Node) { s.In[1] = Value{} },
		"attributes are a *ir.ParamAttrs":              func(g *Graph, e, s *Node) { e.Attrs = &ParamAttrs{} },
		"attributes are a <nil>":                       func(g *Graph, e, s *Node) { e.Attrs = nil },
		"has no row":                                   func(g *Graph, e, s *Node) { e.Row = nil },
		"not a value of the graph":                     func(g *Graph, e, s *Node) { g.Outputs[0].Value = other },
		"has no outputs":                               func(g *Graph, e, s *Node) { g.Outputs = nil },
		"two outputs are called":                       func(g *Graph, e, s *Node) { g.Outputs = append(g.Outputs, g.Outputs[0]) },
		"result 0 has type f32[3]":                     func(g *Graph, e, s *Node) { g.Inputs[0].Types = []Type{{F32, Dims(3)}} },
		"bound to f32[4], expected f32[2] as declared": func(g *Graph, e, s *Node) { g.Nodes[1].Attrs.(*ParamAttrs).Shape = Dims(2) },
		"2 inputs are listed": func(g *Graph, e, s *Node) {
			g.Nodes = append(g.Nodes[:0:0], g.Nodes...)
			g.Inputs = append(g.Inputs, e)
		},
		"list of inputs lacks":            func(g *Graph, e, s *Node) { g.Inputs = nil },
		`inputs or params are called "w"`: func(g *Graph, e, s *Node) { g.Inputs[0].Attrs.(*InputAttrs).Name = "w" },
	} {
		g, e, s := build()
		plant(g, e, s)
		wantError(t, g.Verify(), want)
	}
}

func TestRebuild(t *testing.T) {
	g := NewGraph("g")
	x, unused := g.Input("x", F32, Dims(2)), g.Input("unused", F32, Dims(2))
	e := op.Exp(x).Named("e")
	op.Exp(unused).Named("dead")
	g.Output("y", e)
	g.Output("same", e)
	g.Output("x", x)
	c, err := g.Rebuild(false, func(*Graph, *Node, []Value) ([]Value, error) { return nil, nil })
	if err != nil || c.Verify() != nil || len(c.Nodes) != 3 || len(c.Inputs) != 2 || len(c.Outputs) != 3 || c.Outputs[0].Value != c.Outputs[1].Value {
		t.Errorf("%v %v\n%s", err, c.Verify(), c)
	}
	all, err := g.Rebuild(true, func(*Graph, *Node, []Value) ([]Value, error) { return nil, nil })
	if err != nil || all.String() != g.String() {
		t.Errorf("%v\n%s", err, all)
	}
	_, err = g.Rebuild(false, func(*Graph, *Node, []Value) ([]Value, error) { return []Value{}, nil })
	wantError(t, err, "0 results, expected 1")
	_, err = g.Rebuild(false, func(to *Graph, n *Node, in []Value) ([]Value, error) {
		if n.Name == "e" {
			return []Value{op.Softmax(in[0], 7)}, nil
		}
		return nil, nil
	})
	wantError(t, err, "Softmax", "axis")
	// Nodes that stand for another carry its name.
	c, err = g.Rebuild(false, func(to *Graph, n *Node, in []Value) ([]Value, error) {
		if n.Name == "e" {
			return to.Within(n, func() []Value { return []Value{op.Neg(op.Neg(in[0]))} }), nil
		}
		return nil, nil
	})
	if err != nil || c.Outputs[0].Value.Node().From != (Origin{"Activation", "e"}) || !strings.Contains(c.Outputs[0].Value.Node().String(), "part of Activation e") {
		t.Errorf("%v\n%s", err, c)
	}
}

func TestInputDims(t *testing.T) {
	g := NewGraph("g")
	dims, err := g.Input("shape", I64, Dims(2)).InputDims()
	if err != nil || ShapeText(dims) != "[shape#0, shape#1]" {
		t.Errorf("got %v (%v)", dims, err)
	}
	if dims, err := g.Input("flag", Bool, nil).InputDims(); err != nil || len(dims) != 1 {
		t.Errorf("got %v (%v)", dims, err)
	}
	for name, v := range map[string]Value{"not an input": op.Exp(g.Input("f", F32, nil)), "expected static dims": g.Input("n", I32, []Dim{Sym("n")}), "an integer or bool": g.Input("r", F32, Dims(1)),
		"rank 0 or 1": g.Input("m", I32, Dims(1, 1)), "at most 64": g.Input("l", I32, Dims(65)), "only inputs": {}} {
		_, err := v.InputDims()
		wantError(t, err, name)
	}
	if got := g.Symbols(); !slices.Equal(got, []string{"n"}) {
		t.Errorf("symbols %v", got)
	}
}
