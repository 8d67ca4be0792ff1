package onnx

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// Reasons a [DecodeError] wraps; test them with errors.Is.
var (
	// ErrNotONNX: the bytes are some other kind of file, or no model at all.
	ErrNotONNX = errors.New("not an ONNX model")
	// ErrTruncated: a field or a length reaches past the end of what encloses it.
	ErrTruncated = errors.New("truncated")
	// ErrWireType: a known field has a wire type that its declaration does not allow.
	ErrWireType = errors.New("wrong wire type")
	// ErrVarint: a varint is longer than ten bytes or larger than its field's type.
	ErrVarint = errors.New("varint out of range")
	// ErrTag: a field number outside 1..2^29-1, a reserved wire type, or groups that do not match.
	ErrTag = errors.New("bad field tag")
	// ErrDuplicate: a sub-message that may occur once occurs again.
	ErrDuplicate = errors.New("duplicate: occurs more than once")
	// ErrDepth: graphs inside graphs (or unknown groups inside groups) more than [MaxDepth] deep.
	ErrDepth = errors.New("nested too deeply")
	// ErrName: a name is not UTF-8, or holds a NUL.
	ErrName = errors.New("bad name")
	// ErrMemory: the decoded structures would need more memory than the limit.
	ErrMemory = errors.New("decoded model needs more memory than the limit")
)

// MaxDepth is the number of graphs that may lie inside one another, the model's own graph included.
const MaxDepth = 64

// DecodeError says where in the file decoding stopped, and why.
type DecodeError struct {
	Offset int64  // of the field's tag, in bytes from the start of the model
	Field  string // path from the root, e.g. "ModelProto.graph.node[3].name"
	Err    error  // wraps one of this package's Err values
}

// Error implements error.
func (e *DecodeError) Error() string {
	return fmt.Sprintf("onnx: %s at byte %d: %v", e.Field, e.Offset, e.Err)
}

// Unwrap returns the reason.
func (e *DecodeError) Unwrap() error { return e.Err }

// kind is how a field is declared; it decides which wire types are accepted.
type kind uint8

const (
	kindUnknown kind = iota
	kindVarint
	kindFixed32
	kindBytes    // string, bytes or repeated of them
	kindMessage  // at most once
	kindMessages // repeated
	kindVarints  // repeated, packed or not
	kindFixed32s
	kindFixed64s
)

// maxField is one more than the largest field number this package reads.
const maxField = 32

type fieldSpec struct {
	name string
	kind kind
}

// schema gives the fields of one message that are read; all others are skipped.
type schema struct {
	name   string
	fields [maxField]fieldSpec
}

func (s *schema) known(num protowire.Number) bool {
	return num < maxField && s.fields[num].kind != kindUnknown
}

// span is a message body: data[lo:hi].
type span struct{ lo, hi int }

// field is one occurrence of a field on the wire.
type field struct {
	num protowire.Number
	typ protowire.Type
	tag int    // offset of the tag
	val span   // payload of a length-delimited field, else the bytes of the value
	v   uint64 // value of a varint or fixed field
}

// decoder reads one model. left is what may still be allocated.
type decoder struct {
	data  []byte
	left  int64
	limit int64
}

func fail(at int, err error) *DecodeError { return &DecodeError{Offset: int64(at), Err: err} }

// wireError turns a negative length from protowire into one of our reasons.
func wireError(n int, otherwise error) error {
	if errors.Is(protowire.ParseError(n), io.ErrUnexpectedEOF) {
		return ErrTruncated
	}
	return otherwise
}

// charge books n elements of size bytes each, before they are allocated. Real counts are charged, never claimed ones;
// the extra eighth covers the allocator's size classes.
func (d *decoder) charge(at, n, size int) *DecodeError {
	if n == 0 || size == 0 {
		return nil
	}
	// n is at most len(data) and size a struct's size, so the product stays far inside int64.
	need := int64(n) * int64(size)
	need += need/8 + 8
	if need > d.left {
		return fail(at, fmt.Errorf("%w of %d bytes for a file of %d", ErrMemory, d.limit, len(d.data)))
	}
	d.left -= need
	return nil
}

// next reads the field at pos in a body that ends at end, and returns the position after it.
func (d *decoder) next(pos, end int) (field, int, *DecodeError) {
	f := field{tag: pos}
	b := d.data[pos:end]
	tag, n := protowire.ConsumeVarint(b)
	if n < 0 {
		return f, pos, fail(pos, wireError(n, ErrVarint))
	}
	// A tag is a 32-bit number; DecodeTag would drop what is above.
	if tag>>3 < uint64(protowire.MinValidNumber) || tag>>3 > uint64(protowire.MaxValidNumber) {
		return f, pos, fail(pos, fmt.Errorf("%w: field number %d", ErrTag, tag>>3))
	}
	f.num, f.typ = protowire.DecodeTag(tag)
	b, pos = b[n:], pos+n
	switch f.typ {
	case protowire.VarintType:
		f.v, n = protowire.ConsumeVarint(b)
	case protowire.Fixed32Type:
		var v uint32
		v, n = protowire.ConsumeFixed32(b)
		f.v = uint64(v)
	case protowire.Fixed64Type:
		f.v, n = protowire.ConsumeFixed64(b)
	case protowire.BytesType:
		var body []byte
		body, n = protowire.ConsumeBytes(b)
		if n >= 0 {
			f.val = span{pos + n - len(body), pos + n}
			return f, pos + n, nil
		}
	case protowire.StartGroupType:
		after, err := d.skipGroup(f.num, pos, end)
		return f, after, err
	default:
		return f, pos, fail(f.tag, fmt.Errorf("%w: wire type %d", ErrTag, f.typ))
	}
	if n < 0 {
		return f, pos, fail(f.tag, wireError(n, ErrVarint))
	}
	f.val = span{pos, pos + n}
	return f, pos + n, nil
}

// skipGroup passes over a group (an encoding that ONNX never uses, but an unknown field may) without recursion.
func (d *decoder) skipGroup(num protowire.Number, pos, end int) (int, *DecodeError) {
	var open [MaxDepth]protowire.Number
	open[0] = num
	depth := 1
	for depth > 0 {
		n, typ, k := protowire.ConsumeTag(d.data[pos:end])
		if k < 0 {
			return pos, fail(pos, wireError(k, ErrTag))
		}
		at := pos
		pos += k
		switch typ {
		case protowire.EndGroupType:
			depth--
			if open[depth] != n {
				return pos, fail(at, fmt.Errorf("%w: group %d ends inside group %d", ErrTag, n, open[depth]))
			}
		case protowire.StartGroupType:
			if depth == MaxDepth {
				return pos, fail(at, ErrDepth)
			}
			open[depth] = n
			depth++
		default:
			k = protowire.ConsumeFieldValue(n, typ, d.data[pos:end])
			if k < 0 {
				return pos, fail(at, wireError(k, ErrVarint))
			}
			pos += k
		}
	}
	return pos, nil
}

// check holds a field against its declaration.
func check(k kind, typ protowire.Type) error {
	var ok bool
	switch k {
	case kindVarint:
		ok = typ == protowire.VarintType
	case kindFixed32:
		ok = typ == protowire.Fixed32Type
	case kindBytes, kindMessage, kindMessages:
		ok = typ == protowire.BytesType
	case kindVarints:
		ok = typ == protowire.VarintType || typ == protowire.BytesType
	case kindFixed32s:
		ok = typ == protowire.Fixed32Type || typ == protowire.BytesType
	case kindFixed64s:
		ok = typ == protowire.Fixed64Type || typ == protowire.BytesType
	}
	if !ok {
		return fmt.Errorf("%w %d", ErrWireType, typ)
	}
	return nil
}

// each calls fn for every known field of a body, in order; i numbers the occurrences of that field. An error gets the
// field's name put in front, which is how paths come about without costing anything while all goes well.
func (d *decoder) each(s span, m *schema, fn func(f field, i int) *DecodeError) *DecodeError {
	var seen [maxField]int
	for pos := s.lo; pos < s.hi; {
		f, after, err := d.next(pos, s.hi)
		pos = after
		if !m.known(f.num) {
			if err != nil {
				return m.at(err, f, 0)
			}
			continue
		}
		i := seen[f.num]
		seen[f.num]++
		k := m.fields[f.num].kind
		if err == nil {
			if e := check(k, f.typ); e != nil {
				err = fail(f.tag, e)
			} else if k == kindMessage && i > 0 {
				err = fail(f.tag, ErrDuplicate)
			} else {
				err = fn(f, i)
			}
		}
		if err != nil {
			return m.at(err, f, i)
		}
	}
	return nil
}

// at puts a field's name in front of an error's path.
func (m *schema) at(err *DecodeError, f field, i int) *DecodeError {
	name := "a field tag" // the number itself could not be read
	switch {
	case m.known(f.num):
		name = m.fields[f.num].name
		if k := m.fields[f.num].kind; k == kindMessages || (k == kindBytes && i > 0) {
			name = fmt.Sprintf("%s[%d]", name, i)
		}
	case f.num > 0:
		name = fmt.Sprintf("unknown field %d", f.num)
	}
	if err.Field != "" {
		name += "." + err.Field
	}
	err.Field = name
	return err
}

// counts is how many elements of each known field a body really holds.
type counts [maxField]int

// count walks a body once, so that slices can be made with their final length.
func (d *decoder) count(s span, m *schema) (counts, *DecodeError) {
	var c counts
	err := d.each(s, m, func(f field, _ int) *DecodeError {
		n := 1
		if f.typ == protowire.BytesType {
			switch m.fields[f.num].kind {
			case kindVarints:
				n = countVarints(d.data[f.val.lo:f.val.hi])
			case kindFixed32s:
				n = (f.val.hi - f.val.lo) / 4
			case kindFixed64s:
				n = (f.val.hi - f.val.lo) / 8
			}
		}
		c[f.num] += n
		return nil
	})
	return c, err
}

// countVarints counts the bytes that end a varint; what is malformed shows when the values are read.
func countVarints(b []byte) int {
	n := 0
	for _, x := range b {
		if x < 0x80 {
			n++
		}
	}
	return n
}

// text copies a string out of the file, so that names do not keep it in memory.
func (d *decoder) text(f field) (string, *DecodeError) {
	if err := d.charge(f.tag, f.val.hi-f.val.lo, 1); err != nil {
		return "", err
	}
	return string(d.data[f.val.lo:f.val.hi]), nil
}

// name is text that names something: UTF-8 without NUL, so that it can be printed, compared and written to other formats.
func (d *decoder) name(f field) (string, *DecodeError) {
	b := d.data[f.val.lo:f.val.hi]
	if !utf8.Valid(b) || bytes.IndexByte(b, 0) >= 0 {
		return "", fail(f.tag, fmt.Errorf("%w: %q, expected UTF-8 without NUL", ErrName, b[:min(len(b), 64)]))
	}
	return d.text(f)
}

// int32Of narrows a varint. Writers put negative numbers down as ten bytes (sign-extended) or five; both are accepted.
func int32Of(v uint64) (int32, bool) {
	if v>>32 == 0 || int64(v) == int64(int32(v)) {
		return int32(uint32(v)), true
	}
	return 0, false
}

// integers calls fn for each value of a kindVarints field.
func (d *decoder) integers(f field, fn func(v uint64, at int) *DecodeError) *DecodeError {
	if f.typ == protowire.VarintType {
		return fn(f.v, f.tag)
	}
	for pos := f.val.lo; pos < f.val.hi; {
		v, n := protowire.ConsumeVarint(d.data[pos:f.val.hi])
		if n < 0 {
			return fail(pos, wireError(n, ErrVarint))
		}
		if err := fn(v, pos); err != nil {
			return err
		}
		pos += n
	}
	return nil
}

// packed checks that a packed field of fixed-width values has no odd bytes at its end, and returns its bytes.
func (d *decoder) packed(f field, width int) ([]byte, *DecodeError) {
	if f.typ == protowire.BytesType && (f.val.hi-f.val.lo)%width != 0 {
		return nil, fail(f.tag, fmt.Errorf("%w: %d bytes of %d-byte values", ErrTruncated, f.val.hi-f.val.lo, width))
	}
	return d.data[f.val.lo:f.val.hi:f.val.hi], nil
}
