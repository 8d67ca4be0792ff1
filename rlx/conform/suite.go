package conform

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/backend"
	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// T is what the suite needs of a test; Wrap makes one of a *testing.T.
type T interface {
	Helper()
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Skipf(format string, args ...any)
	Run(name string, f func(T)) bool
}

// tester is the shape of *testing.T, named here so that the package does not link testing into programs.
type tester[X any] interface {
	Helper()
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Skipf(format string, args ...any)
	Run(name string, f func(X)) bool
}

type wrapped[X tester[X]] struct{ tester[X] }

func (w wrapped[X]) Run(name string, f func(T)) bool {
	return w.tester.Run(name, func(t X) { f(wrapped[X]{t}) })
}

// Wrap adapts a *testing.T.
func Wrap[X tester[X]](t X) T { return wrapped[X]{t} }

// Option changes a Run.
type Option func(*suite)

// Short takes a part of the shapes for each function and dtype; the parts differ, so that together they still cover the list.
func Short() Option { return func(s *suite) { s.short = true } }

// Part runs every n-th group of cases, one group being the cases of a row for one dtype and function; which ones follows from the seed.
// It is for short runs on backends whose programs take long to compile.
func Part(n int) Option { return func(s *suite) { s.part = uint64(n) } }

// Rows limits the run to the named rows.
func Rows(names ...string) Option { return func(s *suite) { s.only = append(s.only, names...) } }

// Seed changes the drawn values. The default is 1.
func Seed(n uint64) Option { return func(s *suite) { s.seed = n } }

// NoSkips makes whatever the backend does not support a failure.
func NoSkips() Option { return func(s *suite) { s.noSkips = true } }

// Cases keeps the cases of rows and what they should give, so that several runs make them once. It takes memory, and one run at a time.
type Cases struct{ groups map[string]*caseGroup }

// Share has a run keep its cases in c, and take from there what an earlier one has left.
func Share(c *Cases) Option { return func(s *suite) { s.shared = c } }

// Compile adds compile options, such as rlx.Threads.
func Compile(o ...rlx.Option) Option { return func(s *suite) { s.options = append(s.options, o...) } }

// suite is one Run on one backend.
type suite struct {
	short, noSkips bool
	only           []string
	seed           uint64
	part, groups   uint64
	shared         *Cases
	options        []rlx.Option
	backend        string
	native         map[int]ir.DTypeSet // by op number: what the backend says that it runs itself
	composes       bool                // wherever there is a decomposition
	cases          int
	skips          map[string]int
}

// Run builds cases from the rows of the op table and runs them on the backend. For every row, every dtype that it allows and every value
// of its enum attributes there are operands of many shapes, contiguous and as views, bound and constant; the expected values come from
// package ref. A row that no generator knows, a dtype that is never accepted, a native row that did not run natively and a wrong value
// fail. What the backend does not support is counted and logged by reason.
func Run(t T, name string, opts ...Option) {
	t.Helper()
	s := &suite{seed: 1, part: 1, backend: name, native: map[int]ir.DTypeSet{}, skips: map[string]int{}}
	for _, o := range opts {
		o(s)
	}
	if err := ir.Freeze(); err != nil {
		t.Errorf("%v", err)
		return
	}
	device, err := hold(context.Background(), append([]rlx.Option{rlx.On(name)}, s.options...)...)
	var be *backend.Error
	switch {
	case errors.Is(err, rlx.ErrNotCompiledIn), errors.As(err, &be) && be.Code == backend.NoDevice:
		t.Skipf("%v", err)
		return
	case err != nil:
		t.Errorf("%v", err)
		return
	}
	defer device.Close()
	if b, _, err := rlx.Lookup(name); err == nil {
		if c, ok := b.(interface{ ComposeFirst() bool }); ok {
			s.composes = c.ComposeFirst()
		}
	}
	for _, c := range device.Caps() {
		s.native[c.Op] |= ir.DTypeSet(c.DTypes)
	}
	families := map[string][]*ir.Row{}
	for _, r := range ir.Rows() {
		if !r.Has(ir.Leaf) && (s.only == nil || slices.Contains(s.only, r.Name)) {
			families[r.Family] = append(families[r.Family], r)
		}
	}
	for _, f := range slices.Sorted(maps.Keys(families)) {
		t.Run(f, func(t T) {
			for _, r := range families[f] {
				t.Run(r.Name, func(t T) { s.row(t, r) })
			}
		})
	}
	for _, reason := range slices.Sorted(maps.Keys(s.skips)) {
		t.Logf("skipped %d: %s", s.skips[reason], reason)
	}
	t.Logf("%s: %d cases from rows", name, s.cases)
}

// maxReports is how many failures of one row are printed; then the rest of the row is not run.
const maxReports = 8

// rowRun is the suite on one row.
type rowRun struct {
	*suite
	t        T
	row      *ir.Row
	failures int
	accepted map[string]bool  // "operand dtype" pairs that some case exercised
	refused  map[string]error // pairs that inference refused by name
	skipped  map[string]bool
	turn     int
}

func (s *suite) row(t T, row *ir.Row) {
	gen := generatorOf(row)
	if gen == nil {
		t.Errorf("%s has no generator: register one in gen_%s.go", row.Name, row.Family)
		return
	}
	r := &rowRun{suite: s, t: t, row: row, accepted: map[string]bool{}, refused: map[string]error{}, skipped: map[string]bool{}}
	large := ir.F32
	if !row.In[0].DTypes.Has(large) {
		large = row.In[0].DTypes.List()[0]
	}
	for _, d := range row.In[0].DTypes.List() {
		for i, e := range enumChoices(row) {
			r.group(s.makeCases(row, d, e, func(m *maker) {
				m.turn, m.large = r.turn, d == large && (i == 0 || !s.short)
				gen(m)
			}))
			if r.turn++; r.failures >= maxReports {
				t.Errorf("%s: that many failures: the rest of the row was not run", row.Name)
				return
			}
		}
	}
	r.coverage()
}

func (r *rowRun) fail(format string, args ...any) {
	r.t.Helper()
	r.failures++
	r.t.Errorf(format, args...)
}

// coverage fails for each dtype of each operand that no case used and that inference never refused by name.
func (r *rowRun) coverage() {
	for _, o := range r.row.In {
		for _, d := range o.DTypes.List() {
			k := fmt.Sprintf("%s %s", o.Name, d)
			if !r.accepted[k] && r.refused[k] == nil && !r.skipped[k] {
				r.fail("%s: no case has %s of dtype %s, which the row allows", r.row.Name, o.Name, d)
			}
		}
	}
	if len(r.accepted) == 0 && len(r.skipped) == 0 {
		r.fail("%s: no case is legal", r.row.Name)
	}
}

// enumChoices lists every combination of the row's enum attributes.
func enumChoices(row *ir.Row) []map[string]string {
	list := []map[string]string{{}}
	for _, a := range row.Schema {
		if a.Kind != ir.AttrEnum {
			continue
		}
		var next []map[string]string
		for _, old := range list {
			for _, v := range a.Enum {
				e := maps.Clone(old)
				e[a.Name] = v
				next = append(next, e)
			}
		}
		list = next
	}
	return list
}

// caseGroup are the cases of a row for one dtype and function that inference accepts.
type caseGroup struct {
	cases    []*rowCase
	accepted map[string]bool  // "operand dtype" pairs that some case exercises
	refused  map[string]error // pairs that inference refused by name
	wrong    []string         // refused for no such reason
}

// makeCases returns the cases that fill makes, or those that an earlier run has shared.
func (s *suite) makeCases(row *ir.Row, d ir.DType, e map[string]string, fill func(*maker)) *caseGroup {
	key := fmt.Sprint(row.Name, d, enumText(e), s.seed, s.short)
	if s.shared != nil && s.shared.groups[key] != nil {
		return s.shared.groups[key]
	}
	m := &maker{row: row, dtype: d, enums: e, rng: s.random(row, d, e), short: s.short}
	fill(m)
	g := &caseGroup{accepted: map[string]bool{}, refused: map[string]error{}}
	for i, c := range m.cases {
		c.label = fmt.Sprintf("%s %s%s", row.Name, d, enumText(e))
		for _, v := range m.variants(i, c) {
			g.add(m, v)
		}
	}
	if s.shared != nil {
		if s.shared.groups == nil {
			s.shared.groups = map[string]*caseGroup{}
		}
		s.shared.groups[key] = g
	}
	return g
}

// group runs cases: all in one graph, and one by one where that graph fails.
func (r *rowRun) group(g *caseGroup) {
	maps.Copy(r.accepted, g.accepted)
	maps.Copy(r.refused, g.refused)
	for _, w := range g.wrong[:min(len(g.wrong), maxReports)] {
		r.fail("%s", w)
	}
	if r.groups++; r.part > 1 && (r.groups+r.seed)%r.part != 0 {
		return
	}
	plain, rest := []*rowCase{}, []*rowCase{} // rest: those that run alone
	for _, c := range g.cases {
		if c.fails != "" {
			rest = append(rest, c)
		} else if err := c.expect(); err != nil {
			r.fail("%s: ref: %v", c, err)
		} else {
			plain = append(plain, c)
		}
	}
	if len(plain) > 0 {
		if err := r.execute(plain); err != nil {
			rest = append(plain, rest...)
		} else {
			r.cases += len(plain)
		}
	}
	for _, c := range rest {
		if r.failures >= maxReports {
			return
		}
		r.single(c)
	}
}

// single runs one case and reports it.
func (r *rowRun) single(c *rowCase) {
	r.cases++
	err := r.execute([]*rowCase{c})
	var u *rlx.UnsupportedError
	switch {
	case errors.As(err, &u):
		r.skips[unsupportedReason(u)]++
		for i, x := range c.in {
			if x != nil {
				r.skipped[operandKey(r.row, i, x.DType())] = true
			}
		}
		if r.noSkips {
			r.fail("%s: %v", c, err)
		}
	case c.fails != "" && !citesConstraint(err, r.row.Name, c.fails):
		r.fail("%s: got error %v, expected one with %s and %s", c, err, r.row.Name, c.fails)
	case c.fails == "" && err != nil:
		r.fail("%s: %v", c, err)
	}
}

// citesConstraint says whether a failed run names the op and the constraint; where a part of a composed op failed, the op is enough.
func citesConstraint(err error, op, constraint string) bool {
	if err == nil || !strings.Contains(err.Error(), op) {
		return false
	}
	var failed *rlx.ExecError
	return strings.Contains(err.Error(), constraint) || errors.As(err, &failed) && failed.Part != ""
}

func operandKey(row *ir.Row, i int, d ir.DType) string {
	return fmt.Sprintf("%s %s", row.In[min(i, len(row.In)-1)].Name, d)
}

// add infers a case's types and takes it in. One that inference refuses is dropped if the error blames the dtype or the function.
func (g *caseGroup) add(m *maker, c *rowCase) {
	graph := ir.NewGraph("")
	in := make([]ir.Value, len(c.in))
	for i, x := range c.in {
		if x != nil {
			in[i] = graph.Input(fmt.Sprintf("in%d", i), x.DType(), x.Type().Shape)
		}
	}
	n, err := graph.Add(c.row, "", c.attrs, in...)
	if err != nil {
		switch {
		case c.optional:
		case blames(err, c, m):
			for i, x := range c.in {
				if x != nil {
					g.refused[operandKey(c.row, i, x.DType())] = err
				}
			}
		case c.fails != "" && strings.Contains(err.Error(), c.fails):
		default:
			g.wrong = append(g.wrong, fmt.Sprintf("%s: refused: %v", c, err))
		}
		return
	}
	for i, x := range c.in {
		if x != nil {
			g.accepted[operandKey(c.row, i, x.DType())] = true
		}
	}
	c.attrs, c.types = n.Attrs, n.Types // inference fills in attributes that depend on the operands
	g.cases = append(g.cases, c)
}

// blames says whether a refusal is about the dtypes or the enum values of the case, and not about its shapes.
func blames(err error, c *rowCase, m *maker) bool {
	s := err.Error()
	for _, v := range m.enums {
		if strings.Contains(s, v+" has no") {
			return true
		}
	}
	for _, x := range c.in {
		if x != nil && strings.Contains(s, "dtype "+x.DType().String()) {
			return true
		}
	}
	return false
}

// execute runs cases as one graph on the backend and checks values and dispatch.
func (r *rowRun) execute(cases []*rowCase) error {
	ctx := context.Background()
	g, feed := ir.NewGraph(r.row.Name), rlx.Feed{}
	for i, c := range cases {
		if err := c.build(g, feed, i); err != nil {
			return err
		}
	}
	// Else the predicate of an If, an input, would decide it before it runs.
	p, err := rlx.Compile(ctx, g, append([]rlx.Option{rlx.On(r.backend), rlx.OnlyPasses("dce", "inline", "cse", "fold")}, r.options...)...)
	if err != nil {
		return err
	}
	defer p.Close()
	var profile rlx.Profile
	out, err := p.Run(ctx, feed, rlx.WithProfile(&profile))
	if err != nil {
		return err
	}
	for i, c := range cases {
		if c.fails != "" {
			return nil
		}
		if err := r.dispatched(c, caseName(i), &profile); err != nil {
			return err
		}
		got := make([]*ir.Tensor, len(c.types))
		for k := range got {
			got[k] = out[resultName(i, k)]
		}
		if err := c.check(got, r.runsNatively(c)); err != nil {
			return err
		}
	}
	return nil
}

// runsNatively says whether the backend lists a kernel for the case.
func (r *rowRun) runsNatively(c *rowCase) bool {
	d := c.types[0].DType
	for _, x := range c.in {
		if x != nil {
			d = x.DType()
			break
		}
	}
	return r.native[r.row.Num()].Has(d) && !(r.composes && r.row.Composite()) && r.nativeBodies(c)
}

// nativeBodies says whether the backend lists kernels for all that the case's sub-graphs hold: else they run on the host with their node.
func (r *rowRun) nativeBodies(c *rowCase) bool {
	all := true
	for _, g := range r.row.Graphs(c.attrs) {
		g.EachNode(func(n *ir.Node) {
			d := n.Types[0].DType
			if len(n.In) > 0 && !n.In[0].IsZero() {
				d = n.In[0].DType()
			}
			all = all && (n.Row.Has(ir.Leaf) || n.Row.Has(ir.View) || r.native[n.Row.Num()].Has(d))
		})
	}
	return all
}

// dispatched checks the counters: a row that the backend lists must have run in a native kernel.
func (r *rowRun) dispatched(c *rowCase, node string, p *rlx.Profile) error {
	if !r.runsNatively(c) || r.row.Has(ir.View) || c.folds() {
		return nil
	}
	empty := slices.Contains(c.want[0].Shape(), 0) // nothing to do but to check indices, which a backend may leave to the host
	for _, s := range p.Steps {
		if s.Node == node && s.Op == r.row.Name && (s.Place == "native" && s.Native > 0 || s.Place == "host" && empty) {
			return nil
		}
	}
	return fmt.Errorf("listed as native on %s, but no native kernel ran", r.backend)
}

func (s *suite) random(row *ir.Row, d ir.DType, e map[string]string) *random {
	h := fnv.New64a()
	fmt.Fprint(h, row.Name, d, enumText(e))
	return newRandom(s.seed, h.Sum64())
}

func enumText(e map[string]string) string {
	text := ""
	for _, k := range slices.Sorted(maps.Keys(e)) {
		text += " " + k + "=" + e[k]
	}
	return text
}

func caseName(i int) string      { return fmt.Sprintf("case%d", i) }
func resultName(i, k int) string { return fmt.Sprintf("out%d_%d", i, k) }
