package gen

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/rlx-ml/rlx-go/rlx/op"
)

const scalarHead = `// Generated from the tables of scalar functions (package op). Do not edit.
//
// Included once inside each namespace that has a vector type V and its primitives. fn_ are the functions, d_ (da_, db_) their
// derivatives, bw_ (bwa_, bwb_) gradients: dy times the derivative, with the zeros that hold for any dy already chosen.
`

// ScalarHeader prints the C++ header of scalar functors: X-macros and enumerations that list the functions in the order of
// their numbers, and templates over a vector type that has the primitives as overloads found where the header is included.
func ScalarHeader() []byte {
	p := &scalarPrinter{language: cpp}
	p.WriteString(scalarHead)
	scalarLists(&p.Buffer, "UNARY", op.UnaryNames(), op.Unary)
	scalarLists(&p.Buffer, "BINARY", op.BinaryNames(), op.Binary)
	scalarLists(&p.Buffer, "COMPARE", op.CompareNames(), op.Compare)
	// all values before all derivatives, which call rows that stand after their own
	floatRows(p.valueFunctor)
	floatRows(p.gradientFunctors)
	for _, n := range op.CompareNames() {
		fmt.Fprintf(p, "\ntemplate <class V>\ninline auto fn_%s(V a, V b) {\n  return %s(a, b);\n}\n", n, n)
	}
	return p.Bytes()
}

// floatRows calls f for every function of one or two floats, in the order of their numbers.
func floatRows(f func(*op.Scalar)) {
	for _, s := range append(tableRows(op.UnaryNames(), op.Unary), tableRows(op.BinaryNames(), op.Binary)...) {
		if s.Takes(op.ScalarFloat) {
			f(s)
		}
	}
}

func tableRows(names []string, find func(string) (*op.Scalar, bool)) []*op.Scalar {
	var rows []*op.Scalar
	for _, n := range names {
		if s, ok := find(n); ok {
			rows = append(rows, s)
		}
	}
	return rows
}

// scalarLists prints the X-macros of one table and the enumeration of its functions.
func scalarLists(w *bytes.Buffer, table string, names []string, find func(string) (*op.Scalar, bool)) {
	for _, l := range []struct {
		suffix string
		has    func(*op.Scalar) bool
	}{
		{"FNS", func(*op.Scalar) bool { return true }},
		{"FLOAT_FNS", func(s *op.Scalar) bool { return s.Takes(op.ScalarFloat) && (!s.Predicate || table == "COMPARE") }},
		{"PREDICATE_FNS", func(s *op.Scalar) bool { return s.Predicate }},
		{"INT_FNS", func(s *op.Scalar) bool { return s.Takes(op.ScalarInt) }},
		{"BOOL_FNS", func(s *op.Scalar) bool { return s.Takes(op.ScalarBool) }},
		{"C64_FNS", func(s *op.Scalar) bool { return s.Takes(op.ScalarC64) }},
		{"DERIV_FNS", func(s *op.Scalar) bool { return s.Deriv(0) != nil }},
	} {
		fmt.Fprintf(w, "\n#define RLX_%s_%s(X)", table, l.suffix)
		line := 120
		for _, n := range names {
			if s, ok := find(n); ok && l.has(s) {
				item := " X(" + n + ")"
				if line += len(item); line > 110 {
					w.WriteString(" \\\n ")
					line = 1 + len(item)
				}
				w.WriteString(item)
			}
		}
		w.WriteByte('\n')
	}
	fmt.Fprintf(w, "\nenum %sFn {\n", table[:1]+strings.ToLower(table[1:]))
	for i, n := range names {
		fmt.Fprintf(w, "  %s_%s = %d,\n", table, n, i)
	}
	fmt.Fprintf(w, "  %s_COUNT = %d\n};\n", table, len(names))
}

var (
	unaryVars  = []string{"x", "dy"}
	binaryVars = []string{"a", "b", "dy"}
)

// language is how functors are written in one language; all else they have in common.
type language struct {
	before    string // a function
	value     string // type of numbers
	truth     string // of conditions, as results
	local     func(condition bool) string
	number    func(v float64) string
	primitive func(fn string, args []string) string // a call of a function that the language's own code has
}

var cpp = language{
	before: "template <class V>\ninline ",
	value:  "V",
	truth:  "auto",
	local:  func(bool) string { return "auto" },
	number: func(v float64) string {
		return "splat<V>(" + literal(v, 64, "__builtin_inf()", `__builtin_nan("")`) + ")"
	},
	primitive: func(fn string, args []string) string {
		if fn == "and" || fn == "or" || fn == "not" { // operators in C++, so conditions have these names
			fn = "m" + fn
		}
		return callText(fn, args)
	},
}

// scalarPrinter prints functors.
type scalarPrinter struct {
	bytes.Buffer
	language
}

func (p *scalarPrinter) valueFunctor(s *op.Scalar) {
	fmt.Fprintf(p, "\n// y = %s\n", s.Doc)
	ret, vars, params := p.value, unaryVars, true
	if s.Arity == 2 {
		vars, params = binaryVars, false
	}
	if s.Predicate {
		ret = p.truth
	}
	switch {
	case s.Formula != nil:
		p.functor(ret, "fn_"+s.Name, vars[:s.Arity], s.Formula, params)
	case params:
		fmt.Fprintf(p, "%[1]s%[2]s fn_%[3]s(%[2]s x, %[2]s, %[2]s) {\n  return %[4]s;\n}\n", p.before, p.value, s.Name, p.call(s.Name, []string{"x"}))
	default:
		fmt.Fprintf(p, "%[1]s%[2]s fn_%[3]s(%[2]s a, %[2]s b) {\n  return %[4]s;\n}\n", p.before, p.value, s.Name, p.call(s.Name, []string{"a", "b"}))
	}
}

// gradientFunctors prints derivative and gradient by each operand: d_ and bw_ where there is one, da_, bwa_, db_, bwb_ where
// there are two.
func (p *scalarPrinter) gradientFunctors(s *op.Scalar) {
	vars, by := unaryVars, []string{""}
	if s.Arity == 2 {
		vars, by = binaryVars, []string{"a", "b"}
	}
	for i, l := range by {
		if d := s.Deriv(i); d != nil {
			p.WriteByte('\n')
			p.functor(p.value, "d"+l+"_"+s.Name, vars[:s.Arity], d, s.Arity == 1)
			p.functor(p.value, "bw"+l+"_"+s.Name, vars, s.Backward(i), s.Arity == 1)
		}
	}
}

// functor prints one function. Subexpressions that occur more than once become locals, in the order of their first use, so that
// every call is written once.
func (p *scalarPrinter) functor(ret, name string, vars []string, e op.Expr, params bool) {
	uses := map[string]int{}
	var count func(e op.Expr)
	count = func(e op.Expr) {
		if uses[e.String()]++; uses[e.String()] == 1 {
			for _, a := range e.Args() {
				count(a)
			}
		}
	}
	count(e)

	var locals strings.Builder
	used, n := map[string]bool{}, 0
	var text func(e op.Expr) string
	done := map[string]string{}
	text = func(e op.Expr) string {
		if t, ok := done[e.String()]; ok {
			return t
		}
		var t string
		switch e.Kind() {
		case op.ExprVar:
			t = vars[e.Index()]
			used[t] = true
		case op.ExprParam:
			t = e.String()
			used[t] = true
		case op.ExprConst:
			t = p.number(e.Value())
		default:
			args := make([]string, len(e.Args()))
			for i, a := range e.Args() {
				args[i] = text(a)
			}
			t = p.call(e.Fn(), args)
			if strings.HasSuffix(t, "alpha, beta)") {
				used["alpha"], used["beta"] = true, true
			}
			if uses[e.String()] > 1 {
				n++
				local := "t" + strconv.Itoa(n)
				fmt.Fprintf(&locals, "  const %s %s = %s;\n", p.local(isCondition(e.Fn())), local, t)
				t = local
			}
		}
		done[e.String()] = t
		return t
	}
	result := text(e)

	if params {
		vars = append(append([]string{}, vars...), "alpha", "beta")
	}
	list := make([]string, len(vars))
	for i, v := range vars {
		list[i] = p.value
		if used[v] {
			list[i] += " " + v
		}
	}
	fmt.Fprintf(p, "%s%s %s(%s) {\n%s  return %s;\n}\n", p.before, ret, name, strings.Join(list, ", "), locals.String(), result)
}

// isCondition says whether a function of the tables, or one that expressions have besides, gives true or false.
func isCondition(fn string) bool {
	s, ok := op.Unary(fn)
	if !ok {
		s, ok = op.Compare(fn)
	}
	return ok && s.Predicate || fn == "and" || fn == "or" || fn == "not"
}

// call writes a call of a function of the tables, or of one that expressions have besides.
func (p *scalarPrinter) call(fn string, args []string) string {
	if fn == "identity" {
		return args[0]
	}
	if s, ok := op.Unary(fn); ok && !s.Primitive {
		return callText("fn_"+fn, append(args[:len(args):len(args)], "alpha", "beta"))
	} else if s, ok := op.Binary(fn); ok && !s.Primitive {
		return callText("fn_"+fn, args)
	}
	return p.primitive(fn, args)
}

func callText(name string, args []string) string { return name + "(" + strings.Join(args, ", ") + ")" }

// literal is v in the fewest digits that give it as a float of the bits.
func literal(v float64, bits int, inf, nan string) string {
	switch {
	case math.IsInf(v, 1):
		return inf
	case math.IsInf(v, -1):
		return "-" + inf
	case v != v:
		return nan
	}
	t := strconv.FormatFloat(v, 'g', -1, bits)
	if !strings.ContainsAny(t, ".e") {
		t += ".0"
	}
	return t
}
