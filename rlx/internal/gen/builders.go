package gen

import (
	"bytes"
	"fmt"
	"go/format"
	"strings"

	"github.com/rlx-ml/rlx-go/rlx/op"
)

// Builders is the Go file of the builders of scalar functions, one for each row of the tables of package op.
func Builders() []byte {
	var b bytes.Buffer
	b.WriteString("// Code generated from the tables of scalar functions; DO NOT EDIT.\n\n")
	b.WriteString("package op\n\nimport \"github.com/rlx-ml/rlx-go/rlx/ir\"\n")
	for _, name := range op.UnaryNames() {
		if s, ok := op.Unary(name); ok {
			unaryBuilder(&b, s)
		}
	}
	for _, name := range op.BinaryNames() {
		if s, ok := op.Binary(name); ok {
			pairBuilder(&b, s, "binaryOf")
		}
	}
	for _, name := range op.CompareNames() {
		if s, ok := op.Compare(name); ok {
			pairBuilder(&b, s, "compareOf")
		}
	}
	if src, err := format.Source(b.Bytes()); err == nil {
		return src
	}
	return b.Bytes()
}

func unaryBuilder(b *bytes.Buffer, s *op.Scalar) {
	name := builderName(s)
	fmt.Fprintf(b, "\n// %s %s %s. %s.", name, verb(s), s.Doc, kindsText(s))
	var params, usual []string
	for _, p := range []struct {
		name string
		used bool
		def  float64
	}{{"alpha", s.UsesAlpha(), s.Alpha}, {"beta", s.UsesBeta(), s.Beta}} {
		if p.used {
			params, usual = append(params, p.name), append(usual, fmt.Sprintf("%s %.9g", p.name, p.def))
		}
	}
	if params == nil {
		fmt.Fprintf(b, "\nfunc %s(x ir.Value) ir.Value { return unaryOf(%q, x) }\n", name, s.Name)
		return
	}
	fmt.Fprintf(b, " NaN stands for the usual %s.", strings.Join(usual, ", "))
	fmt.Fprintf(b, "\nfunc %s(x ir.Value, %s float64) ir.Value { return Activation(x, %q, %s, %s) }\n",
		name, strings.Join(params, ", "), s.Name, params[0], params[len(params)-1]) // of one parameter, the other is ignored
}

func pairBuilder(b *bytes.Buffer, s *op.Scalar, call string) {
	name := builderName(s)
	fmt.Fprintf(b, "\n// %s %s %s. %s, broadcast.\n", name, verb(s), s.Doc, kindsText(s))
	fmt.Fprintf(b, "func %s[A, B Operand](a A, b B) ir.Value { return %s(%q, a, b) }\n", name, call, s.Name)
}

// builderName is the function's name in CamelCase; functions of bools alone are called Logical, which leaves And to nobody.
func builderName(s *op.Scalar) string {
	name := ""
	for _, w := range strings.Split(s.Name, "_") {
		if w == "nan" {
			w = "NaN"
		}
		name += strings.ToUpper(w[:1]) + w[1:]
	}
	if s.Kinds == op.ScalarBool {
		return "Logical" + name
	}
	return name
}

// verb joins a builder's name and the function's words.
func verb(s *op.Scalar) string {
	switch {
	case s.Predicate:
		return "tells whether"
	case s.Kinds == op.ScalarBool:
		return "of bools:"
	}
	return "is"
}

func kindsText(s *op.Scalar) string {
	var l []string
	for _, k := range []struct {
		kind op.ScalarKinds
		name string
	}{{op.ScalarFloat, "Floats"}, {op.ScalarInt, "integers"}, {op.ScalarBool, "bool"}, {op.ScalarC64, "c64"}} {
		if s.Takes(k.kind) {
			l = append(l, k.name)
		}
	}
	text := strings.Join(l, ", ")
	return strings.ToUpper(text[:1]) + text[1:]
}
