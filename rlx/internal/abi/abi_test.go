package abi

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"sync"
	"testing"

	_ "github.com/rlx-ml/rlx-go/cgo/cpu"
	"github.com/rlx-ml/rlx-go/rlx/backend"
	"github.com/rlx-ml/rlx-go/rlx/internal/prog"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	_ "github.com/rlx-ml/rlx-go/rlx/op"
)

func open(t testing.TB, o backend.Options) backend.Device {
	t.Helper()
	b, err := backend.Lookup("cpu")
	if errors.Is(err, backend.ErrNotCompiledIn) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	d, err := b.Open(0, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func copyRow(t testing.TB) *ir.Row {
	t.Helper()
	r, err := ir.RowByName("Copy")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func copyCommand(t testing.TB, to, from prog.Operand) prog.Command {
	t.Helper()
	r := copyRow(t)
	attrs, err := r.NewAttrs(nil)
	if err != nil {
		t.Fatal(err)
	}
	return prog.Command{Row: r, Out: []prog.Operand{to}, In: []prog.Operand{from}, Attrs: attrs}
}

func whole(s prog.Slot, index int, d ir.DType, dims ...int64) prog.Operand {
	return prog.Operand{DType: d, Dims: dims, Strides: prog.Contiguous(dims), Slot: s, Index: index}
}

func encode(t testing.TB, p *prog.Program) []uint32 {
	t.Helper()
	w, err := prog.Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func load(t testing.TB, d backend.Device, w backend.Weights, p *prog.Program) (backend.Program, backend.Arena) {
	t.Helper()
	np, err := d.Load(w, encode(t, p))
	if err != nil {
		t.Fatal(err)
	}
	a, err := np.NewArena()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(a.Close(), np.Close()); err != nil {
			t.Error(err)
		}
	})
	return np, a
}

func fill(n int) []byte {
	b := make([]byte, n)
	rand.New(rand.NewSource(int64(n))).Read(b)
	return b
}

// gather is the meaning of a strided operand: its elements in row-major order, read one by one.
func gather(o prog.Operand, mem []byte) []byte {
	size := int64(o.DType.Size())
	var out []byte
	idx := make([]int64, len(o.Dims))
	for range o.Count() {
		at := o.Offset
		for k, i := range idx {
			at += i * o.Strides[k] * size
		}
		out = append(out, mem[at:at+size]...)
		for k := len(idx) - 1; k >= 0; k-- {
			if idx[k]++; idx[k] < o.Dims[k] {
				break
			}
			idx[k] = 0
		}
	}
	return out
}

// TestCopy moves every dtype through views: transposed, reversed, stretched, sliced, of rank 0 and 8, and empty.
func TestCopy(t *testing.T) {
	dev := open(t, backend.Options{Threads: 3})
	for _, d := range ir.DTypes() {
		s := int64(d.Size())
		views := []struct {
			count int64 // elements of the input
			view  prog.Operand
		}{
			{1, prog.Operand{Dims: []int64{}, Strides: []int64{}}},
			{24, prog.Operand{Dims: []int64{4, 3, 2}, Strides: []int64{6, 2, 1}}},
			{24, prog.Operand{Dims: []int64{2, 4, 3}, Strides: []int64{1, 6, 2}}},
			{24, prog.Operand{Dims: []int64{24}, Strides: []int64{-1}, Offset: 23 * s}},
			{24, prog.Operand{Dims: []int64{3, 5, 4}, Strides: []int64{2, 0, 6}, Offset: s}},
			{1, prog.Operand{Dims: []int64{70001}, Strides: []int64{0}}},
			{0, prog.Operand{Dims: []int64{3, 0, 2}, Strides: []int64{0, 2, 1}}},
			{256, prog.Operand{Dims: []int64{2, 2, 2, 2, 2, 2, 2, 2}, Strides: []int64{1, 2, 4, 8, 16, 32, 64, 128}}},
			{300 * 301, prog.Operand{Dims: []int64{301, 300}, Strides: []int64{1, 301}}},
			{20000, prog.Operand{Dims: []int64{9999}, Strides: []int64{-2}, Offset: 19998 * s}},
		}
		for i, v := range views {
			v.view.DType, v.view.Slot = d, prog.Input
			p := &prog.Program{Inputs: []prog.Type{{DType: d, Dims: []int64{v.count}}}, Outputs: []prog.Type{{DType: d, Dims: v.view.Dims}}}
			p.Commands = []prog.Command{copyCommand(t, whole(prog.Output, 0, d, v.view.Dims...), v.view)}
			np, a := load(t, dev, nil, p)
			in := fill(int(v.count * s))
			out := make([]byte, v.view.Count()*s)
			counters, profile := make([]uint32, 1), make([]uint64, 2)
			err := np.Run(&backend.RunArgs{Count: 1, Inputs: [][]byte{in}, Outputs: [][]byte{out}, Arena: a, Counters: counters, Profile: profile})
			if err != nil {
				t.Fatalf("%s view %d: %v", d, i, err)
			}
			if !bytes.Equal(out, gather(v.view, in)) {
				t.Errorf("%s view %d: wrong elements", d, i)
			}
			if counters[0] != 1 || profile[0] == 0 || profile[1] < profile[0] {
				t.Errorf("%s view %d: counters %v, profile %v", d, i, counters, profile)
			}
		}
	}
}

// chain copies input -> arena -> output, a constant of the parent and one of the child to outputs, and an output to a state.
func chain(t testing.TB) *prog.Program {
	const d = ir.F32
	f := prog.Type{DType: d, Dims: []int64{5}}
	mid := whole(prog.Arena, 0, d, 5)
	mid.Offset = 64
	return &prog.Program{ArenaBytes: 100, Inputs: []prog.Type{f}, Outputs: []prog.Type{f, f, f}, Consts: []prog.Type{f, f}, States: []prog.Type{f},
		Commands: []prog.Command{
			copyCommand(t, mid, whole(prog.Input, 0, d, 5)),
			copyCommand(t, whole(prog.Output, 0, d, 5), mid),
			copyCommand(t, whole(prog.Output, 1, d, 5), whole(prog.Const, 0, d, 5)),
			copyCommand(t, whole(prog.Output, 2, d, 5), whole(prog.Const, 1, d, 5)),
			copyCommand(t, whole(prog.State, 0, d, 5), mid),
		}}
}

func bindings(n, size int) [][]byte {
	l := make([][]byte, n)
	for i := range l {
		l[i] = make([]byte, size)
	}
	return l
}

func TestSlots(t *testing.T) {
	dev := open(t, backend.Options{Threads: 2})
	c0, c1, in := fill(20), fill(20), fill(20)
	in[0], c1[0] = 1, 2
	parent, err := dev.Weights(nil, [][]byte{c0})
	if err != nil {
		t.Fatal(err)
	}
	child, err := dev.Weights(parent, [][]byte{c1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := parent.Close(); err == nil || !strings.Contains(err.Error(), "still use the weights") {
			t.Errorf("closing a parent before its child: %v", err)
		}
		if err := errors.Join(child.Close(), child.Close(), parent.Close()); err != nil {
			t.Error(err)
		}
	})
	np, arena := load(t, dev, child, chain(t))
	if got := np.ArenaBytes(); got != 128 {
		t.Errorf("arena of %d bytes, expected 100 rounded up to 128", got)
	}
	var wg sync.WaitGroup
	for range 4 { // concurrent runs, each with an arena of its own
		wg.Go(func() {
			a, err := np.NewArena()
			if err != nil {
				t.Error(err)
				return
			}
			defer a.Close()
			for range 100 {
				out, st := bindings(3, 20), bindings(1, 20)
				if err := np.Run(&backend.RunArgs{Count: 5, Inputs: [][]byte{in}, Outputs: out, States: st, Arena: a}); err != nil {
					t.Error(err)
					return
				}
				if !bytes.Equal(out[0], in) || !bytes.Equal(out[1], c0) || !bytes.Equal(out[2], c1) || !bytes.Equal(st[0], in) {
					t.Error("wrong bytes in an output or a state")
				}
			}
		})
	}
	wg.Wait()

	// The state is written by the last command: a run that is cancelled before writes none.
	arena.Cancel().Set()
	out, st := bindings(3, 20), bindings(1, 20)
	args := &backend.RunArgs{Count: 5, Inputs: [][]byte{in}, Outputs: out, States: st, Arena: arena}
	var e *backend.Error
	if err := np.Run(args); !errors.As(err, &e) || e.Code != backend.Cancelled {
		t.Errorf("cancelled run: %v", err)
	}
	if !bytes.Equal(st[0], make([]byte, 20)) {
		t.Error("a cancelled run wrote its state")
	}
	arena.Cancel().Reset()
	if err := np.Run(args); err != nil || !bytes.Equal(st[0], in) {
		t.Errorf("run after a reset: %v", err)
	}
	args.Arena = nil // brings its own
	if err := np.Run(args); err != nil {
		t.Error(err)
	}

	for want, bad := range map[string]*backend.RunArgs{
		"got 0 inputs, expected 1":                 {Count: 5, Outputs: out, States: st, Arena: arena},
		"output 1 has 19 bytes, expected 20":       {Count: 5, Inputs: [][]byte{in}, Outputs: [][]byte{out[0], out[1][:19], out[2]}, States: st, Arena: arena},
		"state 0 has 0 bytes, expected 20":         {Count: 5, Inputs: [][]byte{in}, Outputs: out, States: [][]byte{nil}, Arena: arena},
		"counters of 4 entries, expected 10 and 5": {Count: 5, Inputs: [][]byte{in}, Outputs: out, States: st, Arena: arena, Counters: make([]uint32, 4)},
	} {
		if err := np.Run(bad); !errors.As(err, &e) || e.Code != backend.BadArgument || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, expected %q", err, want)
		}
	}
}

// TestBadValue: an index out of range is found by the run, which says op, constraint and value.
func TestBadValue(t *testing.T) {
	dev := open(t, backend.Options{Threads: 2})
	r, err := ir.RowByName("Gather")
	if err != nil {
		t.Fatal(err)
	}
	attrs, err := r.NewAttrs(nil)
	if err != nil {
		t.Fatal(err)
	}
	f := prog.Type{DType: ir.F32, Dims: []int64{4}}
	p := &prog.Program{Inputs: []prog.Type{f, {DType: ir.I64, Dims: []int64{1}}}, Outputs: []prog.Type{f, {DType: ir.F32, Dims: []int64{1}}}}
	p.Commands = []prog.Command{
		copyCommand(t, whole(prog.Output, 0, ir.F32, 4), whole(prog.Input, 0, ir.F32, 4)),
		{Row: r, Attrs: attrs, Out: []prog.Operand{whole(prog.Output, 1, ir.F32, 1)}, In: []prog.Operand{whole(prog.Input, 0, ir.F32, 4), whole(prog.Input, 1, ir.I64, 1)}},
	}
	np, a := load(t, dev, nil, p)
	in := fill(16)
	args := &backend.RunArgs{Count: 2, Inputs: [][]byte{in, {3, 0, 0, 0, 0, 0, 0, 0}}, Outputs: [][]byte{make([]byte, 16), make([]byte, 4)}, Arena: a}
	if err := np.Run(args); err != nil || !bytes.Equal(args.Outputs[1], in[12:]) {
		t.Errorf("index 3: %v, error %v", args.Outputs[1], err)
	}
	args.Inputs[1][0] = 9
	var e *backend.Error
	if err := np.Run(args); !errors.As(err, &e) || e.Code != backend.BadValue || e.Command != 1 || !strings.HasPrefix(e.Text, "Gather: C") || !strings.Contains(e.Text, "9") {
		t.Errorf("index 9: %v", err)
	}
}

// TestManyBindings: more bindings than go to C as arguments.
func TestManyBindings(t *testing.T) {
	dev := open(t, backend.Options{Threads: 1})
	const n = 9
	p := &prog.Program{}
	for i := range n {
		typ := prog.Type{DType: ir.I16, Dims: []int64{int64(i)}}
		p.Inputs, p.Outputs = append(p.Inputs, typ), append(p.Outputs, typ)
		p.Commands = append(p.Commands, copyCommand(t, whole(prog.Output, i, ir.I16, int64(i)), whole(prog.Input, i, ir.I16, int64(i))))
	}
	np, a := load(t, dev, nil, p)
	args := &backend.RunArgs{Count: n, Arena: a}
	for i := range n {
		args.Inputs, args.Outputs = append(args.Inputs, fill(2*i)), append(args.Outputs, make([]byte, 2*i))
	}
	if err := np.Run(args); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if !bytes.Equal(args.Inputs[i], args.Outputs[i]) {
			t.Errorf("output %d differs", i)
		}
	}
	if got := testing.AllocsPerRun(100, func() { _ = np.Run(args) }); got != 0 {
		t.Errorf("%v allocations per run", got)
	}
}

func TestOpen(t *testing.T) {
	dev := open(t, backend.Options{Threads: 2, ISA: "generic"})
	if i := dev.Info(); i.ISA != "generic" || i.Threads != 2 || i.Name == "" {
		t.Errorf("info %+v", i)
	}
	b, _ := backend.Lookup("cpu")
	var e *backend.Error
	for want, o := range map[string]backend.Options{
		"mmx is unknown or not supported, expected one of generic": {Threads: 1, ISA: "mmx"},
		"0 threads, expected at least 1":                           {},
	} {
		if _, err := b.Open(0, o); !errors.As(err, &e) || e.Code != backend.BadArgument || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, expected %q", err, want)
		}
	}
	if _, err := b.Open(1, backend.Options{Threads: 1}); !errors.As(err, &e) || e.Code != backend.NoDevice {
		t.Errorf("device 1: %v", err)
	}
	if infos, err := b.Devices(); err != nil || len(infos) != 1 || infos[0].ISA != "generic" {
		t.Errorf("devices %v, %v", infos, err)
	}
}

// TestCaps: what the generic rows cover, Copy takes any strides, and a device has all of it.
func TestCaps(t *testing.T) {
	dev := open(t, backend.Options{Threads: 1})
	b, _ := backend.Lookup("cpu")
	caps := b.Caps()
	if !slices.Equal(dev.Caps(), caps) {
		t.Errorf("the device has %d capabilities, the backend %d", len(dev.Caps()), len(caps))
	}
	if _, ok := b.(interface{ StageOnHost(*ir.Row) bool }); ok {
		t.Error("the cpu says what it stages on the host: it stages nothing")
	}
	i := slices.IndexFunc(caps, func(c backend.Cap) bool { return c.Op == copyRow(t).Num() })
	if i < 0 || !caps[i].Strided || caps[i].DTypes != uint32(ir.AnyDType) {
		t.Errorf("caps %v", caps)
	}
}

// TestMemory: everything the library holds comes back.
func TestMemory(t *testing.T) {
	dev := open(t, backend.Options{Threads: 1})
	before := dev.NativeBytes()
	w, err := dev.Weights(nil, [][]byte{make([]byte, 20), make([]byte, 20)})
	if err != nil {
		t.Fatal(err)
	}
	np, err := dev.Load(w, encode(t, chain(t)))
	if err != nil {
		t.Fatal(err)
	}
	a, err := np.NewArena()
	if err != nil {
		t.Fatal(err)
	}
	if held := dev.NativeBytes() - before; held < 128+40 {
		t.Errorf("%d bytes are counted, expected at least the arena and the constants", held)
	}
	if err := dev.Close(); err == nil || !strings.Contains(err.Error(), "still open") {
		t.Errorf("closing a device in use: %v", err)
	}
	if _, err := dev.Load(w, encode(t, chain(t))[:30]); err == nil {
		t.Error("truncated words were loaded")
	}
	if err := errors.Join(a.Close(), np.Close(), w.Close()); err != nil {
		t.Fatal(err)
	}
	if after := dev.NativeBytes(); after != before {
		t.Errorf("%d bytes are held, %d were before", after, before)
	}
	if err := np.Run(&backend.RunArgs{}); err == nil {
		t.Error("a closed program ran")
	}
}

// words of programs with every kind of attribute, for the loader. Commands without a kernel stop at RLX_UNSUPPORTED, after the decoder.
func corpus(t testing.TB) [][]uint32 {
	list := [][]uint32{encode(t, chain(t))}
	f32 := func(slot prog.Slot, i int, dims ...int64) prog.Operand { return whole(slot, i, ir.F32, dims...) }
	for _, c := range []struct {
		op    string
		attrs map[string]string
		out   []prog.Operand
		in    []prog.Operand
	}{
		{"LayerNorm", map[string]string{"axis": "-1", "eps": "0.5"}, []prog.Operand{f32(prog.Output, 0, 2, 4)}, []prog.Operand{f32(prog.Input, 0, 2, 4), {Absent: true}, f32(prog.Input, 1, 4)}},
		{"Pad", map[string]string{"padding": "[1, 1]", "mode": "constant", "value": "2.5"}, []prog.Operand{f32(prog.Output, 0, 6)}, []prog.Operand{f32(prog.Input, 0, 4)}},
		{"Cast", map[string]string{"dtype": "i32"}, []prog.Operand{whole(prog.Output, 0, ir.I32, 4)}, []prog.Operand{f32(prog.Input, 0, 4)}},
	} {
		r, err := ir.RowByName(c.op)
		if err != nil {
			t.Fatal(err)
		}
		attrs, err := r.NewAttrs(c.attrs)
		if err != nil {
			t.Fatal(err)
		}
		p := &prog.Program{Commands: []prog.Command{{Row: r, Out: c.out, In: c.in, Attrs: attrs}}}
		for _, o := range c.in {
			if !o.Absent {
				p.Inputs = append(p.Inputs, prog.Type{DType: o.DType, Dims: o.Dims})
			}
		}
		for _, o := range c.out {
			p.Outputs = append(p.Outputs, prog.Type{DType: o.DType, Dims: o.Dims})
		}
		w := encode(t, p)
		if _, err := prog.Decode(w); err != nil {
			t.Fatalf("%s: %v", c.op, err)
		}
		list = append(list, w)
	}
	return list
}

// tryLoad loads hostile words: a program or an error that says something.
func tryLoad(t *testing.T, d backend.Device, w backend.Weights, words []uint32) {
	t.Helper()
	np, err := d.Load(w, words)
	if err == nil {
		if err = np.Close(); err != nil {
			t.Error(err)
		}
		return
	}
	var e *backend.Error
	if !errors.As(err, &e) || e.Text == "" || e.Code != backend.BadWords && e.Code != backend.Unsupported && e.Code != backend.NoMemory {
		t.Errorf("got error %v", err)
	}
}

// TestHostileWords: truncated and changed words never crash the loader and leak nothing.
func TestHostileWords(t *testing.T) {
	dev := open(t, backend.Options{Threads: 1})
	w, err := dev.Weights(nil, [][]byte{make([]byte, 20), make([]byte, 20)})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	before := dev.NativeBytes()
	r := rand.New(rand.NewSource(1))
	values := []uint32{0, 1, 2, 3, 8, 9, 0xff, 0x100, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff}
	for _, good := range corpus(t) {
		for n := range good {
			tryLoad(t, dev, w, good[:n])
			for _, v := range values {
				bad := slices.Clone(good)
				bad[n] = v
				tryLoad(t, dev, w, bad)
			}
		}
		tryLoad(t, dev, w, append(slices.Clone(good), 7))
		for range 3000 {
			bad := slices.Clone(good)
			for range 1 + r.Intn(6) {
				n := 4 + r.Intn(len(bad)-4) // behind the hash, which would stop the rest
				switch r.Intn(3) {
				case 0:
					bad[n] = values[r.Intn(len(values))]
				case 1:
					bad[n] ^= 1 << r.Intn(32)
				default:
					bad[n] = bad[r.Intn(len(bad))]
				}
			}
			tryLoad(t, dev, w, bad)
		}
	}
	if after := dev.NativeBytes(); after != before {
		t.Errorf("%d bytes are held, %d were before", after, before)
	}
}

func FuzzLoad(f *testing.F) {
	for _, w := range corpus(f) {
		f.Add(wordBytes(w))
	}
	dev := open(f, backend.Options{Threads: 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		words := make([]uint32, len(data)/4)
		for i := range words {
			words[i] = binary.LittleEndian.Uint32(data[4*i:])
		}
		tryLoad(t, dev, nil, words)
	})
}

func wordBytes(w []uint32) []byte {
	var b []byte
	for _, x := range w {
		b = binary.LittleEndian.AppendUint32(b, x)
	}
	return b
}

// TestRefusals: what the loader says of single broken rules.
func TestRefusals(t *testing.T) {
	dev := open(t, backend.Options{Threads: 1})
	good := func() *prog.Program {
		p := &prog.Program{Inputs: []prog.Type{{DType: ir.F32, Dims: []int64{4}}}, Outputs: []prog.Type{{DType: ir.F32, Dims: []int64{4}}}}
		p.Commands = []prog.Command{copyCommand(t, whole(prog.Output, 0, ir.F32, 4), whole(prog.Input, 0, ir.F32, 4))}
		return p
	}
	words := encode(t, good())
	const command = 11 + 2*3 // header and two types
	const result, operand = command + 3, command + 3 + 8
	for _, c := range []struct {
		want string
		at   int
		v    uint32
	}{
		{"magic 0x1 version 1", 0, 1},
		{"op table hash", 2, ^words[2]},
		{"tensor 0 of slot 1: type 0x163", 11, 99 | 1<<8},
		{"op number 65535 is unknown", command, 0xffff},
		{"Copy: 2 words, but", command + 1, 2},
		{"Copy: 0 results, expected 1", command + 2, 1 << 16},
		{"result 0: dtype 99", result, 99},
		{"result 0: rank 9, expected at most 8", result, uint32(ir.F32) | 9<<8},
		{"result 0: writes to slot 1", result, words[operand]},
		{"result 0: expected contiguous", result + 6, 0},
		{"operand 0: tensor 1 of slot 1, which has 1", operand + 1, 1},
		{"operand 0: reaches outside the 16 bytes of tensor 0 of slot 1", operand + 2, 4},
		{"operand 0: reaches outside the 16 bytes of tensor 0 of slot 1", operand + 6, 2},
		{"operand 0: dims are negative or too large", operand + 5, 0x80000000},
		{"operand 0 is missing", operand, 0xffffffff},
	} {
		bad := slices.Clone(words)
		bad[c.at] = c.v
		if c.at == operand && c.v == 0xffffffff {
			bad = bad[:operand+1]
			bad[command+1] = uint32(len(bad) - command)
		}
		var e *backend.Error
		if _, err := dev.Load(nil, bad); !errors.As(err, &e) || e.Code != backend.BadWords || !strings.Contains(e.Text, c.want) {
			t.Errorf("got error %v, expected %q", err, c.want)
		} else if in := c.at >= command; in != (e.Command == 0) {
			t.Errorf("%v: command %d", err, e.Command)
		}
	}
	p := good()
	p.Consts = []prog.Type{{DType: ir.F32, Dims: []int64{4}}}
	var e *backend.Error
	if _, err := dev.Load(nil, encode(t, p)); !errors.As(err, &e) || e.Text != "got 0 constants, the words read 1" {
		t.Error(err)
	}
}

func scalarCopy(b testing.TB, inputs int) (backend.Program, *backend.RunArgs) {
	dev := open(b, backend.Options{Threads: 1})
	p := &prog.Program{Outputs: []prog.Type{{DType: ir.F32}}}
	for range inputs {
		p.Inputs = append(p.Inputs, prog.Type{DType: ir.F32})
	}
	p.Commands = []prog.Command{copyCommand(b, whole(prog.Output, 0, ir.F32), whole(prog.Input, 0, ir.F32))}
	np, a := load(b, dev, nil, p)
	return np, &backend.RunArgs{Count: 1, Inputs: bindings(inputs, 4), Outputs: bindings(1, 4), Arena: a}
}

func TestRunAllocations(t *testing.T) {
	np, args := scalarCopy(t, 2)
	if got := testing.AllocsPerRun(100, func() { _ = np.Run(args) }); got != 0 {
		t.Errorf("%v allocations per run", got)
	}
}

func BenchmarkRunScalar(b *testing.B) {
	for _, inputs := range []int{2, 12} {
		b.Run(fmt.Sprintf("inputs=%d", inputs), func(b *testing.B) {
			np, args := scalarCopy(b, inputs)
			b.ReportAllocs()
			for b.Loop() {
				if err := np.Run(args); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
