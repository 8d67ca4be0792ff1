package ref

import (
	"math"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

func init() {
	on("Attention", attention)
	on("Rope", rope)
	on("AxialRope2d", axialRope2d)
}

// headed is a tensor as [B, H, S, D] in a layout, with the step of each axis but the last.
type headed struct {
	b, h, s, d int
	sb, sh, ss int
}

func newHeaded(t tensor, layout op.HeadLayout, count int64) headed {
	x := t.dims
	switch layout {
	case "bshd":
		b, s, h, d := int(x[0]), int(x[1]), int(x[2]), int(x[3])
		return headed{b, h, s, d, s * h * d, d, h * d}
	case "bsd":
		b, s, h := int(x[0]), int(x[1]), int(count)
		d := int(x[2]) / h
		return headed{b, h, s, d, s * h * d, d, h * d}
	}
	b, h, s, d := int(x[0]), int(x[1]), int(x[2]), int(x[3])
	return headed{b, h, s, d, h * s * d, s * d, d}
}

func (t headed) at(b, h, s int) int { return b*t.sb + h*t.sh + s*t.ss }

// sdpa is one Attention.
type sdpa struct {
	a          *op.AttentionAttrs
	q, k, v, y headed
	scale      float64
	valid      []int // keys of each batch item
	mask       tensor
	maskAt     func(int) int
	bias       []float64 // of a float mask
}

func newSdpa(c *call) (*sdpa, error) {
	a := attrs[op.AttentionAttrs](c)
	s := &sdpa{a: a, q: newHeaded(c.in[0], a.Layout, a.NumHeads), k: newHeaded(c.in[1], a.Layout, a.KvHeads()), v: newHeaded(c.in[2], a.Layout, a.KvHeads()),
		y: newHeaded(c.out[0], a.Layout, a.NumHeads), scale: a.Scale}
	if s.scale == 0 {
		s.scale = 1 / math.Sqrt(float64(max(s.q.d, 1)))
	}
	for b := range s.q.b {
		n := int64(s.k.s)
		if c.has(4) {
			if n = c.in[4].int(b); n < 0 || n > int64(s.k.s) {
				return nil, broken("C5", "kv_len %d, expected in 0..%d", n, s.k.s)
			}
		}
		s.valid = append(s.valid, int(n))
	}
	if c.has(3) {
		s.mask = c.in[3]
		s.maskAt = s.mask.broadcast([]int64{int64(s.q.b), int64(s.q.h), int64(s.q.s), int64(s.k.s)})
		if s.mask.dtype != ir.Bool {
			s.bias = s.mask.floats()
		}
	}
	return s, nil
}

// keys is the range of keys [lo, hi) that kv_len and the positional mask leave to query i of batch item b.
func (s *sdpa) keys(b, i int) (lo, hi int) {
	n := s.valid[b]
	if s.a.Mask == "none" {
		return 0, n
	}
	at := i
	if s.a.Align == "bottom_right" {
		at += n - s.q.s
	}
	hi = min(max(at+1, 0), n)
	if s.a.Mask == "sliding_window" && int64(at) > *s.a.Window {
		lo = at - int(*s.a.Window)
	}
	return min(lo, hi), hi
}

// row fills p with the probabilities of keys [lo, hi), 0 where the mask drops one; false where no key is left.
func (s *sdpa) row(q, k, p []float64, b, h, i, lo, hi int) bool {
	top, keep := math.Inf(-1), make([]bool, hi-lo)
	first := ((b*s.q.h+h)*s.q.s + i) * s.k.s
	for j := lo; j < hi; j++ {
		m := first + j
		keep[j-lo] = s.maskAt == nil || s.bias != nil || s.mask.int(s.maskAt(m)) != 0
		if !keep[j-lo] {
			continue
		}
		dot := 0.0
		for d, v := range k[s.k.at(b, h/(s.q.h/s.k.h), j):][:s.k.d] {
			dot += q[d] * v
		}
		dot *= s.scale
		if c := s.a.Softcap; c > 0 {
			dot = c * math.Tanh(dot/c)
		}
		if s.bias != nil {
			dot += s.bias[s.maskAt(m)]
		}
		p[j-lo] = dot
		if dot > top || math.IsNaN(dot) {
			top = dot
		}
	}
	if math.IsInf(top, -1) {
		return false
	}
	sum := 0.0
	for j := range keep {
		if !keep[j] {
			p[j] = 0
			continue
		}
		p[j] = math.Exp(p[j] - top)
		sum += p[j]
	}
	for j := range keep {
		p[j] /= sum
	}
	return true
}

// attention: see op.Attention. Keys that a mask drops are not read.
func attention(c *call) error {
	s, err := newSdpa(c)
	if err != nil {
		return err
	}
	q, k, v := c.in[0].floats(), c.in[1].floats(), c.in[2].floats()
	p, sum := make([]float64, s.k.s), make([]float64, s.v.d)
	for b := range s.q.b {
		for h := range s.q.h {
			for i := range s.q.s {
				if c.stopped() {
					return errCancelled
				}
				lo, hi := s.keys(b, i)
				clear(sum)
				if s.row(q[s.q.at(b, h, i):], k, p, b, h, i, lo, hi) {
					for j := lo; j < hi; j++ {
						for d, f := range v[s.v.at(b, h/(s.q.h/s.k.h), j):][:s.v.d] {
							sum[d] += p[j-lo] * f
						}
					}
				}
				for d, f := range sum {
					c.out[0].set(s.y.at(b, h, i)+d, f)
				}
			}
		}
	}
	return nil
}

// rope: see op.Rope.
func rope(c *call) error {
	a := attrs[op.RopeAttrs](c)
	x := newHeaded(c.in[0], a.Layout, a.NumHeads)
	cos, sin := c.in[1].floats(), c.in[2].floats()
	dims := c.in[1].dims
	width := int(dims[len(dims)-1])
	rows := make([]int, x.s) // of the table, for each token; those of all batch items where they differ
	if len(dims) == 3 {
		rows = make([]int, dims[0]*dims[1])
	} else if c.has(3) {
		rows = make([]int, c.in[3].len())
	}
	for i := range rows {
		if rows[i] = i; len(dims) == 3 {
			continue
		}
		if c.has(3) {
			rows[i] = int(c.in[3].int(i))
		}
		if rows[i] < 0 || int64(rows[i]) >= dims[0] {
			return broken("C5", "position %d, expected in 0..%d", rows[i], dims[0]-1)
		}
	}
	rot := x.d
	if a.RotaryDim != 0 {
		rot = int(a.RotaryDim)
	}
	return rotate(c, x, rot, a.Interleaved, func(b, s, i int) (float64, float64) {
		k := rows[(b*x.s+s)%len(rows)]*width + i
		return cos[k], sin[k]
	})
}

// axialRope2d: see op.AxialRope2d. The table is rounded to f32.
func axialRope2d(c *call) error {
	a := attrs[op.AxialRope2dAttrs](c)
	x := newHeaded(c.in[0], a.Layout, a.NumHeads)
	return rotate(c, x, x.d, true, func(_, s, i int) (float64, float64) {
		sin, cos := math.Sincos(op.AxialAngle(a, int64(s)%(a.GridWidth*a.GridHeight), int64(i), int64(x.d)))
		return float64(float32(cos)), float64(float32(sin))
	})
}

// rotate turns the pairs of the first rot elements of every head by angles whose cos and sin are given by batch item, token and pair.
func rotate(c *call, x headed, rot int, interleaved bool, angle func(b, s, i int) (cos, sin float64)) error {
	in, y := c.in[0].floats(), c.out[0]
	copy(y.data, c.in[0].data)
	for b := range x.b {
		for s := range x.s {
			if c.stopped() {
				return errCancelled
			}
			for i := range rot / 2 {
				cos, sin := angle(b, s, i)
				for h := range x.h {
					p, q := x.at(b, h, s)+i, x.at(b, h, s)+i+rot/2
					if interleaved {
						p, q = x.at(b, h, s)+2*i, x.at(b, h, s)+2*i+1
					}
					y.set(p, in[p]*cos-in[q]*sin)
					y.set(q, in[q]*cos+in[p]*sin)
				}
			}
		}
	}
	return nil
}
