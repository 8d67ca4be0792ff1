package abi

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/rlx-ml/rlx-go/cgo/vulkan"
	"github.com/rlx-ml/rlx-go/rlx/backend"
	"github.com/rlx-ml/rlx-go/rlx/internal/pass"
	"github.com/rlx-ml/rlx-go/rlx/internal/plan"
	"github.com/rlx-ml/rlx-go/rlx/internal/prog"
	_ "github.com/rlx-ml/rlx-go/rlx/internal/ref"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// controls are programs with sub-graphs: a While with emitted rows, captures and a constant in its body; a Scan with checkpoints, of which
// the body holds an If.
func controls(t testing.TB) []*plan.Plan {
	t.Helper()
	loop := ir.NewGraph("loop")
	x, n := loop.Input("x", ir.F32, ir.Dims(3)), loop.Input("n", ir.I64, nil)
	out := op.While([]ir.Value{x, loop.Constant(ir.Scalar(int64(0)))}, []ir.Value{n},
		func(_ *ir.Graph, c, k []ir.Value) ir.Value { return op.Lt(c[1], k[0]) },
		func(g *ir.Graph, c, _ []ir.Value) []ir.Value {
			w := g.Constant(ir.New([]float32{1, 2, 3}, 3))
			return []ir.Value{op.Mul(c[0], w), op.Add(c[1], 1), op.Reshape(c[0], ir.D(1), ir.D(3))}
		}, op.WhileOptions{Bounded: true, MaxTrips: 40, NumEmits: 1})
	loop.Output("x", out[0])
	loop.Output("rows", out[2])
	loop.Output("last", op.Neg(out[0]))

	walk := ir.NewGraph("walk")
	a, p, xs := walk.Input("a", ir.F32, ir.Dims(2)), walk.Input("p", ir.Bool, nil), walk.Input("xs", ir.F32, ir.Dims(3, 2))
	out = op.Scan([]ir.Value{a}, []ir.Value{p}, []ir.Value{xs}, func(_ *ir.Graph, c, k, x []ir.Value) []ir.Value {
		y := op.If(k[0], []ir.Value{c[0], x[0]}, func(_ *ir.Graph, in []ir.Value) []ir.Value { return []ir.Value{op.Add(in[0], in[1])} },
			func(_ *ir.Graph, in []ir.Value) []ir.Value { return in[:1] })
		return []ir.Value{y[0], x[0]}
	}, op.ScanOptions{Checkpoints: 2, Reverse: true})
	for i, v := range out {
		walk.Output(fmt.Sprint("y", i), v)
	}

	return plansOf(t, loop, walk)
}

// regions is a program with regions of most kinds over m rows of n: their chains keep values, turn and call, and read constants and operands of one
// value, of one for each row and of one row.
func regions(t testing.TB, m, n int64) *plan.Plan {
	t.Helper()
	g := ir.NewGraph("regions")
	x, row, one, col := g.Input("x", ir.F32, ir.Dims(m, n)), g.Input("row", ir.F32, ir.Dims(m, 1)), g.Input("one", ir.F32, nil), g.Input("col", ir.F32, ir.Dims(n))
	body := ir.SubGraph("body", 4, func(g *ir.Graph, in []ir.Value) []ir.Value {
		a := op.Mul(op.Sub(in[1], in[0]), in[2])
		b := op.Exp(op.Add(a, g.Constant(ir.Scalar(float32(0.5)))))
		c := op.Add(op.Mul(in[3], b), a)
		return []ir.Value{op.Relu(op.Cast(op.Cast(c, ir.F64), ir.F32)), a}
	})
	sums := ir.SubGraph("sums", 2, func(_ *ir.Graph, in []ir.Value) []ir.Value { return []ir.Value{op.Mul(op.Cast(in[0], ir.F32), in[1])} })
	last := ir.SubGraph("last", 4, func(_ *ir.Graph, in []ir.Value) []ir.Value {
		return []ir.Value{op.Add(op.Mul(in[0], in[1]), op.Sub(in[3], in[2]))}
	})
	out := op.ElementwiseRegion(g, op.ElementwiseRegionAttrs{Body: body}, x, row, one, col)
	out = append(out, op.BatchElementwiseRegion(g, op.BatchElementwiseRegionAttrs{Body: last, NumBatch: 2}, x, x, row, one, col)...)
	out = append(out, op.ReduceRegion(op.ReduceRegionAttrs{Body: last, Fn: "sum", Axes: []int{1}}, x, row, one, col))
	out = append(out, op.MatMulRegion(op.MatMulRegionAttrs{Body: body}, x, g.Input("b", ir.F32, ir.Dims(n, n)), row, one, col)...)
	out = append(out, op.QMatMulRegion(op.QMatMulRegionAttrs{Body: sums}, g.Input("p", ir.I8, ir.Dims(m, 8)), g.Input("q", ir.I8, ir.Dims(8, n)), col)...)
	for i, v := range out {
		g.Output(fmt.Sprint("y", i), v)
	}
	if err := g.Err(); err != nil {
		t.Fatal(err)
	}
	return plansOf(t, g)[0]
}

// plansOf plans each graph as it stands, with a command for each node.
func plansOf(t testing.TB, graphs ...*ir.Graph) []*plan.Plan {
	t.Helper()
	var list []*plan.Plan
	for _, g := range graphs {
		symbols := map[string]int64{}
		for _, o := range g.Outputs {
			for _, s := range o.Value.Measured() {
				symbols[s] = 4
			}
		}
		bound, err := g.Bind(symbols)
		if err != nil {
			t.Fatal(err)
		}
		b, err := backend.Lookup("ref")
		if err != nil {
			t.Fatal(err)
		}
		p, err := plan.Build(bound, pass.NewSupport("ref", b.Caps(), nil), plan.NewConstants(bound))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range p.Steps {
			p.Program.Commands = append(p.Program.Commands, s.Command)
		}
		list = append(list, p)
	}
	return list
}

// loaders are the devices that read words: those that this build has.
func loaders(t testing.TB) map[string]backend.Device {
	t.Helper()
	list := map[string]backend.Device{}
	for _, name := range backend.Names() {
		b, err := backend.Lookup(name)
		if err != nil || b.Check() != nil {
			continue
		}
		d, err := b.Open(0, backend.Options{Threads: 1})
		if err != nil {
			continue
		}
		t.Cleanup(func() {
			if err := d.Close(); err != nil {
				t.Error(name, err)
			}
		})
		list[name] = d
	}
	return list
}

func weightsOf(t testing.TB, d backend.Device, p *plan.Plan) backend.Weights {
	t.Helper()
	var data [][]byte
	for _, c := range p.Consts {
		data = append(data, c.Bytes())
	}
	w, err := d.Weights(nil, data)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// tryRun loads hostile words and runs what was loaded, for a moment: with memory of the sizes that the words say, an error or an end.
func tryRun(t *testing.T, d backend.Device, w backend.Weights, words []uint32, most int64) {
	t.Helper()
	np, err := d.Load(w, words)
	if err != nil {
		var e *backend.Error
		if !errors.As(err, &e) || e.Text == "" || e.Code != backend.BadWords && e.Code != backend.Unsupported && e.Code != backend.NoMemory {
			t.Errorf("got error %v", err)
		}
		return
	}
	defer func() {
		if err := np.Close(); err != nil {
			t.Error(err)
		}
	}()
	p, err := prog.Decode(words)
	if err != nil { // a native loader leaves the relations between shapes to the compiler
		return
	}
	args := &backend.RunArgs{Count: len(p.Commands)}
	total := np.ArenaBytes() + bodyBytes(p)
	for _, l := range []struct {
		types []prog.Type
		to    *[][]byte
	}{{p.Inputs, &args.Inputs}, {p.Outputs, &args.Outputs}, {p.States, &args.States}} {
		for _, x := range l.types {
			n, _ := x.Bytes()
			if total += n; n > most || total > most {
				return
			}
			*l.to = append(*l.to, make([]byte, n))
		}
	}
	a, err := np.NewArena()
	if err != nil {
		return
	}
	defer a.Close()
	args.Arena = a
	set := make(chan struct{})
	stop := time.AfterFunc(2*time.Millisecond, func() { a.Cancel().Set(); close(set) })
	_ = np.Run(args)
	if !stop.Stop() {
		<-set // an arena is closed behind all that uses it
	}
}

// bodyBytes is what the bodies of p say that their arenas need.
func bodyBytes(p *prog.Program) int64 {
	sum := int64(0)
	for _, c := range p.Commands {
		for _, b := range c.Bodies {
			sum = max(sum, b.ArenaBytes, bodyBytes(b))
		}
	}
	return sum
}

// TestHostileBodies: words with sub-graphs, cut anywhere or changed, never crash a loader nor, where they are loaded, a run.
func TestHostileBodies(t *testing.T) {
	r := rand.New(rand.NewSource(7))
	values := []uint32{0, 3, 0x7fffffff, 0xffffffff}
	for name, dev := range loaders(t) {
		for _, p := range append(controls(t), regions(t, 6, 16)) {
			w := weightsOf(t, dev, p)
			before := dev.NativeBytes()
			good := encode(t, &p.Program)
			try := func(bad []uint32) { tryRun(t, dev, w, bad, 1<<16) }
			try(good)
			for n := range good {
				try(good[:n])
				bad := slices.Clone(good)
				bad[n] = values[r.Intn(len(values))]
				try(bad)
			}
			for range 500 {
				bad := slices.Clone(good)
				for range 1 + r.Intn(3) {
					n := 4 + r.Intn(len(bad)-4)
					switch r.Intn(3) {
					case 0:
						bad[n] = values[r.Intn(len(values))]
					case 1:
						bad[n] ^= 1 << r.Intn(32)
					default:
						bad[n] = bad[r.Intn(len(bad))]
					}
				}
				try(bad)
			}
			if after := dev.NativeBytes(); after != before {
				t.Errorf("%s: %d bytes are held, %d were before", name, after, before)
			}
		}
	}
}

// TestRegionsAtOnce: runs of one program share what it keeps of its regions, whatever their threads: each gives the bits of a run alone on one.
func TestRegionsAtOnce(t *testing.T) {
	const threads, runs = 4, 20
	dev := open(t, backend.Options{Threads: threads})
	p := regions(t, 211, 96)
	np, err := dev.Load(weightsOf(t, dev, p), encode(t, &p.Program))
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewSource(3))
	var in [][]byte
	for _, x := range p.Program.Inputs {
		v, err := ir.Zeros(x.DType, x.Dims...)
		if err != nil {
			t.Fatal(err)
		}
		for i := range v.Len() {
			if x.DType == ir.F32 {
				ir.PutFloat(x.DType, v.Bytes(), i, r.NormFloat64())
			} else {
				ir.PutInt(x.DType, v.Bytes(), i, int64(r.Intn(255)-127))
			}
		}
		in = append(in, v.Bytes())
	}
	run := func(a backend.Arena, threads int) ([][]byte, error) {
		args := &backend.RunArgs{Count: len(p.Program.Commands), Inputs: in, Arena: a, Threads: threads}
		for _, x := range p.Program.Outputs {
			n, _ := x.Bytes()
			args.Outputs = append(args.Outputs, make([]byte, n))
		}
		return args.Outputs, np.Run(args)
	}
	errs := make([]error, threads)
	arenas := make([]backend.Arena, threads)
	for i := range arenas {
		if arenas[i], err = np.NewArena(); err != nil {
			t.Fatal(err)
		}
	}
	want, err := run(arenas[0], 1)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i, a := range arenas {
		all.Go(func() {
			for k := range runs {
				got, err := run(a, 1+(i+k)%threads)
				for j := range want {
					if err == nil && !bytes.Equal(got[j], want[j]) {
						err = fmt.Errorf("output %d on %d threads has other bits", j, 1+(i+k)%threads)
					}
				}
				errs[i] = errors.Join(errs[i], err)
			}
		})
	}
	all.Wait()
	for i, a := range arenas {
		if err := errors.Join(errs[i], a.Close()); err != nil {
			t.Error(err)
		}
	}
	if err := np.Close(); err != nil {
		t.Error(err)
	}
}

// lies are changes that keep every operand inside its memory, so that only a comparison of a command with its bodies finds them.
var lies = map[string]struct {
	of int // number of the program in controls
	do func(c *prog.Command)
}{
	"a longer input of a body":   {0, func(c *prog.Command) { c.Bodies[1].Inputs[0].Dims = []int64{4} }},
	"an input too many":          {0, func(c *prog.Command) { c.Bodies[0].Inputs = append(c.Bodies[0].Inputs, c.Bodies[0].Inputs[0]) }},
	"an output too many":         {0, func(c *prog.Command) { c.Bodies[1].Outputs = append(c.Bodies[1].Outputs, c.Bodies[1].Outputs[0]) }},
	"a longer carry":             {0, func(c *prog.Command) { c.Bodies[1].Outputs[0].Dims = []int64{5} }},
	"a longer row":               {0, func(c *prog.Command) { c.Bodies[1].Outputs[2].Dims = []int64{2, 3} }},
	"a condition of two":         {0, func(c *prog.Command) { c.Bodies[0].Outputs[0].Dims = []int64{2} }},
	"bodies in the other order":  {0, func(c *prog.Command) { slices.Reverse(c.Bodies) }},
	"more carries than operands": {0, func(c *prog.Command) { whileAttrs(c).NumCarries = number(1 << 40) }},
	"a carry less":               {0, func(c *prog.Command) { whileAttrs(c).NumCarries = number(1) }},
	"a capture that is carried":  {0, func(c *prog.Command) { whileAttrs(c).NumCarries = number(3) }},
	"negative carries":           {0, func(c *prog.Command) { whileAttrs(c).NumCarries = number(-1) }},
	"no emitted values":          {0, func(c *prog.Command) { whileAttrs(c).NumEmits = 0 }},
	"many emitted values":        {0, func(c *prog.Command) { whileAttrs(c).NumEmits = 1 << 62 }},
	"a shorter scanned operand":  {1, func(c *prog.Command) { c.In[2].Dims = []int64{2, 2} }},
	"another length":             {1, func(c *prog.Command) { scanAttrs(c).Length = number(1 << 62) }},
	"more captures":              {1, func(c *prog.Command) { scanAttrs(c).NumCaptures = 2 }},
	"captures that overflow":     {1, func(c *prog.Command) { scanAttrs(c).NumCaptures = 1<<63 - 1 }},
	"no carries":                 {1, func(c *prog.Command) { scanAttrs(c).NumCarries = 0 }},
	"more checkpoints":           {1, func(c *prog.Command) { scanAttrs(c).NumCheckpoints = 3 }},
	"no checkpoints":             {1, func(c *prog.Command) { scanAttrs(c).NumCheckpoints = 0 }},
	"a row that is longer":       {1, func(c *prog.Command) { c.Bodies[0].Inputs[2].Dims = []int64{3} }},
	"a branch of other results":  {1, func(c *prog.Command) { branches(c)[0].Outputs[0].Dims = []int64{3} }},
	"a branch of other captures": {1, func(c *prog.Command) { branches(c)[1].Inputs[1].Dims = []int64{1, 2, 2} }},
	"a branch without a capture": {1, func(c *prog.Command) { branches(c)[1].Inputs = branches(c)[1].Inputs[:1] }},
}

func number(n int64) *int64 { return &n }

func whileAttrs(c *prog.Command) *op.WhileAttrs {
	own := *c.Attrs.(*op.WhileAttrs)
	c.Attrs = &own
	return &own
}

func scanAttrs(c *prog.Command) *op.ScanAttrs {
	own := *c.Attrs.(*op.ScanAttrs)
	c.Attrs = &own
	return &own
}

// branches are those of the If in the body of a Scan.
func branches(c *prog.Command) []*prog.Program {
	for _, in := range c.Bodies[0].Commands {
		if len(in.Bodies) == 2 {
			return in.Bodies
		}
	}
	return nil
}

// TestLyingBodies: each lie is refused by every loader.
func TestLyingBodies(t *testing.T) {
	for name, dev := range loaders(t) {
		for lie, l := range lies {
			p := controls(t)[l.of]
			i := slices.IndexFunc(p.Program.Commands, func(c prog.Command) bool { return len(c.Bodies) > 0 })
			l.do(&p.Program.Commands[i])
			words, err := prog.Encode(&p.Program)
			if err != nil {
				t.Errorf("%s: %v", lie, err)
				continue
			}
			np, err := dev.Load(weightsOf(t, dev, p), words)
			if c := code(err); c != backend.BadWords && c != backend.Unsupported {
				t.Errorf("%s: %s: loaded as %v, error %v", name, lie, np, err)
			}
		}
	}
}

// TestHugeRows: rows that no memory holds, of stacks without rows, are refused; their sizes together do not wrap around.
func TestHugeRows(t *testing.T) {
	const stacks, length = 16, 12345 // a number to find in the words: it becomes 2^57, of f64, so that all have 2^64 bytes together
	scalar, flag := prog.Type{DType: ir.F64}, prog.Type{DType: ir.Bool}
	x, p := whole(prog.Input, 0, ir.F64), whole(prog.Input, 1, ir.Bool)
	cond := &prog.Program{Inputs: []prog.Type{scalar, flag}, Outputs: []prog.Type{flag}, Commands: []prog.Command{copyCommand(t, whole(prog.Output, 0, ir.Bool), p)}}
	body := &prog.Program{Inputs: cond.Inputs, Outputs: []prog.Type{scalar}, Commands: []prog.Command{copyCommand(t, whole(prog.Output, 0, ir.F64), x)}}
	row, err := ir.RowByName("While")
	if err != nil {
		t.Fatal(err)
	}
	c := prog.Command{Row: row, In: []prog.Operand{x, p}, Out: []prog.Operand{whole(prog.Output, 0, ir.F64)}, Bodies: []*prog.Program{cond, body}}
	around := &prog.Program{Inputs: cond.Inputs, Outputs: []prog.Type{scalar}}
	for i := range stacks {
		body.Outputs = append(body.Outputs, prog.Type{DType: ir.F64, Dims: []int64{length}})
		wide := x
		wide.Dims, wide.Strides = []int64{length}, []int64{0}
		body.Commands = append(body.Commands, copyCommand(t, whole(prog.Output, 1+i, ir.F64, length), wide))
		around.Outputs = append(around.Outputs, prog.Type{DType: ir.F64, Dims: []int64{0, length}})
		c.Out = append(c.Out, whole(prog.Output, 1+i, ir.F64, 0, length))
	}
	around.Outputs = append(around.Outputs, prog.Type{DType: ir.I64})
	c.Out = append(c.Out, whole(prog.Output, 1+stacks, ir.I64))
	face := ir.Face(nil, nil)
	c.Attrs = &op.WhileAttrs{Cond: face, Body: face, NumCarries: number(1), MaxTrips: -1, NumEmits: stacks, Capacity: ir.Dims(0)}
	around.Commands = []prog.Command{c}
	words := encode(t, around)
	for i, w := range words {
		if w == length {
			words[i], words[i+1] = 0, 1<<(57-32)
		}
	}
	for name, dev := range loaders(t) {
		np, err := dev.Load(nil, words)
		if c := code(err); c != backend.BadWords && c != backend.NoMemory && c != backend.Unsupported {
			t.Errorf("%s: loaded as %v, error %v", name, np, err)
		}
	}
}

// nested are words of Ifs around one another, so many deep: y = x, if x, or x.
func nested(t *testing.T, depth int) []uint32 {
	t.Helper()
	flag := whole(prog.Input, 0, ir.Bool)
	types := []prog.Type{{DType: ir.Bool}}
	leaf := &prog.Program{Inputs: types, Outputs: types, Commands: []prog.Command{copyCommand(t, whole(prog.Output, 0, ir.Bool), flag)}}
	row, err := ir.RowByName("If")
	if err != nil {
		t.Fatal(err)
	}
	g := ir.Face([]ir.Type{{DType: ir.Bool}}, []ir.Type{{DType: ir.Bool}})
	around := encode(t, &prog.Program{Inputs: types, Outputs: types, Commands: []prog.Command{{Row: row, Attrs: &op.IfAttrs{ThenBranch: g, ElseBranch: g},
		Out: []prog.Operand{whole(prog.Output, 0, ir.Bool)}, In: []prog.Operand{flag, flag}, Bodies: []*prog.Program{leaf, leaf}}}})
	at := 1 + slices.Index(around[1:], around[0]) // the branch, behind its length
	const command = 11 + 2
	words := encode(t, leaf)
	for range depth {
		size := len(words) - int(around[at-1])
		words = slices.Concat(around[:at], words, around[at+int(around[at-1]):])
		words[at-1] += uint32(size)
		words[command+1] += uint32(size)
	}
	return words
}

// TestDeepBodies: every loader takes 32 sub-graphs around one another, and refuses more, however many.
func TestDeepBodies(t *testing.T) {
	for name, dev := range loaders(t) {
		for _, depth := range []int{1, 32, 33, 200} {
			np, err := dev.Load(nil, nested(t, depth))
			if depth > 32 {
				if code(err) != backend.BadWords || !strings.Contains(err.Error(), "deeper than 32") {
					t.Errorf("%s: %d deep: %v", name, depth, err)
				}
				continue
			}
			if code(err) == backend.Unsupported { // a device that has its control flow staged
				continue
			}
			if err != nil {
				t.Errorf("%s: %d deep: %v", name, depth, err)
				continue
			}
			for _, x := range []byte{0, 1} {
				a, err := np.NewArena()
				if err != nil {
					t.Fatal(err)
				}
				out := []byte{7}
				if err := errors.Join(np.Run(&backend.RunArgs{Count: 1, Inputs: [][]byte{{x}}, Outputs: [][]byte{out}, Arena: a}), a.Close()); err != nil || out[0] != x {
					t.Errorf("%s: %d deep: got %d, expected %d, error %v", name, depth, out[0], x, err)
				}
			}
			if err := np.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestForeignBodies: a body has no constants nor states of its own, and no staged command.
func TestForeignBodies(t *testing.T) {
	words := nested(t, 2)
	body := 1 + slices.Index(words[1:], words[0])
	for name, dev := range loaders(t) {
		for what, change := range map[string]func(w []uint32){
			"a constant":             func(w []uint32) { w[body+8]++ },
			"a state":                func(w []uint32) { w[body+9]++ },
			"an input less":          func(w []uint32) { w[body+6]-- },
			"a staged command":       func(w []uint32) { w[body+11+2] |= 1 << 31 },
			"a command that is huge": func(w []uint32) { w[body+11+2+1] = 0xffffffff },
			"a body that is huge":    func(w []uint32) { w[body-1] = 0xfffffffe },
			"a constant that is not there": func(w []uint32) {
				w[body+11+2+3+4] = uint32(ir.Bool) | uint32(prog.Const)<<16
			},
			"a body too short":     func(w []uint32) { w[body-1]-- },
			"no body":              func(w []uint32) { w[body-1] = 0xffffffff },
			"an arena without end": func(w []uint32) { w[body+5] = 0x7fffffff },
		} {
			bad := slices.Clone(words)
			change(bad)
			if _, err := dev.Load(nil, bad); code(err) != backend.BadWords {
				t.Errorf("%s: %s: %v", name, what, err)
			}
		}
	}
}
