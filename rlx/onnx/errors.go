package onnx

import (
	"fmt"
	"strings"
)

// Unsupported is one thing in a model that the importer does not read: an operator, an attribute, a value of an attribute, or a kind
// of data.
type Unsupported struct {
	Op     string // operator type; empty for things that are no node, such as an initializer
	Domain string // operator domain, "" for the default one
	Node   string // name of the node, or of the input, initializer or function
	Attr   string // attribute name, "" when the operator itself is meant
	Reason string
	Needs  []string // inputs of the model that would have to be known: see [BindInput] and [ImportFor]
	Dims   []string // symbols of dims of the inputs that would have to be known
}

// String is one line: Loop (domain com.acme), attribute body: reason.
func (u Unsupported) String() string {
	s := u.Op
	if u.Domain != "" {
		s = u.Domain + "." + s
	}
	if u.Attr != "" {
		s = strings.TrimPrefix(s+" attribute "+u.Attr, " ")
	}
	if s == "" {
		return u.Reason
	}
	return s + ": " + u.Reason
}

// UnsupportedError lists everything in a model that cannot be imported, in file order.
type UnsupportedError struct{ Items []Unsupported }

// Error has one line for each distinct complaint, with the names of all nodes that it is about.
func (e *UnsupportedError) Error() string {
	var order []string
	nodes := map[string][]string{}
	for _, u := range e.Items {
		line := u.String()
		if _, ok := nodes[line]; !ok {
			order = append(order, line)
		}
		nodes[line] = append(nodes[line], fmt.Sprintf("%q", u.Node))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "onnx: %d unsupported", len(e.Items))
	for _, line := range order {
		fmt.Fprintf(&b, "\n\t%s (%s)", line, strings.Join(nodes[line], ", "))
	}
	return b.String()
}

// ImportError is a defect of a model: one that no importer could read.
type ImportError struct {
	Node string // name of the node, input, output or initializer
	Op   string // operator type, "" when it is no node
	Err  error
}

// Error names operator, node and defect.
func (e *ImportError) Error() string {
	if e.Op == "" {
		return fmt.Sprintf("onnx: %q: %v", e.Node, e.Err)
	}
	return fmt.Sprintf("onnx: %s %q: %v", e.Op, e.Node, e.Err)
}

// Unwrap returns the defect.
func (e *ImportError) Unwrap() error { return e.Err }
