package ref

import (
	"math"

	"github.com/rlx-ml/rlx-go/rlx/op"
)

func init() { on("DoubleSingle", doubleSingle) }

// pairs64 are the values hi + lo of a tensor of pairs and the leading shape.
type pairs64 struct {
	v    []float64
	dims []int64
}

func readPairs(t tensor) pairs64 {
	f := t.floats()
	v := make([]float64, len(f)/2)
	for i := range v {
		v[i] = f[2*i] + f[2*i+1]
	}
	return pairs64{v, t.dims[:t.rank()-1]}
}

// doubleSingle: see op.DoubleSingle. f64 has the digits of a pair and some more.
func doubleSingle(c *call) error {
	a, y := attrs[op.DoubleSingleAttrs](c), c.out[0]
	x := readPairs(c.in[0])
	lead := y.dims[:y.rank()-1]
	var out []float64
	switch a.Fn {
	case "sum", "max":
		out = reducePairs(x, a, product(lead))
	case "matmul":
		out = matmulPairs(x, readPairs(c.in[1]), lead)
	case "sqrt", "exp":
		out = x.v
		f := math.Sqrt
		if a.Fn == "exp" {
			f = math.Exp
		}
		for i, v := range out {
			out[i] = f(v)
		}
	default:
		b := readPairs(c.in[1])
		f := map[op.PairFn]func(a, b float64) float64{
			"add":     func(a, b float64) float64 { return a + b },
			"sub":     func(a, b float64) float64 { return a - b },
			"mul":     func(a, b float64) float64 { return a * b },
			"div":     func(a, b float64) float64 { return a / b },
			"maximum": func(a, b float64) float64 { return max(a, b) },
		}[a.Fn]
		ia, ib := tensor{dims: x.dims}.meets(lead), tensor{dims: b.dims}.meets(lead)
		out = make([]float64, product(lead))
		for i := range out {
			out[i] = f(x.v[ia(i)], b.v[ib(i)])
		}
	}
	for i, v := range out {
		hi := float64(float32(v))
		y.set(2*i, hi)
		y.set(2*i+1, 0)
		if !math.IsInf(hi, 0) && !math.IsNaN(hi) {
			y.set(2*i+1, v-hi)
		}
	}
	return nil
}

// reducePairs walks the elements in order and adds each to the result it belongs to.
func reducePairs(x pairs64, a *op.DoubleSingleAttrs, n int) []float64 {
	reduced := make([]bool, len(x.dims))
	for i := range reduced {
		reduced[i] = a.Axes == nil
	}
	for _, axis := range a.Axes {
		reduced[wrap(axis, len(x.dims))] = true
	}
	kept := make([]int64, len(x.dims))
	for i, d := range x.dims {
		kept[i] = d
		if reduced[i] {
			kept[i] = 1
		}
	}
	out, at := make([]float64, n), tensor{dims: kept}.meets(x.dims)
	if a.Fn == "max" {
		for i := range out {
			out[i] = math.Inf(-1)
		}
	}
	for i, v := range x.v {
		if o := &out[at(i)]; a.Fn == "max" {
			*o = max(*o, v)
		} else {
			*o += v
		}
	}
	return out
}

func matmulPairs(a, b pairs64, lead []int64) []float64 {
	r := len(lead)
	m, n, k := int(lead[r-2]), int(lead[r-1]), int(a.dims[len(a.dims)-1])
	ia := tensor{dims: a.dims[:len(a.dims)-2]}.meets(lead[:r-2])
	ib := tensor{dims: b.dims[:len(b.dims)-2]}.meets(lead[:r-2])
	out := make([]float64, product(lead))
	for batch := range product(lead[:r-2]) {
		x, y, z := a.v[ia(batch)*m*k:], b.v[ib(batch)*k*n:], out[batch*m*n:]
		for i := range m {
			for p := range k {
				for j := range n {
					z[i*n+j] += float64(x[i*k+p] * y[p*n+j])
				}
			}
		}
	}
	return out
}
