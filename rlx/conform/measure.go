package conform

import (
	"bytes"
	"fmt"
	"math"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// measure says how far a result may be from the expected one: |got - want| <= Abs + Ulp*eps*terms, where terms is |want| unless given.
// Results of f16 and bf16 are computed in f32 at least and rounded once, so they get the tolerance of f32 and one unit in the last
// place. Exact rows, integers, bools and codes must have equal bits; NaN equals NaN.
type measure struct {
	exact bool
	tol   ir.Tolerance
	terms []float64
	least float64 // of the terms
}

// format describes a float dtype: the distance of neighbours relative to 1, the smallest step, and the largest value.
type format struct{ eps, step, normal, max float64 }

var formats = map[ir.DType]format{
	ir.F16:  {0x1p-10, 0x1p-24, 0x1p-14, 65504},
	ir.BF16: {0x1p-7, 0x1p-133, 0x1p-126, 0x1.fep127},
	ir.F32:  {0x1p-23, 0x1p-149, 0x1p-126, math.MaxFloat32},
	ir.F64:  {0x1p-52, 0x1p-1074, 0x1p-1022, math.MaxFloat64},
}

func (m measure) compare(got, want *ir.Tensor) error {
	if got == nil {
		return fmt.Errorf("no result")
	}
	if !got.Type().Equal(want.Type()) {
		return fmt.Errorf("got %s, expected %s", got.Type(), want.Type())
	}
	bad, first := 0, ""
	for i := range want.Len() {
		if !m.equal(got, want, i) {
			if bad++; bad == 1 {
				first = fmt.Sprintf("element %d: got %s, expected %s", i, valueText(got, i), valueText(want, i))
			}
		}
	}
	if bad > 0 {
		return fmt.Errorf("%d of %d differ, %s", bad, want.Len(), first)
	}
	return nil
}

func (m measure) equal(got, want *ir.Tensor, i int) bool {
	d := want.DType()
	size := d.Size()
	if bytes.Equal(got.Bytes()[i*size:(i+1)*size], want.Bytes()[i*size:(i+1)*size]) {
		return true
	}
	switch {
	case d == ir.C64:
		return m.equalComplex(got, want, i)
	case ir.Code.Has(d):
		return math.IsNaN(ir.FloatAt(d, got.Bytes(), i)) && math.IsNaN(ir.FloatAt(d, want.Bytes(), i))
	case !ir.Float.Has(d):
		return false
	}
	terms := max(math.Abs(want.Float(i)), m.least)
	if m.terms != nil && m.terms[i] > terms && !math.IsInf(m.terms[i], 0) {
		terms = m.terms[i]
	}
	return m.near(d, got.Float(i), want.Float(i), terms)
}

// equalComplex measures both parts against the absolute value.
func (m measure) equalComplex(got, want *ir.Tensor, i int) bool {
	at := func(t *ir.Tensor, k int) float64 { return ir.FloatAt(ir.F32, t.Bytes(), 2*i+k) }
	size := math.Hypot(at(want, 0), at(want, 1))
	return m.near(ir.F32, at(got, 0), at(want, 0), size) && m.near(ir.F32, at(got, 1), at(want, 1), size)
}

func (m measure) near(d ir.DType, got, want, terms float64) bool {
	f := formats[d]
	if math.IsNaN(want) || math.IsNaN(got) {
		return math.IsNaN(want) && math.IsNaN(got)
	}
	if m.exact {
		return false // equal bits were found before; here zeros of another sign
	}
	eps, abs, ulp := f.eps, m.tol.Abs, m.tol.Ulp
	slack := f.normal // where results may be flushed to zero
	switch d {
	case ir.F64: // an absolute allowance is meant for f32
		abs, ulp = abs*0x1p-29, ulp+1
	case ir.F16, ir.BF16:
		eps, slack = formats[ir.F32].eps, formats[ir.F32].normal+f.step+f.eps*math.Abs(want)
	}
	allowed := abs + ulp*eps*terms + slack
	if m.tol == (ir.Tolerance{}) {
		allowed = 0
	}
	if math.IsInf(want, 0) || math.IsInf(got, 0) { // rounding may decide what overflows
		edge := f.max * (1 - (ulp+1)*f.eps)
		return got == want || allowed > 0 && math.Signbit(got) == math.Signbit(want) && math.Min(math.Abs(got), math.Abs(want)) >= edge
	}
	return math.Abs(got-want) <= allowed
}

func valueText(t *ir.Tensor, i int) string {
	switch d := t.DType(); {
	case d == ir.C64:
		return fmt.Sprintf("(%g, %g)", ir.FloatAt(ir.F32, t.Bytes(), 2*i), ir.FloatAt(ir.F32, t.Bytes(), 2*i+1))
	default:
		return elementText(d, t.Bytes(), i)
	}
}
