package rlx_test

import (
	"flag"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-ml/rlx-go/internal/golden"
	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

var long = flag.Bool("long", false, "the pass matrix on the interpreter too, with each pass alone, at every stored case: make long")

// The models of the golden file give what is stored with all passes, with none, and with each pass off that does something among all; with
// -long also with each pass alone, on the interpreter, and at every stored case instead of each model's smallest.
func TestPassMatrix(t *testing.T) {
	cases, err := golden.Read(goldenFile)
	if err != nil {
		t.Fatal(err)
	}
	on := []string{"cpu"}
	if *long {
		on = append(on, "ref")
	}
	for _, b := range on {
		if !slices.Contains(backends(), b) {
			t.Logf("%s: not compiled in", b)
			continue
		}
		for _, group := range byProgram(cases) {
			if testing.Short() && slow(group[0]) {
				continue
			}
			if !*long {
				group = []golden.Case{smallest(group)}
			}
			t.Run(b+"/"+group[0].Name, func(t *testing.T) { passMatrix(t, b, group) })
		}
	}
}

// smallest is the case with the fewest elements of inputs.
func smallest(group []golden.Case) golden.Case {
	elements := func(c golden.Case) int64 {
		total := int64(0)
		for _, in := range c.Inputs {
			n := int64(1)
			for _, d := range in.Shape {
				n *= int64(d)
			}
			total += n
		}
		return total * int64(max(c.Steps, 1))
	}
	return slices.MinFunc(group, func(a, b golden.Case) int { return int(elements(a) - elements(b)) })
}

func passMatrix(t *testing.T, backend string, group []golden.Case) {
	m := open(t, group[0].Model, rlx.For(goldenFeed(t, group[0], 0)))
	run := func(name string, opts ...rlx.Option) (changed map[string]bool) {
		changed = map[string]bool{}
		opts = append(opts, rlx.On(backend), rlx.TracePasses(func(s rlx.PassStep) {
			if s.Before != s.After {
				changed[s.Pass] = true
			}
		}))
		t.Run(name, func(t *testing.T) {
			p := compile(t, m, opts...)
			for _, c := range group {
				compareGolden(t, c, goldenRuns(t, c, m, p, 1))
			}
		})
		return changed
	}
	all := run("all", rlx.Verify())
	run("none", rlx.OnlyPasses())
	for _, p := range rlx.Passes() {
		if p.Needed {
			continue
		}
		if all[p.Name] {
			run("without "+p.Name, rlx.WithoutPasses(p.Name))
		}
		if *long {
			run("only "+p.Name, rlx.OnlyPasses(p.Name))
		}
	}
}

// A run whose shapes do not agree says so, whatever the passes made of the graph.
func TestPassesKeepErrorsOfShapes(t *testing.T) {
	for _, passes := range [][]rlx.Option{{}, {rlx.OnlyPasses()}} {
		g := rlx.NewGraph("joined")
		a, b := g.Input("a", rlx.F32, rlx.Shape("n", 4)), g.Input("b", rlx.F32, rlx.Shape(6, 4))
		g.Output("y", op.Narrow(op.Concat(1, a, b), 0, 1, 2))
		p, err := rlx.Compile(t.Context(), g, append(passes, rlx.On("ref"))...)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		_, err = p.Run(t.Context(), rlx.Feed{"a": rlx.New(make([]float32, 28), 7, 4), "b": rlx.New(make([]float32, 24), 6, 4)})
		if err == nil || !strings.Contains(err.Error(), "C3") {
			t.Errorf("%d options: joining [7,4] and [6,4] along axis 1 gives %v, expected an error of C3", len(passes), err)
		}
	}
}
