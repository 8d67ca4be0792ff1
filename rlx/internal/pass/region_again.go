package pass

import (
	"slices"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// What several passes over memory need, and what is light to compute, need not be stored: each of them computes it again. It saves memory where the
// bytes that they read then are fewer than those of the value, written once and read by each.
const (
	maxSinks = 8 // more passes that compute a value again, or more nodes for it, are not thought about
	maxAgain = 8
	// A node over a vector costs about a quarter of what writing the vector and reading it do.
	againShare = 4
)

// sinks are the passes over memory that need a node's value: elementwise nodes that end a group, and Reduces. One that is stored ends a group itself.
type sinks map[*ir.Node][]*ir.Node

// recomputed chooses the nodes that groups compute again, from the last on: where a value is needed is known then, what it is made of is guessed.
func (f *fuser) recomputed(g *ir.Graph) map[*ir.Node]bool {
	again, at := map[*ir.Node]bool{}, sinks{}
	for i := len(g.Nodes) - 1; i >= 0; i-- {
		n := g.Nodes[i]
		if !f.fits(n) {
			continue
		}
		at[n] = f.sinksOf(n, at)
		if len(at[n]) < 2 {
			continue
		}
		if e := (weigher{f: f, again: again, at: at, n: n}); op.Light(n) && e.saves() {
			again[n] = true
			f.count["recompute"]++
		} else {
			at[n] = []*ir.Node{n}
		}
	}
	return again
}

// sinksOf are those of n's readers, or n itself where some reader takes it from memory.
func (f *fuser) sinksOf(n *ir.Node, at sinks) []*ir.Node {
	var list []*ir.Node
	for _, r := range f.readers[n.Out(0)] {
		switch {
		case r == nil:
			return []*ir.Node{n}
		case f.fits(r) && slices.Equal(r.Types[0].Shape, n.Types[0].Shape):
			for _, k := range at[r] {
				if !slices.Contains(list, k) {
					list = append(list, k)
				}
			}
		case f.reduces(r):
			list = append(list, r)
		default:
			return []*ir.Node{n}
		}
		if len(list) > maxSinks {
			return []*ir.Node{n}
		}
	}
	return list
}

// weigher counts the bytes that go to and from memory for n.
type weigher struct {
	f     *fuser
	again map[*ir.Node]bool
	at    sinks
	n     *ir.Node
}

// saves says whether computing n in each of its sinks moves fewer bytes than storing it.
func (w *weigher) saves() bool {
	made := &inputs{w: w}
	made.add(w.n, nil)
	if made.nodes > maxAgain {
		return false
	}
	// Stored, it is a result of its first sink, or of a group of its own where that is a Reduce.
	first := slices.MinFunc(w.at[w.n], func(a, b *ir.Node) int { return a.ID() - b.ID() })
	host := !w.f.reduces(first)
	size := bytesOf(w.n.Out(0))
	stored, again := size, 0.0
	for _, k := range w.at[w.n] {
		end := k
		if w.f.reduces(k) {
			end = k.In[0].Node()
		}
		other := &inputs{w: w}
		if end != w.n {
			other.add(end, w.n)
		}
		if k != first || !host {
			stored += size
		}
		for _, v := range made.list {
			n, private := bytesOf(v), w.private(v, made)
			if !slices.Contains(other.list, v) {
				again += n
			}
			switch {
			case k != first:
			case private: // computed with it, or else stored for its sake
				again += n
			case !host || !slices.Contains(other.list, v):
				stored += n
			}
		}
	}
	return again+float64((len(w.at[w.n])-1)*made.nodes)*size/againShare < stored
}

// private says whether v is computed for the nodes of made alone.
func (w *weigher) private(v ir.Value, made *inputs) bool {
	if v.Node().Row.Has(ir.Leaf) {
		return false
	}
	return !slices.ContainsFunc(w.f.readers[v], func(r *ir.Node) bool { return r == nil || !made.seen[r] })
}

func bytesOf(v ir.Value) float64 {
	n, _ := ir.Count(v.Shape()).Static()
	return float64(n) * float64(v.DType().Size())
}

// inputs are the values that a pass over memory reads, and the nodes that it computes.
type inputs struct {
	w     *weigher
	list  []ir.Value
	seen  map[*ir.Node]bool
	nodes int
}

// add takes in m with all that is computed with it, but stop.
func (in *inputs) add(m, stop *ir.Node) {
	if in.seen == nil {
		in.seen = map[*ir.Node]bool{}
	}
	if in.seen[m] || in.nodes > op.MaxRegionNodes {
		return
	}
	in.seen[m] = true
	in.nodes++
	for _, v := range m.In {
		switch d := v.Node(); {
		case d == stop:
		case in.w.inner(d, m):
			in.add(d, stop)
		case !slices.Contains(in.list, v):
			in.list = append(in.list, v)
		}
	}
}

// inner says whether d is computed in the passes that compute m. What comes before n is not decided: light nodes are thought to be computed again.
func (w *weigher) inner(d, m *ir.Node) bool {
	if !w.f.fits(d) || !slices.Equal(d.Types[0].Shape, m.Types[0].Shape) {
		return false
	}
	if d.ID() > w.n.ID() {
		return w.again[d] || !slices.Contains(w.at[d], d)
	}
	return op.Light(d) && w.f.takenIn(d)
}

// takenIn says whether all that reads d could compute it: elementwise nodes of its shape and Reduces.
func (f *fuser) takenIn(d *ir.Node) bool {
	yes, ok := f.takes[d]
	if !ok {
		yes = !slices.ContainsFunc(f.readers[d.Out(0)], func(r *ir.Node) bool {
			return r == nil || !f.reduces(r) && !(f.fits(r) && slices.Equal(r.Types[0].Shape, d.Types[0].Shape))
		})
		f.takes[d] = yes
	}
	return yes
}
