package ir

import (
	"math"
	"math/bits"
)

// Float16 is an IEEE 754 binary16 value: 1 sign, 5 exponent and 10 mantissa bits.
type Float16 uint16

// BFloat16 is the upper half of an IEEE 754 binary32 value: 1 sign, 8 exponent and 7 mantissa bits.
type BFloat16 uint16

const (
	f16Inf, f16NaN   = 0x7C00, 0x7E00
	bf16Inf, bf16NaN = 0x7F80, 0x7FC0

	f8e4m3Max, f8e4m3NaN         = 0x7E, 0x7F
	f8e5m2Max, f8e5m2Inf, f8eNaN = 0x7B, 0x7C, 0x7E
	f4e2m1Max                    = 0x07
	e8m0Max, e8m0NaN             = 254, 255
)

// narrowBits rounds a finite |x|, given by its binary64 bits, to the nearest value of a format with man mantissa bits whose
// smallest normal number is 2^emin; ties go to even. The result is the code without its sign, computed as if exponents had no
// upper end, so that codes keep the order of the values and the caller finds overflow by one comparison.
func narrowBits(absBits uint64, man uint, emin int) uint64 {
	e := int(absBits>>52) - 1023
	if e == -1023 {
		return 0 // binary64 subnormals lie far below half the smallest value of every format here
	}
	m := absBits&(1<<52-1) | 1<<52
	shift, base := 52-man, uint64(0)
	if e < emin {
		if emin-e > 54 {
			return 0
		}
		shift += uint(emin - e)
	} else {
		base = uint64(e-emin) << man
	}
	if shift >= 54 {
		return 0
	}
	q, rem, half := m>>shift, m&(1<<shift-1), uint64(1)<<(shift-1)
	if rem > half || rem == half && q&1 == 1 {
		q++
	}
	return base + q // q carries the implicit bit, which steps the exponent field from its subnormal zero
}

// widenBits is the value of a code without sign: man mantissa bits, smallest normal number 2^emin, no reserved codes.
func widenBits(code uint64, man uint, emin int) float64 {
	f := code & (1<<man - 1)
	e := int(code >> man)
	if e == 0 {
		return math.Ldexp(float64(f), emin-int(man))
	}
	return math.Ldexp(float64(f|1<<man), e-1+emin-int(man))
}

func signAbs(x float64) (sign, absBits uint64) {
	b := math.Float64bits(x)
	return b >> 63, b &^ (1 << 63)
}

const f64Inf = uint64(0x7FF) << 52

func roundFloat(x float64, man uint, emin int, inf, nan uint16) uint16 {
	sign, abs := signAbs(x)
	s := uint16(sign) << 15
	switch {
	case abs > f64Inf:
		return s | nan
	case abs == f64Inf:
		return s | inf
	}
	return s | uint16(min(narrowBits(abs, man, emin), uint64(inf)))
}

// F16FromF64 rounds x to the nearest Float16, ties to even, in one rounding. Overflow gives an infinity; every NaN gives the
// quiet NaN 7E00 with the sign of x; subnormals are produced.
func F16FromF64(x float64) Float16 { return Float16(roundFloat(x, 10, -14, f16Inf, f16NaN)) }

// F16FromF32 is [F16FromF64] for a float32.
func F16FromF32(x float32) Float16 { return F16FromF64(float64(x)) }

// BF16FromF64 rounds x to the nearest BFloat16, ties to even, in one rounding. Overflow gives an infinity; every NaN gives the
// quiet NaN 7FC0 with the sign of x; subnormals are produced.
func BF16FromF64(x float64) BFloat16 { return BFloat16(roundFloat(x, 7, -126, bf16Inf, bf16NaN)) }

// BF16FromF32 is [BF16FromF64] for a float32.
func BF16FromF32(x float32) BFloat16 {
	b := math.Float32bits(x)
	if b&0x7FFFFFFF > 0x7F800000 {
		return BFloat16(b>>31<<15 | bf16NaN)
	}
	// Adding half a step less the parity bit rounds to even, and the carry runs into the exponent as it should.
	return BFloat16((b + 0x7FFF + b>>16&1) >> 16)
}

// Float32 is the value of h, which is exact. A NaN keeps sign and payload and becomes quiet.
func (h Float16) Float32() float32 {
	sign, e, f := uint32(h>>15)<<31, uint32(h>>10)&31, uint32(h)&1023
	switch {
	case e == 31 && f != 0:
		return math.Float32frombits(sign | 0x7FC00000 | f<<13)
	case e == 31:
		return math.Float32frombits(sign | 0x7F800000)
	case e == 0 && f == 0:
		return math.Float32frombits(sign)
	case e == 0:
		n := uint32(bits.Len32(f)) // the leading bit becomes the implicit one
		return math.Float32frombits(sign | (n+102)<<23 | f<<(24-n)&(1<<23-1))
	}
	return math.Float32frombits(sign | (e+112)<<23 | f<<13)
}

// Float64 is the value of h, which is exact.
func (h Float16) Float64() float64 { return float64(h.Float32()) }

// Float32 is the value of h, which is exact.
func (h BFloat16) Float32() float32 { return math.Float32frombits(uint32(h) << 16) }

// Float64 is the value of h, which is exact.
func (h BFloat16) Float64() float64 { return float64(h.Float32()) }

// F8E4M3FromF64 rounds x to the OCP 8-bit float with 4 exponent and 3 mantissa bits, ties to even, in one rounding. The largest
// value is 448 and there are no infinities: anything that rounds above, an infinity included, gives +-448 if saturate is set
// and NaN otherwise. NaN is 7F with the sign of x.
func F8E4M3FromF64(x float64, saturate bool) uint8 {
	sign, abs := signAbs(x)
	s := uint8(sign) << 7
	if abs > f64Inf {
		return s | f8e4m3NaN
	}
	if abs < f64Inf {
		if c := narrowBits(abs, 3, -6); c <= f8e4m3Max {
			return s | uint8(c)
		}
	}
	if saturate {
		return s | f8e4m3Max
	}
	return s | f8e4m3NaN
}

// F8E4M3ToF64 is the value of an f8e4m3 code.
func F8E4M3ToF64(c uint8) float64 {
	if c&0x7F == f8e4m3NaN {
		return math.Copysign(math.NaN(), signOf(c, 7))
	}
	return math.Copysign(widenBits(uint64(c&0x7F), 3, -6), signOf(c, 7))
}

// F8E5M2FromF64 rounds x to the OCP 8-bit float with 5 exponent and 2 mantissa bits, ties to even, in one rounding. The largest
// finite value is 57344; anything that rounds above gives it if saturate is set, and an infinity otherwise, also where x is
// infinite. NaN is 7E with the sign of x.
func F8E5M2FromF64(x float64, saturate bool) uint8 {
	sign, abs := signAbs(x)
	s := uint8(sign) << 7
	if abs > f64Inf {
		return s | f8eNaN
	}
	if abs < f64Inf {
		if c := narrowBits(abs, 2, -14); c <= f8e5m2Max {
			return s | uint8(c)
		}
	}
	if saturate {
		return s | f8e5m2Max
	}
	return s | f8e5m2Inf
}

// F8E5M2ToF64 is the value of an f8e5m2 code.
func F8E5M2ToF64(c uint8) float64 {
	switch m := c & 0x7F; {
	case m > f8e5m2Inf:
		return math.Copysign(math.NaN(), signOf(c, 7))
	case m == f8e5m2Inf:
		return math.Inf(int(signOf(c, 7)))
	default:
		return math.Copysign(widenBits(uint64(m), 2, -14), signOf(c, 7))
	}
}

// F4E2M1FromF64 rounds x to the 4-bit float with the values 0 0.5 1 1.5 2 3 4 6 of either sign, ties to even. It saturates at
// 6; NaN gives +0. The code lies in the low 4 bits.
func F4E2M1FromF64(x float64) uint8 {
	sign, abs := signAbs(x)
	s := uint8(sign) << 3
	switch {
	case abs > f64Inf:
		return 0
	case abs == f64Inf:
		return s | f4e2m1Max
	}
	return s | uint8(min(narrowBits(abs, 1, 0), f4e2m1Max))
}

// F4E2M1ToF64 is the value of the f4e2m1 code in the low 4 bits of c.
func F4E2M1ToF64(c uint8) float64 {
	return math.Copysign(widenBits(uint64(c&7), 1, 0), signOf(c, 3))
}

// E8M0FromF64 is the code of the least power of two 2^(code-127) that is not below x, at most 254; zero gives code 0. Negative
// numbers, infinities and NaN give 255, which stands for NaN.
func E8M0FromF64(x float64) uint8 {
	if !(x >= 0) || math.IsInf(x, 0) {
		return e8m0NaN
	}
	if x == 0 {
		return 0
	}
	m, e := math.Frexp(x) // x = m 2^e with m in [1/2, 1): a power of two itself is m = 1/2
	if m == 0.5 {
		e--
	}
	return uint8(max(0, min(e+127, e8m0Max)))
}

// E8M0ToF64 is the value of an e8m0 code: 2^(c-127), NaN for 255.
func E8M0ToF64(c uint8) float64 {
	if c == e8m0NaN {
		return math.NaN()
	}
	return math.Ldexp(1, int(c)-127)
}

func signOf(c uint8, bit uint) float64 { return 1 - 2*float64(c>>bit&1) }

// F64OddFromI64 converts v to float64, rounding to odd: where v does not fit, the lowest mantissa bit of the result is set.
// A later rounding to a format of at most 51 mantissa bits then gives what one rounding of v itself would give.
func F64OddFromI64(v int64) float64 {
	if v < 0 {
		return -F64OddFromU64(-uint64(v))
	}
	return F64OddFromU64(uint64(v))
}

// F64OddFromU64 is [F64OddFromI64] for unsigned integers.
func F64OddFromU64(v uint64) float64 {
	n := bits.Len64(v)
	if n <= 53 {
		return float64(v)
	}
	k := uint(n - 53)
	q := v >> k
	if q<<k != v {
		q |= 1
	}
	return math.Ldexp(float64(q), int(k))
}

// IntFromF64 converts x to an integer of the given width: the fraction is dropped, the range clamps, NaN gives 0. Unsigned
// 64-bit results come as their bits.
func IntFromF64(x float64, width uint, signed bool) int64 {
	if x != x {
		return 0
	}
	x = math.Trunc(x)
	if !signed {
		switch top := math.Ldexp(1, int(width)); {
		case x <= 0:
			return 0
		case x >= top:
			return int64(^uint64(0) >> (64 - width))
		}
		return int64(uint64(x))
	}
	switch top := math.Ldexp(1, int(width)-1); {
	case x >= top:
		return 1<<(width-1) - 1
	case x < -top:
		return -1 << (width - 1)
	}
	return int64(x)
}
