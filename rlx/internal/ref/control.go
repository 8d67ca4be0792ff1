package ref

import (
	"fmt"

	"github.com/rlx-ml/rlx-go/rlx/internal/prog"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

func init() {
	on("If", ifKernel)
	on("While", whileKernel)
	on("Scan", scanKernel)
}

// body runs a sub-graph: in and out are its inputs and outputs, in memory that does not overlap.
type body func(in, out []tensor) error

// body is sub-graph k of the command: its program, or the graph itself where there is no program.
func (c *call) body(k int) (body, error) {
	if len(c.cmd.Bodies) > 0 {
		return c.programBody(c.cmd.Bodies[k])
	}
	return graphBody(c.cmd.Row.Graphs(c.cmd.Attrs)[k]), nil
}

func (c *call) programBody(p *prog.Program) (body, error) {
	mem, err := ir.Alloc(p.ArenaBytes)
	if err != nil {
		return nil, err
	}
	bytes := func(list []tensor) [][]byte {
		b := make([][]byte, len(list))
		for i, t := range list {
			b[i] = t.data
		}
		return b
	}
	return func(in, out []tensor) error {
		slots := map[prog.Slot][][]byte{prog.Arena: {mem}, prog.Input: bytes(in), prog.Output: bytes(out), prog.Const: c.consts}
		for i := range p.Commands {
			if c.stopped() {
				return errCancelled
			}
			if err := runCommand(&p.Commands[i], slots, &env{c.cancel, c.seed}); err != nil {
				return fmt.Errorf("%s: %w", p.Commands[i].Row.Name, err)
			}
		}
		return nil
	}, nil
}

// graphBody evaluates the nodes of a graph, for Apply.
func graphBody(g *ir.Graph) body {
	return func(in, out []tensor) error {
		done := map[ir.Value]*ir.Tensor{}
		for i, n := range g.Inputs {
			t, err := ir.FromBytes(in[i].dtype, in[i].dims, in[i].data)
			if err != nil {
				return err
			}
			done[n.Out(0)] = t
		}
		for _, n := range g.Nodes {
			if err := evalNode(n, done); err != nil {
				return err
			}
		}
		for i, o := range g.Outputs {
			copy(out[i].data, done[o.Value].Bytes())
		}
		return nil
	}
}

func evalNode(n *ir.Node, done map[ir.Value]*ir.Tensor) error {
	if t, ok := n.Out(0).Const(); ok {
		done[n.Out(0)] = t
	}
	if n.Row.Has(ir.Leaf) {
		return nil
	}
	in := make([]*ir.Tensor, len(n.In))
	for i, v := range n.In {
		in[i] = done[v]
	}
	out, err := Apply(n.Row, n.Attrs, in, n.Types)
	for i, t := range out {
		done[n.Out(i)] = t
	}
	return err
}

// like is fresh memory for a tensor of t's type.
func (t tensor) like() tensor {
	t.data = make([]byte, len(t.data))
	return t
}

// row is element k of the first axis, or of a stack of tensors.
func (t tensor) row(k int) tensor {
	dims := t.dims[1:]
	n := product(dims) * t.dtype.Size()
	return tensor{true, t.dtype, dims, t.data[k*n : (k+1)*n]}
}

// spareRow is memory for a row that a stack has no place for.
func (t tensor) spareRow() (tensor, error) {
	n, err := ir.ByteSize(t.dtype, t.dims[1:])
	if err != nil {
		return tensor{}, err
	}
	mem, err := ir.Alloc(n)
	return tensor{true, t.dtype, t.dims[1:], mem}, err
}

func ifKernel(c *call) error {
	k := 1
	if c.in[0].int(0) != 0 {
		k = 0
	}
	run, err := c.body(k)
	if err != nil {
		return err
	}
	return run(c.in[1:], c.out)
}

// carries are the carried values of a loop: those that enter a trip, and memory for those that leave it.
type carries struct{ now, next []tensor }

func newCarries(init []tensor) *carries {
	v := &carries{}
	for _, t := range init {
		now := t.like()
		copy(now.data, t.data)
		v.now, v.next = append(v.now, now), append(v.next, t.like())
	}
	return v
}

func (v *carries) swap() { v.now, v.next = v.next, v.now }

func (v *carries) copyTo(out []tensor) {
	for i, t := range v.now {
		copy(out[i].data, t.data)
	}
}

func whileKernel(c *call) error {
	a := attrs[op.WhileAttrs](c)
	n := len(c.in)
	if a.NumCarries != nil {
		n = int(*a.NumCarries)
	}
	cond, err := c.body(0)
	if err != nil {
		return err
	}
	step, err := c.body(1)
	if err != nil {
		return err
	}
	v, captures := newCarries(c.in[:n]), c.in[n:]
	var stacks []tensor
	if a.NumEmits > 0 {
		stacks = c.out[n : len(c.out)-1]
	}
	spare := make([]tensor, len(stacks))
	holds := tensor{true, ir.Bool, nil, make([]byte, 1)}
	trips := int64(0)
	for ; a.MaxTrips < 0 || trips < a.MaxTrips; trips++ {
		if c.stopped() {
			return errCancelled
		}
		in := append(append([]tensor{}, v.now...), captures...)
		if err := cond(in, []tensor{holds}); err != nil {
			return fmt.Errorf("cond: %w", err)
		}
		if holds.data[0] == 0 {
			break
		}
		out := append([]tensor{}, v.next...)
		for i, s := range stacks {
			if trips < s.dims[0] {
				out = append(out, s.row(int(trips)))
				continue
			}
			if !spare[i].present { // the run ends with the number of trips, and is done again with memory for them
				if spare[i], err = s.spareRow(); err != nil {
					return err
				}
			}
			out = append(out, spare[i])
		}
		if err := step(in, out); err != nil {
			return fmt.Errorf("body: %w", err)
		}
		v.swap()
	}
	v.copyTo(c.out)
	if a.NumEmits > 0 {
		c.out[len(c.out)-1].setInt(0, trips)
	}
	return nil
}

func scanKernel(c *call) error {
	a := attrs[op.ScanAttrs](c)
	n, first := int(a.NumCarries), int(a.NumCarries+a.NumCaptures)
	step, err := c.body(0)
	if err != nil {
		return err
	}
	v, captures, xs := newCarries(c.in[:n]), c.in[n:first], c.in[first:]
	length := 0
	if a.Length != nil {
		length = int(*a.Length)
	} else {
		length = int(xs[0].dims[0])
	}
	saved := min(int(a.NumCheckpoints), length)
	ys := c.out[n:]
	var checkpoints []tensor
	if a.NumCheckpoints > 0 {
		ys, checkpoints = c.out[n:len(c.out)-n], c.out[len(c.out)-n:]
	}
	next := 0 // row of the checkpoints
	for s := range length {
		if c.stopped() {
			return errCancelled
		}
		if next < saved && s == next*length/saved {
			for i, t := range checkpoints {
				copy(t.row(next).data, v.now[i].data)
			}
			next++
		}
		t := s
		if a.Reverse {
			t = length - 1 - s
		}
		in := append(append([]tensor{}, v.now...), captures...)
		for _, x := range xs {
			in = append(in, x.row(t))
		}
		out := append([]tensor{}, v.next...)
		for _, y := range ys {
			out = append(out, y.row(t))
		}
		if err := step(in, out); err != nil {
			return fmt.Errorf("body: %w", err)
		}
		v.swap()
	}
	v.copyTo(c.out)
	return nil
}
