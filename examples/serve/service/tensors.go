package service

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// tensor is the JSON form of a tensor: its elements in row-major order. NaN and infinities, which JSON lacks, are the strings "NaN", "+Inf"
// and "-Inf".
type tensor struct {
	DType string          `json:"dtype"`
	Shape []int64         `json:"shape"`
	Data  json.RawMessage `json:"data"`
}

// DecodeFeed reads {"inputs": {...}}. Errors are *RequestError.
func DecodeFeed(text []byte) (rlx.Feed, error) {
	var r struct {
		Inputs map[string]tensor `json:"inputs"`
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return nil, &RequestError{Err: err}
	}
	if d.More() {
		return nil, &RequestError{Err: fmt.Errorf("text behind the object")}
	}
	feed := make(rlx.Feed, len(r.Inputs))
	for name, x := range r.Inputs {
		t, err := x.decode()
		if err != nil {
			return nil, &RequestError{name, err}
		}
		feed[name] = t
	}
	return feed, nil
}

func (x tensor) decode() (*rlx.Tensor, error) {
	dtype, err := ir.ParseDType(x.DType)
	if err != nil {
		return nil, err
	}
	shape := make([]int, len(x.Shape))
	for i, n := range x.Shape {
		shape[i] = int(n)
	}
	var t *rlx.Tensor
	switch dtype {
	case rlx.Bool:
		t, err = elements[bool](x.Data, shape)
	case rlx.I8:
		t, err = elements[int8](x.Data, shape)
	case rlx.I16:
		t, err = elements[int16](x.Data, shape)
	case rlx.I32:
		t, err = elements[int32](x.Data, shape)
	case rlx.I64:
		t, err = elements[int64](x.Data, shape)
	case rlx.U8:
		t, err = bytesOf(x.Data, shape)
	case rlx.U16:
		t, err = elements[uint16](x.Data, shape)
	case rlx.U32:
		t, err = elements[uint32](x.Data, shape)
	case rlx.U64:
		t, err = elements[uint64](x.Data, shape)
	case rlx.F32, rlx.F64, rlx.F16, rlx.BF16:
		t, err = floats(dtype, x.Data, x.Shape)
	default:
		return nil, fmt.Errorf("dtype %s has no JSON form here", x.DType)
	}
	if err != nil {
		return nil, err
	}
	return t, t.Err()
}

func elements[T ir.Elem](data json.RawMessage, shape []int) (*rlx.Tensor, error) {
	var v []T
	if err := json.Unmarshal(data, &v); err != nil {
		return nil, err
	}
	return rlx.New(v, shape...), nil
}

// bytesOf reads numbers, where encoding/json wants base64.
func bytesOf(data json.RawMessage, shape []int) (*rlx.Tensor, error) {
	var wide []uint16
	if err := json.Unmarshal(data, &wide); err != nil {
		return nil, err
	}
	v := make([]uint8, len(wide))
	for i, x := range wide {
		if x > math.MaxUint8 {
			return nil, fmt.Errorf("element %d: got %d, expected 0 to 255", i, x)
		}
		v[i] = uint8(x)
	}
	return rlx.New(v, shape...), nil
}

// floats reads numbers and the names of those that JSON lacks, each rounded once to its dtype.
func floats(dtype rlx.DType, data json.RawMessage, shape []int64) (*rlx.Tensor, error) {
	if dtype == rlx.F32 { // the common case, without a name
		var v []float32
		if json.Unmarshal(data, &v) == nil {
			return ir.FromBytes(dtype, shape, rlx.New(v, len(v)).Bytes())
		}
	}
	var texts []json.RawMessage
	if err := json.Unmarshal(data, &texts); err != nil {
		return nil, err
	}
	width := 64
	if dtype == rlx.F32 {
		width = 32
	}
	b := make([]byte, len(texts)*dtype.Size())
	for i, text := range texts {
		v, err := strconv.ParseFloat(string(bytes.Trim(text, `"`)), width)
		if err != nil {
			return nil, fmt.Errorf("element %d: %w", i, err)
		}
		ir.PutFloat(dtype, b, i, v)
	}
	return ir.FromBytes(dtype, shape, b)
}

// EncodeOutputs writes {"outputs": {...}}. A reader that parses a float as its dtype gets the same bits; NaN loses its payload.
func EncodeOutputs(out rlx.Feed) ([]byte, error) { return encode("outputs", out) }

// EncodeFeed writes {"inputs": {...}}.
func EncodeFeed(in rlx.Feed) ([]byte, error) { return encode("inputs", in) }

func encode(key string, feed rlx.Feed) ([]byte, error) {
	b := append([]byte(`{"`), key...)
	b = append(b, `":{`...)
	for i, name := range slices.Sorted(maps.Keys(feed)) {
		if i > 0 {
			b = append(b, ',')
		}
		quoted, err := json.Marshal(name)
		if err != nil {
			return nil, err
		}
		b = append(append(b, quoted...), ':')
		if b, err = appendTensor(b, feed[name]); err != nil {
			return nil, fmt.Errorf("output %s: %w", name, err)
		}
	}
	return append(b, "}}"...), nil
}

func appendTensor(b []byte, t *rlx.Tensor) ([]byte, error) {
	b = fmt.Appendf(b, `{"dtype":"%s","shape":[`, t.DType())
	for i, n := range t.Shape() {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, n, 10)
	}
	b = append(b, `],"data":[`...)
	for i := range t.Len() {
		if i > 0 {
			b = append(b, ',')
		}
		switch v := t.At(i).(type) {
		case bool:
			b = strconv.AppendBool(b, v)
		case int64:
			b = strconv.AppendInt(b, v, 10)
		case uint64:
			b = strconv.AppendUint(b, v, 10)
		case float64:
			b = appendFloat(b, v, t.DType())
		default:
			return nil, fmt.Errorf("dtype %s has no JSON form here", t.DType())
		}
	}
	return append(b, "]}"...), nil
}

func appendFloat(b []byte, v float64, dtype rlx.DType) []byte {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return append(strconv.AppendFloat(append(b, '"'), v, 'g', -1, 64), '"')
	}
	width := 64
	if dtype == rlx.F32 {
		width = 32
	}
	return strconv.AppendFloat(b, v, 'g', -1, width)
}
