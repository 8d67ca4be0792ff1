package ir_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	. "github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// textGraph has every kind of thing that the text form writes.
func textGraph() *Graph {
	g := NewGraph("a \"graph\" {\n}")
	n := Sym("n")
	x := g.Input("x", F32, []Dim{n, D(8)})
	s := g.Input("sizes", I64, Dims(2))
	w := g.Param("w/kernel:0", New(make([]float32, 16), 8, 2))
	u := g.DeclareParam(ParamAttrs{Name: "frozen", Dtype: BF16, Shape: Dims(0, 3)})
	nan := g.Constant(New([]float64{math.NaN(), math.Inf(-1), math.Copysign(0, -1)}, 3, 1))
	empty := g.Constant(New([]int64{}, 0, math.MaxInt)).Named("empty one")
	scalar := g.Constant(Scalar(true))
	y := op.MatMul(x, w).Named("100% odd: \"name\", ünïcode\t(#1) = {}\xff")
	values, index := op.TopK(y, 2, -1, true)
	v := op.Conv2d(op.Reshape(op.Exp(x), D(1), D(1), n, D(8)).Named("none"), g.Constant(New(make([]float32, 9), 1, 1, 3, 3)), Value{}, op.ConvAttrs{Stride: []int64{2, 1}}).Named("%x")
	dims, err := s.InputDims()
	if err != nil {
		g.Fail("InputDims", err)
	}
	long := op.Reshape(op.Concat(0, x, op.Add(x, 2.5)), dims...).Named("_.Az09")
	g.Output("values", values)
	g.Output("an \"output\" = %x", index)
	g.Output("", v) // refused, like any empty name
	for i, o := range []Value{v, long, nan, empty, scalar, u, x, x, op.Clamp(x, math.Inf(-1), 1e-300), op.LeakyRelu(x, math.NaN())} {
		g.Output(fmt.Sprint(i), o)
	}
	return g
}

func TestTextRoundTrip(t *testing.T) {
	g := textGraph()
	wantError(t, g.Err(), "an output without a name")
	text := g.String()
	back, err := ParseGraph(strings.NewReader(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if again := back.String(); again != text {
		t.Errorf("got\n%s\nexpected\n%s", again, text)
	}
	if err := back.Verify(); err != nil {
		t.Error(err)
	}
	if back.Name != g.Name || len(back.Inputs) != 2 || len(back.Nodes) != len(g.Nodes) || len(back.Outputs) != 12 {
		t.Errorf("%d nodes, %d inputs, %d outputs", len(back.Nodes), len(back.Inputs), len(back.Outputs))
	}
	for i, n := range g.Nodes {
		m := back.Nodes[i]
		if m.Name != n.Name || m.Row != n.Row || m.AttrText() != n.AttrText() || len(m.In) != len(n.In) {
			t.Errorf("node %s reads back as %s", n, m)
		}
		if c, ok := n.Out(0).Const(); ok {
			if d, _ := m.Out(0).Const(); string(d.Bytes()) != string(c.Bytes()) || d.String() != c.String() {
				t.Errorf("constant %s reads back as %s", c, d)
			}
		}
	}
}

func TestTextForm(t *testing.T) {
	g := NewGraph("g")
	x := g.Input("x", F32, []Dim{Sym("n"), D(3)})
	values, index := op.TopK(x, 2, -1, true)
	g.Output("v", op.Neg(values).Named("odd name"))
	g.Output("i", index)
	want := `graph "g" {
  %x = Input() {name="x", dtype=f32, shape=[n, 3]} : f32[n, 3]
  %topk_1 = TopK(%x) {k=2} : f32[n, 2], i64[n, 2]
  %"odd name" = Activation(%topk_1) {fn=neg} : f32[n, 2]
  output "v" = %"odd name"
  output "i" = %topk_1#1
}
`
	if got := g.String(); got != want {
		t.Errorf("got\n%s\nexpected\n%s", got, want)
	}
}

func TestParseGraphErrors(t *testing.T) {
	const head, x = "graph \"g\" {\n", "  %x = Input() {name=\"x\", dtype=f32, shape=[2]} : f32[2]\n"
	for text, want := range map[string]string{
		"":                                 "truncated",
		"graph g {":                        `line 1: expected graph "name" {`,
		head:                               "truncated",
		head + "}\n}":                      "line 3: unexpected text after }",
		head + "nonsense\n}":               "line 2: expected %name",
		head + "%x Input()":                "expected %name = Kind(operands)",
		head + "%x = Input(":               "expected %name = Kind(operands)",
		head + "%x = Nope() : f32[]":       `unknown op "Nope"`,
		head + "%x = Input()":              "Input: expected : types",
		head + "%x = Input() {name=\"x\"":  "Input: attributes: missing }",
		head + "%x = Input() {name} : f32": "expected name=value",
		head + "%x = Input() {name=\"x\", name=\"y\"} : f32[2]":                     "attribute name is given twice",
		head + "%x = Input() {name=\"x\", dtype=f32, size=[2]} : f32[2]":            "Input: shape: required attribute is missing",
		head + "%x = Input() {name=\"x\", dtype=f32, shape=[2], size=[2]} : f32[2]": "Input: size: unknown attribute",
		head + "%x = Input() {name=\"x\", dtype=f32, shape=[2]} : f32[3]":           "inferred types",
		head + "%x = Input() {name=\"x\", dtype=f32, shape=[2]} : f32[2], f32[2]":   "inferred types",
		head + "%x = Input() {name=\"x\", dtype=f32, shape=[2]} : f33[2]":           "unknown dtype",
		head + "%x = Input() {name=\"x\", dtype=f32, shape=[2]} : f32[2":            "expected dtype[dims]",
		head + x + x: "value %x is defined twice",
		head + x + "%y = Input() {name=\"x\", dtype=f32, shape=[2]} : f32[2]":         "Input: C1",
		head + x + "%y = Activation(%z) {fn=neg} : f32[2]":                            "line 3: value %z is undefined",
		head + x + "%y = Activation(%x#1) {fn=neg} : f32[2]":                          "has 1 results, asked for 1",
		head + x + "%y = Activation(%x#-1) {fn=neg} : f32[2]":                         "asked for -1",
		head + x + "%y = Activation(%x y) {fn=neg} : f32[2]":                          "unexpected  y",
		head + x + "%y = Activation(x) {fn=neg} : f32[2]":                             "expected %name",
		head + x + "%y = Activation(%x, %x) {fn=neg} : f32[2]":                        "got 2 operands",
		head + x + "%y = Activation(none) {fn=neg} : f32[2]":                          "operand x is missing",
		head + x + "%y = Activation(%x) {fn=nog} : f32[2]":                            "Activation",
		head + x + "output y = %x":                                                    "expected a quoted name",
		head + x + "output \"y\" %x":                                                  "expected =",
		head + x + "output \"y\" = %x\noutput \"y\" = %x":                             "line 4: Output: output \"y\" is named twice",
		head + x + "output \"y\" = none":                                              "has no value",
		head + "%c = Constant() {value=f32[4611686018427387904]:} : f32[1]":           "Constant",
		head + "%c = Constant() {value=f32[2]:AAAA} : f32[2]":                         "got 3 bytes, expected 8",
		head + "%c = Constant() : f32[2]":                                             "value: required attribute is missing",
		head + "%w = Param() {name=\"w\", dtype=f32, shape=[n], trainable=1}: f32[n]": "",
	} {
		g, err := ParseGraph(strings.NewReader(text))
		if err == nil {
			t.Errorf("%q reads as\n%s", text, g)
			continue
		}
		wantError(t, err, want)
	}
	// Comments, blank lines and space at the ends are skipped.
	g, err := ParseGraph(strings.NewReader("\n// a comment\n" + head + "\n\t" + x + "// more\noutput \"y\" = %x  \n}\n\n"))
	if err != nil || g.Verify() != nil {
		t.Error(err)
	}
}

func FuzzParseGraph(f *testing.F) {
	f.Add(textGraph().String())
	f.Add("graph \"g\" {\n%x = Input() {name=\"x\", dtype=f32, shape=[2*n + 1]} : f32[2*n + 1]\n%y = Softmax(%x) {axis=0} : f32[2*n + 1]\noutput \"y\" = %y\n}\n")
	f.Fuzz(func(t *testing.T, text string) {
		g, err := ParseGraph(strings.NewReader(text))
		if err != nil {
			return
		}
		if len(g.Outputs) > 0 {
			if err := g.Verify(); err != nil {
				t.Fatalf("%v\n%s", err, g)
			}
		}
		back, err := ParseGraph(strings.NewReader(g.String()))
		if err != nil || back.String() != g.String() {
			t.Fatalf("%v\n%s", err, g)
		}
	})
}
