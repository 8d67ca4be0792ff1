package conform

import (
	"math"
	"slices"

	"github.com/rlx-ml/rlx-go/rlx/internal/ref"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

func init() {
	generate(dequantMatMul, "DequantMatMul")
	generate(dequantMatMulRegions, "DequantMatMulRegion")
	generate(dequantMoEWeights, "DequantMoEWeights")
}

// scalesOf are the places of the f16 scales in a block of a scheme.
var scalesOf = map[op.Scheme][]int{
	"q4_0": {0}, "q4_1": {0, 2}, "q5_0": {0}, "q5_1": {0, 2}, "q8_0": {0}, "iq4_nl": {0}, "q2_k": {80, 82}, "q3_k": {108}, "q4_k": {0, 2}, "q5_k": {0, 2},
	"q6_k": {208}, "iq4_xs": {0}, "iq2_xxs": {0}, "iq2_xs": {0}, "iq2_s": {0}, "iq3_xxs": {0}, "iq3_s": {0}, "iq1_s": {0}, "tq1_0": {52}, "tq2_0": {64},
}

// blocks draws packed bytes: any codes, with scales that leave results finite unless wild.
func (m *maker) blocks(s op.Scheme, count int64, wild bool) []byte {
	_, size := s.Block()
	data := make([]byte, count*size)
	for i := range data {
		data[i] = byte(m.rng.IntN(256))
	}
	if wild {
		return data
	}
	for b := range count {
		block := data[b*size:][:size]
		for _, at := range scalesOf[s] {
			ir.PutFloat(ir.F16, block[at:], 0, m.rng.NormFloat64()/32)
		}
		switch s {
		case "q8_k":
			ir.PutFloat(ir.F32, block, 0, m.rng.NormFloat64()/32)
		case "mxfp4":
			block[0] = byte(118 + m.rng.IntN(12))
		case "iq1_m": // the top four bits of an f16 in those of its last word
			block[55] = block[55]&15 | 0x20
		}
	}
	return data
}

func tensorOf(d ir.DType, data []byte, shape ...int64) *ir.Tensor {
	t, err := ir.FromBytes(d, shape, data)
	if err != nil {
		return zeros(d, dims(0)) // inference refuses it
	}
	return t
}

func dequantMoEWeights(m *maker) {
	s := op.Scheme(m.enums["scheme"])
	elements, size := s.Block()
	if !s.GGUF() {
		m.add(attrs{"row_length": 32, "num_experts": 1}, zeros(ir.U8, dims(0)))
		return
	}
	for i, d := range []ir.DType{ir.F32, ir.F16, ir.BF16} {
		for k, shape := range [][3]int64{{1, 1, 1}, {2, 3, 2}, {3, 5, 1}, {0, 2, 1}, {2, 0, 1}} {
			e, n, blocks := shape[0], shape[1], shape[2]
			data := m.blocks(s, e*n*blocks, (k+i)%3 == 2)
			if k%2 == 0 || e == 0 {
				m.add(attrs{"dtype": d}, tensorOf(ir.U8, data, e, n, blocks*size)).fixed = true
				continue
			}
			m.add(attrs{"dtype": d, "num_experts": e, "row_length": blocks * elements}, tensorOf(ir.U8, data, e*n*blocks*size)).fixed = true
		}
	}
}

// dequantMatMul makes many cases where the enums and the dtype matter, and a small one elsewhere.
func dequantMatMul(m *maker) {
	s := op.Scheme(m.enums["scheme"])
	sizes, outs := []int64{1, 2, 9, 10, 33, 64, 100, 256, 300, 420}, []int64{1, 3, 16, 17, 40, 33}
	count := 4
	if m.enums["compute"] == "int8" || m.enums["w_layout"] == "nk" && (s.GGUF() || s.MLX()) {
		sizes, outs, count = sizes[:7], outs[:4], 1
	} else if m.dtype != ir.F32 || m.short {
		count = 2
	}
	for i := range count {
		k, n := sizes[(m.turn*3+i*7)%len(sizes)], outs[(m.turn+i)%len(outs)]
		x := [][]int64{{1, k}, {k}, {5, k}, {2, 3, k}, {9, k}, {0, k}}[(m.turn+i)%6]
		m.packed(x, k, n)
	}
	if count == 4 {
		if m.large && m.turn%4 == 0 {
			m.packed(dims(7, 1100), 1100, 70)
		}
		m.packed(dims(2, 0), 0, 4)
		m.packed(dims(2, 32), 32, 0)
	}
}

// dequantMatMulRegions makes few cases of what dequantMatMul tests, with bodies behind them whose errors are those of the product: more where products run
// in blocks.
func dequantMatMulRegions(m *maker) {
	form := func(f func(y, x ir.Value) []ir.Value) body {
		return body{2, func(_ *ir.Graph, in []ir.Value) []ir.Value { return f(in[0], op.Cast(in[1], in[0].DType())) }}
	}
	forms := []body{
		form(func(y, x ir.Value) []ir.Value { return []ir.Value{op.Add(y, x)} }),
		form(func(y, x ir.Value) []ir.Value { return []ir.Value{op.Cast(op.Max(op.Neg(y), x), ir.F16)} }), // no result has room for the product
		form(func(y, x ir.Value) []ir.Value { return []ir.Value{op.Sub(x, y), x, op.Cast(y, ir.F16), op.Eq(x, x)} }),
	}
	if m.dtype != ir.F32 { // a product that is rounded the other way may be nothing but selected
		forms = []body{
			form(func(y, x ir.Value) []ir.Value { return []ir.Value{op.Max(y, x)} }),
			form(func(y, _ ir.Value) []ir.Value { return []ir.Value{op.Eq(y, y)} }),
			form(func(y, x ir.Value) []ir.Value { return []ir.Value{op.Neg(y), x, op.Eq(x, x)} }),
		}
	}
	s := op.Scheme(m.enums["scheme"])
	count := 1
	if m.dtype == ir.F32 && m.enums["w_layout"] == "kn" && m.enums["compute"] == "f32" && (s == "int8_block" || s == "int8_block_asym") {
		count = 6
	}
	for i := range count {
		turn := m.turn + i
		k, n := []int64{33, 300, 64, 1, 100, 0}[turn%6], []int64{40, 1, 33, 65, 100}[turn%5]
		x := [][]int64{{5, k}, {1, k}, {2, 3, k}, {k}, {40, k}, {0, k}}[(turn+turn/6)%6]
		a, in := m.packedOperands(x, k, n)
		a["body"] = forms[turn%3].graph()
		rows := dims(1)
		if len(x) > 1 {
			rows = dims(x[len(x)-2], 1)
		}
		side := [][]int64{{n}, rows, {}, append(slices.Clone(x[:len(x)-1]), n)}[turn%4]
		in = append(in, m.rng.few(m.partner(ir.Real|ir.Set(ir.Bool)), side))
		c := m.add(a, in...)
		c.fixed = true
		c.sizes = func(c *rowCase) []float64 {
			sums := packedSizes(c)
			for i := range sums {
				sums[i] += 2 // of few
			}
			return sums
		}
	}
}

// packed makes one case of K k and N n; k is rounded up to what the scheme can hold.
func (m *maker) packed(x []int64, k, n int64) {
	a, in := m.packedOperands(x, k, n)
	c := m.add(a, in...)
	c.fixed = true
	c.sizes = packedSizes
}

// packedOperands are those of a product, and the attributes that say how they lie; x gets the last axis that they have.
func (m *maker) packedOperands(x []int64, k, n int64) (attrs, []*ir.Tensor) {
	s := op.Scheme(m.enums["scheme"])
	a := attrs{}
	in := make([]*ir.Tensor, 4)
	switch {
	case s.GGUF():
		elements, size := s.Block()
		k = (k + elements - 1) / elements * elements
		data := m.blocks(s, n*k/elements, false)
		in[1] = tensorOf(ir.U8, data, n, k/elements*size)
		if (m.turn+len(m.cases))%3 == 1 && k > 0 {
			in[1] = tensorOf(ir.U8, data, n*k/elements*size)
		}
	case s.MLX():
		k = m.mlx(s, a, in, k, n)
	default:
		m.sided(s, a, in, k, n)
	}
	x[len(x)-1] = k
	in[0] = m.rng.plain(m.dtype, x)
	if (m.turn+len(m.cases))%4 == 3 {
		in[0] = m.rng.odd(m.dtype, x)
	}
	return a, in
}

// packedSizes are the sums of |x| |W|; W is the product with the identity.
func packedSizes(c *rowCase) []float64 {
	x, in := c.in[0], c.in
	k := x.Shape()[x.Rank()-1]
	n := c.types[0].Shape[len(c.types[0].Shape)-1]
	cols, _ := n.Static()
	unit := fill(ir.F32, dims(k, k), func(i int) float64 {
		if int64(i)/k == int64(i)%k {
			return 1
		}
		return 0
	})
	row, a := c.row, c.attrs
	if r, ok := a.(*op.DequantMatMulRegionAttrs); ok {
		p := r.Product()
		row, a = op.DequantMatMulRow(), &p
	}
	w, err := ref.Apply(row, a, append([]*ir.Tensor{unit}, in[1:4]...), []ir.Type{{DType: ir.F32, Shape: ir.Dims(k, cols)}})
	if err != nil || k == 0 || cols == 0 {
		return nil
	}
	sums := make([]float64, int64(x.Len())/k*cols)
	for i := range sums {
		row, col := int64(i)/cols, int64(i)%cols
		for p := range k {
			sums[i] += math.Abs(x.Float(int(row*k+p)) * w[0].Float(int(p*cols+col)))
		}
	}
	return sums
}

// mlx fills in w, scale and biases, and returns K.
func (m *maker) mlx(s op.Scheme, a attrs, in []*ir.Tensor, k, n int64) int64 {
	group := []int64{16, 32, 64}[m.turn%3]
	k = (k + group - 1) / group * group
	bits := int64(4)
	switch s {
	case "mlx_affine":
		bits = []int64{2, 3, 4, 5, 6, 8}[(m.turn+len(m.cases))%6]
		a["bits"] = bits
	case "mlx_mxfp8":
		bits = 8
	}
	a["block_size"] = group
	data := make([]byte, n*k*bits/8)
	for i := range data {
		if data[i] = byte(m.rng.IntN(256)); bits == 8 && data[i]&0x7f == 0x7f {
			data[i] = 0
		}
	}
	in[1] = tensorOf(ir.U8, data, n, k*bits/8)
	if k*bits%32 == 0 && m.turn%2 == 0 {
		in[1] = tensorOf(ir.U32, data, n, k*bits/32)
	}
	side := dims(n, k/group)
	in[2] = m.rng.near1(m.partner(ir.Set(ir.F16, ir.BF16, ir.F32)), side)
	if s == "mlx_affine" {
		in[3] = m.rng.plain(m.partner(ir.Set(ir.F16, ir.BF16, ir.F32)), side)
	} else if m.turn%2 == 1 {
		low := 120 // E8M0 around 1
		if group == 16 {
			low = 0x30 // E4M3
		}
		in[2] = fill(ir.U8, side, func(int) float64 { return float64(low + m.rng.IntN(12)) })
	}
	return k
}

// sided fills in w, scale and zero point of the schemes that are not MLX's.
func (m *maker) sided(s op.Scheme, a attrs, in []*ir.Tensor, k, n int64) {
	block := []int64{1, 2, 4, 16, 32, 100, 512}[(m.turn+len(m.cases))%7]
	nk := m.enums["w_layout"] == "nk"
	if s == "nvfp4_block" {
		block = 16
	} else if s == "int4_block" && nk && block == 1 {
		block = 6
	}
	blocks := (k + block - 1) / block
	side, matrix := dims(blocks, n), dims(k, n)
	if nk {
		side, matrix = dims(n, blocks), dims(n, k)
	}
	floats := ir.Set(ir.F16, ir.BF16, ir.F32)
	switch s {
	case "fp8_e4m3", "fp8_e5m2":
		d := map[op.Scheme]ir.DType{"fp8_e4m3": ir.F8E4M3, "fp8_e5m2": ir.F8E5M2}[s]
		if m.turn%2 == 0 {
			d = ir.U8
		}
		in[1] = fill(d, matrix, func(int) float64 { return float64(m.rng.IntN(0x60) | m.rng.IntN(2)<<7) })
		if c := (m.turn + len(m.cases)) % 3; c > 0 {
			in[2] = m.rng.near1(m.partner(floats), dims([]int64{1, n}[c-1]))
		}
		return
	case "nvfp4_block":
		in[2] = fill([]ir.DType{ir.U8, ir.F8E4M3}[m.turn%2], side, func(int) float64 { return float64(m.rng.IntN(0x50)) })
		if m.turn%3 > 0 {
			in[3] = m.rng.near1(m.partner(floats), dims(1))
		}
	default:
		a["block_size"] = block
		in[2] = m.rng.near1(m.partner(floats), side)
		if s == "int8_block_asym" || s == "int4_block" && m.turn%2 == 0 {
			in[3] = fill(m.partner(floats), side, func(int) float64 { return float64(m.rng.IntN(16)) })
		}
	}
	if s == "int8_block" || s == "int8_block_asym" {
		in[1] = m.bytes(bytes8[m.turn%2], matrix)
		return
	}
	switch { // two codes a byte
	case nk:
		in[1] = m.bytes(ir.U8, dims(n, blocks, block/2))
	case n%2 == 0 && m.turn%2 == 0:
		in[1] = m.bytes(ir.U8, dims(k, n/2))
	default:
		in[1] = m.bytes(ir.U8, dims((k*n+1)/2))
	}
}
