package onnx

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// envFolders names a folder of ONNX backend tests: one folder per test with model.onnx and test_data_set_0/{input,output}_N.pb.
const envFolders = "RLX_ONNX_TESTS"

// disputed are tests whose expected values follow from a fractional output length; the operator's text and other runtimes take the
// whole length that the result really has.
var disputed = []string{"test_resize_downsample_scales_cubic_align_corners", "test_resize_downsample_scales_linear_align_corners"}

// TestBackendFolders imports and runs ONNX's own operator tests. A model with unsupported operators is counted, not run.
func TestBackendFolders(t *testing.T) {
	root := os.Getenv(envFolders)
	if root == "" {
		t.Skipf("%s is not set: run python3 testdata/backend.py DIR, then set it to DIR", envFolders)
	}
	dirs, err := filepath.Glob(filepath.Join(root, "*", "model.onnx"))
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no tests in %s: %v", root, err)
	}
	ran, unsupported := 0, map[string]int{}
	for _, path := range dirs {
		dir := filepath.Dir(path)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			if slices.Contains(disputed, filepath.Base(dir)) {
				t.Skip("align_corners with a fractional output length")
			}
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			set := filepath.Join(dir, "test_data_set_0")
			g, err := Import(data)
			var u *UnsupportedError
			if errors.As(err, &u) { // once more with its small inputs known
				g, err = Import(data, smallInputs(t, data, set)...)
			}
			if errors.As(err, &u) {
				unsupported[u.Items[0].String()]++
				t.Skip(u)
			}
			if err != nil {
				t.Fatal(err)
			}
			ran++
			runFolder(t, g, set)
		})
	}
	t.Logf("%d of %d ran", ran, len(dirs))
	var lines []string
	for reason, n := range unsupported {
		lines = append(lines, fmt.Sprintf("%4d %s", n, reason))
	}
	slices.Sort(lines)
	slices.Reverse(lines)
	for _, l := range lines {
		t.Log(l)
	}
}

// smallInputs binds the inputs that can be axes, sizes or flags.
func smallInputs(t *testing.T, data []byte, set string) []Option {
	m, err := Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	var opts []Option
	for i, in := range m.Graph.Inputs {
		if in.ElemType == DataString || in.Kind != KindTensor || i == 0 && len(m.Graph.Inputs) > 1 {
			continue
		}
		if x := namedTensor(t, set, "input", in.Name); x != nil && x.Rank() <= 1 && x.Len() <= maxTracked {
			opts = append(opts, BindInput(in.Name, x))
		}
	}
	return opts
}

func runFolder(t *testing.T, g *ir.Graph, dir string) {
	feed := map[string]*ir.Tensor{}
	for _, n := range g.Inputs {
		name, _ := n.InputName()
		if feed[name] = namedTensor(t, dir, "input", name); feed[name] == nil {
			t.Fatalf("no data for input %s", name)
		}
	}
	out, err := evaluate(g, feed)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range g.Outputs {
		want := namedTensor(t, dir, "output", o.Name)
		if want == nil {
			t.Fatalf("no data for output %s", o.Name)
		}
		if err := close(out[o.Name], want); err != nil {
			t.Errorf("output %s: %v", o.Name, err)
		}
	}
}

// namedTensor finds the tensor of that name among the files of a kind.
func namedTensor(t *testing.T, dir, kind, name string) *ir.Tensor {
	t.Helper()
	for i := 0; ; i++ {
		b, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("%s_%d.pb", kind, i)))
		if err != nil {
			return nil
		}
		var p TensorProto
		d := &decoder{data: b, left: math.MaxInt32, limit: math.MaxInt32}
		if derr := d.tensor(span{0, len(b)}, &p); derr != nil {
			t.Fatal(derr)
		}
		if p.Name != name {
			continue
		}
		x, reason, err := readTensor(&p)
		if reason != "" {
			t.Skip(reason)
		}
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
}

// close compares with the tolerance of ONNX's test runner; half precision gets its own rounding.
func close(got, want *ir.Tensor) error {
	if got.DType() != want.DType() || !slices.Equal(got.Shape(), want.Shape()) {
		return fmt.Errorf("got %s%v, expected %s%v", got.DType(), got.Shape(), want.DType(), want.Shape())
	}
	rel, abs := 1e-3, 1e-7
	switch want.DType() {
	case ir.F16:
		rel, abs = 2e-3, 1e-4
	case ir.BF16:
		rel, abs = 1.6e-2, 1e-3
	}
	for i := range want.Len() {
		a, b := got.Float(i), want.Float(i)
		if a == b || math.IsNaN(a) && math.IsNaN(b) {
			continue
		}
		if !ir.Float.Has(want.DType()) || !(math.Abs(a-b) <= abs+rel*math.Abs(b)) {
			return fmt.Errorf("element %d of %v is %v, expected %v", i, want.Shape(), a, b)
		}
	}
	return nil
}
