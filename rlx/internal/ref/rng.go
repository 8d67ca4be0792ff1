package ref

import (
	"math"
	wide "math/bits"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

func init() {
	on("RngUniform", rngUniform)
	on("RngNormal", rngNormal)
}

// philox is Philox4x32-10: ten rounds over a counter with a key.
func philox(c [4]uint32, k [2]uint32) [4]uint32 {
	for range 10 {
		h0, l0 := wide.Mul32(0xD2511F53, c[0])
		h1, l1 := wide.Mul32(0xCD9E8D57, c[2])
		c = [4]uint32{h1 ^ c[1] ^ k[0], l1, h0 ^ c[3] ^ k[1], l0}
		k[0] += 0x9E3779B9
		k[1] += 0xBB67AE85
	}
	return c
}

// stream is the words of one seed, key and step.
type stream struct {
	seed, key uint64
	step      uint32
}

func (s stream) word(w int) uint32 {
	block := philox([4]uint32{uint32(w / 4), s.step, uint32(s.key), uint32(s.key >> 32)}, [2]uint32{uint32(s.seed), uint32(s.seed >> 32)})
	return block[w%4]
}

// draw is number i of the stream: an integer k below 2^p and p, by the dtype.
func (s stream) draw(d ir.DType, i int) (k float64, p int) {
	switch d {
	case ir.F64:
		return float64((uint64(s.word(2*i+1))<<32 | uint64(s.word(2*i))) >> 11), 53
	case ir.F16:
		p = 11
	case ir.BF16:
		p = 8
	default:
		p = 24
	}
	return float64(s.word(i) >> (32 - p)), p
}

// stream is that of a node whose operand number step, if it is there, counts its draws.
func (c *call) stream(seed ir.Number, key uint64, step int) stream {
	s := stream{seed: op.SeedOr(seed, c.seed), key: key}
	if c.has(step) {
		s.step = uint32(c.in[step].int(0))
	}
	return s
}

// rngUniform: see op.RngUniform. f16 and bf16 round every step to f32, halved where the span leaves it; f32 computes in f64.
func rngUniform(c *call) error {
	a, y := attrs[op.RngUniformAttrs](c), c.out[0]
	s := c.stream(a.Seed, a.Key, 1)
	low, high := op.RoundTo(y.dtype, a.Low), op.RoundTo(y.dtype, a.High)
	below := op.FloatBelow(y.dtype, high)
	half := y.dtype == ir.F16 || y.dtype == ir.BF16
	up := 1.0
	if high-low > math.MaxFloat32 {
		up = 2
	}
	for i := range y.len() {
		if i%4096 == 0 && c.stopped() {
			return errCancelled
		}
		k, p := s.draw(y.dtype, i)
		u, span := math.Ldexp(k, -p), high-low
		v := low + float64(u*span)
		if half {
			v = float64(float32(low/up)+float32(float32(u)*float32(span/up))) * up
		}
		if v = op.RoundTo(y.dtype, v); v >= high {
			v = below
		}
		y.set(i, v)
	}
	return nil
}

// rngNormal: see op.RngNormal. Computed in f64; results of f16 and bf16 pass through f32.
func rngNormal(c *call) error {
	a, y := attrs[op.RngNormalAttrs](c), c.out[0]
	s := c.stream(a.Seed, a.Key, 1)
	d := ir.F32
	if y.dtype == ir.F64 {
		d = ir.F64
	}
	for i := range y.len() {
		if i%4096 == 0 && c.stopped() {
			return errCancelled
		}
		v := a.Mean
		if a.Scale != 0 {
			v += a.Scale * s.normal(d, i)
		}
		y.set(i, op.RoundTo(d, v))
	}
	return nil
}

// normal is element i of the standard normal numbers, of draws of dtype d.
func (s stream) normal(d ir.DType, i int) float64 {
	ka, p := s.draw(d, i&^1)
	kb, _ := s.draw(d, i|1)
	r := math.Sqrt(-2 * logOfDraw(ka+1, p))
	re, im := op.UnitRoot(int64(kb), 1<<p)
	if i%2 == 0 {
		return r * re
	}
	return r * im
}

// logOfDraw is ln(k 2^-p) for 1 <= k <= 2^p, without cancellation near 1.
func logOfDraw(k float64, p int) float64 {
	if one := math.Ldexp(1, p); 2*k > one {
		return math.Log1p(-math.Ldexp(one-k, -p))
	}
	return math.Log(math.Ldexp(k, -p))
}
