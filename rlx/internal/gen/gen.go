// Package gen writes the files that derive from the op table: the headers of C and of shaders, the functors, the builders and the table as text.
//
//go:generate go run ./cmd/rlxgen
package gen

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	_ "github.com/rlx-ml/rlx-go/rlx/op" // the rows
)

// File is a generated file; Path is relative to the root of the repository, with slashes.
type File struct {
	Path string
	Data []byte
}

// Files generates everything. The hashes at the end are of the headers as they are now under root, the generated ones as they will be.
func Files(root string) ([]File, error) {
	if err := ir.Freeze(); err != nil {
		return nil, err
	}
	header, err := CHeader(ir.Rows())
	if err != nil {
		return nil, err
	}
	defines, err := OpsGLSL(ir.Rows())
	if err != nil {
		return nil, err
	}
	files := []File{
		{"cgo/native/rlx_ops_gen.h", header},
		{"csrc/cpu/core/scalar_gen.h", ScalarHeader()},
		{"csrc/cpu/quant/code_books_gen.h", CodeBooksHeader()},
		{"csrc/vulkan/kernels/ops_gen.glsl", defines},
		{"csrc/vulkan/kernels/scalar_gen.glsl", ScalarGLSL()},
		{"rlx/op/builders_gen.go", Builders()},
		{"docs/ops.md", OpsDoc(ir.Rows())},
	}
	hashes, err := headerHashes(root, files)
	return append(files, hashes...), err
}

// Write writes what differs from the disk and returns the paths of it.
func Write(root string, files []File) (changed []string, err error) {
	for _, f := range Stale(root, files) {
		path := filepath.Join(root, filepath.FromSlash(f.Path))
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return changed, err
		}
		if err := os.WriteFile(path, f.Data, 0o666); err != nil {
			return changed, err
		}
		changed = append(changed, f.Path)
	}
	return changed, nil
}

// Stale returns the files that are missing on disk or have other bytes there.
func Stale(root string, files []File) []File {
	var stale []File
	for _, f := range files {
		if have, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(f.Path))); err != nil || !bytes.Equal(have, f.Data) {
			stale = append(stale, f)
		}
	}
	return stale
}

// Root is the nearest folder at or above dir that holds go.mod.
func Root(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for d := dir; ; d = filepath.Dir(d) {
		if _, err := os.Stat(filepath.Join(d, "go.mod")); err == nil {
			return d, nil
		}
		if d == filepath.Dir(d) {
			return "", fmt.Errorf("no go.mod at or above %s", dir)
		}
	}
}
