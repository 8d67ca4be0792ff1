package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/onnx"
)

// signature is what a model file declares, whether rlx can run it or not.
type signature struct {
	path    string
	bytes   int64
	proto   *onnx.ModelProto
	inputs  []declared
	outputs []declared
	weights map[string]bool // initializers, which may be listed as inputs too
}

// declared is an input or output. A dim without a name is called after its input and axis, as the graph calls it.
type declared struct {
	name string
	typ  ir.Type // DType is ir.Invalid where rlx has none for it
	elem string  // its dtype, or what the file calls one that rlx lacks
}

func (d declared) typeText() string {
	if d.typ.DType == ir.Invalid {
		return d.elem
	}
	return d.typ.String()
}

// readSignature decodes the file. What is no model gets the error of rlx.Open.
func readSignature(path string) (*signature, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	m, err := onnx.Decode(data)
	if err != nil {
		if _, better := rlx.Open(path); better != nil {
			err = better
		}
		return nil, err
	}
	s := &signature{path: path, bytes: int64(len(data)), proto: m, weights: map[string]bool{}}
	for _, t := range m.Graph.Initializers {
		s.weights[t.Name] = true
	}
	for i := range m.Graph.Inputs {
		if in := &m.Graph.Inputs[i]; !s.weights[in.Name] {
			s.inputs = append(s.inputs, declare(in))
		}
	}
	for i := range m.Graph.Outputs {
		s.outputs = append(s.outputs, declare(&m.Graph.Outputs[i]))
	}
	return s, nil
}

// elements are the dtypes that inputs have; packed integers are held in those of 8 bits.
var elements = map[int32]ir.DType{
	onnx.DataFloat: ir.F32, onnx.DataDouble: ir.F64, onnx.DataFloat16: ir.F16, onnx.DataBfloat16: ir.BF16, onnx.DataBool: ir.Bool,
	onnx.DataInt8: ir.I8, onnx.DataInt16: ir.I16, onnx.DataInt32: ir.I32, onnx.DataInt64: ir.I64, onnx.DataUint8: ir.U8, onnx.DataUint16: ir.U16,
	onnx.DataUint32: ir.U32, onnx.DataUint64: ir.U64, onnx.DataComplex64: ir.C64, onnx.DataFloat8E4M3FN: ir.F8E4M3, onnx.DataFloat8E5M2: ir.F8E5M2,
	onnx.DataFloat8E8M0: ir.E8M0, onnx.DataFloat4E2M1: ir.F4E2M1, onnx.DataInt4: ir.I8, onnx.DataInt2: ir.I8, onnx.DataUint4: ir.U8, onnx.DataUint2: ir.U8,
}

func declare(v *onnx.ValueInfoProto) declared {
	d := declared{name: v.Name, elem: v.Kind.String()}
	if v.Kind != onnx.KindTensor {
		return d
	}
	d.typ.DType = elements[v.ElemType]
	if d.elem = onnx.DataTypeName(v.ElemType); !v.HasShape {
		d.typ.DType, d.elem = ir.Invalid, d.elem+" of unknown rank"
		return d
	}
	d.typ.Shape = make([]ir.Dim, len(v.Shape))
	for i, dim := range v.Shape {
		switch {
		case dim.Kind == onnx.DimValue && dim.Value >= 0:
			d.typ.Shape[i] = ir.D(dim.Value)
		case dim.Kind == onnx.DimParam && dim.Param != "?":
			d.typ.Shape[i] = ir.Sym(symbolOf(dim.Param))
		default:
			d.typ.Shape[i] = ir.Sym(symbolOf(v.Name + "." + strconv.Itoa(i)))
		}
	}
	return d
}

// symbolOf is the symbol of a dim that the file calls name.
func symbolOf(name string) string { return strings.ReplaceAll(ir.SymbolName(name), "#", "_") }

func (s *signature) input(name string) *declared {
	i := slices.IndexFunc(s.inputs, func(d declared) bool { return d.name == name })
	if i < 0 {
		return nil
	}
	return &s.inputs[i]
}

func (s *signature) inputNames() []string {
	names := make([]string, len(s.inputs))
	for i, in := range s.inputs {
		names[i] = in.name
	}
	return names
}

// symbols lists the symbolic dims of the inputs in the order in which they occur.
func (s *signature) symbols() []string {
	var list []string
	for _, in := range s.inputs {
		for _, d := range in.typ.Shape {
			if name, ok := d.Symbol(); ok && !slices.Contains(list, name) {
				list = append(list, name)
			}
		}
	}
	return list
}

// where lists the places of a symbol: "axis 0 of x and y".
func (s *signature) where(symbol string) []string {
	var axes []int
	inputs := map[int][]string{}
	for _, in := range s.inputs {
		for axis, d := range in.typ.Shape {
			if name, _ := d.Symbol(); name == symbol {
				if inputs[axis] == nil {
					axes = append(axes, axis)
				}
				inputs[axis] = append(inputs[axis], in.name)
			}
		}
	}
	list := make([]string, len(axes))
	for i, axis := range axes {
		list[i] = fmt.Sprintf("axis %d of %s", axis, strings.Join(inputs[axis], " and "))
	}
	return list
}

// compared lists the constants that the file compares an input with, such as the sampling rates that a model knows.
func (s *signature) compared(input string) []int64 {
	constants, alias := map[string]*onnx.TensorProto{}, map[string]bool{input: true}
	g := &s.proto.Graph
	for i := range g.Initializers {
		constants[g.Initializers[i].Name] = &g.Initializers[i]
	}
	var list []int64
	for i := range g.Nodes {
		n := &g.Nodes[i]
		switch {
		case len(n.Output) == 0:
		case n.OpType == "Constant" && len(n.Attribute) == 1 && n.Attribute[0].T != nil:
			constants[n.Output[0]] = n.Attribute[0].T
		case slices.Contains([]string{"Cast", "Gather", "Identity", "Reshape", "Squeeze", "Unsqueeze"}, n.OpType) && len(n.Input) > 0:
			alias[n.Output[0]] = alias[n.Input[0]]
			if t := constants[n.Input[0]]; t != nil {
				constants[n.Output[0]] = t
			}
		case n.OpType == "Equal" && len(n.Input) == 2:
			for k, name := range n.Input {
				if v, ok := single(constants[n.Input[1-k]]); ok && alias[name] {
					list = append(list, v)
				}
			}
		}
	}
	return list
}

// single is the one element of an integer constant.
func single(t *onnx.TensorProto) (int64, bool) {
	if t == nil || !ir.Int.Has(elements[t.DataType]) {
		return 0, false
	}
	_, data, err := t.Bytes()
	if d := elements[t.DataType]; err == nil && len(data) == d.Size() {
		return ir.IntAt(d, data, 0), true
	}
	return 0, false
}

// closest is the name nearest to a wrong one by edit distance, "" where none is near.
func closest(wrong string, names []string) string {
	best, at := "", max(2, len(wrong)/3)+1
	for _, name := range names {
		d := distance(strings.ToLower(wrong), strings.ToLower(name))
		if strings.Contains(strings.ToLower(name), strings.ToLower(wrong)) {
			d = min(d, 2)
		}
		if d < at {
			best, at = name, d
		}
	}
	return best
}

// distance is the Levenshtein distance: row holds, for each prefix of b, that to the part of a seen so far.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}

// didYouMean is the end of an error about a wrong name.
func didYouMean(wrong string, names []string) string {
	text := ""
	if near := closest(wrong, names); near != "" {
		text = fmt.Sprintf("; did you mean %q?", near)
	}
	return fmt.Sprintf("%s (there are: %s)", text, strings.Join(names, ", "))
}
