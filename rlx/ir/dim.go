package ir

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"unique"
)

// Dim is the length of one axis: an int64, or an expression over named symbols built with + - * floordiv ceildiv min max.
// Expressions are kept canonical (sums of products, sorted), so two Dims that Add and Mul can show equal compare equal with ==.
// The zero Dim is the length 0.
type Dim struct {
	n int64
	e unique.Handle[dimExpr] // zero for a static dim
}

// dimExpr is one level of an expression. Its operands are Dims, which are canonical themselves.
type dimExpr struct {
	op   string // "sym", "+", "*", "floordiv", "ceildiv", "min", "max"
	name string // of a symbol
	a, b Dim
}

var staticDim unique.Handle[dimExpr]

// D is the static dim n.
func D(n int64) Dim { return Dim{n: n} }

// Sym is the dim called name.
func Sym(name string) Dim { return dimOf("sym", name, Dim{}, Dim{}) }

func dimOf(op, name string, a, b Dim) Dim { return Dim{e: unique.Make(dimExpr{op, name, a, b})} }

// Static returns the length, and whether it is known.
func (d Dim) Static() (int64, bool) { return d.n, d.e == staticDim }

// IsStatic says whether the length is known.
func (d Dim) IsStatic() bool { return d.e == staticDim }

// Is says whether d is the static length n.
func (d Dim) Is(n int64) bool { return d.e == staticDim && d.n == n }

// term is coef times a product of atoms (dims that are neither static, a sum nor a product), sorted by text.
type term struct {
	coef  int64
	atoms []Dim
	key   string
}

// terms returns d as a sum of terms without equal keys; the constant term has no atoms.
func (d Dim) terms() []term {
	if d.e == staticDim {
		if d.n == 0 {
			return nil
		}
		return []term{{coef: d.n}}
	}
	switch x := d.e.Value(); x.op {
	case "+":
		return append(x.a.terms(), x.b.terms()...)
	case "*":
		if c, ok := x.a.Static(); ok {
			ts := x.b.terms()
			return []term{{coef: c * ts[0].coef, atoms: ts[0].atoms, key: ts[0].key}}
		}
		atoms := append(slices.Clone(x.a.terms()[0].atoms), x.b.terms()[0].atoms...)
		return []term{newTerm(1, atoms)}
	}
	return []term{newTerm(1, []Dim{d})}
}

func newTerm(coef int64, atoms []Dim) term {
	slices.SortFunc(atoms, func(a, b Dim) int { return strings.Compare(a.String(), b.String()) })
	parts := make([]string, len(atoms))
	for i, a := range atoms {
		parts[i] = a.String()
	}
	return term{coef, atoms, strings.Join(parts, "*")}
}

// sum is the canonical Dim of a sum of terms: like terms merged, sorted by text with the constant last.
func sum(ts []term) Dim {
	slices.SortStableFunc(ts, func(a, b term) int {
		if (a.key == "") != (b.key == "") {
			return len(b.key) - len(a.key)
		}
		return strings.Compare(a.key, b.key)
	})
	var merged []term
	for _, t := range ts {
		if n := len(merged); n > 0 && merged[n-1].key == t.key {
			merged[n-1].coef = satAdd(merged[n-1].coef, t.coef)
		} else {
			merged = append(merged, t)
		}
	}
	merged = slices.DeleteFunc(merged, func(t term) bool { return t.coef == 0 })
	if len(merged) == 0 {
		return Dim{}
	}
	out := merged[len(merged)-1].dim()
	for i := len(merged) - 2; i >= 0; i-- {
		out = dimOf("+", "", merged[i].dim(), out)
	}
	return out
}

func (t term) dim() Dim {
	if len(t.atoms) == 0 {
		return D(t.coef)
	}
	out := t.atoms[len(t.atoms)-1]
	for i := len(t.atoms) - 2; i >= 0; i-- {
		out = dimOf("*", "", t.atoms[i], out)
	}
	if t.coef != 1 {
		out = dimOf("*", "", D(t.coef), out)
	}
	return out
}

// Add is d + o. Static sums and products saturate at the ends of int64: a length there is refused by every shape check.
func (d Dim) Add(o Dim) Dim {
	if d.e == staticDim && o.e == staticDim {
		return D(satAdd(d.n, o.n))
	}
	return sum(append(d.terms(), o.terms()...))
}

// Sub is d - o.
func (d Dim) Sub(o Dim) Dim { return d.Add(o.Mul(D(-1))) }

// Mul is d * o.
func (d Dim) Mul(o Dim) Dim {
	if d.e == staticDim && o.e == staticDim {
		return D(satMul(d.n, o.n))
	}
	var ts []term
	for _, a := range d.terms() {
		for _, b := range o.terms() {
			ts = append(ts, newTerm(satMul(a.coef, b.coef), append(slices.Clone(a.atoms), b.atoms...)))
		}
	}
	return sum(ts)
}

// FloorDiv is the floor of d / o; a division by zero is 0.
func (d Dim) FloorDiv(o Dim) Dim {
	if a, ok := d.Static(); ok {
		if b, ok := o.Static(); ok {
			return D(floorDiv(a, b))
		}
	}
	if q, ok := d.divExact(o); ok {
		return q
	}
	return dimOf("floordiv", "", d, o)
}

// CeilDiv is d / o rounded up; a division by zero is 0.
func (d Dim) CeilDiv(o Dim) Dim {
	if a, ok := d.Static(); ok {
		if b, ok := o.Static(); ok {
			return D(-floorDiv(-a, b))
		}
	}
	if q, ok := d.divExact(o); ok {
		return q
	}
	return dimOf("ceildiv", "", d, o)
}

// divExact divides every term of d by o, which must be one term: a*b*6 / (b*3) is a*2.
func (d Dim) divExact(o Dim) (Dim, bool) {
	div := o.terms()
	if len(div) != 1 {
		return Dim{}, d == o
	}
	var out []term
	for _, t := range d.terms() {
		if t.coef%div[0].coef != 0 {
			return Dim{}, false
		}
		rest := slices.Clone(t.atoms)
		for _, a := range div[0].atoms {
			i := slices.Index(rest, a)
			if i < 0 {
				return Dim{}, false
			}
			rest = slices.Delete(rest, i, i+1)
		}
		out = append(out, newTerm(t.coef/div[0].coef, rest))
	}
	return sum(out), true
}

// Min is the lesser of d and o.
func (d Dim) Min(o Dim) Dim { return d.extreme("min", o) }

// Max is the greater of d and o.
func (d Dim) Max(o Dim) Dim { return d.extreme("max", o) }

func (d Dim) extreme(op string, o Dim) Dim {
	// A constant difference decides, whatever the symbols are.
	if diff, ok := d.Sub(o).Static(); ok {
		if (diff < 0) == (op == "min") {
			return d
		}
		return o
	}
	other := map[string]string{"min": "max", "max": "min"}[op]
	for range 2 {
		switch {
		case d.holds(op, o): // max(max(a, b), b) is max(a, b)
			return d
		case d.holds(other, o): // max(min(a, b), b) is b
			return o
		}
		d, o = o, d
	}
	if strings.Compare(d.String(), o.String()) > 0 {
		d, o = o, d
	}
	return dimOf(op, "", d, o)
}

// holds says whether d is a chain of op with o among its operands.
func (d Dim) holds(op string, o Dim) bool {
	if d.e == staticDim {
		return false
	}
	x := d.e.Value()
	return x.op == op && (x.a == o || x.b == o || x.a.holds(op, o) || x.b.holds(op, o))
}

// Differs says that d and o are different lengths whatever the symbols stand for. Two symbols may turn out equal, so the
// checks that need equality ask again once shapes are static.
func (d Dim) Differs(o Dim) bool {
	diff, ok := d.Sub(o).Static()
	return ok && diff != 0
}

// Symbols adds the names that d mentions to into.
func (d Dim) Symbols(into map[string]bool) {
	if d.e == staticDim {
		return
	}
	x := d.e.Value()
	if x.op == "sym" {
		into[x.name] = true
		return
	}
	x.a.Symbols(into)
	x.b.Symbols(into)
}

// Symbol returns the name of a dim that is one symbol.
func (d Dim) Symbol() (string, bool) {
	if d.e == staticDim {
		return "", false
	}
	x := d.e.Value()
	return x.name, x.op == "sym"
}

// Bind replaces the symbols that are in values; a dim with others stays an expression.
func (d Dim) Bind(values map[string]int64) Dim {
	if d.e == staticDim {
		return d
	}
	x := d.e.Value()
	if x.op == "sym" {
		if n, ok := values[x.name]; ok {
			return D(n)
		}
		return d
	}
	a, b := x.a.Bind(values), x.b.Bind(values)
	switch x.op {
	case "+":
		return a.Add(b)
	case "*":
		return a.Mul(b)
	case "floordiv":
		return a.FloorDiv(b)
	case "ceildiv":
		return a.CeilDiv(b)
	case "min":
		return a.Min(b)
	default:
		return a.Max(b)
	}
}

// String writes the dim as an expression that ParseDim reads: 12, batch, 2*seq + 1, floordiv(h - 3, 2).
func (d Dim) String() string {
	if d.e == staticDim {
		return strconv.FormatInt(d.n, 10)
	}
	x := d.e.Value()
	switch x.op {
	case "sym":
		return x.name
	case "+":
		if b := x.b.String(); strings.HasPrefix(b, "-") {
			return x.a.String() + " - " + b[1:]
		} else {
			return x.a.String() + " + " + b
		}
	case "*":
		return x.a.String() + "*" + x.b.String()
	}
	return fmt.Sprintf("%s(%s, %s)", x.op, x.a, x.b)
}

func floorDiv(a, b int64) int64 {
	if b == 0 {
		return 0
	}
	if q := a / b; a%b == 0 || (a < 0) == (b < 0) {
		return q
	} else {
		return q - 1
	}
}

func satAdd(a, b int64) int64 {
	c := a + b
	if (a >= 0) == (b >= 0) && (c >= 0) != (a >= 0) {
		if a >= 0 {
			return math.MaxInt64
		}
		return math.MinInt64
	}
	return c
}

func satMul(a, b int64) int64 {
	hi, lo := bits.Mul64(magnitude(a), magnitude(b))
	neg := (a < 0) != (b < 0)
	if hi != 0 || lo > math.MaxInt64 {
		if neg {
			return math.MinInt64
		}
		return math.MaxInt64
	}
	if neg {
		return -int64(lo)
	}
	return int64(lo)
}

func magnitude(a int64) uint64 {
	if a < 0 {
		return -uint64(a)
	}
	return uint64(a)
}
