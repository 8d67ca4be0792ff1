package rlx

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/rlx-ml/rlx-go/rlx/onnx"
)

// Open reads a model file: ONNX. Errors are *FileError, or *ModelError with all that the file needs and rlx lacks.
func Open(path string) (*Model, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, &FileError{File: path, Offset: -1, Err: err}
	}
	return parse(filepath.Base(path), data)
}

// OpenFS reads a model file from a file system, such as an embed.FS.
func OpenFS(fsys fs.FS, name string) (*Model, error) {
	if fsys == nil {
		return nil, &FileError{File: name, Offset: -1, Err: errors.New("the file system is nil")}
	}
	data, err := fs.ReadFile(fsys, name)
	if err != nil {
		return nil, &FileError{File: name, Offset: -1, Err: err}
	}
	return parse(name, data)
}

// ModelError lists everything in a model file that rlx does not read, with node names.
type ModelError struct {
	File  string
	Items []onnx.Unsupported
	err   error
}

func (e *ModelError) Error() string { return e.File + ": " + e.err.Error() }
func (e *ModelError) Unwrap() error { return e.err }

func parse(name string, data []byte) (*Model, error) {
	if bytes.HasPrefix(data, []byte("GGUF")) {
		return nil, &FileError{File: name, Offset: 0, Field: "magic", Err: errors.New("is a GGUF file, which this version does not read yet; expected ONNX")}
	}
	g, err := onnx.Import(data)
	if err == nil {
		return &Model{File: name, graph: g}, nil
	}
	var unsupported *onnx.UnsupportedError
	if errors.As(err, &unsupported) {
		return nil, &ModelError{File: name, Items: unsupported.Items, err: err}
	}
	out := &FileError{File: name, Offset: -1, Err: err}
	var decode *onnx.DecodeError
	if errors.As(err, &decode) {
		out.Offset, out.Field, out.Err = decode.Offset, decode.Field, decode.Err
	}
	var imp *onnx.ImportError
	if errors.As(err, &imp) && imp.Node != "" {
		out.Field = fmt.Sprintf("%s node %s", imp.Op, imp.Node)
	}
	return nil, out
}
