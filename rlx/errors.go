package rlx

import (
	"errors"
	"fmt"

	"github.com/rlx-ml/rlx-go/rlx/backend"
	"github.com/rlx-ml/rlx-go/rlx/internal/exec"
	"github.com/rlx-ml/rlx-go/rlx/internal/pass"
	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// ErrClosed is returned by a Program after Close.
var ErrClosed = errors.New("rlx: program is closed")

// ErrStateBusy is returned by a Run on a state that another Run holds.
var ErrStateBusy = errors.New("rlx: state is in use by another run")

// ErrNotCompiledIn is wrapped by the error of a backend that this build lacks.
var ErrNotCompiledIn = backend.ErrNotCompiledIn

// UnsupportedError lists every node of a graph that a backend can neither run, compose nor stage.
type UnsupportedError = pass.UnsupportedError

// ShapeError is a violated constraint of a node: its text reads `Kind: Cn: ...` and ends with node name and source line.
type ShapeError = ir.NodeError

// FeedError says what is wrong with a tensor given to Run, or with the names of a Feed.
type FeedError struct {
	Name          string // of the input or output
	What          string // "missing", "unknown name", "dtype", "rank", "dim 1", "symbol batch", "tensor"
	Expected, Got string
}

func (e *FeedError) Error() string {
	return fmt.Sprintf("Input: C2: %s: %s: got %s, expected %s", e.Name, e.What, e.Got, e.Expected)
}

// FileError says where a model file is bad.
type FileError struct {
	File   string
	Offset int64 // byte offset, -1 where the error has none
	Field  string
	Err    error
}

func (e *FileError) Error() string {
	s := e.File
	if e.Offset >= 0 {
		s += fmt.Sprintf(": at byte %d", e.Offset)
	}
	if e.Field != "" {
		s += ": " + e.Field
	}
	return s + ": " + e.Err.Error()
}

func (e *FileError) Unwrap() error { return e.Err }

// ExecError is a failed load or run on a backend.
type ExecError struct {
	Backend  string
	Node, Op string // of the node whose command failed, "" if none is to blame
	Part     string // where the node is composed of others: the op that failed, whose constraint Err cites
	Err      error
}

func (e *ExecError) Error() string {
	if e.Node == "" {
		return "rlx: " + e.Err.Error()
	}
	return fmt.Sprintf("rlx: node %s: %v", e.Node, e.Err)
}

func (e *ExecError) Unwrap() error { return e.Err }

// execError names the node behind an error of package exec.
func execError(name string, err error) error {
	var ee *exec.Error
	if !errors.As(err, &ee) {
		return err
	}
	out := &ExecError{Backend: name, Err: ee.Err}
	if n := ee.Node; n != nil {
		out.Node, out.Op = n.Name, n.Row.Name
		if n.From.Op != "" { // a part of a composed node: the user knows the whole
			out.Node, out.Op, out.Part = n.From.Name, n.From.Op, n.Row.Name
			out.Err = fmt.Errorf("%s: %w", n.From.Op, ee.Err)
		}
	}
	return out
}
