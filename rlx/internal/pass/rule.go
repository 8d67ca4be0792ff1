package pass

import (
	"fmt"
	"slices"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// Rule rewrites single nodes: it looks at a node and at what it is made of, and gives values that stand for its results, or nil where it
// does not apply. A rule that gives nil adds no nodes. It must be right on its own, whatever other rules do.
type Rule struct {
	Name  string
	Apply func(m *Match) []ir.Value
}

// Match is what a rule sees: a node of the new graph whose operands are rewritten already, so that rules see through each other's results.
// The node itself is not in the graph yet.
type Match struct {
	*ir.Node
	Support *Support // what the target can do; nil before that matters

	uses map[ir.Value]int
}

// Single says that v, a value on the way to the node, is read by one operand only and is no output: nothing else sees it go.
func (m *Match) Single(v ir.Value) bool { return m.uses[v] <= 1 }

// maxRewrites bounds how often rules follow each other at one node: rules that undo each other are a defect, not a hang.
const maxRewrites = 100

// Rewrite applies rules to every node, operands first, until none applies. It counts what each did.
func Rewrite(g *ir.Graph, s *Support, rules []Rule, count map[string]int) (*ir.Graph, error) {
	w := rewriter{s: s, rules: rules, count: count, old: usesOf(g), uses: make(map[ir.Value]int, len(g.Nodes))}
	out, err := g.Rebuild(false, func(to *ir.Graph, n *ir.Node, in []ir.Value) ([]ir.Value, error) {
		first := len(to.Nodes)
		out, err := w.node(to, n, in)
		w.counted(to, first, in)
		for i, v := range out {
			w.uses[v] += w.old[n.Out(i)]
		}
		return out, err
	})
	if err != nil || !w.changed {
		return g, err
	}
	w.merges.Settle(out)
	return DCE(out)
}

type rewriter struct {
	s       *Support
	rules   []Rule
	count   map[string]int
	old     map[ir.Value]int // readers in the graph that is rewritten
	uses    map[ir.Value]int // readers in the new one: those of the values that a value stands for, and those among new nodes
	merges  ir.Merges
	changed bool
}

// usesOf counts the readers of every value, outputs among them.
func usesOf(g *ir.Graph) map[ir.Value]int {
	uses := make(map[ir.Value]int, len(g.Nodes))
	for _, n := range g.Nodes {
		for _, v := range n.In {
			uses[v]++
		}
	}
	for _, o := range g.Outputs {
		uses[o.Value]++
	}
	return uses
}

// counted adds the readers among the nodes that stand for one, and takes back that one's own, whose operands are in.
func (w *rewriter) counted(to *ir.Graph, first int, in []ir.Value) {
	for _, n := range to.Nodes[min(first, len(to.Nodes)):] {
		for _, v := range n.In {
			w.uses[v]++
		}
	}
	for _, v := range in {
		w.uses[v]--
	}
}

// node copies n into the new graph, or writes what rules make of it.
func (w *rewriter) node(to *ir.Graph, n *ir.Node, in []ir.Value) ([]ir.Value, error) {
	first := len(to.Nodes)
	out, err := to.Copy(n, in)
	var replaced []*ir.Node
	for range maxRewrites {
		if err != nil || len(out) == 0 {
			return out, err
		}
		last := out[0].Node()
		applied := false
		// What is no new node was looked at when it came, and so was one of its results.
		if !last.Row.Has(ir.Leaf) && last.ID() >= first && last == to.Nodes[len(to.Nodes)-1] && slices.Equal(out, last.Results()) {
			if out, applied, err = w.once(to, last); applied {
				replaced = append(replaced, last)
			}
		}
		if err == nil && !applied {
			w.standsFor(out[0].Node(), replaced)
			return out, nil
		}
	}
	if err == nil {
		err = fmt.Errorf("%s: more than %d rewrites follow each other", n, maxRewrites)
	}
	return nil, err
}

// standsFor notes that n came in place of other nodes, one after the other.
func (w *rewriter) standsFor(n *ir.Node, replaced []*ir.Node) {
	for _, old := range replaced {
		n.Absorb(old)
		w.merges.Add(old.ID(), old.In, n)
	}
}

// madeFor is the origin of the nodes that rules put in the place of n.
func madeFor(n *ir.Node) ir.Origin {
	if n.From.Name == "" {
		return ir.Origin{Name: n.Name}
	}
	return n.From
}

// once lets the first rule that applies rewrite n, the last node of the graph. What a rule makes is part of what n was part of, or made for n;
// its last node is in the place of n and bears its name. A result of another type is not taken: symbolic sizes may be equal and yet written
// differently.
func (w *rewriter) once(to *ir.Graph, n *ir.Node) (out []ir.Value, applied bool, err error) {
	to.Drop(n)
	m := &Match{Node: n, Support: w.s, uses: w.uses}
	for _, r := range w.rules {
		out := to.WithOrigin(madeFor(n), func() []ir.Value { return r.Apply(m) })
		if err := to.Err(); err != nil {
			return nil, false, fmt.Errorf("rule %s at %s: %w", r.Name, n, err)
		}
		if out == nil {
			continue
		}
		if !sameTypes(out, n.Types) {
			w.count[Mismatch+r.Name]++
			continue
		}
		w.changed = true
		w.count[r.Name]++
		if last := out[0].Node(); last == to.Nodes[len(to.Nodes)-1] && last.ID() >= n.ID() {
			out[0].Named(n.Name)
			last.From = n.From
		}
		return out, true, nil
	}
	if len(to.Nodes) == n.ID() {
		return n.Results(), false, to.Restore(n)
	}
	out, err = to.Copy(n, n.In)
	return out, false, err
}

// Mismatch marks the count of rewrites that were not taken because their types differ.
const Mismatch = "not taken: "

func sameTypes(out []ir.Value, types []ir.Type) bool {
	if len(out) != len(types) {
		return false
	}
	for i, v := range out {
		if !v.Type().Equal(types[i]) {
			return false
		}
	}
	return true
}
