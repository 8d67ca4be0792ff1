package plan

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx/backend"
	"github.com/rlx-ml/rlx-go/rlx/internal/pass"
	"github.com/rlx-ml/rlx-go/rlx/internal/prog"
	"github.com/rlx-ml/rlx-go/rlx/internal/ref"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// sides is an account of where each byte of the arena is valid, from the commands alone.
type sides struct{ host, device []bool }

func (s *sides) of(host bool) (here, there []bool) {
	if host {
		return s.host, s.device
	}
	return s.device, s.host
}

// checkSegments holds the segments against the steps: they cover them in order and alternate; each transfer is needed, has something to
// carry, and with all of them every byte that a command reads is valid on its side.
func checkSegments(t *testing.T, p *Plan) {
	t.Helper()
	at, now := 0, sides{make([]bool, p.Peak), make([]bool, p.Peak)}
	for i, s := range p.Segments {
		if s.First != at || s.End <= s.First || i > 0 && s.Host == p.Segments[i-1].Host {
			t.Fatalf("segment %d: %+v after step %d\n%s", i, s, at, dump(p))
		}
		here, there := now.of(s.Host)
		for _, x := range s.Carry {
			if x.Step < s.First || x.Step >= s.End || x.Bytes == 0 {
				t.Fatalf("segment %d: %+v", i, x)
			}
			for b := x.Offset; b < x.Offset+x.Bytes; b++ {
				if !there[b] || here[b] {
					t.Fatalf("segment %d: %+v: byte %d is valid where it comes from: %v, where it goes: %v\n%s", i, x, b, there[b], here[b], dump(p))
				}
				here[b] = true
			}
		}
		for ; at < s.End; at++ {
			st := &p.Steps[at]
			if (st.Place == Host) != s.Host || st.Command.Staged != s.Host {
				t.Fatalf("step %d %s lies in segment %d %+v", at, st.Node, i, s)
			}
			for _, o := range st.Command.In {
				for _, b := range bytesOf(o) {
					if o.Slot == prog.Arena && !here[b] {
						t.Fatalf("step %d %s reads byte %d, which is not there\n%s", at, st.Node, b, dump(p))
					}
				}
			}
			for _, o := range st.Command.Out {
				for _, b := range bytesOf(o) {
					if o.Slot == prog.Arena {
						here[b], there[b] = true, false
					}
				}
			}
		}
	}
	if at != len(p.Steps) {
		t.Fatalf("segments end at step %d of %d", at, len(p.Steps))
	}
}

// apart runs the plan with an arena for each side, both full of 0xFF, and carries what the plan says and no more.
func apart(t *testing.T, p *Plan, feed []*ir.Tensor) []*ir.Tensor {
	t.Helper()
	mem := map[bool][]byte{true: make([]byte, p.Peak), false: make([]byte, p.Peak)}
	for _, m := range mem {
		for i := range m {
			m[i] = 0xFF
		}
	}
	var args backend.RunArgs
	for _, x := range feed {
		args.Inputs = append(args.Inputs, x.Bytes())
	}
	var out []*ir.Tensor
	for _, typ := range p.Program.Outputs {
		y, err := ir.Zeros(typ.DType, typ.Dims...)
		if err != nil {
			t.Fatal(err)
		}
		out, args.Outputs = append(out, y), append(args.Outputs, y.Bytes())
	}
	var consts [][]byte
	for _, c := range p.Consts {
		consts = append(consts, c.Bytes())
	}
	for _, s := range p.Segments {
		for _, x := range s.Carry {
			copy(mem[s.Host][x.Offset:x.Offset+x.Bytes], mem[!s.Host][x.Offset:])
		}
		args.Arena = backend.NewHostArena(mem[s.Host])
		for i := s.First; i < s.End; i++ {
			if err := ref.Command(&p.Steps[i].Command, &args, consts); err != nil {
				t.Fatalf("step %d: %v\n%s", i, err, dump(p))
			}
		}
	}
	return out
}

// sorts stages Sort and nothing else.
func sorts() *pass.Support {
	var caps []backend.Cap
	for _, r := range ir.Rows() {
		if !r.Has(ir.Leaf) && r.Name != "Sort" {
			caps = append(caps, backend.Cap{Op: r.Num(), DTypes: ^uint32(0), Strided: true})
		}
	}
	return pass.NewSupport("sorts", caps, func(r *ir.Row) bool { return r.Name == "Sort" })
}

// inOrder counts the segments that the graph's own order would have.
func inOrder(g *ir.Graph, s *pass.Support) int {
	n, last := 0, -1
	for _, node := range g.Nodes {
		if node.Row.Has(ir.Leaf) || node.Row.Has(ir.View) {
			continue
		}
		side := 0
		if s.Staged(node) {
			side = 1
		}
		if side != last {
			n, last = n+1, side
		}
	}
	return n
}

// Host nodes gather: three independent chains need as many segments as one.
func TestScheduleGathers(t *testing.T) {
	sort := func(v ir.Value) ir.Value { v, _ = op.Sort(v, 0, false); return v }
	for name, tc := range map[string]struct {
		chain           func(ir.Value) ir.Value
		before, after   int
		transfers, each int // bytes of each chain's 100 f32
	}{
		"host first":   {func(v ir.Value) ir.Value { return op.Neg(sort(v)) }, 6, 2, 3, 400},
		"native first": {func(v ir.Value) ir.Value { return sort(op.Neg(v)) }, 6, 2, 3, 400},
		"in between":   {func(v ir.Value) ir.Value { return op.Neg(sort(op.Exp(v))) }, 7, 3, 6, 400},
		"twice":        {func(v ir.Value) ir.Value { return sort(op.Neg(sort(v))) }, 7, 3, 6, 400},
		"native":       {func(v ir.Value) ir.Value { return op.Neg(op.Exp(v)) }, 1, 1, 0, 400},
		"no crossing":  {sort, 1, 1, 0, 400},
	} {
		g := ir.NewGraph(name)
		for i := range 3 {
			g.Output(fmt.Sprint("y", i), tc.chain(g.Input(fmt.Sprint("x", i), ir.F32, ir.Dims(100))))
		}
		p, err := Build(g, sorts(), NewConstants(g))
		if err != nil {
			t.Fatal(err)
		}
		checkSegments(t, p)
		transfers := 0
		for _, s := range p.Segments {
			for _, x := range s.Carry {
				if transfers++; x.Bytes != int64(tc.each) {
					t.Errorf("%s: %d bytes cross, expected %d", name, x.Bytes, tc.each)
				}
			}
		}
		if b := inOrder(g, sorts()); b != tc.before || len(p.Segments) != tc.after || transfers != tc.transfers {
			t.Errorf("%s: %d segments from %d, %d transfers; expected %d from %d, %d\n%s", name, len(p.Segments), b, transfers, tc.after, tc.before, tc.transfers, dump(p))
		}
	}
}

// A value that both sides read crosses once, however many read it and however often the sides change.
func TestCrossesOnce(t *testing.T) {
	g := ir.NewGraph("g")
	x := g.Input("x", ir.F32, ir.Dims(8))
	a := op.Exp(x)
	v := a
	for range 3 {
		v, _ = op.Sort(op.Add(v, a), 0, false)
		s, _ := op.Sort(op.Reverse(a, 0), 0, false)
		v = op.Add(v, s)
	}
	g.Output("y", v)
	p, err := Build(g, sorts(), NewConstants(g))
	if err != nil {
		t.Fatal(err)
	}
	checkSegments(t, p)
	down := 0
	for _, s := range p.Segments {
		if s.Host {
			down += len(s.Carry)
		}
	}
	if down != 4 || len(p.Segments) != 7 { // a and the three sums
		t.Errorf("%d values cross to the host in %d segments, expected 4 in 7\n%s", down, len(p.Segments), dump(p))
	}
}

// Random graphs with random host rows: every operand comes before its readers, both sides keep the graph's order among nodes that are
// ready at once, and there are never more segments than in the graph's order; without host rows nothing moves.
func TestScheduleRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	fewer := 0
	for i := range 300 {
		g, _ := randomGraph(r, 10+i%40)
		if err := g.Err(); err != nil {
			t.Fatal(err)
		}
		salt := r.Uint32()
		var caps []backend.Cap
		for _, row := range ir.Rows() {
			if (uint32(row.Num())*2654435761^salt)>>7&1 == 0 {
				caps = append(caps, backend.Cap{Op: row.Num(), DTypes: ^uint32(0), Strided: true})
			}
		}
		s := pass.NewSupport("random", caps, func(*ir.Row) bool { return true })
		order := schedule(g, s)
		if len(order) != len(g.Nodes) {
			t.Fatalf("%d of %d nodes", len(order), len(g.Nodes))
		}
		done := map[*ir.Node]bool{}
		segments, last := 0, -1
		for k, o := range order {
			for _, v := range o.node.In {
				if !v.IsZero() && !done[v.Node()] {
					t.Fatalf("%s runs before its operand %s", o.node, v.Node())
				}
			}
			done[o.node] = true
			if k > 0 && o.host == order[k-1].host && o.node.ID() < order[k-1].node.ID() {
				t.Fatalf("%s runs after %s in one phase", o.node, order[k-1].node)
			}
			if o.node.Row.Has(ir.Leaf) || o.node.Row.Has(ir.View) {
				continue
			}
			if o.host != s.Staged(o.node) {
				t.Fatalf("%s runs on the wrong side", o.node)
			}
			if side := map[bool]int{true: 1}[o.host]; side != last {
				segments, last = segments+1, side
			}
		}
		before := inOrder(g, s)
		if segments > before {
			t.Errorf("%d segments, %d in the graph's order", segments, before)
		}
		if segments < before {
			fewer++
		}
		for k, o := range schedule(g, supports()["strided"]) {
			if o.node != g.Nodes[k] || o.host {
				t.Fatalf("%s moved without host nodes", o.node)
			}
		}
	}
	if fewer < 100 {
		t.Errorf("only %d of 300 graphs got fewer segments", fewer)
	}
}
