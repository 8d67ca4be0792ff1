package onnx_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rlx-ml/rlx-go/internal/golden"
	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/conform"
	"github.com/rlx-ml/rlx-go/rlx/onnx/backendtest"
)

// exportDir names a folder that gets every model which these tests export: make verify-onnx runs them elsewhere.
const exportDir = "RLX_EXPORT_DIR"

// exported is the graph of m as a model file, opened again. Name is its folder below exportDir.
func exported(m *rlx.Model, name ...string) (*rlx.Model, error) {
	var b bytes.Buffer
	if err := m.ExportONNX(&b); err != nil {
		return nil, err
	}
	if err := keep(b.Bytes(), append(name, "model.onnx")...); err != nil {
		return nil, err
	}
	again, err := rlx.OpenReader("export", bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		return nil, fmt.Errorf("the export cannot be read: %w", err)
	}
	return again, nil
}

// keep writes a file below exportDir, if that is set.
func keep(data []byte, name ...string) error {
	root := os.Getenv(exportDir)
	if root == "" {
		return nil
	}
	path := filepath.Join(append([]string{root}, name...)...)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o644)
}

// TestExportBackendTests exports every operator test that can be imported, and runs what the importer makes of the export.
func TestExportBackendTests(t *testing.T) {
	root, skip := golden.ModelPath("onnx-node-tests")
	if skip != "" {
		t.Skip(skip)
	}
	tests, err := backendtest.Find(root)
	if err != nil {
		t.Fatal(err)
	}
	defer conform.Hold(t.Context(), rlx.On("ref"))()
	var r backendtest.Report
	if err := r.Allow(skipList); err != nil {
		t.Fatal(err)
	}
	for _, dir := range tests {
		err := backendtest.RunAs(t.Context(), dir, func(set string, m *rlx.Model) (*rlx.Model, error) {
			return exported(m, "node", filepath.Base(dir), filepath.Base(set))
		}, rlx.On("ref"))
		r.Count(filepath.Base(dir), err)
	}
	for _, f := range r.Failures() {
		t.Error(f)
	}
	t.Logf("%d passed, %d failed, %d skipped", r.Passed, r.Failed, r.Skipped)
}

// TestExportModels exports the models that make models fetches, and runs the exports on stored inputs.
func TestExportModels(t *testing.T) {
	cases, err := golden.Read("../../testdata/models/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	on := "ref"
	if slices.Contains(conform.Backends(), "cpu") {
		on = "cpu"
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			path, skip := golden.ModelPath(c.Model)
			if skip != "" {
				t.Skip(skip)
			}
			m, err := rlx.Open(path)
			var lacks *rlx.ModelError
			if errors.As(err, &lacks) { // once more for these inputs
				m, err = rlx.Open(path, rlx.For(goldenFeed(t, c, 0)))
			}
			if err != nil {
				t.Fatal(err)
			}
			if m, err = exported(m, "model", filepath.FromSlash(c.Name)); err != nil {
				t.Fatal(err)
			}
			runGolden(t, c, m, on)
		})
	}
}

// runGolden runs all steps of a case on a model whose bound inputs are no longer inputs.
func runGolden(t *testing.T, c golden.Case, m *rlx.Model, on string) {
	t.Helper()
	if on == "ref" {
		t.Skip("cpu: not compiled in (CGO_ENABLED=0): the interpreter is slow on whole models")
	}
	p, err := m.Compile(t.Context(), rlx.On(on))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	inputs := map[string]bool{}
	for _, n := range m.Graph().Inputs {
		name, _ := n.InputName()
		inputs[name] = true
	}
	var out rlx.Feed
	var feeds []rlx.Feed
	var trace []float64
	for step := range c.Steps {
		feed := goldenFeed(t, c, step)
		for in, from := range c.Feedback {
			if out != nil {
				feed[in] = out[from]
			}
		}
		maps.DeleteFunc(feed, func(name string, _ *rlx.Tensor) bool { return !inputs[name] })
		feeds = append(feeds, feed)
		if out, err = p.Run(t.Context(), feed); err != nil {
			t.Fatal(err)
		}
		if c.Trace != "" {
			trace = append(trace, out[c.Trace].Float(0))
		}
	}
	if err := keepFeeds(c, feeds); err != nil {
		t.Fatal(err)
	}
	for name := range c.Outputs {
		y := out[name]
		values := make([]float64, y.Len())
		for i := range values {
			values[i] = y.Float(i)
		}
		if err := golden.Compare(c, name, c.Outputs[name].DType, y.Shape(), values); err != nil {
			t.Error(err)
		}
	}
	if c.Trace != "" {
		if err := golden.CompareTrace(c, trace); err != nil {
			t.Error(err)
		}
	}
}

// storedTensor is a tensor as verify.py reads it.
type storedTensor struct {
	DType string  `json:"dtype"`
	Shape []int64 `json:"shape"`
	Data  []byte  `json:"data"`
}

func stored(feed rlx.Feed) map[string]storedTensor {
	m := map[string]storedTensor{}
	for name, t := range feed {
		m[name] = storedTensor{t.DType().String(), t.Shape(), t.Bytes()}
	}
	return m
}

// keepFeeds writes the inputs of a case's runs beside its model.
func keepFeeds(c golden.Case, feeds []rlx.Feed) error {
	file := struct {
		Case     string                    `json:"case"`
		Feedback map[string]string         `json:"feedback"`
		Feeds    []map[string]storedTensor `json:"feeds"`
	}{Case: c.Name, Feedback: c.Feedback}
	for _, feed := range feeds {
		file.Feeds = append(file.Feeds, stored(feed))
	}
	data, err := json.Marshal(file)
	if err != nil {
		return err
	}
	return keep(data, "model", filepath.FromSlash(c.Name), "feeds.json")
}

func goldenFeed(t *testing.T, c golden.Case, step int) rlx.Feed {
	t.Helper()
	feed, err := c.Feed(step)
	if err != nil {
		t.Fatal(err)
	}
	return feed
}
