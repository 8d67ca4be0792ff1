package workload

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx"
)

// The table that rlx is compared by: testdata/table.txt has name, flop, bytes and unit as the peers' own scripts compute them.
func TestTable(t *testing.T) {
	text, err := os.ReadFile("testdata/table.txt")
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]string{}
	for _, w := range All() {
		unit := w.Unit
		if unit == "" {
			unit = "-"
		}
		if have[w.Name] != "" {
			t.Errorf("%s is listed twice", w.Name)
		}
		have[w.Name] = fmt.Sprintf("%s %.0f %.0f %s", w.Name, w.Flop, w.Bytes, unit)
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		name, _, _ := strings.Cut(line, " ")
		if have[name] != line {
			t.Errorf("got %q, expected %q", have[name], line)
		}
	}
}

// The networks have as many weights as those that the peers build, and as many nodes of each kind.
func TestNetworks(t *testing.T) {
	want := map[string]struct {
		weights int
		kinds   map[string]int
	}{
		"model.minilm.s32":  {22381056, map[string]int{"Gather": 2, "LayerNorm": 13, "MatMul": 48, "Transpose": 24, "Softmax": 6}},
		"model.minilm.s128": {22417920, map[string]int{"Gather": 2, "LayerNorm": 13, "MatMul": 48, "Transpose": 24, "Softmax": 6}},
		"model.resnet50":    {25610152, map[string]int{"Conv": 53, "BatchNormInference": 53, "Activation": 49, "Pool": 2, "MatMul": 1}},
		"model.mobilenetv2": {3538984, map[string]int{"Conv": 52, "BatchNormInference": 52, "Clamp": 35, "Pool": 1, "MatMul": 1}},
	}
	for _, w := range networks() {
		c, err := w.Case()
		if err != nil {
			t.Fatal(err)
		}
		weights, kinds := 0, map[string]int{}
		for _, n := range c.Graph.Nodes {
			kinds[n.Row.Name]++
			if name, ok := n.ParamName(); ok {
				weights += c.Graph.ParamData(name).Len()
			}
		}
		if weights != want[w.Name].weights {
			t.Errorf("%s has %d weights, expected %d", w.Name, weights, want[w.Name].weights)
		}
		for kind, n := range want[w.Name].kinds {
			if kinds[kind] != n {
				t.Errorf("%s has %d nodes %s, expected %d", w.Name, kinds[kind], kind, n)
			}
		}
	}
}

// A reference has the numbers of the workload, in f64 where rows take it, and rows of large products as it says.
func TestReference(t *testing.T) {
	for _, w := range All() {
		if w.open != nil || !strings.HasPrefix(w.Name, "gemm.") && !strings.HasPrefix(w.Name, "dit.") || strings.Contains(w.Name, "4096x4096") {
			continue
		}
		c, err := w.Case()
		if err != nil {
			t.Fatal(w.Name, err)
		}
		r, err := w.Reference()
		if err != nil {
			t.Fatal(w.Name, err)
		}
		for name, x := range c.Feed {
			y := r.Feed[name]
			if !w.narrow && y.DType() != rlx.F64 {
				t.Errorf("%s: %s is %s in the reference", w.Name, name, y.DType())
			}
			cols, rows := int(x.Shape()[len(x.Shape())-1]), r.Rows
			if rows == nil {
				rows = make([]int, x.Len()/cols)
				for i := range rows {
					rows[i] = i
				}
			}
			for i, at := range rows {
				for k := range cols {
					if a, b := x.Float(at*cols+k), y.Float(i*cols+k); a != b {
						t.Fatalf("%s: %s row %d column %d is %v, in the reference %v", w.Name, name, at, k, a, b)
					}
				}
			}
		}
	}
}
