package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/conform"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// save writes a tensor to a file.
func save(t *testing.T, x *rlx.Tensor) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.npy")
	if err := writeNPY(path, x); err != nil {
		t.Fatal(err)
	}
	return path
}

// Wrong inputs get one line each that says what to do.
func TestRunErrors(t *testing.T) {
	const digits = "demo/digits.onnx"
	toks := tokens(t)
	f64 := save(t, rlx.New(make([]float64, 64), 1, 64))
	halves := save(t, rlx.New([]float64{0.5, 1}, 1, 2))
	ids := save(t, rlx.New([]int64{1, 2, 3, 4}, 2, 2))
	mask := save(t, rlx.New(make([]float32, 6), 2, 3))
	for _, c := range []struct {
		args  []string
		code  int
		words []string
	}{
		{[]string{digits, "--in", "pixel=" + f64}, exitFailed, []string{`no input "pixel"`, `did you mean "pixels"?`}},
		{[]string{digits, "--in", "pixels=" + f64}, exitFailed, []string{"f64[1, 64]", "f32[batch, 64]", "--cast", "np.float32"}},
		{[]string{digits, "--in", "pixels=" + halves}, exitFailed, []string{"axis 1 is 2, expected 64"}},
		{[]string{digits, "--in", "pixels=1,2"}, exitFailed, []string{"2 numbers", "64"}},
		{[]string{digits, "--in", "pixels=none.npy"}, exitFailed, []string{"none.npy is neither a file nor"}},
		{[]string{digits, "--in", "pixels=run_test.go"}, exitFailed, []string{"is no .npy file", "package"}},
		{[]string{digits, "--random", "--dim", "bath=2"}, exitFailed, []string{`did you mean "batch"?`}},
		{[]string{digits, "--random", "--dim", "batch=x"}, exitUsage, []string{"NAME=N"}},
		{[]string{digits, "--random", "--range", "pixels=2:1"}, exitUsage, []string{"LO below HI"}},
		{[]string{digits, "--random", "--repeat", "0"}, exitUsage, []string{"at least 1"}},
		{[]string{digits, "--random", "--threads", "-1"}, exitUsage, []string{"0 for all"}},
		{[]string{digits, "--random", "--in", "pixels=1", "--in", "pixels=2"}, exitUsage, []string{"twice"}},
		{[]string{digits, "--random", "--backend", "gpu"}, exitFailed, []string{"gpu", "ref"}},
		{[]string{f64, "--random"}, exitFailed, []string{"not an ONNX model", ".npy"}},
		{[]string{toks}, exitFailed, []string{"ids is missing", "mask is missing", "i64[batch, sequence]", "--random"}},
		{[]string{toks, "--in", "ids=" + ids, "--in", "mask=" + mask}, exitFailed, []string{"sequence is 2 by axis 1 of ids", "f32[2, 3]"}},
		{[]string{toks, "--in", "ids=" + ids, "--in", "mask=1", "--dim", "batch=3"}, exitFailed, []string{"batch is 3 by --dim"}},
		{[]string{toks, "--in", "ids=" + halves, "--random", "--cast"}, exitFailed, []string{"0.5", "i64"}},
		{[]string{toks, "--in", "table=" + mask}, exitFailed, []string{"is a weight"}},
		{[]string{rates(t), "--in", "sr=1.5", "--random"}, exitFailed, []string{"1.5", "i64"}},
		{[]string{rates(t), "--random", "--dim", "len=4"}, exitFailed, []string{"Pool: C6", "with len=4"}},
		{[]string{sums(t), "--random", "--range", "axes=7:8"}, exitFailed, []string{"made up", "--in axes=VALUE"}},
	} {
		code, out, errOut := rlxRun(t, append([]string{"run", "--backend", "ref"}, c.args...)...)
		if code != c.code || out != "" {
			t.Errorf("%v: exit code %d, expected %d, and printed %q", c.args, code, c.code, out)
		}
		for _, w := range c.words {
			if !strings.Contains(errOut, w) {
				t.Errorf("%v: no %q in %s", c.args, w, errOut)
			}
		}
	}
}

// runs gives the lines that a run prints about its inputs and outputs.
func runs(t *testing.T, args ...string) string {
	t.Helper()
	code, out, errOut := rlxRun(t, append([]string{"run", "--backend", "ref"}, args...)...)
	if code != exitDone {
		t.Fatalf("%v: exit code %d: %s", args, code, errOut)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	return strings.Join(lines[1:len(lines)-1], "\n") // without program and latency
}

// What a run is fed with is what the flags say, and printed.
func TestRunInputs(t *testing.T) {
	i32 := save(t, rlx.New([]int32{1, 2, 6}, 1, 3))
	for _, c := range []struct {
		args  []string
		words []string
	}{
		// The smallest size that holds a window of 5, and the rate that the model knows; max pooling and relu keep 2, the other branch negates.
		{[]string{rates(t), "--random"}, []string{"sr  i64[]: 16000", "batch=1 len=8", "1 is too small for len", "y  f32[1, 3, 4]", "seed 1"}},
		{[]string{rates(t), "--in", "x=2", "--in", "sr=16000", "--dim", "len=6"}, []string{"y  f32[1, 3, 2]", "min 2, mean 2, max 2, 0 NaN, 0 Inf", "first 2 2 2 2 2 2"}},
		{[]string{rates(t), "--in", "x=2", "--in", "sr=8000", "--dim", "len=6"}, []string{"min -2, mean -2, max -2"}},
		{[]string{sums(t), "--in", "x=1,2,3,4,5,6", "--in", "axes=1"}, []string{"y  f32[2]", "first 6 15"}},
		{[]string{sums(t), "--in", "x=1,2,3,4,5,6", "--in", "axes=0"}, []string{"y  f32[3]", "first 5 7 9"}},
		{[]string{tokens(t), "--random", "--dim", "batch=3"}, []string{"ids  i64[3, 1]: random integers in [0, 7), the rows", "mask  f32[3, 1]: random, normal(0, 1)"}},
		{[]string{tokens(t), "--random", "--range", "ids=2:4", "--range", "mask=0:1"}, []string{"integers in [2, 4)", "uniform in [0, 1)"}},
		{[]string{tokens(t), "--in", "ids=" + i32, "--cast", "--in", "mask=inf"}, []string{"m  f32[1, 3]", "no finite element, 0 NaN, 3 Inf"}},
		{[]string{tokens(t), "--in", "ids=1,2,3,4,5,6", "--in", "mask=1", "--dim", "batch=2"}, []string{"m  f32[2, 3]"}},
	} {
		out := runs(t, c.args...)
		for _, w := range c.words {
			if !strings.Contains(out, w) {
				t.Errorf("%v: no %q in\n%s", c.args, w, out)
			}
		}
	}
}

// A seed gives the same values again, and another one others; they are those that were asked for.
func TestRandom(t *testing.T) {
	args := []string{tokens(t), "--random", "--dim", "batch=100", "--dim", "sequence=100"}
	one := runs(t, args...)
	if runs(t, args...) != one || runs(t, append(args, "--seed", "2")...) == one {
		t.Error("the seed does not decide the values")
	}
	sig, err := readSignature(args[0])
	if err != nil {
		t.Fatal(err)
	}
	v := &values{seed: 1, ranges: map[string][2]float64{"ids": {-3, 4}}}
	normal, _, err := v.make(sig, sig.input("mask"), []int64{100, 100}, nil)
	if err != nil {
		t.Fatal(err)
	}
	square := 0.0
	for i := range normal.Len() {
		square += normal.Float(i) * normal.Float(i)
	}
	if s := statsOf(normal); math.Abs(s.mean) > 0.05 || math.Abs(square/1e4-1) > 0.06 { // five standard errors: 0.05 and 0.07
		t.Errorf("mean %g, mean square %g of 10000 normal values", s.mean, square/1e4)
	}
	ids, _, err := v.make(sig, sig.input("ids"), []int64{100, 100}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if s := statsOf(ids); s.min != -3 || s.max != 3 {
		t.Errorf("integers in [-3, 4) span %g to %g", s.min, s.max)
	}
}

func TestStats(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	for _, c := range []struct {
		x    *rlx.Tensor
		want string
	}{
		{rlx.New([]float32{1, nan, 4, inf, -2, nan}, 6), "min -2, mean 1, max 4, 2 NaN, 1 Inf"},
		{rlx.New([]int64{7, -1}, 2), "min -1, mean 3, max 7, 0 NaN, 0 Inf"},
		{rlx.New([]bool{true, false, true, true}, 4), "min 0, mean 0.75, max 1, 0 NaN, 0 Inf"},
		{rlx.New([]float32{nan}, 1), "no finite element, 1 NaN, 0 Inf"},
	} {
		if got := statsOf(c.x).String(); got != c.want {
			t.Errorf("%v: got %s, expected %s", c.x, got, c.want)
		}
	}
	ms := time.Millisecond
	if got := latency([]time.Duration{9 * ms, 4 * ms, 1 * ms, 2 * ms, 3 * ms}, 123456*time.Microsecond); got !=
		"read and compiled in 123ms; first run 9ms (warm-up); 4 runs: median 2.5ms, min 1ms" {
		t.Error(got)
	}
}

// --profile writes a trace with an event for each command that the table counts.
func TestRunProfile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "trace.json")
	code, out, errOut := rlxRun(t, "run", "--backend", "ref", "demo/digits.onnx", "--random", "--repeat", "2", "--profile", file)
	if code != exitDone {
		t.Fatal(errOut)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var trace struct{ TraceEvents []struct{ Cat string } }
	if err := json.Unmarshal(b, &trace); err != nil {
		t.Fatal(err)
	}
	commands := 0
	for _, e := range trace.TraceEvents {
		if e.Cat == "command" {
			commands++
		}
	}
	if commands != 9 || !strings.Contains(out, "in 9 commands") || !strings.Contains(out, "MatMul         3") { // three layers: 3 products, 3 sums, 2 relu, softmax
		t.Errorf("%d commands in the trace, expected 9 there and in\n%s", commands, out)
	}
}

// A cancelled run says so and fails.
func TestRunCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var errOut strings.Builder
	if code := execute(ctx, []string{"run", "demo/digits.onnx", "--random"}, &strings.Builder{}, &errOut); code != exitFailed || !strings.Contains(errOut.String(), "canceled") {
		t.Errorf("exit code %d: %s", code, errOut.String())
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"abc", "", 3}, {"kitten", "sitting", 3}, {"flaw", "lawn", 2}, {"batch", "batch", 0}} {
		if got := distance(c.a, c.b); got != c.want || distance(c.b, c.a) != c.want {
			t.Errorf("%s to %s: %d, expected %d", c.a, c.b, got, c.want)
		}
	}
	if got := closest("zzz", []string{"input_ids", "x_long_name"}); got != "" {
		t.Errorf("zzz is near %s", got)
	}
}

// A loop that emits: the length of the stack is known only after the run.
func TestRunMeasured(t *testing.T) {
	g := rlx.NewGraph("powers")
	x := g.Input("x", rlx.F32, nil)
	y := op.While([]rlx.Value{x}, nil, func(_ *rlx.Graph, v, _ []rlx.Value) rlx.Value { return op.Lt(v[0], 100) },
		func(_ *rlx.Graph, v, _ []rlx.Value) []rlx.Value { return []rlx.Value{op.Mul(v[0], 2), v[0]} }, op.WhileOptions{NumEmits: 1})
	g.Output("powers", y[1])
	path := filepath.Join(t.TempDir(), "powers.onnx")
	var model bytes.Buffer
	if err := errors.Join(rlx.ExportONNX(g, &model), os.WriteFile(path, model.Bytes(), 0o666)); err != nil {
		t.Fatal(err)
	}
	for _, backend := range conform.Backends() {
		code, out, errOut := rlxRun(t, "run", path, "--in", "x=20", "--backend", backend)
		if code != exitDone || !strings.Contains(out, "f32[3]\n") || !strings.Contains(out, "first 20 40 80\n") {
			t.Errorf("%s: exit code %d:\n%s%s", backend, code, out, errOut)
		}
	}
}
