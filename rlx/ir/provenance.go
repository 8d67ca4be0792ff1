package ir

import (
	"cmp"
	"slices"
)

// A node that a pass makes tells which nodes of the user's graph it stands for: the one that it bears the name of, or is a part of, and those that
// were absorbed: replaced by it, or needed by nothing but what it replaces.

// Source is the node of the user's graph that n is, is a part of, or was made for.
func (n *Node) Source() Origin {
	if n.From.Op != "" {
		return n.From
	}
	return Origin{n.Row.Name, cmp.Or(n.From.Name, n.Name)}
}

// Inherit puts n in the place of m, of which it is another form.
func (n *Node) Inherit(m *Node) { n.From, n.Absorbed = m.From, m.Absorbed }

// Absorb notes that n stands for m and for what m stood for. Inputs, params and constants are no computation that anything could stand for.
func (n *Node) Absorb(m *Node) {
	if n == m {
		return
	}
	list := slices.Clip(n.Absorbed)                                                          // other graphs share it
	if s := m.Source(); !m.Row.Has(Leaf) && (s.Name != n.Source().Name || n.Row.Has(Leaf)) { // the name of a leaf is no node's
		list = append(list, s)
	}
	n.Absorbed = append(list, m.Absorbed...)
}

// Merges collects what replaced nodes while a graph is rebuilt.
type Merges struct{ list []merge }

type merge struct {
	in []Value // of the node that was replaced, in the new graph
	at int     // the nodes that were there before it
	by *Node
}

// Add notes that by came in place of a node with operands in, when the graph had at nodes.
func (m *Merges) Add(at int, in []Value, by *Node) { m.list = append(m.list, merge{in, at, by}) }

// Settle gives the nodes of g that fell out of use to those that came in place of their readers. What nothing read before stays nobody's.
func (m *Merges) Settle(g *Graph) {
	if len(m.list) == 0 {
		return
	}
	live, owner := g.live(), make([]*Node, len(g.Nodes))
	give := func(in []Value, to *Node) {
		for _, v := range in {
			if v.n != nil && !live[v.n.id] && owner[v.n.id] == nil {
				owner[v.n.id] = to
			}
		}
	}
	rest := m.list
	for i := len(g.Nodes); i >= 0; i-- { // readers first: those of a node stand behind it
		if i < len(g.Nodes) && owner[i] != nil {
			give(g.Nodes[i].In, owner[i])
		}
		for ; len(rest) > 0 && rest[len(rest)-1].at >= i; rest = rest[:len(rest)-1] {
			last := rest[len(rest)-1]
			by := last.by
			if !live[by.id] {
				by = owner[by.id]
			}
			give(last.in, by)
		}
	}
	for i, n := range owner {
		if n != nil {
			n.Absorb(g.Nodes[i])
		}
	}
}
