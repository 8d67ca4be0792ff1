package onnx_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/onnx"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

func f32(v ...float32) *rlx.Tensor { return rlx.New(v, len(v)) }

func list(v ...ir.Value) []ir.Value { return v }

// controlGraphs are graphs with sub-graphs, each with what it is run on.
var controlGraphs = []struct {
	name  string
	build func(g *ir.Graph)
	feed  rlx.Feed
	ops   string // operators of the export, sub-graphs included, that have to be there
}{
	{"branches", func(g *ir.Graph) { // captures as results, one twice
		x, w := g.Input("x", ir.F32, ir.Dims(3)), g.Param("w", f32(1, 2, 3))
		pred := op.Lt(op.ReshapeInts(op.Sum(x)), 2)
		y := op.If(pred, list(x, w),
			func(_ *ir.Graph, in []ir.Value) []ir.Value { return list(in[1], in[1], op.Add(in[0], in[1])) },
			func(g *ir.Graph, in []ir.Value) []ir.Value {
				c := op.Mul(g.Constant(f32(7, 8, 9)), in[0])
				return list(c, in[0], c)
			})
		for i, v := range y {
			g.Output("y"+string(rune('0'+i)), v)
		}
	}, rlx.Feed{"x": f32(1, 2, -4)}, "If"},
	{"nested", func(g *ir.Graph) { // an If in a Scan in a While, whose captures come from the outermost graph
		x, w := g.Input("x", ir.F32, []ir.Dim{ir.Sym("t"), ir.D(2)}), g.Param("w", f32(0.5, 2))
		n := g.Constant(ir.Scalar(int64(0)))
		limit := g.Input("limit", ir.I64, nil)
		out := op.While(list(n, w), list(limit, x, w),
			func(_ *ir.Graph, c, captures []ir.Value) ir.Value { return op.Lt(c[0], captures[0]) },
			func(_ *ir.Graph, c, captures []ir.Value) []ir.Value {
				s := op.Scan(list(c[1]), list(captures[2], c[0]), list(captures[1]), func(_ *ir.Graph, c, captures, rows []ir.Value) []ir.Value {
					odd := op.Eq(captures[1], 1)
					y := op.If(odd, list(c[0], rows[0], captures[0]),
						func(_ *ir.Graph, in []ir.Value) []ir.Value { return list(op.Sub(in[0], in[1])) },
						func(_ *ir.Graph, in []ir.Value) []ir.Value { return list(op.Add(op.Mul(in[0], in[2]), in[1])) })
					return list(y[0], y[0])
				}, op.ScanOptions{Reverse: true})
				return list(op.Add(c[0], 1), s[0], op.Sum(s[1], 0))
			}, op.WhileOptions{NumEmits: 1, Bounded: true, MaxTrips: 9})
		g.Output("n", out[0])
		g.Output("v", out[1])
		g.Output("sums", out[2])
	}, rlx.Feed{"x": rlx.New([]float32{1, 2, 3, 4, 5, 6}, 3, 2), "limit": ir.Scalar(int64(3))}, "Loop Scan If"},
	{"checkpoints of a symbolic length", func(g *ir.Graph) {
		x := g.Input("x", ir.F32, []ir.Dim{ir.Sym("t")})
		z := g.Input("z", ir.F32, []ir.Dim{ir.Sym("t"), ir.D(2)})
		out := op.Scan(list(g.Constant(f32(1, 1)), g.Constant(ir.Scalar(int32(5)))), nil, list(x, z), func(_ *ir.Graph, c, _, r []ir.Value) []ir.Value {
			next := op.Add(op.Mul(c[0], r[0]), r[1])
			return list(next, op.Add(c[1], 1), op.Sum(next), c[1])
		}, op.ScanOptions{Reverse: true, Checkpoints: 4})
		for i, v := range out {
			g.Output("y"+string(rune('0'+i)), v)
		}
	}, rlx.Feed{"x": f32(1, 2, 3, 4, 5, 6, 7), "z": rlx.New(make([]float32, 14), 7, 2)}, "Scan Range Gather"},
	{"nothing scanned", func(g *ir.Graph) {
		x, w := g.Input("x", ir.BF16, ir.Dims(2)), g.Input("w", ir.BF16, ir.Dims(2))
		out := op.Scan(list(x), list(w), nil, func(_ *ir.Graph, c, captures, _ []ir.Value) []ir.Value {
			y := op.Mul(c[0], captures[0])
			return list(y, y, captures[0])
		}, op.ScanOptions{Length: 70, Reverse: true, Checkpoints: 3})
		for i, v := range out {
			g.Output("y"+string(rune('0'+i)), op.Cast(v, ir.F32))
		}
	}, rlx.Feed{"x": bf16(1, 2), "w": bf16(1.0625, -1)}, "Loop Slice Gather"},
	{"no carries", func(g *ir.Graph) {
		x := g.Input("x", ir.F32, ir.Dims(66, 2))
		g.Output("y", op.Scan(nil, nil, list(x), func(_ *ir.Graph, _, _, r []ir.Value) []ir.Value { return list(op.Exp(r[0])) }, op.ScanOptions{})[0])
	}, rlx.Feed{"x": rlx.New(make([]float32, 132), 66, 2)}, "Scan"},
	{"swapped carries", func(g *ir.Graph) { // and a condition [1]
		a, b := g.Input("a", ir.F32, ir.Dims(1)), g.Input("b", ir.F32, ir.Dims(1))
		out := op.While(list(a, b), nil,
			func(g *ir.Graph, c, _ []ir.Value) ir.Value { return op.Lt(c[0], g.Constant(f32(9))) },
			func(_ *ir.Graph, c, _ []ir.Value) []ir.Value { return list(c[1], op.Add(c[0], c[1]), c[0], c[0]) },
			op.WhileOptions{NumEmits: 2})
		for i, v := range out {
			g.Output("y"+string(rune('0'+i)), v)
		}
	}, rlx.Feed{"a": f32(1), "b": f32(2)}, "Loop"},
}

func bf16(v ...float32) *rlx.Tensor {
	t, err := ir.Zeros(ir.BF16, int64(len(v)))
	if err != nil {
		panic(err)
	}
	for i, x := range v {
		ir.PutFloat(ir.BF16, t.Bytes(), i, float64(x))
	}
	return t
}

// TestExportControl runs exports of graphs with sub-graphs against the graphs themselves.
func TestExportControl(t *testing.T) {
	for _, c := range controlGraphs {
		t.Run(c.name, func(t *testing.T) {
			g := ir.NewGraph("g")
			c.build(g)
			var b bytes.Buffer
			if err := onnx.Export(g, &b); err != nil {
				t.Fatal(err)
			}
			m, err := onnx.Decode(b.Bytes())
			if err != nil {
				t.Fatal(err)
			}
			names, ops := map[string]bool{}, map[string]bool{}
			eachName(t, &m.Graph, names, ops)
			for _, want := range strings.Fields(c.ops) {
				if !ops[want] {
					t.Errorf("there is no %s", want)
				}
			}
			again, err := rlx.OpenReader("export", bytes.NewReader(b.Bytes()), int64(b.Len()))
			if err != nil {
				t.Fatal(err)
			}
			want, got := runRef(t, g, c.feed), runRef(t, again.Graph(), c.feed)
			for name, w := range want {
				if y := got[name]; y == nil || !slices.Equal(y.Shape(), w.Shape()) || !bytes.Equal(y.Bytes(), w.Bytes()) {
					t.Errorf("%s is %v, expected %v", name, y, w)
				}
			}
			if err := keepGraph(c.name, b.Bytes(), c.feed, want); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// eachName wants every value of a model to have a name of its own.
func eachName(t *testing.T, g *onnx.GraphProto, names, ops map[string]bool) {
	t.Helper()
	meet := func(name string) {
		if names[name] {
			t.Errorf("two values are called %q", name)
		}
		names[name] = true
	}
	for _, v := range g.Inputs {
		meet(v.Name)
	}
	for _, v := range g.Initializers {
		meet(v.Name)
	}
	for _, n := range g.Nodes {
		ops[n.OpType] = true
		for _, name := range n.Output {
			meet(name)
		}
		for _, a := range n.Attribute {
			if a.G != nil {
				eachName(t, a.G, names, ops)
			}
		}
	}
}

func runRef(t *testing.T, g *ir.Graph, feed rlx.Feed) rlx.Feed {
	t.Helper()
	p, err := rlx.Compile(t.Context(), g, rlx.On("ref"))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	out, err := p.Run(t.Context(), feed)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// keepGraph writes an export with what it is run on and what it gives.
func keepGraph(name string, model []byte, feed, want rlx.Feed) error {
	folder := strings.ReplaceAll(name, " ", "_")
	if err := keep(model, "graph", folder, "model.onnx"); err != nil {
		return err
	}
	data, err := json.Marshal(map[string]map[string]storedTensor{"feed": stored(feed), "want": stored(want)})
	if err != nil {
		return err
	}
	return keep(data, "graph", folder, "run.json")
}

// TestExportControlFolds writes no If whose predicate is known, and constants of a condition once.
func TestExportControlFolds(t *testing.T) {
	g := ir.NewGraph("g")
	x := g.Input("x", ir.F32, ir.Dims(100))
	big := make([]float32, 100)
	big[99] = 3
	same := func(_ *ir.Graph, in []ir.Value) []ir.Value { return list(op.Exp(in[0])) }
	other := func(_ *ir.Graph, in []ir.Value) []ir.Value { return list(op.MatMul(in[0], in[0])) }
	y := op.If(g.Constant(ir.Scalar(true)), list(x), same, other)[0]
	z := op.While(list(y), nil,
		func(g *ir.Graph, c, _ []ir.Value) ir.Value {
			return op.Lt(op.Sum(op.Mul(c[0], g.Constant(rlx.New(big, 100)))), 9)
		},
		func(_ *ir.Graph, c, _ []ir.Value) []ir.Value { return list(op.Mul(c[0], 2)) }, op.WhileOptions{})[0]
	g.Output("z", z)
	var b bytes.Buffer
	if err := onnx.Export(g, &b); err != nil {
		t.Fatal(err)
	}
	m, err := onnx.Decode(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	names, ops := map[string]bool{}, map[string]bool{}
	eachName(t, &m.Graph, names, ops)
	if ops["If"] || !ops["Exp"] || !ops["Loop"] {
		t.Errorf("operators are %v, expected Exp and Loop and no If", ops)
	}
	large := 0
	for _, w := range m.Graph.Initializers {
		if len(w.Dims) == 1 && w.Dims[0] == 100 {
			large++
		}
	}
	if large != 1 {
		t.Errorf("the constant of 100 elements is there %d times, expected once", large)
	}
	if got := onnx.WeightBytes(g); got < 400 {
		t.Errorf("weights take %d bytes, expected the 400 of the condition among them", got)
	}
}

// TestExportControlRefuses names a node of a branch that has no ONNX form.
func TestExportControlRefuses(t *testing.T) {
	g := ir.NewGraph("g")
	x := g.Input("x", ir.F64, ir.Dims(2))
	pred := g.Input("p", ir.Bool, nil)
	g.Output("y", op.If(pred, list(x),
		func(_ *ir.Graph, in []ir.Value) []ir.Value { return list(op.Fma(in[0], in[0], in[0]).Named("fused")) },
		func(_ *ir.Graph, in []ir.Value) []ir.Value { return in })[0])
	var u *onnx.UnsupportedError
	if err := onnx.Export(g, &bytes.Buffer{}); !errors.As(err, &u) || len(u.Items) != 1 || u.Items[0].Op != "If" {
		t.Fatalf("got %v, expected the If to be refused", err)
	}
	for _, want := range []string{"then_branch", "Fma", "fused"} {
		if !strings.Contains(u.Items[0].Reason, want) {
			t.Errorf("the reason %q does not name %s", u.Items[0].Reason, want)
		}
	}
}
