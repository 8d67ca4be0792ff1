package rlx

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/rlx-ml/rlx-go/rlx/internal/ref"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/onnx"
)

// OpenOption changes how a model file is read.
type OpenOption interface{ applyOpen(*opening) }

type openOption func(*opening)

func (f openOption) applyOpen(o *opening) { f(o) }

// opening is how a file is read.
type opening struct {
	feed  Feed // that the model is read for, nil for any
	onnx  []onnx.Option
	bound []string
	err   error // of the first option without a legal value
}

// Bind makes an input of the model a constant. Inputs that decide the rank or the axes of something must be bound.
func Bind(name string, value *Tensor) OpenOption {
	return openOption(func(o *opening) {
		if value == nil && o.err == nil {
			o.err = &OptionError{"Bind", name + ": nil", "a tensor"}
		}
		o.onnx, o.bound = append(o.onnx, onnx.BindInput(name, value)), append(o.bound, name)
	})
}

// BindDim fixes a named dim of the model's inputs.
func BindDim(name string, size int64) OpenOption {
	return openOption(func(o *opening) { o.onnx = append(o.onnx, onnx.BindDim(name, size)) })
}

// For reads a model for runs with inputs like those of feed. Inputs that the model cannot be read without, such as axes or the condition
// of an If, are bound to their values in feed; where that is not enough, the shapes of all inputs are fixed to those of feed.
// Model.Bound names the inputs that are no longer inputs.
func For(feed Feed) OpenOption { return openOption(func(o *opening) { o.feed = feed }) }

// Open reads a model file: ONNX, with its external data, which must lie in the file's folder. Errors are *FileError, or *ModelError with
// all that the file needs and rlx lacks.
func Open(path string, opts ...OpenOption) (*Model, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, &FileError{File: path, Offset: -1, Err: err}
	}
	return parse(filepath.Base(path), data, opts, onnx.WithFile(path))
}

// OpenFS reads a model file from a file system, such as an embed.FS.
func OpenFS(fsys fs.FS, name string, opts ...OpenOption) (*Model, error) {
	if fsys == nil {
		return nil, &FileError{File: name, Offset: -1, Err: errors.New("the file system is nil, expected one")}
	}
	data, err := fs.ReadFile(fsys, name)
	if err != nil {
		return nil, &FileError{File: name, Offset: -1, Err: err}
	}
	return parse(name, data, opts, onnx.WithFS(fsys, name))
}

// OpenReader reads a model from size bytes of r; name stands for it in errors. It cannot have external data.
func OpenReader(name string, r io.ReaderAt, size int64, opts ...OpenOption) (*Model, error) {
	if r == nil {
		return nil, &FileError{File: name, Offset: -1, Err: errors.New("the reader is nil, expected one")}
	}
	if size < 0 {
		return nil, &FileError{File: name, Offset: -1, Err: fmt.Errorf("a reader of %d bytes, expected a size >= 0", size)}
	}
	data, err := io.ReadAll(io.NewSectionReader(r, 0, size))
	if err == nil && int64(len(data)) != size {
		err = fmt.Errorf("got %d bytes, expected %d: %w", len(data), size, io.ErrUnexpectedEOF)
	}
	if err != nil {
		return nil, &FileError{File: name, Offset: -1, Err: err}
	}
	return parse(name, data, opts)
}

// Bound names the inputs of the file that Bind and For made constants, sorted. A feed must not have them.
func (m *Model) Bound() []string { return m.bound }

// ExportONNX writes the model's graph as an ONNX model; see [ExportONNX].
func (m *Model) ExportONNX(w io.Writer, opts ...onnx.ExportOption) error {
	if err := ExportONNX(m.graph, w, opts...); err != nil {
		return fmt.Errorf("%s: %w", m.File, err)
	}
	return nil
}

// ExportONNX writes a graph as an ONNX model, which ONNX Runtime and others run. Weights of 2 GB and more go into a file of their own:
// see [onnx.ExternalData]. The error lists every node that has no ONNX form, *onnx.UnsupportedError, or is the *ShapeError of a wrong graph.
func ExportONNX(g *Graph, w io.Writer, opts ...onnx.ExportOption) error {
	if g == nil {
		return errNilGraph
	}
	if w == nil {
		return &OptionError{"writer", "nil", "a writer"}
	}
	if err := g.Verify(); err != nil {
		return err
	}
	return onnx.Export(g, w, slices.DeleteFunc(slices.Clone(opts), func(o onnx.ExportOption) bool { return o == nil })...)
}

// ModelError lists everything in a model file that rlx does not read, with node names.
type ModelError struct {
	File  string
	Items []onnx.Unsupported
	err   error
}

func (e *ModelError) Error() string { return e.File + ": " + e.err.Error() }
func (e *ModelError) Unwrap() error { return e.err }

func parse(name string, data []byte, opts []OpenOption, more ...onnx.Option) (*Model, error) {
	if bytes.HasPrefix(data, []byte("GGUF")) {
		return nil, &FileError{File: name, Offset: 0, Field: "magic", Err: errors.New("is a GGUF file, which this version does not read yet; expected ONNX")}
	}
	o := opening{onnx: append(more, onnx.FoldWith(evaluate))}
	for _, opt := range opts {
		if opt != nil {
			opt.applyOpen(&o)
		}
	}
	if o.err != nil {
		return nil, fmt.Errorf("%s: %w", name, o.err)
	}
	var feed map[string]*ir.Tensor
	if o.feed != nil {
		feed = maps.Clone(map[string]*ir.Tensor(o.feed))
	}
	g, bound, err := onnx.ImportFor(data, feed, o.onnx...)
	if err == nil {
		bound = append(bound, o.bound...)
		slices.Sort(bound)
		return &Model{File: name, graph: g, bound: slices.Compact(bound)}, nil
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

// evaluate computes constants while a model is read, with the reference kernels: what they decide, axes and sizes, is the same on every
// backend.
func evaluate(g *ir.Graph) ([]*ir.Tensor, error) {
	values := map[*ir.Node][]*ir.Tensor{}
	for _, n := range g.Nodes {
		if t, ok := n.Out(0).Const(); ok {
			values[n] = []*ir.Tensor{t}
			continue
		}
		if name, ok := n.ParamName(); ok {
			values[n] = []*ir.Tensor{g.ParamData(name)}
			continue
		}
		in := make([]*ir.Tensor, len(n.In))
		for i, v := range n.In {
			if !v.IsZero() {
				in[i] = values[v.Node()][v.Index()]
			}
		}
		var err error
		if values[n], err = ref.Apply(n.Row, n.Attrs, in, n.Types); err != nil {
			return nil, err
		}
	}
	out := make([]*ir.Tensor, len(g.Outputs))
	for i, o := range g.Outputs {
		out[i] = values[o.Value.Node()][o.Value.Index()]
	}
	return out, nil
}
