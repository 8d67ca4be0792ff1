// Package onnx reads and writes ONNX models. [Import] makes a graph of a model, and [Export] a model of a graph. [Decode] turns the bytes of a
// .onnx file into plain structs that mirror the messages of onnx.proto; it trusts nothing in the file. [Encode] is the way back. Weights are
// not copied: [TensorProto.Bytes] hands out parts of the input.
//
// Source: the ONNX IR specification and onnx.proto, IR versions 3 to 14.
package onnx

import (
	"encoding/binary"
	"math"
	"unsafe"

	"google.golang.org/protobuf/encoding/protowire"
)

// ModelProto is the root of a .onnx file.
type ModelProto struct {
	IRVersion       int64
	ProducerName    string
	ProducerVersion string
	Domain          string
	ModelVersion    int64
	DocString       string
	Graph           GraphProto
	Opset           []OperatorSetID
	Functions       []FunctionProto
	Metadata        []StringPair
	TrainingInfo    int // number of training_info messages, which are not read
}

// OpsetVersion returns the version imported for a domain; "" and "ai.onnx" are the same domain.
func (m *ModelProto) OpsetVersion(domain string) (int64, bool) {
	return opsetVersion(m.Opset, domain)
}

// OperatorSetID names one imported operator set.
type OperatorSetID struct {
	Domain  string
	Version int64
}

// StringPair is a StringStringEntryProto: one key and its value.
type StringPair struct{ Key, Value string }

// GraphProto is a graph: the model's own, or an attribute of a node such as If.
type GraphProto struct {
	Name               string
	Nodes              []NodeProto
	Initializers       []TensorProto
	SparseInitializers int // number of sparse initializers, which are not read
	Inputs             []ValueInfoProto
	Outputs            []ValueInfoProto
	ValueInfo          []ValueInfoProto
}

// NodeProto is one call of an operator. An empty string in Input or Output is an optional value left out.
type NodeProto struct {
	Name      string
	OpType    string
	Domain    string
	Overload  string
	Input     []string
	Output    []string
	Attribute []AttributeProto
}

// AttributeType is AttributeProto.AttributeType of onnx.proto.
type AttributeType int32

// The attribute types.
const (
	AttributeUndefined     AttributeType = 0
	AttributeFloat         AttributeType = 1
	AttributeInt           AttributeType = 2
	AttributeString        AttributeType = 3
	AttributeTensor        AttributeType = 4
	AttributeGraph         AttributeType = 5
	AttributeFloats        AttributeType = 6
	AttributeInts          AttributeType = 7
	AttributeStrings       AttributeType = 8
	AttributeTensors       AttributeType = 9
	AttributeGraphs        AttributeType = 10
	AttributeSparseTensor  AttributeType = 11
	AttributeSparseTensors AttributeType = 12
	AttributeTypeProto     AttributeType = 13
	AttributeTypeProtos    AttributeType = 14
)

// AttributeProto is a named constant of a node. Type says which field holds it; files older than the type field get it from
// the field that is there. The contents of sparse tensors and type protos are not read.
type AttributeProto struct {
	Name        string
	RefAttrName string // inside a function: the function's attribute to take the value from
	Type        AttributeType
	F           float32
	I           int64
	S           string // bytes, not always UTF-8
	T           *TensorProto
	G           *GraphProto
	Floats      []float32
	Ints        []int64
	Strings     []string
	Tensors     []TensorProto
	Graphs      []GraphProto
}

// ValueKind is the sort of type a value has.
type ValueKind uint8

// The kinds of value.
const (
	KindUnknown ValueKind = iota // no type given
	KindTensor
	KindSequence
	KindMap
	KindOptional
	KindSparseTensor
	KindOpaque
)

// String implements fmt.Stringer.
func (k ValueKind) String() string {
	names := [...]string{"unknown", "tensor", "sequence", "map", "optional", "sparse tensor", "opaque"}
	if int(k) < len(names) {
		return names[k]
	}
	return names[KindUnknown]
}

// DimKind says what is known of one dimension.
type DimKind uint8

// The kinds of dimension.
const (
	DimUnknown DimKind = iota
	DimValue           // Dim.Value holds it
	DimParam           // Dim.Param is its name; equal names are equal sizes
)

// Dim is one dimension of a shape.
type Dim struct {
	Param string
	Value int64
	Kind  DimKind
}

// ValueInfoProto names a value and gives its type. ElemType and Shape are set for tensors; HasShape false is unknown rank,
// HasShape true with no Shape a scalar.
type ValueInfoProto struct {
	Name     string
	Shape    []Dim
	ElemType int32
	Kind     ValueKind
	HasShape bool
}

// FunctionProto is a function of the model: an operator given as nodes.
type FunctionProto struct {
	Name          string
	Domain        string
	Overload      string
	Input         []string
	Output        []string
	Attribute     []string         // attributes without a default
	AttributeInfo []AttributeProto // attributes with one
	Nodes         []NodeProto
	Opset         []OperatorSetID
}

// OpsetVersion returns the version imported for a domain; "" and "ai.onnx" are the same domain.
func (f *FunctionProto) OpsetVersion(domain string) (int64, bool) {
	return opsetVersion(f.Opset, domain)
}

func opsetVersion(ids []OperatorSetID, domain string) (int64, bool) {
	if domain == "ai.onnx" {
		domain = ""
	}
	for _, id := range ids {
		if id.Domain == domain || (domain == "" && id.Domain == "ai.onnx") {
			return id.Version, true
		}
	}
	return 0, false
}

// Decode reads a model. Errors are [*DecodeError]. The result refers to data (weights), which must not change while the
// model is in use; names are copies.
//
// Memory, data included, stays within 4*len(data) + 1 MiB; a model that needs more, which takes thousands of nodes and hardly any
// weights, is refused with [ErrMemory] and can be read by [DecodeLimit].
func Decode(data []byte) (*ModelProto, error) {
	return DecodeLimit(data, 3*int64(len(data))+1<<20-decoderRoom)
}

// decoderRoom is kept back for the stack and the root struct.
const decoderRoom = 128 << 10

// DecodeLimit is [Decode] with another limit: the number of bytes that the decoded structures may take.
func DecodeLimit(data []byte, limit int64) (*ModelProto, error) {
	d := &decoder{data: data, left: limit, limit: limit}
	m := new(ModelProto)
	hasGraph, err := d.model(m)
	if err == nil && hasGraph && m.IRVersion > 0 {
		return m, nil
	}
	if err == nil || !d.looksLikeModel(err.Offset) {
		return nil, notONNX(data, m.IRVersion, hasGraph, err)
	}
	err.Field = modelSchema.name + "." + err.Field
	return nil, err
}

var modelSchema = schema{"ModelProto", [maxField]fieldSpec{
	1: {"ir_version", kindVarint}, 2: {"producer_name", kindBytes}, 3: {"producer_version", kindBytes}, 4: {"domain", kindBytes},
	5: {"model_version", kindVarint}, 6: {"doc_string", kindBytes}, 7: {"graph", kindMessage}, 8: {"opset_import", kindMessages},
	14: {"metadata_props", kindMessages}, 20: {"training_info", kindMessages}, 25: {"functions", kindMessages},
}}

func (d *decoder) model(m *ModelProto) (hasGraph bool, err *DecodeError) {
	s := span{0, len(d.data)}
	n, err := d.count(s, &modelSchema)
	if err != nil {
		return false, err
	}
	if m.Opset, err = makeSlice[OperatorSetID](d, 0, n[8]); err != nil {
		return false, err
	}
	if m.Metadata, err = makeSlice[StringPair](d, 0, n[14]); err != nil {
		return false, err
	}
	if m.Functions, err = makeSlice[FunctionProto](d, 0, n[25]); err != nil {
		return false, err
	}
	m.TrainingInfo = n[20]
	err = d.each(s, &modelSchema, func(f field, i int) (err *DecodeError) {
		switch f.num {
		case 1:
			m.IRVersion = int64(f.v)
		case 2:
			m.ProducerName, err = d.text(f)
		case 3:
			m.ProducerVersion, err = d.text(f)
		case 4:
			m.Domain, err = d.text(f)
		case 5:
			m.ModelVersion = int64(f.v)
		case 6:
			m.DocString, err = d.text(f)
		case 7:
			hasGraph = true
			err = d.graph(f.val, &m.Graph, 1)
		case 8:
			err = d.opset(f.val, &m.Opset[i])
		case 14:
			err = d.pair(f.val, &m.Metadata[i])
		case 25:
			err = d.function(f.val, &m.Functions[i])
		}
		return err
	})
	return hasGraph, err
}

var opsetSchema = schema{"OperatorSetIdProto", [maxField]fieldSpec{1: {"domain", kindBytes}, 2: {"version", kindVarint}}}

func (d *decoder) opset(s span, o *OperatorSetID) *DecodeError {
	return d.each(s, &opsetSchema, func(f field, _ int) (err *DecodeError) {
		switch f.num {
		case 1:
			o.Domain, err = d.name(f)
		case 2:
			o.Version = int64(f.v)
		}
		return err
	})
}

var pairSchema = schema{"StringStringEntryProto", [maxField]fieldSpec{1: {"key", kindBytes}, 2: {"value", kindBytes}}}

func (d *decoder) pair(s span, p *StringPair) *DecodeError {
	return d.each(s, &pairSchema, func(f field, _ int) (err *DecodeError) {
		switch f.num {
		case 1:
			p.Key, err = d.text(f)
		case 2:
			p.Value, err = d.text(f)
		}
		return err
	})
}

var graphSchema = schema{"GraphProto", [maxField]fieldSpec{
	1: {"node", kindMessages}, 2: {"name", kindBytes}, 5: {"initializer", kindMessages}, 11: {"input", kindMessages},
	12: {"output", kindMessages}, 13: {"value_info", kindMessages}, 15: {"sparse_initializer", kindMessages},
}}

// graph reads a graph that lies depth graphs deep.
func (d *decoder) graph(s span, g *GraphProto, depth int) *DecodeError {
	if depth > MaxDepth {
		return fail(s.lo, ErrDepth)
	}
	n, err := d.count(s, &graphSchema)
	if err != nil {
		return err
	}
	if g.Nodes, err = makeSlice[NodeProto](d, s.lo, n[1]); err != nil {
		return err
	}
	if g.Initializers, err = makeSlice[TensorProto](d, s.lo, n[5]); err != nil {
		return err
	}
	if g.Inputs, err = makeSlice[ValueInfoProto](d, s.lo, n[11]); err != nil {
		return err
	}
	if g.Outputs, err = makeSlice[ValueInfoProto](d, s.lo, n[12]); err != nil {
		return err
	}
	if g.ValueInfo, err = makeSlice[ValueInfoProto](d, s.lo, n[13]); err != nil {
		return err
	}
	g.SparseInitializers = n[15]
	return d.each(s, &graphSchema, func(f field, i int) (err *DecodeError) {
		switch f.num {
		case 1:
			err = d.node(f.val, &g.Nodes[i], depth)
		case 2:
			g.Name, err = d.name(f)
		case 5:
			err = d.tensor(f.val, &g.Initializers[i])
		case 11:
			err = d.valueInfo(f.val, &g.Inputs[i])
		case 12:
			err = d.valueInfo(f.val, &g.Outputs[i])
		case 13:
			err = d.valueInfo(f.val, &g.ValueInfo[i])
		}
		return err
	})
}

var nodeSchema = schema{"NodeProto", [maxField]fieldSpec{
	1: {"input", kindBytes}, 2: {"output", kindBytes}, 3: {"name", kindBytes}, 4: {"op_type", kindBytes},
	5: {"attribute", kindMessages}, 7: {"domain", kindBytes}, 8: {"overload", kindBytes},
}}

func (d *decoder) node(s span, o *NodeProto, depth int) *DecodeError {
	n, err := d.count(s, &nodeSchema)
	if err != nil {
		return err
	}
	if o.Input, err = makeSlice[string](d, s.lo, n[1]); err != nil {
		return err
	}
	if o.Output, err = makeSlice[string](d, s.lo, n[2]); err != nil {
		return err
	}
	if o.Attribute, err = makeSlice[AttributeProto](d, s.lo, n[5]); err != nil {
		return err
	}
	return d.each(s, &nodeSchema, func(f field, i int) (err *DecodeError) {
		switch f.num {
		case 1:
			o.Input[i], err = d.name(f)
		case 2:
			o.Output[i], err = d.name(f)
		case 3:
			o.Name, err = d.name(f)
		case 4:
			o.OpType, err = d.name(f)
		case 5:
			err = d.attribute(f.val, &o.Attribute[i], depth)
		case 7:
			o.Domain, err = d.name(f)
		case 8:
			o.Overload, err = d.name(f)
		}
		return err
	})
}

var attributeSchema = schema{"AttributeProto", [maxField]fieldSpec{
	1: {"name", kindBytes}, 2: {"f", kindFixed32}, 3: {"i", kindVarint}, 4: {"s", kindBytes}, 5: {"t", kindMessage},
	6: {"g", kindMessage}, 7: {"floats", kindFixed32s}, 8: {"ints", kindVarints}, 9: {"strings", kindBytes},
	10: {"tensors", kindMessages}, 11: {"graphs", kindMessages}, 14: {"tp", kindMessage}, 15: {"type_protos", kindMessages},
	20: {"type", kindVarint}, 21: {"ref_attr_name", kindBytes}, 22: {"sparse_tensor", kindMessage}, 23: {"sparse_tensors", kindMessages},
}}

// contentFields pairs each content field of an attribute with the type it stands for.
var contentFields = [...]struct {
	num protowire.Number
	typ AttributeType
}{
	{2, AttributeFloat}, {3, AttributeInt}, {4, AttributeString}, {5, AttributeTensor}, {6, AttributeGraph},
	{7, AttributeFloats}, {8, AttributeInts}, {9, AttributeStrings}, {10, AttributeTensors}, {11, AttributeGraphs},
	{22, AttributeSparseTensor}, {23, AttributeSparseTensors}, {14, AttributeTypeProto}, {15, AttributeTypeProtos},
}

func (d *decoder) attribute(s span, a *AttributeProto, depth int) *DecodeError {
	n, err := d.attributeSlices(s, a)
	if err != nil {
		return err
	}
	err = d.each(s, &attributeSchema, func(f field, i int) (err *DecodeError) {
		switch f.num {
		case 1:
			a.Name, err = d.name(f)
		case 2:
			a.F = math.Float32frombits(uint32(f.v))
		case 3:
			a.I = int64(f.v)
		case 4:
			a.S, err = d.text(f)
		case 5:
			if err = d.charge(f.tag, 1, int(unsafe.Sizeof(*a.T))); err == nil {
				a.T = new(TensorProto)
				err = d.tensor(f.val, a.T)
			}
		case 6:
			if err = d.charge(f.tag, 1, int(unsafe.Sizeof(*a.G))); err == nil {
				a.G = new(GraphProto)
				err = d.graph(f.val, a.G, depth+1)
			}
		case 7:
			var b []byte
			b, err = d.packed(f, 4)
			for ; len(b) >= 4; b = b[4:] {
				a.Floats = append(a.Floats, math.Float32frombits(binary.LittleEndian.Uint32(b)))
			}
		case 8:
			err = d.integers(f, func(v uint64, _ int) *DecodeError {
				a.Ints = append(a.Ints, int64(v))
				return nil
			})
		case 9:
			a.Strings[i], err = d.text(f)
		case 10:
			err = d.tensor(f.val, &a.Tensors[i])
		case 11:
			err = d.graph(f.val, &a.Graphs[i], depth+1)
		case 20:
			t, ok := int32Of(f.v)
			if !ok {
				return fail(f.tag, ErrVarint)
			}
			a.Type = AttributeType(t)
		case 21:
			a.RefAttrName, err = d.name(f)
		}
		return err
	})
	if err != nil || a.Type != AttributeUndefined || a.RefAttrName != "" {
		return err
	}
	for _, c := range contentFields {
		if n[c.num] > 0 {
			a.Type = c.typ
			break
		}
	}
	return nil
}

// attributeSlices makes the lists of an attribute at their final size (or capacity, where packed runs are appended).
func (d *decoder) attributeSlices(s span, a *AttributeProto) (counts, *DecodeError) {
	n, err := d.count(s, &attributeSchema)
	if err != nil {
		return n, err
	}
	if a.Floats, err = makeSlice[float32](d, s.lo, n[7]); err != nil {
		return n, err
	}
	if a.Ints, err = makeSlice[int64](d, s.lo, n[8]); err != nil {
		return n, err
	}
	if a.Strings, err = makeSlice[string](d, s.lo, n[9]); err != nil {
		return n, err
	}
	if a.Tensors, err = makeSlice[TensorProto](d, s.lo, n[10]); err != nil {
		return n, err
	}
	if a.Graphs, err = makeSlice[GraphProto](d, s.lo, n[11]); err != nil {
		return n, err
	}
	a.Floats, a.Ints = a.Floats[:0], a.Ints[:0]
	return n, nil
}

var valueInfoSchema = schema{"ValueInfoProto", [maxField]fieldSpec{1: {"name", kindBytes}, 2: {"type", kindMessage}}}

func (d *decoder) valueInfo(s span, v *ValueInfoProto) *DecodeError {
	return d.each(s, &valueInfoSchema, func(f field, _ int) (err *DecodeError) {
		switch f.num {
		case 1:
			v.Name, err = d.name(f)
		case 2:
			err = d.valueType(f.val, v)
		}
		return err
	})
}

var typeSchema = schema{"TypeProto", [maxField]fieldSpec{
	1: {"tensor_type", kindMessage}, 4: {"sequence_type", kindMessage}, 5: {"map_type", kindMessage},
	7: {"opaque_type", kindMessage}, 8: {"sparse_tensor_type", kindMessage}, 9: {"optional_type", kindMessage},
}}

func (d *decoder) valueType(s span, v *ValueInfoProto) *DecodeError {
	kinds := [...]ValueKind{1: KindTensor, 4: KindSequence, 5: KindMap, 7: KindOpaque, 8: KindSparseTensor, 9: KindOptional}
	return d.each(s, &typeSchema, func(f field, _ int) *DecodeError {
		if v.Kind != KindUnknown { // a oneof: a second member would silently win over the first
			return fail(f.tag, ErrDuplicate)
		}
		v.Kind = kinds[f.num]
		if v.Kind == KindTensor {
			return d.tensorType(f.val, v)
		}
		return nil
	})
}

var tensorTypeSchema = schema{"TypeProto.Tensor", [maxField]fieldSpec{1: {"elem_type", kindVarint}, 2: {"shape", kindMessage}}}

var shapeSchema = schema{"TensorShapeProto", [maxField]fieldSpec{1: {"dim", kindMessages}}}

var dimSchema = schema{"Dimension", [maxField]fieldSpec{1: {"dim_value", kindVarint}, 2: {"dim_param", kindBytes}}}

func (d *decoder) tensorType(s span, v *ValueInfoProto) *DecodeError {
	return d.each(s, &tensorTypeSchema, func(f field, _ int) *DecodeError {
		if f.num == 1 {
			t, ok := int32Of(f.v)
			if !ok {
				return fail(f.tag, ErrVarint)
			}
			v.ElemType = t
			return nil
		}
		v.HasShape = true
		n, err := d.count(f.val, &shapeSchema)
		if err != nil {
			return err
		}
		if v.Shape, err = makeSlice[Dim](d, f.tag, n[1]); err != nil {
			return err
		}
		return d.each(f.val, &shapeSchema, func(f field, i int) *DecodeError { return d.dim(f.val, &v.Shape[i]) })
	})
}

// dim reads one dimension: of value and name, a oneof, the last one counts. Some exporters write an empty name for
// "unknown", and two of them must not be taken for equal sizes.
func (d *decoder) dim(s span, o *Dim) *DecodeError {
	return d.each(s, &dimSchema, func(f field, _ int) (err *DecodeError) {
		*o = Dim{}
		switch {
		case f.num == 1:
			o.Kind, o.Value = DimValue, int64(f.v)
		case f.val.hi > f.val.lo:
			o.Kind = DimParam
			o.Param, err = d.name(f)
		}
		return err
	})
}

var functionSchema = schema{"FunctionProto", [maxField]fieldSpec{
	1: {"name", kindBytes}, 4: {"input", kindBytes}, 5: {"output", kindBytes}, 6: {"attribute", kindBytes}, 7: {"node", kindMessages},
	9: {"opset_import", kindMessages}, 10: {"domain", kindBytes}, 11: {"attribute_proto", kindMessages}, 13: {"overload", kindBytes},
}}

func (d *decoder) function(s span, o *FunctionProto) *DecodeError {
	if err := d.functionSlices(s, o); err != nil {
		return err
	}
	return d.each(s, &functionSchema, func(f field, i int) (err *DecodeError) {
		switch f.num {
		case 1:
			o.Name, err = d.name(f)
		case 4:
			o.Input[i], err = d.name(f)
		case 5:
			o.Output[i], err = d.name(f)
		case 6:
			o.Attribute[i], err = d.name(f)
		case 7:
			err = d.node(f.val, &o.Nodes[i], 1)
		case 9:
			err = d.opset(f.val, &o.Opset[i])
		case 10:
			o.Domain, err = d.name(f)
		case 11:
			err = d.attribute(f.val, &o.AttributeInfo[i], 1)
		case 13:
			o.Overload, err = d.name(f)
		}
		return err
	})
}

func (d *decoder) functionSlices(s span, o *FunctionProto) *DecodeError {
	n, err := d.count(s, &functionSchema)
	if err != nil {
		return err
	}
	if o.Input, err = makeSlice[string](d, s.lo, n[4]); err != nil {
		return err
	}
	if o.Output, err = makeSlice[string](d, s.lo, n[5]); err != nil {
		return err
	}
	if o.Attribute, err = makeSlice[string](d, s.lo, n[6]); err != nil {
		return err
	}
	if o.AttributeInfo, err = makeSlice[AttributeProto](d, s.lo, n[11]); err != nil {
		return err
	}
	if o.Nodes, err = makeSlice[NodeProto](d, s.lo, n[7]); err != nil {
		return err
	}
	o.Opset, err = makeSlice[OperatorSetID](d, s.lo, n[9])
	return err
}

// makeSlice charges for n elements that were counted in the file, then makes them. No elements give nil.
func makeSlice[T any](d *decoder, at, n int) ([]T, *DecodeError) {
	if n == 0 {
		return nil, nil
	}
	var zero T
	if err := d.charge(at, n, int(unsafe.Sizeof(zero))); err != nil {
		return nil, err
	}
	return make([]T, n), nil
}
