package onnx_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rlx-ml/rlx-go/internal/golden"
	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/conform"
	"github.com/rlx-ml/rlx-go/rlx/onnx/backendtest"
)

// skipList names the tests that may be skipped.
const skipList = "../../testdata/onnx_skips.txt"

// testKinds are the sets of ONNX's tests, with how many pass at least; the list of skips names all others.
var testKinds = []struct {
	name string
	pass int
}{{"node", 1343}, {"simple", 15}, {"pytorch-operator", 35}, {"pytorch-converted", 82}, {"light", 9}}

// lightOnRef are the networks that the interpreter runs in a second or two; make onnx-light runs all.
var lightOnRef = []string{"test_shufflenet", "test_squeezenet"}

// TestBackendTests runs ONNX's own tests.
func TestBackendTests(t *testing.T) {
	for _, b := range []string{"ref", "cpu"} {
		for _, kind := range testKinds {
			t.Run(b+"/"+kind.name, func(t *testing.T) {
				if !slices.Contains(conform.Backends(), b) {
					t.Skipf("%s: not compiled in (CGO_ENABLED=0)", b)
				}
				root, skip := golden.ModelPath("onnx-" + kind.name + "-tests")
				if skip != "" {
					t.Skip(skip)
				}
				tests, err := backendtest.Find(root)
				if err != nil {
					t.Fatal(err)
				}
				pass := kind.pass
				if b == "ref" && kind.name == "light" {
					tests = slices.DeleteFunc(tests, func(dir string) bool { return !slices.Contains(lightOnRef, filepath.Base(dir)) })
					pass = len(lightOnRef)
				}
				if r := runAll(t, tests, b); r.Passed < pass {
					t.Errorf("%d tests passed, expected at least %d", r.Passed, pass)
				}
			})
		}
	}
}

func runAll(t *testing.T, tests []string, b string) (r backendtest.Report) {
	t.Helper()
	defer conform.Hold(t.Context(), rlx.On(b))()
	if err := r.Allow(skipList); err != nil {
		t.Fatal(err)
	}
	for _, dir := range tests {
		if err := r.Run(t.Context(), dir, rlx.On(b)); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range r.Failures() {
		t.Error(f)
	}
	t.Logf("%d passed, %d failed, %d skipped", r.Passed, r.Failed, r.Skipped)
	return r
}

// TestReport wants an unlisted skip and a listed pass to fail.
func TestReport(t *testing.T) {
	list := filepath.Join(t.TempDir(), "skips.txt")
	if err := os.WriteFile(list, []byte("# why\ntest_a # more\n\ntest_b\ndiffers test_c\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	skip := &backendtest.Skip{Operators: []string{"Loop"}, Reason: "operator is not supported"}
	differs := os.ErrInvalid
	for _, c := range []struct {
		name                    string
		result                  error
		passed, failed, skipped int
	}{
		{"test_a", skip, 0, 0, 1}, {"test_b", nil, 0, 1, 0}, {"test_d", skip, 0, 1, 0}, {"test_d", nil, 1, 0, 0}, {"test_a", differs, 0, 1, 0},
		{"test_c", differs, 0, 0, 1}, {"test_c", nil, 1, 0, 0}, {"test_c", skip, 0, 1, 0},
	} {
		var r backendtest.Report
		if err := r.Allow(list); err != nil {
			t.Fatal(err)
		}
		r.Count(c.name, c.result)
		if r.Passed != c.passed || r.Failed != c.failed || r.Skipped != c.skipped {
			t.Errorf("%s with %v: %d passed, %d failed, %d skipped, expected %d, %d, %d", c.name, c.result, r.Passed, r.Failed, r.Skipped, c.passed, c.failed, c.skipped)
		}
	}
}
