// Package golden reads stored outputs of real models (testdata/models/golden.json), makes the inputs they belong to, and
// compares what a run gave with what is stored. Inputs are formulas over the element index, so no data are kept.
package golden

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// ErrMismatch is wrapped by what [Compare] reports when outputs differ.
var ErrMismatch = errors.New("golden: outputs differ")

// EnvModels is the environment variable that names the folder which testdata/models/fetch.py filled.
const EnvModels = "RLX_MODELS"

// Input describes one input tensor.
type Input struct {
	DType   string    `json:"dtype"` // float32, int32 or int64
	Shape   []int64   `json:"shape"`
	Kind    string    `json:"kind"` // uniform, int, const, given, lengths, chirp, voiced or bars
	Lo      float64   `json:"lo"`
	Hi      float64   `json:"hi"`
	Seed    uint32    `json:"seed"`
	Value   float64   `json:"value"`
	Values  []float64 `json:"values"`
	Lengths []int64   `json:"lengths"`

	Rate, Amp, F0, F1, Env float64   // of chirp and voiced, in hertz
	Steps, Harmonics       int       // of the whole chirp; of voiced
	Bg, Fg                 float64   // of bars
	Boxes                  [][]int64 // y0, y1, x0, x1 and the width of a bar
}

// Output is what is stored of an output. First and At with ValuesAt index the flattened tensor, as does ArgMax.
type Output struct {
	DType    string    `json:"dtype"`
	Shape    []int64   `json:"shape"`
	First    []float64 `json:"first"`
	At       []int     `json:"at"`
	ValuesAt []float64 `json:"values_at"`
	Mean     float64   `json:"mean"`
	Std      float64   `json:"std"`
	Min      float64   `json:"min"`
	Max      float64   `json:"max"`
	ArgMax   int       `json:"argmax"`
}

// Case is one run of one model.
type Case struct {
	Name    string             `json:"name"`
	Model   string             `json:"model"` // path under the models folder
	Inputs  map[string]Input   `json:"inputs"`
	Outputs map[string]Output  `json:"-"`
	Tol     map[string]float64 `json:"tol"` // absolute, per output

	Steps    int               `json:"steps"`    // runs, one after the other; 0 means 1
	Feedback map[string]string `json:"feedback"` // inputs that take an output of the run before
	Trace    string            `json:"trace"`    // the output whose first element after each run is stored
	Traced   []float64         `json:"-"`
}

// UnmarshalJSON takes the trace out of the outputs, where the file has it.
func (c *Case) UnmarshalJSON(data []byte) error {
	type plain Case
	file := struct {
		*plain
		Outputs map[string]json.RawMessage `json:"outputs"`
	}{plain: (*plain)(c)}
	if err := json.Unmarshal(data, &file); err != nil {
		return err
	}
	c.Steps, c.Outputs = max(c.Steps, 1), map[string]Output{}
	for name, raw := range file.Outputs {
		if name == "trace" {
			if err := json.Unmarshal(raw, &c.Traced); err != nil {
				return err
			}
			continue
		}
		var o Output
		if err := json.Unmarshal(raw, &o); err != nil {
			return err
		}
		c.Outputs[name] = o
	}
	return nil
}

// CompareTrace holds the first elements of the traced output after each run against the stored ones.
func CompareTrace(c Case, got []float64) error {
	if len(got) != len(c.Traced) {
		return fmt.Errorf("%w: case %s: %d runs were traced, expected %d", ErrMismatch, c.Name, len(got), len(c.Traced))
	}
	for i, w := range c.Traced {
		if !(math.Abs(got[i]-w) <= c.Tol["trace"]) {
			return fmt.Errorf("%w: case %s: after run %d %s begins with %g, expected %g within %g", ErrMismatch, c.Name, i, c.Trace, got[i], w, c.Tol["trace"])
		}
	}
	return nil
}

// Read reads a file of cases.
func Read(path string) ([]Case, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("golden: %w", err)
	}
	var file struct {
		Cases []Case `json:"cases"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, fmt.Errorf("golden: %s: %w", path, err)
	}
	for _, c := range file.Cases {
		for name := range c.Outputs {
			if c.Tol[name] <= 0 {
				return nil, fmt.Errorf("golden: %s: case %s has no tolerance for output %q", path, c.Name, name)
			}
		}
	}
	return file.Cases, nil
}

// ModelPath returns the file of a model, or the reason why a test that needs it has to be skipped.
func ModelPath(model string) (path, skip string) {
	dir := os.Getenv(EnvModels)
	if dir == "" {
		return "", fmt.Sprintf("%s is not set: run python3 testdata/models/fetch.py DIR, then set it to DIR", EnvModels)
	}
	path = filepath.Join(dir, filepath.FromSlash(model))
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Sprintf("%s has no %s: run python3 testdata/models/fetch.py %s (--with ocrv5 for ppocrv5_*)", EnvModels, model, dir)
	}
	return path, ""
}

// hash32 gives element i of the stream that seed names; a bijection of i for each seed.
func hash32(i, seed uint32) uint32 {
	h := i + seed*0x9E3779B9
	h ^= h >> 16
	h *= 0x7FEB352D
	h ^= h >> 15
	h *= 0x846CA68B
	return h ^ h>>16
}

// Feed makes the inputs of a step.
func (c *Case) Feed(step int) (map[string]*ir.Tensor, error) {
	feed := make(map[string]*ir.Tensor, len(c.Inputs))
	for name, in := range c.Inputs {
		v, err := in.Fill(step)
		if err != nil {
			return nil, fmt.Errorf("input %s: %w", name, err)
		}
		shape := make([]int, len(in.Shape))
		for i, d := range in.Shape {
			shape[i] = int(d)
		}
		switch v := v.(type) {
		case []float32:
			feed[name] = ir.New(v, shape...)
		case []int32:
			feed[name] = ir.New(v, shape...)
		case []int64:
			feed[name] = ir.New(v, shape...)
		default:
			return nil, fmt.Errorf("input %s: made of %T", name, v)
		}
	}
	return feed, nil
}

// Fill makes the tensor: a []float32, []int32 or []int64 as DType says, row-major. Step counts the runs of a case that runs
// more than once, from 0; it is added to the seed. With h = hash32(i, seed+step):
//
//	uniform: lo + (hi-lo) * (h>>8)/2^24 in float64, rounded to the dtype
//	int:     lo + h mod (hi-lo)
//	const:   value
//	given:   values
//	lengths: row r has ones in its first lengths[r] places, zeros after them
//	chirp:   amp * sin(2 pi (f0 t + (f1-f0) t^2 / 2T)), t = (i + step n) / rate, T = n steps / rate
//	voiced:  amp * (1 - cos(2 pi env t)) / 2 * sum over k = 1..harmonics of sin(2 pi k f t) / k, f = f0 (1 + 0.1 sin(6 pi t))
//	bars:    an image [b, c, y, x] of bg, with fg in every other bar of the given width of each box, which lies 3 b further right
func (in Input) Fill(step int) (any, error) {
	n, err := count(in.Shape)
	if err != nil {
		return nil, err
	}
	at, err := in.formula(n, step)
	if err != nil {
		return nil, err
	}
	switch in.DType {
	case "float32":
		return generate[float32](n, at), nil
	case "int32":
		return generate[int32](n, at), nil
	case "int64":
		return generate[int64](n, at), nil
	}
	return nil, fmt.Errorf("golden: dtype %q", in.DType)
}

func generate[T float32 | int32 | int64](n int, at func(int) float64) []T {
	out := make([]T, n)
	for i := range out {
		out[i] = T(at(i))
	}
	return out
}

// formula returns element i as a float64, which holds every 32-bit integer exactly.
func (in Input) formula(n, step int) (func(i int) float64, error) {
	seed := in.Seed + uint32(step)
	seconds := func(i int) float64 { return float64(i+step*n) / in.Rate }
	switch in.Kind {
	case "chirp":
		whole := float64(n*max(in.Steps, 1)) / in.Rate
		return func(i int) float64 {
			t := seconds(i)
			return in.Amp * math.Sin(2*math.Pi*(float64(in.F0*t)+float64((in.F1-in.F0)*t*t)/float64(2*whole)))
		}, nil
	case "voiced":
		return func(i int) float64 {
			t := seconds(i)
			f := in.F0 * (1 + float64(0.1*math.Sin(2*math.Pi*3*t)))
			x := 0.0
			for k := 1; k <= in.Harmonics; k++ {
				x += math.Sin(2*math.Pi*float64(k)*f*t) / float64(k)
			}
			return in.Amp * (0.5 - float64(0.5*math.Cos(2*math.Pi*in.Env*t))) * x
		}, nil
	case "bars":
		if len(in.Shape) != 4 {
			return nil, fmt.Errorf("golden: bars in shape %d", in.Shape)
		}
		return in.bars, nil
	case "uniform":
		return func(i int) float64 {
			u := float64(hash32(uint32(i), seed)>>8) / (1 << 24)
			// The conversion forbids a fused multiply-add, which would round differently on some machines.
			return in.Lo + float64((in.Hi-in.Lo)*u)
		}, nil
	case "int":
		width := in.Hi - in.Lo
		if width < 1 || width > math.MaxUint32 || width != math.Trunc(width) {
			return nil, fmt.Errorf("golden: int from %g to %g", in.Lo, in.Hi)
		}
		return func(i int) float64 { return in.Lo + float64(hash32(uint32(i), seed)%uint32(width)) }, nil
	case "const":
		return func(int) float64 { return in.Value }, nil
	case "given":
		if len(in.Values) != n {
			return nil, fmt.Errorf("golden: %d values given for shape %d", len(in.Values), in.Shape)
		}
		return func(i int) float64 { return in.Values[i] }, nil
	case "lengths":
		if len(in.Shape) != 2 || in.Shape[0] != int64(len(in.Lengths)) {
			return nil, fmt.Errorf("golden: %d lengths for shape %d", len(in.Lengths), in.Shape)
		}
		row := int(in.Shape[1])
		return func(i int) float64 {
			if int64(i%row) < in.Lengths[i/row] {
				return 1
			}
			return 0
		}, nil
	}
	return nil, fmt.Errorf("golden: no input of kind %q", in.Kind)
}

// bars is element i of an image with striped boxes; later boxes lie over earlier ones, and only their bars show.
func (in Input) bars(i int) float64 {
	x, y := int64(i)%in.Shape[3], int64(i)/in.Shape[3]%in.Shape[2]
	shift := 3 * (int64(i) / (in.Shape[1] * in.Shape[2] * in.Shape[3]))
	for _, b := range in.Boxes {
		if len(b) == 5 && y >= b[0] && y < b[1] && x-shift >= b[2] && x-shift < b[3] && (x-shift-b[2])/b[4]%2 == 0 {
			return in.Fg
		}
	}
	return in.Bg
}

func count(shape []int64) (int, error) {
	n := int64(1)
	for _, d := range shape {
		if d < 0 || (d > 0 && n > math.MaxInt32/d) {
			return 0, fmt.Errorf("golden: shape %d", shape)
		}
		n *= d
	}
	return int(n), nil
}

// Compare holds an output against what case c stores of it: dtype and shape equal, every stored number (values, mean,
// standard deviation over all elements, least, largest) within the tolerance, and the value at the stored arg max within the
// tolerance of the largest, because equal values may swap places. A difference wraps [ErrMismatch].
func Compare(c Case, output, dtype string, shape []int64, values []float64) error {
	want, ok := c.Outputs[output]
	if !ok {
		return fmt.Errorf("golden: case %s has no output %q", c.Name, output)
	}
	differ := func(format string, args ...any) error {
		return fmt.Errorf("%w: case %s, output %s: %s", ErrMismatch, c.Name, output, fmt.Sprintf(format, args...))
	}
	if dtype != want.DType {
		return differ("dtype %s, expected %s", dtype, want.DType)
	}
	if !slices.Equal(shape, want.Shape) {
		return differ("shape %d, expected %d", shape, want.Shape)
	}
	n, err := count(shape)
	if err != nil {
		return err
	}
	if len(values) != n || n == 0 {
		return differ("%d values, shape %d has %d", len(values), shape, n)
	}
	if len(want.First) > n || len(want.At) != len(want.ValuesAt) || want.ArgMax < 0 || want.ArgMax >= n {
		return fmt.Errorf("golden: case %s, output %s: what is stored does not fit shape %d", c.Name, output, shape)
	}
	got := summarize(values)
	tol := c.Tol[output]
	// Written so that a NaN is a difference.
	near := func(a, b float64) bool { return math.Abs(a-b) <= tol }
	for i, w := range want.First {
		if !near(values[i], w) {
			return differ("element %d is %g, expected %g within %g", i, values[i], w, tol)
		}
	}
	for k, w := range want.ValuesAt {
		i := want.At[k]
		if i < 0 || i >= n || !near(values[i], w) {
			return differ("element %d is not %g within %g", i, w, tol)
		}
	}
	for _, s := range [...]struct {
		name      string
		got, want float64
	}{
		{"mean", got.Mean, want.Mean}, {"standard deviation", got.Std, want.Std},
		{"least value", got.Min, want.Min}, {"largest value", got.Max, want.Max},
		{"value at the arg max", values[want.ArgMax], got.Max},
	} {
		if !near(s.got, s.want) {
			return differ("%s is %g, expected %g within %g", s.name, s.got, s.want, tol)
		}
	}
	return nil
}

// summarize returns moments and extremes of a non-empty slice.
func summarize(v []float64) Output {
	s := Output{Min: v[0], Max: v[0]}
	for i, x := range v {
		s.Mean += x
		s.Min = min(s.Min, x)
		if x > s.Max {
			s.Max, s.ArgMax = x, i
		}
	}
	s.Mean /= float64(len(v))
	for _, x := range v {
		s.Std += (x - s.Mean) * (x - s.Mean)
	}
	s.Std = math.Sqrt(s.Std / float64(len(v)))
	return s
}
