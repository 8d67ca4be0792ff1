package backendtest

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx"
)

// TestRun runs folders whose results are known: testdata was written by the onnx package.
func TestRun(t *testing.T) {
	for _, c := range []struct{ name, word string }{
		{"test_add", ""}, {"test_axes", ""}, // whose axes are an input
		{"test_wrong_value", "element 1 of [3] is 22, expected 22.1"},
		{"test_wrong_dtype", "got f32[3], expected f64[3]"},
		{"test_wrong_shape", "got f32[3], expected f32[3 1]"},
		{"test_strings", "StringConcat"},
		{"test_absent", "no such file"},
	} {
		err := Run(t.Context(), filepath.Join("testdata", c.name), rlx.On("ref"))
		var skip *Skip
		if errors.As(err, &skip) != (c.name == "test_strings") {
			t.Errorf("%s: got %v, a skip is expected of test_strings alone", c.name, err)
		}
		if c.word == "" && err != nil || c.word != "" && (err == nil || !strings.Contains(err.Error(), c.word)) {
			t.Errorf("%s: got %v, expected %q", c.name, err, c.word)
		}
	}
	if tests, err := Find("testdata", filepath.Join("testdata", "test_add")); err != nil || len(tests) != 7 {
		t.Errorf("found %q, %v, expected the six folders and one of them again", tests, err)
	}
	if _, err := Find(t.TempDir()); err == nil {
		t.Error("a folder without tests is accepted")
	}
}
