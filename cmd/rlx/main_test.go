package main

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/conform"
)

// rlxRun runs a command line and returns its exit code and outputs.
func rlxRun(t *testing.T, args ...string) (int, string, string) {
	t.Helper()
	var out, errOut bytes.Buffer
	code := execute(t.Context(), args, &out, &errOut)
	return code, out.String(), errOut.String()
}

func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
		word string // in either output
	}{
		{[]string{"ops"}, exitDone, "LayerNorm"},
		{[]string{"backends"}, exitDone, "ref"},
		{[]string{"frobnicate"}, exitUsage, "frobnicate"},
		{[]string{"frobnicate"}, exitUsage, "rlx --help"},
		{[]string{"run"}, exitUsage, "usage"},
		{[]string{"run", "--nonsense", "m.onnx"}, exitUsage, "nonsense"},
		{[]string{"run", "no-such-file.onnx"}, exitFailed, "no-such-file.onnx"},
		{[]string{"run", "demo/digits.onnx", "--in", "pixels"}, exitUsage, "NAME=FILE.npy"},
		{[]string{"run", "demo/digits.onnx"}, exitFailed, "pixels"},
		{[]string{"run", "demo/digits.onnx", "--backend", "cuda"}, exitFailed, "not compiled in"},
		{[]string{"conform", "--backend", "ref", "no-such-file.jsonl"}, exitFailed, "no-such-file"},
		{[]string{"bench", "no.such.workload"}, exitUsage, "no.such.workload"},
		{[]string{"bench", "--backend", "cuda"}, exitFailed, "not compiled in"},
		{[]string{"bench", "-t", "0"}, exitUsage, "at least 1 thread"},
		{[]string{"bench", "-s", "NaN"}, exitUsage, "more than 0 seconds"},
		{[]string{"onnx-test", "--backend", "ref", "no-such-folder"}, exitFailed, "no such file"},
		{[]string{"export", "demo/digits.onnx", "--out", "no-such-folder/x.onnx"}, exitFailed, "open no-such-folder/x.onnx: "},
		{[]string{"inspect", "demo/digits.onnx", "--json", "--text"}, exitUsage, "expected one of them"},
		{[]string{"inspect", "demo/digits_test.bin"}, exitFailed, "ONNX"},
	} {
		code, out, errOut := rlxRun(t, c.args...)
		if code != c.code || !strings.Contains(out+errOut, c.word) {
			t.Errorf("rlx %v: exit code %d, expected %d, with %q in:\n%s%s", c.args, code, c.code, c.word, out, errOut)
		}
	}
}

func TestDemo(t *testing.T) {
	code, out, errOut := rlxRun(t, "demo")
	if code != exitDone {
		t.Fatal(errOut)
	}
	var golden struct{ Right, Count int }
	b, err := os.ReadFile("demo/digits_golden.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &golden); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, b := range rlx.Backends() {
		if b.Err == nil && len(b.Devices) > 0 {
			n++
		}
	}
	if golden.Right != 432 || strings.Count(out, "432 of 450") != n || strings.Count(out, "450 of 450") != n-1 {
		t.Errorf("NumPy classifies %d of %d; the demo printed\n%s", golden.Right, golden.Count, out)
	}
}

// A run through files gives the probabilities of the NumPy forward pass.
func TestRunFiles(t *testing.T) {
	d, err := loadDigits()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	in := filepath.Join(dir, "pixels.npy")
	if err := writeNPY(in, rlx.New(d.pixels[:3*digitSize], 3, digitSize)); err != nil {
		t.Fatal(err)
	}
	for _, backend := range append(conform.Backends(), "") {
		code, _, errOut := rlxRun(t, "run", "demo/digits.onnx", "--in", "pixels="+in, "--out", dir, "--repeat", "2", "--backend", backend)
		if code != exitDone {
			t.Fatal(errOut)
		}
		got, err := readNPY(filepath.Join(dir, "probabilities.npy"))
		if err != nil {
			t.Fatal(err)
		}
		var golden struct{ Probabilities [][]float64 }
		b, err := os.ReadFile("demo/digits_golden.json")
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(b, &golden); err != nil {
			t.Fatal(err)
		}
		for r, row := range golden.Probabilities {
			for c, want := range row {
				if v := got.Float(10*r + c); math.Abs(v-want) > 1e-5 {
					t.Errorf("digit %d class %d: got %g, NumPy has %g", r, c, v, want)
				}
			}
		}
	}
}

func TestNPYRoundTrip(t *testing.T) {
	for _, x := range []*rlx.Tensor{
		rlx.New([]float32{1, -2.5, float32(math.Inf(1)), 0, 3, 4}, 2, 3), rlx.New([]int64{1 << 40, -1}, 1, 2), rlx.New([]bool{true, false, true}, 3),
		rlx.New([]uint8{255}, 1, 1, 1), rlx.New([]float64{math.Pi}), rlx.New([]float32{}, 0, 4),
	} {
		path := filepath.Join(t.TempDir(), "x.npy")
		if err := writeNPY(path, x); err != nil {
			t.Fatal(err)
		}
		y, err := readNPY(path)
		if err != nil {
			t.Fatal(err)
		}
		if x.DType() != y.DType() || x.String() != y.String() {
			t.Errorf("wrote %v, read %v", x, y)
		}
	}
}

// Headers that lie about the file are errors.
func TestBadNPY(t *testing.T) {
	head := func(dict string, data int) []byte {
		b := append([]byte("\x93NUMPY\x01\x00"), byte(len(dict)), byte(len(dict)>>8))
		return append(append(b, dict...), make([]byte, data)...)
	}
	for name, b := range map[string][]byte{
		"empty": nil, "magic": []byte("not numpy at all"), "cut header": head("{'descr': '<f4'", 0)[:12],
		"huge shape":   head("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999, 99999999999), }\n", 16),
		"cut data":     head("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 64), }\n", 100),
		"too much":     head("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n", 100),
		"fortran":      head("{'descr': '<f4', 'fortran_order': True, 'shape': (1,), }\n", 4),
		"big-endian":   head("{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }\n", 4),
		"objects":      head("{'descr': '|O8', 'fortran_order': False, 'shape': (1,), }\n", 8),
		"empty header": head("", 0), "long header": append([]byte("\x93NUMPY\x02\x00\xff\xff\xff\xff"), make([]byte, 20)...),
	} {
		if x, err := parseNPY(b); err == nil {
			t.Errorf("%s: read as %v, expected an error", name, x)
		}
	}
}
