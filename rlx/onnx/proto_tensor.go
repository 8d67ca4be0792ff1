package onnx

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"

	"google.golang.org/protobuf/encoding/protowire"
)

// Reasons why [TensorProto.Bytes] gives no data; test them with errors.Is.
var (
	// ErrExternal: the data lie in another file, which ExternalData describes.
	ErrExternal = errors.New("data are external")
	// ErrTensor: data type, dims and data do not belong together.
	ErrTensor = errors.New("bad tensor")
)

// The element types of a tensor: TensorProto.DataType of onnx.proto.
const (
	DataUndefined      int32 = 0
	DataFloat          int32 = 1
	DataUint8          int32 = 2
	DataInt8           int32 = 3
	DataUint16         int32 = 4
	DataInt16          int32 = 5
	DataInt32          int32 = 6
	DataInt64          int32 = 7
	DataString         int32 = 8
	DataBool           int32 = 9
	DataFloat16        int32 = 10
	DataDouble         int32 = 11
	DataUint32         int32 = 12
	DataUint64         int32 = 13
	DataComplex64      int32 = 14
	DataComplex128     int32 = 15
	DataBfloat16       int32 = 16
	DataFloat8E4M3FN   int32 = 17
	DataFloat8E4M3FNUZ int32 = 18
	DataFloat8E5M2     int32 = 19
	DataFloat8E5M2FNUZ int32 = 20
	DataUint4          int32 = 21
	DataInt4           int32 = 22
	DataFloat4E2M1     int32 = 23
	DataFloat8E8M0     int32 = 24
	DataUint2          int32 = 25
	DataInt2           int32 = 26
	DataFloat6E2M3     int32 = 27
	DataFloat6E3M2     int32 = 28
)

// typedField numbers the *_data fields of TensorProto.
type typedField uint8

const (
	noField    typedField = 0
	floatData  typedField = 4
	int32Data  typedField = 5
	int64Data  typedField = 7
	doubleData typedField = 10
	uint64Data typedField = 11
)

// stringData is the field of STRING tensors, which have no byte form.
const stringData protowire.Number = 6

// dataTypes gives, for each element type, its bits and the field that holds it when there are no raw data.
var dataTypes = [...]struct {
	name   string
	bits   int
	field  typedField
	signed bool
}{
	DataFloat:          {"FLOAT", 32, floatData, false},
	DataUint8:          {"UINT8", 8, int32Data, false},
	DataInt8:           {"INT8", 8, int32Data, true},
	DataUint16:         {"UINT16", 16, int32Data, false},
	DataInt16:          {"INT16", 16, int32Data, true},
	DataInt32:          {"INT32", 32, int32Data, true},
	DataInt64:          {"INT64", 64, int64Data, true},
	DataString:         {"STRING", 0, noField, false},
	DataBool:           {"BOOL", 8, int32Data, false},
	DataFloat16:        {"FLOAT16", 16, int32Data, false},
	DataDouble:         {"DOUBLE", 64, doubleData, false},
	DataUint32:         {"UINT32", 32, uint64Data, false},
	DataUint64:         {"UINT64", 64, uint64Data, false},
	DataComplex64:      {"COMPLEX64", 64, floatData, false},
	DataComplex128:     {"COMPLEX128", 128, doubleData, false},
	DataBfloat16:       {"BFLOAT16", 16, int32Data, false},
	DataFloat8E4M3FN:   {"FLOAT8E4M3FN", 8, int32Data, false},
	DataFloat8E4M3FNUZ: {"FLOAT8E4M3FNUZ", 8, int32Data, false},
	DataFloat8E5M2:     {"FLOAT8E5M2", 8, int32Data, false},
	DataFloat8E5M2FNUZ: {"FLOAT8E5M2FNUZ", 8, int32Data, false},
	DataUint4:          {"UINT4", 4, int32Data, false},
	DataInt4:           {"INT4", 4, int32Data, true},
	DataFloat4E2M1:     {"FLOAT4E2M1", 4, int32Data, false},
	DataFloat8E8M0:     {"FLOAT8E8M0", 8, int32Data, false},
	DataUint2:          {"UINT2", 2, int32Data, false},
	DataInt2:           {"INT2", 2, int32Data, true},
	DataFloat6E2M3:     {"FLOAT6E2M3", 6, int32Data, false},
	DataFloat6E3M2:     {"FLOAT6E3M2", 6, int32Data, false},
}

// DataTypeName returns the name that onnx.proto gives an element type, e.g. "FLOAT" for 1.
func DataTypeName(dataType int32) string {
	if dataType >= 0 && int(dataType) < len(dataTypes) && dataTypes[dataType].name != "" {
		return dataTypes[dataType].name
	}
	return fmt.Sprintf("data type %d", dataType)
}

// DataLocation says whether a tensor's data are in the model file.
type DataLocation int32

// The data locations.
const (
	LocationDefault  DataLocation = 0
	LocationExternal DataLocation = 1
)

// TensorProto is a constant. Its data are read with [TensorProto.Bytes] (or [TensorProto.Strings]).
type TensorProto struct {
	Name         string
	Dims         []int64
	DataType     int32
	DataLocation DataLocation
	ExternalData []StringPair // location, offset, length, checksum

	// Typed data stay encoded until they are asked for: a one-byte varint is an eight-byte int64, and decoding must
	// not multiply a file. body is the whole message, of which raw is a part.
	body, raw []byte
	typed     uint32 // bit n: field n holds something
	hasRaw    bool
	segmented bool
}

var tensorSchema = schema{"TensorProto", [maxField]fieldSpec{
	1: {"dims", kindVarints}, 2: {"data_type", kindVarint}, 3: {"segment", kindMessage}, 4: {"float_data", kindFixed32s},
	5: {"int32_data", kindVarints}, 6: {"string_data", kindBytes}, 7: {"int64_data", kindVarints}, 8: {"name", kindBytes},
	9: {"raw_data", kindBytes}, 10: {"double_data", kindFixed64s}, 11: {"uint64_data", kindVarints},
	13: {"external_data", kindMessages}, 14: {"data_location", kindVarint},
}}

func (d *decoder) tensor(s span, t *TensorProto) *DecodeError {
	n, err := d.count(s, &tensorSchema)
	if err != nil {
		return err
	}
	if t.Dims, err = makeSlice[int64](d, s.lo, n[1]); err != nil {
		return err
	}
	if t.ExternalData, err = makeSlice[StringPair](d, s.lo, n[13]); err != nil {
		return err
	}
	t.Dims = t.Dims[:0]
	t.body = d.data[s.lo:s.hi:s.hi]
	return d.each(s, &tensorSchema, func(f field, i int) (err *DecodeError) {
		switch f.num {
		case 1:
			return d.integers(f, func(v uint64, _ int) *DecodeError {
				t.Dims = append(t.Dims, int64(v))
				return nil
			})
		case 2, 14:
			v, ok := int32Of(f.v)
			if !ok {
				return fail(f.tag, ErrVarint)
			}
			if f.num == 2 {
				t.DataType = v
			} else {
				t.DataLocation = DataLocation(v)
			}
		case 3:
			t.segmented = true
		case 8:
			t.Name, err = d.name(f)
		case 9:
			t.hasRaw, t.raw = true, d.data[f.val.lo:f.val.hi]
		case 13:
			err = d.pair(f.val, &t.ExternalData[i])
		default:
			err = d.typedData(f, t)
		}
		return err
	})
}

// typedData checks an occurrence of a *_data field, so that later reading finds it well-formed.
func (d *decoder) typedData(f field, t *TensorProto) (err *DecodeError) {
	if f.typ != protowire.BytesType || f.val.hi > f.val.lo || f.num == stringData {
		t.typed |= 1 << f.num
	}
	switch tensorSchema.fields[f.num].kind {
	case kindFixed32s:
		_, err = d.packed(f, 4)
	case kindFixed64s:
		_, err = d.packed(f, 8)
	case kindVarints:
		narrow := typedField(f.num) == int32Data
		err = d.integers(f, func(v uint64, at int) *DecodeError {
			if _, ok := int32Of(v); narrow && !ok {
				return fail(at, ErrVarint)
			}
			return nil
		})
	}
	return err
}

func (t *TensorProto) fail(reason error, format string, args ...any) error {
	return fmt.Errorf("onnx: tensor %q: %w: %s", t.Name, reason, fmt.Sprintf(format, args...))
}

// NumElements returns the product of the dims: 1 for a scalar, 0 when any of them is 0. A negative dim is an error that wraps
// [ErrTensor], and so is a product beyond int64, where zeros are left out: strides of such a shape would overflow.
func (t *TensorProto) NumElements() (int64, error) {
	n, zero := uint64(1), false
	for i, dim := range t.Dims {
		if dim < 0 {
			return 0, t.fail(ErrTensor, "dims[%d] is %d", i, dim)
		}
		if dim == 0 {
			zero = true
			continue
		}
		hi, lo := bits.Mul64(n, uint64(dim))
		if hi != 0 || lo > math.MaxInt64 {
			return 0, t.fail(ErrTensor, "dims %d overflow int64", t.Dims)
		}
		n = lo
	}
	if zero {
		return 0, nil
	}
	return int64(n), nil
}

// ByteSize returns how many bytes the tensor's elements take in raw data, the last byte filled up for elements of less
// than 8 bits. Strings, unknown element types and sizes beyond int64 are errors that wrap [ErrTensor].
func (t *TensorProto) ByteSize() (int64, error) {
	n, err := t.NumElements()
	if err != nil {
		return 0, err
	}
	if t.DataType <= 0 || int(t.DataType) >= len(dataTypes) || dataTypes[t.DataType].bits == 0 {
		return 0, t.fail(ErrTensor, "%s has no byte size", DataTypeName(t.DataType))
	}
	hi, lo := bits.Mul64(uint64(n), uint64(dataTypes[t.DataType].bits))
	if hi >= 4 { // 2^66 bits are 2^63 bytes
		return 0, t.fail(ErrTensor, "dims %d of %s overflow int64 bytes", t.Dims, DataTypeName(t.DataType))
	}
	size := hi<<61 | lo>>3
	if lo&7 != 0 {
		size++
	}
	if size > math.MaxInt64 {
		return 0, t.fail(ErrTensor, "dims %d of %s overflow int64 bytes", t.Dims, DataTypeName(t.DataType))
	}
	return int64(size), nil
}

// HasData reports whether the model file itself holds data of this tensor, raw or typed.
func (t *TensorProto) HasData() bool {
	return t.hasRaw || t.typed != 0
}

// Bytes returns the element type and the elements in row-major order, little-endian and without gaps; elements of less
// than 8 bits are packed from the low bits up, as in raw_data. Raw data, and float_data and double_data in one packed run,
// are parts of the model's bytes and must not be written to; other typed data are converted into new memory.
//
// In int32_data an element of w bits may be any value of its type, or, if the type is signed, its bits as an unsigned number. A
// boolean becomes 0 or 1.
//
// Errors wrap [ErrExternal] when the data are in another file, else [ErrTensor]: an element type without a byte form
// (strings, unknown types), negative or overflowing dims, data whose size does not fit the dims, data in two fields or in
// a wrong one, segments, a value outside its type.
func (t *TensorProto) Bytes() (dtype int32, data []byte, err error) {
	dtype, data, err = t.within()
	return dtype, data[:len(data):len(data)], err
}

// within is Bytes with the capacity of the file that they are a part of, see backend.Device.
func (t *TensorProto) within() (dtype int32, data []byte, err error) {
	size, err := t.ByteSize()
	if err != nil {
		return t.DataType, nil, err
	}
	switch t.DataLocation {
	case LocationDefault:
	case LocationExternal:
		return t.DataType, nil, t.fail(ErrExternal, "%v", t.ExternalData)
	default:
		return t.DataType, nil, t.fail(ErrTensor, "data_location is %d, expected 0 or 1", t.DataLocation)
	}
	want := dataTypes[t.DataType].field
	for rest := t.typed; rest != 0; rest &= rest - 1 {
		num := bits.TrailingZeros32(rest)
		if t.hasRaw {
			return t.DataType, nil, t.fail(ErrTensor, "raw_data and %s at once", tensorSchema.fields[num].name)
		}
		if typedField(num) != want {
			return t.DataType, nil, t.fail(ErrTensor, "%s in %s", DataTypeName(t.DataType), tensorSchema.fields[num].name)
		}
	}
	switch {
	case t.segmented:
		err = t.fail(ErrTensor, "a segment of a tensor is no tensor")
	case t.hasRaw:
		data = t.raw
	case t.typed != 0:
		data, err = t.convert(size)
	}
	if err == nil && int64(len(data)) != size {
		err = t.fail(ErrTensor, "dims %d of %s need %d bytes, found %d", t.Dims, DataTypeName(t.DataType), size, len(data))
	}
	if err != nil {
		return t.DataType, nil, err
	}
	return t.DataType, data, nil
}

// Strings returns the elements of a STRING tensor in row-major order. Errors wrap [ErrTensor] or [ErrExternal].
func (t *TensorProto) Strings() ([]string, error) {
	n, err := t.NumElements()
	if err != nil {
		return nil, err
	}
	if t.DataType != DataString {
		return nil, t.fail(ErrTensor, "%s is not STRING", DataTypeName(t.DataType))
	}
	if t.DataLocation == LocationExternal {
		return nil, t.fail(ErrExternal, "%v", t.ExternalData)
	}
	d := &decoder{data: t.body}
	c, derr := d.count(span{0, len(t.body)}, &tensorSchema)
	if derr != nil {
		return nil, derr
	}
	if int64(c[stringData]) != n {
		return nil, t.fail(ErrTensor, "dims %d need %d strings, found %d", t.Dims, n, c[stringData])
	}
	out := make([]string, n)
	derr = d.each(span{0, len(t.body)}, &tensorSchema, func(f field, i int) *DecodeError {
		if f.num == stringData {
			out[i] = string(t.body[f.val.lo:f.val.hi])
		}
		return nil
	})
	if derr != nil {
		return nil, derr
	}
	return out, nil
}

// convert turns the typed field into bytes. It counts what is there first, so that dims which promise more than the
// file holds allocate nothing.
func (t *TensorProto) convert(size int64) ([]byte, error) {
	d := &decoder{data: t.body}
	all := span{0, len(t.body)}
	num := protowire.Number(dataTypes[t.DataType].field)
	c, derr := d.count(all, &tensorSchema)
	if derr != nil {
		return nil, derr
	}
	perEntry := t.bytesPerEntry()
	have := int64(c[num]) * int64(perEntry)
	if perEntry == 0 {
		have = (int64(c[num])*6 + 7) / 8
	}
	if have != size {
		return nil, t.fail(ErrTensor, "dims %d of %s need %d bytes, found %d in %s",
			t.Dims, DataTypeName(t.DataType), size, have, tensorSchema.fields[num].name)
	}
	var out []byte
	entry := 0
	var bad error
	derr = d.each(all, &tensorSchema, func(f field, i int) *DecodeError {
		if f.num != num {
			return nil
		}
		if k := tensorSchema.fields[num].kind; k == kindFixed32s || k == kindFixed64s {
			run := t.body[f.val.lo:f.val.hi:f.val.hi]
			if int64(len(run)) == size {
				out = run
				return nil
			}
			if out == nil {
				out = make([]byte, 0, size)
			}
			out = append(out, run...)
			return nil
		}
		if out == nil {
			out = make([]byte, size)
		}
		return d.integers(f, func(v uint64, _ int) *DecodeError {
			if bad == nil {
				bad = t.put(out, entry, perEntry, v)
			}
			entry++
			return nil
		})
	})
	if derr != nil {
		return nil, derr
	}
	return out, bad
}

// bytesPerEntry is how many bytes one entry of the typed field stands for: a real part alone for complex numbers, a byte
// of several elements for types of 2 and 4 bits, and 0 for the types of 6 bits, whose entries share bytes.
func (t *TensorProto) bytesPerEntry() int {
	width := dataTypes[t.DataType].bits
	switch {
	case t.DataType == DataComplex64 || t.DataType == DataComplex128:
		return width / 16
	case width == 6:
		return 0
	case width < 8:
		return 1
	}
	return width / 8
}

// put stores entry i of int32_data, int64_data or uint64_data.
func (t *TensorProto) put(out []byte, i, width int, v uint64) error {
	dt := dataTypes[t.DataType]
	if dt.field == int32Data {
		// The five-byte form of a negative int32 has no sign bits above 32.
		x := int64(int32(uint32(v)))
		if t.DataType == DataBool && x != 0 {
			x = 1
		}
		bitsPerEntry := width * 8
		if width == 0 {
			bitsPerEntry = 6
		}
		lowest := int64(0)
		if dt.signed {
			lowest = -1 << (bitsPerEntry - 1)
		}
		if x < lowest || x >= 1<<bitsPerEntry {
			return t.fail(ErrTensor, "int32_data[%d] is %d, outside %s", i, x, dt.name)
		}
		if width == 0 {
			at := i * 6
			b := uint16(x) << (at % 8)
			out[at/8] |= byte(b)
			if b>>8 != 0 {
				out[at/8+1] |= byte(b >> 8)
			}
			return nil
		}
		v = uint64(x)
	} else if width == 4 && v > math.MaxUint32 {
		return t.fail(ErrTensor, "uint64_data[%d] is %d, outside %s", i, v, dt.name)
	}
	switch at := i * width; width {
	case 1:
		out[at] = byte(v)
	case 2:
		binary.LittleEndian.PutUint16(out[at:], uint16(v))
	case 4:
		binary.LittleEndian.PutUint32(out[at:], uint32(v))
	case 8:
		binary.LittleEndian.PutUint64(out[at:], v)
	}
	return nil
}
