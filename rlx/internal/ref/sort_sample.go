package ref

import (
	"math"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

func init() { on("Sample", sample) }

// sample: see op.Sample. Computed in f64.
func sample(c *call) error {
	a, x, ids := attrs[op.SampleAttrs](c), c.in[0], c.out[0]
	n := int(x.dims[x.rank()-1])
	temperature := func(int) float64 { return a.Temperature }
	if c.has(2) {
		t := c.in[2]
		for i, v := range t.floats() {
			if !(v >= 0) || math.IsInf(v, 0) {
				return broken("C2", "temperature %d is %g, expected a finite number >= 0", i, v)
			}
		}
		temperature = func(r int) float64 { return t.at(r % t.len()) }
	}
	s := c.stream(a.Seed, a.Key, 3)
	uniform := func(r int) float64 {
		k, p := s.draw(ir.F32, r)
		return math.Ldexp(k, -p)
	}
	if c.has(1) {
		uniform = c.in[1].at
		for i, v := range c.in[1].floats() {
			if !(v >= 0 && v < 1) {
				return broken("C3", "u %d is %g, expected in [0, 1)", i, v)
			}
		}
	}
	for r := range ids.len() {
		if c.stopped() {
			return errCancelled
		}
		row := tensor{true, x.dtype, []int64{int64(n)}, x.data[r*n*x.dtype.Size() : (r+1)*n*x.dtype.Size()]}
		first, err := firstGreatest(row, r)
		if err != nil {
			return err
		}
		if t := temperature(r); t > 0 {
			p := probabilities(row, row.at(first), t)
			keepTop(p, row, a)
			first = drawn(p, uniform(r))
		}
		ids.setInt(r, int64(first))
	}
	return nil
}

// firstGreatest is the place of the greatest element of row number r, the first of equal ones.
func firstGreatest(row tensor, r int) (int, error) {
	best, most := -1, math.Inf(-1)
	for i, v := range row.floats() {
		if math.IsNaN(v) || math.IsInf(v, 1) {
			return 0, broken("C1", "logits of row %d hold %g at %d, expected finite numbers or -inf", r, v, i)
		}
		if v > most {
			best, most = i, v
		}
	}
	if best < 0 {
		return 0, broken("C1", "logits of row %d hold nothing above -inf", r)
	}
	return best, nil
}

// probabilities are e^((x - most) / t), not scaled: the greatest is 1.
func probabilities(row tensor, most, t float64) []float64 {
	p := row.floats()
	for i, v := range p {
		p[i] = math.Exp((v - most) / t)
	}
	return p
}

// keepTop scales p to sum 1 after it takes out all but the first TopK ids, and again after all but the first whose sum reaches TopP.
func keepTop(p []float64, row tensor, a *op.SampleAttrs) {
	var order []int
	short := a.TopK > 0 && a.TopK < int64(len(p))
	if short || a.TopP < 1 {
		order = sorted(row, len(p), func(i int) int { return i }, true)
	}
	if short {
		for _, i := range order[a.TopK:] {
			p[i] = 0
		}
	}
	scale(p)
	if !(a.TopP < 1) {
		return
	}
	sum, cut := 0.0, false
	for k, i := range order {
		sum += p[i]
		if cut = cut || k > 0 && sum-p[i] >= a.TopP; cut {
			p[i] = 0
		}
	}
	scale(p)
}

func scale(p []float64) {
	sum := sumOfLanes(p)
	for i := range p {
		p[i] /= sum
	}
}

// sumOfLanes adds every eighth element, then the eight sums in pairs, then what is left of p: many equal terms lose less than one by one.
func sumOfLanes(p []float64) float64 {
	var lane [8]float64
	whole := len(p) &^ 7
	for i, v := range p[:whole] {
		lane[i&7] += v
	}
	sum := ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]))
	for _, v := range p[whole:] {
		sum += v
	}
	return sum
}

// drawn is the least i with p_0 + .. + p_i > u; if rounding leaves none, the last with p > 0.
func drawn(p []float64, u float64) int {
	sum, last := 0.0, 0
	for i, v := range p {
		if v == 0 {
			continue
		}
		if sum += v; sum > u {
			return i
		}
		last = i
	}
	return last
}
