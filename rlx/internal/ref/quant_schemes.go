package ref

import (
	"encoding/binary"
	"math"
	wide "math/bits"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// The block formats of GGUF files. A weight is the exact value of its formula, rounded once to f32: products of a scale, a sub-scale and
// a code have at most 25 bits, so f32 arithmetic gives it. The layouts are those of docs/spec/quant-schemes.md, section 4.

// ggufBlock is the bytes of one block.
type ggufBlock []byte

func (b ggufBlock) f16(at int) float32 { return ir.Float16(b.u16(at)).Float32() }
func (b ggufBlock) u16(at int) uint16  { return binary.LittleEndian.Uint16(b[at:]) }
func (b ggufBlock) u32(at int) uint32  { return binary.LittleEndian.Uint32(b[at:]) }
func (b ggufBlock) i8(at int) int      { return int(int8(b[at])) }

// nib is nibble i of the bytes from at on: the low one of a byte for even i.
func (b ggufBlock) nib(at, i int) int { return int(b[at+i/2]) >> (4 * (i % 2)) & 15 }

// half is the code of element i of 32 whose nibbles come in halves: 16 low ones, then 16 high ones.
func (b ggufBlock) half(at, i int) int { return int(b[at+i%16]) >> (4 * (i / 16)) & 15 }

// two is the code of element i of 256 in planes of two bits.
func (b ggufBlock) two(at, i int) int { return int(b[at+32*(i/128)+i%32]) >> (2 * (i % 128 / 32)) & 3 }

// bit is bit i/32 of byte i%32, the fifth or third bit of the codes of the K formats.
func (b ggufBlock) bit(at, i int) int { return int(b[at+i%32]) >> (i / 32) & 1 }

// pairs is the code of element i of 256 whose bytes hold two sub-blocks of 32.
func (b ggufBlock) pairs(at, i int) int { return int(b[at+32*(i/64)+i%32]) >> (4 * (i / 32 % 2)) & 15 }

// scaleMin are the 6-bit scale and minimum of sub-block j in 12 bytes.
func (b ggufBlock) scaleMin(at, j int) (scale, least float32) {
	s := b[at:]
	if j < 4 {
		return float32(s[j] & 63), float32(s[j+4] & 63)
	}
	return float32(s[j+4]&15 | s[j-4]>>6<<4), float32(s[j+4]>>4 | s[j]>>6<<4)
}

// ggufFormats give weight i of a block.
var ggufFormats = map[op.Scheme]func(b ggufBlock, i int) float32{
	"q4_0": func(b ggufBlock, i int) float32 { return b.f16(0) * float32(b.half(2, i)-8) },
	"q4_1": func(b ggufBlock, i int) float32 { return float32(b.f16(0)*float32(b.half(4, i))) + b.f16(2) },
	"q5_0": func(b ggufBlock, i int) float32 { return b.f16(0) * float32(b.half(6, i)+int(b.u32(2)>>i&1)<<4-16) },
	"q5_1": func(b ggufBlock, i int) float32 {
		return float32(b.f16(0)*float32(b.half(8, i)+int(b.u32(4)>>i&1)<<4)) + b.f16(2)
	},
	"q8_0":   func(b ggufBlock, i int) float32 { return b.f16(0) * float32(b.i8(2+i)) },
	"iq4_nl": func(b ggufBlock, i int) float32 { return b.f16(0) * float32(op.IQ4Values[b.half(2, i)]) },
	"mxfp4": func(b ggufBlock, i int) float32 {
		return float32(math.Ldexp(float64(op.FP4Doubled[b.half(1, i)]), int(b[0])-128))
	},
	"nvfp4": func(b ggufBlock, i int) float32 {
		r := i % 16
		code := b[4+8*(i/16)+r%8] >> (4 * (r / 8)) & 15
		return unsignedE4M3(b[i/16]) / 2 * float32(op.FP4Doubled[code])
	},
	"q2_k": func(b ggufBlock, i int) float32 {
		s := b[i/16]
		return float32(b.f16(80)*float32(s&15)*float32(b.two(16, i))) - float32(b.f16(82)*float32(s>>4))
	},
	"q3_k": func(b ggufBlock, i int) float32 {
		j := i / 16
		low, high := int(b[96+j%8])>>(4*(j/8))&15, int(b[104+j%4])>>(2*(j/4))&3
		return b.f16(108) * float32(low+high<<4-32) * float32(b.two(32, i)+b.bit(0, i)<<2-4)
	},
	"q4_k": func(b ggufBlock, i int) float32 {
		scale, least := b.scaleMin(4, i/32)
		return float32(b.f16(0)*scale*float32(b.pairs(16, i))) - float32(b.f16(2)*least)
	},
	"q5_k": func(b ggufBlock, i int) float32 {
		scale, least := b.scaleMin(4, i/32)
		return float32(b.f16(0)*scale*float32(b.pairs(48, i)+b.bit(16, i)<<4)) - float32(b.f16(2)*least)
	},
	"q6_k": func(b ggufBlock, i int) float32 {
		part, t, l := i/128, i%128/32, i%32
		low, high := int(b[64*part+32*(t%2)+l])>>(4*(t/2))&15, int(b[128+32*part+l])>>(2*t)&3
		return b.f16(208) * float32(b.i8(192+i/16)) * float32(low+high<<4-32)
	},
	"q8_k": func(b ggufBlock, i int) float32 { return math.Float32frombits(b.u32(0)) * float32(b.i8(4+i)) },
	"iq4_xs": func(b ggufBlock, i int) float32 {
		j := i / 32
		scale := b.nib(4, j) + int(b.u16(2)>>(2*j)&3)<<4 - 32
		return b.f16(0) * float32(scale) * float32(op.IQ4Values[b.half(8+16*j, i%32)])
	},
	"iq2_xxs": func(b ggufBlock, i int) float32 {
		at := 2 + 8*(i/32)
		a, r := b.u32(at+4), i%32/8
		return b.f16(0) * (0.5 + float32(a>>28)) / 4 * gridIQ2XXS.at(int(b[at+r]), i%8, parity(a>>(7*r)))
	},
	"iq2_xs": func(b ggufBlock, i int) float32 {
		v := b.u16(2 + 2*(i/8))
		return b.f16(0) * (0.5 + float32(b.nib(66, i/16))) / 4 * gridIQ2XS.at(int(v&511), i%8, parity(uint32(v>>9)))
	},
	"iq2_s": func(b ggufBlock, i int) float32 {
		t := i / 8
		row := int(b[2+t]) + 256*(int(b[66+t/4])>>(2*(t%4))&3)
		return b.f16(0) * (0.5 + float32(b.nib(74, i/16))) / 4 * gridIQ2S.at(row, i%8, b[34+t])
	},
	"iq3_xxs": func(b ggufBlock, i int) float32 {
		a, r := b.u32(66+4*(i/32)), i%32/8
		sign := parity(a>>(7*r)) >> (i % 8) << (i % 4)
		return b.f16(0) * (0.5 + float32(a>>28)) / 2 * gridIQ3XXS.at(int(b[2+i/4]), i%4, sign)
	},
	"iq3_s": func(b ggufBlock, i int) float32 {
		row := int(b[2+i/4]) + 256*(int(b[66+i/32])>>(i/4%8)&1)
		sign := b[74+i/8] >> (i % 8) << (i % 4)
		return b.f16(0) * float32(1+2*b.nib(106, i/32)) * gridIQ3S.at(row, i%4, sign)
	},
	"iq1_s": func(b ggufBlock, i int) float32 {
		h, r := int(b.u16(34+2*(i/32))), i%32/8
		row := int(b[2+i/8]) + 256*(h>>(3*r)&7)
		return b.f16(0) * float32(2*(h>>12&7)+1) * (gridIQ1.at(row, i%8, 0) + shifted(h>>15))
	},
	"iq1_m": func(b ggufBlock, i int) float32 {
		t := i / 8
		d := b.u16(48)>>12 | b.u16(50)>>12<<4 | b.u16(52)>>12<<8 | b.u16(54)>>12<<12
		g := b.nib(32, t)
		scale := int(b.u16(48+2*(i/64))) >> (3 * (i / 16 % 4)) & 7
		return ir.Float16(d).Float32() * float32(2*scale+1) * (gridIQ1.at(int(b[t])+256*(g&7), i%8, 0) + shifted(g>>3))
	},
	"tq2_0": func(b ggufBlock, i int) float32 { return b.f16(64) * float32(b.two(0, i)-1) },
	"tq1_0": func(b ggufBlock, i int) float32 {
		switch {
		case i < 160:
			return b.f16(52) * trit(b[i%32], i/32)
		case i < 240:
			return b.f16(52) * trit(b[32+(i-160)%16], (i-160)/16)
		}
		return b.f16(52) * trit(b[48+(i-240)%4], (i-240)/4)
	},
}

// trit is digit k of the base-3 number in a byte, less 1.
func trit(v byte, k int) float32 {
	for range k {
		v *= 3
	}
	return float32(int(v)*3>>8 - 1)
}

// shifted is what the iq1 formats add to a grid entry.
func shifted(negative int) float32 {
	if negative != 0 {
		return -0.125
	}
	return 0.125
}

// unsignedE4M3 is a scale of nvfp4: bit 7 is not used, and 0x7F counts as 0.
func unsignedE4M3(s byte) float32 {
	e, f := int(s>>3&15), float64(s&7)
	switch {
	case s == 0x7f:
		return 0
	case e == 0:
		return float32(math.Ldexp(f, -9))
	}
	return float32(math.Ldexp(8+f, e-10))
}

// parity is the sign byte of the low 7 bits of k: they, and their parity.
func parity(k uint32) byte { return byte(k&127) | byte(wide.OnesCount32(k&127)&1)<<7 }

// codeBook is a grid by its place in op.CodeBooks.
type codeBook int

const (
	gridIQ2XXS codeBook = iota
	gridIQ2XS
	gridIQ2S
	gridIQ3XXS
	gridIQ3S
	gridIQ1
)

// at is entry e of a row, negative where bit e of sign is set.
func (g codeBook) at(row, e int, sign byte) float32 {
	v := float32(op.CodeBooks()[g].At(row, e))
	if sign>>e&1 != 0 {
		return -v
	}
	return v
}

// ggufWeights decodes n weights that lie in whole blocks.
func ggufWeights(s op.Scheme, data []byte, n int) []float64 {
	elements, size := s.Block()
	weight := ggufFormats[s]
	w := make([]float64, n)
	for i := range w {
		at := i / int(elements) * int(size)
		w[i] = float64(weight(ggufBlock(data[at:at+int(size)]), i%int(elements)))
	}
	return w
}
