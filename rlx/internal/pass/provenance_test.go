package pass_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx/internal/pass"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// spelledSoftmax is e / sum(e), e = exp(x - max(x)), by name.
func spelledSoftmax(x ir.Value) ir.Value {
	most := op.Reduce(x, "max", []int{1}, true).Named("most")
	e := op.Exp(op.Sub(x, most).Named("minus")).Named("e")
	return op.Div(e, op.Reduce(e, "sum", []int{1}, true).Named("sum")).Named("soft")
}

// standing says what the nodes of a graph stand for: "kind name: names".
func standing(g *ir.Graph) string {
	var list []string
	for _, n := range g.Nodes {
		var names []string
		for _, o := range n.Absorbed {
			names = append(names, o.Name)
		}
		if slices.Sort(names); len(names) > 0 {
			list = append(list, n.Row.Name+" "+n.Source().Name+": "+strings.Join(names, " "))
		}
	}
	return strings.Join(list, "; ")
}

// What comes in place of nodes tells their names, through passes that follow each other. Nodes that no output needs are nobody's.
func TestProvenance(t *testing.T) {
	f32 := func(g *ir.Graph, name string, shape ...int64) ir.Value {
		return g.Input(name, ir.F32, ir.Dims(shape...))
	}
	row := func(g *ir.Graph, v ...float32) ir.Value { return g.Constant(ir.New(v, len(v))) }
	fold := pass.Pass{Name: "fold", Run: pass.Plain(func(g *ir.Graph) (*ir.Graph, error) { return pass.Fold(g, nil, 0, noInputs) })}
	cse := pass.Pass{Name: "cse", Run: pass.Plain(pass.CSE)}
	for _, tc := range []struct {
		name   string
		build  func(g *ir.Graph)
		passes []pass.Pass
		want   string
	}{
		{"a pattern", func(g *ir.Graph) { g.Output("y", spelledSoftmax(f32(g, "x", 2, 3))) }, []pass.Pass{pass.Norms}, "Softmax soft: e minus most sum"},
		{"a part that is an output too", func(g *ir.Graph) {
			y := spelledSoftmax(f32(g, "x", 2, 3))
			g.Output("y", y)
			g.Output("most", y.Node().In[1].Node().In[0].Node().In[0].Node().In[1])
		}, []pass.Pass{pass.Norms}, ""},
		{"unused", func(g *ir.Graph) {
			x := f32(g, "x", 2, 3)
			op.Exp(op.Neg(x).Named("neg")).Named("nobody's")
			g.Output("y", spelledSoftmax(x))
		}, []pass.Pass{pass.Norms, {Name: "dce", Run: pass.Plain(pass.DCE)}}, "Softmax soft: e minus most sum"},
		{"equal nodes", func(g *ir.Graph) {
			x := f32(g, "x", 3)
			g.Output("y", op.Mul(op.Exp(op.Neg(x).Named("a")).Named("b"), op.Exp(op.Neg(x).Named("c")).Named("d")))
		}, []pass.Pass{cse}, "Activation a: c; Activation b: d"},
		{"nothing to do", func(g *ir.Graph) {
			x := op.Exp(f32(g, "x", 3)).Named("e")
			g.Output("y", op.Neg(op.Mul(x, g.Constant(ir.Scalar(float32(1)))).Named("once")))
		}, []pass.Pass{pass.Algebra}, "Activation e: once"},
		{"an input", func(g *ir.Graph) {
			g.Output("y", op.Exp(op.Transpose(op.Transpose(f32(g, "x", 2, 3), 1, 0).Named("there"), 1, 0).Named("back")))
		}, []pass.Pass{pass.Views}, "Input x: back there"},
		{"constants", func(g *ir.Graph) {
			k := op.Exp(op.Neg(row(g, 1, 2, 3)).Named("neg")).Named("exp")
			g.Output("y", op.Mul(f32(g, "x", 3), k).Named("product"))
		}, []pass.Pass{fold}, "Constant exp.folded: exp neg"},
		{"residual", func(g *ir.Graph) {
			sum := op.Add(f32(g, "x", 2, 3), f32(g, "r", 2, 3)).Named("sum")
			g.Output("y", op.Add(op.LayerNorm(sum, row(g, 1, 2, 3), row(g, 4, 5, 6), 1, 1e-5).Named("norm"), sum).Named("next"))
		}, []pass.Pass{pass.Residual}, "FusedResidualLN norm: sum"},
		{"regions", func(g *ir.Graph) {
			y := op.Exp(op.Mul(op.MatMul(f32(g, "x", 2, 2), f32(g, "w", 2, 2)).Named("product"), f32(g, "k", 2, 2)).Named("scaled")).Named("e")
			g.Output("y", op.Sub(y, f32(g, "b", 2, 2)).Named("last"))
		}, []pass.Pass{pass.Regions(everything()), pass.MatMulEpilogue}, "MatMulRegion last: e product scaled"},
		{"convolution", func(g *ir.Graph) {
			y := op.Conv(f32(g, "x", 1, 1, 4), g.Constant(ir.New([]float32{1, 2}, 1, 1, 2)), op.ConvAttrs{}).Named("conv")
			y = op.Add(op.Mul(y, g.Constant(ir.Scalar(float32(3)))).Named("times"), g.Constant(ir.Scalar(float32(4)))).Named("plus")
			g.Output("y", op.Relu(y).Named("relu"))
		}, []pass.Pass{pass.ConvScale, pass.ConvEpilogue}, "FusedConvBiasAct relu: conv plus times"},
		{"parts", func(g *ir.Graph) { g.Output("y", spelledSoftmax(f32(g, "x", 2, 3))) }, []pass.Pass{pass.Norms,
			{Name: "legalize", Run: pass.Plain(func(g *ir.Graph) (*ir.Graph, error) {
				return pass.Legalize(g, support(named("Reduce", "Binary", "Activation", "Expand", "Reshape"), nil))
			})}}, "Binary soft: e minus most sum"},
	} {
		g := ir.NewGraph("g")
		tc.build(g)
		if err := g.Err(); err != nil {
			t.Fatal(err)
		}
		out, err := pass.Pipeline{Passes: tc.passes, Support: everything(), Verify: true}.Run(g)
		if err != nil {
			t.Fatalf("%s: %v", tc.name, err)
		}
		if got := standing(out); got != tc.want {
			t.Errorf("%s: got %q, expected %q\n%s", tc.name, got, tc.want, out)
		}
		if was := standing(g); was != "" {
			t.Errorf("%s: the graph before the passes says %q", tc.name, was)
		}
	}
}

// Passes that are no rules count what they do, too.
func TestRunPassesCount(t *testing.T) {
	g := ir.NewGraph("g")
	x := g.Input("x", ir.F32, ir.Dims(1, 2, 4))
	k := func(v float32) ir.Value { return g.Constant(ir.New([]float32{v, v}, 2, 1)) }
	y := op.Conv(x, g.Constant(ir.New([]float32{1, 2, 3, 4}, 2, 2, 1)), op.ConvAttrs{})
	y = op.Relu(op.Add(op.Mul(y, k(2)), k(3)))
	for range 2 {
		y = op.RmsNorm(op.Add(x, y), ir.Value{}, ir.Value{}, -1, 1e-5)
	}
	g.Output("y", op.Exp(op.Neg(y)))
	g.Output("n", op.Sum(op.Neg(op.Exp(x)), 2))
	got := map[string]int{}
	l := pass.Pipeline{Passes: []pass.Pass{pass.ConvScale, pass.Residual, pass.Regions(everything())}, Support: everything(), Verify: true, Trace: func(s pass.Step) {
		for rule, n := range s.Rules {
			got[s.Pass+" "+rule] += n
		}
	}}
	out, err := l.Run(g)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{"convbn Conv": 1, "convbn Binary": 2, "residual rms norm": 2, "regions region": 3, "regions reduce": 1} {
		if got[name] != want {
			t.Errorf("%s: %d, expected %d\n%s", name, got[name], want, out)
		}
	}
}
