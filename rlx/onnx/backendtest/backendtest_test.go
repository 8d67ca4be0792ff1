package backendtest

import (
	"errors"
	"os"
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

// TestFolder runs copies of a folder with what only some tests have: a tolerance of their own, and files for other inputs than the model's.
func TestFolder(t *testing.T) {
	const wrong, right = "testdata/test_wrong_value", "testdata/test_add" // 22 where 22.1 is stored
	for _, c := range []struct{ from, file, text, word string }{
		{wrong, "data.json", `{"rtol": 0.01, "model_name": "x"}`, ""},
		{wrong, "data.json", `{"rtol": 0.001}`, "expected 22.1"},
		{wrong, "data.json", `{"atol": 0.2}`, ""},
		{wrong, "data.json", `{`, "unexpected end"},
		{right, "test_data_set_0/input_2.pb", "", "test_data_set_0 has 3 inputs, the model 2"},
	} {
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(c.from)); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, c.file), []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := Run(t.Context(), dir, rlx.On("ref")); c.word == "" && err != nil || c.word != "" && (err == nil || !strings.Contains(err.Error(), c.word)) {
			t.Errorf("%s of %s: got %v, expected %q", c.text, c.file, err, c.word)
		}
	}
}
