package rlx_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// int8Product is x times i8 weights with a scale, and where zeros is set a zero point, per column. The weights of linear layers lie transposed, and may have
// a scale for each block along the contracted axis. Codes of u8 are those plus 128.
func int8Product(r *rand.Rand, k, n int, zeros bool, linear bool, block int, unsigned bool) *rlx.Graph {
	codes, scale, zero := make([]int8, k*n), make([]float32, n), make([]float32, n)
	for i := range codes {
		codes[i] = int8(r.IntN(256) - 128)
	}
	for i := range scale {
		scale[i], zero[i] = r.Float32()*0.02, float32(r.IntN(256)-128)
	}
	g := rlx.NewGraph("int8")
	x := g.Input("x", rlx.F32, rlx.Shape("m", k))
	if linear {
		axis, q := int64(0), g.Param("w", rlx.New(codes, n, k))
		a := op.DequantizeAttrs{Axis: &axis}
		s := g.Param("scale", rlx.New(scale, n))
		if block > 0 {
			axis, a.BlockSize = 1, int64(block)
			blocks := (k + block - 1) / block
			scale = make([]float32, n*blocks)
			for i := range scale {
				scale[i] = r.Float32() * 0.02
			}
			s = g.Param("scales", rlx.New(scale, n, blocks))
		}
		g.Output("y", op.MatMul(x, op.Transpose(op.Dequantize(q, s, rlx.Value{}, a), 1, 0)))
		return g
	}
	w := g.Param("w", rlx.New(codes, k, n))
	if unsigned {
		bytes := make([]uint8, k*n)
		for i, q := range codes {
			bytes[i] = uint8(q) ^ 128
		}
		w = g.Param("u", rlx.New(bytes, k, n))
	}
	w = op.Cast(w, rlx.F32)
	if zeros {
		w = op.Sub(w, g.Param("zero", rlx.New(zero, 1, n)))
	}
	g.Output("y", op.MatMul(x, op.Mul(w, g.Param("scale", rlx.New(scale, 1, n)))))
	return g
}

// TestInt8Bits wants products with int8 weights to have the bits of products with the floats that they stand for, under every instruction set,
// each in a process of its own: whole panels and parts of one, one depth and several, few rows and many.
func TestInt8Bits(t *testing.T) {
	if os.Getenv("RLX_TEST_INT8") != "" {
		int8Bits(t)
		return
	}
	if !slices.Contains(backends(), "cpu") {
		t.Skip("cpu: not compiled in (CGO_ENABLED=0)")
	}
	onEveryISA(t, "RLX_TEST_INT8", func(*testing.T, []byte) {})
}

func int8Bits(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, s := range []struct {
		k, n  int
		zeros bool

		linear   bool
		block    int
		unsigned bool
	}{{k: 1, n: 1}, {k: 37, n: 40, zeros: true}, {k: 128, n: 64}, {k: 300, n: 96}, {k: 300, n: 77, zeros: true}, {k: 300, n: 77, linear: true}, {k: 500, n: 70, unsigned: true}, {k: 65, n: 96, zeros: true, unsigned: true},
		{k: 256, n: 40, linear: true, block: 32}} {
		g := int8Product(r, s.k, s.n, s.zeros, s.linear, s.block, s.unsigned)
		codes, floats := compileGraph(t, g, rlx.On("cpu")), compileGraph(t, g, rlx.On("cpu"), rlx.WithoutPasses("int8"))
		if !strings.Contains(codes.Graph().String(), "DequantMatMul") {
			t.Fatalf("no DequantMatMul\n%s", codes.Graph())
		}
		if n := len(codes.Graph().Nodes); n > 6 || strings.Contains(codes.Graph().String(), "Transpose") {
			t.Errorf("%d nodes, expected x, codes, scales, zeros, product and at most a view\n%s", n, codes.Graph())
		}
		for _, m := range []int{1, 5, 40} {
			x := make([]float32, m*s.k)
			for i := range x {
				x[i] = float32(r.NormFloat64())
			}
			feed := rlx.Feed{"x": rlx.New(x, m, s.k)}
			got, err := codes.Run(t.Context(), feed)
			if err != nil {
				t.Fatal(err)
			}
			want, err := floats.Run(t.Context(), feed)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got["y"].Bytes(), want["y"].Bytes()) {
				t.Errorf("%d x %d x %d, zeros %v: got %s, expected %s", m, s.k, s.n, s.zeros, got["y"], want["y"])
			}
		}
	}
}

// TestAttentionsOfModels counts the attentions of two exporters' models, and wants MiniLM's weights as int8.
func TestAttentionsOfModels(t *testing.T) {
	for _, tc := range []struct {
		model             string
		attentions, codes int
	}{{minilm, 6, 36}, {"rapidocr-onnxruntime/ch_PP-OCRv4_rec_infer.onnx", 2, 0}} {
		p := compile(t, open(t, tc.model), rlx.Prefer("cpu", "ref"))
		count := map[string]int{}
		for _, n := range p.Graph().Nodes {
			count[n.Row.Name]++
		}
		if count["Attention"] != tc.attentions || count["DequantMatMul"]+count["DequantMatMulRegion"] != tc.codes {
			t.Errorf("%s: %d Attention and %d DequantMatMul, expected %d and %d", tc.model, count["Attention"], count["DequantMatMul"], tc.attentions, tc.codes)
		}
	}
}
