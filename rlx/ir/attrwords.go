package ir

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
)

// Attributes in the command words, in row order: int, uint, float, number take two words (number three, its kind first), bool,
// enum and dtype one, int? a flag and two. Lists and strings are a length (0xffffffff: absent) and their entries, dims as integers,
// bytes padded to whole words. A tensor is a flag, dtype, rank, dims (two words each), byte length and bytes. A graph is a length in words
// (0xffffffff: absent) and the words of the program that it became.

const absentLen = math.MaxUint32

// AppendAttrs encodes attrs, a pointer to the row's struct. Dims must be static by then; bodies holds the words of the sub-graphs that
// are present.
func (r *Row) AppendAttrs(w []uint32, attrs any, bodies ...[]uint32) ([]uint32, error) {
	v := reflect.ValueOf(attrs).Elem()
	for _, a := range r.Schema {
		var err error
		if a.Kind == AttrGraph {
			if w, bodies, err = appendBody(w, v.Field(a.field).Interface().(*Graph), bodies); err != nil {
				return nil, fmt.Errorf("%s: %s: %w", r.Name, a.Name, err)
			}
			continue
		}
		if w, err = a.appendWords(w, v.Field(a.field)); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", r.Name, a.Name, err)
		}
	}
	return w, nil
}

func appendBody(w []uint32, g *Graph, bodies [][]uint32) ([]uint32, [][]uint32, error) {
	switch {
	case g == nil:
		return append(w, absentLen), bodies, nil
	case len(bodies) == 0:
		return nil, nil, errors.New("the sub-graph has no words")
	}
	w = append(w, uint32(len(bodies[0])))
	return append(w, bodies[0]...), bodies[1:], nil
}

func put64(w []uint32, v uint64) []uint32 { return append(w, uint32(v), uint32(v>>32)) }

func putBytes(w []uint32, b []byte) []uint32 {
	w = append(w, uint32(len(b)))
	for len(b) > 0 {
		var word [4]byte
		n := copy(word[:], b)
		w = append(w, uint32(word[0])|uint32(word[1])<<8|uint32(word[2])<<16|uint32(word[3])<<24)
		b = b[n:]
	}
	return w
}

func (a Attr) appendWords(w []uint32, f reflect.Value) ([]uint32, error) {
	switch v := f.Interface().(type) {
	case DType:
		return append(w, uint32(v)), nil
	case Number:
		return put64(append(w, uint32(v.kind)), v.bits), nil
	case *int64:
		if v == nil {
			return append(w, 0, 0, 0), nil
		}
		return put64(append(w, 1), uint64(*v)), nil
	case []Dim:
		if v == nil {
			return append(w, absentLen), nil
		}
		w = append(w, uint32(len(v)))
		for _, d := range v {
			n, ok := d.Static()
			if !ok {
				return nil, fmt.Errorf("dim %s is not static", d)
			}
			w = put64(w, uint64(n))
		}
		return w, nil
	case *Tensor:
		if v == nil {
			return append(w, 0), nil
		}
		w = append(w, 1, uint32(v.dtype), uint32(len(v.shape)))
		for _, d := range v.shape {
			w = put64(w, uint64(d))
		}
		return putBytes(w, v.Bytes()), nil
	}
	switch f.Kind() {
	case reflect.Int, reflect.Int64:
		return put64(w, uint64(f.Int())), nil
	case reflect.Uint64:
		return put64(w, f.Uint()), nil
	case reflect.Float64:
		return put64(w, math.Float64bits(f.Float())), nil
	case reflect.Bool:
		if f.Bool() {
			return append(w, 1), nil
		}
		return append(w, 0), nil
	case reflect.String:
		if a.Kind == AttrEnum {
			i := slices.Index(a.Enum, f.String())
			if i < 0 {
				return nil, fmt.Errorf("%q is not one of %v", f.String(), a.Enum)
			}
			return append(w, uint32(i)), nil
		}
		return putBytes(w, []byte(f.String())), nil
	case reflect.Slice:
		if f.IsNil() {
			return append(w, absentLen), nil
		}
		w = append(w, uint32(f.Len()))
		for i := range f.Len() {
			if e := f.Index(i); e.Kind() == reflect.Float64 {
				w = put64(w, math.Float64bits(e.Float()))
			} else {
				w = put64(w, uint64(e.Int()))
			}
		}
		return w, nil
	}
	return nil, fmt.Errorf("%s cannot be encoded", a.Kind)
}

// ReadAttrs decodes attributes, checks enums and ranges, and returns the words that follow. body makes the sub-graph that stands for
// the words of one.
func (r *Row) ReadAttrs(w []uint32, body func(words []uint32) (*Graph, error)) (any, []uint32, error) {
	v := reflect.New(r.attrs)
	rd := wordReader{w: w}
	for _, a := range r.Schema {
		if a.Kind == AttrGraph {
			rd.body(v.Elem().Field(a.field), body)
		} else {
			a.readWords(&rd, v.Elem().Field(a.field))
		}
		if rd.err != nil {
			return nil, nil, fmt.Errorf("%s: %s: %w", r.Name, a.Name, rd.err)
		}
	}
	if err := r.Schema.check(v.Elem()); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", r.Name, err)
	}
	return v.Interface(), rd.w, nil
}

type wordReader struct {
	w   []uint32
	err error
}

func (r *wordReader) u32() uint32 {
	if len(r.w) == 0 {
		if r.err == nil {
			r.err = fmt.Errorf("words are truncated")
		}
		return 0
	}
	v := r.w[0]
	r.w = r.w[1:]
	return v
}

func (r *wordReader) u64() uint64 { lo := uint64(r.u32()); return lo | uint64(r.u32())<<32 }

// length reads a list length and checks it against the words that are left.
func (r *wordReader) length(wordsEach int) (n int, absent bool) {
	v := r.u32()
	if v == absentLen {
		return 0, true
	}
	if uint64(v)*uint64(wordsEach) > uint64(len(r.w)) {
		r.err = fmt.Errorf("length %d, but %d words are left", v, len(r.w))
		return 0, true
	}
	return int(v), false
}

func (r *wordReader) body(f reflect.Value, make func([]uint32) (*Graph, error)) {
	n, absent := r.length(1)
	if absent || r.err != nil {
		return
	}
	words := r.w[:n:n]
	r.w = r.w[n:]
	if make == nil {
		r.err = errors.New("a sub-graph, which nobody reads")
		return
	}
	g, err := make(words)
	if err != nil {
		r.err = err
		return
	}
	f.Set(reflect.ValueOf(g))
}

func (r *wordReader) bytes() []byte {
	n := int64(r.u32())
	if (n+3)/4 > int64(len(r.w)) {
		r.err = fmt.Errorf("length %d, but %d words are left", n, len(r.w))
		return nil
	}
	b := make([]byte, 0, (n+3)/4*4)
	for range (n + 3) / 4 {
		v := r.u32()
		b = append(b, byte(v), byte(v>>8), byte(v>>16), byte(v>>24))
	}
	return b[:n]
}

func (a Attr) readWords(r *wordReader, f reflect.Value) {
	switch a.Kind {
	case AttrDType:
		d := r.u32()
		if d >= uint32(numDTypes) && r.err == nil { // Invalid is an absent one
			r.err = fmt.Errorf("%d is not a dtype", d)
		}
		f.SetUint(uint64(uint8(d)))
	case AttrNumber:
		n := Number{kind: numberKind(r.u32())}
		if n.bits = r.u64(); n.kind > numberFloat && r.err == nil {
			r.err = fmt.Errorf("number kind %d", n.kind)
		}
		f.Set(reflect.ValueOf(n))
	case AttrOptInt:
		present, v := r.u32(), int64(r.u64())
		if present != 0 {
			f.Set(reflect.ValueOf(&v))
		}
	case AttrInt:
		f.SetInt(int64(r.u64()))
	case AttrUint:
		f.SetUint(r.u64())
	case AttrFloat:
		f.SetFloat(math.Float64frombits(r.u64()))
	case AttrBool:
		f.SetBool(r.u32() != 0)
	case AttrEnum:
		i := r.u32()
		if int(i) >= len(a.Enum) {
			r.err = fmt.Errorf("enum value %d, expected less than %d", i, len(a.Enum))
			return
		}
		f.SetString(a.Enum[i])
	case AttrString:
		f.SetString(string(r.bytes()))
	case AttrTensor:
		a.readTensor(r, f)
	default:
		a.readList(r, f)
	}
}

func (a Attr) readList(r *wordReader, f reflect.Value) {
	n, absent := r.length(2)
	if absent {
		return
	}
	list := reflect.MakeSlice(f.Type(), n, n)
	for i := range n {
		switch e, v := list.Index(i), r.u64(); a.Kind {
		case AttrDims:
			e.Set(reflect.ValueOf(D(int64(v))))
		case AttrFloats:
			e.SetFloat(math.Float64frombits(v))
		default:
			e.SetInt(int64(v))
		}
	}
	f.Set(list)
}

func (a Attr) readTensor(r *wordReader, f reflect.Value) {
	if r.u32() == 0 {
		return
	}
	d, rank := r.u32(), r.u32()
	if d >= uint32(numDTypes) || rank > MaxRank {
		r.err = fmt.Errorf("dtype %d of rank %d, expected less than %d and at most %d", d, rank, numDTypes, MaxRank)
		return
	}
	shape := make([]int64, rank)
	for i := range shape {
		shape[i] = int64(r.u64())
	}
	t, err := FromBytes(DType(d), shape, r.bytes())
	if r.err == nil {
		r.err = err
	}
	f.Set(reflect.ValueOf(t))
}

// BindAttrs returns attrs with the symbols in its dims replaced, those of sub-graphs too; attrs itself where it mentions none.
func (r *Row) BindAttrs(attrs any, values map[string]int64) (any, error) {
	v := reflect.ValueOf(attrs).Elem()
	var bound reflect.Value
	set := func(a Attr, value any) {
		if !bound.IsValid() {
			bound = reflect.New(v.Type())
			bound.Elem().Set(v)
		}
		bound.Elem().Field(a.field).Set(reflect.ValueOf(value))
	}
	for _, a := range r.Schema {
		switch a.Kind {
		case AttrDims:
			dims := v.Field(a.field).Interface().([]Dim)
			if !slices.ContainsFunc(dims, func(d Dim) bool { return !d.IsStatic() }) {
				continue
			}
			out := make([]Dim, len(dims))
			for i, d := range dims {
				out[i] = d.Bind(values)
			}
			set(a, out)
		case AttrGraph:
			g := v.Field(a.field).Interface().(*Graph)
			if g == nil || g.build != nil || !g.symbolic() {
				continue
			}
			sub, err := g.Bind(values)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", a.Name, err)
			}
			set(a, sub)
		}
	}
	if !bound.IsValid() {
		return attrs, nil
	}
	return bound.Interface(), nil
}

// symbolic says whether a type or an attribute of the graph mentions a symbol.
func (g *Graph) symbolic() bool {
	names := map[string]bool{}
	g.EachNode(func(n *Node) {
		for _, t := range n.Types {
			for _, d := range t.Shape {
				d.Symbols(names)
			}
		}
		n.Row.dimSymbols(n.Attrs, names)
	})
	return len(names) > 0
}

// AttrSymbols adds the names that the attributes' dims mention to into, those of sub-graphs too.
func (r *Row) AttrSymbols(attrs any, into map[string]bool) {
	r.dimSymbols(attrs, into)
	for _, g := range r.Graphs(attrs) {
		if g != nil {
			g.EachNode(func(n *Node) { n.Row.dimSymbols(n.Attrs, into) })
		}
	}
}

func (r *Row) dimSymbols(attrs any, into map[string]bool) {
	v := reflect.ValueOf(attrs).Elem()
	for _, a := range r.Schema {
		if a.Kind == AttrDims {
			for _, d := range v.Field(a.field).Interface().([]Dim) {
				d.Symbols(into)
			}
		}
	}
}
