package op

import "github.com/rlx-ml/rlx-go/rlx/ir"

// Scheme names how weights are packed: the block formats of GGUF files, then schemes whose scales are tensors of their own, then MLX's.
// The command words carry the number, so the order never changes.
type Scheme string

// schemes are the GGUF formats with the weights and the bytes of a block, then the others.
var schemes = []struct {
	name            string
	elements, bytes int64
}{
	{"q4_k", 256, 144}, {"q5_k", 256, 176}, {"q6_k", 256, 210}, {"q8_k", 256, 292}, {"q2_k", 256, 84}, {"q3_k", 256, 110},
	{"iq4_nl", 32, 18}, {"iq4_xs", 256, 136}, {"tq1_0", 256, 54}, {"tq2_0", 256, 66}, {"mxfp4", 32, 17}, {"nvfp4", 64, 36},
	{"iq2_xxs", 256, 66}, {"iq2_xs", 256, 74}, {"iq2_s", 256, 82}, {"iq3_xxs", 256, 98}, {"iq3_s", 256, 110}, {"iq1_s", 256, 50},
	{"iq1_m", 256, 56}, {"q4_0", 32, 18}, {"q8_0", 32, 34}, {"q4_1", 32, 20}, {"q5_0", 32, 22}, {"q5_1", 32, 24},
	{"int8_block", 0, 0}, {"int8_block_asym", 0, 0}, {"int4_block", 0, 0}, {"fp8_e4m3", 0, 0}, {"fp8_e5m2", 0, 0}, {"nvfp4_block", 0, 0},
	{"mlx_affine", 0, 0}, {"mlx_mxfp4", 0, 0}, {"mlx_mxfp8", 0, 0},
}

// EnumValues lists the schemes by number.
func (Scheme) EnumValues() []string {
	names := make([]string, len(schemes))
	for i, s := range schemes {
		names[i] = s.name
	}
	return names
}

// Block is how many weights a block of a GGUF scheme holds, and its bytes; zeros for the other schemes.
func (s Scheme) Block() (elements, bytes int64) {
	for _, e := range schemes {
		if e.name == string(s) {
			return e.elements, e.bytes
		}
	}
	return 0, 0
}

// GGUF says whether s is a block format of GGUF files.
func (s Scheme) GGUF() bool {
	n, _ := s.Block()
	return n > 0
}

// MLX says whether s is a scheme of MLX.
func (s Scheme) MLX() bool { return s == "mlx_affine" || s == "mlx_mxfp4" || s == "mlx_mxfp8" }

// WeightLayout says how a weight with side tensors lies: "kn" as [K, N], "nk" as a row for each of N outputs.
type WeightLayout string

// EnumValues lists the layouts.
func (WeightLayout) EnumValues() []string { return []string{"kn", "nk"} }

// Compute says in what a product with packed weights is computed: "int8" allows x rounded to i8 in blocks of 32.
type Compute string

// EnumValues lists the ways to compute.
func (Compute) EnumValues() []string { return []string{"f32", "int8"} }

// packed is a DequantMatMul under inference: x [..., K] with the operands of a scheme.
type packed struct {
	t *ir.Infer
	a *DequantMatMulAttrs
	k ir.Dim
}

// columns checks w, scale and zero_point against the scheme and returns N.
func (p packed) columns() ir.Dim {
	switch s := p.a.Scheme; {
	case s.GGUF():
		return p.gguf()
	case s.MLX():
		return p.mlx()
	case s == "nvfp4_block":
		return p.nvfp4()
	case s == "fp8_e4m3" || s == "fp8_e5m2":
		return p.fp8()
	}
	return p.ints()
}

// only checks that w has one of the dtypes.
func (p packed) only(dtypes ir.DTypeSet) bool {
	d := p.t.Type(1).DType
	return p.t.Need(dtypes.Has(d), "C7", "%s: w has dtype %s, expected one of %s", p.a.Scheme, d, dtypes)
}

// side checks presence and dtype of scale (1) or zero_point (2).
func (p packed) side(i int, required, allowed bool, dtypes ir.DTypeSet) bool {
	name := p.sideName(i)
	if !p.t.Has(1 + i) {
		return p.t.Need(!required, "C2", "%s: %s is missing, expected a tensor", p.a.Scheme, name)
	}
	d := p.t.Type(1 + i).DType
	return p.t.Need(allowed, "C2", "%s: %s is given, expected none: the scheme takes no %[2]s", p.a.Scheme, name) &&
		p.t.Need(dtypes.Has(d), "C2", "%s: %s has dtype %s, expected one of %s", p.a.Scheme, name, d, dtypes)
}

// sideName is what the scheme calls scale (1) or zero_point (2).
func (p packed) sideName(i int) string {
	switch {
	case i == 1:
		return "scale"
	case p.a.Scheme.MLX():
		return "zero_point (biases)"
	}
	return "zero_point"
}

func (p packed) gguf() ir.Dim {
	w, s := p.t.Type(1).Shape, p.a.Scheme
	if !p.side(1, false, false, 0) || !p.side(2, false, false, 0) || !p.only(ir.Set(ir.U8)) ||
		!p.t.Need(len(w) == 1 || len(w) == 2, "C7", "%s: w has rank %d, expected 1 or 2", s, len(w)) {
		return ir.Dim{}
	}
	elements, bytes := s.Block()
	k, known := p.k.Static()
	p.t.Need(!known || k%elements == 0, "C3", "%s: K is %d, expected a multiple of the block of %d weights", s, k, elements)
	row := p.k.FloorDiv(ir.D(elements)).Mul(ir.D(bytes))
	if len(w) == 2 {
		p.t.Need(!w[1].Differs(row), "C4", "%s: w has rows of %s bytes, expected %s for K %s", s, w[1], row, p.k)
		return w[0]
	}
	size, known := row.Static()
	total, whole := w[0].Static()
	if known && size == 0 { // K = 0: no byte says how many rows there are
		return ir.D(0)
	}
	p.t.Need(!known || !whole || total%size == 0, "C3", "%s: w has %d bytes, expected whole rows of %d", s, total, size)
	return w[0].FloorDiv(row)
}

// blocks checks a scale (and a zero point of its shape) of [blocks, N], or [N, blocks] for nk, and returns N.
func (p packed) blocks(block int64, zero bool) ir.Dim {
	shape := p.t.Type(2).Shape
	if !p.t.Need(len(shape) == 2, "C2", "%s: scale has rank %d, expected 2", p.a.Scheme, len(shape)) {
		return ir.Dim{}
	}
	blocks := p.k.CeilDiv(ir.D(block))
	n, want := shape[1], []ir.Dim{blocks, shape[1]}
	if p.a.WLayout == "nk" || p.a.Scheme.MLX() {
		n, want = shape[0], []ir.Dim{shape[0], blocks}
	}
	p.t.Need(same(shape, want), "C2", "%s: scale has shape %v, expected %v", p.a.Scheme, shape, want)
	if zero && p.t.Has(3) {
		z := p.t.Type(3).Shape
		p.t.Need(same(z, want), "C2", "%s: %s has shape %v, expected that of scale, %v", p.a.Scheme, p.sideName(2), z, want)
	}
	return n
}

func (p packed) ints() ir.Dim {
	s := p.a.Scheme
	if !p.t.Need(p.a.BlockSize >= 1, "C6", "%s: block_size %d, expected >= 1", s, p.a.BlockSize) ||
		!p.side(1, true, true, narrow32) || !p.side(2, s == "int8_block_asym", s != "int8_block", narrow32) {
		return ir.Dim{}
	}
	n := p.blocks(p.a.BlockSize, true)
	switch {
	case s == "int4_block":
		p.nibbles(n, p.a.BlockSize)
	case p.only(ir.Set(ir.I8, ir.U8)):
		p.matrix(n)
	}
	return n
}

// matrix checks that w is [K, N], or [N, K] for nk.
func (p packed) matrix(n ir.Dim) {
	want := []ir.Dim{p.k, n}
	if p.a.WLayout == "nk" {
		want = []ir.Dim{n, p.k}
	}
	w := p.t.Type(1).Shape
	p.t.Need(same(w, want), "C5", "%s: w has shape %v, expected %v for K %s", p.a.Scheme, w, want, p.k)
}

// nibbles checks u8 codes, two a byte: K*N in one run, or for nk whole blocks in rows.
func (p packed) nibbles(n ir.Dim, block int64) {
	w, two := p.t.Type(1).Shape, ir.D(2)
	if !p.only(ir.Set(ir.U8)) {
		return
	}
	if p.a.WLayout == "nk" {
		bytes := ir.D(block / 2)
		blocks := p.k.CeilDiv(ir.D(block))
		p.t.Need(block%2 == 0, "C6", "%s: block_size %d, expected an even one for rows of N", p.a.Scheme, block)
		ok := !ir.Count(w).Differs(n.Mul(blocks).Mul(bytes)) && (len(w) < 2 || !w[0].Differs(n))
		p.t.Need(ok, "C5", "%s: w has shape %v, expected [%s, %s, %s]", p.a.Scheme, w, n, blocks, bytes)
		return
	}
	flat := []ir.Dim{p.k.Mul(n).CeilDiv(two)}
	ok := same(w, flat)
	if v, known := n.Static(); !known || v%2 == 0 {
		ok = ok || same(w, []ir.Dim{p.k, n.FloorDiv(two)})
	}
	p.t.Need(ok, "C5", "%s: w has shape %v, expected %v or, for even N, [K, N/2] of K %s, N %s", p.a.Scheme, w, flat, p.k, n)
}

func (p packed) fp8() ir.Dim {
	s := p.a.Scheme
	own := map[Scheme]ir.DType{"fp8_e4m3": ir.F8E4M3, "fp8_e5m2": ir.F8E5M2}[s]
	w := p.t.Type(1).Shape
	if !p.side(1, false, true, narrow32) || !p.side(2, false, false, 0) || !p.only(ir.Set(ir.U8, own)) ||
		!p.t.Need(len(w) == 2, "C7", "%s: w has rank %d, expected 2", s, len(w)) {
		return ir.Dim{}
	}
	n := w[1]
	if p.a.WLayout == "nk" {
		n = w[0]
	}
	p.matrix(n)
	if p.t.Has(2) {
		shape := p.t.Type(2).Shape
		ok := same(shape, []ir.Dim{ir.D(1)}) || same(shape, []ir.Dim{n})
		p.t.Need(ok, "C2", "%s: scale has shape %v, expected [1] or [%s]", s, shape, n)
	}
	return n
}

func (p packed) nvfp4() ir.Dim {
	if !p.side(1, true, true, ir.Set(ir.U8, ir.F8E4M3)) || !p.side(2, false, true, narrow32) {
		return ir.Dim{}
	}
	n := p.blocks(16, false)
	if p.t.Has(3) {
		g := ir.Count(p.t.Type(3).Shape)
		p.t.Need(!g.Differs(ir.D(1)), "C2", "nvfp4_block: zero_point (the global scale) has %s entries, expected 1", g)
	}
	p.nibbles(n, 16)
	return n
}

// CodeBits is the width of a code of an MLX scheme.
func (a *DequantMatMulAttrs) CodeBits() int64 {
	switch a.Scheme {
	case "mlx_mxfp4":
		return 4
	case "mlx_mxfp8":
		return 8
	}
	return a.Bits
}

func (p packed) mlx() ir.Dim {
	s, group := p.a.Scheme, p.a.BlockSize
	bits := p.a.CodeBits()
	k, known := p.k.Static()
	scales := narrow32
	if s != "mlx_affine" {
		scales |= ir.Set(ir.U8)
	}
	ok := bits == 2 || bits == 3 || bits == 4 || bits == 5 || bits == 6 || bits == 8
	if !p.t.Need(ok, "C6", "%s: bits %d, expected 2, 3, 4, 5, 6 or 8", s, bits) ||
		!p.t.Need(group >= 1 && (!known || k%group == 0), "C6", "%s: groups of block_size %d, expected a divisor of K %s", s, group, p.k) ||
		!p.side(1, true, true, scales) || !p.side(2, s == "mlx_affine", s == "mlx_affine", narrow32) || !p.only(ir.Set(ir.U8, ir.U32)) {
		return ir.Dim{}
	}
	n := p.blocks(group, true)
	w, word := p.t.Type(1).Shape, int64(8*p.t.Type(1).DType.Size())
	row := p.k.Mul(ir.D(bits))
	width, static := row.Static()
	ok = !static || width%word == 0
	row = row.FloorDiv(ir.D(word))
	ok = ok && (same(w, []ir.Dim{n, row}) || same(w, []ir.Dim{n.Mul(row)}))
	p.t.Need(ok, "C5", "%s: w has shape %v, expected [%s, K * %d / %d] for K %s and codes of %d bits", s, w, n, bits, word, p.k, bits)
	return n
}
