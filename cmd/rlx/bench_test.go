package main

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-ml/rlx-go/cmd/rlx/workload"
	"github.com/rlx-ml/rlx-go/internal/golden"
	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/conform"
)

// Every line has the fields of docs/bench.md, a result near the f64 reference, and what cannot run is named on standard error.
func TestBench(t *testing.T) {
	backend := "ref"
	if slices.Contains(conform.Backends(), "cpu") {
		backend = "cpu"
	}
	t.Setenv(golden.EnvModels, "")
	code, out, errOut := rlxRun(t, "bench", "--json", "-s", "0.001", "--backend", backend, "overhead", "dit.gate_bwd.2x", "gemm.i8dyn.128", "fft.c64.b256", "train.mlp", "model.onnx.magika")
	if code != exitDone {
		t.Fatal(errOut)
	}
	bound := map[string]float64{"overhead.ops1": 1e-7, "overhead.ops100": 1e-5, "dit.gate_bwd.2x128x64": 1e-6, "gemm.i8dyn.128x768x768": 1e-6, "fft.c64.b256n256": 1e-6}
	for line := range strings.Lines(out) {
		var l struct {
			Workload, Peer, Version string
			Threads, Reps           int
			Min                     float64  `json:"min_ms"`
			Median                  float64  `json:"median_ms"`
			Err                     *float64 `json:"max_err"`
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		most, known := bound[l.Workload]
		if !known || l.Err == nil || *l.Err > most {
			t.Errorf("%s: expected a max_err of at most %g in %s", l.Workload, most, line)
		}
		if l.Threads != 1 || l.Reps < 5 || !(l.Min > 0) || l.Median < l.Min || !strings.HasPrefix(l.Peer, "rlx") || l.Version == "" {
			t.Errorf("a field is off: %s", line)
		}
		delete(bound, l.Workload)
	}
	if len(bound) > 0 {
		t.Errorf("no line for %v", bound)
	}
	for _, want := range []string{"train.mlp.b64: left out: rlx has no gradients yet", "model.onnx.magika.2048: left out: RLX_MODELS is not set"} {
		if !strings.Contains(errOut, want) {
			t.Errorf("standard error lacks %q:\n%s", want, errOut)
		}
	}
}

// The probe names the machine and knows every limit, of which each is positive; how large they are depends on what else runs.
func TestBenchLimits(t *testing.T) {
	native, backend := slices.Contains(conform.Backends(), "cpu"), "ref"
	if native {
		backend = "cpu"
	}
	code, out, errOut := rlxRun(t, "bench", "--json", "--limits", "--backend", backend, "limit")
	if code != exitDone {
		t.Fatal(errOut)
	}
	s, err := readSitting("limits", strings.NewReader(out))
	if err != nil {
		t.Fatal(err)
	}
	if s.machine.CPU == "" || s.machine.ISA == "" || s.machine.Date == "" {
		t.Fatalf("the machine is %+v", s.machine)
	}
	for _, p := range probes {
		if got := s.limits[p.name+" 1"]; native != (got > 0) { // the interpreter probes nothing
			t.Errorf("limit.%s is %g", p.name, got)
		}
	}
}

func TestMaxError(t *testing.T) {
	nan := float32(math.NaN())
	want := rlx.Feed{"y": rlx.New([]float64{1, -4, 2, 0.5}, 2, 2)}
	for _, c := range []struct {
		got  []float32
		rows []int
		err  float64
		word string
	}{
		{[]float32{1, -4, 2, 0.5}, nil, 0, ""},
		{[]float32{1, -4, 3, 0.5}, nil, 0.25, ""},               // 1 of 4
		{[]float32{1, -4, 9, 9, 2, 1.5}, []int{0, 2}, 0.25, ""}, // the row between is not looked at
		{[]float32{1, -4, nan, 0.5}, nil, 0, "output y has NaN"},
	} {
		e, err := maxError(want, rlx.Feed{"y": rlx.New(c.got, len(c.got)/2, 2)}, c.rows)
		if (err != nil) != (c.word != "") || err != nil && !strings.Contains(err.Error(), c.word) || e != c.err {
			t.Errorf("%v: %g, %v; expected %g, %q", c.got, e, err, c.err, c.word)
		}
	}
	z := rlx.Feed{"z": rlx.New([]complex64{3 + 4i}, 1)}
	if e, err := maxError(z, rlx.Feed{"z": rlx.New([]complex64{3 + 3i}, 1)}, nil); err != nil || e != 0.2 {
		t.Errorf("complex: %g, %v, expected 0.2", e, err)
	}
}

// A result that differs from the reference by more than its class of workloads may is not timed.
func TestCheckRefuses(t *testing.T) {
	i := slices.IndexFunc(workload.All(), func(w workload.Workload) bool { return w.Name == "overhead.ops1" })
	w := workload.All()[i]
	c, err := w.Case()
	if err != nil {
		t.Fatal(err)
	}
	x, err := rlx.Data[float32](c.Feed["x"])
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []float64{0, 5e-6, 2e-5, 0.5} { // of the result x + x is missing
		y := make([]float32, len(x))
		for i, v := range x {
			y[i] = float32(2 * float64(v) * (1 - part))
		}
		_, err := check(t.Context(), w, c, rlx.Feed{"y": rlx.New(y, len(y))}, benchOptions{backend: "ref", threads: 1})
		if wrong := part > w.Tolerance(); (err != nil) != wrong || wrong && !strings.Contains(err.Error(), "the result is wrong") {
			t.Errorf("%g of the result is missing: %v", part, err)
		}
	}
}
