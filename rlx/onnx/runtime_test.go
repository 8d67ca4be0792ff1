package onnx

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// runtimeCase is a model of testdata/runtime.json with what ONNX Runtime makes of its inputs.
type runtimeCase struct {
	Name  string
	Model string // base64
	Sets  []struct{ In, Out map[string]*plainTensor }
}

func (c *runtimeCase) data(t *testing.T) []byte {
	t.Helper()
	data, err := base64.StdEncoding.DecodeString(c.Model)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func runtimeCases(t *testing.T) []runtimeCase {
	t.Helper()
	data, err := os.ReadFile("testdata/runtime.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []runtimeCase
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	return cases
}

// microsoftOps lists the operators of com.microsoft in testdata/runtime.json.
func microsoftOps(t *testing.T) map[string]bool {
	t.Helper()
	seen := map[string]bool{}
	for _, c := range runtimeCases(t) {
		m, err := Decode(c.data(t))
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range m.Graph.Nodes {
			if n.Domain == microsoft {
				seen[n.OpType] = true
			}
		}
	}
	return seen
}

// TestRuntime imports each model once, without a look at its inputs, and runs it on all sets of them.
func TestRuntime(t *testing.T) {
	for _, c := range runtimeCases(t) {
		t.Run(c.Name, func(t *testing.T) {
			g := mustImport(t, c.data(t))
			for _, set := range c.Sets {
				feed := map[string]*ir.Tensor{}
				for name, x := range set.In {
					feed[name] = x.tensor(t)
				}
				got, err := evaluate(g, feed)
				if err != nil {
					t.Fatal(err)
				}
				for name, want := range set.Out {
					if err := nearTo(got[name], want.tensor(t)); err != nil {
						t.Errorf("output %s: %v", name, err)
					}
				}
			}
		})
	}
}
