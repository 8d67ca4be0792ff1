package fuzz

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/backend"
	"github.com/rlx-ml/rlx-go/rlx/internal/exec"
	"github.com/rlx-ml/rlx-go/rlx/internal/pass"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// The ways in which a graph may fail, in the order in which they are looked at.
const (
	ByCompile = "compile" // it does not compile, or does not run
	ByVerify  = "verify"  // a pass leaves a graph that is not well-formed
	ByPlan    = "plan"    // a plan, or its words, do not do what the graph means
	ByPoison  = "poison"  // a command reads what it should not
	ByValues  = "values"  // results differ from those of the nodes one by one
	ByBits    = "bits"    // results differ in their bits where nothing may change them
)

// Failure is what is wrong with a graph.
type Failure struct {
	By      string
	Backend string
	Passes  string
	Err     error
}

func (f *Failure) Error() string {
	return fmt.Sprintf("%s: on %s with %s: %v", f.By, f.Backend, f.Passes, f.Err)
}

func (f *Failure) Unwrap() error { return f.Err }

// Options choose what is checked.
type Options struct {
	Backends []string
	Passes   []string // those that can be switched off; nil: all
	Only     bool     // each pass alone, too
	Light    bool     // neither the threads, nor the seeds, nor other shapes
	Stats    *Stats   // nil: not counted
}

// Stats say what graphs were made of, and what became of them.
type Stats struct {
	Rows  map[string]int // nodes by row
	Fired map[string]int // graphs that a pass changed, among all passes
}

// NewStats are empty ones.
func NewStats() *Stats { return &Stats{map[string]int{}, map[string]int{}} }

// exactOn are the backends on which a pass keeps every bit that elsewhere may round otherwise.
var exactOn = map[string][]string{
	"epilogue": {"cpu"},        // kernels there sum in the dtype of the result; the interpreter rounds once, behind bias, residual and activation
	"inline":   {"cpu", "ref"}, // what was a branch on the host runs on the device then
	"decide":   {"cpu", "ref"},
}

// rounds says whether a pass may change the rounding of what it rewrites for a backend.
func rounds(pass, backend string) bool {
	if exact, ok := exactOn[pass]; ok {
		return !slices.Contains(exact, backend)
	}
	return slices.ContainsFunc(rlx.Passes(), func(p rlx.PassInfo) bool { return p.Name == pass && p.Rounds })
}

// checker is one graph under check.
type checker struct {
	*Case
	o     Options
	bench *bench
	tol   map[ir.Value][]float64
	runs  int
}

// Check runs the graph in all the ways that must agree. It returns the first failure, nil if there is none, and how many runs that took.
func Check(c *Case, o Options) (*Failure, int) {
	k := &checker{Case: c, o: o, bench: newBench(c.Seed), tol: map[ir.Value][]float64{}}
	for _, n := range c.Graph.Nodes {
		if err := k.bench.node(n, c.Feed); err != nil {
			return &Failure{ByCompile, "none", "no compiler", fmt.Errorf("%s: %w", n, err)}, 0
		}
	}
	if o.Stats != nil {
		c.Graph.EachNode(func(n *ir.Node) { o.Stats.Rows[n.Row.Name]++ })
	}
	for _, b := range o.Backends {
		if f := k.backend(b); f != nil {
			return f, k.runs
		}
	}
	return nil, k.runs
}

// outcome is one compilation and its results.
type outcome struct {
	out     rlx.Feed
	changed map[string]bool // passes that did something
	last    *ir.Graph       // what is planned
}

// run compiles and runs the graph once.
func (k *checker) run(name, passes string, opts ...rlx.Option) (*outcome, *Failure) {
	k.runs++
	o := &outcome{changed: map[string]bool{}}
	opts = append(opts, rlx.On(name), rlx.Verify(), rlx.TracePasses(func(s rlx.PassStep) {
		if s.Before != s.After {
			o.changed[s.Pass] = true
		}
		o.last = s.After
	}))
	p, err := rlx.Compile(context.Background(), k.Graph, opts...)
	if err == nil {
		defer p.Close()
		o.out, err = p.Run(context.Background(), k.Feed)
	}
	if err != nil {
		return nil, &Failure{kindOf(err), name, passes, err}
	}
	return o, nil
}

func kindOf(err error) string {
	switch text := err.Error(); {
	case strings.Contains(text, "broke the graph"):
		return ByVerify
	case strings.Contains(text, "plan: step"), strings.Contains(text, "words:"):
		return ByPlan
	}
	return ByCompile
}

// unsupported says that a backend lacks a kernel, which is no failure.
func unsupported(f *Failure) bool {
	var u *rlx.UnsupportedError
	return f != nil && errors.As(f.Err, &u)
}

func (k *checker) backend(name string) *Failure {
	none, f := k.run(name, "no passes", rlx.OnlyPasses())
	if unsupported(f) {
		return nil
	}
	if f == nil {
		f = k.against(none.out, name, "no passes", false)
	}
	if f != nil {
		return f
	}
	all, f := k.run(name, "all passes")
	if f == nil {
		f = k.agree(all, none, name, "all passes")
	}
	if f == nil {
		f = k.poison(all, name)
	}
	if f == nil {
		f = k.regions(none, name)
	}
	if f != nil {
		return f
	}
	if k.o.Stats != nil {
		for p := range all.changed {
			k.o.Stats.Fired[p]++
		}
	}
	for _, p := range k.passes(all) { // a pass that changes nothing among all is as good as off
		passes := "all passes but " + p
		got, f := k.run(name, passes, rlx.WithoutPasses(p))
		if f == nil {
			f = k.agree(got, none, name, passes)
		}
		if f != nil {
			return f
		}
	}
	if k.o.Only {
		if f := k.only(name, none); f != nil {
			return f
		}
	}
	if k.o.Light {
		return nil
	}
	return k.again(all, name)
}

// passes are those to be switched off.
func (k *checker) passes(all *outcome) []string {
	var list []string
	for _, p := range rlx.Passes() {
		if !p.Needed && all.changed[p.Name] && (k.o.Passes == nil || slices.Contains(k.o.Passes, p.Name)) {
			list = append(list, p.Name)
		}
	}
	return list
}

func (k *checker) only(name string, none *outcome) *Failure {
	for _, p := range rlx.Passes() {
		if p.Needed || k.o.Passes != nil && !slices.Contains(k.o.Passes, p.Name) {
			continue
		}
		passes := "only " + p.Name
		got, f := k.run(name, passes, rlx.OnlyPasses(p.Name))
		if f == nil {
			f = k.agree(got, none, name, passes)
		}
		if f != nil {
			return f
		}
	}
	return nil
}

// agree holds a run against that without passes: bit for bit, unless a pass that may round otherwise did something.
func (k *checker) agree(got, none *outcome, name, passes string) *Failure {
	for p := range got.changed {
		if rounds(p, name) {
			return k.against(got.out, name, passes, true)
		}
	}
	for _, o := range k.Graph.Outputs {
		if err := sameTensor(got.out[o.Name], none.out[o.Name]); err != nil {
			return &Failure{ByBits, name, passes, fmt.Errorf("%s (%s) beside no passes: %w", o.Name, o.Value.Node(), err)}
		}
	}
	return nil
}

// against holds outputs against the nodes computed one by one. rewritten says that formulas were replaced.
func (k *checker) against(out rlx.Feed, name, passes string, rewritten bool) *Failure {
	for _, o := range k.Graph.Outputs {
		v := k.bench.values[o.Value]
		var tol []float64
		if name != "ref" || rewritten {
			tol = k.tolerance(o.Value, name, rewritten)
		}
		if err := within(out[o.Name], v.base, tol); err != nil {
			return &Failure{ByValues, name, passes, fmt.Errorf("%s (%s): %w", o.Name, o.Value.Node(), err)}
		}
	}
	return nil
}

// tolerance is that of an output on a backend other than the interpreter, or under rewrites.
func (k *checker) tolerance(v ir.Value, name string, rewritten bool) []float64 {
	key := v
	if tol, ok := k.tol[key]; ok {
		return tol
	}
	tol := k.bench.values[v].tolerance()
	for i := range tol {
		tol[i] += 0x1p-126 // where subnormals may be flushed; zeros of either sign are equal
	}
	k.tol[key] = tol
	return tol
}

// again runs the program with all passes on one thread and on two, with other seeds, and with another size of the symbolic axis between
// two runs of the first: the bits stay.
func (k *checker) again(all *outcome, name string) *Failure {
	ctx := context.Background()
	for _, threads := range []int{1, 2} {
		how := fmt.Sprintf("all passes, %d threads", threads)
		p, err := rlx.Compile(ctx, k.Graph, rlx.On(name), rlx.Threads(threads))
		if err != nil {
			return &Failure{ByCompile, name, how, err}
		}
		k.runs++
		f := k.sizes(p, all, name, how)
		p.Close()
		if f != nil {
			return f
		}
	}
	return nil
}

func (k *checker) sizes(p *rlx.Program, all *outcome, name, how string) *Failure {
	ctx := context.Background()
	for i, feed := range []rlx.Feed{k.Feed, k.resized(), k.Feed} {
		if feed == nil {
			continue
		}
		out, err := p.Run(ctx, feed, rlx.Seed(uint64(i)))
		if i == 1 { // sizes at which the graph may have no meaning
			continue
		}
		if err != nil {
			return &Failure{ByCompile, name, how, err}
		}
		for _, o := range k.Graph.Outputs {
			if err := sameTensor(out[o.Name], all.out[o.Name]); err != nil {
				return &Failure{ByBits, name, how, fmt.Errorf("%s (%s), run %d: %w", o.Name, o.Value.Node(), i, err)}
			}
		}
	}
	return nil
}

// resized is a feed with one more row along symbolic axes, nil if there are none.
func (k *checker) resized() rlx.Feed {
	feed, any := maps.Clone(k.Feed), false
	for _, n := range k.Graph.Inputs {
		name, _ := n.InputName()
		x := k.Feed[name]
		shape := slices.Clone(x.Shape())
		for i, d := range n.Types[0].Shape {
			if !d.IsStatic() {
				shape[i]++
				any = true
			}
		}
		y, err := ir.Zeros(x.DType(), shape...)
		if err != nil {
			return nil
		}
		copy(y.Bytes(), x.Bytes())
		feed[name] = y
	}
	if !any {
		return nil
	}
	return feed
}

// poison runs what was planned in the planner's check mode, and once more with every value an output, so that nothing shares memory.
func (k *checker) poison(all *outcome, name string) *Failure {
	t, err := target(name)
	if err != nil || t == nil {
		return nil
	}
	defer t.Close()
	fail := func(how string, err error) *Failure {
		by := ByPoison
		if kindOf(err) == ByPlan {
			by = ByPlan
		}
		return &Failure{by, name, "all passes, " + how, err}
	}
	apart, outputs := apart(all.last)
	for i, g := range []*ir.Graph{all.last, apart} {
		how := []string{"freed memory poisoned", "each value in memory of its own"}[i]
		k.runs++
		var in [][]byte
		for _, n := range g.Inputs {
			name, _ := n.InputName()
			in = append(in, k.Feed[name].Bytes())
		}
		out, err := exec.Poisoned(g, t, in, 42)
		if err != nil {
			return fail(how, err)
		}
		for j, o := range all.last.Outputs[:outputs] {
			want, ok := all.out[o.Name]
			if !ok { // the length of another output
				continue
			}
			if err := sameTensor(out[j], want); err != nil {
				return fail(how, fmt.Errorf("%s: %w", o.Name, err))
			}
		}
	}
	return nil
}

// regions makes regions for a target that has all rows, where the backend has none of its own: written out again they must give the bits
// of the nodes that they are made of.
func (k *checker) regions(none *outcome, name string) *Failure {
	t, err := target(name)
	if err != nil || t == nil {
		return nil
	}
	defer t.Close()
	if t.Support.NativeRow(op.ElementwiseRegionRow(), ir.F32) {
		return nil
	}
	how := "regions written out"
	all := everything()
	g, err := pass.Pipeline{Passes: []pass.Pass{pass.Regions(all), pass.MatMulEpilogue}, Support: all, Verify: true}.Run(none.last)
	if err != nil {
		return &Failure{kindOf(err), name, how, err}
	}
	if g == none.last {
		return nil
	}
	k.runs++
	if k.o.Stats != nil {
		k.o.Stats.Fired[how]++
	}
	if g, err = pass.Legalize(g, t.Support); err != nil {
		return &Failure{ByCompile, name, how, err}
	}
	var in [][]byte
	for _, n := range g.Inputs {
		name, _ := n.InputName()
		in = append(in, k.Feed[name].Bytes())
	}
	out, err := exec.Poisoned(g, t, in, 42)
	if err != nil {
		return &Failure{ByPoison, name, how, err}
	}
	for j, o := range k.Graph.Outputs {
		if err := sameTensor(out[j], none.out[o.Name]); err != nil {
			return &Failure{ByBits, name, how, fmt.Errorf("%s (%s): %w\n%s", o.Name, o.Value.Node(), err, g)}
		}
	}
	return nil
}

// everything is a target that has all rows for all dtypes.
var everything = sync.OnceValue(func() *pass.Support {
	var caps []backend.Cap
	for _, r := range ir.Rows() {
		if !r.Has(ir.Leaf) {
			caps = append(caps, backend.Cap{Op: r.Num(), DTypes: ^uint32(0), Strided: true})
		}
	}
	return pass.NewSupport("everything", caps, nil)
})

// apart is g with every value an output, and how many of them are those of g.
func apart(g *ir.Graph) (*ir.Graph, int) {
	h := *g
	h.Outputs = slices.Clone(g.Outputs)
	listed := map[ir.Value]bool{}
	for _, o := range g.Outputs {
		listed[o.Value] = true
	}
	for _, n := range g.Nodes {
		for _, v := range n.Results() {
			if !n.Row.Has(ir.Leaf) && !n.Row.Has(ir.View) && !listed[v] {
				h.Outputs = append(h.Outputs, ir.Output{Name: "value " + v.String(), Value: v})
			}
		}
	}
	return &h, len(g.Outputs)
}

// target opens a backend for the check mode; nil where it stages rows on the host, which that mode cannot.
func target(name string) (*exec.Target, error) {
	b, _, err := rlx.Lookup(name)
	if err != nil {
		return nil, err
	}
	if s, ok := b.(rlx.Stager); ok && slices.ContainsFunc(ir.Rows(), s.StageOnHost) {
		return nil, nil
	}
	d, err := b.Open(0, backend.Options{Threads: 1})
	if err != nil {
		return nil, err
	}
	return &exec.Target{Backend: b, Device: d, Support: pass.NewSupport(name, d.Caps(), nil)}, nil
}
