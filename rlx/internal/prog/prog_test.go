package prog_test

import (
	"errors"
	"flag"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx/internal/prog"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// builder makes commands whose rows infer the results.
type builder struct {
	t *testing.T
	r *rand.Rand
	p *prog.Program
}

// place puts a tensor of type t into a slot, with strides that may be reversed or padded where strided is set.
func (b *builder) place(d ir.DType, dims []int64, slot prog.Slot, strided bool) prog.Operand {
	o := prog.Operand{DType: d, Dims: dims, Strides: prog.Contiguous(dims), Slot: slot}
	elems := int64(1) // elements from the first to the last that o may touch
	if strided {
		for i := len(dims) - 1; i >= 0; i-- {
			switch o.Strides[i] = elems; b.r.IntN(4) {
			case 0: // every second
				o.Strides[i] *= 2
			case 1:
				o.Strides[i] = 0
			}
			if dims[i] > 1 {
				elems += (dims[i] - 1) * o.Strides[i]
			}
			if b.r.IntN(4) == 0 && dims[i] > 0 { // from the end
				o.Offset += (dims[i] - 1) * o.Strides[i]
				o.Strides[i] = -o.Strides[i]
			}
		}
	} else {
		for _, n := range dims {
			elems *= n
		}
	}
	o.Offset *= int64(d.Size())
	if slices.Contains(dims, 0) {
		o.Offset = 0
	}
	need := elems * int64(d.Size())
	if slot == prog.Arena {
		at := (b.p.ArenaBytes + 7) / 8 * 8
		o.Offset += at
		b.p.ArenaBytes = at + need
		return o
	}
	list := map[prog.Slot]*[]prog.Type{prog.Input: &b.p.Inputs, prog.Output: &b.p.Outputs, prog.Const: &b.p.Consts, prog.State: &b.p.States}[slot]
	o.Index = len(*list)
	*list = append(*list, prog.Type{DType: d, Dims: []int64{elems}})
	return o
}

// command appends a node's command: operands in any slot, results in writable ones.
func (b *builder) command(n *ir.Node) {
	c := prog.Command{Row: n.Row, Attrs: n.Attrs, Staged: b.r.IntN(3) == 0}
	for _, v := range n.In {
		if v.IsZero() {
			c.In = append(c.In, prog.Operand{Absent: true})
			continue
		}
		dims, _ := ir.StaticShape(v.Shape())
		c.In = append(c.In, b.place(v.DType(), dims, prog.Slot(b.r.IntN(5)), b.r.IntN(2) == 0))
	}
	for _, t := range n.Types {
		dims, _ := ir.StaticShape(t.Shape)
		c.Out = append(c.Out, b.place(t.DType, dims, []prog.Slot{prog.Arena, prog.Output, prog.State}[b.r.IntN(3)], false))
	}
	b.p.Commands = append(b.p.Commands, c)
}

// randomProgram has commands of many kinds of rows: with absent operands, several results, every kind of attribute.
func randomProgram(t *testing.T, r *rand.Rand, n int) *prog.Program {
	t.Helper()
	b := &builder{t, r, &prog.Program{}}
	d := func() int64 { return r.Int64N(4) }
	for range n {
		g := ir.NewGraph("g")
		x := g.Input("x", []ir.DType{ir.F16, ir.BF16, ir.F32, ir.F64}[r.IntN(4)], ir.Dims(2, 1+d(), 2+d()))
		var v ir.Value
		switch r.IntN(12) {
		case 0:
			v = op.Exp(x)
		case 1:
			v = op.Add(x, g.Input("y", x.DType(), []ir.Dim{ir.D(1), x.Dim(2)}))
		case 2:
			v, _ = op.TopK(x, 1, -1, r.IntN(2) == 0)
		case 3:
			v = op.LayerNorm(x, g.Input("gamma", x.DType(), []ir.Dim{x.Dim(2)}), ir.Value{}, -1, 1e-5)
		case 4:
			v = op.Pad(x, ir.Dims(0, d(), 1, d(), 0, 2), "constant", ir.FloatNumber(math.Copysign(0, -1)))
		case 5:
			v = op.Reduce(x, "mean", []int{0, -1}, true)
		case 6:
			v = op.Slice(x, ir.Dims(-1, 0), ir.Dims(math.MinInt64, math.MaxInt64), []int{0, 2}, []int64{-1, 2})
		case 7:
			v = op.Concat(1, x, x, g.Input("y", x.DType(), []ir.Dim{ir.D(2), ir.D(d()), x.Dim(2)}))
		case 8:
			v = op.Conv(g.Input("image", ir.F32, ir.Dims(1, 2, 5, 6)), g.Input("w", ir.F32, ir.Dims(3, 2, 3, 1)), op.ConvAttrs{Padding: []int64{1, 0, 1, 0}})
		case 9:
			v = op.Cast(x, ir.U8)
		case 10:
			v = op.Tile(x, ir.Dims(1, d(), 2)...)
		default:
			v = op.Where(g.Input("c", ir.Bool, ir.Dims(1)), x, 0.5)
		}
		if err := g.Err(); err != nil {
			t.Fatal(err)
		}
		b.command(v.Node())
	}
	return b.p
}

func encode(t *testing.T, p *prog.Program) []uint32 {
	t.Helper()
	w, err := prog.Encode(p)
	if err != nil {
		t.Fatalf("%v\n%s", err, p)
	}
	return w
}

func TestRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for i := range 400 {
		p := randomProgram(t, r, 1+i%6)
		w := encode(t, p)
		back, err := prog.Decode(w)
		if err != nil {
			t.Fatalf("%v\n%s", err, p)
		}
		if back.String() != p.String() || !slices.Equal(encode(t, back), w) {
			t.Fatalf("got\n%s\nexpected\n%s", back, p)
		}
		for n := range w {
			if _, err := prog.Decode(w[:n]); err == nil {
				t.Fatalf("%d of %d words are enough for\n%s", n, len(w), p)
			}
		}
		if _, err := prog.Decode(append(slices.Clone(w), 0)); err == nil {
			t.Fatal("a word too many is accepted")
		}
	}
}

// Words of which some are changed give an error, or a program that keeps every rule.
func TestMutations(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	accepted := 0
	for range 4000 {
		w := encode(t, randomProgram(t, r, 1+r.IntN(3)))
		for range 1 + r.IntN(2) {
			at := r.IntN(len(w))
			w[at] = []uint32{0, 1, w[at] + 1, w[at] - 1, w[at] ^ 1<<r.IntN(32), math.MaxUint32, 1 << 31, math.MaxInt32, r.Uint32()}[r.IntN(9)]
		}
		p, err := prog.Decode(w)
		if err != nil {
			var we *prog.WordsError
			if !errors.As(err, &we) || we.Word < 0 || we.Word > len(w) {
				t.Fatalf("error %#v", err)
			}
			continue
		}
		accepted++
		if err := p.Validate(); err != nil {
			t.Fatalf("%v\n%s", err, p)
		}
		if again, err := prog.Decode(encode(t, p)); err != nil || again.String() != p.String() {
			t.Fatalf("%v\n%s", err, p)
		}
	}
	if accepted == 0 || accepted == 4000 {
		t.Errorf("%d of 4000 were accepted", accepted)
	}
}

// What a count claims is not allocated before it is there.
func TestClaimedCounts(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	w := encode(t, randomProgram(t, r, 3))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	n := 0
	for at := range w {
		for _, v := range []uint32{math.MaxUint32, math.MaxUint32 - 1, math.MaxInt32, 0xffff0000, 1 << 20, uint32(len(w))} {
			x := slices.Clone(w)
			x[at] = v
			prog.Decode(x)
			n++
		}
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / uint64(n); each > 64<<10 {
		t.Errorf("decoding %d words allocates %d bytes", len(w), each)
	}
}

func TestValidate(t *testing.T) {
	neg := func() (*prog.Program, *prog.Command) {
		g := ir.NewGraph("g")
		n := op.Neg(g.Input("x", ir.F32, ir.Dims(2, 3))).Node()
		dims := []int64{2, 3}
		p := &prog.Program{ArenaBytes: 64, Inputs: []prog.Type{{DType: ir.F32, Dims: dims}}, Outputs: []prog.Type{{DType: ir.F32, Dims: dims}, {DType: ir.I32, Dims: dims}},
			Consts: []prog.Type{{DType: ir.F32, Dims: dims}}}
		p.Commands = []prog.Command{{Row: n.Row, Attrs: n.Attrs,
			In:  []prog.Operand{{DType: ir.F32, Dims: dims, Strides: []int64{3, 1}, Slot: prog.Input}},
			Out: []prog.Operand{{DType: ir.F32, Dims: dims, Strides: []int64{3, 1}, Slot: prog.Output}}}}
		return p, &p.Commands[0]
	}
	leaf, err := ir.RowByName("Input")
	if err != nil {
		t.Fatal(err)
	}
	for want, plant := range map[string]func(p *prog.Program, c *prog.Command){
		"":                                 func(*prog.Program, *prog.Command) {},
		"arena of -1 bytes":                func(p *prog.Program, c *prog.Command) { p.ArenaBytes = -1 },
		"arena of 4611686018427387904":     func(p *prog.Program, c *prog.Command) { p.ArenaBytes = 1 << 62 },
		"input 0: tensor of shape [-1]":    func(p *prog.Program, c *prog.Command) { p.Inputs[0].Dims = []int64{-1} },
		"output 0: tensor: got invalid":    func(p *prog.Program, c *prog.Command) { p.Outputs[0].DType = 0 },
		"has no op":                        func(p *prog.Program, c *prog.Command) { c.Row = nil },
		"a leaf is not a command":          func(p *prog.Program, c *prog.Command) { c.Row = leaf },
		"result 0: absent":                 func(p *prog.Program, c *prog.Command) { c.Out[0] = prog.Operand{Absent: true} },
		"result 0: expected contiguous":    func(p *prog.Program, c *prog.Command) { c.Out[0].Strides = []int64{1, 2} },
		"result 0: writes to input 0":      func(p *prog.Program, c *prog.Command) { c.Out[0].Slot = prog.Input },
		"result 0: writes to const 0":      func(p *prog.Program, c *prog.Command) { c.Out[0].Slot = prog.Const },
		"result 0: output 1 has dtype":     func(p *prog.Program, c *prog.Command) { c.Out[0].Index = 1 },
		"result 0: output 2, there are":    func(p *prog.Program, c *prog.Command) { c.Out[0].Index = 2 },
		"operand 0: input -1, there are":   func(p *prog.Program, c *prog.Command) { c.In[0].Index = -1 },
		"operand 0: slot(9) 0":             func(p *prog.Program, c *prog.Command) { c.In[0].Slot = 9 },
		"operand 0: arena 1, there is":     func(p *prog.Program, c *prog.Command) { c.In[0].Slot, c.In[0].Index = prog.Arena, 1 },
		"operand 0: bytes 0 to 28":         func(p *prog.Program, c *prog.Command) { c.In[0].Strides = []int64{4, 1} },
		"operand 0: bytes -12 to 12":       func(p *prog.Program, c *prog.Command) { c.In[0].Strides = []int64{-3, 1} },
		"operand 0: bytes 4 to 28":         func(p *prog.Program, c *prog.Command) { c.In[0].Offset = 4 },
		"operand 0: offset 2 is no":        func(p *prog.Program, c *prog.Command) { c.In[0].Offset, c.In[0].Strides = 2, []int64{0, 1} },
		"operand 0: rank 2 with 1":         func(p *prog.Program, c *prog.Command) { c.In[0].Strides = []int64{1} },
		"operand 0: bytes":                 func(p *prog.Program, c *prog.Command) { c.In[0].Strides = []int64{math.MaxInt64, math.MaxInt64} },
		"operand 0: tensor: got dtype(99)": func(p *prog.Program, c *prog.Command) { c.In[0].DType = 99 },
		"70000 operands":                   func(p *prog.Program, c *prog.Command) { c.In = make([]prog.Operand, 70000) },
	} {
		p, c := neg()
		plant(p, c)
		_, err := prog.Encode(p)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("got error %v, expected %q", err, want)
		}
	}
	// Strides that stay inside are legal, whatever their signs.
	p, c := neg()
	c.In[0].Strides, c.In[0].Offset = []int64{-3, -1}, 20
	encode(t, p)
	c.In[0].Strides, c.In[0].Offset = []int64{0, 0}, 20
	encode(t, p)
	// Decoding holds results against the row, which Encode leaves to the planner.
	c.Out[0].Dims, c.Out[0].Strides = []int64{3, 2}, []int64{2, 1}
	if _, err := prog.Decode(encode(t, p)); err == nil || !strings.Contains(err.Error(), "result 0 is f32[3, 2], expected f32[2, 3]") {
		t.Errorf("got error %v", err)
	}
}

func TestContiguous(t *testing.T) {
	for _, tc := range []struct {
		dims, strides []int64
		want          bool
	}{
		{nil, nil, true}, {[]int64{3}, []int64{1}, true}, {[]int64{3}, []int64{2}, false}, {[]int64{1}, []int64{7}, true}, {[]int64{2, 3}, []int64{3, 1}, true},
		{[]int64{2, 3}, []int64{1, 2}, false}, {[]int64{2, 1, 3}, []int64{3, 0, 1}, true}, {[]int64{2}, []int64{-1}, false}, {[]int64{2}, []int64{0}, false},
		{[]int64{0, 3}, []int64{1, 5}, true}, {[]int64{3, 0}, []int64{-7, 5}, true},
	} {
		if got := (prog.Operand{Dims: tc.dims, Strides: tc.strides}).IsContiguous(); got != tc.want {
			t.Errorf("dims %v strides %v: got %v", tc.dims, tc.strides, got)
		}
	}
	if got := prog.Contiguous([]int64{2, 0, 3}); !slices.Equal(got, []int64{3, 3, 1}) {
		t.Errorf("got %v", got)
	}
}

var update = flag.Bool("update", false, "write testdata/golden.txt anew")

// The dump of a small program, with an operand of every slot, is the stored one. It holds names, not numbers, so that it stays valid
// when ops are added.
func TestGolden(t *testing.T) {
	g := ir.NewGraph("g")
	x := g.Input("x", ir.F32, ir.Dims(2, 3))
	ln := op.LayerNorm(x, g.Input("gamma", ir.F32, ir.Dims(3)), ir.Value{}, -1, 0.5).Node()
	values, _ := op.TopK(op.Transpose(x, 1, 0), 2, 0, true)
	topK := values.Node()
	add := op.Add(values, g.Constant(ir.Scalar(float32(2)))).Node()
	at := func(v ir.Value, s prog.Slot, i int, offset int64, strides ...int64) prog.Operand {
		dims, _ := ir.StaticShape(v.Shape())
		if strides == nil {
			strides = prog.Contiguous(dims)
		}
		return prog.Operand{DType: v.DType(), Dims: dims, Strides: strides, Slot: s, Index: i, Offset: offset}
	}
	p := &prog.Program{ArenaBytes: 128,
		Inputs:  []prog.Type{{DType: ir.F32, Dims: []int64{2, 3}}, {DType: ir.F32, Dims: []int64{3}}},
		Outputs: []prog.Type{{DType: ir.F32, Dims: []int64{2, 2}}},
		Consts:  []prog.Type{{DType: ir.F32, Dims: []int64{}}},
		States:  []prog.Type{{DType: ir.I64, Dims: []int64{2, 2}}},
		Commands: []prog.Command{
			{Row: ln.Row, Attrs: ln.Attrs, Out: []prog.Operand{at(ln.Out(0), prog.Arena, 0, 0)}, In: []prog.Operand{at(ln.In[0], prog.Input, 0, 0), at(ln.In[1], prog.Input, 1, 0), {Absent: true}}},
			{Row: topK.Row, Attrs: topK.Attrs, Staged: true, Out: []prog.Operand{at(topK.Out(0), prog.Arena, 0, 64), at(topK.Out(1), prog.State, 0, 0)}, In: []prog.Operand{at(topK.In[0], prog.Arena, 0, 0, 1, 3)}},
			{Row: add.Row, Attrs: add.Attrs, Out: []prog.Operand{at(add.Out(0), prog.Output, 0, 0)}, In: []prog.Operand{at(topK.Out(0), prog.Arena, 0, 64), at(add.In[1], prog.Const, 0, 0)}},
		}}
	if err := g.Err(); err != nil {
		t.Fatal(err)
	}
	back, err := prog.Decode(encode(t, p))
	if err != nil {
		t.Fatal(err)
	}
	got := back.String()
	if *update {
		if err := os.WriteFile("testdata/golden.txt", []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/golden.txt")
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got\n%s\nexpected\n%s", got, want)
	}
}

// A stretch lies between two staged commands, whole and without them.
func TestStretch(t *testing.T) {
	p := &prog.Program{Commands: make([]prog.Command, 5)} // n n s s n
	p.Commands[2].Staged, p.Commands[3].Staged = true, true
	legal := map[[2]int]bool{{0, 2}: true, {4, 1}: true, {3, 0}: true, {5, 0}: false}
	for first := -1; first <= 6; first++ {
		for count := -1; count <= 6; count++ {
			if err := p.Stretch(first, count); (err == nil) != legal[[2]int{first, count}] {
				t.Errorf("%d commands from %d: %v", count, first, err)
			}
		}
	}
}

func FuzzDecode(f *testing.F) {
	r := rand.New(rand.NewPCG(4, 4))
	for range 8 {
		p := randomProgram(&testing.T{}, r, 2)
		w, err := prog.Encode(p)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(toBytes(w))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := prog.Decode(toWords(b))
		if err != nil {
			return
		}
		w, err := prog.Encode(p)
		if err != nil {
			t.Fatalf("%v\n%s", err, p)
		}
		if back, err := prog.Decode(w); err != nil || back.String() != p.String() {
			t.Fatalf("%v\n%s", err, p)
		}
	})
}

// The first words hold the hash of the op table, which changes with it, so the fuzzer's bytes leave it out.
func toBytes(w []uint32) []byte {
	var b []byte
	for _, v := range w[4:] {
		b = append(b, byte(v), byte(v>>8), byte(v>>16), byte(v>>24))
	}
	return b
}

func toWords(b []byte) []uint32 {
	hash := ir.TableHash()
	w := []uint32{0x50584c52, 1, uint32(hash), uint32(hash >> 32)}
	for ; len(b) >= 4; b = b[4:] {
		w = append(w, uint32(b[0])|uint32(b[1])<<8|uint32(b[2])<<16|uint32(b[3])<<24)
	}
	return w
}
