package rlx_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx"
)

const backendTests = "onnx/backendtest/testdata"

// The same model from a path, a file system and a reader.
func TestOpenFrom(t *testing.T) {
	path := filepath.Join(backendTests, "test_add", "model.onnx")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	short := func(n int64) error {
		_, err := rlx.OpenReader("m", bytes.NewReader(data), n)
		return err
	}
	for name, open := range map[string]func() (*rlx.Model, error){
		"path":   func() (*rlx.Model, error) { return rlx.Open(path) },
		"fs":     func() (*rlx.Model, error) { return rlx.OpenFS(os.DirFS(backendTests), "test_add/model.onnx") },
		"reader": func() (*rlx.Model, error) { return rlx.OpenReader("m", bytes.NewReader(data), int64(len(data))) },
	} {
		m, err := open()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		p := compile(t, m, rlx.On("ref"))
		out, err := p.Run(t.Context(), rlx.Feed{"x0": rlx.New([]float32{1, 2, 3}, 3), "x1": rlx.New([]float32{4, 5, 6}, 3)})
		if err != nil {
			t.Fatal(err)
		}
		if y, _ := rlx.Data[float32](out["y"]); !slices.Equal(y, []float32{5, 7, 9}) {
			t.Errorf("%s: y is %v, expected [5 7 9]", name, y)
		}
	}
	var fe *rlx.FileError
	for _, n := range []int64{int64(len(data)) + 1, -1, 3} {
		if err := short(n); !errors.As(err, &fe) {
			t.Errorf("%d of %d bytes: got %v, expected a FileError", n, len(data), err)
		}
	}
}

// An axis that is an input has to be known when the model is read: by itself, or from the feed of a run.
func TestBind(t *testing.T) {
	path := filepath.Join(backendTests, "test_axes", "model.onnx")
	var lacks *rlx.ModelError
	if _, err := rlx.Open(path); !errors.As(err, &lacks) || !strings.Contains(err.Error(), "depends on x1") {
		t.Errorf("got %v, expected a ModelError that names x1", err)
	}
	x, axis := rlx.New([]float32{1, 2, 3, 4, 5, 6}, 2, 3), rlx.New([]int64{0}, 1)
	for name, opt := range map[string]rlx.OpenOption{"Bind": rlx.Bind("x1", axis), "For": rlx.For(rlx.Feed{"x0": x, "x1": axis})} {
		m, err := rlx.Open(path, opt)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !slices.Equal(m.Bound(), []string{"x1"}) {
			t.Errorf("%s: bound are %v, expected x1", name, m.Bound())
		}
		out, err := compile(t, m, rlx.On("ref")).Run(t.Context(), rlx.Feed{"x0": x})
		if err != nil {
			t.Fatal(err)
		}
		if y, _ := rlx.Data[float32](out["y"]); !slices.Equal(y, []float32{5, 7, 9}) {
			t.Errorf("%s: y is %v, expected [5 7 9]", name, y)
		}
	}
	if _, err := rlx.Open(path, rlx.Bind("z", axis)); err == nil {
		t.Error("an input that the model lacks is bound")
	}
}
