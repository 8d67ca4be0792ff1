package workload

import (
	"fmt"
	"math"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// networks are whole models with normal weights, spelled out as exporters of ONNX do: GELU by erf, attention by products, norms of
// convolutions as nodes of their own.
func networks() []Workload {
	l := []Workload{minilm(32), minilm(128)}
	flop := 2.0 * 2048 * 1000
	for _, block := range resnetBlocks() {
		for _, c := range block {
			flop += c.flop()
		}
	}
	flop += resnetStem.flop()
	return append(l,
		Workload{Name: "model.resnet50", Flop: flop, Bytes: 4 * 25_500_000, Unit: "f32", define: resnet50},
		Workload{Name: "model.mobilenetv2", Flop: 2 * 300_774_272, Bytes: 4 * 3_500_000, Unit: "f32", define: mobilenetv2})
}

// Sizes of the encoder.
const (
	hidden, heads, inner = 384, 12, 1536
	layers, vocabulary   = 6, 30522
)

// minilm is the text encoder of a sequence of s tokens.
func minilm(s int) Workload {
	n := float64(s)
	return Workload{
		Name: fmt.Sprintf("model.minilm.s%d", s), Flop: layers * (2*n*(4*hidden*hidden+2*hidden*inner) + 4*n*n*hidden), Bytes: 4 * 10_640_000, Unit: "f32",
		define: func(b *Builder) {
			ids, types := b.Integers("input_ids", 0, 30000, 1, s), b.Integers("token_type_ids", 0, 1, 1, s)
			mask := b.Integers("attention_mask", 1, 2, 1, s)
			x := op.Add(op.Gather(b.Param("words", 1, vocabulary, hidden), ids, 0), op.Gather(b.Param("types", 0.1, 2, hidden), types, 0))
			x = b.norm("embedding", op.Add(x, b.Param("positions", 0.1, 1, s, hidden)))
			bias := op.Mul(op.Sub(1, op.Cast(op.ReshapeInts(mask, 1, 1, 1, int64(s)), x.DType())), -3.4028235e38)
			for i := range layers {
				x = b.layer(fmt.Sprintf("layer%d.", i), x, bias, int64(s))
			}
			b.Output("y", x)
		},
	}
}

// norm is a LayerNorm whose scale and shift do nothing.
func (b *Builder) norm(name string, x rlx.Value) rlx.Value {
	return op.LayerNorm(x, b.Filled(name+".gamma", 1, hidden), b.Filled(name+".beta", 0, hidden), -1, 1e-12)
}

// linear is x w + bias, the bias zeros.
func (b *Builder) linear(name string, x rlx.Value, in, out int) rlx.Value {
	return op.Add(op.MatMul(x, b.Weight(name+".w", in, out)), b.Filled(name+".bias", 0, out))
}

// layer is attention and two products with GELU between them, each with its residual and norm.
func (b *Builder) layer(name string, x, bias rlx.Value, s int64) rlx.Value {
	const d = hidden / heads
	head := func(part string, perm ...int) rlx.Value {
		return op.Transpose(op.ReshapeInts(b.linear(name+part, x, hidden, hidden), 1, s, heads, d), perm...)
	}
	q, k, v := head("q", 0, 2, 1, 3), head("k", 0, 2, 3, 1), head("v", 0, 2, 1, 3)
	scores := op.Add(op.Div(op.MatMul(q, k), math.Sqrt(d)), bias)
	a := op.ReshapeInts(op.Transpose(op.MatMul(op.Softmax(scores, -1), v), 0, 2, 1, 3), 1, s, hidden)
	x = b.norm(name+"norm1", op.Add(b.linear(name+"out", a, hidden, hidden), x))
	f := b.linear(name+"up", x, hidden, inner)
	f = op.Mul(op.Mul(f, op.Add(op.Erf(op.Div(f, math.Sqrt2)), 1)), 0.5)
	return b.norm(name+"norm2", op.Add(b.linear(name+"down", f, inner, hidden), x))
}

// normed is a convolution and a batch norm that scales by gamma.
func (c convShape) normed(b *Builder, name string, x rlx.Value, gamma float64) rlx.Value {
	x = c.of(b, name+".w", x, math.Sqrt(2/c.terms()))
	return op.BatchNormInference(x, b.Filled(name+".gamma", gamma, c.k), b.Filled(name+".beta", 0, c.k), b.Filled(name+".mean", 0, c.k), b.Filled(name+".var", 1, c.k), 1, 1e-5)
}

// classifier is the mean of each channel and a product to 1000 classes.
func (b *Builder) classifier(x rlx.Value, channels int) {
	x = op.ReshapeInts(op.GlobalAvgPool(x), 1, int64(channels))
	b.Output("y", b.linear("classes", x, channels, 1000))
}

var resnetStem = convShape{3, 224, 64, 7, 2, 1}

// resnetBlocks are the convolutions of each block: three in a row, and one of the shortcut in the first block of a width.
func resnetBlocks() (blocks [][]convShape) {
	c, hw := 64, 56
	for i, count := range []int{3, 4, 6, 3} {
		width, stride := 64<<i, min(i+1, 2)
		for k := range count {
			s := 1
			if k == 0 {
				s = stride
			}
			block := []convShape{{c, hw, width, 1, 1, 1}, {width, hw, width, 3, s, 1}, {width, hw / s, 4 * width, 1, 1, 1}}
			if k == 0 {
				block = append(block, convShape{c, hw, 4 * width, 1, s, 1})
			}
			blocks = append(blocks, block)
			c, hw = 4*width, hw/s
		}
	}
	return blocks
}

func resnet50(b *Builder) {
	x := op.Relu(resnetStem.normed(b, "stem", b.Input("x", 1, 3, 224, 224), 1))
	x = op.MaxPool(x, op.PoolAttrs{KernelSize: []int64{3, 3}, Stride: []int64{2, 2}, Padding: []int64{1, 1}})
	for i, block := range resnetBlocks() {
		y, shortcut, name := x, x, fmt.Sprintf("block%d.", i)
		y = op.Relu(block[0].normed(b, name+"0", y, 1))
		y = op.Relu(block[1].normed(b, name+"1", y, 1))
		y = block[2].normed(b, name+"2", y, 0.5)
		if len(block) > 3 {
			shortcut = block[3].normed(b, name+"3", x, 1)
		}
		x = op.Relu(op.Add(y, shortcut))
	}
	b.classifier(x, 2048)
}

func mobilenetv2(b *Builder) {
	clipped := func(x rlx.Value) rlx.Value { return op.Clamp(x, 0, 6) }
	x := clipped(convShape{3, 224, 32, 3, 2, 1}.normed(b, "stem", b.Input("x", 1, 3, 224, 224), 1))
	c, hw, block := 32, 112, 0
	for _, g := range [][4]int{{1, 16, 1, 1}, {6, 24, 2, 2}, {6, 32, 3, 2}, {6, 64, 4, 2}, {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}} {
		for i := range g[2] {
			k, wide, s := g[1], c*g[0], 1
			if i == 0 {
				s = g[3]
			}
			y, name := x, fmt.Sprintf("block%d.", block)
			if g[0] > 1 {
				y = clipped(convShape{c, hw, wide, 1, 1, 1}.normed(b, name+"0", y, 1))
			}
			y = clipped(convShape{wide, hw, wide, 3, s, wide}.normed(b, name+"1", y, 1))
			hw = (hw-1)/s + 1
			y = convShape{wide, hw, k, 1, 1, 1}.normed(b, name+"2", y, 1)
			if s == 1 && c == k {
				y = op.Add(x, y)
			}
			x, c, block = y, k, block+1
		}
	}
	x = clipped(convShape{320, hw, 1280, 1, 1, 1}.normed(b, "head", x, 1))
	b.classifier(x, 1280)
}
