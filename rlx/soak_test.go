//go:build linux

package rlx_test

import (
	"maps"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// cyclesFor is a number of cycles, a tenth of it under -short.
func cyclesFor(n int) int {
	if testing.Short() {
		return n / 10
	}
	return n
}

// resident is the process's resident memory in bytes once the collector has given back what it can: the median of three looks.
func resident(t *testing.T) int64 {
	t.Helper()
	var looks []int64
	for range 3 {
		debug.FreeOSMemory()
		status, err := os.ReadFile("/proc/self/status")
		if err != nil {
			t.Fatal(err)
		}
		_, text, _ := strings.Cut(string(status), "VmRSS:")
		kib, err := strconv.ParseInt(strings.Fields(text)[0], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		looks = append(looks, kib<<10)
	}
	slices.Sort(looks)
	return looks[1]
}

// held is what a cycle must leave as it was.
type held struct {
	native   map[string]int64
	resident int64
}

func holding(t *testing.T) held {
	t.Helper()
	return held{rlx.Stats().Native, resident(t)}
}

const grows = 4 << 20 // bytes that resident memory may grow by: allocators keep pieces

func (h held) compare(t *testing.T, after held, cycles int) {
	t.Helper()
	t.Logf("%d more cycles: native memory %v, then %v; resident %.1f MiB, then %.1f", cycles, h.native, after.native, float64(h.resident)/(1<<20), float64(after.resident)/(1<<20))
	if !maps.Equal(h.native, after.native) {
		t.Errorf("native memory was %v, is %v", h.native, after.native)
	}
	if after.resident > h.resident+grows {
		t.Errorf("resident memory grew by %d bytes, expected at most %d", after.resident-h.resident, grows)
	}
}

// 10,000 runs over 200 shapes, in random order and with a cache of 16: what the libraries hold is the same to the byte whenever the cache has
// the same shapes in it, and the process grows no more.
func TestSoakShapes(t *testing.T) {
	const shapes = 200
	p := compile(t, openDigits(t))
	r := rand.New(rand.NewPCG(1, 2))
	run := func(rows int) {
		if _, err := p.Run(t.Context(), pixels(rows, 1)); err != nil {
			t.Fatal(err)
		}
	}
	fill := func() { // the last 16 shapes
		for rows := shapes; rows > shapes-16; rows-- {
			run(rows)
		}
	}
	first, rest := cyclesFor(500), cyclesFor(9500)
	for i := range first {
		run(1 + i%shapes)
	}
	fill()
	before := holding(t)
	for range rest {
		run(1 + r.IntN(shapes))
	}
	fill()
	before.compare(t, holding(t), rest)
	s := p.Stats()
	if s.Memory.Specialisations != 16 || s.Memory.IdleArenas != 16 || s.Memory.UsedArenas != 0 || s.Evictions != s.Builds-16 || s.Builds != s.Misses || s.Runs != uint64(first+rest+32) {
		t.Errorf("got %+v, expected 16 specialisations with an idle arena each", s)
	}
}

// 1,000 times open, compile, run, close: what the libraries hold is what it was after 500, to the byte, and the process grows no more.
func TestSoakPrograms(t *testing.T) {
	small(t) // keeps the library's counters readable
	cycle := func() {
		p, err := openDigits(t).Compile(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for rows := 1; rows <= 3; rows++ {
			if _, err := p.Run(t.Context(), pixels(rows, 1)); err != nil {
				t.Fatal(err)
			}
		}
		r := p.Runner()
		if err := r.RunInto(t.Context(), pixels(2, 1), digitsOut(t, p, 2)); err != nil {
			t.Fatal(err)
		}
		if err := p.Close(); err != nil { // with a runner open
			t.Fatal(err)
		}
	}
	half := cyclesFor(500)
	for range half {
		cycle()
	}
	before := holding(t)
	for range half {
		cycle()
	}
	before.compare(t, holding(t), half)
}

// digitsOut is memory for the outputs of a run of digits.
func digitsOut(t *testing.T, p *rlx.Program, rows int) rlx.Feed {
	t.Helper()
	out, err := p.Run(t.Context(), pixels(rows, 1))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// 16 sets of shapes of one program share its weights: native memory, in place or packed, stays within 1.10 times weights and arenas, and a further
// set of shapes adds its arena and next to nothing else.
func TestWeightsHeldOnce(t *testing.T) {
	if !slices.Contains(backends(), "cpu") {
		t.Skip("cpu: not compiled in (CGO_ENABLED=0)")
	}
	const side = 512
	g := rlx.NewGraph("mlp")
	y := g.Input("x", rlx.F32, rlx.Shape("n", side))
	for _, name := range []string{"a", "b", "c", "d"} {
		y = op.Relu(op.MatMul(y, g.Param(name, rlx.New(make([]float32, side*side), side, side)))) // 1 MiB each
	}
	g.Output("y", y)
	t.Run("mlp", func(t *testing.T) {
		p, err := rlx.Compile(t.Context(), g, rlx.On("cpu"))
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		heldOnce(t, p, func(n int) rlx.Feed { return rlx.Feed{"x": rlx.New(make([]float32, n*side), n, side)} })
	})
	t.Run("minilm", func(t *testing.T) {
		p := compile(t, open(t, minilm), rlx.On("cpu"))
		heldOnce(t, p, func(n int) rlx.Feed { return tokens(1+n%2, 4+n) })
	})
}

func heldOnce(t *testing.T, p *rlx.Program, feed func(n int) rlx.Feed) {
	t.Helper()
	var one rlx.MemoryStats
	for n := range 16 {
		if _, err := p.Run(t.Context(), feed(n+1)); err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			one = rlx.Stats()
		}
	}
	all := rlx.Stats()
	native, arenas := all.Native["cpu"], all.IdleBytes+all.UsedBytes
	t.Logf("weights %d, copied %d, arenas %d, commands %d, other %d, native %d: %.3f of weights and arenas; with one set of shapes %d", all.Weights, all.Copied,
		arenas, all.Loaded, all.OtherBytes, native, float64(native)/float64(all.Weights+arenas), one.Native["cpu"])
	if all.Specialisations != 16 {
		t.Errorf("%d specialisations, expected 16", all.Specialisations)
	}
	if native*10 > (all.Weights+arenas)*11 {
		t.Errorf("native memory %d is more than 1.10 times weights %d and arenas %d", native, all.Weights, arenas)
	}
	if grew := native - one.Native["cpu"] - (arenas - one.IdleBytes - one.UsedBytes); grew*10 > all.Weights {
		t.Errorf("15 more sets of shapes cost %d bytes beside arenas, the weights are %d", grew, all.Weights)
	}
}

// A crowd of runners leaves a bounded number of arenas behind.
func TestIdleArenasAreBounded(t *testing.T) {
	p := compile(t, openDigits(t))
	var crowd []*rlx.Runner
	for range 100 {
		r := p.Runner()
		if err := r.RunInto(t.Context(), pixels(4, 1), digitsOut(t, p, 4)); err != nil {
			t.Fatal(err)
		}
		crowd = append(crowd, r)
	}
	if m := p.Stats().Memory; m.UsedArenas != len(crowd) {
		t.Errorf("%d arenas used by %d runners", m.UsedArenas, len(crowd))
	}
	for _, r := range crowd {
		r.Close()
	}
	if m := p.Stats().Memory; m.UsedArenas != 0 || m.IdleArenas > max(4, 2*runtime.GOMAXPROCS(0)) {
		t.Errorf("%d arenas idle and %d used after %d runners at a time", m.IdleArenas, m.UsedArenas, len(crowd))
	}
}
