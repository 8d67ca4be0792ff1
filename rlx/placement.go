package rlx

import (
	"context"
	"slices"

	"github.com/rlx-ml/rlx-go/rlx/internal/exec"
	"github.com/rlx-ml/rlx-go/rlx/internal/plan"
	"github.com/rlx-ml/rlx-go/rlx/internal/prog"
	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// Placed says how one node of the program runs.
type Placed struct {
	Node, Op string
	Backend  string // that runs it; ref in a build without cgo
	Place    string // native, composed, host
	Parts    int    // commands that the node became

	// What is copied between the memory of the device and that of the host because this node reads it: intermediate values, both ways.
	// Inputs, outputs and weights are not counted. None where the host can reach the device's arena.
	Transfers     int
	TransferBytes int64
}

// Segment is a run of commands on one side: of the device, or of the host between them.
type Segment struct {
	Backend  string   // of the segment's first command: a host segment may use several
	Place    string   // native or host
	Nodes    []string // in the order in which they run
	Down, Up int64    // bytes that are copied before it: to the host, to the device
}

// Command is one command of a compiled program.
type Command struct {
	Node, Kind     string // the node of the graph that it belongs to, and the op of that node
	Op             string // the op that runs: Kind, a part of what Kind is composed of, or Copy
	Backend, Place string // as in Placed
	Segment        int    // index in Program.Segments

	Fused   []string // other nodes of the graph that it stands for
	In, Out []ir.Type
	Bytes   int64 // of its operands and results, a broadcast element once: at most so many are touched, and fewer by ops that look elements up
}

// MemoryPlan is what a program needs for one set of shapes, in bytes.
type MemoryPlan struct {
	Weights    int64 // params and constants, held once for all shapes; kernels may hold packed copies, which Stats counts
	Folded     int64 // constants that were computed for these shapes
	Arena      int64 // intermediate values, for each run at a time
	ArenaBound int64 // the least that any arena of the same order of commands needs
	Device     int64 // the arena with what kernels need beside it
	Inputs     int64
	Outputs    int64
}

// Replaced says what stands for a node of the graph that has no command of its own. Nodes that nothing stands for were removed: no output needs them.
type Replaced struct {
	Node   string
	By     string // the node that stands for it, or the input that it is equal to; "" for a constant
	Became Became
}

// Became is what a node became that has no command of its own.
type Became string

// What a node may become.
const (
	BecameFused    Became = "fused"    // the commands of By compute it, or make it needless
	BecameView     Became = "view"     // strides of another value
	BecameConstant Became = "constant" // computed when the program was made
	BecameInput    Became = "input"    // the value of an input
)

// Plan is what a graph became for one set of shapes.
type Plan struct {
	Nodes    []Placed
	Replaced []Replaced
	Segments []Segment
	Commands []Command // in the order in which they run
	Memory   MemoryPlan
}

// Plan compiles for the shapes of feed, as Run does and for later runs too, and describes the result. With a nil feed it speaks of the shapes
// that Placement speaks of.
func (p *Program) Plan(ctx context.Context, feed Feed) (*Plan, error) {
	if ctx == nil {
		return nil, errNilContext
	}
	if feed == nil {
		var out *Plan
		err := p.planned(func(e *exec.Program, pl *plan.Plan, carries bool) { out = p.describe(e, pl, carries) })
		return out, err
	}
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	values, err := p.bind(nil, feed)
	if err != nil {
		return nil, err
	}
	p.expect(values)
	e, err := p.acquire(ctx, values)
	if err != nil {
		return nil, err
	}
	defer p.release(e)
	var out *Plan
	err = p.withPlan(e.prog, func(e *exec.Program, pl *plan.Plan, carries bool) { out = p.describe(e, pl, carries) })
	return out, err
}

func (p *Program) describe(e *exec.Program, pl *plan.Plan, carries bool) *Plan {
	m := MemoryPlan{Arena: pl.Peak, ArenaBound: pl.Bound, Device: e.ArenaBytes(), Inputs: bytesOf(pl.Program.Inputs), Outputs: bytesOf(pl.Program.Outputs)}
	for i, t := range pl.Consts {
		if i < pl.Base {
			m.Weights += int64(t.Size())
		} else {
			m.Folded += int64(t.Size())
		}
	}
	return &Plan{Nodes: placed(e, pl, carries), Replaced: replaced(pl), Segments: segments(e, pl, carries), Commands: commands(e, pl), Memory: m}
}

func bytesOf(list []prog.Type) int64 {
	sum := int64(0)
	for _, t := range list {
		n, _ := t.Bytes()
		sum += n
	}
	return sum
}

func commands(e *exec.Program, pl *plan.Plan) []Command {
	list := make([]Command, len(pl.Steps))
	for at, g := range pl.Segments {
		for i := g.First; i < g.End; i++ {
			s := &pl.Steps[i]
			c := Command{Op: s.Command.Row.Name, Backend: e.RunsOn(i, s.Place), Place: s.Place.String(), Segment: at}
			c.Node, c.Kind = nodeOf(s)
			c.Fused = fusedInto(s.Node)
			c.In, c.Bytes = operands(s.Command.In, c.Bytes)
			c.Out, c.Bytes = operands(s.Command.Out, c.Bytes)
			list[i] = c
		}
	}
	return list
}

// operands are the types of those that are there; their memory is added to bytes.
func operands(list []prog.Operand, bytes int64) ([]ir.Type, int64) {
	var types []ir.Type
	for _, o := range list {
		if o.Absent {
			continue
		}
		n := int64(o.DType.Size())
		for i, d := range o.Dims {
			if o.Strides[i] != 0 { // a broadcast reads its element again
				n *= d
			}
		}
		types, bytes = append(types, ir.Type{DType: o.DType, Shape: ir.Dims(o.Dims...)}), bytes+n
	}
	return types, bytes
}

// dtype is that of the first result.
func (c *Command) dtype() string {
	for _, list := range [][]ir.Type{c.Out, c.In} {
		if len(list) > 0 {
			return list[0].DType.String()
		}
	}
	return ""
}

// Placement lists the nodes of the program in the order in which they run, and how each runs: natively, composed of other ops, or staged
// on the host. It speaks of the shapes that were compiled last; before the first Run of a graph with symbolic dims, of the shapes that come from
// setting every symbol to 4.
func (p *Program) Placement() ([]Placed, error) {
	var list []Placed
	err := p.planned(func(e *exec.Program, pl *plan.Plan, carries bool) { list = placed(e, pl, carries) })
	return list, err
}

// Segments lists the stretches in which the program runs, of the shapes that Placement speaks of.
func (p *Program) Segments() ([]Segment, error) {
	var list []Segment
	err := p.planned(func(e *exec.Program, pl *plan.Plan, carries bool) { list = segments(e, pl, carries) })
	return list, err
}

// planned calls f with the latest specialisation, its plan, and whether its transfers happen.
func (p *Program) planned(f func(e *exec.Program, pl *plan.Plan, carries bool)) error {
	if err := p.enter(); err != nil {
		return err
	}
	defer p.leave()
	p.mu.Lock()
	latest := p.latest
	if latest != nil {
		latest.users++
	}
	p.mu.Unlock()
	var e *exec.Program
	if latest != nil {
		defer p.release(latest)
		e = latest.prog
	} else {
		values := map[string]int64{}
		for _, s := range p.kept.open().graph.Symbols() {
			values[s] = 4
		}
		for _, s := range p.stacks {
			values[p.symbols[s.symbol]] = s.rows.Load()
		}
		var err error
		if e, err = p.build(context.Background(), values); err != nil {
			return err
		}
		defer e.Close()
	}
	return p.withPlan(e, f)
}

// withPlan calls f with e, its plan, and whether its transfers happen.
func (p *Program) withPlan(e *exec.Program, f func(e *exec.Program, pl *plan.Plan, carries bool)) error {
	carries, err := e.Carries()
	if err != nil {
		return execError(p.Backend(), err)
	}
	pl, err := e.Plan()
	if err != nil {
		return execError(p.Backend(), err)
	}
	f(e, pl, carries)
	return nil
}

// nodeOf is the node of the user's graph that a step belongs to, and its op.
func nodeOf(s *plan.Step) (name, kind string) {
	o := s.Node.Source()
	return o.Name, o.Op
}

// fusedInto names the nodes that n stands for beside the one that it belongs to.
func fusedInto(n *ir.Node) []string {
	var list []string
	for _, o := range n.Absorbed {
		if o.Name != n.Source().Name && !slices.Contains(list, o.Name) {
			list = append(list, o.Name)
		}
	}
	return list
}

// replaced lists the nodes without commands. Where several stand for one, a command goes before a view, and that before a constant.
func replaced(pl *plan.Plan) []Replaced {
	seen := map[string]bool{}
	for i := range pl.Steps {
		name, _ := nodeOf(&pl.Steps[i])
		seen[name] = true
	}
	var list []Replaced
	add := func(name, by string, became Became) {
		if !seen[name] {
			seen[name] = true
			list = append(list, Replaced{name, by, became})
		}
	}
	for _, became := range []Became{BecameFused, BecameView, BecameInput, BecameConstant} {
		for _, n := range pl.Graph().Nodes {
			by, is := standsAs(n)
			if is != became {
				continue
			}
			if is == BecameView {
				add(n.Source().Name, by, is)
			}
			for _, o := range n.Absorbed {
				add(o.Name, by, is)
			}
		}
	}
	return list
}

// standsAs says what the nodes became that n stands for.
func standsAs(n *ir.Node) (by string, as Became) {
	if name, ok := n.InputName(); ok {
		return name, BecameInput
	}
	switch {
	case n.Row.Has(ir.Leaf):
		return "", BecameConstant
	case n.Row.Has(ir.View):
		return n.Source().Name, BecameView
	}
	return n.Source().Name, BecameFused
}

// placed charges each transfer to the first node that reads it.
func placed(e *exec.Program, pl *plan.Plan, carries bool) []Placed {
	var list []Placed
	index := map[string]int{}
	for k := range pl.Steps {
		s := &pl.Steps[k]
		name, kind := nodeOf(s)
		i, ok := index[name]
		if !ok {
			i = len(list)
			index[name] = i
			list = append(list, Placed{Node: name, Op: kind, Backend: e.RunsOn(k, s.Place), Place: s.Place.String()})
		}
		list[i].Parts++
		if s.Place == plan.Host {
			list[i].Place, list[i].Backend = plan.Host.String(), e.RunsOn(k, s.Place)
		}
	}
	for _, s := range pl.Segments {
		for _, t := range s.Carry {
			if !carries {
				break
			}
			name, _ := nodeOf(&pl.Steps[t.Step])
			p := &list[index[name]]
			p.Transfers++
			p.TransferBytes += t.Bytes
		}
	}
	return list
}

func segments(e *exec.Program, pl *plan.Plan, carries bool) []Segment {
	var list []Segment
	for _, s := range pl.Segments {
		g := Segment{Backend: e.RunsOn(s.First, pl.Steps[s.First].Place), Place: plan.Native.String()}
		if s.Host {
			g.Place = plan.Host.String()
		}
		seen := map[string]bool{}
		for i := s.First; i < s.End; i++ {
			if name, _ := nodeOf(&pl.Steps[i]); !seen[name] {
				seen[name] = true
				g.Nodes = append(g.Nodes, name)
			}
		}
		for _, t := range s.Carry {
			switch {
			case !carries:
			case s.Host:
				g.Down += t.Bytes
			default:
				g.Up += t.Bytes
			}
		}
		list = append(list, g)
	}
	return list
}
