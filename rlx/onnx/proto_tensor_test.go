package onnx

import (
	"bytes"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
)

// oneTensor decodes a model whose only initializer has these fields.
func oneTensor(t *testing.T, fields ...[]byte) *TensorProto {
	t.Helper()
	m, err := Decode(inGraph(body(5, append(fields, text(8, "w"))...)))
	if err != nil {
		t.Fatal(err)
	}
	return &m.Graph.Initializers[0]
}

func TestTensorBytes(t *testing.T) {
	one, two := math.Float32bits(1), math.Float32bits(-2)
	for _, c := range []struct {
		name   string
		typ    int32
		fields [][]byte
		want   string // little-endian
	}{
		{"raw", DataFloat, [][]byte{varints(1, 1), text(9, "\x00\x00\x80\x3f")}, "\x00\x00\x80\x3f"},
		{"float, packed", DataFloat, [][]byte{varints(1, 2), text(4, "\x00\x00\x80\x3f\x00\x00\x00\xc0")}, "\x00\x00\x80\x3f\x00\x00\x00\xc0"},
		{"float, one by one, dims too", DataFloat, [][]byte{varint(1, 1), varint(1, 2), fixed32(4, one), fixed32(4, two)}, "\x00\x00\x80\x3f\x00\x00\x00\xc0"},
		{"float, mixed", DataFloat, [][]byte{varints(1, 3), text(4, "\x00\x00\x80\x3f\x00\x00\x00\xc0"), fixed32(4, one)},
			"\x00\x00\x80\x3f\x00\x00\x00\xc0\x00\x00\x80\x3f"},
		{"scalar int64", DataInt64, [][]byte{varint(7, minus(2))}, "\xfe\xff\xff\xff\xff\xff\xff\xff"},
		{"int64, packed", DataInt64, [][]byte{varints(1, 2), varints(7, 258, minus(1))}, "\x02\x01\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff"},
		{"int32, ten and five bytes", DataInt32, [][]byte{varints(1, 3), varints(5, 7, minus(1), 0xfffffffe)}, "\x07\x00\x00\x00\xff\xff\xff\xff\xfe\xff\xff\xff"},
		{"int8, as sign and as bits", DataInt8, [][]byte{varints(1, 4), varints(5, minus(128), 255, 127, minus(1))}, "\x80\xff\x7f\xff"},
		{"uint8", DataUint8, [][]byte{varints(1, 2), varints(5, 255, 0)}, "\xff\x00"},
		{"int16", DataInt16, [][]byte{varints(1, 2), varints(5, minus(2), 0x1234)}, "\xfe\xff\x34\x12"},
		{"uint16", DataUint16, [][]byte{varints(1, 1), varints(5, 0xfedc)}, "\xdc\xfe"},
		{"float16 1.0, -2.0", DataFloat16, [][]byte{varints(1, 2), varints(5, 0x3c00, 0xc000)}, "\x00\x3c\x00\xc0"},
		{"bfloat16 1.0", DataBfloat16, [][]byte{varints(1, 1), varint(5, 0x3f80)}, "\x80\x3f"},
		{"bool", DataBool, [][]byte{varints(1, 4), varints(5, 1, 0, 7, minus(1))}, "\x01\x00\x01\x01"},
		{"float8", DataFloat8E4M3FN, [][]byte{varints(1, 2), varints(5, 0x38, 0xb8)}, "\x38\xb8"},
		{"double, packed", DataDouble, [][]byte{varints(1, 1), text(10, "\x00\x00\x00\x00\x00\x00\xf0\x3f")}, "\x00\x00\x00\x00\x00\x00\xf0\x3f"},
		{"double, one by one", DataDouble, [][]byte{varints(1, 2), fixed64(10, math.Float64bits(1)), fixed64(10, 0)},
			"\x00\x00\x00\x00\x00\x00\xf0\x3f\x00\x00\x00\x00\x00\x00\x00\x00"},
		{"uint32", DataUint32, [][]byte{varints(1, 2), varints(11, 0xffffffff, 1)}, "\xff\xff\xff\xff\x01\x00\x00\x00"},
		{"uint64", DataUint64, [][]byte{varints(1, 1), varints(11, math.MaxUint64)}, "\xff\xff\xff\xff\xff\xff\xff\xff"},
		{"complex64 1-2i", DataComplex64, [][]byte{varints(1, 1), fixed32(4, one), fixed32(4, two)}, "\x00\x00\x80\x3f\x00\x00\x00\xc0"},
		{"uint4, raw, odd", DataUint4, [][]byte{varints(1, 3), text(9, "\x21\x03")}, "\x21\x03"},
		{"int4, typed", DataInt4, [][]byte{varints(1, 4), varints(5, 0xf1, 0x7f)}, "\xf1\x7f"},
		{"int2, raw", DataInt2, [][]byte{varints(1, 5), text(9, "\xe4\x01")}, "\xe4\x01"},
		// 1, 2, 3, 63 in six bits each from the low bits up: 1|2<<6, 2>>2|3<<4|63<<10 in 24 bits.
		{"float6, typed", DataFloat6E2M3, [][]byte{varints(1, 4), varints(5, 1, 2, 3, 63)}, "\x81\x30\xfc"},
		{"float6, typed, five", DataFloat6E3M2, [][]byte{varints(1, 5), varints(5, 1, 2, 3, 63, 33)}, "\x81\x30\xfc\x21"},
		{"empty", DataFloat, [][]byte{varints(1, 0, 5)}, ""},
		{"empty, large other dim", DataFloat, [][]byte{varints(1, 1<<62, 0)}, ""},
		{"empty run beside raw", DataInt64, [][]byte{varints(1, 1), body(7), text(9, "12345678")}, "12345678"},
	} {
		w := oneTensor(t, append(c.fields, varint(2, uint64(c.typ)))...)
		typ, got, err := w.Bytes()
		if err != nil || typ != c.typ || string(got) != c.want {
			t.Errorf("%s: got %d % x, %v, want % x", c.name, typ, got, err, c.want)
		}
	}
}

func TestTensorErrors(t *testing.T) {
	four := text(9, "1234")
	for _, c := range []struct {
		name   string
		typ    int32
		fields [][]byte
		say    string
	}{
		{"no data", DataFloat, [][]byte{varints(1, 1)}, "need 4 bytes, found 0"},
		{"too few", DataFloat, [][]byte{varints(1, 2), four}, "need 8 bytes, found 4"},
		{"too many", DataUint8, [][]byte{varints(1, 3), four}, "need 3 bytes, found 4"},
		{"negative dim", DataFloat, [][]byte{varints(1, 2, minus(1)), four}, "dims[1] is -1"},
		{"elements overflow", DataUint8, [][]byte{varints(1, 1<<32, 1<<32), four}, "overflow"},
		{"bytes overflow", DataFloat, [][]byte{varints(1, 1<<31, 1<<31), four}, "overflow"},
		{"elements overflow beside 0", DataFloat, [][]byte{varints(1, 1<<62, 0, 1<<62)}, "overflow"},
		{"bytes overflow by wrapping", DataComplex128, [][]byte{varints(1, 1<<62), four}, "overflow"},
		{"typed, huge claim", DataInt64, [][]byte{varints(1, 1<<50), varint(7, 1)}, "found 8 in int64_data"},
		{"raw and typed", DataInt64, [][]byte{varints(1, 1), text(9, "12345678"), varint(7, 1)}, "raw_data and int64_data"},
		{"wrong field", DataInt64, [][]byte{varints(1, 1), varint(5, 1)}, "INT64 in int32_data"},
		{"strings as bytes", DataString, [][]byte{varints(1, 1), text(6, "a")}, "STRING has no byte size"},
		{"undefined", DataUndefined, [][]byte{varints(1, 1), four}, "data type 0"},
		{"unknown type", 99, [][]byte{varints(1, 1), four}, "data type 99"},
		{"negative type", -1, [][]byte{varints(1, 1), four}, "data type -1"},
		{"segment", DataFloat, [][]byte{varints(1, 1), four, body(3)}, "segment"},
		{"uint8 of 256", DataUint8, [][]byte{varints(1, 2), varints(5, 1, 256)}, "int32_data[1] is 256"},
		{"uint8 of -1", DataUint8, [][]byte{varints(1, 1), varints(5, minus(1))}, "int32_data[0] is -1"},
		{"int8 of -129", DataInt8, [][]byte{varints(1, 1), varints(5, minus(129))}, "int32_data[0] is -129"},
		{"float16 of 2^16", DataFloat16, [][]byte{varints(1, 1), varints(5, 1<<16)}, "65536"},
		{"float6 of 64", DataFloat6E2M3, [][]byte{varints(1, 1), varints(5, 64)}, "64, outside FLOAT6E2M3"},
		{"uint32 of 2^32", DataUint32, [][]byte{varints(1, 1), varints(11, 1<<32)}, "4294967296"},
	} {
		w := oneTensor(t, append(c.fields, varint(2, uint64(c.typ)))...)
		_, got, err := w.Bytes()
		if !errors.Is(err, ErrTensor) || got != nil || !strings.Contains(err.Error(), c.say) || !strings.Contains(err.Error(), `"w"`) {
			t.Errorf("%s: got % x, %v, want %q", c.name, got, err, c.say)
		}
	}
	w := oneTensor(t, varints(1, 1), varint(2, 1), varint(14, 1), body(13, text(1, "location"), text(2, "w.bin")))
	if _, _, err := w.Bytes(); !errors.Is(err, ErrExternal) || !strings.Contains(err.Error(), "w.bin") {
		t.Error(err)
	}
	if n, err := w.ByteSize(); n != 4 || err != nil {
		t.Error(n, err)
	}
}

func TestTensorStrings(t *testing.T) {
	w := oneTensor(t, varints(1, 3), varint(2, 8), text(6, "a"), text(6, ""), text(6, "\xff"))
	if got, err := w.Strings(); err != nil || !reflect.DeepEqual(got, []string{"a", "", "\xff"}) {
		t.Error(got, err)
	}
	w = oneTensor(t, varints(1, 1<<40), varint(2, 8), text(6, "a"))
	if got, err := w.Strings(); !errors.Is(err, ErrTensor) {
		t.Error(got, err)
	}
	w = oneTensor(t, varint(2, 1), fixed32(4, 0))
	if got, err := w.Strings(); !errors.Is(err, ErrTensor) {
		t.Error(got, err)
	}
}

// TestBytesAlias checks that raw data are not copied, and cannot be grown into what follows them.
func TestBytesAlias(t *testing.T) {
	raw := []byte("\x01\x02\x03\x04abcd")
	data := inGraph(body(5, varints(1, 2), varint(2, 1), body(9, raw)), text(2, "after"))
	m, err := Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	_, got, err := m.Graph.Initializers[0].Bytes()
	at := bytes.Index(data, raw)
	if err != nil || len(got) != 8 || &got[0] != &data[at] || cap(got) != 8 {
		t.Errorf("% x, capacity %d, %v", got, cap(got), err)
	}
}
