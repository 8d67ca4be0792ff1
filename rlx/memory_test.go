package rlx_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/op"
	"google.golang.org/protobuf/encoding/protowire"
)

// Model files are written by hand with these.

func protoField(num protowire.Number, parts ...[]byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, num, protowire.BytesType), slices.Concat(parts...))
}

func protoText(num protowire.Number, s string) []byte { return protoField(num, []byte(s)) }

func protoInt(num protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, num, protowire.VarintType), v)
}

// protoWeight is f32[rows, columns] at offset of weights.bin.
func protoWeight(name string, rows, columns, offset int64) []byte {
	pair := func(k, v string) []byte { return protoField(13, protoText(1, k), protoText(2, v)) }
	return protoField(5, protoInt(1, uint64(rows)), protoInt(1, uint64(columns)), protoInt(2, 1), protoText(8, name), protoInt(14, 1),
		pair("location", "weights.bin"), pair("offset", strconv.FormatInt(offset, 10)), pair("length", strconv.FormatInt(4*rows*columns, 10)))
}

func protoNode(op, a, b, y string) []byte {
	return protoField(1, protoText(4, op), protoText(1, a), protoText(1, b), protoText(2, y), protoText(3, y))
}

// protoValue declares an input (field 11) or output (12) of a graph.
func protoValue(field protowire.Number, name string, elem uint64, dims ...uint64) []byte {
	var shape []byte
	for _, d := range dims {
		shape = append(shape, protoField(1, protoInt(1, d))...)
	}
	return protoField(field, protoText(1, name), protoField(2, protoField(1, protoInt(1, elem), protoField(2, shape))))
}

func protoModel(graph ...[]byte) []byte {
	return slices.Concat(protoInt(1, 8), protoField(8, protoInt(2, 17)), protoField(7, graph...))
}

// limited compiles a graph under a limit on every backend of this build, and wants an error about what, or none if that is empty.
func limited(t *testing.T, g *rlx.Graph, limit int64, what string) {
	t.Helper()
	for _, b := range backends() {
		p, err := rlx.Compile(t.Context(), g, rlx.On(b), rlx.MemoryLimit(limit))
		if err == nil {
			if cerr := p.Close(); cerr != nil {
				t.Error(cerr)
			}
		}
		var over *rlx.MemoryError
		switch {
		case what == "":
			if err != nil {
				t.Errorf("%s, limit %d: %v", b, limit, err)
			}
		case !errors.As(err, &over) || over.What != what || over.Limit != limit || over.Need <= limit:
			t.Errorf("%s, limit %d: got %v, expected an error about %s", b, limit, err, what)
		}
	}
}

// TestMemoryLimit wants each kind of memory refused where it exceeds the limit, and let be where it does not.
func TestMemoryLimit(t *testing.T) {
	const kib = 1 << 10
	weights := rlx.NewGraph("weights")
	x := weights.Input("x", rlx.F32, rlx.Shape(1, 256))
	weights.Output("y", op.MatMul(x, weights.Param("w", rlx.New(make([]float32, 256*256), 256, 256)))) // 256 KiB
	limited(t, weights, 200*kib, "constants")
	limited(t, weights, 400*kib, "")

	arena := rlx.NewGraph("arena")
	x = arena.Input("x", rlx.F32, rlx.Shape(1))
	wide := op.Cumsum(op.Add(op.Expand(x, rlx.Shape(64*kib)...), 1), 0) // 256 KiB, twice
	arena.Output("y", op.Reduce(wide, "sum", []int{0}, false))
	limited(t, arena, 200*kib, "memory of a run")
	limited(t, arena, 800*kib, "")

	outputs := rlx.NewGraph("outputs")
	outputs.Output("y", op.Expand(outputs.Input("x", rlx.F32, rlx.Shape(1)), rlx.Shape(64*kib)...))
	limited(t, outputs, 200*kib, "outputs")
	limited(t, outputs, 300*kib, "")

	folded := rlx.NewGraph("folded")
	one := op.Expand(folded.Constant(rlx.New([]float32{1}, 1)), rlx.Shape(64*kib)...)
	folded.Output("y", op.Reduce(op.Mul(folded.Input("x", rlx.F32, rlx.Shape(64*kib)), op.Neg(one)), "sum", []int{0}, false))
	limited(t, folded, 200*kib, "folded constants")
	limited(t, folded, 1200*kib, "")
}

// TestMemoryLimitOfRuns counts the specialisations of one program together, and gives back what is closed.
func TestMemoryLimitOfRuns(t *testing.T) {
	g := rlx.NewGraph("runs")
	x := g.Input("x", rlx.F32, rlx.Shape("n"))
	g.Output("y", op.Reduce(op.Add(op.Cumsum(op.Add(x, 1), 0), x), "sum", []int{0}, false))
	for _, b := range backends() {
		p, err := rlx.Compile(t.Context(), g, rlx.On(b), rlx.MemoryLimit(1<<20), rlx.Specialisations(1))
		if err != nil {
			t.Fatal(err)
		}
		run := func(n int) error {
			_, err := p.Run(t.Context(), rlx.Feed{"x": rlx.New(make([]float32, n), n)})
			return err
		}
		for i := range 20 { // each drops the one before
			if err := run(20000 + i); err != nil {
				t.Errorf("%s: run %d: %v", b, i, err)
			}
		}
		var over *rlx.MemoryError
		if err := run(1 << 20); !errors.As(err, &over) {
			t.Errorf("%s: got %v, expected a *MemoryError", b, err)
		}
		if err := run(100); err != nil {
			t.Errorf("%s: after the error: %v", b, err)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestOpenMemoryLimit reads external data only where they fit.
func TestOpenMemoryLimit(t *testing.T) {
	dir := t.TempDir()
	model := protoModel(protoValue(11, "x", 1, 1, 256), protoValue(12, "y", 1, 1, 256), protoWeight("w", 256, 256, 0), protoNode("MatMul", "x", "w", "y"))
	path := filepath.Join(dir, "model.onnx")
	if err := errors.Join(os.WriteFile(path, model, 0o600), os.WriteFile(filepath.Join(dir, "weights.bin"), make([]byte, 256<<10), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := rlx.Open(path, rlx.MemoryLimit(256<<10)); err != nil {
		t.Error(err)
	}
	_, err := rlx.Open(path, rlx.MemoryLimit(256<<10-1))
	var over *rlx.MemoryError
	var file *rlx.FileError
	if !errors.As(err, &over) || !errors.As(err, &file) || over.Need != 256<<10 || over.Limit != 256<<10-1 || !strings.Contains(err.Error(), `"w"`) {
		t.Errorf("got %v, expected a *MemoryError about w", err)
	}
}
