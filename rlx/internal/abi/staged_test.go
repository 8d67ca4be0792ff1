package abi

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx/backend"
	"github.com/rlx-ml/rlx-go/rlx/internal/prog"
	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// kernelless finds a row with one operand and one result that the device does not run for f32. Words of a staged command need no more of
// the row than that: its shapes are not checked.
func kernelless(t *testing.T, dev backend.Device) (*ir.Row, any) {
	t.Helper()
	for _, r := range ir.Rows() {
		if len(r.In) != 1 || r.In[0].Variadic || len(r.Results) != 1 || r.Has(ir.Leaf) || !r.In[0].DTypes.Has(ir.F32) {
			continue
		}
		native := slices.ContainsFunc(dev.Caps(), func(c backend.Cap) bool { return c.Op == r.Num() && c.DTypes>>ir.F32&1 != 0 })
		if attrs, err := r.NewAttrs(nil); err == nil && !native {
			return r, attrs
		}
	}
	t.Skip("every row of one operand has a kernel for f32")
	return nil, nil
}

const (
	from, to  = 0, 64 // places in the arena of the program below
	arenaSize = to + 20
)

// staged makes a program of two stretches:
//
//	0  arena[from] = input
//	1  state       = input
//	2  arena[to]   = op(arena[from])   the host runs it
//	3  output      = arena[to]
func staged(t *testing.T, dev backend.Device) *prog.Program {
	t.Helper()
	row, attrs := kernelless(t, dev)
	f := prog.Type{DType: ir.F32, Dims: []int64{5}}
	in, state, a, b := whole(prog.Input, 0, ir.F32, 5), whole(prog.State, 0, ir.F32, 5), whole(prog.Arena, 0, ir.F32, 5), whole(prog.Arena, 0, ir.F32, 5)
	a.Offset, b.Offset = from, to
	return &prog.Program{ArenaBytes: arenaSize, Inputs: []prog.Type{f}, Outputs: []prog.Type{f}, States: []prog.Type{f}, Commands: []prog.Command{
		copyCommand(t, a, in),
		copyCommand(t, state, in),
		{Row: row, Attrs: attrs, Staged: true, Out: []prog.Operand{b}, In: []prog.Operand{a}},
		copyCommand(t, whole(prog.Output, 0, ir.F32, 5), b),
	}}
}

// flip stands for what the host computes.
func flip(to, from []byte) {
	for i := range to {
		to[i] = ^from[i]
	}
}

func code(err error) backend.Code {
	var e *backend.Error
	if !errors.As(err, &e) {
		return backend.OK
	}
	return e.Code
}

// TestStaged: a command that the host runs needs no kernel, and the stretches around it work on one arena.
func TestStaged(t *testing.T) {
	dev := open(t, backend.Options{Threads: 2})
	p := staged(t, dev)
	p.Commands[2].Staged = false
	if np, err := dev.Load(nil, encode(t, p)); code(err) != backend.Unsupported {
		t.Fatalf("a command without a kernel that is not staged: program %v, error %v", np, err)
	}
	np, arena := load(t, dev, nil, staged(t, dev))
	in, want := fill(20), make([]byte, 20)
	flip(want, in)
	out, st := bindings(1, 20), bindings(1, 20)
	run := func(first, count int) error {
		counters, profile := make([]uint32, count), make([]uint64, 2*count)
		err := np.Run(&backend.RunArgs{First: first, Count: count, Inputs: [][]byte{in}, Outputs: out, States: st, Arena: arena, Counters: counters, Profile: profile})
		if err == nil && (slices.Contains(counters, 0) || slices.Contains(profile, 0)) {
			t.Errorf("%d commands from %d: counters %v, profile %v", count, first, counters, profile)
		}
		return err
	}
	for name, host := range map[string]func(){
		"in place": func() { flip(arena.Bytes()[to:][:20], arena.Bytes()[from:]) },
		"copied": func() {
			value := make([]byte, 20)
			err := arena.Read([]backend.Region{{Offset: from, Host: value[:7]}, {Offset: from + 7, Host: value[7:]}, {Offset: arenaSize}})
			flip(value, value)
			if err := errors.Join(err, arena.Write([]backend.Region{{Offset: to, Host: value}}), arena.Write(nil)); err != nil {
				t.Error(err)
			}
		},
	} {
		clear(arena.Bytes())
		clear(out[0])
		clear(st[0])
		if err := run(0, 2); err != nil {
			t.Fatal(err)
		}
		host()
		if err := run(3, 1); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(out[0], want) || !bytes.Equal(st[0], in) {
			t.Errorf("%s: output %x, expected %x; state %x, expected %x", name, out[0], want, st[0], in)
		}
	}

	clear(out[0])
	clear(st[0])
	for _, c := range [][2]int{{0, 4}, {0, 3}, {0, 1}, {0, 0}, {1, 1}, {2, 0}, {2, 1}, {2, 2}, {3, 0}, {4, 0}, {3, 2}, {5, 0}, {1 << 32, 2}} {
		if err := run(c[0], c[1]); code(err) != backend.BadArgument {
			t.Errorf("%d commands from %d: %v", c[1], c[0], err)
		}
	}
	for _, a := range []*backend.RunArgs{{First: -1, Count: 1}, {Count: -1}, {Count: 2}} {
		if a.Count < 2 {
			a.Arena = arena
		} // else part of a program without an arena
		a.Inputs, a.Outputs, a.States = [][]byte{in}, out, st
		if err := np.Run(a); code(err) != backend.BadArgument {
			t.Errorf("%+v: %v", a, err)
		}
	}
	if slices.ContainsFunc(slices.Concat(out[0], st[0]), func(b byte) bool { return b != 0 }) {
		t.Error("a refused run wrote an output or a state")
	}
}

// TestStretchCancel: a step happens wholly or not at all, over its stretches too.
func TestStretchCancel(t *testing.T) {
	dev := open(t, backend.Options{Threads: 1})
	np, arena := load(t, dev, nil, staged(t, dev))
	in, out, st := fill(20), bindings(1, 20), bindings(1, 20)
	args := &backend.RunArgs{Count: 2, Inputs: [][]byte{in}, Outputs: out, States: st, Arena: arena}
	arena.Cancel().Set()
	if err := np.Run(args); code(err) != backend.Cancelled || !bytes.Equal(st[0], make([]byte, 20)) {
		t.Errorf("cancelled before the state is written: %v, state %x", err, st[0])
	}
	arena.Cancel().Reset()
	if err := np.Run(args); err != nil {
		t.Fatal(err)
	}
	arena.Cancel().Set()
	flip(arena.Bytes()[to:][:20], in)
	args.First, args.Count = 3, 1
	if err := np.Run(args); err != nil || bytes.Equal(out[0], make([]byte, 20)) {
		t.Errorf("cancelled after the state was written: %v, output %x", err, out[0])
	}
}

// TestArena: arenas belong to their program, which outlives them, and copies stay inside the words' arena.
func TestArena(t *testing.T) {
	dev := open(t, backend.Options{Threads: 1})
	f := prog.Type{DType: ir.F32, Dims: []int64{5}}
	p := &prog.Program{ArenaBytes: 100, Inputs: []prog.Type{f}, Commands: []prog.Command{copyCommand(t, whole(prog.Arena, 0, ir.F32, 5), whole(prog.Input, 0, ir.F32, 5))}}
	np, arena := load(t, dev, nil, p)
	_, other := load(t, dev, nil, p)
	args := &backend.RunArgs{Count: 1, Inputs: bindings(1, 20), Arena: other}
	if err := np.Run(args); code(err) != backend.BadArgument || !strings.Contains(err.Error(), "of another program") {
		t.Errorf("an arena of another program: %v", err)
	}
	for _, r := range []backend.Region{{Offset: 96, Host: make([]byte, 5)}, {Offset: 101}, {Offset: -1, Host: make([]byte, 1)}, {Offset: 1<<63 - 1, Host: make([]byte, 2)}, {Host: make([]byte, 101)}} {
		for name, copy := range map[string]func([]backend.Region) error{"write": arena.Write, "read": arena.Read} {
			if err := copy([]backend.Region{{Host: make([]byte, 100)}, r}); code(err) != backend.BadArgument || !strings.Contains(err.Error(), "region 1") {
				t.Errorf("%s of %d bytes at %d: %v", name, len(r.Host), r.Offset, err)
			}
		}
	}
	value := fill(4)
	got := make([]byte, 4)
	if err := errors.Join(arena.Write([]backend.Region{{Offset: 96, Host: value}}), arena.Read([]backend.Region{{Offset: 96, Host: got}})); err != nil || !bytes.Equal(got, value) {
		t.Errorf("the last bytes: %x, expected %x, error %v", got, value, err)
	}
	if err := np.Close(); code(err) != backend.BadArgument || !strings.Contains(err.Error(), "1 arenas are still open") {
		t.Errorf("unloading a program with an open arena: %v", err)
	}
	if err := arena.Close(); err != nil {
		t.Fatal(err)
	}
	args.Arena = arena
	if err := np.Run(args); code(err) != backend.BadArgument {
		t.Errorf("run with a closed arena: %v", err)
	}
	if err := arena.Read([]backend.Region{{Host: got}}); code(err) != backend.BadArgument || arena.Bytes() != nil {
		t.Errorf("a closed arena: %v, %d bytes", err, len(arena.Bytes()))
	}
}
