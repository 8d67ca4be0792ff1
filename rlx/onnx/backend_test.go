package onnx_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/conform"
	"github.com/rlx-ml/rlx-go/rlx/internal/golden"
	"github.com/rlx-ml/rlx-go/rlx/onnx/backendtest"
)

// skipList names the tests that may be skipped.
const skipList = "../../testdata/onnx_skips.txt"

// TestBackendTests runs ONNX's own operator tests.
func TestBackendTests(t *testing.T) {
	root, skip := golden.ModelPath("onnx-node-tests")
	if skip != "" {
		t.Skip(skip)
	}
	tests, err := backendtest.Find(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range []string{"ref", "cpu"} {
		t.Run(b, func(t *testing.T) {
			if !slices.Contains(conform.Backends(), b) {
				t.Skipf("%s: not compiled in (CGO_ENABLED=0)", b)
			}
			defer conform.Hold(t.Context(), rlx.On(b))()
			var r backendtest.Report
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
		})
	}
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
