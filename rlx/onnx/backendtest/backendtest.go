// Package backendtest runs ONNX's backend tests: folders with a model.onnx and test_data_set_N/{input,output}_K.pb.
package backendtest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/onnx"
)

// The tolerance of ONNX's own runner: |got - want| <= Atol + Rtol * |want|. Integers and booleans are exact.
const (
	Rtol = 1e-3
	Atol = 1e-7

	bfloatRtol = 1. / 64 // two units in the last place, as the runner has it
)

// Skip says why a test was not run.
type Skip struct {
	Operators []string // that are not supported, sorted
	Reason    string   // the first complaint
}

func (s *Skip) Error() string {
	if len(s.Operators) == 0 {
		return s.Reason
	}
	return strings.Join(s.Operators, ", ") + ": " + s.Reason
}

// Find lists the test folders that the arguments name: a folder with a model.onnx is a test, another one holds tests.
func Find(dirs ...string) ([]string, error) {
	var tests []string
	for _, dir := range dirs {
		if isFile(filepath.Join(dir, "model.onnx")) {
			tests = append(tests, filepath.Clean(dir))
			continue
		}
		models, err := filepath.Glob(filepath.Join(escaped(dir), "*", "model.onnx"))
		if err != nil {
			return nil, err
		}
		if len(models) == 0 {
			return nil, fmt.Errorf("%s: no model.onnx in it or in its folders", dir)
		}
		for _, m := range models {
			tests = append(tests, filepath.Dir(m))
		}
	}
	return tests, nil
}

// escaped is a path that Glob takes as it is.
func escaped(path string) string {
	return strings.NewReplacer("*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// Run runs all data sets of one test. Nil is a pass, a *Skip a model that rlx or the backend does not support, all else a failure.
func Run(ctx context.Context, dir string, opts ...rlx.Option) error {
	path := filepath.Join(dir, "model.onnx")
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	proto, err := onnx.Decode(data)
	if err != nil {
		return err
	}
	sets, err := filepath.Glob(filepath.Join(escaped(dir), "test_data_set_*"))
	if err != nil || len(sets) == 0 {
		return fmt.Errorf("%s: no test_data_set_* in it", dir)
	}
	for _, set := range sets {
		if err := runSet(ctx, path, proto, set, opts); err != nil {
			return err
		}
	}
	return nil
}

// drawn is a Skip for a model that draws random numbers, nil for another one.
func drawn(g *rlx.Graph) error {
	for _, n := range g.Nodes {
		if n.Row.Has(ir.Random) {
			return &Skip{Operators: []string{n.Row.Name}, Reason: "draws random numbers, which are those of another generator than the stored ones"}
		}
	}
	return nil
}

func runSet(ctx context.Context, path string, proto *onnx.ModelProto, set string, opts []rlx.Option) error {
	feed, unread := inputs(&proto.Graph, set)
	model, err := rlx.Open(path)
	var lacks *rlx.ModelError
	if errors.As(err, &lacks) { // once more for these inputs
		model, err = rlx.Open(path, rlx.For(feed))
	}
	if err != nil {
		return skipOr(err)
	}
	if unread != nil {
		return skipOr(unread)
	}
	if err := drawn(model.Graph()); err != nil {
		return err
	}
	prog, err := model.Compile(ctx, opts...)
	if err != nil {
		return skipOr(err)
	}
	defer prog.Close()
	for _, name := range model.Bound() {
		delete(feed, name)
	}
	out, err := prog.Run(ctx, feed)
	if err != nil {
		return skipOr(err)
	}
	for i, o := range proto.Graph.Outputs {
		want, err := tensor(filepath.Join(set, fmt.Sprintf("output_%d.pb", i)))
		if err != nil {
			return skipOr(err)
		}
		if err := compare(out[o.Name], want); err != nil {
			return fmt.Errorf("%s: output %s: %w", filepath.Base(set), o.Name, err)
		}
	}
	return nil
}

// inputs reads the tensors of a data set, which are in the order of the model's inputs, and the first that could not be read.
func inputs(g *onnx.GraphProto, set string) (feed rlx.Feed, err error) {
	feed = rlx.Feed{}
	for i, in := range g.Inputs {
		t, e := tensor(filepath.Join(set, fmt.Sprintf("input_%d.pb", i)))
		if e != nil {
			err = errors.Join(err, fmt.Errorf("input %s: %w", in.Name, e))
			continue
		}
		feed[in.Name] = t
	}
	return feed, err
}

func tensor(path string) (*rlx.Tensor, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	_, t, err := onnx.ReadTensor(data)
	return t, err
}

// skipOr makes a Skip of an error that says that something is not supported.
func skipOr(err error) error {
	var lacks *rlx.ModelError
	var backend *rlx.UnsupportedError
	var file *onnx.UnsupportedError
	s := &Skip{}
	switch {
	case errors.As(err, &lacks):
		s.list(lacks.Items)
	case errors.As(err, &file):
		s.list(file.Items)
	case errors.As(err, &backend):
		for _, n := range backend.Nodes {
			s.Operators = append(s.Operators, n.Op)
		}
		s.Reason = backend.Error()
	default:
		return err
	}
	slices.Sort(s.Operators)
	s.Operators = slices.Compact(s.Operators)
	return s
}

func (s *Skip) list(items []onnx.Unsupported) {
	for _, u := range items {
		if u.Op != "" {
			s.Operators = append(s.Operators, strings.TrimPrefix(u.Domain+"."+u.Op, "."))
		}
	}
	if len(items) > 0 {
		s.Reason = strings.TrimPrefix(items[0].Reason, items[0].Op+": ")
	}
}

// compare holds a result against what a test stores of it.
func compare(got, want *rlx.Tensor) error {
	if got == nil {
		return errors.New("is missing")
	}
	if got.DType() != want.DType() || !slices.Equal(got.Shape(), want.Shape()) {
		return fmt.Errorf("got %s%v, expected %s%v", got.DType(), got.Shape(), want.DType(), want.Shape())
	}
	if want.DType() == rlx.C64 {
		return compareComplex(got, want)
	}
	for i := range want.Len() {
		if err := checkElement(want.DType(), got, want, i); err != nil {
			return err
		}
	}
	return nil
}

func checkElement(d rlx.DType, got, want *rlx.Tensor, i int) error {
	ok := false
	switch d {
	case rlx.F16, rlx.F32, rlx.F64:
		ok = near(got.Float(i), want.Float(i), Rtol)
	case rlx.BF16:
		ok = near(got.Float(i), want.Float(i), bfloatRtol)
	case rlx.F8E4M3, rlx.F8E5M2, rlx.F4E2M1, rlx.E8M0:
		a, b := got.Float(i), want.Float(i)
		ok = a == b || math.IsNaN(a) && math.IsNaN(b)
	default:
		ok = got.Int(i) == want.Int(i)
	}
	if !ok {
		return fmt.Errorf("element %d of %v is %v, expected %v", i, want.Shape(), got.Float(i), want.Float(i))
	}
	return nil
}

// near is false where one of the two is NaN, and true for equal infinities.
func near(a, b, rtol float64) bool {
	return a == b || math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) <= Atol+rtol*math.Abs(b) && !math.IsInf(b, 0)
}

func compareComplex(got, want *rlx.Tensor) error {
	a, err := rlx.Data[complex64](got)
	if err != nil {
		return err
	}
	b, err := rlx.Data[complex64](want)
	if err != nil {
		return err
	}
	for i := range b {
		if !near(float64(real(a[i])), float64(real(b[i])), Rtol) || !near(float64(imag(a[i])), float64(imag(b[i])), Rtol) {
			return fmt.Errorf("element %d of %v is %v, expected %v", i, want.Shape(), a[i], b[i])
		}
	}
	return nil
}
