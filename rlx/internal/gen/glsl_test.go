package gen

import (
	"regexp"
	"strings"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// glslPrimitives are the names that csrc/vulkan/kernels/math.glsl offers.
const glslPrimitives = `rlx_add rlx_sub rlx_mul rlx_div rlx_neg rlx_abs rlx_sqrt rlx_fma rlx_max rlx_min rlx_lt rlx_le rlx_gt rlx_ge rlx_eq rlx_ne
	rlx_select rlx_and rlx_or rlx_sign rlx_reciprocal rlx_rsqrt rlx_exp rlx_exp2 rlx_expm1 rlx_log rlx_log2 rlx_log10 rlx_log1p rlx_sin rlx_cos
	rlx_tan rlx_asin rlx_acos rlx_atan rlx_sinh rlx_cosh rlx_tanh rlx_erf rlx_erfc rlx_round rlx_floor rlx_ceil rlx_trunc rlx_pow rlx_mod
	rlx_atan2 times_zero`

// GLSL has no forward references: a function is written before it is called.
func TestScalarGLSLCallsOnlyWhatExists(t *testing.T) {
	known := map[string]bool{"switch": true}
	for _, n := range strings.Fields(glslPrimitives) {
		known[n] = true
	}
	defined := regexp.MustCompile(`^(?:float|bool) (\w+)\(`)
	called := regexp.MustCompile(`(\w+) ?\(`)
	for _, l := range strings.Split(string(ScalarGLSL()), "\n") {
		if strings.HasPrefix(l, "//") || strings.HasPrefix(l, "#") {
			continue
		}
		if m := defined.FindStringSubmatch(l); m != nil {
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

func TestScalarGLSLText(t *testing.T) {
	text := string(ScalarGLSL())
	for _, want := range []string{
		"\nfloat fn_exp(float x, float, float) {\n  return rlx_exp(x);\n}\n",
		"\nfloat fn_identity(float x, float, float) {\n  return x;\n}\n",
		"\nfloat fn_add(float a, float b) {\n  return rlx_add(a, b);\n}\n",
		"\nbool fn_lt(float a, float b) {\n  return rlx_lt(a, b);\n}\n",
		"\nbool fn_is_nan(float x, float, float) {\n  return rlx_ne(x, x);\n}\n",
		"\nfloat fn_relu(float x, float, float) {\n  return rlx_max(x, 0.0);\n}\n",
		"\nfloat fn_selu(float x, float alpha, float beta) {\n  return rlx_mul(beta, fn_elu(x, alpha, beta));\n}\n",
		"\nfloat bw_floor(float, float dy, float, float) {\n  return times_zero(dy);\n}\n",
		"    case UnaryFn_exp: y = fn_exp(x, alpha, beta); break;\n",
		"    case UnaryFn_is_inf: y = fn_is_inf(x, 0.0, 0.0); break;\n",
		"    case CompareFn_ge: y = fn_ge(a, b); break;\n",
		"    case UnaryFn_exp: y = bw_exp(x, dy, alpha, beta); break;\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("missing:%s", want)
		}
	}
	if strings.Contains(text, "UnaryFn_not") {
		t.Error("a function of bools is among those of floats")
	}
}

func TestOpsGLSL(t *testing.T) {
	if err := ir.Freeze(); err != nil {
		t.Fatal(err)
	}
	text, err := OpsGLSL(ir.Rows())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"#define RLX_F32 12u\n", "#define Activation_beta 2u\n", "#define UnaryFn_not_ 54u\n", "#define Clamp_max 1u\n"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("missing: %s", want)
		}
	}
	if _, err := OpsGLSL([]*ir.Row{ir.Rows()[0], ir.Rows()[0]}); err == nil {
		t.Error("two rows of one name are accepted")
	}
}
