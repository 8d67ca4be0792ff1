package ir

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Infer is what a row's Infer sees: operand types, and where to put result types and violated constraints.
type Infer struct {
	n   *Node
	out []Type
	err error
}

// InferTypes returns the result types of n from its operands and attributes, or the first violated constraint. It changes nothing.
func (r *Row) InferTypes(n *Node) ([]Type, error) {
	c := *n
	return r.inferInto(&c)
}

// inferInto is InferTypes that leaves absent trailing operands and normalised attributes in n. The attributes are a fresh copy: graphs
// share nodes' attributes, and graphs are compiled concurrently.
func (r *Row) inferInto(n *Node) ([]Type, error) {
	if r.infer == nil {
		return nil, fmt.Errorf("%s: declared but not defined", r.Name)
	}
	if v := reflect.ValueOf(n.Attrs); v.Kind() != reflect.Pointer || v.IsNil() || v.Type().Elem() != r.attrs {
		return nil, fmt.Errorf("%s: attributes are a %T, expected a *%s", r.Name, n.Attrs, r.attrs)
	}
	own := reflect.New(r.attrs)
	own.Elem().Set(reflect.ValueOf(n.Attrs).Elem())
	n.Attrs = own.Interface()
	t := &Infer{n: n}
	t.operands(r)
	if t.err == nil {
		if err := r.Schema.check(own.Elem()); err != nil {
			t.err = fmt.Errorf("%s: %w", r.Name, err)
		}
	}
	if t.err == nil {
		r.infer(t, n.Attrs)
	}
	if t.err != nil {
		return nil, t.err
	}
	for _, o := range t.out {
		if len(o.Shape) > MaxRank {
			return nil, fmt.Errorf("%s: result has rank %d, expected at most %d", r.Name, len(o.Shape), MaxRank)
		}
		if shape, ok := StaticShape(o.Shape); ok {
			if _, err := ByteSize(o.DType, shape); err != nil {
				return nil, fmt.Errorf("%s: result: %w", r.Name, err)
			}
		}
	}
	if n := r.numResults(); len(t.out) != n && n >= 0 {
		return nil, fmt.Errorf("%s: inferred %d results, expected %d", r.Name, len(t.out), n)
	}
	return t.out, nil
}

// operands checks count, presence and dtypes against the row.
func (t *Infer) operands(r *Row) {
	in := t.n.In
	least, most := 0, len(r.In)
	for i, o := range r.In {
		if o.Variadic {
			most = len(in)
		}
		if !o.Optional {
			least = i + 1
		}
	}
	if len(in) < least || len(in) > most {
		t.fail("got %d operands, expected %d to %d", len(in), least, max(most, least))
		return
	}
	for len(in) < len(r.In) && !r.In[len(in)].Variadic { // trailing optional operands
		in = append(in, Value{})
	}
	t.n.In = in
	first := Value{}
	for i, v := range in {
		o := r.operand(i)
		if v.IsZero() {
			if !o.Optional || o.Variadic {
				t.fail("operand %s is missing, expected a value", o.Name)
				return
			}
			continue
		}
		if !o.DTypes.Has(v.DType()) {
			t.Need(false, cmp.Or(o.DTypeC, r.DTypeC), "%s has dtype %s, expected one of %s", o.Name, v.DType(), o.DTypes)
			return
		}
		if r.SameC != "" && o.DTypes == r.In[0].DTypes {
			if first.IsZero() {
				first = v
			} else if first.DType() != v.DType() {
				t.Need(false, r.SameC, "operands have dtypes %s and %s, expected one dtype", first.DType(), v.DType())
				return
			}
		}
	}
}

func (t *Infer) fail(format string, args ...any) {
	if t.err == nil {
		t.err = fmt.Errorf("%s: %s", t.n.Row.Name, fmt.Sprintf(format, args...))
	}
}

// Need records a violated constraint: LayerNorm: C2: gamma has shape [4], expected [5]. An empty c is left out.
func (t *Infer) Need(ok bool, c, format string, args ...any) bool {
	if !ok && t.err == nil {
		if c != "" {
			format = c + ": " + format
		}
		for i, a := range args {
			if s, isShape := a.([]Dim); isShape {
				args[i] = shapeText(s)
			}
		}
		t.fail(format, args...)
	}
	return ok
}

// OK says whether no constraint is violated so far.
func (t *Infer) OK() bool { return t.err == nil }

// Len is the number of operands, absent ones included.
func (t *Infer) Len() int { return len(t.n.In) }

// Has says whether operand i is present.
func (t *Infer) Has(i int) bool { return i < len(t.n.In) && !t.n.In[i].IsZero() }

// Type is the type of operand i.
func (t *Infer) Type(i int) Type { return t.In(i).Type() }

// In is operand i.
func (t *Infer) In(i int) Value {
	if i >= len(t.n.In) {
		return Value{}
	}
	return t.n.In[i]
}

// Out sets the result types.
func (t *Infer) Out(types ...Type) { t.out = types }

// Unknown is a length that the inference cannot express: a symbol of its own.
func (t *Infer) Unknown(axis int) Dim { return Sym(fmt.Sprint(unknownSymbol(t.n.Name), axis)) }

// Measured is a length that only a run tells: a symbol of its own. Result number by of the node, an i64 of rank 0, holds it after the run. The
// runtime binds the symbol to a number of rows that it has memory for, and trims.
func (t *Infer) Measured(by int) Dim {
	return Sym(fmt.Sprint(measuredSymbol, SymbolName(t.n.Name), ".", by))
}

const measuredSymbol = "?rows#"

// IsMeasured says whether a symbol stands for such a length.
func IsMeasured(symbol string) bool { return strings.HasPrefix(symbol, measuredSymbol) }

// Measured returns the lengths among v's dims that only a run tells.
func (v Value) Measured() []string {
	set := map[string]bool{}
	for _, d := range v.Shape() {
		d.Symbols(set)
	}
	var list []string
	for s := range set {
		if IsMeasured(s) {
			list = append(list, s)
		}
	}
	slices.Sort(list)
	return list
}

// MeasuredBy is the result of v's node that holds a length which Measured named.
func (v Value) MeasuredBy(symbol string) (Value, bool) {
	i, err := strconv.Atoi(symbol[strings.LastIndexByte(symbol, '.')+1:])
	if err != nil || !IsMeasured(symbol) || v.n == nil || i < 0 || i >= len(v.n.Types) || v.n.Types[i].DType != I64 || len(v.n.Types[i].Shape) != 0 {
		return Value{}, false
	}
	return v.n.Out(i), true
}

func unknownSymbol(node string) string { return "?" + SymbolName(node) + "." }

// Broadcast is NumPy's: shapes align at the right, a dim of 1 stretches. ok is false when two dims cannot meet.
func Broadcast(shapes ...[]Dim) (out []Dim, ok bool) {
	for _, s := range shapes {
		if len(s) > len(out) {
			out = append(append([]Dim{}, s[:len(s)-len(out)]...), out...)
		}
		for k := 1; k <= len(s); k++ {
			a, b := &out[len(out)-k], s[len(s)-k]
			switch {
			case *a == b || b.Is(1):
			case a.Is(1):
				*a = b
			case a.IsStatic() && b.IsStatic():
				return nil, false
			case a.IsStatic(): // the symbol turns out to be 1 or this
			case b.IsStatic():
				*a = b
			default:
				*a = a.Max(b)
			}
		}
	}
	if out == nil {
		out = []Dim{}
	}
	return out, true
}

// SameShape says that ranks are equal and no pair of dims certainly differs.
func SameShape(a, b []Dim) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Differs(b[i]) {
			return false
		}
	}
	return true
}

// WrapAxis turns an axis in [-rank, rank) into one in [0, rank).
func WrapAxis(axis, rank int) (int, bool) {
	if axis < -rank || axis >= rank {
		return 0, false
	}
	if axis < 0 {
		axis += rank
	}
	return axis, true
}
