package ir

import (
	"encoding"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Enum is a string attribute with a fixed list of values; the command words carry the index.
type Enum interface {
	~string
	EnumValues() []string
}

// Number is an attribute that is an integer, read exactly, or a float. The zero Number is absent.
type Number struct {
	kind numberKind
	bits uint64
}

type numberKind uint32

const (
	numberAbsent numberKind = iota
	numberInt
	numberUint // above the int64 range
	numberFloat
)

// IntNumber and FloatNumber make Numbers.
func IntNumber(v int64) Number     { return Number{numberInt, uint64(v)} }
func FloatNumber(v float64) Number { return Number{numberFloat, math.Float64bits(v)} }

// Present says whether the attribute was given.
func (n Number) Present() bool { return n.kind != numberAbsent }

// Int returns the exact integer value: v, with big set where v holds the bits of a value of 2^63 or more; ok is false for a
// fraction, a NaN, and whatever neither int64 nor uint64 holds.
func (n Number) Int() (v int64, big, ok bool) {
	switch n.kind {
	case numberInt:
		return int64(n.bits), false, true
	case numberUint:
		return int64(n.bits), true, true
	case numberFloat:
		f := math.Float64frombits(n.bits)
		switch {
		case f != math.Trunc(f) || f < -0x1p63 || f >= 0x1p64:
			return 0, false, false
		case f >= 0x1p63:
			return int64(uint64(f)), true, true
		}
		return int64(f), false, true
	}
	return 0, false, false
}

// Float is the value as a float64.
func (n Number) Float() float64 {
	switch n.kind {
	case numberInt:
		return float64(int64(n.bits))
	case numberUint:
		return float64(n.bits)
	}
	return math.Float64frombits(n.bits)
}

func (n Number) String() string {
	switch n.kind {
	case numberAbsent:
		return "absent"
	case numberInt:
		return strconv.FormatInt(int64(n.bits), 10)
	case numberUint:
		return strconv.FormatUint(n.bits, 10)
	}
	return formatFloat(math.Float64frombits(n.bits))
}

// ParseNumber reads an integer exactly, else a float; "nan", "inf" and "-inf" are floats.
func ParseNumber(s string) (Number, error) {
	if s == "-0" { // which no integer is
		return FloatNumber(math.Copysign(0, -1)), nil
	}
	if v, err := strconv.ParseInt(s, 10, 64); err == nil {
		return IntNumber(v), nil
	}
	if v, err := strconv.ParseUint(s, 10, 64); err == nil {
		return Number{numberUint, v}, nil
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return Number{}, fmt.Errorf("%q is not a number", s)
	}
	return FloatNumber(v), nil
}

// Schema describes the attributes of a row, in the order of the words.
type Schema []Attr

// Attr is one attribute: a field of the row's Go struct, declared by its tags.
//
//	default:"-1"     used when a file, a case or a text does not name the attribute; "nil" for absent
//	min, max         inclusive range of a number, and of the entries of a list
//	c:"C1"           the constraint that an error about the value cites
//
// A field without a default is required.
type Attr struct {
	Name       string // snake_case
	Kind       AttrKind
	Enum       []string
	EnumType   string // Go name of the enum's type, which the C header uses too
	Default    string
	Required   bool
	Min, Max   float64
	Constraint string
	field      int
}

// AttrKind is the type of an attribute.
type AttrKind string

// The attribute types. OptInt is an integer that may be absent.
const (
	AttrInt     AttrKind = "int"
	AttrUint    AttrKind = "uint"
	AttrFloat   AttrKind = "float"
	AttrBool    AttrKind = "bool"
	AttrEnum    AttrKind = "enum"
	AttrString  AttrKind = "string"
	AttrDType   AttrKind = "dtype"
	AttrNumber  AttrKind = "number"
	AttrOptInt  AttrKind = "int?"
	AttrInts    AttrKind = "int list"
	AttrFloats  AttrKind = "float list"
	AttrDims    AttrKind = "dim list"
	AttrTensor  AttrKind = "tensor"
	AttrGraph   AttrKind = "graph"
	AttrUnknown AttrKind = "unknown"
)

// IntCoded is a list attribute with a text form of its own, whose command words are integers.
type IntCoded interface {
	encoding.TextMarshaler
	encoding.TextUnmarshaler
}

var (
	intCodedType = reflect.TypeFor[IntCoded]()
	intsType     = reflect.TypeFor[[]int64]()
)

var enumType = reflect.TypeFor[interface{ EnumValues() []string }]()

func attrKind(t reflect.Type) AttrKind {
	switch reflect.Zero(t).Interface().(type) {
	case DType:
		return AttrDType
	case Number:
		return AttrNumber
	case *int64:
		return AttrOptInt
	case []int, []int64:
		return AttrInts
	case []float64:
		return AttrFloats
	case []Dim:
		return AttrDims
	case *Tensor:
		return AttrTensor
	case *Graph:
		return AttrGraph
	}
	switch {
	case reflect.PointerTo(t).Implements(intCodedType) && t.ConvertibleTo(intsType):
		return AttrInts
	case t.Implements(enumType):
		return AttrEnum
	case t.Kind() == reflect.String:
		return AttrString
	case t.Kind() == reflect.Int || t.Kind() == reflect.Int64:
		return AttrInt
	case t.Kind() == reflect.Uint64:
		return AttrUint
	case t.Kind() == reflect.Float64:
		return AttrFloat
	case t.Kind() == reflect.Bool:
		return AttrBool
	}
	return AttrUnknown
}

// schemaOf reads the tags of attribute struct t, once per row.
func schemaOf(t reflect.Type) (Schema, error) {
	var s Schema
	for i := range t.NumField() {
		f := t.Field(i)
		a := Attr{Name: snake(f.Name), Kind: attrKind(f.Type), field: i, Min: math.Inf(-1), Max: math.Inf(1), Constraint: f.Tag.Get("c")}
		if a.Kind == AttrUnknown {
			return nil, fmt.Errorf("attribute %s has Go type %s, which no attribute kind holds", a.Name, f.Type)
		}
		if a.Kind == AttrEnum {
			a.Enum = reflect.Zero(f.Type).Interface().(interface{ EnumValues() []string }).EnumValues()
			a.EnumType = f.Type.Name()
		}
		def, ok := f.Tag.Lookup("default")
		a.Default, a.Required = def, !ok
		for tag, to := range map[string]*float64{"min": &a.Min, "max": &a.Max} {
			if v, ok := f.Tag.Lookup(tag); ok {
				x, err := strconv.ParseFloat(v, 64)
				if err != nil {
					return nil, fmt.Errorf("attribute %s: tag %s: %w", a.Name, tag, err)
				}
				*to = x
			}
		}
		s = append(s, a)
	}
	return s, nil
}

// snake turns KeepDims into keep_dims and LN1Eps into ln1_eps.
func snake(s string) string {
	var b strings.Builder
	r := []rune(s)
	for i, c := range r {
		if unicode.IsUpper(c) && i > 0 && (unicode.IsLower(r[i-1]) || i+1 < len(r) && unicode.IsLower(r[i+1])) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(c))
	}
	return b.String()
}

// check applies the declared range and enum to a filled attribute struct.
func (s Schema) check(attrs reflect.Value) error {
	for _, a := range s {
		f := attrs.Field(a.field)
		cite := a.Name
		if a.Constraint != "" {
			cite = a.Constraint + ": " + a.Name
		}
		switch a.Kind {
		case AttrEnum:
			if !slices.Contains(a.Enum, f.String()) {
				return fmt.Errorf("%s: got %q, expected one of %s", cite, f.String(), strings.Join(a.Enum, " "))
			}
		case AttrInt, AttrOptInt, AttrUint, AttrFloat, AttrInts, AttrFloats:
			for _, v := range numbers(f) {
				if v < a.Min || v > a.Max {
					return fmt.Errorf("%s: got %s, expected %s", cite, formatFloat(v), a.rangeText())
				}
			}
		}
	}
	return nil
}

func (a Attr) rangeText() string {
	switch {
	case math.IsInf(a.Max, 1):
		return ">= " + formatFloat(a.Min)
	case math.IsInf(a.Min, -1):
		return "<= " + formatFloat(a.Max)
	}
	return formatFloat(a.Min) + " to " + formatFloat(a.Max)
}

func numbers(f reflect.Value) []float64 {
	switch f.Kind() {
	case reflect.Int, reflect.Int64:
		return []float64{float64(f.Int())}
	case reflect.Uint64:
		return []float64{float64(f.Uint())}
	case reflect.Float64:
		return []float64{f.Float()}
	case reflect.Pointer:
		if f.IsNil() {
			return nil
		}
		return numbers(f.Elem())
	}
	var l []float64
	for i := range f.Len() {
		l = append(l, numbers(f.Index(i))...)
	}
	return l
}

func formatFloat(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
