package onnx

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// plainTensor is a tensor of testdata/microsoft.json.
type plainTensor struct {
	DType string
	Shape []int64
	Data  []float64
}

func (p *plainTensor) tensor(t *testing.T) *ir.Tensor {
	t.Helper()
	d, err := ir.ParseDType(p.DType)
	if err != nil {
		t.Fatal(err)
	}
	x, err := ir.Zeros(d, p.Shape...)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range p.Data {
		if ir.Float.Has(d) {
			ir.PutFloat(d, x.Bytes(), i, v)
		} else {
			ir.PutInt(d, x.Bytes(), i, int64(v))
		}
	}
	return x
}

// elementTypes are the element types of onnx.proto that the cases use.
var elementTypes = map[ir.DType]int32{ir.F32: DataFloat, ir.I32: DataInt32, ir.I64: DataInt64, ir.U8: DataUint8, ir.I8: DataInt8}

// TestMicrosoft runs the operators of com.microsoft against NumPy, with their weights as inputs of the model and as initializers.
func TestMicrosoft(t *testing.T) {
	data, err := os.ReadFile("testdata/microsoft.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Op, Name        string
		Attrs           map[string]float64
		Inputs, Outputs []*plainTensor
	}
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	seen := microsoftOps(t)
	for _, c := range cases {
		seen[c.Op] = true
		for _, constant := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s %s constant=%t", c.Op, c.Name, constant), func(t *testing.T) {
				node := [][]byte{text(4, c.Op), text(7, microsoft)}
				var graph [][]byte
				feed := map[string]*ir.Tensor{}
				for i, in := range c.Inputs {
					if in == nil {
						node = append(node, text(1, ""))
						continue
					}
					name, x := fmt.Sprintf("in%d", i), in.tensor(t)
					node = append(node, text(1, name))
					elem := elementTypes[x.DType()]
					if constant && i > 0 {
						graph = append(graph, body(5, varints(1, unsigned(x.Shape())...), varint(2, uint64(elem)), text(8, name), body(9, x.Bytes())))
						continue
					}
					feed[name] = x
					var shape []any
					for _, d := range x.Shape() {
						shape = append(shape, int(d))
					}
					graph = append(graph, inputOf(name, elem, shape...))
				}
				for i, out := range c.Outputs {
					name := ""
					if out != nil {
						name = fmt.Sprintf("out%d", i)
						graph = append(graph, outputOf(name))
					}
					node = append(node, text(2, name))
				}
				for name, v := range c.Attrs {
					node = append(node, microsoftAttr(c.Op, name, v))
				}
				g := mustImport(t, inGraph(append(graph, body(1, node...))...))
				got, err := evaluate(g, feed)
				if err != nil {
					t.Fatal(err)
				}
				for i, out := range c.Outputs {
					if out == nil {
						continue
					}
					if err := nearTo(got[fmt.Sprintf("out%d", i)], out.tensor(t)); err != nil {
						t.Errorf("output %d: %v", i, err)
					}
				}
			})
		}
	}
	for k := range table {
		if k.domain == microsoft && !seen[k.op] {
			t.Errorf("no case for %s", k.op)
		}
	}
}

func unsigned(shape []int64) []uint64 {
	out := make([]uint64, len(shape))
	for i, d := range shape {
		out[i] = uint64(d)
	}
	return out
}

// microsoftAttr writes an attribute with the kind that the row declares.
func microsoftAttr(op, name string, v float64) []byte {
	r, _ := find(microsoft, op, 1)
	for _, d := range r.attrs {
		if d.name == name && d.kind == AttributeFloat {
			return floatAttr(name, float32(v))
		}
	}
	return intAttr(name, int64(v))
}

func nearTo(got, want *ir.Tensor) error {
	if got.DType() != want.DType() || !slices.Equal(got.Shape(), want.Shape()) {
		return fmt.Errorf("got %s%v, expected %s%v", got.DType(), got.Shape(), want.DType(), want.Shape())
	}
	for i := range want.Len() {
		if a, b := got.Float(i), want.Float(i); !(math.Abs(a-b) <= 2e-6+2e-5*math.Abs(b)) {
			return fmt.Errorf("element %d of %v is %v, expected %v", i, want.Shape(), a, b)
		}
	}
	return nil
}
