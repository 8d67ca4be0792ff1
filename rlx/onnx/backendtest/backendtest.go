// Package backendtest runs ONNX's backend tests: folders with a model.onnx and test_data_set_N/{input,output}_K.pb.
package backendtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/onnx"
)

// The tolerance of ONNX's own runner: |got - want| <= Atol + Rtol * |want|, unless a data.json beside the model has an rtol or an atol of
// its own. Integers and booleans are exact.
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
		if _, err := os.Stat(dir); err != nil {
			return nil, err
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
	return RunAs(ctx, dir, func(_ string, m *rlx.Model) (*rlx.Model, error) { return m, nil }, opts...)
}

// RunAs is Run of what change makes of the model that is read for a data set, with the same inputs and outputs.
func RunAs(ctx context.Context, dir string, change func(set string, m *rlx.Model) (*rlx.Model, error), opts ...rlx.Option) error {
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
	tol, err := readTolerance(filepath.Join(dir, "data.json"))
	if err != nil {
		return err
	}
	for _, set := range sets {
		if err := runSet(ctx, path, proto, set, tol, change, opts); err != nil {
			return err
		}
	}
	return nil
}

type tolerance struct{ Rtol, Atol float64 }

func readTolerance(path string) (tolerance, error) {
	tol := tolerance{Rtol, Atol}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return tol, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &tol)
	}
	return tol, err
}

// drawn is a Skip for a model that draws random numbers, nil for another one. Such a model runs, and gives the stored types.
func drawn(g *rlx.Graph) error {
	for _, n := range g.Nodes {
		if n.Row.Has(ir.Random) {
			return &Skip{Operators: []string{n.Row.Name}, Reason: "draws random numbers, which are those of another generator than the stored ones"}
		}
	}
	return nil
}

func runSet(ctx context.Context, path string, proto *onnx.ModelProto, set string, tol tolerance, change func(string, *rlx.Model) (*rlx.Model, error),
	opts []rlx.Option) error {
	feed, unread := inputs(&proto.Graph, set)
	model, err := open(path, feed)
	if err != nil {
		return skipOr(err)
	}
	if unread != nil {
		return skipOr(unread)
	}
	random := drawn(model.Graph())
	for _, name := range model.Bound() {
		delete(feed, name)
	}
	if model, err = change(set, model); err != nil {
		return err
	}
	prog, err := model.Compile(ctx, opts...)
	if err != nil {
		return skipOr(err)
	}
	defer prog.Close()
	out, err := prog.Run(ctx, feed)
	if err != nil {
		return skipOr(err)
	}
	for i, o := range proto.Graph.Outputs {
		want, err := tensor(filepath.Join(set, fmt.Sprintf("output_%d.pb", i)))
		if err != nil {
			return skipOr(err)
		}
		check := tol.compare
		if random != nil {
			check = compareTypes
		}
		if err := check(out[o.Name], want); err != nil {
			return fmt.Errorf("%s: output %s: %w", filepath.Base(set), o.Name, err)
		}
	}
	return random
}

// open reads a model; where that needs to know inputs, once more with these as constants.
func open(path string, feed rlx.Feed) (*rlx.Model, error) {
	model, err := rlx.Open(path)
	opts, bound := []rlx.OpenOption{rlx.For(feed)}, map[string]bool{}
	for more := true; more; {
		var lacks *rlx.ModelError
		if !errors.As(err, &lacks) {
			break
		}
		model, err = rlx.Open(path, opts...)
		more = false
		if errors.As(err, &lacks) {
			for _, item := range lacks.Items {
				for _, name := range item.Needs {
					if feed[name] != nil && !bound[name] {
						opts, bound[name], more = append(opts, rlx.Bind(name, feed[name])), true, true
					}
				}
			}
		}
	}
	return model, err
}

// inputs reads the tensors of a data set, which are in the order of the model's inputs, and the first that could not be read. An input with
// an initializer has no file.
func inputs(g *onnx.GraphProto, set string) (feed rlx.Feed, err error) {
	feed = rlx.Feed{}
	for _, in := range g.Inputs {
		if slices.ContainsFunc(g.Initializers, func(t onnx.TensorProto) bool { return t.Name == in.Name }) {
			continue
		}
		t, e := tensor(filepath.Join(set, fmt.Sprintf("input_%d.pb", len(feed))))
		if e != nil {
			return feed, fmt.Errorf("input %s: %w", in.Name, e)
		}
		feed[in.Name] = t
	}
	files, err := filepath.Glob(filepath.Join(escaped(set), "input_*.pb"))
	if err == nil && len(files) != len(feed) {
		err = fmt.Errorf("%s has %d inputs, the model %d", filepath.Base(set), len(files), len(feed))
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

func compareTypes(got, want *rlx.Tensor) error {
	if got == nil {
		return errors.New("is missing")
	}
	if got.DType() != want.DType() || !slices.Equal(got.Shape(), want.Shape()) {
		return fmt.Errorf("got %s%v, expected %s%v", got.DType(), got.Shape(), want.DType(), want.Shape())
	}
	return nil
}

// compare holds a result against what a test stores of it.
func (tol tolerance) compare(got, want *rlx.Tensor) error {
	if err := compareTypes(got, want); err != nil {
		return err
	}
	if want.DType() == rlx.C64 {
		return tol.compareComplex(got, want)
	}
	for i := range want.Len() {
		if err := tol.checkElement(want.DType(), got, want, i); err != nil {
			return err
		}
	}
	return nil
}

func (tol tolerance) checkElement(d rlx.DType, got, want *rlx.Tensor, i int) error {
	ok := false
	switch d {
	case rlx.F16, rlx.F32, rlx.F64:
		ok = tol.near(got.Float(i), want.Float(i))
	case rlx.BF16:
		ok = tolerance{max(tol.Rtol, bfloatRtol), tol.Atol}.near(got.Float(i), want.Float(i))
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
func (tol tolerance) near(a, b float64) bool {
	return a == b || math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) <= tol.Atol+tol.Rtol*math.Abs(b) && !math.IsInf(b, 0)
}

func (tol tolerance) compareComplex(got, want *rlx.Tensor) error {
	a, err := rlx.Data[complex64](got)
	if err != nil {
		return err
	}
	b, err := rlx.Data[complex64](want)
	if err != nil {
		return err
	}
	for i := range b {
		if !tol.near(float64(real(a[i])), float64(real(b[i]))) || !tol.near(float64(imag(a[i])), float64(imag(b[i]))) {
			return fmt.Errorf("element %d of %v is %v, expected %v", i, want.Shape(), a[i], b[i])
		}
	}
	return nil
}
