package rlx

import (
	"errors"
	"fmt"
	"strings"

	"github.com/rlx-ml/rlx-go/rlx/backend"
	"github.com/rlx-ml/rlx-go/rlx/internal/exec"
	"github.com/rlx-ml/rlx-go/rlx/internal/pass"
	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// ErrClosed is returned by a Program after Close.
var ErrClosed = errors.New("rlx: program is closed")

// ErrStateBusy is returned by a Run on a state that another Run holds.
var ErrStateBusy = errors.New("rlx: state is in use by another run")

// The errors of calls without a context or a graph, which would panic far from their caller.
var (
	errNilContext = &OptionError{"ctx", "nil", "a context"}
	errNilGraph   = &OptionError{"graph", "nil", "a graph of NewGraph, Open or ir.ParseGraph"}
)

// ErrNotCompiledIn is wrapped by the error of a backend that this build lacks.
var ErrNotCompiledIn = backend.ErrNotCompiledIn

// UnsupportedError lists every node of a graph that a backend can neither run, compose nor stage.
type UnsupportedError = pass.UnsupportedError

// ShapeError is a violated constraint of a node, or of what a graph declares: its text reads `Kind: Cn: found, expected what` and ends with
// node name, source line and the types of the operands, all of which are fields too.
type ShapeError = ir.NodeError

// TensorError is what Tensor.Err and Data return: data that do not fit a shape, another dtype. A *FeedError wraps that of a tensor in a feed.
type TensorError = ir.TensorError

// Violation is a constraint, by its number in the op's specification, and what did not hold. ShapeError and ExecError hold one.
type Violation = ir.Violation

// FeedError says what is wrong with a tensor given to Run, or with the names of a Feed.
type FeedError struct {
	Name          string // of the input or output
	What          string // "missing", "unknown name", "dtype", "rank", "dim 1", "symbol batch", "tensor"
	Expected, Got string
	Err           error // the *TensorError of a tensor that could not be made, nil for all else
}

func (e *FeedError) Error() string {
	return fmt.Sprintf("Input: C2: %s: %s: got %s, expected %s", e.Name, e.What, e.Got, e.Expected)
}

func (e *FeedError) Unwrap() error { return e.Err }

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
	Backend   string
	Node, Op  string    // of the node whose command failed, "" if none is to blame
	Sources   []string  // other nodes of the graph that the command stands for
	Part      string    // where the node is composed of others: the op that failed, whose constraint Err cites
	Operands  []ir.Type // of the node, or of Part where there is one
	Violation           // that Err cites: zero where something else failed, such as memory
	Err       error
}

func (e *ExecError) Error() string {
	if e.Node == "" {
		return "rlx: " + e.Err.Error()
	}
	s := fmt.Sprintf("rlx: node %s%s: %v", e.Node, sourcesText(e.Sources), e.Err)
	if len(e.Operands) > 0 {
		s += fmt.Sprintf(" (operands %s)", ir.OperandText(e.Operands))
	}
	return s
}

// sourcesText names a few of the nodes that a fused one stands for.
func sourcesText(names []string) string {
	const shown = 6
	switch {
	case len(names) == 0:
		return ""
	case len(names) > shown:
		return fmt.Sprintf(" (from %s and %d more)", strings.Join(names[:shown], ", "), len(names)-shown)
	}
	return fmt.Sprintf(" (from %s)", strings.Join(names, ", "))
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
		out.Node, out.Op, out.Sources = n.Source().Name, n.Row.Name, fusedInto(n)
		for _, v := range n.In {
			out.Operands = append(out.Operands, v.Type())
		}
		var be *backend.Error
		if errors.As(ee.Err, &be) && be.Code == backend.BadValue {
			out.Violation = ir.ReadViolation(n.Row.Name, be.Text)
		}
		if n.From.Op != "" { // a part of a composed node: the user knows the whole
			out.Node, out.Op, out.Part = n.From.Name, n.From.Op, n.Row.Name
			out.Err = fmt.Errorf("%s: %w", n.From.Op, ee.Err)
		}
	}
	return out
}
