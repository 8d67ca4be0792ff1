package conform

import (
	"fmt"
	"math"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

func init() {
	generate(activation, "Activation")
	generate(activationBackward, "ActivationBackward")
	generate(binary, "Binary")
	generate(cast, "Cast")
	generate(clamp, "Clamp")
	generate(roundToFormat, "RoundToFormat")
	generate(doubleSingle, "DoubleSingle")
	generate(spline, "SplineActivation", "SplineActivationBackwardX", "SplineActivationBackwardCoeff")
}

// tuples are shapes for n operands that broadcast.
func tuples(n int) [][][]int64 {
	var list [][][]int64
	add := func(shapes ...[]int64) {
		t := make([][]int64, n)
		for i := range t {
			t[i] = shapes[i%len(shapes)]
		}
		list = append(list, t)
	}
	for _, w := range widths {
		add(dims(w))
		if n > 1 {
			add(dims(2, w), dims(w))
			add(dims(3, 1), dims(1, w))
		}
	}
	add(dims())
	add(dims(0))
	add(dims(3, 0, 2))
	add(dims(5, 13, 3))
	add(dims(1, 2, 1, 3, 1, 2, 1, 3))
	if n > 1 {
		add(dims(), dims(17))
		add(dims(33), dims())
		add(dims(2, 3, 9), dims(3, 1))
		add(dims(0, 4), dims(1))
		add(dims(4, 1, 1, 5), dims(1, 3, 2, 1))
		add(dims(2, 1, 2, 1, 2, 1, 2, 1), dims(1, 3, 1, 2, 1, 1, 1, 3))
	}
	return list
}

// elementwise fits every row whose operands broadcast: operands declared with one set of dtypes have one dtype, another set runs over
// all its own.
func elementwise(m *maker) { elementwiseOf(m, nil, nil) }

// elementwiseOf gives each case attributes a and calls touch, if not nil, on it.
func elementwiseOf(m *maker, a attrs, touch func(c *rowCase)) {
	other := []ir.DType{m.dtype}
	for _, o := range m.row.In {
		if o.DTypes != m.row.In[0].DTypes {
			other = o.DTypes.List()
		}
	}
	list := tuples(len(m.row.In))
	if m.large {
		list = append(list, [][]int64{dims(3, 4099), dims(4099), dims(3, 1)})
	}
	for _, d := range other {
		shapes := part(m, 3, max(3, 3*len(list)/(2+len(other))), list)
		if m.large {
			shapes = append(shapes[:len(shapes):len(shapes)], list[len(list)-1])
		}
		for k, t := range shapes {
			in := make([]*ir.Tensor, len(m.row.In))
			for i, o := range m.row.In {
				dt := d
				if o.DTypes == m.row.In[0].DTypes {
					dt = m.dtype
				}
				if in[i] = m.rng.wide(dt, t[i%len(t)]); k%3 == 1 {
					in[i] = m.rng.plain(dt, t[i%len(t)])
				}
			}
			c := m.add(a, in...)
			c.optional = len(in) > 1 && fmt.Sprint(in[0].Shape()) != fmt.Sprint(in[1].Shape())
			if touch != nil {
				touch(c)
			}
		}
		m.turn++
	}
}

// bound is the tolerance of the native kernels of a scalar function. Functions made of others may give 0 for results below 1e-30.
func bound(s *op.Scalar) *ir.Tolerance {
	t := &ir.Tolerance{Ulp: s.ULP, Abs: s.AbsErr}
	if !s.Primitive && s.ULP > 0 {
		t.Abs += 1e-30
	}
	return t
}

func activation(m *maker) {
	s, _ := op.Unary(m.enums["fn"])
	a := attrs{}
	if s.UsesAlpha() { // values that f32 holds: the bounds are those of the function with its parameters as they are
		a["alpha"], a["beta"] = float64(float32(s.Alpha)), float64(float32(s.Beta))
	}
	elementwiseOf(m, a, func(c *rowCase) { c.tight = bound(s) })
	if s.UsesAlpha() && ir.Float.Has(m.dtype) {
		m.add(attrs{"alpha": 0.25, "beta": 0.75}, m.rng.wide(m.dtype, dims(2, 19))).tight = bound(s)
		m.add(nil, m.rng.plain(m.dtype, dims(2, 19)))
	}
}

func activationBackward(m *maker) {
	for k, t := range some(m, 3, tuples(1)) {
		x := tame(m.rng.wide(m.dtype, t[0]))
		if k%3 == 1 {
			x = m.rng.plain(m.dtype, t[0])
		}
		m.add(nil, x, m.rng.plain(m.dtype, t[0]))
	}
	if m.large {
		m.add(nil, m.rng.plain(m.dtype, dims(3, 1409)), m.rng.plain(m.dtype, dims(3, 1409)))
	}
}

// tame takes away finite values at which a derivative may overflow although its product with dy does not.
func tame(x *ir.Tensor) *ir.Tensor {
	least, most := formats[x.DType()].normal*64, formats[x.DType()].max/64
	for i := range x.Len() {
		switch v := math.Abs(x.Float(i)); {
		case v > 80 && v < 1e3:
			put(x, i, math.Copysign(80, x.Float(i)))
		case v > 0 && v < least:
			put(x, i, math.Copysign(least, x.Float(i)))
		case v > most && !math.IsInf(v, 0):
			put(x, i, math.Copysign(most, x.Float(i)))
		}
	}
	return x
}

func binary(m *maker) {
	s, _ := op.Binary(m.enums["fn"])
	elementwiseOf(m, nil, func(c *rowCase) {
		if c.tight = bound(s); m.dtype == ir.C64 {
			c.tight = nil // bounds of single operations hold for real numbers
		}
	})
}

// cast goes from the maker's dtype to all others, with both ways to treat what is too large.
func cast(m *maker) {
	for _, to := range ir.DTypes() {
		for _, s := range part(m, 2, 4, []int64{1, 7, 8, 9, 16, 17, 33, 64, 65, 100, 300}) {
			c := m.add(attrs{"dtype": to, "saturate": s%2 == 0}, m.rng.wide(m.dtype, dims(s)))
			c.optional = m.dtype == ir.C64
		}
		m.add(attrs{"dtype": to}, m.rng.wide(m.dtype, dims(2, 0))).optional = m.dtype == ir.C64
		m.turn++
	}
	if m.large {
		m.add(attrs{"dtype": ir.BF16}, m.rng.wide(m.dtype, dims(3, 4099)))
	}
}

func clamp(m *maker) {
	bounds := []attrs{{"min": -2, "max": 3}, {"min": 0}, {"max": 1}, nil, {"min": 4, "max": 1}, {"min": "-inf", "max": 1e9}}
	if ir.Float.Has(m.dtype) {
		bounds = append(bounds, attrs{"min": -0.3, "max": 0.7})
	}
	for _, b := range bounds {
		for _, t := range some(m, 2, tuples(1)) {
			m.add(b, m.rng.wide(m.dtype, t[0]))
		}
		m.turn++
	}
	if m.large {
		m.add(attrs{"min": -1, "max": 2}, m.rng.wide(m.dtype, dims(3, 4099)))
	}
}

func roundToFormat(m *maker) {
	formats := []string{"f16", "bf16", "f8e4m3", "f8e5m2", "f6e2m3", "f6e3m2", "f4e2m1", "f5e2m2", "f12m6e5", "f8m0e7"}
	for _, f := range part(m, 4, 10, formats) {
		for k, t := range part(m, 2, 7, tuples(1)) {
			x := m.rng.wide(m.dtype, t[0])
			m.add(attrs{"format": f, "block_size": []int{32, 4, 7}[k%3]}, x)
		}
		m.turn++
	}
}

// pairs draws values hi + lo of which hi is the nearest f32.
func (r *random) pairs(lead []int64, positive bool) *ir.Tensor {
	t := zeros(ir.F32, append(dims(lead...), 2))
	for i := 0; i+1 < t.Len(); i += 2 {
		v := r.NormFloat64()
		if positive {
			v = math.Abs(v) + 0.1
		}
		hi := float64(float32(v))
		put(t, i, hi)
		put(t, i+1, v-hi)
	}
	return t
}

func doubleSingle(m *maker) {
	fn := m.enums["fn"]
	type call struct {
		a    attrs
		lead [][]int64
	}
	var calls []call
	switch fn {
	case "matmul":
		calls = []call{{nil, [][]int64{{3, 5}, {5, 4}}}, {nil, [][]int64{{2, 3, 9}, {9, 1}}}, {nil, [][]int64{{2, 0}, {0, 3}}}}
	case "sum", "max":
		calls = []call{{nil, [][]int64{{17}}}, {attrs{"axes": "[0]"}, [][]int64{{5, 9}}}, {attrs{"axes": "[-1]", "keep_dims": true}, [][]int64{{5, 33}}}}
	case "sqrt", "exp":
		calls = []call{{nil, [][]int64{{1}}}, {nil, [][]int64{{3, 17}}}, {nil, [][]int64{{0}}}}
	default:
		calls = []call{{nil, [][]int64{{7}, {7}}}, {nil, [][]int64{{3, 9}, {9}}}, {nil, [][]int64{{2, 1}, {1, 16}}}, {nil, [][]int64{{0}, {1}}}}
	}
	for _, c := range calls {
		var in []*ir.Tensor
		for _, l := range c.lead {
			in = append(in, m.rng.pairs(l, fn == "sqrt" || fn == "div" || fn == "sum" || fn == "matmul"))
		}
		x := m.add(c.a, in...)
		x.fixed, x.compare = true, comparePairs
	}
}

// comparePairs measures hi + lo: the row promises 2^-38 for its worst function.
func comparePairs(got, want []*ir.Tensor) error {
	g, w := got[0], want[0]
	if g == nil || !g.Type().Equal(w.Type()) {
		return fmt.Errorf("got %v, expected %s", g, w.Type())
	}
	for i := 0; i+1 < w.Len(); i += 2 {
		a, b := g.Float(i)+g.Float(i+1), w.Float(i)+w.Float(i+1)
		if !(math.Abs(a-b) <= 0x1p-38*math.Abs(b)) && !(math.IsNaN(a) && math.IsNaN(b)) && a != b {
			return fmt.Errorf("pair %d: got %v, expected %v", i/2, a, b)
		}
	}
	return nil
}

// splineSizes are the sums of absolute terms of SplineActivationBackwardX with n bumps per channel, h of them to a unit, from -1.5 on.
func splineSizes(in []*ir.Tensor, n int, h float64) []float64 {
	t := make([]float64, in[0].Len())
	for i := range t {
		channel := i % int(in[1].Shape()[0])
		for g := range n {
			u := (in[0].Float(i)+1.5)*h - float64(g)
			if e := math.Abs(u) * math.Exp(-u*u); e == e { // 0 at infinity
				t[i] += math.Abs(in[2].Float(i) * in[1].Float(channel*n+g) * 2 * h * e)
			}
		}
	}
	return t
}

func spline(m *maker) {
	for _, w := range some(m, 3, widths) {
		for _, lead := range [][]int64{{}, {3}, {2, 2}, {0}} {
			shape := append(dims(lead...), w)
			x, dy := m.rng.odd(m.dtype, shape), m.rng.plain(m.dtype, shape)
			if m.row.Has(ir.Reduction) { // a NaN would hide the whole channel
				x = m.rng.plain(m.dtype, shape)
			}
			n := int64(2 + (w+int64(len(lead)))%7)
			a := attrs{"num_basis": n, "grid_min": -1.5, "grid_max": 2}
			coeff := m.rng.plain(m.dtype, dims(w, n))
			switch m.row.Name {
			case "SplineActivation":
				m.add(a, x, coeff)
			case "SplineActivationBackwardX":
				h := float64(n-1) / 3.5
				m.add(a, x, coeff, dy).sizes = func(c *rowCase) []float64 { return splineSizes(c.in, int(n), h) }
			default:
				m.add(a, x, dy)
			}
		}
		m.turn++
	}
}
