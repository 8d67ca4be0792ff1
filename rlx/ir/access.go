package ir

import (
	"encoding/binary"
	"math"
)

// Float is element i as a float64: bool as 0 or 1, codes as their value, integers rounded.
func (t *Tensor) Float(i int) float64 { return FloatAt(t.dtype, t.Bytes(), i) }

// Int is element i as an int64: the bits of a u64, a float truncated, a bool as 0 or 1.
func (t *Tensor) Int(i int) int64 { return IntAt(t.dtype, t.Bytes(), i) }

// FloatAt reads element i of b as a float64.
func FloatAt(d DType, b []byte, i int) float64 {
	switch d {
	case F32:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:])))
	case F64:
		return math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
	case F16:
		return float64(Float16(binary.LittleEndian.Uint16(b[2*i:])).Float32())
	case BF16:
		return float64(BFloat16(binary.LittleEndian.Uint16(b[2*i:])).Float32())
	case C64:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(b[8*i:])))
	case F8E4M3:
		return F8E4M3ToF64(b[i])
	case F8E5M2:
		return F8E5M2ToF64(b[i])
	case F4E2M1:
		return F4E2M1ToF64(b[i])
	case E8M0:
		return E8M0ToF64(b[i])
	case U64:
		return float64(binary.LittleEndian.Uint64(b[8*i:]))
	}
	return float64(IntAt(d, b, i))
}

// IntAt reads element i of b as an int64.
func IntAt(d DType, b []byte, i int) int64 {
	switch d {
	case Bool:
		if b[i] != 0 {
			return 1
		}
		return 0
	case I8:
		return int64(int8(b[i]))
	case U8:
		return int64(b[i])
	case I16:
		return int64(int16(binary.LittleEndian.Uint16(b[2*i:])))
	case U16:
		return int64(binary.LittleEndian.Uint16(b[2*i:]))
	case I32:
		return int64(int32(binary.LittleEndian.Uint32(b[4*i:])))
	case U32:
		return int64(binary.LittleEndian.Uint32(b[4*i:]))
	case I64, U64:
		return int64(binary.LittleEndian.Uint64(b[8*i:]))
	}
	return int64(FloatAt(d, b, i))
}

// PutFloat writes v to element i of b, rounded once to d; codes saturate. Integer dtypes take the low bits of the truncated value.
func PutFloat(d DType, b []byte, i int, v float64) {
	switch d {
	case F32:
		binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(float32(v)))
	case F64:
		binary.LittleEndian.PutUint64(b[8*i:], math.Float64bits(v))
	case F16:
		binary.LittleEndian.PutUint16(b[2*i:], uint16(F16FromF64(v)))
	case BF16:
		binary.LittleEndian.PutUint16(b[2*i:], uint16(BF16FromF64(v)))
	case C64:
		binary.LittleEndian.PutUint64(b[8*i:], uint64(math.Float32bits(float32(v))))
	case F8E4M3:
		b[i] = F8E4M3FromF64(v, true)
	case F8E5M2:
		b[i] = F8E5M2FromF64(v, true)
	case F4E2M1:
		b[i] = F4E2M1FromF64(v)
	case E8M0:
		b[i] = E8M0FromF64(v)
	default:
		PutInt(d, b, i, int64(v))
	}
}

// PutInt writes the low bits of v to element i of b; floats take its value.
func PutInt(d DType, b []byte, i int, v int64) {
	switch d.Size() {
	case 1:
		if d == Bool && v != 0 {
			v = 1
		}
		if Code.Has(d) {
			PutFloat(d, b, i, float64(v))
			return
		}
		b[i] = byte(v)
	case 2:
		if Float.Has(d) {
			PutFloat(d, b, i, float64(v))
			return
		}
		binary.LittleEndian.PutUint16(b[2*i:], uint16(v))
	case 4:
		if Float.Has(d) {
			PutFloat(d, b, i, float64(v))
			return
		}
		binary.LittleEndian.PutUint32(b[4*i:], uint32(v))
	case 8:
		if Float.Has(d) || d == C64 {
			PutFloat(d, b, i, float64(v))
			return
		}
		binary.LittleEndian.PutUint64(b[8*i:], uint64(v))
	}
}
