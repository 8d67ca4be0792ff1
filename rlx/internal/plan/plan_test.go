package plan

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx/backend"
	"github.com/rlx-ml/rlx-go/rlx/internal/pass"
	"github.com/rlx-ml/rlx-go/rlx/internal/prog"
	"github.com/rlx-ml/rlx-go/rlx/internal/ref"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// evaluate computes the outputs of a static graph node by node, each result in memory of its own: what a plan must not change.
func evaluate(t *testing.T, g *ir.Graph, feed map[string]*ir.Tensor) []*ir.Tensor {
	t.Helper()
	values := map[ir.Value]*ir.Tensor{}
	for _, n := range g.Nodes {
		if c := constantOf(n); c != nil {
			values[n.Out(0)] = c
		} else if name, ok := n.InputName(); ok {
			values[n.Out(0)] = feed[name]
		} else {
			in := make([]*ir.Tensor, len(n.In))
			for i, v := range n.In {
				in[i] = values[v]
			}
			out, err := ref.Apply(n.Row, n.Attrs, in, n.Types)
			if err != nil {
				t.Fatalf("%s: %v\n%s", n, err, g)
			}
			for i, o := range out {
				values[n.Out(i)] = o
			}
		}
	}
	var out []*ir.Tensor
	for _, o := range g.Outputs {
		out = append(out, values[o.Value])
	}
	return out
}

// bytesOf lists the bytes of an operand, element by element.
func bytesOf(o prog.Operand) []int64 {
	var at []int64
	if o.Absent || o.Count() == 0 {
		return nil
	}
	idx := make([]int64, len(o.Dims))
	for {
		p := o.Offset
		for k, i := range idx {
			p += i * o.Strides[k] * int64(o.DType.Size())
		}
		for b := range int64(o.DType.Size()) {
			at = append(at, p+b)
		}
		k := len(idx) - 1
		for ; k >= 0; k-- {
			if idx[k]++; idx[k] < o.Dims[k] {
				break
			}
			idx[k] = 0
		}
		if k < 0 {
			return at
		}
	}
}

// liveBytes says for each step which bytes of the arena it or a later step reads before they are written again. It knows the commands
// alone: an account of its own beside the planner's buffers.
func liveBytes(p *Plan) [][]bool {
	live := make([][]bool, len(p.Steps)+1)
	live[len(p.Steps)] = make([]bool, p.Peak)
	for i := len(p.Steps) - 1; i >= 0; i-- {
		now := slices.Clone(live[i+1])
		for _, o := range p.Steps[i].Command.Out {
			if o.Slot == prog.Arena {
				for _, b := range bytesOf(o) {
					now[b] = false
				}
			}
		}
		for _, o := range p.Steps[i].Command.In {
			if o.Slot == prog.Arena {
				for _, b := range bytesOf(o) {
					now[b] = true
				}
			}
		}
		live[i] = now
	}
	return live
}

// execute is the check mode of the planner: it runs step by step on the host, and before each step it fills every byte of the arena that
// nothing will read with 0xFF, which makes NaNs and impossible indices. The first step may read nothing of the arena.
func execute(t *testing.T, p *Plan, g *ir.Graph, feed map[string]*ir.Tensor) []*ir.Tensor {
	t.Helper()
	args := backend.RunArgs{Arena: backend.NewHostArena(make([]byte, p.Peak))}
	for _, n := range g.Inputs {
		name, _ := n.InputName()
		args.Inputs = append(args.Inputs, slices.Clone(feed[name].Bytes()))
	}
	var out []*ir.Tensor
	for _, typ := range p.Program.Outputs {
		y, err := ir.Zeros(typ.DType, typ.Dims...)
		if err != nil {
			t.Fatal(err)
		}
		for i := range y.Bytes() {
			y.Bytes()[i] = 0xFF
		}
		out, args.Outputs = append(out, y), append(args.Outputs, y.Bytes())
	}
	var consts [][]byte
	for _, c := range p.Consts {
		consts = append(consts, slices.Clone(c.Bytes()))
	}
	live := liveBytes(p)
	if slices.Contains(live[0], true) {
		t.Fatalf("the program reads memory that nothing wrote\n%s", dump(p))
	}
	for i := range p.Steps {
		for b, used := range live[i] {
			if !used {
				args.Arena.Bytes()[b] = 0xFF
			}
		}
		if err := ref.Command(&p.Steps[i].Command, &args, consts); err != nil {
			t.Fatalf("step %d: %v\n%s", i, err, dump(p))
		}
	}
	for i, n := range g.Inputs {
		if name, _ := n.InputName(); !bytes.Equal(args.Inputs[i], feed[name].Bytes()) {
			t.Fatalf("input %s was written\n%s", name, dump(p))
		}
	}
	for i, c := range p.Consts {
		if !bytes.Equal(consts[i], c.Bytes()) {
			t.Fatalf("constant %d was written\n%s", i, dump(p))
		}
	}
	return out
}

func dump(p *Plan) string {
	whole := p.Program
	for _, s := range p.Steps {
		whole.Commands = append(whole.Commands, s.Command)
	}
	return whole.String()
}

// supports are the ways in which a backend can take operands and nodes.
func supports() map[string]*pass.Support {
	caps := func(strided bool, keep func(*ir.Row) bool) []backend.Cap {
		var l []backend.Cap
		for _, r := range ir.Rows() {
			if !r.Has(ir.Leaf) && keep(r) {
				l = append(l, backend.Cap{Op: r.Num(), DTypes: ^uint32(0), Strided: strided})
			}
		}
		return l
	}
	all := func(*ir.Row) bool { return true }
	staged := pass.NewSupport("staged", caps(true, func(r *ir.Row) bool { return r.Has(ir.Elementwise) }), all)
	staged.HostBodies(pass.NewSupport("dense", caps(false, func(r *ir.Row) bool { return r != op.CopyRow() }), nil))
	return map[string]*pass.Support{
		"staged":  staged, // on a host that takes no strides
		"strided": pass.NewSupport("strided", caps(true, all), nil),
		"dense":   pass.NewSupport("dense", caps(false, all), nil),
		"host":    pass.NewSupport("host", caps(true, func(r *ir.Row) bool { return r == op.CopyRow() }), all),
		"mixed":   pass.NewSupport("mixed", caps(false, func(r *ir.Row) bool { return r.Has(ir.Elementwise) }), all),
	}
}

// check plans g in every way, holds the plan's rules, and compares what it computes with evaluate.
func check(t *testing.T, g *ir.Graph, feed map[string]*ir.Tensor) {
	t.Helper()
	if err := g.Verify(); err != nil {
		t.Fatal(err)
	}
	want := evaluate(t, g, feed)
	for name, s := range supports() {
		p, err := build(g, s, NewConstants(g))
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, g)
		}
		checkBuffers(t, p)
		pl := p.plan
		checkSegments(t, pl)
		whole := pl.Program
		for _, st := range pl.Steps {
			whole.Commands = append(whole.Commands, st.Command)
			for i, o := range st.Command.In {
				if (name == "dense" || name == "staged" && st.Command.Staged) && st.Command.Row != op.CopyRow() && !o.Absent && !o.IsContiguous() {
					t.Errorf("%s: operand %d of %s is strided\n%s", name, i, st.Node, dump(pl))
				}
			}
			checkAliases(t, &st)
			if st.Command.Row.Has(ir.View) && !st.Command.Row.Has(ir.Elementwise) {
				t.Errorf("%s: view %s is a command\n%s", name, st.Node, dump(pl))
			}
		}
		words, err := prog.Encode(&whole)
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, dump(pl))
		}
		if back, err := prog.Decode(words); err != nil || back.String() != dump(pl) {
			t.Fatalf("%s: %v\n%s", name, err, dump(pl))
		}
		var inputs []*ir.Tensor
		for _, n := range g.Inputs {
			in, _ := n.InputName()
			inputs = append(inputs, feed[in])
		}
		for way, results := range map[string][]*ir.Tensor{"one arena": execute(t, pl, g, feed), "two arenas": apart(t, pl, inputs)} {
			for i, got := range results {
				if !got.Type().Equal(want[i].Type()) || !bytes.Equal(got.Bytes(), want[i].Bytes()) {
					t.Fatalf("%s, %s: output %d: got %s, expected %s\n%s\n%s", name, way, i, got, want[i], g, dump(pl))
				}
			}
		}
	}
}

// checkAliases says that results of a command share no byte, and that an operand shares bytes with a result only where it fills the same
// bytes in the same order and the row computes in place. The interpreter would copy such operands; kernels do not.
func checkAliases(t *testing.T, s *Step) {
	t.Helper()
	span := func(o prog.Operand) map[int64]bool {
		m := map[int64]bool{}
		if !o.Absent && o.Slot == prog.Arena {
			for _, b := range bytesOf(o) {
				m[b] = true
			}
		}
		return m
	}
	for i, out := range s.Command.Out {
		taken := span(out)
		shares := func(o prog.Operand) bool {
			for b := range span(o) {
				if taken[b] {
					return true
				}
			}
			return false
		}
		for j, o := range s.Command.Out[:i] {
			if shares(o) {
				t.Errorf("%s: results %d and %d overlap", s.Node, j, i)
			}
		}
		for k, o := range s.Command.In {
			inPlace := i == 0 && (s.Command.Row.Has(ir.Elementwise) || s.Command.Row.Has(ir.InPlace) && k == 0)
			if shares(o) && !(inPlace && o.IsContiguous() && o.Offset == out.Offset && o.Count() == out.Count() && o.DType.Size() == out.DType.Size()) {
				t.Errorf("%s: operand %d %s overlaps result %d %s", s.Node, k, o, i, out)
			}
		}
	}
}

// checkBuffers says that no two buffers that live at the same step share a byte, that all lie in the arena, aligned, and that the arena
// is no larger than the plan says and no smaller than the bound.
func checkBuffers(t *testing.T, p *planner) {
	t.Helper()
	for i, a := range p.arena {
		if a.offset < 0 || a.offset%align != 0 || a.offset+a.bytes > p.plan.Peak || a.first > a.end || a.end >= len(p.plan.Steps) {
			t.Errorf("buffer %d: %+v in %d bytes and %d steps", i, *a, p.plan.Peak, len(p.plan.Steps))
		}
		for j, b := range p.arena[:i] {
			if a.first <= b.end && b.first <= a.end && a.offset < b.offset+b.bytes && b.offset < a.offset+a.bytes {
				t.Errorf("buffers %d %+v and %d %+v overlap", i, *a, j, *b)
			}
		}
	}
	if p.plan.Peak < p.plan.Bound || p.plan.Program.ArenaBytes != p.plan.Peak {
		t.Errorf("peak %d, bound %d, arena %d", p.plan.Peak, p.plan.Bound, p.plan.Program.ArenaBytes)
	}
}

func numbers(from float32, shape ...int) *ir.Tensor {
	n := 1
	for _, d := range shape {
		n *= d
	}
	v := make([]float32, n)
	for i := range v {
		v[i] = from + float32(i)
	}
	return ir.New(v, shape...)
}

func strided(t *testing.T, g *ir.Graph, feed map[string]*ir.Tensor) *Plan {
	t.Helper()
	p, err := Build(g, supports()["strided"], NewConstants(g))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A chain of elementwise ops runs in one buffer; the last writes to the output itself.
func TestInPlaceChain(t *testing.T) {
	g := ir.NewGraph("g")
	x := g.Input("x", ir.F32, ir.Dims(100))
	v := op.Exp(x)
	for range 5 {
		v = op.Add(op.Neg(v), x)
	}
	g.Output("y", v)
	feed := map[string]*ir.Tensor{"x": numbers(-3, 100)}
	check(t, g, feed)
	if p := strided(t, g, feed); p.Peak != 448 || p.Bound != 448 || len(p.Steps) != 11 {
		t.Errorf("peak %d, bound %d, %d steps; expected one buffer of 400 bytes rounded up to 448", p.Peak, p.Bound, len(p.Steps))
	}
}

// Values that are read later keep their buffers, whoever else would like them.
func TestInPlaceRefused(t *testing.T) {
	for name, f := range map[string]func(x ir.Value) []ir.Value{
		"read later": func(x ir.Value) []ir.Value { a := op.Exp(x); b := op.Neg(a); return []ir.Value{op.Mul(b, a)} },
		"read through a view": func(x ir.Value) []ir.Value {
			a := op.Exp(x)
			r := op.Reverse(a, 0)
			return []ir.Value{op.Sub(op.Neg(a), r)}
		},
		"view of a view": func(x ir.Value) []ir.Value {
			a := op.Exp(x)
			r := op.Transpose(op.Narrow(a, 0, 1, 3), 1, 0)
			return []ir.Value{op.Neg(a), op.Exp(r)}
		},
		"output as well":    func(x ir.Value) []ir.Value { a := op.Exp(x); return []ir.Value{a, op.Neg(a), op.Neg(op.Neg(a))} },
		"view is an output": func(x ir.Value) []ir.Value { a := op.Exp(x); return []ir.Value{op.Transpose(a, 1, 0), op.Neg(a)} },
		"operand twice":     func(x ir.Value) []ir.Value { a := op.Exp(x); return []ir.Value{op.Neg(op.Sub(a, a))} },
		"operand and its view": func(x ir.Value) []ir.Value {
			a := op.Exp(x)
			return []ir.Value{op.Neg(op.Sub(a, op.Transpose(a, 1, 0)))}
		},
		"broadcast operand": func(x ir.Value) []ir.Value {
			a := op.Exp(op.Narrow(x, 0, 0, 1))
			return []ir.Value{op.Neg(op.Add(a, x))}
		},
		"wider result":    func(x ir.Value) []ir.Value { return []ir.Value{op.Neg(op.Cast(op.Exp(x), ir.F64))} },
		"narrower result": func(x ir.Value) []ir.Value { return []ir.Value{op.Neg(op.Cast(op.Exp(x), ir.F16))} },
		"sum that is no chain": func(x ir.Value) []ir.Value {
			a, b := op.Exp(x), op.Neg(x)
			return []ir.Value{op.Add(op.Mul(a, b), op.Sub(a, b))}
		},
		"scatter": func(x ir.Value) []ir.Value {
			a := op.Exp(x)
			return []ir.Value{op.Neg(op.DynamicUpdateSlice(a, op.Narrow(a, 0, 0, 2), x.Graph().Constant(ir.Scalar(int64(1))), 0)), op.Neg(a)}
		},
		"scatter alone": func(x ir.Value) []ir.Value {
			a := op.Exp(x)
			return []ir.Value{op.Neg(op.DynamicUpdateSlice(a, op.Narrow(x, 0, 0, 2), x.Graph().Constant(ir.Scalar(int64(1))), 0))}
		},
		"update is a view": func(x ir.Value) []ir.Value {
			a := op.Exp(x)
			return []ir.Value{op.Neg(op.DynamicUpdateSlice(a, op.Reverse(op.Narrow(a, 0, 0, 2), 0), x.Graph().Constant(ir.Scalar(int64(1))), 0))}
		},
		"bytes of a broadcast": func(x ir.Value) []ir.Value { // f64[1] and bool[8] are eight bytes each
			a := op.Cast(op.Exp(op.Reshape(op.Narrow(op.Narrow(x, 0, 3, 1), 1, 2, 1), ir.D(1))), ir.F64)
			b := op.Cast(op.Reshape(op.Narrow(x, 0, 2, 2), ir.D(8)), ir.F64)
			return []ir.Value{op.Cast(op.Lt(a, op.Add(b, b)), ir.F32)}
		},
		"first part of a buffer, broadcast": func(x ir.Value) []ir.Value { // f32[1 2] begins a buffer as large as f32[2 2]
			a := op.Exp(op.Narrow(x, 0, 0, 1))
			return []ir.Value{op.Neg(op.Add(op.Narrow(a, 1, 0, 2), op.Narrow(op.Narrow(x, 0, 1, 2), 1, 0, 2)))}
		},
		"stop gradient": func(x ir.Value) []ir.Value {
			a := op.Exp(x)
			s := op.StopGradient(a)
			return []ir.Value{op.Neg(s), op.Exp(op.Neg(a)), s}
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := ir.NewGraph("g")
			for i, v := range f(g.Input("x", ir.F32, ir.Dims(4, 4))) {
				g.Output(fmt.Sprint(i), v)
			}
			check(t, g, map[string]*ir.Tensor{"x": numbers(-4, 4, 4)})
		})
	}
}

func TestOutputs(t *testing.T) {
	g := ir.NewGraph("g")
	x := g.Input("x", ir.F32, ir.Dims(2, 3))
	c := g.Constant(numbers(5, 2, 3))
	w := g.Param("w", numbers(9, 3))
	e := op.Exp(x)
	values, index := op.TopK(op.Neg(e), 2, 1, true)
	for i, v := range []ir.Value{x, x, c, w, e, e, op.Transpose(e, 1, 0), op.Transpose(x, 1, 0), op.Expand(w, ir.D(4), ir.D(3)), op.Reverse(c, 0, 1), values, index, index, op.Narrow(values, 1, 0, 0), c} {
		g.Output(fmt.Sprint(i), v)
	}
	check(t, g, map[string]*ir.Tensor{"x": numbers(-1, 2, 3)})
	// A result of which one is dead.
	g = ir.NewGraph("g")
	_, index = op.TopK(op.Exp(g.Input("x", ir.F32, ir.Dims(5))), 2, 0, true)
	g.Output("i", index)
	check(t, g, map[string]*ir.Tensor{"x": numbers(-1, 5)})
}

func TestZeroSize(t *testing.T) {
	g := ir.NewGraph("g")
	x := g.Input("x", ir.F32, ir.Dims(0, 3))
	y := g.Input("y", ir.F32, ir.Dims(2, 3))
	e := op.Exp(x)
	none := op.Narrow(op.Exp(y), 0, 2, 0) // begins where the buffer ends
	for i, v := range []ir.Value{e, op.Neg(op.Transpose(e, 1, 0)), op.Concat(0, e, y, x), op.Sum(e, 0), op.Neg(none), op.Reverse(none, 0), op.Reshape(none, ir.D(3), ir.D(0)), op.Add(op.Neg(none), 1),
		g.Constant(ir.New([]float32{}, 0, 7)), x, op.MatMul(op.Transpose(x, 1, 0), x)} {
		g.Output(fmt.Sprint(i), v)
	}
	check(t, g, map[string]*ir.Tensor{"x": numbers(0, 0, 3), "y": numbers(1, 2, 3)})
}

// Strided operands are copied once for a dense backend, however many read them.
func TestDenseCopies(t *testing.T) {
	g := ir.NewGraph("g")
	x := g.Input("x", ir.F32, ir.Dims(3, 4))
	r := op.Transpose(x, 1, 0)
	g.Output("a", op.Exp(r))
	g.Output("b", op.Neg(r))
	g.Output("c", op.Add(r, r))
	g.Output("d", op.Neg(op.Neg(r)))
	feed := map[string]*ir.Tensor{"x": numbers(-5, 3, 4)}
	check(t, g, feed)
	for name, want := range map[string]int{"dense": 1, "strided": 0} {
		p, err := Build(g, supports()[name], NewConstants(g))
		if err != nil {
			t.Fatal(err)
		}
		copies := 0
		for _, s := range p.Steps {
			if s.Command.Row == op.CopyRow() {
				copies++
			}
		}
		if copies != want {
			t.Errorf("%s: %d copies, expected %d\n%s", name, copies, want, dump(p))
		}
	}
	// A reshape that strides cannot express copies, on every backend.
	g = ir.NewGraph("g")
	x = g.Input("x", ir.F32, ir.Dims(3, 4))
	flat := op.Reshape(op.Transpose(x, 1, 0), ir.D(12))
	g.Output("y", op.Neg(flat))
	g.Output("z", op.Reshape(flat, ir.D(2), ir.D(6)))
	check(t, g, feed)
}

func TestPlaces(t *testing.T) {
	g := ir.NewGraph("g")
	x := g.Input("x", ir.F32, ir.Dims(3, 4))
	part := g.Within(op.Softmax(x, 1).Node(), func() []ir.Value { return []ir.Value{op.Exp(x)} })[0]
	v, _ := op.Sort(part, 1, false)
	g.Output("y", op.Neg(v))
	p, err := Build(g, supports()["mixed"], NewConstants(g))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range p.Steps {
		got = append(got, s.Command.Row.Name+":"+s.Place.String())
	}
	if want := "Activation:composed Softmax:host Sort:host Activation:native"; strings.Join(got, " ") != want {
		t.Errorf("got %s, expected %s", strings.Join(got, " "), want)
	}
}

func TestConstants(t *testing.T) {
	g := ir.NewGraph("g")
	shared, own := numbers(1, 2), numbers(3, 2)
	x := g.Input("x", ir.F32, ir.Dims(2))
	a := op.Add(x, g.Param("w", shared))
	base := NewConstants(g)
	if len(base.list) != 1 || base.list[0] != shared {
		t.Fatalf("got %v", base.list)
	}
	g.Output("y", op.Add(op.Mul(a, g.Constant(own)), g.Constant(own)))
	for range 2 { // the base stays as it is
		p, err := Build(g, supports()["strided"], base)
		if err != nil {
			t.Fatal(err)
		}
		if p.Base != 1 || len(p.Consts) != 2 || p.Consts[0] != shared || p.Consts[1] != own || len(p.Program.Consts) != 2 || len(base.list) != 1 {
			t.Errorf("base %d, constants %v", p.Base, p.Consts)
		}
	}
}

func TestErrors(t *testing.T) {
	for want, f := range map[string]func(g *ir.Graph){
		"shape [n] is not static": func(g *ir.Graph) { g.Output("y", op.Exp(g.Input("x", ir.F32, []ir.Dim{ir.Sym("n")}))) },
		"Param: has no tensor, expected one bound before Compile (node w)": func(g *ir.Graph) {
			g.Output("y", op.Exp(g.DeclareParam(ir.ParamAttrs{Name: "w", Dtype: ir.F32, Shape: ir.Dims(2)})))
		},
	} {
		g := ir.NewGraph("g")
		f(g)
		if _, err := Build(g, supports()["strided"], NewConstants(g)); err == nil || err.Error() != want {
			t.Errorf("got error %v, expected %s", err, want)
		}
	}
}

// Buffers of random sizes and lives never overlap, and the arena stays close to the bound that no arena can beat.
func TestArena(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 9))
	var peak, bound float64
	for range 300 {
		p := &planner{plan: &Plan{Steps: make([]Step, 60)}}
		for range 1 + r.IntN(80) {
			first := r.IntN(60)
			b := &buffer{bytes: []int64{0, 1, 64, 100, r.Int64N(5000), r.Int64N(100000)}[r.IntN(6)], first: first, end: min(59, first+r.IntN(1+r.IntN(20)))}
			p.arena = append(p.arena, b)
		}
		p.plan.Peak, p.plan.Bound = assign(p.arena)
		p.plan.Program.ArenaBytes = p.plan.Peak
		checkBuffers(t, p)
		most := int64(0)
		for step := range 60 {
			sum := int64(0)
			for _, b := range p.arena {
				if b.first <= step && step <= b.end {
					sum += (b.bytes + 63) / 64 * 64
				}
			}
			most = max(most, sum)
		}
		if p.plan.Bound != most {
			t.Fatalf("bound %d, expected %d", p.plan.Bound, most)
		}
		peak, bound = peak+float64(p.plan.Peak), bound+float64(most)
	}
	if peak > 1.1*bound {
		t.Errorf("arenas are %.2f times the bound", peak/bound)
	}
}

func randomTensor(r *rand.Rand, d ir.DType, shape ...int64) *ir.Tensor {
	x, _ := ir.Zeros(d, shape...)
	for i := range x.Len() {
		ir.PutFloat(d, x.Bytes(), i, float64(r.IntN(9))/2-2)
	}
	return x
}

// randomGraph grows by ops of every kind that planning tells apart: elementwise with and without broadcasting, views of views, several
// results, results in place, reductions, casts to other sizes, zero-length pieces; outputs are picked with repetition.
func randomGraph(r *rand.Rand, size int) (*ir.Graph, map[string]*ir.Tensor) {
	g, feed := ir.NewGraph("g"), map[string]*ir.Tensor{}
	var pool []ir.Value
	for i := range 2 {
		name := fmt.Sprint("x", i)
		shape := []int64{1 + r.Int64N(4), 1 + r.Int64N(5)}
		feed[name] = randomTensor(r, ir.F32, shape...)
		pool = append(pool, g.Input(name, ir.F32, ir.Dims(shape...)), g.Constant(randomTensor(r, ir.F32, shape...)))
	}
	pick := func() ir.Value { return pool[len(pool)-1-r.IntN(min(len(pool), 12))] }
	length := func(v ir.Value, axis int) int64 { n, _ := v.Dim(axis).Static(); return n }
	for len(pool) < size {
		v := pick()
		axis := r.IntN(2)
		n := length(v, axis)
		switch r.IntN(14) {
		case 0, 1:
			v = op.Neg(v)
		case 2:
			v = op.Max(v, 0.5)
		case 3:
			w := pick()
			if _, ok := ir.Broadcast(v.Shape(), w.Shape()); !ok {
				w = v
			}
			v = op.Add(v, w)
		case 4:
			v = op.Transpose(v, 1, 0)
		case 5:
			v = op.Reverse(v, axis)
		case 6:
			start := r.Int64N(n + 1)
			v = op.Narrow(v, axis, start, r.Int64N(n-start+1))
		case 7:
			v = op.Reshape(v, v.Dim(1).Mul(v.Dim(0)), ir.D(1))
		case 8:
			w, i := op.Sort(v, axis, r.IntN(2) == 0)
			pool = append(pool, op.Cast(i, ir.F32))
			v = w
		case 9:
			v = op.Sum(op.Cast(op.Cast(v, ir.F64), ir.F32), axis)
			v = op.Reshape(v, v.Dim(0), ir.D(1))
		case 10:
			if n*2 < 40 {
				v = op.Concat(axis, v, op.Sign(v))
			}
		case 11:
			if v.Dim(0).Is(1) {
				v = op.Expand(v, ir.D(3), v.Dim(1))
			}
		case 12:
			if n > 0 {
				v = op.DynamicUpdateSlice(v, op.Neg(op.Narrow(v, axis, 0, 1)), g.Constant(ir.Scalar(r.Int64N(n))), axis)
			}
		case 13:
			v = op.Where(op.Lt(v, 0.0), v, op.Neg(v))
		}
		pool = append(pool, v)
	}
	for i := range 5 {
		g.Output(fmt.Sprint("y", i), pick())
	}
	return g, feed
}

func TestRandomGraphs(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	var peak, bound float64
	inPlace := 0
	for i := range 400 {
		g, feed := randomGraph(r, 10+i%30)
		if err := g.Err(); err != nil {
			t.Fatal(err)
		}
		check(t, g, feed)
		p := strided(t, g, feed)
		peak, bound = peak+float64(p.Peak), bound+float64(p.Bound)
		for _, s := range p.Steps {
			for _, o := range s.Command.In {
				if out := s.Command.Out[0]; o.Slot == prog.Arena && out.Slot == prog.Arena && o.Offset == out.Offset && out.Count() > 0 {
					inPlace++
				}
			}
		}
	}
	if peak > 1.05*bound {
		t.Errorf("arenas are %.3f times the bound", peak/bound)
	}
	if inPlace < 500 {
		t.Errorf("only %d results went in place", inPlace)
	}
}
