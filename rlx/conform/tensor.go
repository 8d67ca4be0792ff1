package conform

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// Tensor is a tensor of a case file. Floats are exact values as numbers or "nan", "inf", "-inf"; the 8- and 4-bit floats are bit codes.
type Tensor struct {
	DType string          `json:"dtype"`
	Shape []int64         `json:"shape"`
	Data  json.RawMessage `json:"data"`
	Gen   string          `json:"gen"` // "sin": element i is Scale*sin(Phase + Step*i), in f64, then rounded
	Scale float64         `json:"scale"`
	Phase float64         `json:"phase"`
	Step  float64         `json:"step"`
}

// decode makes the tensor. A Constant may give one element for a whole shape: fill says whether that is allowed.
func (t *Tensor) decode(fill bool) (*ir.Tensor, error) {
	d, err := ir.ParseDType(t.DType)
	if err != nil {
		return nil, err
	}
	out, err := ir.Zeros(d, append([]int64{}, t.Shape...)...)
	if err != nil {
		return nil, err
	}
	if t.Gen != "" {
		for i := range out.Len() {
			ir.PutFloat(d, out.Bytes(), i, t.Scale*math.Sin(t.Phase+t.Step*float64(i)))
		}
		return out, nil
	}
	items := listItems(t.Data)
	per := 1
	if d == ir.C64 {
		per = 2
	}
	if len(items) != per*out.Len() && !(fill && len(items) == per) {
		return nil, fmt.Errorf("got %d elements, expected %d for shape %v", len(items)/per, out.Len(), t.Shape)
	}
	for i := range per * out.Len() {
		if err := putItem(d, out.Bytes(), i, items[i%len(items)]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// listItems splits a flat JSON list without reading numbers as floats.
func listItems(data json.RawMessage) []string {
	s := strings.TrimSpace(string(data))
	s = strings.TrimSuffix(strings.TrimPrefix(s, "["), "]")
	if strings.TrimSpace(s) == "" {
		return nil
	}
	items := strings.Split(s, ",")
	for i := range items {
		items[i] = strings.Trim(strings.TrimSpace(items[i]), `"`)
	}
	return items
}

func putItem(d ir.DType, b []byte, i int, item string) error {
	if d == ir.C64 { // interleaved re, im
		d = ir.F32
	}
	if ir.Float.Has(d) {
		f, err := strconv.ParseFloat(item, 64)
		if err != nil {
			return fmt.Errorf("element %q: %w", item, err)
		}
		ir.PutFloat(d, b, i, f)
		return nil
	}
	if ir.Code.Has(d) {
		d = ir.U8
	}
	n, err := ir.ParseNumber(item)
	if err != nil {
		return err
	}
	v, _, ok := n.Int()
	if !ok {
		return fmt.Errorf("element %q is no integer", item)
	}
	ir.PutInt(d, b, i, v)
	return nil
}

// text is the tensor as an attribute: dtype[shape]:base64.
func (t *Tensor) text() (string, error) {
	v, err := t.decode(true)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s:%s", v.Type(), base64.StdEncoding.EncodeToString(v.Bytes())), nil
}

// Compare says how got differs from want: |got - want| <= atol + rtol*|want|, NaN equals NaN, integers, bools and codes are exact.
func Compare(got, want *ir.Tensor, rtol, atol float64) error {
	if got == nil {
		return fmt.Errorf("no result")
	}
	if got.DType() != want.DType() {
		return fmt.Errorf("dtype %s, expected %s", got.DType(), want.DType())
	}
	if fmt.Sprint(got.Shape()) != fmt.Sprint(want.Shape()) {
		return fmt.Errorf("shape %v, expected %v", got.Shape(), want.Shape())
	}
	bad, first := 0, ""
	n, d := want.Len(), want.DType()
	gb, wb := got.Bytes(), want.Bytes()
	if d == ir.C64 {
		n, d = 2*n, ir.F32
	}
	for i := range n {
		if ok := equalAt(d, gb, wb, i, rtol, atol); !ok {
			if bad++; bad == 1 {
				first = fmt.Sprintf("element %d: got %s, expected %s", i, elementText(d, gb, i), elementText(d, wb, i))
			}
		}
	}
	if bad > 0 {
		return fmt.Errorf("%d of %d differ, %s", bad, n, first)
	}
	return nil
}

func equalAt(d ir.DType, got, want []byte, i int, rtol, atol float64) bool {
	switch {
	case ir.Float.Has(d):
		g, w := ir.FloatAt(d, got, i), ir.FloatAt(d, want, i)
		return g == w || math.IsNaN(g) && math.IsNaN(w) || math.Abs(g-w) <= atol+rtol*math.Abs(w) && !math.IsInf(w, 0)
	case ir.Code.Has(d):
		return got[i] == want[i] || math.IsNaN(ir.FloatAt(d, got, i)) && math.IsNaN(ir.FloatAt(d, want, i))
	}
	return ir.IntAt(d, got, i) == ir.IntAt(d, want, i)
}

func elementText(d ir.DType, b []byte, i int) string {
	switch {
	case ir.Float.Has(d):
		return strconv.FormatFloat(ir.FloatAt(d, b, i), 'g', -1, 64)
	case ir.Code.Has(d):
		return fmt.Sprintf("%#x", b[i])
	}
	return strconv.FormatInt(ir.IntAt(d, b, i), 10)
}
