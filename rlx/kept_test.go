package rlx_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// blocks is a small network for images of any batch with as many nodes as one of many layers: expanding and depthwise convolutions, gates of
// channels, residuals, and at the end a table that the second input picks a row of.
func blocks(count int) *rlx.Graph {
	r := rand.New(rand.NewPCG(11, 12))
	g := rlx.NewGraph("blocks")
	x := g.Input("x", rlx.F32, rlx.Shape("n", 32, 6, 6))
	conv := func(x rlx.Value, out, in, k, groups int, name string) rlx.Value {
		w := g.Param(name+".weight", weightsOf(r, out, in/groups, k, k))
		return op.Conv2d(x, w, g.Param(name+".bias", weightsOf(r, out)), op.ConvAttrs{Padding: []int64{int64(k / 2), int64(k / 2), int64(k / 2), int64(k / 2)}, Groups: int64(groups)}).Named(name)
	}
	for i := range count {
		name := fmt.Sprintf("backbone/blocks.%d/", i)
		y := op.Relu(conv(x, 64, 32, 1, 1, name+"expand"))
		y = op.Relu(conv(y, 64, 64, 3, 64, name+"depthwise"))
		gate := op.Sigmoid(conv(op.Reduce(y, op.ReduceFn("mean"), []int{2, 3}, true), 64, 64, 1, 1, name+"gate"))
		x = op.Add(x, conv(op.Mul(y, gate), 32, 64, 1, 1, name+"project")).Named(name + "sum")
	}
	flat := op.Reduce(x, op.ReduceFn("mean"), []int{2, 3}, false)
	row := op.Gather(g.Constant(weightsOf(r, 4, 32)), g.Input("row", rlx.I64, rlx.Shape(1)), 0).Named("table")
	g.Output("y", op.Log(op.Add(op.Add(flat, row), 1000)).Named("log"))
	return g
}

func blocksFeed(n int, row int64) rlx.Feed {
	x := weightsOf(rand.New(rand.NewPCG(uint64(n), 13)), n, 32, 6, 6)
	return rlx.Feed{"x": x, "row": rlx.New([]int64{row}, 1)}
}

// What a program holds beside weights and the memory of a run does not grow to a multiple of a small model: the graph that it compiles other
// shapes of, commands and tables.
func TestHeldBesideWeights(t *testing.T) {
	if !slices.Contains(backends(), "cpu") {
		t.Skip("cpu: not compiled in (CGO_ENABLED=0)")
	}
	const count = 24
	most := int64(0)
	load := func() (*rlx.Graph, rlx.Feed) { return blocks(count), blocksFeed(2, 1) }
	heldBy(t, load)
	nodes := len(blocks(count).Nodes)
	for range 3 { // what other tests left behind may go meanwhile
		held, plan := heldBy(t, load)
		if most = held - plan; most <= int64(nodes)*perNode {
			break
		}
	}
	t.Logf("%d nodes: %d bytes beside weights and arena", nodes, most)
	if most > int64(nodes)*perNode {
		t.Errorf("a program of %d nodes holds %d bytes beside weights and the memory of a run, expected at most %d a node", nodes, most, perNode)
	}
}

// perNode is what a node of a graph, a weight or not, may cost: its share of the packed graph, of the commands, and of the forms of weights,
// whose last columns are filled up.
const perNode = 250

// sweep lets go of what nobody uses.
func sweep() {
	runtime.GC()
	runtime.GC()
}

// A program that keeps its graphs packed describes itself as one that keeps them whole: TracePasses makes it.
func TestPackedProgramTellsTheSame(t *testing.T) {
	for _, b := range backends() {
		g := blocks(3)
		whole, packed := compileGraph(t, g, rlx.On(b), rlx.TracePasses(func(rlx.PassStep) {})), compileGraph(t, g, rlx.On(b))
		for _, n := range []int{2, 5, 2} {
			tell := func(p *rlx.Program) (what []any) {
				feed := blocksFeed(n, 2)
				out, err := p.Run(t.Context(), feed)
				if err != nil {
					t.Fatal(err)
				}
				sweep()
				pl, err := p.Plan(t.Context(), feed)
				if err != nil {
					t.Fatal(err)
				}
				sweep()
				var pr rlx.Profile
				if _, err := p.Run(t.Context(), feed, rlx.WithProfile(&pr)); err != nil {
					t.Fatal(err)
				}
				var commands []rlx.Command
				for _, s := range pr.Steps {
					commands = append(commands, s.Command)
				}
				sweep()
				in, ports := p.Ports()
				placed, err := p.Placement()
				if err != nil {
					t.Fatal(err)
				}
				segments, err := p.Segments()
				if err != nil {
					t.Fatal(err)
				}
				return []any{out["y"].Bytes(), pl, commands, in, ports, placed, segments, p.Stats().Memory.Weights}
			}
			got, want := tell(packed), tell(whole)
			for i := range want {
				if !reflect.DeepEqual(got[i], want[i]) {
					t.Errorf("%s: %d images, %d: got %+v, expected %+v", b, n, i, got[i], want[i])
				}
			}
		}
		if got, want := packed.Graph(), whole.Graph(); got.String() != want.String() || packed.Graph() != got {
			t.Errorf("%s: got\n%s\nexpected\n%s", b, got, want)
		}
	}
}

// Errors of a packed program name nodes, and CheckFinite finds one.
func TestPackedProgramNamesNodes(t *testing.T) {
	for _, b := range backends() {
		p := compileGraph(t, blocks(2), rlx.On(b))
		if _, err := p.Run(t.Context(), blocksFeed(1, 0)); err != nil {
			t.Fatal(err)
		}
		sweep()
		var run *rlx.ExecError
		if _, err := p.Run(t.Context(), blocksFeed(1, 9)); !errors.As(err, &run) || !strings.Contains(err.Error(), "table") {
			t.Errorf("%s: got %v, expected an error of node table", b, err)
		}
		sweep()
		feed := blocksFeed(1, 0)
		x, _ := rlx.Data[float32](feed["x"])
		for i := range x {
			x[i] = -1e6 // the residuals carry it to the logarithm
		}
		var found *rlx.NonFiniteError
		if _, err := p.Run(t.Context(), feed, rlx.CheckFinite()); !errors.As(err, &found) || found.Node != "log" {
			t.Errorf("%s: got %v, expected a NaN of node log", b, err)
		}
	}
}

// Many runs of many shapes, descriptions and collections at a time: each finds the graph that it needs.
func TestPackedConcurrently(t *testing.T) {
	for _, b := range backends() {
		g := blocks(2)
		p, whole := compileGraph(t, g, rlx.On(b), rlx.Specialisations(2)), compileGraph(t, g, rlx.On("ref"))
		want := make([]*rlx.Tensor, 5)
		for n := range want {
			out, err := whole.Run(t.Context(), blocksFeed(n+1, 3))
			if err != nil {
				t.Fatal(err)
			}
			want[n] = out["y"]
		}
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				n := i % len(want)
				out, err := p.Run(t.Context(), blocksFeed(n+1, 3))
				if err != nil {
					t.Error(b, err)
					return
				}
				same(t, "blocks", "ref", out["y"], want[n])
				switch i % 4 {
				case 0:
					sweep()
				case 1:
					if _, err := p.Plan(t.Context(), blocksFeed(n+1, 3)); err != nil {
						t.Error(b, err)
					}
				case 2:
					if p.Graph().String() == "" {
						t.Error(b, "no graph")
					}
				}
			})
		}
		wg.Wait()
	}
}

// Small constants are read back like large ones while the program is open, and stay with whoever was given the graph; who asks after Close gets
// the graph without them.
func TestSmallConstantsComeBack(t *testing.T) {
	for _, b := range backends() {
		g := blocks(2)
		given, late := compileGraph(t, g, rlx.On(b)), compileGraph(t, g, rlx.On(b))
		for _, p := range []*rlx.Program{given, late} {
			if _, err := p.Run(t.Context(), blocksFeed(1, 0)); err != nil {
				t.Fatal(err)
			}
		}
		sweep()
		shown := given.Graph()
		if err := errors.Join(given.Close(), late.Close()); err != nil {
			t.Fatal(err)
		}
		want, found := map[string][]byte{}, 0
		g.EachNode(func(n *ir.Node) {
			if name, ok := n.ParamName(); ok {
				want[name] = g.ParamData(name).Bytes()
			}
		})
		shown.EachNode(func(n *ir.Node) {
			if name, ok := n.ParamName(); ok && want[name] != nil {
				found++
				if !bytes.Equal(shown.ParamData(name).Bytes(), want[name]) {
					t.Errorf("%s: %s has other bytes after Close", b, name)
				}
			}
		})
		if found == 0 {
			t.Errorf("%s: no params in\n%s", b, shown)
		}
		after := late.Graph()
		if len(after.Nodes) != len(shown.Nodes) {
			t.Errorf("%s: after Close the graph has %d nodes, expected %d", b, len(after.Nodes), len(shown.Nodes))
		}
		if c := largest(after); b == "cpu" && (!errors.Is(c.Err(), rlx.ErrClosed) || len(c.Bytes()) != 0) {
			t.Errorf("%s: a constant that was first asked for after Close: %d bytes, %v", b, len(c.Bytes()), c.Err())
		}
	}
}

// Commands share the dims, strides and attributes that are equal; more than are remembered at a time, and equal ones far apart, run as others do.
func TestSharedShapes(t *testing.T) {
	graph := func() (*rlx.Graph, rlx.Feed) {
		g, feed := rlx.NewGraph("shapes"), rlx.Feed{}
		for round := range 2 {
			for i := range 50 {
				name := fmt.Sprintf("x%d.%d", round, i)
				x := g.Input(name, rlx.F32, rlx.Shape(1+i, 2, 3))
				feed[name] = weightsOf(rand.New(rand.NewPCG(uint64(i), uint64(round))), 1+i, 2, 3)
				y := op.Cumsum(op.Transpose(x, 1, 0, 2), i%3)
				g.Output("y"+name, op.Pad(y, rlx.Shape(0, i%40, 0, 1, 0, 0), op.PadConstant, ir.IntNumber(1)))
			}
		}
		return g, feed
	}
	g, feed := graph()
	want, err := compileGraph(t, g, rlx.On("ref")).Run(t.Context(), feed)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range backends() {
		got, err := compileGraph(t, g, rlx.On(b)).Run(t.Context(), feed)
		if err != nil {
			t.Fatal(err)
		}
		for name := range want {
			same(t, name, "ref", got[name], want[name])
		}
	}
}
