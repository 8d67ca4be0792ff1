package ref

import (
	"math"
	"math/cmplx"
	"math/rand/v2"
	"testing"
)

// Every way to transform against the sum of the definition, whose angles are reduced in integers.
func TestFourier(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	lengths := []int{142, 201, 251, 256, 289, 362, 500, 521, 743}
	for n := 1; n <= 130; n++ {
		lengths = append(lengths, n)
	}
	for _, n := range lengths {
		x := make([]complex128, n)
		size := 0.0
		for i := range x {
			x[i] = complex(rng.NormFloat64(), rng.NormFloat64())
			size += cmplx.Abs(x[i])
		}
		for _, inverse := range []bool{false, true} {
			sign := -1.0
			if inverse {
				sign = 1
			}
			got := newFourier(n, inverse).transform(append([]complex128{}, x...))
			for k := range n {
				var want complex128
				for i, v := range x {
					want += v * cmplx.Exp(complex(0, sign*2*math.Pi*float64(i*k%n)/float64(n)))
				}
				if e := cmplx.Abs(got[k] - want); !(e <= 4e-16*size) {
					t.Fatalf("length %d, inverse %v, bin %d: got %v, expected %v", n, inverse, k, got[k], want)
				}
			}
		}
	}
}
