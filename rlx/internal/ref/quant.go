package ref

import (
	"math"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

func init() {
	on("Quantize", quantize)
	on("Dequantize", dequantize)
	on("QMatMul", qMatMul)
	on("QConv2d", qConv2d)
}

// scaleAt returns which entry of the scale belongs to element i of a tensor of dims.
func scaleAt(dims []int64, axis *int64, block int64) func(i int) int {
	if axis == nil {
		return func(int) int { return 0 }
	}
	_, n, inner := around(dims, wrap(int(*axis), len(dims)))
	if block == 0 {
		return func(i int) int { return i / inner % n }
	}
	blocks := (n + int(min(block, int64(n))) - 1) / max(1, int(min(block, int64(n))))
	return func(i int) int {
		outer, k := i/(n*inner), i/inner%n
		return (outer*blocks+int(int64(k)/block))*inner + i%inner
	}
}

// zeroPoint is entry i of operand 2, 0 where it is absent.
func (c *call) zeroPoint(i int) int64 {
	if !c.has(2) {
		return 0
	}
	return c.in[2].int(i)
}

// quantize: see op.Quantize.
func quantize(c *call) error {
	a, x, s, y := attrs[op.QuantizeAttrs](c), c.in[0], c.in[1], c.out[0]
	at := scaleAt(x.dims, a.Axis, a.BlockSize)
	for i := range x.len() {
		k := at(i)
		y.setInt(i, saturated(float32(x.at(i))/float32(s.at(k)), c.zeroPoint(k), y.dtype))
	}
	return nil
}

// saturated is v rounded to even, NaN as 0, plus zero, clamped to the range of d.
func saturated(v float32, zero int64, d ir.DType) int64 {
	lo, hi := op.IntRange(d)
	r := math.RoundToEven(float64(v))
	if math.IsNaN(r) {
		r = 0
	}
	return int64(max(float64(lo), min(float64(hi), r+float64(zero))))
}

// dequantize: see op.Dequantize.
func dequantize(c *call) error {
	a, q, s, y := attrs[op.DequantizeAttrs](c), c.in[0], c.in[1], c.out[0]
	at := scaleAt(q.dims, a.Axis, a.BlockSize)
	for i := range q.len() {
		k := at(i)
		y.set(i, float64(float32(q.int(i)-c.zeroPoint(k))*float32(s.at(k))))
	}
	return nil
}

// qMatMul: see op.QMatMul.
func qMatMul(c *call) error {
	a := attrs[op.QMatMulAttrs](c)
	x, w := c.centred(0, a.XZeroPoint), c.centred(1, a.WZeroPoint)
	k, n := int(c.in[1].dims[0]), int(c.in[1].dims[1])
	row := make([]int64, n)
	for i := range c.out[0].len() / max(n, 1) {
		if i%64 == 0 && c.stopped() {
			return errCancelled
		}
		clear(row)
		for j, v := range x[i*k : (i+1)*k] {
			for l, u := range w[j*n : (j+1)*n] {
				row[l] += v * u
			}
		}
		for l, v := range row {
			c.requantize(a, i*n+l, l, v)
		}
	}
	return nil
}

// centred is all elements of operand i minus their zero point.
func (c *call) centred(i int, zero int64) []int64 {
	v := c.in[i].ints()
	for k := range v {
		v[k] -= zero
	}
	return v
}

// requantize writes result i, of a channel, out of its sum.
func (c *call) requantize(a *op.QMatMulAttrs, i, channel int, sum int64) {
	if c.has(2) {
		sum += c.in[2].int(channel)
	}
	acc := int32(sum) // modulo 2^32
	if a.Dtype == ir.I32 {
		c.out[0].setInt(i, int64(acc))
		return
	}
	m := float32(a.Multiplier)
	if c.has(3) {
		m = float32(c.in[3].at(channel))
	}
	c.out[0].setInt(i, saturated(float32(acc)*m, a.OutZeroPoint, a.Dtype))
}

// qConv2d: see op.QConv2d.
func qConv2d(c *call) error {
	a, x, w, y := attrs[op.QConv2dAttrs](c), c.in[0], c.in[1], c.out[0]
	win := windowOf(a.Stride, a.Dilation, a.Padding, a.AutoPad, x.dims[2:], w.dims[2:])
	in, weights, r := c.centred(0, a.XZeroPoint), c.centred(1, a.WZeroPoint), a.Requant()
	channels, outs, size, taps := int(x.dims[1]), int(y.dims[1]), volume(win.size), volume(win.kernel)
	perGroup := int(w.dims[1])
	sum := make([]int64, volume(win.out))
	for n := range int(x.dims[0]) {
		for o := range outs {
			if c.stopped() {
				return errCancelled
			}
			clear(sum)
			first := n*channels + o/(outs/int(a.Groups))*perGroup
			for ch := range perGroup {
				from := in[(first+ch)*size:][:size]
				for t, v := range weights[(o*perGroup+ch)*taps:][:taps] {
					win.each(t, func(p, at int) { sum[p] += v * from[at] })
				}
			}
			for p, v := range sum {
				c.requantize(r, (n*outs+o)*len(sum)+p, o, v)
			}
		}
	}
	return nil
}
