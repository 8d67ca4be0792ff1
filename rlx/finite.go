package rlx

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/rlx-ml/rlx-go/rlx/internal/exec"
	"github.com/rlx-ml/rlx-go/rlx/internal/plan"
	"github.com/rlx-ml/rlx-go/rlx/internal/prog"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// NonFiniteError is what a run with CheckFinite ends with: the first node whose results hold a NaN or an infinity, and what went in.
type NonFiniteError struct {
	Backend  string
	Node, Op string   // of the user's graph
	Sources  []string // other nodes of the graph that the command stands for
	Part     string   // where the node is composed of others: the first of these that gave such a value; the operands are its
	Output   int      // index of the result
	Index    int64    // of the element, in row-major order
	Coords   []int64  // the same, by axis
	Value    float64  // NaN, +Inf or -Inf
	Type     ir.Type  // of the result
	Operands []OperandRange
}

// OperandRange says what an operand held. An operand may hold no finite element at all: then Min and Max are NaN.
type OperandRange struct {
	Name     string // of the input, param or node that the operand is a value of
	Type     ir.Type
	Finite   bool    // all elements are
	Min, Max float64 // of the finite elements; of a complex operand, of its parts
}

func (o OperandRange) String() string {
	state := "finite"
	if !o.Finite {
		state = "not finite"
	}
	return fmt.Sprintf("%s %s %s in [%g, %g]", o.Name, o.Type, state, o.Min, o.Max)
}

func (e *NonFiniteError) Error() string {
	what := e.Op
	if e.Part != "" {
		what += " (its part " + e.Part + ")"
	}
	what += sourcesText(e.Sources)
	list := make([]string, len(e.Operands))
	for i, o := range e.Operands {
		list[i] = o.String()
	}
	return fmt.Sprintf("rlx: node %s: %s on %s: output %d, %s: got %g at element %d, coordinates %v, expected finite values; operands: %s",
		e.Node, what, e.Backend, e.Output, e.Type, e.Value, e.Index, e.Coords, strings.Join(list, "; "))
}

// finiteWatch looks at the results of each command. What parts of a composed node hand to each other is not judged: only what leaves the node.
type finiteWatch struct {
	p     *Program
	plan  *plan.Plan
	r     *exec.Runner
	inner map[ir.Value]bool             // that only other parts of the same node read
	first map[ir.Origin]*NonFiniteError // the first inner value that is not finite, by node
	early map[int]OperandRange          // operands whose memory the command writes its result to
}

func (p *Program) executeFinite(ctx context.Context, prog *exec.Program, r *exec.Runner) error {
	pl, err := prog.Plan()
	if err != nil {
		return execError(p.Backend(), err)
	}
	w := &finiteWatch{p: p, plan: pl, r: r, inner: innerValues(pl), first: map[ir.Origin]*NonFiniteError{}}
	if err := r.RunWatched(ctx, w); err != nil {
		return execError(p.Backend(), err)
	}
	return nil
}

// innerValues are the results of parts that nothing but other parts of the same node reads.
func innerValues(pl *plan.Plan) map[ir.Value]bool {
	inner := map[ir.Value]bool{}
	if len(pl.Steps) == 0 {
		return inner
	}
	g := pl.Steps[0].Node.Graph()
	for _, n := range g.Nodes {
		if n.From.Op == "" {
			continue
		}
		for _, v := range n.Results() {
			inner[v] = true
		}
	}
	for _, n := range g.Nodes {
		for _, v := range n.In {
			if !v.IsZero() && v.Node().From != n.From {
				delete(inner, v)
			}
		}
	}
	for _, o := range g.Outputs {
		delete(inner, o.Value)
	}
	return inner
}

// Before looks at the operands that the command will overwrite.
func (w *finiteWatch) Before(step int) error {
	w.early = map[int]OperandRange{}
	s := &w.plan.Steps[step]
	for i := range s.Command.In {
		o := &s.Command.In[i]
		if o.Absent || !overwritten(o, s.Command.Out) {
			continue
		}
		seen, err := w.operand(s, i)
		if err != nil {
			return err
		}
		w.early[i] = seen
	}
	return nil
}

func overwritten(o *prog.Operand, results []prog.Operand) bool {
	for i := range results {
		if o.Slot == results[i].Slot && o.Index == results[i].Index && o.Slot != prog.Const {
			return true // perhaps: the rest of the arena is looked at twice, not wrongly
		}
	}
	return false
}

// After looks at the results.
func (w *finiteWatch) After(step int) error {
	s := &w.plan.Steps[step]
	if s.Command.Row == op.CopyRow() { // which makes no values
		return nil
	}
	for k := range s.Command.Out {
		o := &s.Command.Out[k]
		if o.Absent || !canBeInfinite(o.DType) {
			continue
		}
		mem, at, err := w.r.Operand(o, s.Place == plan.Host)
		if err != nil {
			return err
		}
		i, v := firstNonFinite(o, mem, at)
		if i < 0 {
			continue
		}
		if err := w.report(s, k, i, v); err != nil {
			return err
		}
	}
	return nil
}

// report is the error for element index of result k, nil where the value is inside a composed node.
func (w *finiteWatch) report(s *plan.Step, k int, index int64, v float64) error {
	o, from := &s.Command.Out[k], s.Node.From
	e := &NonFiniteError{Backend: w.p.Backend(), Output: k, Index: index, Coords: coordinates(index, o.Dims), Value: v, Type: typeOfOperand(o)}
	e.Node, e.Op = nodeOf(s)
	e.Sources = fusedInto(s.Node)
	if from.Op != "" {
		e.Part = s.Node.Row.Name
	}
	cause := w.first[from]
	if cause != nil {
		e.Part, e.Operands = cause.Part, cause.Operands
	} else if err := w.describe(e, s); err != nil {
		return err
	}
	if !w.inner[s.Node.Out(k)] {
		return e
	}
	if cause == nil {
		w.first[from] = e
	}
	return nil
}

// describe looks at the operands of a command that has run.
func (w *finiteWatch) describe(e *NonFiniteError, s *plan.Step) error {
	for i := range s.Command.In {
		if s.Command.In[i].Absent {
			continue
		}
		seen, ok := w.early[i]
		if !ok {
			var err error
			if seen, err = w.operand(s, i); err != nil {
				return err
			}
		}
		e.Operands = append(e.Operands, seen)
	}
	return nil
}

// operand looks at all elements of operand i.
func (w *finiteWatch) operand(s *plan.Step, i int) (OperandRange, error) {
	o := &s.Command.In[i]
	r := OperandRange{Type: typeOfOperand(o), Finite: true, Min: math.NaN(), Max: math.NaN()}
	if i < len(s.Node.In) {
		r.Name = valueName(s.Node.In[i])
	}
	mem, at, err := w.r.Operand(o, s.Place == plan.Host)
	if err != nil {
		return r, err
	}
	scan(o, mem, at, func(_ int64, v float64) bool {
		switch {
		case math.IsNaN(v) || math.IsInf(v, 0):
			r.Finite = false
		case !(v >= r.Min): // the first one, too
			r.Min = v
			if !(v <= r.Max) {
				r.Max = v
			}
		case !(v <= r.Max):
			r.Max = v
		}
		return true
	})
	return r, nil
}

// valueName is how the user knows a value.
func valueName(v ir.Value) string {
	n := v.Node()
	if name, ok := n.InputName(); ok {
		return name
	}
	if name, ok := n.ParamName(); ok {
		return name
	}
	return n.Source().Name
}

func typeOfOperand(o *prog.Operand) ir.Type {
	return ir.Type{DType: o.DType, Shape: ir.Dims(o.Dims...)}
}

// coordinates are the indices of an element by axis.
func coordinates(index int64, dims []int64) []int64 {
	at := make([]int64, len(dims))
	for k := len(dims) - 1; k >= 0; k-- {
		at[k] = index % dims[k]
		index /= dims[k]
	}
	return at
}

func canBeInfinite(d DType) bool {
	switch d {
	case F16, BF16, F32, F64, C64, F8E4M3, F8E5M2, E8M0:
		return true
	}
	return false
}

// firstNonFinite is the first element that is NaN or infinite, -1 if there is none.
func firstNonFinite(o *prog.Operand, mem []byte, at int64) (index int64, value float64) {
	index = -1
	scan(o, mem, at, func(i int64, v float64) bool {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			index, value = i, v
		}
		return index < 0
	})
	return index, value
}

// scan gives f the elements in row-major order until it says false; a complex element is two.
func scan(o *prog.Operand, mem []byte, at int64, f func(i int64, v float64) bool) {
	size := int64(o.DType.Size())
	for i, at := range o.Places(at) {
		if !element(o.DType, mem[at:at+size], i, f) {
			return
		}
	}
}

func element(d DType, b []byte, i int64, f func(i int64, v float64) bool) bool {
	if d == C64 {
		return f(i, ir.FloatAt(F32, b, 0)) && f(i, ir.FloatAt(F32, b, 1))
	}
	return f(i, ir.FloatAt(d, b, 0))
}
