package ir

import (
	"fmt"
	"strings"
)

// DType is the type of a tensor's elements. The numbers are part of the command words, so they never change.
type DType uint8

// The dtypes. The 8- and 4-bit floats hold bit codes, one a byte.
const (
	Invalid DType = iota
	Bool
	I8
	I16
	I32
	I64
	U8
	U16
	U32
	U64
	F16
	BF16
	F32
	F64
	C64
	F8E4M3
	F8E5M2
	F4E2M1
	E8M0
	numDTypes
)

var dtypeInfo = [numDTypes]struct {
	name string
	size int
}{
	{"invalid", 0}, {"bool", 1}, {"i8", 1}, {"i16", 2}, {"i32", 4}, {"i64", 8}, {"u8", 1}, {"u16", 2}, {"u32", 4}, {"u64", 8},
	{"f16", 2}, {"bf16", 2}, {"f32", 4}, {"f64", 8}, {"c64", 8}, {"f8e4m3", 1}, {"f8e5m2", 1}, {"f4e2m1", 1}, {"e8m0", 1},
}

// String is the dtype's name: f32, i64, bool ...
func (d DType) String() string {
	if d >= numDTypes {
		return fmt.Sprintf("dtype(%d)", uint8(d))
	}
	return dtypeInfo[d].name
}

// Size is the number of bytes of one element, 0 for an unknown dtype.
func (d DType) Size() int {
	if d >= numDTypes {
		return 0
	}
	return dtypeInfo[d].size
}

// Valid says whether d names a dtype.
func (d DType) Valid() bool { return d > Invalid && d < numDTypes }

// ParseDType returns the dtype called name.
func ParseDType(name string) (DType, error) {
	for d := Bool; d < numDTypes; d++ {
		if dtypeInfo[d].name == name {
			return d, nil
		}
	}
	return Invalid, fmt.Errorf("unknown dtype %q, expected one of %v", name, AnyDType)
}

// DTypes lists every dtype in order of number.
func DTypes() []DType { return AnyDType.List() }

// DTypeSet is a set of dtypes, as a row's operands and a backend's capabilities declare them.
type DTypeSet uint32

// Set returns the set that holds ds.
func Set(ds ...DType) DTypeSet {
	var s DTypeSet
	for _, d := range ds {
		s |= 1 << d
	}
	return s
}

// The classes of dtypes that the op rows speak of.
var (
	Float     = Set(F16, BF16, F32, F64)
	SignedInt = Set(I8, I16, I32, I64)
	Unsigned  = Set(U8, U16, U32, U64)
	Int       = SignedInt | Unsigned
	Real      = Float | Int
	Numeric   = Real | Set(C64)
	Code      = Set(F8E4M3, F8E5M2, F4E2M1, E8M0)
	AnyDType  = Numeric | Code | Set(Bool)
	IndexT    = Int | Set(F32) // indices; f32-encoded ones are accepted on input
)

// Has says whether d is in the set.
func (s DTypeSet) Has(d DType) bool { return s>>d&1 != 0 }

// List returns the dtypes of the set in order of number.
func (s DTypeSet) List() []DType {
	var l []DType
	for d := Bool; d < numDTypes; d++ {
		if s.Has(d) {
			l = append(l, d)
		}
	}
	return l
}

// String lists the names: "f16 bf16 f32 f64".
func (s DTypeSet) String() string {
	var names []string
	for _, d := range s.List() {
		names = append(names, d.String())
	}
	return strings.Join(names, " ")
}
