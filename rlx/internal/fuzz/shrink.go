package fuzz

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// Size is how many steps the graph of a seed takes, from few to many.
func Size(seed uint64) int { return 2 + int(seed*7%29) }

// maxTries bounds how many smaller graphs are tried.
const maxTries = 400

// Shrink looks for a smaller graph that fails in the same way: with fewer outputs, with inputs in place of nodes, without nodes,
// and with symbols of small sizes.
func Shrink(c *Case, f *Failure, o Options) (*Case, *Failure) {
	s := &shrinker{best: c, failure: f, o: o}
	s.o.Backends, s.o.Stats = []string{f.Backend}, nil
	s.o.Only = strings.HasPrefix(f.Passes, "only ")
	if f.Backend == "none" {
		return c, f
	}
	s.accept(sized(c))
	for progress := true; progress && s.tries < maxTries; {
		progress = s.round()
	}
	return s.best, s.failure
}

type shrinker struct {
	best    *Case
	failure *Failure
	o       Options
	tries   int
}

// accept takes a smaller graph if it fails as well.
func (s *shrinker) accept(c *Case) bool {
	if c == nil || c.Graph.Err() != nil || s.tries >= maxTries {
		return false
	}
	s.tries++
	f, _ := Check(c, s.o)
	if f == nil || f.By != s.failure.By || f.Backend != s.failure.Backend {
		return false
	}
	s.best, s.failure = c, f
	return true
}

func (s *shrinker) round() bool {
	progress := false
	for i := len(s.best.Graph.Outputs) - 1; i >= 0 && len(s.best.Graph.Outputs) > 1; i-- {
		g := *s.best.Graph
		g.Outputs = slices.Delete(slices.Clone(g.Outputs), i, i+1)
		progress = s.accept(rebuilt(s.best, &g, nil)) || progress
	}
	for _, cut := range []func(*bench, *ir.Node) []replacement{asOutput, asInput, asOperand} {
		for i := len(s.best.Graph.Nodes) - 1; i >= 0; i-- {
			if i >= len(s.best.Graph.Nodes) {
				continue
			}
			n := s.best.Graph.Nodes[i]
			b := newBench(s.best.Seed)
			for _, m := range s.best.Graph.Nodes {
				if b.node(m, s.best.Feed) != nil {
					return progress
				}
			}
			for _, r := range cut(b, n) {
				if s.accept(rebuilt(s.best, s.best.Graph, &r)) {
					progress = true
					break
				}
			}
		}
	}
	return progress
}

// sized is the case with a number for every symbol; nil where there is none.
func sized(c *Case) *Case {
	if len(c.Graph.Symbols()) == 0 {
		return nil
	}
	b := newBench(c.Seed)
	for _, n := range c.Graph.Inputs {
		if b.node(n, c.Feed) != nil {
			return nil
		}
	}
	g, err := c.Graph.Bind(b.symbols)
	if err != nil {
		return nil
	}
	return &Case{g, c.Feed, c.Seed}
}

// replacement is what stands in place of a node: tensors that become inputs, or an operand; or the node becomes the only output.
type replacement struct {
	node    *ir.Node
	inputs  []*ir.Tensor
	operand *ir.Value
	output  bool
}

// asOutput is n as the only output.
func asOutput(_ *bench, n *ir.Node) []replacement {
	if n.Row.Has(ir.Leaf) || len(n.Types) != 1 {
		return nil
	}
	return []replacement{{node: n, output: true}}
}

// asInput cuts the graph above n.
func asInput(b *bench, n *ir.Node) []replacement {
	if _, ok := n.InputName(); ok {
		return nil
	}
	if n.Row.Has(ir.Leaf) {
		return nil
	}
	r := replacement{node: n}
	for _, v := range n.Results() {
		r.inputs = append(r.inputs, b.values[v].base)
	}
	return []replacement{r}
}

// asOperand passes an operand of the same type on, unless n keeps its infinities from formulas that have no limit there.
func asOperand(b *bench, n *ir.Node) (list []replacement) {
	if len(n.Types) != 1 {
		return nil
	}
	finite := func(v ir.Value) bool { return !isFloat(v) || allFinite(b.values[v].base) }
	for _, v := range n.In {
		if !v.IsZero() && v.Type().Equal(n.Types[0]) && (finite(v) || !finite(n.Out(0))) {
			list = append(list, replacement{node: n, operand: &v})
		}
	}
	return list
}

// rebuilt is the case with a replacement made, without what no output needs; nil where that is no graph.
func rebuilt(c *Case, g *ir.Graph, r *replacement) *Case {
	feed := rlx.Feed{}
	for k, v := range c.Feed {
		feed[k] = v
	}
	if r != nil && r.output {
		h := *g
		h.Outputs = []ir.Output{{Name: "out0", Value: r.node.Out(0)}}
		g = &h
	}
	all := *g
	used := needed(g, r)
	done := map[ir.Value]ir.Value{}
	to := ir.NewGraph(g.Name)
	for _, n := range all.Nodes {
		if !used[n] {
			continue
		}
		in := make([]ir.Value, len(n.In))
		for i, v := range n.In {
			in[i] = done[v]
		}
		if r != nil && n == r.node && r.operand != nil {
			done[n.Out(0)] = done[*r.operand]
			continue
		}
		if r != nil && n == r.node && r.inputs != nil {
			for i, t := range r.inputs {
				name := fmt.Sprintf("%s_%d", strings.ReplaceAll(n.Name, ".", "_"), i)
				feed[name] = t
				done[n.Out(i)] = to.Input(name, t.DType(), n.Types[i].Shape)
			}
			continue
		}
		out, err := to.Copy(n, in)
		if err != nil {
			return nil
		}
		for i, v := range out {
			done[n.Out(i)] = v
		}
	}
	for _, o := range g.Outputs {
		to.Output(o.Name, done[o.Value])
	}
	for name := range feed {
		if !slices.ContainsFunc(to.Inputs, func(n *ir.Node) bool { s, _ := n.InputName(); return s == name }) {
			delete(feed, name)
		}
	}
	return &Case{to, feed, c.Seed}
}

// needed are the nodes that the outputs need once the replacement is made.
func needed(g *ir.Graph, r *replacement) map[*ir.Node]bool {
	used := map[*ir.Node]bool{}
	for _, o := range g.Outputs {
		used[o.Value.Node()] = true
	}
	for _, n := range slices.Backward(g.Nodes) {
		if !used[n] || r != nil && n == r.node && r.inputs != nil {
			continue
		}
		for _, v := range n.In {
			if !v.IsZero() && (r == nil || n != r.node || r.operand == nil || v == *r.operand) {
				used[v.Node()] = true
			}
		}
	}
	return used
}

// T is what Replay needs of a test.
type T interface {
	Helper()
	Fatal(args ...any)
	Error(args ...any)
}

// Replay checks a graph given as text, with its inputs and params as Snippet writes them, on a backend.
func Replay(t T, text string, tensors map[string]string, backend string) {
	t.Helper()
	g, err := ir.ParseGraph(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := &Case{Graph: g, Feed: rlx.Feed{}}
	for name, s := range tensors {
		x, err := parseTensor(s)
		if err != nil {
			t.Fatal(name, ": ", err)
		}
		if g.BindParam(name, x) != nil {
			c.Feed[name] = x
		}
	}
	if f, _ := Check(c, Options{Backends: []string{backend}, Only: true}); f != nil {
		t.Error(f)
	}
}

// tensorText is dtype[shape]:base64.
func tensorText(x *ir.Tensor) string {
	return x.Type().String() + ":" + base64.StdEncoding.EncodeToString(x.Bytes())
}

// parseTensor reads dtype[shape]:base64.
func parseTensor(s string) (*ir.Tensor, error) {
	kind, data, _ := strings.Cut(s, ":")
	name, dims, _ := strings.Cut(strings.TrimSuffix(kind, "]"), "[")
	d, err := ir.ParseDType(name)
	if err != nil {
		return nil, err
	}
	var shape []int64
	for _, part := range strings.Split(dims, ",") {
		if part = strings.TrimSpace(part); part != "" {
			n, err := strconv.ParseInt(part, 10, 64)
			if err != nil {
				return nil, err
			}
			shape = append(shape, n)
		}
	}
	b, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return nil, err
	}
	return ir.FromBytes(d, shape, b)
}

// Snippet is a failing graph as text, and a test that runs it.
func Snippet(c *Case, f *Failure) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\nfunc TestSeed%d(t *testing.T) {\n\tfuzz.Replay(t, `%s`, map[string]string{\n", c.Graph, c.Seed, c.Graph)
	write := func(name string, x *ir.Tensor) {
		fmt.Fprintf(&b, "\t\t%q: %q,\n", name, tensorText(x))
	}
	for _, n := range c.Graph.Nodes {
		if name, ok := n.ParamName(); ok {
			write(name, c.Graph.ParamData(name))
		} else if name, ok := n.InputName(); ok {
			write(name, c.Feed[name])
		}
	}
	fmt.Fprintf(&b, "\t}, %q)\n}\n", f.Backend)
	return b.String()
}
