package ref

import (
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

func init() {
	on("DequantMatMul", dequantMatMul)
	on("DequantMoEWeights", dequantMoEWeights)
}

// dequantMoEWeights: see op.DequantMoEWeights. Rows of the file become columns.
func dequantMoEWeights(c *call) error {
	y := c.out[0]
	e, k, n := int(y.dims[0]), int(y.dims[1]), int(y.dims[2])
	for i, v := range ggufWeights(attrs[op.DequantMoEWeightsAttrs](c).Scheme, c.in[0].data, e*n*k) {
		expert, row, p := i/(n*k), i/k%n, i%k
		y.set((expert*k+p)*n+row, v)
	}
	return nil
}

// dequantMatMul: see op.DequantMatMul. Attribute compute changes nothing here: it allows less than this.
func dequantMatMul(c *call) error {
	a, x, y := attrs[op.DequantMatMulAttrs](c), c.in[0], c.out[0]
	k, n := int(x.dims[x.rank()-1]), int(y.dims[y.rank()-1])
	w := packedWeights(c, a, n, k)
	in := x.floats()
	for i := range y.len() / max(n, 1) {
		if c.stopped() {
			return errCancelled
		}
		row := in[i*k : (i+1)*k]
		for j := range n {
			sum := 0.0
			for p, v := range w[j*k : (j+1)*k] {
				sum += row[p] * v
			}
			y.set(i*n+j, sum)
		}
	}
	return nil
}

// packedWeights are the real weights, a row of k for each of n outputs.
func packedWeights(c *call, a *op.DequantMatMulAttrs, n, k int) []float64 {
	switch s := a.Scheme; {
	case s.GGUF():
		return ggufWeights(s, c.in[1].data, n*k)
	case s.MLX():
		return mlxWeights(c, a, n, k)
	}
	w := make([]float64, n*k)
	at := sideIndex(a, n, k)
	for j := range n {
		for p := range k {
			w[j*k+p] = plainWeight(c, a, at, n, k, j, p)
		}
	}
	return w
}

// sideIndex returns where the scale of a block of column j is.
func sideIndex(a *op.DequantMatMulAttrs, n, k int) func(j, block int) int {
	size := a.BlockSize
	if a.Scheme == "nvfp4_block" {
		size = 16
	}
	blocks := 0
	if size > 0 {
		blocks = int((int64(k)-1)/size) + 1
	}
	if a.WLayout == "nk" {
		return func(j, block int) int { return j*blocks + block }
	}
	return func(j, block int) int { return block*n + j }
}

// plainWeight is weight p of column j of a scheme with side tensors of its own.
func plainWeight(c *call, a *op.DequantMatMulAttrs, at func(j, block int) int, n, k, j, p int) float64 {
	w, flat := c.in[1], p*n+j
	if a.WLayout == "nk" {
		flat = j*k + p
	}
	switch a.Scheme {
	case "fp8_e4m3", "fp8_e5m2":
		v := fp8(a.Scheme, w.data[flat])
		switch {
		case !c.has(2):
			return v
		case c.in[2].len() == 1:
			return v * c.in[2].at(0)
		}
		return v * c.in[2].at(j)
	case "nvfp4_block":
		side := at(j, p/16)
		v := ir.F4E2M1ToF64(nibble(a, w.data, 16, n, k, j, p)) * ir.F8E4M3ToF64(c.in[2].data[side])
		if c.has(3) {
			v *= c.in[3].at(0)
		}
		return v
	}
	side, q := at(j, int(int64(p)/a.BlockSize)), 0.0
	zero := 0.0
	if a.Scheme == "int4_block" {
		q, zero = float64(nibble(a, w.data, int(a.BlockSize), n, k, j, p)), 8
	} else {
		q = w.at(flat)
	}
	if c.has(3) {
		zero = c.in[3].at(side)
	}
	return (q - zero) * c.in[2].at(side)
}

func fp8(s op.Scheme, code byte) float64 {
	if s == "fp8_e4m3" {
		return ir.F8E4M3ToF64(code)
	}
	return ir.F8E5M2ToF64(code)
}

// nibble is code p of column j, two a byte: in one run over [k, n], or for nk in rows of whole blocks.
func nibble(a *op.DequantMatMulAttrs, w []byte, block, n, k, j, p int) byte {
	e := p*n + j
	if a.WLayout == "nk" {
		e = j*((k-1)/block+1)*block + p
	}
	return w[e/2] >> (4 * (e % 2)) & 15
}

// mlxWeights read each row as a stream of bits.
func mlxWeights(c *call, a *op.DequantMatMulAttrs, n, k int) []float64 {
	bits := int(a.CodeBits())
	group := int(a.BlockSize)
	raw := c.in[1].data
	w := make([]float64, n*k)
	for i := range w {
		bit := i % k * bits
		row := raw[i/k*(k*bits/8):]
		code := 0
		for b := range bits {
			code |= int(row[(bit+b)/8]>>((bit+b)%8)&1) << b
		}
		side := i / k * (k / group) // k is not 0 here
		side += i % k / group
		switch a.Scheme {
		case "mlx_affine":
			w[i] = float64(code)*c.in[2].at(side) + c.in[3].at(side)
		case "mlx_mxfp4":
			w[i] = ir.F4E2M1ToF64(byte(code)) * mlxScale(c.in[2], side, group)
		default:
			w[i] = ir.F8E4M3ToF64(byte(code)) * mlxScale(c.in[2], side, group)
		}
	}
	return w
}

// mlxScale is a scale as a number, or a code: E4M3 for groups of 16, else E8M0.
func mlxScale(s tensor, i, group int) float64 {
	switch {
	case s.dtype != ir.U8:
		return s.at(i)
	case group == 16:
		return ir.F8E4M3ToF64(s.data[i])
	}
	return ir.E8M0ToF64(s.data[i])
}
