package pass

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rlx-ml/rlx-go/rlx/backend"
	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// Support is what a backend can do, ready for questions.
type Support struct {
	Backend         string
	MaxBytes        int64    // of a tensor that a native command touches, 0 for no limit
	ComposeFirst    bool     // decompose wherever there is a decomposition, kernel or not: a mask of the conformance suite
	native, strided dtypesOf // by op number
	host            func(*ir.Row) bool
	bodies          *Support // of what runs staged nodes and their sub-graphs
}

// dtypesOf is sets of dtypes by number of an op.
type dtypesOf []uint32

func (s dtypesOf) has(op int, d ir.DType) bool { return op < len(s) && s[op]>>d&1 != 0 }

// HostBodies says what the backend that runs staged nodes can do: it runs their sub-graphs too.
func (s *Support) HostBodies(host *Support) { s.bodies = host.Body() }

// Body is what runs the sub-graphs of native nodes: the same without staging.
func (s *Support) Body() *Support {
	c := *s
	c.host = nil
	return &c
}

// BodyOf is what runs the sub-graphs of n.
func (s *Support) BodyOf(n *ir.Node) *Support {
	if s.Staged(n) {
		return s.bodies
	}
	return s.Body()
}

// NewSupport reads a backend's capability rows. host says which rows may run on the host between native segments; nil for none.
func NewSupport(name string, caps []backend.Cap, host func(*ir.Row) bool) *Support {
	count := 0
	for _, c := range caps {
		count = max(count, c.Op+1)
	}
	s := &Support{Backend: name, native: make(dtypesOf, count), strided: make(dtypesOf, count), host: host}
	for _, c := range caps {
		s.native[c.Op] |= c.DTypes
		if c.Strided {
			s.strided[c.Op] |= c.DTypes
		}
	}
	return s
}

// Native says whether n runs natively: its row has a kernel for the dtype of its first operand, or of its first result, and no tensor of
// it is too large for the device.
func (s *Support) Native(n *ir.Node) bool { return s.kernel(n) && s.fineBodies(n) }

// kernel says whether there is one for n, whatever its sub-graphs hold.
func (s *Support) kernel(n *ir.Node) bool { return s.NativeRow(n.Row, keyDType(n)) && s.fits(n) }

// fineBodies says whether the backend runs all nodes of n's sub-graphs as they are.
func (s *Support) fineBodies(n *ir.Node) bool {
	for _, g := range n.Graphs() {
		for _, m := range g.Nodes {
			if !s.fine(m) {
				return false
			}
		}
	}
	return true
}

func (s *Support) fits(n *ir.Node) bool {
	if s.MaxBytes == 0 {
		return true
	}
	for _, t := range n.Types {
		if !s.fitsType(t) {
			return false
		}
	}
	for _, v := range n.In {
		for ; !v.IsZero(); v = v.Node().In[0] { // a view touches memory of what it is a view of
			if !s.fitsType(v.Type()) {
				return false
			}
			if !v.Node().Row.Has(ir.View) {
				break
			}
		}
	}
	return true
}

// fitsType says whether the device takes a tensor of type t; one of unknown size may fit.
func (s *Support) fitsType(t ir.Type) bool {
	n, ok := ir.Count(t.Shape).Static()
	return !ok || n <= s.MaxBytes/int64(max(t.DType.Size(), 1))
}

// Strided says whether n's kernel takes operands of any strides. That of a staged node is the host's where it has one, so that a view never
// goes to another kernel than its copy; the interpreter takes all.
func (s *Support) Strided(n *ir.Node) bool {
	d := keyDType(n)
	if s.Staged(n) {
		return s.bodies == nil || !s.bodies.NativeRow(n.Row, d) || s.bodies.StridedRow(n.Row, d)
	}
	return s.StridedRow(n.Row, d)
}

// Host says whether n may run on the host.
func (s *Support) Host(n *ir.Node) bool { return s.HostRow(n.Row) }

// NativeRow, StridedRow and HostRow answer for a command that is no node, with the dtype that chooses its kernel.
func (s *Support) NativeRow(r *ir.Row, d ir.DType) bool  { return s.native.has(r.Num(), d) }
func (s *Support) StridedRow(r *ir.Row, d ir.DType) bool { return s.strided.has(r.Num(), d) }
func (s *Support) HostRow(r *ir.Row) bool                { return s.host != nil && s.host(r) }

// Staged says that n runs on the host, between what the backend runs.
func (s *Support) Staged(n *ir.Node) bool { return s.Host(n) && (!s.Native(n) || onlyChecks(n)) }

// onlyChecks says that n makes nothing, but has indices that may be out of range: a device has no work to do, the host looks at them.
func onlyChecks(n *ir.Node) bool {
	if d, ok := ir.Count(n.Types[0].Shape).Static(); !ok || d != 0 || len(n.Types) > 1 {
		return false
	}
	for i, o := range n.Row.In {
		if o.DTypes != ir.IndexT || i >= len(n.In) || n.In[i].IsZero() {
			continue
		}
		if d, ok := ir.Count(n.In[i].Type().Shape).Static(); !ok || d != 0 {
			return true
		}
	}
	return false
}

func keyDType(n *ir.Node) ir.DType {
	for _, v := range n.In {
		if !v.IsZero() {
			return v.DType()
		}
	}
	return n.Types[0].DType
}

// Unsupported is one node that a backend can neither run, compose nor stage.
type Unsupported struct {
	Node, Op string
	DType    ir.DType
	Reason   string
}

// UnsupportedError lists every such node of a graph.
type UnsupportedError struct {
	Backend string
	Nodes   []Unsupported
}

func (e *UnsupportedError) Error() string {
	parts := make([]string, len(e.Nodes))
	for i, n := range e.Nodes {
		parts[i] = fmt.Sprintf("%s (%s %s: %s)", n.Node, n.Op, n.DType, n.Reason)
	}
	return fmt.Sprintf("%s does not support %d of the graph's nodes: %s", e.Backend, len(e.Nodes), strings.Join(parts, ", "))
}

// errNeither is why a node that is not composite is unsupported.
var errNeither = errors.New("no kernel and no decomposition")

// Supported finds the nodes that no shapes can make runnable.
func Supported(g *ir.Graph, s *Support) error {
	var bad []Unsupported
	for _, n := range g.Nodes {
		if m := s.impossible(n); m != nil {
			bad = append(bad, Unsupported{m.Name, m.Row.Name, keyDType(m), errNeither.Error()})
		}
	}
	if len(bad) > 0 {
		return &UnsupportedError{s.Backend, bad}
	}
	return nil
}

// impossible is n, or the node in a sub-graph of it, that no shapes can make runnable; nil if there is none.
func (s *Support) impossible(n *ir.Node) *ir.Node {
	if s.fine(n) {
		return nil
	}
	if !n.Row.Has(ir.Control) {
		if n.Row.Composite() || s.Host(n) {
			return nil
		}
		return n
	}
	bad := n
	for _, by := range []*Support{s.Body(), s.bodies} {
		if by == nil || by == s.bodies && !s.Host(n) || by != s.bodies && !s.kernel(n) && !n.Row.Composite() {
			continue
		}
		bad = nil
		for _, g := range n.Graphs() {
			for _, m := range g.Nodes {
				if bad == nil {
					bad = by.impossible(m)
				}
			}
		}
		if bad == nil {
			return nil
		}
	}
	return bad
}

// maxDepth bounds how deep decompositions nest.
const maxDepth = 16

// Legalize leaves only nodes that the backend runs natively, views (which the planner turns into strides) and host nodes: what has no
// kernel is decomposed into what has. Nodes that are none of the three are reported together. Dims must be static.
func Legalize(g *ir.Graph, s *Support) (*ir.Graph, error) {
	if !s.ComposeFirst && !slices.ContainsFunc(g.Nodes, func(n *ir.Node) bool { return !s.fine(n) || n.Row.Has(ir.Control) }) {
		return g, nil
	}
	var bad []Unsupported
	for depth := range maxDepth {
		changed := false
		out, err := g.Rebuild(false, func(to *ir.Graph, n *ir.Node, in []ir.Value) ([]ir.Value, error) {
			if s.fine(n) && !(s.ComposeFirst && n.Row.Composite()) {
				return nil, nil
			}
			if n.Row.Has(ir.Control) {
				out, why, err := s.control(to, n, in, depth)
				changed = changed || why == nil && out != nil && out[0].Node().Row != n.Row
				if why != nil {
					bad = append(bad, Unsupported{n.Name, n.Row.Name, keyDType(n), why.Error()})
				}
				return out, err
			}
			switch err := s.composable(n, depth, false); {
			case err == nil:
				changed = true
				return compose(to, n, in)
			case s.fine(n), s.Host(n):
				return nil, nil
			case s.composable(n, depth, true) == nil:
				changed = true
				return compose(to, n, in)
			default:
				bad = append(bad, Unsupported{n.Name, n.Row.Name, keyDType(n), err.Error()})
				return nil, nil
			}
		})
		if err != nil {
			return nil, err
		}
		if len(bad) > 0 {
			return nil, &UnsupportedError{s.Backend, bad}
		}
		if g = out; !changed {
			return g, nil
		}
	}
	return nil, fmt.Errorf("decompositions nest deeper than %d", maxDepth)
}

// control makes a control node legal: native with sub-graphs that are legal for the backend, written out, or staged with sub-graphs that are
// legal for the host. why says why it is none of them.
func (s *Support) control(to *ir.Graph, n *ir.Node, in []ir.Value, depth int) (out []ir.Value, why, err error) {
	why = errNeither
	composed := func() bool {
		if cerr := s.composable(n, depth, false); cerr != nil {
			if n.Row.Composite() {
				why = cerr
			}
			return false
		}
		out, err = compose(to, n, in)
		return true
	}
	if s.ComposeFirst && composed() {
		return out, nil, err
	}
	if s.kernel(n) {
		if out, why, err = legalBodies(to, n, in, s.Body()); why == nil || err != nil {
			return out, nil, err
		}
	}
	if !s.ComposeFirst && composed() {
		return out, nil, err
	}
	if s.Host(n) && s.bodies != nil {
		return legalBodies(to, n, in, s.bodies)
	}
	return nil, why, nil
}

// legalBodies is n with sub-graphs that are legal for by; why is what by cannot run.
func legalBodies(to *ir.Graph, n *ir.Node, in []ir.Value, by *Support) (out []ir.Value, why, err error) {
	graphs := n.Graphs()
	for i, g := range graphs {
		var lacks *UnsupportedError
		if graphs[i], err = Legalize(g, by); errors.As(err, &lacks) {
			return nil, fmt.Errorf("its sub-graph: %w", err), nil
		} else if err != nil {
			return nil, nil, err
		}
	}
	c, err := to.Add(n.Row, n.Name, n.Row.WithGraphs(n.Attrs, graphs), in...)
	if err != nil {
		return nil, nil, err
	}
	c.Inherit(n)
	return c.Results(), nil, nil
}

// fine says that n needs no decomposition.
func (s *Support) fine(n *ir.Node) bool {
	return n.Row.Has(ir.Leaf) || n.Row.Has(ir.View) || s.Native(n)
}

// composable says why n's decomposition does not end in native nodes, or with staged in nodes that run natively or on the host; nil if it does. It
// tries on a scratch graph.
func (s *Support) composable(n *ir.Node, depth int, staged bool) error {
	if !n.Row.Composite() {
		return errNeither
	}
	if depth >= maxDepth {
		return fmt.Errorf("decompositions nest deeper than %d", maxDepth)
	}
	scratch := ir.NewGraph("")
	in := make([]ir.Value, len(n.In))
	for i, v := range n.In {
		if v.IsZero() {
			continue
		}
		if same := slices.Index(n.In[:i], v); same >= 0 {
			in[i] = in[same]
		} else if t, ok := v.Const(); ok {
			in[i] = scratch.Constant(t)
		} else {
			in[i] = scratch.Input(fmt.Sprintf("in%d", i), v.DType(), v.Shape())
		}
	}
	first := len(scratch.Nodes)
	out, err := compose(scratch, n, in)
	if err != nil {
		return err
	}
	if out == nil {
		return fmt.Errorf("no kernel and no decomposition for these operands")
	}
	for _, m := range scratch.Nodes[first+1:] { // the first is n itself, unused
		if s.fine(m) || staged && s.Host(m) {
			continue
		}
		if err := s.composable(m, depth+1, staged); err != nil {
			return fmt.Errorf("its part %s %s: %w", m.Row.Name, keyDType(m), err)
		}
	}
	return nil
}

// compose appends n's decomposition to the graph. The row reads a copy of n whose operands are in that graph; the copy stays unused
// and falls away with the next Rebuild.
func compose(to *ir.Graph, n *ir.Node, in []ir.Value) ([]ir.Value, error) {
	return rewrite(to, n, in, func(m *ir.Node) []ir.Value {
		return to.Within(m, func() []ir.Value { return n.Row.Decompose(m) })
	})
}

// rewrite is compose with another way to write the node.
func rewrite(to *ir.Graph, n *ir.Node, in []ir.Value, write func(*ir.Node) []ir.Value) ([]ir.Value, error) {
	copied, err := to.Copy(n, in)
	if err != nil {
		return nil, err
	}
	if len(copied) == 0 {
		return nil, nil
	}
	node := copied[0].Node()
	out := write(node)
	if out == nil && to.Err() == nil {
		to.Drop(node)
	}
	if err := to.Err(); err != nil {
		return nil, fmt.Errorf("decomposition of %s: %w", n, err)
	}
	if out != nil && len(out) != len(n.Types) {
		return nil, fmt.Errorf("decomposition of %s: %d results, expected %d", n, len(out), len(n.Types))
	}
	for i, v := range out {
		if !v.Type().Equal(node.Types[i]) {
			return nil, fmt.Errorf("decomposition of %s: result %d is %s, expected %s", n, i, v.Type(), node.Types[i])
		}
	}
	if len(out) > 0 {
		out[0].Node().Absorb(node)
	}
	return out, nil
}
