package ir

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Violation is a constraint that does not hold.
type Violation struct {
	Constraint    string // its number in the op's specification: "C4"; "" for what holds of every op or graph
	Got, Expected string
}

var constraintText = regexp.MustCompile(`(?:^|: )(C[0-9]+): `)

// ReadViolation takes apart the text that ops and kernels give: `Binary: C4: shapes [2] and [3], expected shapes that broadcast`. op is
// the kind that the text may begin with.
func ReadViolation(op, text string) Violation {
	var v Violation
	if at := constraintText.FindStringSubmatchIndex(text); at != nil {
		v.Constraint, text = text[at[2]:at[3]], text[at[1]:]
	} else if op != "" {
		text = strings.TrimPrefix(text, op+": ")
	}
	v.Got, v.Expected, _ = strings.Cut(text, ", expected ")
	v.Got = strings.TrimPrefix(strings.Replace(v.Got, ": got ", " ", 1), "got ")
	return v
}

// NodeError is an error about one node of a graph, or about what the graph as a whole declares: its Op is Input, Param or Output then.
type NodeError struct {
	Graph, Node, Op string
	Pos             string // file:line of the builder's caller, when known
	Operands        []Type // of the node; that of an absent one is zero
	Violation              // that of a node inside, where Err is the error of a sub-graph
	Err             error
}

// nodeError is the error about a node of kind op on operands in.
func nodeError(g *Graph, node, op string, in []Value, err error) *NodeError {
	e := &NodeError{Graph: g.Name, Node: node, Op: op, Err: err}
	var inner *NodeError
	if errors.As(err, &inner) {
		e.Violation = inner.Violation
	} else {
		e.Violation = ReadViolation(op, err.Error())
	}
	for _, v := range in {
		e.Operands = append(e.Operands, v.Type())
	}
	return e
}

// ErrorAt is the error err about n.
func ErrorAt(n *Node, err error) *NodeError { return nodeError(n.g, n.Name, n.Row.Name, n.In, err) }

func (e *NodeError) Error() string {
	s := e.Err.Error()
	if !strings.HasPrefix(s, e.Op) {
		s = e.Op + ": " + s
	}
	var about []string
	switch {
	case e.Node != "" && e.Pos != "":
		about = append(about, fmt.Sprintf("node %s at %s", e.Node, e.Pos))
	case e.Node != "":
		about = append(about, "node "+e.Node)
	case e.Pos != "":
		about = append(about, "at "+e.Pos)
	}
	if len(e.Operands) > 0 {
		about = append(about, "operands "+OperandText(e.Operands))
	}
	if len(about) == 0 {
		return s
	}
	return s + " (" + strings.Join(about, ", ") + ")"
}

func (e *NodeError) Unwrap() error { return e.Err }

// maxOperandText is how many operands an error lists.
const maxOperandText = 8

// OperandText lists the types of operands for an error: f32[n, 3], i64[4].
func OperandText(types []Type) string {
	var list []string
	for _, t := range types[:min(len(types), maxOperandText)] {
		if t.DType == Invalid {
			list = append(list, "none")
		} else {
			list = append(list, t.String())
		}
	}
	if more := len(types) - maxOperandText; more > 0 {
		list = append(list, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(list, ", ")
}

// TensorError says what is wrong with a tensor, or with what is asked of it.
type TensorError struct {
	What          string // the tensor, as far as it is known: "tensor f32[2 3]"
	Got, Expected string
}

func (e *TensorError) Error() string {
	return fmt.Sprintf("%s: got %s, expected %s", e.What, e.Got, e.Expected)
}

// fail records the first error of a builder, about a node of kind op on operands in, and returns the poisoned value. An error that a graph has
// recorded already is kept as it is, with its position.
func (g *Graph) fail(op, node string, err error, in ...Value) Value {
	if other, ok := err.(*NodeError); ok && other.Pos != "" && g.err == nil {
		g.err = other
	}
	if g.err == nil {
		e := nodeError(g, node, op, in, err)
		e.Pos = callerPos()
		g.err = e
	}
	return Value{g.poison, 0}
}

// Fail records err as the graph's error, about a node of kind op on operands in, for builders outside this package, and returns the poisoned value.
func (g *Graph) Fail(op string, err error, in ...Value) Value { return g.fail(op, "", err, in...) }
