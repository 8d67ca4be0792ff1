package ir

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"unique"
)

// Dim is the length of one axis: an int64, or an expression over named symbols built with + - * floordiv ceildiv min max.
// Expressions are kept canonical (sums of products, sorted), so two Dims that Add and Mul can show equal compare equal with ==.
// The zero Dim is the length 0. An expression of more than 500 parts becomes a symbol of its own, which no run binds.
type Dim struct {
	n int64
	e unique.Handle[dimExpr] // zero for a static dim
}

// dimExpr is one level of an expression. Its operands are Dims, which are canonical themselves.
type dimExpr struct {
	op   string // "sym", "+", "*", "floordiv", "ceildiv", "min", "max"
	name string // of a symbol
	a, b Dim
	size int // parts, this one included
}

// maxDimSize bounds the parts of an expression: products of sums grow exponentially.
const maxDimSize = 500

// largeSymbol begins the names of the symbols that stand for expressions beyond maxDimSize. As for the elements of inputs, the # says
// that any value is possible, a negative one too.
const largeSymbol = "?large#"

var staticDim unique.Handle[dimExpr]

// D is the static dim n.
func D(n int64) Dim { return Dim{n: n} }

// Sym is the dim called name; the text form reads it back if SymbolName leaves the name as it is.
func Sym(name string) Dim { return dimOf("sym", name, Dim{}, Dim{}) }

func dimOf(op, name string, a, b Dim) Dim {
	x := dimExpr{op, name, a, b, 1}
	if op != "sym" {
		x.size += a.size() + b.size()
	}
	return Dim{e: unique.Make(x)}
}

func (d Dim) size() int {
	if d.e == staticDim {
		return 1
	}
	return d.e.Value().size
}

// capped is out, the result of op on d and o, or a symbol that equal operands share where out is too large.
func capped(out Dim, op string, d, o Dim) Dim {
	if out.size() <= maxDimSize {
		return out
	}
	return large(op, d, o)
}

func large(op string, d, o Dim) Dim {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s(%s, %s)", op, d, o)
	return Sym(fmt.Sprintf("%s%016x", largeSymbol, h.Sum64()))
}

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
func (d Dim) terms() []term { return d.appendTerms(nil) }

func (d Dim) appendTerms(to []term) []term {
	if d.e == staticDim {
		if d.n == 0 {
			return to
		}
		return append(to, term{coef: d.n})
	}
	if x := d.e.Value(); x.op == "+" {
		return x.b.appendTerms(x.a.appendTerms(to))
	}
	coef, atoms := int64(1), []Dim(nil)
	for d.e.Value().op == "*" { // a chain: the coefficient first, atoms after it
		x := d.e.Value()
		if c, ok := x.a.Static(); ok {
			coef = c
		} else {
			atoms = append(atoms, x.a)
		}
		d = x.b
	}
	return append(to, newTerm(coef, append(atoms, d)))
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
	return capped(sum(o.appendTerms(d.terms())), "+", d, o)
}

// Sub is d - o.
func (d Dim) Sub(o Dim) Dim {
	if d == o {
		return Dim{}
	}
	return d.Add(o.Mul(D(-1)))
}

// Mul is d * o.
func (d Dim) Mul(o Dim) Dim {
	if d.e == staticDim && o.e == staticDim {
		return D(satMul(d.n, o.n))
	}
	left, right := d.terms(), o.terms()
	if len(left)*len(right) > maxDimSize {
		return large("*", d, o)
	}
	var ts []term
	for _, a := range left {
		for _, b := range right {
			ts = append(ts, newTerm(satMul(a.coef, b.coef), append(slices.Clone(a.atoms), b.atoms...)))
		}
	}
	return capped(sum(ts), "*", d, o)
}

// FloorDiv is the floor of d / o; a division by zero is 0. What cancels is cancelled, as if symbols in o were never 0.
func (d Dim) FloorDiv(o Dim) Dim { return d.div("floordiv", o, floorDiv) }

// CeilDiv is d / o rounded up; a division by zero is 0. What cancels is cancelled, as if symbols in o were never 0.
func (d Dim) CeilDiv(o Dim) Dim { return d.div("ceildiv", o, ceilDiv) }

func (d Dim) div(op string, o Dim, static func(a, b int64) int64) Dim {
	if a, ok := d.Static(); ok {
		if b, ok := o.Static(); ok {
			return D(static(a, b))
		}
	}
	if d.Is(0) || o.Is(0) {
		return Dim{}
	}
	if q, ok := d.divExact(o); ok {
		return q
	}
	return capped(dimOf(op, "", d, o), op, d, o)
}

// divExact divides every term of d by o, which must be one term: a*b*6 / (b*3) is a*2.
func (d Dim) divExact(o Dim) (Dim, bool) {
	div := o.terms()
	if d == o || len(div) != 1 {
		return D(1), d == o
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
		out = append(out, newTerm(floorDiv(t.coef, div[0].coef), rest))
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
	return capped(dimOf(op, "", d, o), op, d, o)
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
	if d.e != staticDim && d.e.Value().op == "sym" {
		return d.e.Value().name
	}
	return string(d.appendText(nil))
}

func (d Dim) appendText(to []byte) []byte {
	if d.e == staticDim {
		return strconv.AppendInt(to, d.n, 10)
	}
	x := d.e.Value()
	switch x.op {
	case "sym":
		return append(to, x.name...)
	case "+":
		to = append(x.a.appendText(to), " + "...)
		at := len(to)
		to = x.b.appendText(to)
		// a - 3*b for a + -3*b; the least int64 has no positive twin: a + -9223372036854775808.
		if to[at] == '-' && !bytes.HasPrefix(to[at:], leastInt) {
			to[at-2] = '-'
			to = slices.Delete(to, at, at+1)
		}
		return to
	case "*":
		return x.b.appendText(append(x.a.appendText(to), '*'))
	}
	to = append(append(to, x.op...), '(')
	to = append(x.a.appendText(to), ", "...)
	return append(x.b.appendText(to), ')')
}

var leastInt = strconv.AppendInt(nil, math.MinInt64, 10)

func floorDiv(a, b int64) int64 {
	switch {
	case b == 0:
		return 0
	case b == -1:
		return satMul(a, b)
	}
	if q := a / b; a%b == 0 || (a < 0) == (b < 0) {
		return q
	} else {
		return q - 1
	}
}

func ceilDiv(a, b int64) int64 {
	q := floorDiv(a, b)
	if b != 0 && b != -1 && a%b != 0 {
		q++
	}
	return q
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
