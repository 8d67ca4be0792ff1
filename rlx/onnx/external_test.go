//go:build unix

package onnx

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// outside is a model whose weight w, f32[2], lies in another file.
func outside(fields ...string) []byte {
	w := [][]byte{varints(1, 2), varint(2, uint64(DataFloat)), text(8, "w"), varint(14, 1)}
	for i := 0; i < len(fields); i += 2 {
		w = append(w, body(13, text(1, fields[i]), text(2, fields[i+1])))
	}
	return inGraph(inputOf("x", DataFloat, 2), outputOf("y"), body(5, w...), nodeOf("Add", "x w", "y"))
}

// weights are 8 bytes of something else, then 1 and 2, then 4 bytes more.
func weights() []byte {
	b := make([]byte, 20)
	binary.LittleEndian.PutUint32(b[8:], math.Float32bits(1))
	binary.LittleEndian.PutUint32(b[12:], math.Float32bits(2))
	return b
}

// layout is a folder with models and data, and what must not be read beside it.
func layout(t *testing.T) string {
	root := t.TempDir()
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	in := func(p string) string { return filepath.Join(root, p) }
	for _, dir := range []string{"model/sub", "blobs", "links"} {
		do(os.MkdirAll(in(dir), 0o755))
	}
	for _, file := range []string{"model/w.bin", "model/sub/w.bin", "model/twice.bin", "secret.bin", "blobs/abc"} {
		do(os.WriteFile(in(file), weights(), 0o600))
	}
	do(os.WriteFile(in("blobs/model"), nil, 0o600))
	do(os.Link(in("model/twice.bin"), in("model/again.bin")))
	do(os.Symlink("sub/w.bin", in("model/link.bin")))
	do(os.Symlink(in("model/sub/w.bin"), in("model/absolute.bin")))
	do(os.Symlink("../secret.bin", in("model/out.bin")))
	do(os.Symlink("..", in("model/up")))
	do(os.Symlink("loop.bin", in("model/loop.bin")))
	do(syscall.Mkfifo(in("model/pipe.bin"), 0o600))
	do(os.Symlink("../blobs/model", in("links/model.onnx")))
	do(os.Symlink("../blobs/abc", in("links/w.bin")))
	return root
}

// TestExternalData reads a weight from where it may lie, and from nowhere else, without waiting for a pipe.
func TestExternalData(t *testing.T) {
	root := layout(t)
	for _, c := range []struct {
		model  string
		fields []string
		refuse string // a word of the error; empty: it loads
	}{
		{"model/m.onnx", []string{"location", "w.bin", "offset", "8", "length", "8"}, ""},
		{"model/m.onnx", []string{"location", "sub/w.bin", "offset", "8"}, ""},
		{"model/m.onnx", []string{"location", "link.bin", "offset", "8", "checksum", "?"}, ""},
		{"model/m.onnx", []string{"location", "absolute.bin", "offset", "8"}, ""},
		{"links/model.onnx", []string{"location", "w.bin", "offset", "8"}, ""},

		{"model/m.onnx", nil, "location"},
		{"model/m.onnx", []string{"location", ""}, "location"},
		{"model/m.onnx", []string{"location", root + "/model/w.bin"}, "absolute"},
		{"model/m.onnx", []string{"location", `C:\w.bin`}, "location"},
		{"model/m.onnx", []string{"location", "C:/w.bin"}, "absolute"},
		{"model/m.onnx", []string{"location", "../secret.bin"}, ".."},
		{"model/m.onnx", []string{"location", "sub/../w.bin", "offset", "8"}, ".."},
		{"model/m.onnx", []string{"location", "./w.bin", "offset", "8"}, "."},
		{"model/m.onnx", []string{"location", "w.bin\x00"}, "NUL"},
		{"model/m.onnx", []string{"location", "."}, "location"},
		{"model/m.onnx", []string{"location", "sub"}, "regular"},
		{"model/m.onnx", []string{"location", "no.bin"}, "no such file"},
		{"model/m.onnx", []string{"location", "out.bin", "offset", "8"}, "out of the model's folder"},
		{"model/m.onnx", []string{"location", "up/secret.bin", "offset", "8"}, "out of the model's folder"},
		{"model/m.onnx", []string{"location", "loop.bin"}, "location"},
		{"model/m.onnx", []string{"location", "pipe.bin"}, "regular"},
		{"model/m.onnx", []string{"location", "twice.bin", "offset", "8"}, "hard links"},
		{"model/m.onnx", []string{"location", "w.bin", "offset", "13"}, "20 bytes"},
		{"model/m.onnx", []string{"location", "w.bin", "offset", "9223372036854775807"}, "20 bytes"},
		{"model/m.onnx", []string{"location", "w.bin", "offset", "18446744073709551608"}, "offset"},
		{"model/m.onnx", []string{"location", "w.bin", "offset", "-8"}, "offset"},
		{"model/m.onnx", []string{"location", "w.bin", "offset", "8", "length", "4"}, "length"},
		{"model/m.onnx", []string{"location", "w.bin", "offset", "8", "length", "12"}, "length"},
		{"model/m.onnx", []string{"location", "w.bin", "offset", "0x8"}, "offset"},
	} {
		start := time.Now()
		g, err := Import(outside(c.fields...), WithFile(filepath.Join(root, c.model)))
		if took := time.Since(start); took > time.Second {
			t.Errorf("%q: took %v", c.fields, took)
		}
		if c.refuse != "" {
			if err == nil || !strings.Contains(err.Error(), c.refuse) || !strings.Contains(err.Error(), `"w"`) {
				t.Errorf("%q: got %v, expected an error about w with %q", c.fields, err, c.refuse)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", c.fields, err)
			continue
		}
		if y := floatsIn(t, run(t, g, map[string]*ir.Tensor{"x": ir.New([]float32{10, 10}, 2)}), "y"); !slices.Equal(y, []float32{11, 12}) {
			t.Errorf("%q: y is %v, expected [11 12]", c.fields, y)
		}
	}
	if _, err := Import(outside("location", "w.bin", "offset", "8")); err == nil || !strings.Contains(err.Error(), "folder") {
		t.Errorf("without a folder: %v", err)
	}
}

// TestExternalFS reads external data of a model in a file system, and never leaves it.
func TestExternalFS(t *testing.T) {
	fsys := fstest.MapFS{"w.bin": {Data: weights()}, "dir/w.bin": {Data: weights()}}
	for _, c := range []struct{ model, location, refuse string }{
		{"dir/m.onnx", "w.bin", ""}, {"m.onnx", "dir/w.bin", ""}, {"dir/m.onnx", "../w.bin", ".."}, {"m.onnx", "dir", "regular"}, {"dir/m.onnx", "x.bin", "not exist"},
	} {
		fsys[c.model] = &fstest.MapFile{Data: outside("location", c.location, "offset", "8")}
		g, err := ImportFS(fsys, c.model)
		if c.refuse != "" {
			if err == nil || !strings.Contains(err.Error(), c.refuse) {
				t.Errorf("%s: got %v, expected an error with %q", c.location, err, c.refuse)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if y := floatsIn(t, run(t, g, map[string]*ir.Tensor{"x": ir.New([]float32{10, 10}, 2)}), "y"); !slices.Equal(y, []float32{11, 12}) {
			t.Errorf("%s: y is %v, expected [11 12]", c.location, y)
		}
	}
}
