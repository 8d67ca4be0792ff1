package gen

import (
	"regexp"
	"strings"
	"testing"
)

// vectorPrimitives are the names that the hand-written vector types of the C++ core offer.
const vectorPrimitives = `add sub mul div neg abs sqrt fma max min lt le gt ge eq ne select mand mor mnot sign square reciprocal
	rsqrt exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh erf erfc round floor ceil trunc pow mod
	atan2 is_nan is_inf is_finite splat<V> __builtin_inf`

func TestScalarHeaderCallsOnlyWhatExists(t *testing.T) {
	known := map[string]bool{"X": true}
	for _, n := range strings.Fields(vectorPrimitives) {
		known[n] = true
	}
	callsOnlyKnown(t, string(ScalarHeader()), known)
}

var definition = regexp.MustCompile(`(?m)^(?:inline )?(?:V|auto|float|bool) (\w+)\(`)

// callsOnlyKnown checks that a generated text defines every function once and before its calls, unless it is among the known.
func callsOnlyKnown(t *testing.T, text string, known map[string]bool) {
	t.Helper()
	called := regexp.MustCompile(`(\w+(?:<V>)?) ?\(`)
	for _, l := range strings.Split(text, "\n") {
		if strings.HasPrefix(l, "//") || strings.HasPrefix(l, "#") {
			continue
		}
		if strings.Count(l, "(") != strings.Count(l, ")") {
			t.Errorf("unbalanced line: %s", l)
		}
		if m := definition.FindStringSubmatch(l); m != nil {
			if known[m[1]] {
				t.Errorf("%s is defined twice", m[1])
			}
			known[m[1]] = true
			continue
		}
		for _, m := range called.FindAllStringSubmatch(l, -1) {
			if !known[m[1]] {
				t.Errorf("%s is called before any definition: %s", m[1], l)
			}
		}
	}
}

func TestScalarHeaderText(t *testing.T) {
	text := string(ScalarHeader())
	for _, want := range []string{
		"\ninline V fn_exp(V x, V, V) {\n  return exp(x);\n}\n",
		"\ninline V fn_identity(V x, V, V) {\n  return x;\n}\n",
		"\ninline V fn_add(V a, V b) {\n  return add(a, b);\n}\n",
		"\ninline auto fn_lt(V a, V b) {\n  return lt(a, b);\n}\n",
		"\ninline auto fn_is_nan(V x, V, V) {\n  return ne(x, x);\n}\n",
		"\ninline V fn_relu(V x, V, V) {\n  return max(x, splat<V>(0.0));\n}\n",
		"\ninline V d_leaky_relu(V x, V alpha, V) {\n  return select(le(x, splat<V>(0.0)), alpha, splat<V>(1.0));\n}\n",
		"\ninline V bw_relu(V x, V dy, V, V) {\n  return select(le(x, splat<V>(0.0)), splat<V>(0.0), dy);\n}\n",
		"\ninline V d_floor(V, V, V) {\n  return splat<V>(0.0);\n}\n",
		"\ninline V fn_selu(V x, V alpha, V beta) {\n  return mul(beta, fn_elu(x, alpha, beta));\n}\n",
		"\ninline V bwb_sub(V, V, V dy) {\n  return neg(dy);\n}\n",
		"#define RLX_UNARY_PREDICATE_FNS(X) \\\n  X(is_nan) X(is_inf) X(is_finite)\n",
		"#define RLX_COMPARE_C64_FNS(X) \\\n  X(eq) X(ne)\n",
		"enum CompareFn {\n  COMPARE_eq = 0,\n  COMPARE_ne = 1,\n  COMPARE_lt = 2,\n  COMPARE_le = 3,\n  COMPARE_gt = 4,\n  COMPARE_ge = 5,\n  COMPARE_COUNT = 6\n};\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("missing:%s", want)
		}
	}
	if strings.Contains(text, "#include") {
		t.Error("the header includes something")
	}
}
