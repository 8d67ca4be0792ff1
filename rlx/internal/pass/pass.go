// Package pass transforms graphs: a pass is a function Graph -> Graph. Passes ask the rows for bits and
// decompositions; they know no op by name.
package pass

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"time"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// Pass is a named step of the pipeline: rules, or a function of the whole graph.
type Pass struct {
	Name   string
	Doc    string // what it does, in a line
	Needed bool   // cannot be switched off: later steps rely on it
	Rounds bool   // puts an op in place of its formula: inner steps may be rounded otherwise
	Rules  []Rule
	Run    func(*ir.Graph, map[string]int) (*ir.Graph, error) // counts what it does as Rewrite does, if it counts at all
	Whole  bool                                               // Run takes care of the sub-graphs itself; else it runs on each of them first
}

// Step is what one pass did.
type Step struct {
	Index         int // in the list of passes
	Pass          string
	Before, After *ir.Graph
	Rules         map[string]int // how often each rule applied
	Took          time.Duration
}

// Pipeline runs passes in order.
type Pipeline struct {
	Passes  []Pass
	Support *Support // what rules may ask
	Skip    func(name string) bool
	Verify  bool       // checks the graph after every pass
	Trace   func(Step) // gets every step, nil for nobody
}

// Run returns g after the passes.
func (p Pipeline) Run(g *ir.Graph) (*ir.Graph, error) {
	for i, x := range p.Passes {
		if !x.Needed && p.Skip != nil && p.Skip(x.Name) {
			continue
		}
		began, count := time.Now(), map[string]int{}
		out, err := p.one(x, g, count)
		if err != nil {
			return nil, err
		}
		if p.Verify {
			if err := out.Verify(); err != nil {
				return nil, fmt.Errorf("pass %s broke the graph: %w", x.Name, err)
			}
		}
		if p.Trace != nil {
			p.Trace(Step{i, x.Name, g, out, count, time.Since(began)})
		}
		g = out
	}
	return g, nil
}

func (p Pipeline) one(x Pass, g *ir.Graph, count map[string]int) (*ir.Graph, error) {
	run := func(g *ir.Graph) (*ir.Graph, error) {
		if x.Run != nil {
			return x.Run(g, count)
		}
		return Rewrite(g, p.Support, x.Rules, count)
	}
	if !x.Whole {
		var err error
		if g, err = g.MapGraphs(run); err != nil {
			return nil, err
		}
	}
	return run(g)
}

// Plain is the Run of a pass that counts nothing.
func Plain(f func(*ir.Graph) (*ir.Graph, error)) func(*ir.Graph, map[string]int) (*ir.Graph, error) {
	return func(g *ir.Graph, _ map[string]int) (*ir.Graph, error) { return f(g) }
}

// DCE drops the nodes that no output needs; inputs stay.
func DCE(g *ir.Graph) (*ir.Graph, error) {
	if g.AllLive() {
		return g, nil
	}
	return g.Rebuild(false, func(*ir.Graph, *ir.Node, []ir.Value) ([]ir.Value, error) { return nil, nil })
}

// Inline writes control nodes whose operands decide what runs without their control flow: an If by a constant in place of its branch.
func Inline(g *ir.Graph) (*ir.Graph, error) {
	if !slices.ContainsFunc(g.Nodes, func(n *ir.Node) bool { return n.Row.Has(ir.Control) }) {
		return g, nil
	}
	for any := false; ; any = true { // each round leaves fewer nodes that can be written so
		changed := false
		out, err := g.Rebuild(false, func(to *ir.Graph, n *ir.Node, in []ir.Value) ([]ir.Value, error) {
			if !n.Row.Has(ir.Control) {
				return nil, nil
			}
			out, err := rewrite(to, n, in, n.Row.Inline)
			changed = changed || out != nil
			return out, err
		})
		if err != nil {
			return nil, err
		}
		if !changed && !any {
			return g, nil
		}
		if g = out; !changed {
			return g, nil
		}
	}
}

// CSE merges nodes that compute the same: equal row, attributes and operands. Constants merge by their bits, so that -0 and +0 stay
// two; nodes that draw random numbers merge with none.
func CSE(g *ir.Graph) (*ir.Graph, error) {
	seed := maphash.MakeSeed()
	if !repeats(g, seed) {
		return g, nil
	}
	seen := map[string][]ir.Value{}
	return g.Rebuild(false, func(to *ir.Graph, n *ir.Node, in []ir.Value) ([]ir.Value, error) {
		key, ok := nodeKey(seed, n, in)
		if !ok {
			return nil, nil
		}
		out, ok := seen[key]
		if ok && sameConst(n, out[0]) {
			out[0].Node().Absorb(n)
			return out, nil
		}
		out, err := to.Copy(n, in)
		seen[key] = out
		return out, err
	})
}

// repeats says whether any two nodes have one key. Without such a pair there is nothing to merge further down either.
func repeats(g *ir.Graph, seed maphash.Seed) bool {
	seen := make(map[string]bool, len(g.Nodes))
	for _, n := range g.Nodes {
		if key, ok := nodeKey(seed, n, n.In); ok {
			if seen[key] {
				return true
			}
			seen[key] = true
		}
	}
	return false
}

// sameConst says that n is no constant, or the constant v bit for bit: their keys hold hashes of samples.
func sameConst(n *ir.Node, v ir.Value) bool {
	t, ok := n.Out(0).Const()
	if !ok {
		return true
	}
	u, ok := v.Const()
	return ok && (t == u || bytes.Equal(t.Bytes(), u.Bytes()))
}

// sampled is how much of a constant its key reads from each end: enough to tell weights apart without reading all of them.
const sampled = 2048

func sample(seed maphash.Seed, b []byte) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	h.Write(b[:min(len(b), sampled)])
	h.Write(b[max(len(b)-sampled, 0):])
	return h.Sum64()
}

// nodeKey is a text that equal computations share; ok is false where a node must stay itself.
func nodeKey(seed maphash.Seed, n *ir.Node, in []ir.Value) (string, bool) {
	if t, ok := n.Out(0).Const(); ok {
		if ir.Resting(t) { // those were merged before
			return fmt.Sprintf("const %p", t), true
		}
		return fmt.Sprintf("const %s%v %x", t.DType(), t.Shape(), sample(seed, t.Bytes())), true
	}
	if n.Row.Has(ir.Leaf) || n.Row.Has(ir.Random) || n.Row.Has(ir.Control) {
		return "", false
	}
	var b strings.Builder
	b.WriteString(n.Row.Name)
	if words, err := n.Row.AppendAttrs(nil, n.Attrs); err == nil { // exact, where the text merges the NaNs
		fmt.Fprintf(&b, " %x", words)
	} else { // symbolic dims
		b.WriteString(n.AttrText())
	}
	for _, v := range in {
		if v.IsZero() {
			b.WriteString(" -")
		} else {
			fmt.Fprintf(&b, " %d.%d", v.Node().ID(), v.Index())
		}
	}
	return b.String(), true
}

// Bind makes every dim static: see [ir.Graph.Bind].
func Bind(g *ir.Graph, values map[string]int64) (*ir.Graph, error) { return g.Bind(values) }
