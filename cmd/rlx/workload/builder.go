package workload

import (
	"hash/fnv"
	"math"
	"math/rand/v2"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// Builder declares the graph of a workload and makes its inputs and weights: seeded normal numbers, a stream for each name. The reference has
// the same numbers, as they were rounded, in f64.
type Builder struct {
	*rlx.Graph
	feed      rlx.Feed
	reference bool
	wide      bool // floats are f64
	rows      []int
}

// sampledRows is how many rows of a large product the reference computes.
const sampledRows = 8

// Input is an input of normal numbers.
func (b *Builder) Input(name string, shape ...int) rlx.Value {
	return b.bind(name, b.normal(name, rlx.F32, 1, shape))
}

// Rows is an input of normal numbers in d each of whose rows makes a row of the output by itself; the reference has some of them.
func (b *Builder) Rows(name string, d rlx.DType, rows, cols int) rlx.Value {
	t := b.normal(name, d, 1, []int{rows, cols})
	if !b.reference || rows <= sampledRows {
		return b.bind(name, t)
	}
	var data []byte
	size := len(t.Bytes()) / rows
	for i := range sampledRows {
		r := i * (rows - 1) / (sampledRows - 1)
		b.rows, data = append(b.rows, r), append(data, t.Bytes()[r*size:][:size]...)
	}
	t, err := ir.FromBytes(t.DType(), []int64{sampledRows, int64(cols)}, data)
	if err != nil {
		return b.Fail("Input", err)
	}
	return b.bind(name, t)
}

// Integers is an i64 input of numbers in [lo, hi).
func (b *Builder) Integers(name string, lo, hi int64, shape ...int) rlx.Value {
	r, v := stream(name), make([]int64, count(shape))
	for i := range v {
		v[i] = lo + r.Int64N(hi-lo)
	}
	return b.bind(name, rlx.New(v, shape...))
}

func (b *Builder) bind(name string, t *rlx.Tensor) rlx.Value {
	b.feed[name] = t
	return b.Graph.Input(name, t.DType(), ir.Dims(t.Shape()...))
}

// Param is a weight of normal numbers times scale.
func (b *Builder) Param(name string, scale float64, shape ...int) rlx.Value {
	return b.Graph.Param(name, b.normal(name, rlx.F32, scale, shape))
}

// Weight is a weight [in, out...] of normal numbers whose products keep the size of their operand.
func (b *Builder) Weight(name string, shape ...int) rlx.Value {
	return b.Param(name, 1/math.Sqrt(float64(shape[0])), shape...)
}

// Filled is a weight of one number.
func (b *Builder) Filled(name string, value float64, n int) rlx.Value {
	v := make([]float64, n)
	for i := range v {
		v[i] = value
	}
	return b.Graph.Param(name, b.tensor(rlx.F32, v, []int{n}))
}

// Codes is a weight of i8 from -127 to 127.
func (b *Builder) Codes(name string, shape ...int) rlx.Value {
	r, v := stream(name), make([]int8, count(shape))
	for i := range v {
		v[i] = int8(r.IntN(255) - 127)
	}
	return b.Graph.Param(name, rlx.New(v, shape...))
}

func (b *Builder) normal(name string, d rlx.DType, scale float64, shape []int) *rlx.Tensor {
	r, v := stream(name), make([]float64, count(shape))
	for i := range v {
		v[i] = scale * r.NormFloat64()
	}
	return b.tensor(d, v, shape)
}

// tensor holds numbers rounded to d, in f64 where the graph is.
func (b *Builder) tensor(d rlx.DType, v []float64, shape []int) *rlx.Tensor {
	size := make([]int64, len(shape))
	for i, n := range shape {
		size[i] = int64(n)
	}
	data := ir.Aligned(int64(len(v) * d.Size()))
	for i, x := range v {
		ir.PutFloat(d, data, i, x)
	}
	if b.wide {
		for i := range v {
			v[i] = ir.FloatAt(d, data, i)
		}
		return rlx.New(v, shape...)
	}
	t, err := ir.FromBytes(d, size, data)
	if err != nil {
		b.Fail("Input", err)
	}
	return t
}

func stream(name string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(name))
	return rand.New(rand.NewPCG(1, h.Sum64()))
}

func count(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}
