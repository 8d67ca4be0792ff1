package gen

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// GLSL has no forward references: a function is written before it is called, here or in math.glsl.
func TestScalarGLSLCallsOnlyWhatExists(t *testing.T) {
	known := map[string]bool{"switch": true}
	root, err := Root(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"math.glsl", "math_log.glsl", "math_trig.glsl"} {
		text, err := os.ReadFile(filepath.Join(root, "csrc", "vulkan", "kernels", name))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range definition.FindAllStringSubmatch(string(text), -1) {
			known[m[1]] = true
		}
	}
	callsOnlyKnown(t, string(ScalarGLSL()), known)
}

func TestScalarGLSLText(t *testing.T) {
	text := string(ScalarGLSL())
	for _, want := range []string{
		"\nfloat fn_exp(float x, float, float) {\n  return rlx_exp(x);\n}\n",
		"\nfloat fn_identity(float x, float, float) {\n  return x;\n}\n",
		"\nfloat fn_add(float a, float b) {\n  return rlx_add(a, b);\n}\n",
		"\nbool fn_is_nan(float x, float, float) {\n  return rlx_ne(x, x);\n}\n",
		"\nfloat fn_relu(float x, float, float) {\n  return rlx_max(x, 0.0);\n}\n",
		"\nfloat fn_selu(float x, float alpha, float beta) {\n  return rlx_mul(beta, fn_elu(x, alpha, beta));\n}\n",
		"\nfloat bw_floor(float, float dy, float, float) {\n  return times_zero(dy);\n}\n",
		"    case UnaryFn_exp: y = fn_exp(x, alpha, beta); break;\n",
		"    case UnaryFn_is_inf: y = fn_is_inf(x, 0.0, 0.0); break;\n",
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
