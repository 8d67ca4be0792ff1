package rlx

import (
	"fmt"
	"math/bits"
	"slices"
	"sync/atomic"

	"github.com/rlx-ml/rlx-go/rlx/backend"
	"github.com/rlx-ml/rlx-go/rlx/internal/exec"
	"github.com/rlx-ml/rlx-go/rlx/internal/pass"
	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// The stacks of a While are as long as the run makes trips. A specialisation has memory for a number of rows; a run that needs more says how many, is
// done again with as many, and the program remembers.

// stack is an output whose length only a run tells.
type stack struct {
	output int           // number of the output
	count  int           // number of the hidden output that holds the length
	symbol int           // number of the symbol that stands for the rows there is memory for
	rows   *atomic.Int64 // shared by stacks of one symbol
}

// firstRows is how many rows there is memory for at first.
const firstRows = 16

// measure finds the outputs whose length only a run tells, and adds a hidden output for the length of each. Any other use of such a length is
// refused.
func (p *Program) measure(graph *ir.Graph) (*ir.Graph, error) {
	var bad []pass.Unsupported
	all := map[string]bool{}
	graph.EachNode(func(n *ir.Node) {
		if why := misuse(n, all); why != "" {
			bad = append(bad, pass.Unsupported{Node: n.Name, Op: n.Row.Name, DType: n.Types[0].DType,
				Reason: why + ", whose length only a run tells: such a value can be an output of the graph and nothing else"})
		}
	})
	if len(bad) > 0 {
		return nil, &UnsupportedError{Backend: p.Backend(), Nodes: bad}
	}
	if len(all) == 0 {
		return graph, nil
	}
	graph, err := pass.DCE(graph)
	if err != nil {
		return nil, err
	}
	rows := map[string]*atomic.Int64{}
	hidden := map[ir.Value]int{}
	for i, o := range slices.Clone(graph.Outputs) {
		for _, s := range o.Value.Measured() {
			delete(all, s)
			v, _ := o.Value.MeasuredBy(s)
			if _, ok := hidden[v]; !ok {
				hidden[v] = len(graph.Outputs)
				graph.Outputs = append(graph.Outputs, ir.Output{Name: s + " of " + o.Name, Value: v})
			}
			k := slices.Index(p.symbols, s)
			if k < 0 {
				k = len(p.symbols)
				p.symbols = append(p.symbols, s)
			}
			if rows[s] == nil {
				rows[s] = new(atomic.Int64)
				rows[s].Store(firstRows)
			}
			p.stacks = append(p.stacks, stack{i, hidden[v], k, rows[s]})
		}
	}
	if len(all) > 0 {
		graph, err = graph.Bind(noRows(all))
	}
	return graph, err
}

// misuse says what use n makes of a length that only a run tells, where it is not n that finds the length. The symbols of such lengths among
// n's types go into all.
func misuse(n *ir.Node, all map[string]bool) string {
	for _, v := range n.In {
		if len(v.Measured()) > 0 {
			return fmt.Sprintf("it reads %s", v)
		}
	}
	for _, g := range n.Graphs() {
		for _, o := range g.Outputs {
			if len(o.Value.Measured()) > 0 {
				return fmt.Sprintf("its sub-graph %q gives %s", g.Name, o.Value)
			}
		}
	}
	for _, v := range n.Results() {
		for _, s := range v.Measured() {
			if _, ok := v.MeasuredBy(s); !ok {
				return fmt.Sprintf("it makes %s", v)
			}
			all[s] = true
		}
	}
	if n.Row.Has(ir.Control) {
		return ""
	}
	named := map[string]bool{}
	n.Row.AttrSymbols(n.Attrs, named)
	for s := range named {
		if ir.IsMeasured(s) {
			return fmt.Sprintf("an attribute of it reads the dim %s of a value", s)
		}
	}
	return ""
}

// noRows binds the stacks that nobody asked for to nothing: a run has no memory for them.
func noRows(symbols map[string]bool) map[string]int64 {
	values := map[string]int64{}
	for s := range symbols {
		values[s] = 0
	}
	return values
}

// expect sets the rows that the next run has memory for.
func (p *Program) expect(values []int64) {
	for _, s := range p.stacks {
		values[s.symbol] = s.rows.Load()
	}
}

// trim cuts the stacks in out to the rows of the run. all is false where there was memory for fewer: then the next run has more.
func (p *Program) trim(out []*Tensor, values []int64) (all bool, err error) {
	all = true
	for _, s := range p.stacks {
		n := out[s.count].Int(0)
		if n <= values[s.symbol] {
			continue
		}
		all = false
		want := int64(1) << bits.Len64(uint64(n-1))
		for old := s.rows.Load(); old < want && !s.rows.CompareAndSwap(old, want); old = s.rows.Load() {
		}
	}
	for _, s := range p.stacks {
		if !all {
			break
		}
		t, n := out[s.output], out[s.count].Int(0)
		shape := append([]int64{n}, t.Shape()[1:]...)
		size, err := ir.ByteSize(t.DType(), shape)
		if err != nil {
			return false, err
		}
		if out[s.output], err = ir.FromBytes(t.DType(), shape, slices.Clone(t.Bytes()[:size])); err != nil {
			return false, err
		}
	}
	return all, nil
}

// outputsOf is fresh memory for the outputs of e, bound to r.
func outputsOf(e *exec.Program, r *exec.Runner) ([]*Tensor, error) {
	out := make([]*Tensor, len(e.Outputs))
	for i, t := range e.Outputs {
		y, err := ir.Zeros(t.DType, t.Dims...)
		if err != nil {
			return nil, &backend.Error{Backend: "host", Code: backend.NoMemory, Command: -1, Text: err.Error()}
		}
		out[i] = y
		r.SetOutput(i, y.Bytes())
	}
	return out, nil
}
