package conform

import (
	"math"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

func init() {
	generate(recurrent, "Lstm", "Gru", "Rnn")
}

// layerCall are the sizes of a recurrent layer: batch, steps, input and hidden size.
type layerCall struct{ b, s, i, h int64 }

func recurrent(m *maker) {
	// batches on both sides of the rows of a tile, hidden sizes of its columns, and no elements
	list := []layerCall{{2, 3, 2, 3}, {1, 4, 5, 8}, {3, 2, 7, 9}, {1, 1, 1, 1}, {2, 5, 16, 17}, {4, 3, 33, 16}, {7, 2, 3, 15}, {13, 2, 4, 33}, {1, 9, 8, 32}, {5, 3, 65, 31},
		{0, 3, 2, 3}, {2, 0, 2, 3}, {2, 3, 0, 3}, {2, 3, 2, 0}, {1, 40, 3, 4}, {3, 5, 4, 1}}
	if m.large {
		list = append(list, layerCall{6, 11, 70, 100}, layerCall{1, 70, 9, 65})
	}
	for k, c := range part(m, 8, len(list), list) {
		m.layer(k+m.turn, c)
	}
	if m.dtype == ir.F32 {
		for _, n := range []int64{-1, 4, math.MaxInt64} {
			r := m.layer(0, layerCall{2, 3, 2, 3})
			r.in[m.seqLen()], r.fails = fill(ir.I64, dims(2), func(i int) float64 { return float64(i) * float64(n) }), "C5"
		}
	}
}

func (m *maker) seqLen() int {
	if m.row.Name == "Lstm" {
		return 7
	}
	return 6
}

// layer adds a case whose options change with k. Weights shrink with the length of their sums, so that the layer does not amplify errors.
func (m *maker) layer(k int, c layerCall) *rowCase {
	gates, d := map[string]int64{"Lstm": 4, "Gru": 3, "Rnn": 1}[m.row.Name], int64(1)
	if m.enums["direction"] == "bidirectional" {
		d = 2
	}
	weights := func(shape ...int64) *ir.Tensor {
		scale := 1 / math.Sqrt(float64(c.i+c.h+1))
		return fill(m.dtype, shape, func(int) float64 { return scale * m.rng.NormFloat64() })
	}
	x := m.rng.plain(m.dtype, dims(c.b, c.s, c.i))
	if k%7 == 5 {
		x = m.rng.odd(m.dtype, x.Shape())
	}
	in := []*ir.Tensor{x, weights(d, gates*c.h, c.i), weights(d, gates*c.h, c.h), nil, nil, nil}
	for i := range 2 {
		if k>>i&1 == 0 {
			in[3+i] = weights(d, gates*c.h)
		}
	}
	state := func(skip bool) *ir.Tensor {
		if skip {
			return nil
		}
		return m.rng.plain(m.dtype, dims(d, c.b, c.h))
	}
	in[5] = state(k%3 == 1)
	if m.row.Name == "Lstm" {
		in = append(in, state(k%4 == 1))
	}
	if in = append(in, nil); k%2 == 1 {
		in[len(in)-1] = fill([]ir.DType{ir.I32, ir.I64}[k/2%2], dims(c.b), func(int) float64 { return float64(m.rng.Int64N(c.s + 1)) })
	}
	a := attrs{"clip": []float64{0, 0, 0.4}[k%3]}
	switch m.row.Name {
	case "Lstm":
		if in = append(in, nil); k%5 < 2 {
			in[8] = weights(d, 3*c.h)
		}
	case "Gru":
		a["linear_before_reset"] = k%2 == 0
	}
	r := m.add(a, in...)
	r.least = 1
	return r
}
