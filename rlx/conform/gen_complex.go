package conform

import (
	"math"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

func init() {
	generate(complexParts, "ComplexNormSq", "ComplexNormSqBackward", "Conjugate")
}

// complexParts are c64 of every width, with zeros, infinities and NaN among their parts, and a cotangent of their shape.
func complexParts(m *maker) {
	list := rows()
	if m.large {
		list = append(list, dims(3, 4099))
	}
	for k, s := range part(m, 8, len(list), list) {
		z := m.rng.plain(ir.C64, s)
		if k%3 == 1 {
			parts := []float64{math.NaN(), math.Inf(1), math.Copysign(0, -1), 3e38, 1e-30}
			for i := range 2 * z.Len() {
				if m.rng.chance(4) {
					ir.PutFloat(ir.F32, z.Bytes(), i, parts[m.rng.IntN(len(parts))])
				}
			}
		}
		in := []*ir.Tensor{z}
		if len(m.row.In) > 1 {
			in = append(in, m.rng.plain(ir.F32, s))
		}
		m.add(nil, in...)
	}
}
