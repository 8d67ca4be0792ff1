package onnx

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// Encode writes a model as the bytes that [Decode] reads. Tensors need raw data or a place in another file: it writes what [Export]
// makes, and neither typed data fields nor string tensors.
func Encode(w io.Writer, m *ModelProto) error {
	e := m.message()
	if e.len() > MaxModelBytes {
		return fmt.Errorf("onnx: the model takes %d bytes, a protobuf holds at most %d: its weights need external data", e.len(), MaxModelBytes)
	}
	return e.write(w)
}

// MaxModelBytes is the greatest model that readers accept: one with more weights needs [ExternalData].
const MaxModelBytes = math.MaxInt32

// message is a protobuf message as parts that are written one after the other, so that weights are not copied on the way.
type message struct {
	parts [][]byte
	size  int // of parts
	tail  []byte
}

// ownPart is the length from which bytes become a part of their own.
const ownPart = 4096

func (m *message) len() int { return m.size + len(m.tail) }

func (m *message) write(w io.Writer) error {
	for _, p := range append(m.parts, m.tail) {
		if _, err := w.Write(p); err != nil {
			return err
		}
	}
	return nil
}

// integer appends a varint field.
func (m *message) integer(num protowire.Number, v int64) {
	m.tail = protowire.AppendVarint(protowire.AppendTag(m.tail, num, protowire.VarintType), uint64(v))
}

func (m *message) float(num protowire.Number, v float32) {
	m.tail = protowire.AppendFixed32(protowire.AppendTag(m.tail, num, protowire.Fixed32Type), math.Float32bits(v))
}

// text appends a string field that is not empty.
func (m *message) text(num protowire.Number, s string) {
	if s != "" {
		m.bytes(num, []byte(s))
	}
}

func (m *message) bytes(num protowire.Number, b []byte) {
	m.tail = protowire.AppendVarint(protowire.AppendTag(m.tail, num, protowire.BytesType), uint64(len(b)))
	if len(b) < ownPart {
		m.tail = append(m.tail, b...)
		return
	}
	m.parts = append(m.parts, m.tail, b)
	m.size += len(m.tail) + len(b)
	m.tail = nil
}

// sub appends a message as a field.
func (m *message) sub(num protowire.Number, s *message) {
	m.tail = protowire.AppendVarint(protowire.AppendTag(m.tail, num, protowire.BytesType), uint64(s.len()))
	if len(s.parts) == 0 {
		m.tail = append(m.tail, s.tail...)
		return
	}
	m.parts = append(append(m.parts, m.tail), s.parts...)
	m.size += len(m.tail) + s.size
	m.tail = s.tail
}

// pack appends integers as one packed field.
func (m *message) pack(num protowire.Number, list []int64) {
	var b []byte
	for _, v := range list {
		b = protowire.AppendVarint(b, uint64(v))
	}
	if len(b) > 0 {
		m.bytes(num, b)
	}
}

func (p *ModelProto) message() *message {
	m := &message{}
	m.integer(1, p.IRVersion)
	m.text(2, p.ProducerName)
	m.text(3, p.ProducerVersion)
	m.text(4, p.Domain)
	if p.ModelVersion != 0 {
		m.integer(5, p.ModelVersion)
	}
	m.text(6, p.DocString)
	m.sub(7, p.Graph.message())
	for _, o := range p.Opset {
		s := &message{}
		s.text(1, o.Domain)
		s.integer(2, o.Version)
		m.sub(8, s)
	}
	for _, d := range p.Metadata {
		m.sub(14, d.message())
	}
	return m
}

func (p StringPair) message() *message {
	m := &message{}
	m.text(1, p.Key)
	m.text(2, p.Value)
	return m
}

func (p *GraphProto) message() *message {
	m := &message{}
	for i := range p.Nodes {
		m.sub(1, p.Nodes[i].message())
	}
	m.text(2, p.Name)
	for i := range p.Initializers {
		m.sub(5, p.Initializers[i].message())
	}
	for num, list := range [][]ValueInfoProto{p.Inputs, p.Outputs, p.ValueInfo} {
		for i := range list {
			m.sub(protowire.Number(11+num), list[i].message())
		}
	}
	return m
}

func (p *NodeProto) message() *message {
	m := &message{}
	for num, list := range [][]string{p.Input, p.Output} {
		for _, name := range list { // an empty name stands for a value left out, and counts
			m.bytes(protowire.Number(1+num), []byte(name))
		}
	}
	m.text(3, p.Name)
	m.text(4, p.OpType)
	for i := range p.Attribute {
		m.sub(5, p.Attribute[i].message())
	}
	m.text(7, p.Domain)
	m.text(8, p.Overload)
	return m
}

func (a *AttributeProto) message() *message {
	m := &message{}
	m.text(1, a.Name)
	switch a.Type {
	case AttributeFloat:
		m.float(2, a.F)
	case AttributeInt:
		m.integer(3, a.I)
	case AttributeString:
		m.bytes(4, []byte(a.S))
	case AttributeTensor:
		m.sub(5, a.T.message())
	case AttributeGraph:
		m.sub(6, a.G.message())
	case AttributeFloats:
		var b []byte
		for _, f := range a.Floats {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(f))
		}
		m.bytes(7, b)
	case AttributeInts:
		m.pack(8, a.Ints)
	case AttributeStrings:
		for _, s := range a.Strings {
			m.bytes(9, []byte(s))
		}
	}
	m.integer(20, int64(a.Type))
	return m
}

func (t *TensorProto) message() *message {
	m := &message{}
	m.pack(1, t.Dims)
	m.integer(2, int64(t.DataType))
	m.text(8, t.Name)
	if t.hasRaw {
		m.bytes(9, t.raw)
	}
	for _, p := range t.ExternalData {
		m.sub(13, p.message())
	}
	if t.DataLocation != LocationDefault {
		m.integer(14, int64(t.DataLocation))
	}
	return m
}

func (v *ValueInfoProto) message() *message {
	shape := &message{}
	for _, d := range v.Shape {
		dim := &message{}
		switch d.Kind {
		case DimValue:
			dim.integer(1, d.Value)
		case DimParam:
			dim.text(2, d.Param)
		}
		shape.sub(1, dim)
	}
	tensor, typ, m := &message{}, &message{}, &message{}
	tensor.integer(1, int64(v.ElemType))
	if v.HasShape {
		tensor.sub(2, shape)
	}
	typ.sub(1, tensor)
	m.text(1, v.Name)
	m.sub(2, typ)
	return m
}
