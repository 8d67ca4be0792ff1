package fuzz

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/conform"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

var (
	graphs    = flag.Int("graphs", 0, "random graphs to check; 0: as many as the time allows")
	period    = flag.Duration("period", 0, "how long graphs are checked; 0: 2m, 5s in a short run")
	firstSeed = flag.Uint64("seed", 1, "seed of the first graph; the others follow it")
	on        = flag.String("on", "", "backends, with commas; empty: all of the build")
	light     = flag.Bool("light", false, "neither threads nor sizes")
	shrink    = flag.Bool("shrink", true, "look for a smaller graph that fails")
	emphasis  = flag.String("emphasis", "", "a kind of step that graphs take ten times as often")
	most      = flag.Int("failures", 5, "failures after which to stop")
)

// backends are those that check the graph of a seed. Those that -on names check all; else the interpreter takes every fourth, and what compiles
// slowly every sixteenth.
func backends(seed uint64) []string {
	if *on != "" {
		return strings.Split(*on, ",")
	}
	var list []string
	for _, b := range conform.Backends() {
		every := uint64(1)
		switch {
		case conform.Slow(b):
			every = 16
		case b == "ref":
			every = 4
		}
		if seed%every == 0 {
			list = append(list, b)
		}
	}
	return list
}

// least is how many graphs a run checks that is not short, whatever the time.
const least = 500

// Random graphs give the same under every choice of passes, on every backend.
func TestGraphs(t *testing.T) {
	Emphasis = *emphasis
	for _, b := range backends(0) {
		defer conform.Hold(t.Context(), rlx.On(b))()
	}
	budget, atLeast := *period, 0
	if budget == 0 {
		budget, atLeast = 2*time.Minute, least
		if testing.Short() {
			budget, atLeast = 5*time.Second, 0
		}
	}
	r := run{stats: NewStats(), began: time.Now()}
	for seed := *firstSeed; r.failed < *most; seed++ {
		enough := r.checked >= atLeast && time.Since(r.began) >= budget
		if *graphs > 0 {
			enough = r.checked >= *graphs
		}
		if enough {
			break
		}
		r.graph(t, seed)
	}
	t.Logf("%d graphs from seed %d on %v, %d runs in %s; %d seeds gave no graph", r.checked, *firstSeed, backends(0), r.runs,
		time.Since(r.began).Round(time.Millisecond), r.refused)
	t.Logf("nodes of %d rows; graphs that a pass changed: %v", len(r.stats.Rows), r.stats.Fired)
	if r.refused*20 > r.checked+20 {
		t.Errorf("%d seeds of %d gave no graph", r.refused, r.checked+r.refused)
	}
}

// run is one TestGraphs.
type run struct {
	stats                          *Stats
	began, told                    time.Time
	checked, refused, runs, failed int
}

// graph checks the graph of a seed.
func (r *run) graph(t *testing.T, seed uint64) {
	c, err := Grow(seed, Size(seed))
	if err != nil {
		r.refused++
		t.Logf("not grown: %v", err)
		return
	}
	o := Options{Backends: backends(seed), Only: true, Light: *light, Stats: r.stats}
	r.checked++
	f, n := Check(c, o)
	r.runs += n
	if f != nil {
		r.failed++
		small := c
		if *shrink {
			small, f = Shrink(c, f, o)
		}
		t.Errorf("seed %d: %v\n%s", seed, f, Snippet(small, f))
	}
	if *graphs > 1000 && time.Since(r.told) > 30*time.Second {
		r.told = time.Now()
		fmt.Printf("%d of %d graphs, %d failed, %s\n", r.checked, *graphs, r.failed, time.Since(r.began).Round(time.Second))
	}
}

// FuzzGraph is TestGraphs for go test -fuzz, which draws seeds and sizes.
func FuzzGraph(f *testing.F) {
	f.Add(uint64(1), uint8(10))
	f.Fuzz(func(t *testing.T, seed uint64, steps uint8) {
		c, err := Grow(seed, 1+int(steps)%40)
		if err != nil {
			return
		}
		o := Options{Backends: conform.Backends(), Light: true}
		if failure, _ := Check(c, o); failure != nil {
			small, failure := Shrink(c, failure, o)
			t.Errorf("seed %d, %d steps: %v\n%s", seed, 1+int(steps)%40, failure, Snippet(small, failure))
		}
	})
}

// A symbol has the size of the inputs whose dim it is alone, and what is bound otherwise is refused before it is computed.
func TestSymbols(t *testing.T) {
	g := ir.NewGraph("g")
	x, y := g.Input("x", ir.F32, []ir.Dim{ir.Sym("n")}), g.Input("y", ir.F32, []ir.Dim{ir.Sym("n").Mul(ir.D(2))})
	z := op.Neg(op.Add(x, op.Narrow(y, 0, 0, 1)))
	g.Output("z", z)
	c := &Case{Graph: g, Feed: rlx.Feed{"x": ir.New([]float32{1, 2}, 2), "y": ir.New([]float32{5, 6, 7, 8}, 4)}}
	if f, _ := Check(c, Options{Backends: []string{"ref"}}); f != nil {
		t.Error(f)
	}
	small := sized(c)
	if got := small.Graph.Outputs[0].Value.Type().String(); got != "f32[2]" {
		t.Errorf("with sizes: got %s, expected f32[2]", got)
	}
	if f, _ := Check(small, Options{Backends: []string{"ref"}}); f != nil {
		t.Error(f)
	}
	c.Feed["y"] = ir.New([]float32{5}, 1)
	if f, _ := Check(c, Options{Backends: []string{"ref"}}); f == nil || !strings.Contains(f.Error(), "operand 0 is f32[1], expected f32[4]") {
		t.Errorf("got %v, expected an operand that is refused", f)
	}
}

// What Snippet writes is what Replay reads: the same graph, with the same values.
func TestSnippet(t *testing.T) {
	for seed := uint64(1); seed < 20; seed++ {
		c, err := Grow(seed, Size(seed))
		if err != nil {
			t.Fatal(err)
		}
		g, err := ir.ParseGraph(strings.NewReader(c.Graph.String()))
		if err != nil {
			t.Fatalf("%v\n%s", err, c.Graph)
		}
		if g.String() != c.Graph.String() {
			t.Errorf("read back:\n%s\nwritten:\n%s", g, c.Graph)
		}
		for name, x := range c.Feed {
			if y, err := parseTensor(tensorText(x)); err != nil || sameTensor(y, x) != nil {
				t.Errorf("%s: %v, %v", name, err, sameTensor(y, x))
			}
		}
	}
}
