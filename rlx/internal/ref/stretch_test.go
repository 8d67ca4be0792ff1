package ref

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx/backend"
	"github.com/rlx-ml/rlx-go/rlx/internal/prog"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// stretches is y0 = -x, then a staged command that makes y1 of arena bytes 0 to 16, then arena+16 = -y1 and y2 = -(arena+16).
func stretches(t *testing.T) []uint32 {
	t.Helper()
	g := ir.NewGraph("g")
	neg := op.Neg(g.Input("x", ir.F32, ir.Dims(4))).Node()
	dims := []int64{4}
	at := func(s prog.Slot, index int, offset int64) []prog.Operand {
		return []prog.Operand{{DType: ir.F32, Dims: dims, Strides: []int64{1}, Slot: s, Index: index, Offset: offset}}
	}
	command := func(out, in []prog.Operand) prog.Command {
		return prog.Command{Row: neg.Row, Attrs: neg.Attrs, Out: out, In: in}
	}
	types := []prog.Type{{DType: ir.F32, Dims: dims}, {DType: ir.F32, Dims: dims}, {DType: ir.F32, Dims: dims}}
	p := &prog.Program{ArenaBytes: 32, Inputs: types[:1], Outputs: types, Commands: []prog.Command{
		command(at(prog.Output, 0, 0), at(prog.Input, 0, 0)),
		command(at(prog.Output, 1, 0), at(prog.Arena, 0, 0)),
		command(at(prog.Arena, 0, 16), at(prog.Output, 1, 0)),
		command(at(prog.Output, 2, 0), at(prog.Arena, 0, 16)),
	}}
	p.Commands[1].Staged = true
	w, err := prog.Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func f32(v ...float32) []byte { return ir.New(v, len(v)).Bytes() }

func wantCode(t *testing.T, err error, code backend.Code, text string) {
	t.Helper()
	var e *backend.Error
	if !errors.As(err, &e) || e.Code != code || !strings.Contains(err.Error(), text) {
		t.Errorf("got error %v, expected %s with %q", err, code, text)
	}
}

// loaded is stretches on a masked device, with an arena.
func loaded(t *testing.T, m Mask) (backend.Program, backend.Arena) {
	t.Helper()
	d, err := New("test", m).Open(0, backend.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := d.Load(nil, stretches(t))
	if err != nil {
		t.Fatal(err)
	}
	a, err := p.NewArena()
	if err != nil {
		t.Fatal(err)
	}
	return p, a
}

// A run takes the commands between two staged ones, all of them, and profiles them from index 0.
func TestStretches(t *testing.T) {
	for _, private := range []bool{false, true} {
		p, a := loaded(t, Mask{Private: private})
		out := [][]byte{make([]byte, 16), make([]byte, 16), make([]byte, 16)}
		args := &backend.RunArgs{Inputs: [][]byte{f32(1, 2, 3, 4)}, Outputs: out, Arena: a}
		for _, bad := range [][2]int{{0, 4}, {0, 2}, {1, 1}, {1, 3}, {2, 1}, {3, 1}, {0, 0}, {2, 3}, {-1, 1}} {
			args.First, args.Count = bad[0], bad[1]
			wantCode(t, p.Run(args), backend.BadArgument, "commands")
		}
		args.First, args.Count, args.Counters = 0, 1, make([]uint32, 1)
		if err := p.Run(args); err != nil || !bytes.Equal(out[0], f32(-1, -2, -3, -4)) || args.Counters[0] != 1 {
			t.Errorf("the first stretch: %v, output %v, counters %v", err, out[0], args.Counters)
		}
		clear(args.Inputs[0]) // the second stretch reads no input
		copy(out[1], f32(5, 6, 7, 8))
		args.First, args.Count, args.Counters, args.Profile = 2, 2, make([]uint32, 2), make([]uint64, 4)
		if err := p.Run(args); err != nil || !bytes.Equal(out[2], f32(5, 6, 7, 8)) || !slices.Equal(args.Counters, []uint32{1, 1}) || args.Profile[3] < args.Profile[0] {
			t.Errorf("the second stretch: %v, output %v, counters %v, profile %v", err, out[2], args.Counters, args.Profile)
		}
		args.Counters = args.Counters[:1]
		wantCode(t, p.Run(args), backend.BadArgument, "counters")
		args.Counters, args.Profile = nil, nil
		a.Cancel().Set()
		wantCode(t, p.Run(args), backend.Cancelled, "at command 2")
	}
}

// A private arena is out of reach but for Write and Read, and forgets with each run.
func TestPrivateArena(t *testing.T) {
	p, a := loaded(t, Mask{Private: true})
	if a.Bytes() != nil {
		t.Error("the arena has bytes")
	}
	got := make([]byte, 16)
	if err := errors.Join(a.Write([]backend.Region{{Offset: 16, Host: f32(1, 2, 3, 4)}}), a.Read([]backend.Region{{Offset: 24, Host: got[:8]}})); err != nil || !bytes.Equal(got[:8], f32(3, 4)) {
		t.Errorf("got %v (%v)", got, err)
	}
	a.Cancel().Reset()
	if err := a.Read([]backend.Region{{Offset: 16, Host: got}}); err != nil || !bytes.Equal(got, bytes.Repeat([]byte{0xFF}, 16)) {
		t.Errorf("after Reset: %v (%v)", got, err)
	}
	for _, r := range []backend.Region{{Offset: 17, Host: got}, {Offset: -1, Host: got[:1]}, {Offset: 1 << 62, Host: got}, {Host: make([]byte, 33)}} {
		wantCode(t, a.Write([]backend.Region{r}), backend.BadArgument, "outside an arena of 32")
		wantCode(t, a.Read([]backend.Region{r}), backend.BadArgument, "outside an arena of 32")
	}
	wantCode(t, p.Run(&backend.RunArgs{Count: 1, Arena: backend.NewHostArena(make([]byte, 32))}), backend.BadArgument, "another program")
	wantCode(t, p.Run(&backend.RunArgs{Count: 1, Arena: a, Inputs: [][]byte{got[:3]}, Outputs: [][]byte{got, got, got}}), backend.BadArgument, "input 0")
}
