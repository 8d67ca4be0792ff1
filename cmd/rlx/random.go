package main

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// make gives an input that no file gives a tensor, and says how. rows are the sizes of the tables that inputs index.
func (v *values) make(s *signature, in *declared, shape []int64, rows map[string]int64) (*rlx.Tensor, string, error) {
	if in.typ.DType == ir.Invalid {
		return nil, "", fmt.Errorf("input %s: %s is not supported", in.name, in.elem)
	}
	size, err := ir.ByteSize(in.typ.DType, shape)
	if err != nil {
		return nil, "", fmt.Errorf("input %s: %w", in.name, err)
	}
	n := int(size) / in.typ.DType.Size()
	if text := v.fill[in.name]; text != "" {
		list := strings.Split(strings.Repeat(text+",", n), ",")[:n]
		t, err := literal(in, list, shape)
		return t, "all " + text, err
	}
	if known := s.compared(in.name); ir.Int.Has(in.typ.DType) && n == 1 && len(known) > 0 && v.ranges[in.name] == [2]float64{} {
		t, err := literal(in, []string{fmt.Sprint(known[0])}, shape)
		return t, fmt.Sprintf("%d, which the model compares it with", known[0]), err
	}
	draw, how := v.distribution(in, rows[in.name])
	h := fnv.New64a()
	h.Write([]byte(in.name))
	rng := rand.New(rand.NewPCG(v.seed, h.Sum64())) // one stream for each input, whatever others there are
	floats := make([]float64, n)
	for i := range floats {
		floats[i] = draw(rng)
	}
	t, err := cast(rlx.New(floats, n), in.typ.DType)
	if err != nil {
		return nil, "", fmt.Errorf("input %s: %w", in.name, err)
	}
	t, err = ir.FromBytes(in.typ.DType, shape, t.Bytes())
	return t, how, err
}

// distribution is how random values of an input are drawn: what --range says; else normal for floats, and for integers the rows of the table
// that the input indexes, all values of a byte, or 0 and 1, which is a mask and fits most tables.
func (v *values) distribution(in *declared, rows int64) (draw func(*rand.Rand) float64, how string) {
	d := in.typ.DType
	limits, given := v.ranges[in.name]
	switch {
	case given && ir.Float.Has(d):
		return func(r *rand.Rand) float64 { return limits[0] + r.Float64()*(limits[1]-limits[0]) }, fmt.Sprintf("random, uniform in [%g, %g)", limits[0], limits[1])
	case given:
	case ir.Float.Has(d) || ir.Code.Has(d):
		return (*rand.Rand).NormFloat64, "random, normal(0, 1)"
	case rows > 0:
		limits = [2]float64{0, float64(rows)}
	case d == rlx.U8:
		limits = [2]float64{0, 256}
	case d == rlx.I8:
		limits = [2]float64{-128, 128}
	default:
		limits = [2]float64{0, 2}
	}
	lo, count := int64(limits[0]), max(int64(limits[1])-int64(limits[0]), 1)
	how = fmt.Sprintf("random integers in [%d, %d)", lo, lo+count)
	if !given && rows > 0 {
		how += ", the rows of the table that it indexes"
	}
	return func(r *rand.Rand) float64 { return float64(lo + r.Int64N(count)) }, how
}

// tableRows says, for each input that a Gather reads as its index, how many rows the smallest table has.
func tableRows(g *ir.Graph) map[string]int64 {
	rows := map[string]int64{}
	for _, n := range g.Nodes {
		a, ok := n.Attrs.(*op.GatherAttrs)
		if !ok || len(n.In) < 2 {
			continue
		}
		name := sourceOf(n.In[1])
		if size, ok := n.In[0].Dim(a.Axis).Static(); ok && name != "" && (rows[name] == 0 || size < rows[name]) {
			rows[name] = size
		}
	}
	return rows
}

// sourceOf is the input whose values, reshaped or cast, are v; "" if v is computed.
func sourceOf(v ir.Value) string {
	for !v.IsZero() {
		n := v.Node()
		if name, ok := n.InputName(); ok {
			return name
		}
		if _, isCast := n.Attrs.(*op.CastAttrs); !isCast && !n.Row.Has(ir.View) || len(n.In) == 0 {
			return ""
		}
		v = n.In[0]
	}
	return ""
}
