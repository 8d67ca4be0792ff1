package pass_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx/internal/pass"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// sizes of the attentions below.
const (
	aB, aH, aS, aD = 2, 4, 5, 6
)

// passed applies one pass for a target that has everything.
func passed(t *testing.T, g *ir.Graph, p pass.Pass) *ir.Graph {
	t.Helper()
	out, err := pass.Pipeline{Passes: []pass.Pass{p}, Support: everything(), Verify: true}.Run(g)
	if err != nil {
		t.Fatalf("%v\n%s", err, g)
	}
	return out
}

func countOf(g *ir.Graph, kind string) int {
	n := 0
	for _, x := range g.Nodes {
		if x.Row.Name == kind {
			n++
		}
	}
	return n
}

// randomFeed fills every input; special values are NaN, infinities and -0 at some places where f says so.
func randomFeed(g *ir.Graph, r *rand.Rand, special func(name string) []float64) map[string]*ir.Tensor {
	feed := map[string]*ir.Tensor{}
	for _, n := range g.Inputs {
		name, _ := n.InputName()
		shape, _ := ir.StaticShape(n.Types[0].Shape)
		t, _ := ir.Zeros(n.Types[0].DType, shape...)
		for i := range t.Len() {
			switch {
			case t.DType() == ir.Bool:
				t.Bytes()[i] = byte(r.IntN(2))
			case ir.Int.Has(t.DType()):
				ir.PutInt(t.DType(), t.Bytes(), i, int64(r.IntN(2)))
			default:
				ir.PutFloat(t.DType(), t.Bytes(), i, r.NormFloat64())
			}
		}
		if values := special(name); len(values) > 0 && t.Len() > 0 && ir.Float.Has(t.DType()) {
			for range 1 + t.Len()/40 {
				ir.PutFloat(t.DType(), t.Bytes(), r.IntN(t.Len()), values[r.IntN(len(values))])
			}
		}
		feed[name] = t
	}
	return feed
}

// sameNumbers wants equal NaNs and infinities, and finite numbers up to the rounding of inner steps.
func sameNumbers(t *testing.T, got, want []*ir.Tensor, g *ir.Graph) {
	t.Helper()
	for i := range want {
		for k := range want[i].Len() {
			a, b := got[i].Float(k), want[i].Float(k)
			if math.IsNaN(a) != math.IsNaN(b) || math.IsInf(a, 0) != math.IsInf(b, 0) || math.Abs(a-b) > 1e-5*(1+math.Abs(b)) {
				t.Fatalf("output %d, element %d: got %v, expected %v\n%s", i, k, a, b, g)
			}
		}
	}
}

// heads are the operands of an attention: inputs q, k, v.
func attentionInputs(g *ir.Graph) (q, k, v ir.Value) {
	in := func(name string) ir.Value { return g.Input(name, ir.F32, ir.Dims(aB, aH, aS, aD)) }
	return in("q"), in("k"), in("v")
}

func swapped(x ir.Value) ir.Value { return op.Transpose(x, 0, 1, 3, 2) }

// betweenReshapes is the transposition that exporters write as three nodes.
func betweenReshapes(k ir.Value) ir.Value {
	k = op.Transpose(op.ReshapeInts(k, -1, aS, aD), 0, 2, 1)
	return op.ReshapeInts(k, aB, aH, aD, aS)
}

func guarded(p ir.Value) ir.Value { return op.Where(op.IsNaN(p), 0.0, p) }

func fixedNumber(g *ir.Graph, x float64) ir.Value {
	return g.Param("n"+strings.ReplaceAll(ir.Scalar(float32(x)).String(), " ", ""), ir.Scalar(float32(x)))
}

// causalMask is 0 on and below the diagonal and fill above it.
func causalMask(fill float32) *ir.Tensor {
	m := make([]float32, aS*aS)
	for i := range m {
		if i%aS > i/aS {
			m[i] = fill
		}
	}
	return ir.New(m, aS, aS)
}

func causalBool() *ir.Tensor {
	m := make([]bool, aS*aS)
	for i := range m {
		m[i] = i%aS <= i/aS
	}
	return ir.New(m, aS, aS)
}

var inf = math.Inf(1)

// TestAttention finds the forms that exporters write, and wants results as the parts give them, NaN and infinities too.
func TestAttention(t *testing.T) {
	nonFinite := []float64{math.NaN(), inf, -inf, math.Copysign(0, -1)}
	for _, tc := range []struct {
		name  string
		build func(g *ir.Graph, q, k, v ir.Value) ir.Value
	}{
		{"factors on both sides, a guarded mask of -inf", func(g *ir.Graph, q, k, v ir.Value) ir.Value {
			mask := op.Where(g.Input("keep", ir.Bool, ir.Dims(aB, 1, aS, aS)), fixedNumber(g, 0), fixedNumber(g, -inf))
			s := op.MatMul(op.Mul(q, fixedNumber(g, 0.5)), op.Mul(betweenReshapes(k), 0.25))
			return op.MatMul(guarded(op.Softmax(op.Add(s, mask), -1)), v)
		}},
		{"a factor, no mask", func(g *ir.Graph, q, k, v ir.Value) ir.Value {
			return op.MatMul(op.Softmax(op.MatMul(op.Mul(q, 0.3), swapped(k)), 3), v)
		}},
		{"a division behind the product, a mask of the lowest number from integers", func(g *ir.Graph, q, k, v ir.Value) ir.Value {
			keep := op.Cast(g.Input("mask", ir.I64, ir.Dims(aB, 1, 1, aS)), ir.F32)
			mask := op.Mul(op.Sub(1, keep), -math.MaxFloat32)
			return op.MatMul(op.Softmax(op.Add(op.Div(op.MatMul(q, swapped(k)), math.Sqrt(aD)), mask), -1), v)
		}},
		{"a float mask of which nothing is known", func(g *ir.Graph, q, k, v ir.Value) ir.Value {
			mask := g.Input("mask", ir.F32, ir.Dims(aB, 1, aS, aS))
			return op.MatMul(op.Softmax(op.Add(mask, op.MatMul(q, swapped(k))), -1), v)
		}},
		{"an unguarded mask of -inf", func(g *ir.Graph, q, k, v ir.Value) ir.Value {
			mask := op.Where(g.Input("keep", ir.Bool, ir.Dims(aB, 1, 1, aS)), fixedNumber(g, 0), fixedNumber(g, -inf))
			return op.MatMul(op.Softmax(op.Add(op.MatMul(q, swapped(k)), mask), -1), v)
		}},
		{"a causal constant", func(g *ir.Graph, q, k, v ir.Value) ir.Value {
			return op.MatMul(op.Softmax(op.Add(op.MatMul(q, swapped(k)), g.Constant(causalMask(float32(-inf)))), -1), v)
		}},
		{"a causal choice", func(g *ir.Graph, q, k, v ir.Value) ir.Value {
			s := op.Where(g.Constant(causalBool()), op.MatMul(q, swapped(k)), -math.MaxFloat32)
			return op.MatMul(op.Softmax(s, -1), v)
		}},
		{"a guarded choice, the other way round", func(g *ir.Graph, q, k, v ir.Value) ir.Value {
			s := op.Where(g.Input("drop", ir.Bool, ir.Dims(aB, 1, aS, aS)), -inf, op.Mul(op.MatMul(q, swapped(k)), 0.5))
			return op.MatMul(guarded(op.Softmax(s, -1)), v)
		}},
		{"two additions", func(g *ir.Graph, q, k, v ir.Value) ir.Value {
			bias := g.Constant(causalMask(-3))
			s := op.Add(op.Add(op.MatMul(q, swapped(k)), bias), op.Where(g.Input("keep", ir.Bool, ir.Dims(aS, aS)), 0.0, g.Constant(ir.Scalar(float32(-8)))))
			return op.MatMul(op.Softmax(s, -1), v)
		}},
		{"three axes", func(g *ir.Graph, q, k, v ir.Value) ir.Value {
			q, k, v = op.ReshapeInts(q, aB*aH, aS, aD), op.ReshapeInts(k, aB*aH, aS, aD), op.ReshapeInts(v, aB*aH, aS, aD)
			return op.MatMul(op.Softmax(op.MatMul(q, op.Transpose(k, 0, 2, 1)), -1), v)
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := ir.NewGraph("g")
			q, k, v := attentionInputs(g)
			g.Output("y", tc.build(g, q, k, v))
			out := passed(t, g, pass.Attention)
			if n := countOf(out, "Attention"); n != 1 || countOf(out, "Softmax") != 0 {
				t.Fatalf("%d Attention, expected 1\n%s", n, out)
			}
			r := rand.New(rand.NewPCG(1, 2))
			for round := range 60 {
				feed := randomFeed(g, r, func(name string) []float64 {
					switch { // infinities in q and k are the documented corner
					case round == 0 || name == "k" && round%4 != 1 || name == "q" && round%4 != 2:
						return nil
					case name == "q" || name == "k":
						return []float64{math.NaN(), math.Copysign(0, -1)}
					case name == "mask" && round%3 == 0:
						return []float64{-inf, math.NaN()}
					}
					return nonFinite
				})
				if round%5 == 4 { // rows without keys
					for _, name := range []string{"mask", "keep", "drop"} {
						if m := feed[name]; m != nil {
							for i := range aS {
								blank(m, i, name)
							}
						}
					}
				}
				sameNumbers(t, evaluate(t, out, feed), evaluate(t, g, feed), out)
			}
		})
	}
}

// blank makes element i of a mask drop its key.
func blank(m *ir.Tensor, i int, name string) {
	switch {
	case m.DType() == ir.Bool:
		m.Bytes()[i] = map[bool]byte{true: 1}[name == "drop"]
	case m.DType() == ir.F32:
		ir.PutFloat(ir.F32, m.Bytes(), i, -inf)
	default:
		ir.PutInt(m.DType(), m.Bytes(), i, 0)
	}
}

// TestAttentionCorner is the one difference: products that are all -inf give 0 where the parts give NaN.
func TestAttentionCorner(t *testing.T) {
	g := ir.NewGraph("g")
	in := func(name string) ir.Value { return g.Input(name, ir.F32, ir.Dims(1, 1, 1, 1)) }
	q, k, v := in("q"), in("k"), in("v")
	g.Output("y", op.MatMul(op.Softmax(op.MatMul(q, swapped(k)), -1), v))
	out := passed(t, g, pass.Attention)
	one := func(x float32) *ir.Tensor { return ir.New([]float32{x}, 1, 1, 1, 1) }
	feed := map[string]*ir.Tensor{"q": one(1e30), "k": one(-1e30), "v": one(1)}
	if y := evaluate(t, g, feed)[0].Float(0); !math.IsNaN(y) {
		t.Errorf("the parts give %v, expected NaN", y)
	}
	feed["q"] = one(float32(inf))
	if y := evaluate(t, out, feed)[0].Float(0); y != 0 {
		t.Errorf("Attention gives %v, expected 0", y)
	}
}

// TestAttentionGroups finds kv heads that are repeated for the query heads, and reads them once.
func TestAttentionGroups(t *testing.T) {
	g := ir.NewGraph("g")
	q := g.Input("q", ir.F32, ir.Dims(aB, aH, aS, aD))
	repeat := func(name string) ir.Value {
		x := g.Input(name, ir.F32, ir.Dims(aB, 2, aS, aD))
		x = op.Expand(op.ReshapeInts(x, aB, 2, 1, aS, aD), ir.Dims(aB, 2, 2, aS, aD)...)
		return op.ReshapeInts(x, aB, aH, aS, aD)
	}
	k, v := repeat("k"), repeat("v")
	g.Output("y", op.MatMul(guarded(op.Softmax(op.MatMul(q, swapped(k)), -1)), v))
	out := passed(t, g, pass.Attention)
	for _, n := range out.Nodes {
		if n.Row.Name == "Attention" && !n.In[1].Dim(1).Is(2) {
			t.Errorf("k has %s heads, expected 2", n.In[1].Dim(1))
		}
	}
	if countOf(out, "Attention") != 1 {
		t.Fatalf("no Attention\n%s", out)
	}
	r := rand.New(rand.NewPCG(3, 4))
	for round := range 20 {
		feed := randomFeed(g, r, func(name string) []float64 {
			if round == 0 || name == "k" {
				return nil
			}
			return map[string][]float64{"v": {math.NaN(), inf}, "q": {math.NaN()}}[name]
		})
		sameNumbers(t, evaluate(t, out, feed), evaluate(t, g, feed), out)
	}
}

// TestAttentionNot breaks one condition at a time.
func TestAttentionNot(t *testing.T) {
	for _, tc := range []struct {
		name  string
		build func(g *ir.Graph, q, k, v ir.Value) ir.Value
	}{
		{"probabilities are read twice", func(g *ir.Graph, q, k, v ir.Value) ir.Value {
			p := op.Softmax(op.MatMul(q, swapped(k)), -1)
			g.Output("p", p)
			return op.MatMul(p, v)
		}},
		{"scores are read twice", func(g *ir.Graph, q, k, v ir.Value) ir.Value {
			s := op.MatMul(q, swapped(k))
			return op.Add(op.MatMul(op.Softmax(s, -1), v), op.Reduce(s, "sum", []int{-1}, true))
		}},
		{"the softmax of another axis", func(g *ir.Graph, q, k, v ir.Value) ir.Value {
			return op.MatMul(op.Softmax(op.MatMul(q, swapped(k)), 2), v)
		}},
		{"a factor of 0", func(g *ir.Graph, q, k, v ir.Value) ir.Value {
			return op.MatMul(op.Softmax(op.Mul(op.MatMul(q, swapped(k)), 0), -1), v)
		}},
		{"a mask that is scaled too", func(g *ir.Graph, q, k, v ir.Value) ir.Value {
			return op.MatMul(op.Softmax(op.Mul(op.Add(op.MatMul(q, swapped(k)), g.Input("mask", ir.F32, ir.Dims(aS, aS))), 0.5), -1), v)
		}},
		{"a mask that stretches the scores", func(g *ir.Graph, q, k, v ir.Value) ir.Value {
			s := op.Add(op.MatMul(op.Mul(q, 1), swapped(k)), g.Input("mask", ir.F32, ir.Dims(3, 1, 1, aS, aS)))
			return op.MatMul(op.Softmax(s, -1), v)
		}},
		{"a guard with another number", func(g *ir.Graph, q, k, v ir.Value) ir.Value {
			p := op.Softmax(op.MatMul(q, swapped(k)), -1)
			return op.MatMul(op.Where(op.IsNaN(p), 1.0, p), v)
		}},
		{"a choice with rows that may have no key", func(g *ir.Graph, q, k, v ir.Value) ir.Value {
			s := op.Where(g.Input("keep", ir.Bool, ir.Dims(aS, aS)), op.MatMul(q, swapped(k)), -inf)
			return op.MatMul(op.Softmax(s, -1), v)
		}},
		{"a choice of a number that scores may reach", func(g *ir.Graph, q, k, v ir.Value) ir.Value {
			s := op.Where(g.Constant(causalBool()), op.MatMul(q, swapped(k)), -1e4)
			return op.MatMul(op.Softmax(s, -1), v)
		}},
		{"f16", func(g *ir.Graph, q, k, v ir.Value) ir.Value {
			q, k, v = op.Cast(q, ir.F16), op.Cast(k, ir.F16), op.Cast(v, ir.F16)
			return op.MatMul(op.Softmax(op.MatMul(q, swapped(k)), -1), v)
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := ir.NewGraph("g")
			q, k, v := attentionInputs(g)
			g.Output("y", tc.build(g, q, k, v))
			if err := g.Err(); err != nil {
				t.Fatal(err)
			}
			if out := passed(t, g, pass.Attention); countOf(out, "Attention") != 0 {
				t.Errorf("became Attention\n%s", out)
			}
		})
	}
	g := ir.NewGraph("g")
	q, k, v := attentionInputs(g)
	g.Output("y", op.MatMul(op.Softmax(op.MatMul(q, swapped(k)), -1), v))
	out, err := pass.Pipeline{Passes: []pass.Pass{pass.Attention}, Support: pass.NewSupport("none", nil, nil)}.Run(g)
	if err != nil || countOf(out, "Attention") != 0 {
		t.Errorf("a target without Attention got one: %v", err)
	}
}

// TestAttentionLayout turns the heads of a result inside of its node, and with them operands that are turned already.
func TestAttentionLayout(t *testing.T) {
	for _, tc := range []struct {
		name   string
		perm   []int
		build  func(g *ir.Graph, q, k, v ir.Value) ir.Value
		turned bool
	}{
		{"a projection's", []int{0, 2, 1, 3}, nil, true},
		{"another permutation", []int{0, 1, 3, 2}, nil, false},
		{"read twice", []int{0, 2, 1, 3}, func(g *ir.Graph, q, k, v ir.Value) ir.Value {
			y := op.Attention(q, k, v, ir.Value{}, ir.Value{}, op.AttentionAttrs{Mask: "causal"})
			g.Output("other", y)
			return y
		}, false},
		{"of another layout", []int{0, 2, 1, 3}, func(g *ir.Graph, q, k, v ir.Value) ir.Value {
			return op.Attention(q, k, v, ir.Value{}, ir.Value{}, op.AttentionAttrs{Layout: "bshd"})
		}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := ir.NewGraph("g")
			q, k, v := attentionInputs(g)
			if tc.build == nil {
				tc.build = func(g *ir.Graph, q, k, v ir.Value) ir.Value {
					mask := g.Input("mask", ir.F32, ir.Dims(aB, 1, 1, aS))
					return op.Attention(op.Transpose(g.Input("tokens", ir.F32, ir.Dims(aB, aS, aH, aD)), 0, 2, 1, 3), k, v, mask, ir.Value{}, op.AttentionAttrs{Scale: 0.3})
				}
			}
			g.Output("y", op.Transpose(tc.build(g, q, k, v), tc.perm...))
			out := passed(t, g, pass.Attention)
			for _, n := range out.Nodes {
				if a, ok := n.Attrs.(*op.AttentionAttrs); ok && tc.turned {
					if _, input := n.In[0].Node().InputName(); a.Layout != "bshd" || !input || countOf(out, "Transpose") != 2 {
						t.Errorf("heads and tokens as before:\n%s", out)
					}
				}
			}
			if !tc.turned && out.String() != passed(t, g, pass.Pass{Name: "nothing"}).String() {
				t.Errorf("changed to\n%s", out)
			}
			feed := randomFeed(g, rand.New(rand.NewPCG(5, 6)), func(string) []float64 { return nil })
			sameNumbers(t, evaluate(t, out, feed), evaluate(t, g, feed), out)
		})
	}
	g := ir.NewGraph("g")
	q, k, v := attentionInputs(g)
	g.Output("y", op.Transpose(op.Attention(q, k, v, ir.Value{}, ir.Value{}, op.AttentionAttrs{}), 0, 2, 1, 3))
	out, err := pass.Pipeline{Passes: []pass.Pass{pass.Attention}, Support: pass.NewSupport("none", nil, nil)}.Run(g)
	if err != nil || countOf(out, "Transpose") != 1 {
		t.Errorf("a target that composes Attention got another layout: %v\n%s", err, out)
	}
}
