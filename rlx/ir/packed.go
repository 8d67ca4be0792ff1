package ir

import (
	"encoding/binary"
	"math"
	"reflect"
	"slices"
)

// Packed is a graph in few bytes, for who needs it seldom: Unpack makes the graph anew. It holds no tensors but those that it was not given a
// number for.
//
// The code is a row of numbers, as binary.AppendUvarint writes them, and of strings: first tables of the strings, types, attributes and tensors
// that occur, each once, then the nodes, which name entries of these. A string says how many bytes it begins with of the one before.
type Packed struct {
	code  []byte
	nodes int
	names *Packed // whose strings stand before this one's own

	dims   []Dim     // that are no numbers
	others []*Tensor // behind the numbered ones
	later  []*Graph  // deferred sub-graphs, which are not packed
}

// Nodes is the number of nodes, those of sub-graphs not counted.
func (p *Packed) Nodes() int { return p.nodes }

// packer writes the parts of a code; those of attributes and types are keys of their tables first.
type packer struct {
	p       *Packed
	strings numbering
	types   numbering
	attrs   numbering
	tensors map[*Tensor]int
	shapes  []Type // of the tensors
	dims    map[Dim]int
}

// numbering numbers byte strings in the order in which they come.
type numbering struct {
	list  []string
	index map[string]int
}

func (t *numbering) add(s string) uint64 {
	i, ok := t.index[s]
	if !ok {
		i = len(t.list)
		t.index[s] = i
		t.list = append(t.list, s)
	}
	return uint64(i)
}

// key is add of bytes that the caller goes on using.
func (t *numbering) key(b []byte) uint64 {
	if i, ok := t.index[string(b)]; ok {
		return uint64(i)
	}
	return t.add(string(b))
}

// Pack packs g. tensors have the numbers that Unpack asks for. The strings that names has are not written again; it may be nil, and must not
// refer to another graph's.
func Pack(g *Graph, tensors []*Tensor, names *Packed) *Packed {
	w := &packer{p: &Packed{nodes: len(g.Nodes), names: names}, tensors: make(map[*Tensor]int, len(tensors)), dims: map[Dim]int{}}
	for _, t := range []*numbering{&w.strings, &w.types, &w.attrs} {
		t.index = map[string]int{}
	}
	shared := 0
	if names != nil {
		r := unpacker{p: names, code: names.code}
		for _, s := range r.strings() {
			w.strings.add(s)
		}
		shared = len(w.strings.list)
	}
	for i, t := range tensors {
		w.tensors[t] = i
		w.shapes = append(w.shapes, Type{t.DType(), Dims(t.Shape()...)})
	}
	numbered := len(tensors)
	body := w.graph(nil, g)
	var shapes []byte
	for _, t := range w.shapes {
		shapes = w.number(shapes, w.typ(t))
	}
	code := w.text(nil, w.strings.list[shared:])
	code = w.number(code, uint64(len(w.types.list)))
	for _, t := range w.types.list {
		code = append(code, t...)
	}
	code = w.number(w.number(code, uint64(numbered)), uint64(len(w.shapes)))
	code = append(code, shapes...)
	code = w.number(code, uint64(len(w.attrs.list)))
	for _, a := range w.attrs.list {
		code = append(code, a...)
	}
	w.p.code = slices.Clip(append(make([]byte, 0, len(code)+len(body)), append(code, body...)...))
	w.p.dims = slices.Clip(w.p.dims)
	return w.p
}

func (w *packer) number(b []byte, n uint64) []byte { return binary.AppendUvarint(b, n) }

func (w *packer) signed(b []byte, n int64) []byte { return binary.AppendVarint(b, n) }

func (w *packer) string(b []byte, s string) []byte { return w.number(b, w.strings.add(s)) }

// text writes strings by what they have in common with the one before.
func (w *packer) text(b []byte, list []string) []byte {
	b = w.number(b, uint64(len(list)))
	last := ""
	for _, s := range list {
		n := 0
		for n < min(len(s), len(last)) && s[n] == last[n] {
			n++
		}
		b = w.number(w.number(b, uint64(n)), uint64(len(s)-n))
		b, last = append(b, s[n:]...), s
	}
	return b
}

// typ is the number of a type.
func (w *packer) typ(t Type) uint64 {
	var room [64]byte
	return w.types.key(w.shape(append(room[:0], byte(t.DType)), t.Shape))
}

// shape writes dims: twice a number, or once more than twice the number of an expression; nil is not the empty list.
func (w *packer) shape(b []byte, shape []Dim) []byte {
	if shape == nil {
		return w.number(b, 0)
	}
	b = w.number(b, uint64(len(shape))+1)
	for _, d := range shape {
		n, ok := d.Static()
		if ok && n >= 0 && n < math.MaxInt64/2 {
			b = w.number(b, uint64(n)*2)
			continue
		}
		i, ok := w.dims[d]
		if !ok {
			i = len(w.p.dims)
			w.dims[d] = i
			w.p.dims = append(w.p.dims, d)
		}
		b = w.number(b, uint64(i)*2+1)
	}
	return b
}

// tensor writes one more than the number of t, 0 for none.
func (w *packer) tensor(b []byte, t *Tensor) []byte {
	if t == nil {
		return w.number(b, 0)
	}
	i, ok := w.tensors[t]
	if !ok {
		i = len(w.shapes)
		w.tensors[t] = i
		w.shapes = append(w.shapes, Type{}) // it is kept as it is
		w.p.others = append(w.p.others, t)
	}
	return w.number(b, uint64(i)+1)
}

func (w *packer) origin(b []byte, o Origin) []byte { return w.string(w.string(b, o.Op), o.Name) }

func (w *packer) value(b []byte, at int, v Value) []byte {
	if v.n == nil {
		return w.number(b, 0)
	}
	b = w.number(b, uint64(at-v.n.id)*2+boolBit(v.i != 0)+2) // operands stand before their readers
	if v.i != 0 {
		b = w.number(b, uint64(v.i))
	}
	return b
}

func boolBit(v bool) uint64 {
	if v {
		return 1
	}
	return 0
}

func (w *packer) graph(b []byte, g *Graph) []byte {
	b = w.number(w.string(b, g.Name), uint64(len(g.Nodes)))
	for at, n := range g.Nodes {
		b = w.node(b, at, n)
	}
	b = w.number(b, uint64(len(g.Inputs)))
	for _, n := range g.Inputs {
		b = w.number(b, uint64(n.id))
	}
	b = w.number(b, uint64(len(g.Outputs)))
	for _, o := range g.Outputs {
		b = w.value(w.string(b, o.Name), len(g.Nodes), o.Value)
	}
	return b
}

// What a node has beside its row, name, operands, attributes and the type of one result.
const (
	packedFrom = 1 << iota
	packedAbsorbed
	packedTypes
	packedBound
	packedBits = 4
)

func (w *packer) node(b []byte, at int, n *Node) []byte {
	param, _ := n.ParamName()
	bound := n.g.params[param]
	has := boolBit(n.From != Origin{})*packedFrom | boolBit(len(n.Absorbed) != 0)*packedAbsorbed | boolBit(len(n.Types) != 1)*packedTypes
	if param != "" && bound != nil {
		has |= packedBound
	}
	b = w.string(w.number(b, uint64(n.Row.Num())<<packedBits|has), n.Name)
	b = w.number(b, uint64(len(n.In)))
	for _, v := range n.In {
		b = w.value(b, at, v)
	}
	var room [64]byte
	b = w.number(b, w.attrs.key(w.attributes(w.number(room[:0], uint64(n.Row.Num())), n.Row, n.Attrs)))
	if has&packedTypes != 0 {
		b = w.number(b, uint64(len(n.Types)))
	}
	for _, t := range n.Types {
		b = w.number(b, w.typ(t))
	}
	if has&packedFrom != 0 {
		b = w.origin(b, n.From)
	}
	if has&packedAbsorbed != 0 {
		b = w.number(b, uint64(len(n.Absorbed)))
		for _, o := range n.Absorbed {
			b = w.origin(b, o)
		}
	}
	if has&packedBound != 0 {
		b = w.tensor(b, bound)
	}
	return b
}

// attributes writes which fields are not zero, and those.
func (w *packer) attributes(b []byte, r *Row, attrs any) []byte {
	if attrs == nil {
		return w.number(b, 0)
	}
	v := reflect.ValueOf(attrs).Elem()
	set := uint64(0)
	for i, a := range r.Schema {
		if f := v.Field(a.field); !f.IsZero() || a.Kind == AttrFloat && math.Signbit(f.Float()) { // -0 counts as zero there
			set |= 1 << i
		}
	}
	b = w.number(b, set<<1|1)
	for i, a := range r.Schema {
		if set>>i&1 != 0 {
			b = w.attribute(b, a, v.Field(a.field))
		}
	}
	return b
}

func (w *packer) attribute(b []byte, a Attr, f reflect.Value) []byte {
	switch v := f.Interface().(type) {
	case DType:
		return w.number(b, uint64(v))
	case Number:
		return w.number(w.number(b, uint64(v.kind)), v.bits)
	case *int64:
		return w.signed(b, *v)
	case []Dim:
		return w.shape(b, v)
	case *Tensor:
		return w.tensor(b, v)
	case *Graph:
		if v.build != nil {
			w.p.later = append(w.p.later, v)
			return w.number(b, uint64(len(w.p.later)))
		}
		return w.graph(w.number(b, 0), v)
	}
	switch f.Kind() {
	case reflect.Int, reflect.Int64:
		return w.signed(b, f.Int())
	case reflect.Uint64:
		return w.number(b, f.Uint())
	case reflect.Float64:
		return w.number(b, math.Float64bits(f.Float()))
	case reflect.String:
		return w.string(b, f.String())
	case reflect.Slice:
		b = w.number(b, uint64(f.Len()))
		for i := range f.Len() {
			if e := f.Index(i); e.Kind() == reflect.Float64 {
				b = w.number(b, math.Float64bits(e.Float()))
			} else {
				b = w.signed(b, e.Int())
			}
		}
	}
	return b // a bool that is set
}

// unpacker reads a code, which Pack wrote.
type unpacker struct {
	p       *Packed
	code    []byte
	names   []string
	types   []Type
	attrs   []any
	tensors []*Tensor
}

// Unpack makes the graph that was packed. tensor is asked once for each number; nil stands for tensors that are all others.
func (p *Packed) Unpack(tensor func(i int, dtype DType, shape []int64) *Tensor) *Graph {
	r := &unpacker{p: p, code: p.code}
	if p.names != nil {
		before := unpacker{p: p.names, code: p.names.code}
		r.names = before.strings()
	}
	r.names = append(r.names, r.strings()...)
	r.types = make([]Type, r.number())
	for i := range r.types {
		r.types[i] = Type{r.dtype(), r.shape()}
	}
	numbered, all := r.number(), r.number()
	for i := range all {
		t := Type{}
		if k := r.number(); i < numbered {
			t = r.types[k]
			shape, _ := StaticShape(t.Shape)
			r.tensors = append(r.tensors, tensor(i, t.DType, shape))
		}
	}
	r.tensors = append(r.tensors, p.others...)
	r.attrs = make([]any, r.number())
	for i := range r.attrs {
		row, _ := RowByNum(r.number())
		r.attrs[i] = r.attributes(row)
	}
	return r.graph()
}

func (r *unpacker) number() int { return int(r.bits()) }

func (r *unpacker) bits() uint64 {
	v, n := binary.Uvarint(r.code)
	r.code = r.code[n:]
	return v
}

func (r *unpacker) signed() int64 {
	v, n := binary.Varint(r.code)
	r.code = r.code[n:]
	return v
}

func (r *unpacker) string() string { return r.names[r.number()] }

func (r *unpacker) dtype() DType {
	d := DType(r.code[0])
	r.code = r.code[1:]
	return d
}

func (r *unpacker) strings() []string {
	list := make([]string, r.number())
	last := ""
	for i := range list {
		n, more := r.number(), r.number()
		last = last[:n] + string(r.code[:more])
		list[i], r.code = last, r.code[more:]
	}
	return list
}

func (r *unpacker) shape() []Dim {
	n := r.number()
	if n == 0 {
		return nil
	}
	shape := make([]Dim, n-1)
	for i := range shape {
		if v := r.number(); v&1 == 0 {
			shape[i] = D(int64(v / 2))
		} else {
			shape[i] = r.p.dims[v/2]
		}
	}
	return shape
}

func (r *unpacker) tensor() *Tensor {
	if i := r.number(); i > 0 {
		return r.tensors[i-1]
	}
	return nil
}

func (r *unpacker) origin() Origin { return Origin{r.string(), r.string()} }

func (r *unpacker) value(g *Graph, at int) Value {
	k := r.number()
	if k == 0 {
		return Value{}
	}
	v := Value{n: g.Nodes[at-(k-2)/2]}
	if k&1 != 0 {
		v.i = r.number()
	}
	return v
}

func (r *unpacker) graph() *Graph {
	name, count := r.string(), r.number()
	g := newGraph(name, count)
	nodes := make([]Node, count)
	for at := range nodes {
		r.node(g, at, &nodes[at])
	}
	g.Inputs = make([]*Node, r.number())
	for i := range g.Inputs {
		g.Inputs[i] = g.Nodes[r.number()]
	}
	g.Outputs = make([]Output, r.number())
	for i := range g.Outputs {
		g.Outputs[i] = Output{r.string(), r.value(g, count)}
	}
	return g
}

func (r *unpacker) node(g *Graph, at int, n *Node) {
	head := r.number()
	n.Row, _ = RowByNum(head >> packedBits)
	n.Name, n.g, n.id = r.string(), g, at
	if k := r.number(); k > 0 {
		n.In = make([]Value, k)
		for i := range n.In {
			n.In[i] = r.value(g, at)
		}
	}
	n.Attrs = r.attrs[r.number()]
	results := 1
	if head&packedTypes != 0 {
		results = r.number()
	}
	n.Types = make([]Type, results)
	for i := range n.Types {
		n.Types[i] = r.types[r.number()]
	}
	if head&packedFrom != 0 {
		n.From = r.origin()
	}
	if head&packedAbsorbed != 0 {
		n.Absorbed = make([]Origin, r.number())
		for i := range n.Absorbed {
			n.Absorbed[i] = r.origin()
		}
	}
	leaf, ok := n.leafName()
	if ok {
		g.leaves[leaf] = true
	}
	if head&packedBound != 0 {
		g.params[leaf] = r.tensor()
	}
	g.names[n.Name] = true
	g.Nodes = append(g.Nodes, n)
}

func (r *unpacker) attributes(row *Row) any {
	set := r.bits()
	if set == 0 {
		return nil
	}
	v := reflect.New(row.attrs)
	for i, a := range row.Schema {
		if set>>(i+1)&1 != 0 {
			r.attribute(a, v.Elem().Field(a.field))
		}
	}
	return v.Interface()
}

func (r *unpacker) attribute(a Attr, f reflect.Value) {
	switch a.Kind {
	case AttrDType:
		f.Set(reflect.ValueOf(DType(r.number())))
	case AttrNumber:
		f.Set(reflect.ValueOf(Number{numberKind(r.number()), r.bits()}))
	case AttrOptInt:
		n := r.signed()
		f.Set(reflect.ValueOf(&n))
	case AttrDims:
		f.Set(reflect.ValueOf(r.shape()))
	case AttrTensor:
		f.Set(reflect.ValueOf(r.tensor()))
	case AttrGraph:
		if k := r.number(); k > 0 {
			f.Set(reflect.ValueOf(r.p.later[k-1]))
		} else {
			f.Set(reflect.ValueOf(r.graph()))
		}
	case AttrInt:
		f.SetInt(r.signed())
	case AttrUint:
		f.SetUint(r.bits())
	case AttrFloat:
		f.SetFloat(math.Float64frombits(r.bits()))
	case AttrBool:
		f.SetBool(true)
	case AttrEnum, AttrString:
		f.SetString(r.string())
	default:
		r.list(f)
	}
}

func (r *unpacker) list(f reflect.Value) {
	n := r.number()
	list := reflect.MakeSlice(f.Type(), n, n)
	for i := range n {
		if e := list.Index(i); e.Kind() == reflect.Float64 {
			e.SetFloat(math.Float64frombits(r.bits()))
		} else {
			e.SetInt(r.signed())
		}
	}
	f.Set(list)
}
