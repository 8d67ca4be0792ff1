package conform

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

var slowDTypes = flag.Int("view-dtypes", 0, "dtypes of each op that the interpreter and slow backends take in TestViewsGiveTheBitsOfCopies; 0: one, and of slow backends a third of the ops")

// step is one view: element i of its result is the element at(i) of its operand, of dims from.
type step struct {
	text string
	from []int64
	at   func(i []int64) []int64
	view func(x ir.Value) ir.Value
}

// chained is an operand that comes as a chain of views of base, the first of which reads it. x holds the same values in row-major order.
type chained struct {
	x, base  *ir.Tensor
	steps    []step // the last view's first
	half     int    // of a pair of pieces of one base: 1 or 2; 0: alone
	constant bool   // base is a constant of the graph
	arena    bool   // base is copied, so that it lies in the arena
}

func (o *chained) String() string {
	s := o.x.Type().String()
	if len(o.steps) == 0 {
		return s
	}
	for _, v := range slices.Backward(o.steps) {
		s += " <- " + v.text
	}
	s = fmt.Sprintf("%s of %s", s, o.base.Type())
	if o.constant {
		s += " constant"
	}
	if o.arena {
		s += " copied"
	}
	return s
}

// settle makes base and x of a tensor of the values wanted: where a stride of 0 joins elements of x, the last one's value stays.
func (o *chained) settle(x *ir.Tensor, r *random) {
	dims := x.Shape()
	for _, s := range o.steps {
		dims = s.from
	}
	if len(o.steps) == 0 {
		o.x, o.base = x, x
		return
	}
	o.base, o.x = r.plain(x.DType(), dims), zeros(x.DType(), x.Shape())
	each(x.Shape(), func(n int, i []int64) { copyElement(o.base, offset(dims, o.place(i)), x, n) })
	each(x.Shape(), func(n int, i []int64) { copyElement(o.x, n, o.base, offset(dims, o.place(i))) })
}

func (o *chained) place(i []int64) []int64 {
	i = slices.Clone(i)
	for _, s := range o.steps {
		i = s.at(i)
	}
	return i
}

// maxBase is how many elements a base may have: views that skip elements make it larger than what they give.
const maxBase = 1 << 15

// chain draws one to four views that give a tensor of x's shape. fixed: elements must not be joined.
func (r *random) chain(x *ir.Tensor, fixed bool) *chained {
	o := &chained{}
	dims := x.Shape()
	for range 1 + r.IntN(4) {
		s := r.step(dims, fixed)
		if count(s.from) > max(maxBase, 2*int64(x.Len())) {
			break
		}
		o.steps, dims = append(o.steps, s), s.from
	}
	switch r.IntN(8) {
	case 0:
		o.constant = true
	case 1:
		o.arena = true
	}
	o.settle(x, r)
	return o
}

func count(dims []int64) int64 {
	n := int64(1)
	for _, d := range dims {
		n *= d
	}
	return n
}

// step draws a view with a result of the given dims.
func (r *random) step(dims []int64, fixed bool) step {
	kinds := []func([]int64) step{r.transposed, r.sliced, r.sliced, r.reversed, r.piece, r.regrouped, r.ones}
	if !fixed {
		kinds = append(kinds, r.expanded, r.expanded)
	}
	if len(dims) == 0 {
		kinds = []func([]int64) step{r.regrouped, r.ones}
	}
	return kinds[r.IntN(len(kinds))](dims)
}

func (r *random) transposed(dims []int64) step {
	perm, from := make([]int, len(dims)), make([]int64, len(dims))
	for k, p := range r.Perm(len(dims)) {
		perm[k], from[p] = p, dims[k]
	}
	return step{fmt.Sprintf("transpose %v", perm), from, func(i []int64) []int64 {
		j := make([]int64, len(i))
		for k, p := range perm {
			j[p] = i[k]
		}
		return j
	}, func(x ir.Value) ir.Value { return op.Transpose(x, perm...) }}
}

// sliced takes elements with steps of 1 to 3, forwards or backwards, from a place inside the axis.
func (r *random) sliced(dims []int64) step {
	var starts, ends []ir.Dim
	var steps []int64
	from, first := make([]int64, len(dims)), make([]int64, len(dims))
	for k, d := range dims {
		by := []int64{1, 1, 2, 3, -1, -2}[r.IntN(6)]
		size := max(by, -by)
		before, behind := r.Int64N(3), r.Int64N(3)
		from[k] = before + behind
		if d > 0 {
			from[k] += (d-1)*size + 1
		}
		first[k] = before
		end := before + (d-1)*by + by/size
		if by < 0 {
			first[k] = before + (d-1)*size
			end = before - 1
		}
		if d == 0 {
			first[k], end = 0, 0
		} else if end < 0 {
			end = math.MinInt64
		}
		starts, ends, steps = append(starts, ir.D(first[k])), append(ends, ir.D(end)), append(steps, by)
	}
	return step{fmt.Sprintf("slice from %v by %v", first, steps), from, func(i []int64) []int64 {
		for k := range i {
			i[k] = first[k] + i[k]*steps[k]
		}
		return i
	}, func(x ir.Value) ir.Value { return op.Slice(x, starts, ends, nil, steps) }}
}

func (r *random) reversed(dims []int64) step {
	var axes []int
	for k := range dims {
		if r.chance(2) {
			axes = append(axes, k)
		}
	}
	if len(axes) == 0 {
		axes = []int{r.IntN(len(dims))}
	}
	return step{fmt.Sprintf("reverse %v", axes), dims, func(i []int64) []int64 {
		for _, k := range axes {
			i[k] = dims[k] - 1 - i[k]
		}
		return i
	}, func(x ir.Value) ir.Value { return op.Reverse(x, axes...) }}
}

// piece is one of the parts into which an axis is split.
func (r *random) piece(dims []int64) step {
	k, from := r.IntN(len(dims)), slices.Clone(dims)
	parts := 2 + r.Int64N(2)
	start := dims[k] * r.Int64N(parts)
	from[k] *= parts
	return step{fmt.Sprintf("narrow axis %d from %d", k, start), from, func(i []int64) []int64 {
		i[k] += start
		return i
	}, func(x ir.Value) ir.Value { return op.Narrow(x, k, start, dims[k]) }}
}

// expanded repeats what lies at 0 along some axes, or lacks leading axes altogether.
func (r *random) expanded(dims []int64) step {
	from, lead := slices.Clone(dims), 0
	if r.chance(3) {
		lead = r.IntN(len(dims) + 1)
	}
	some := lead > 0
	for k, d := range dims[lead:] {
		if d > 0 && r.chance(2) {
			from[lead+k] = 1
			some = true
		}
	}
	if k := r.IntN(len(dims)); !some && dims[k] > 0 {
		from[k] = 1
	}
	for _, d := range dims[:lead] { // an empty result may come of anything, also of less than it has
		if d == 0 {
			lead = 0
		}
	}
	from = from[lead:]
	return step{fmt.Sprintf("expand %v", from), from, func(i []int64) []int64 {
		i = i[lead:]
		for k := range i {
			if from[k] == 1 {
				i[k] = 0
			}
		}
		return i
	}, func(x ir.Value) ir.Value { return op.Expand(x, ir.Dims(dims...)...) }}
}

// regrouped splits an axis in two or joins two neighbours.
func (r *random) regrouped(dims []int64) step {
	from := slices.Clone(dims)
	switch k := r.IntN(max(1, len(dims))); {
	case len(dims) > 1 && k > 0 && r.chance(2):
		from = slices.Replace(from, k-1, k+1, dims[k-1]*dims[k])
	case len(dims) > 0 && len(dims) < 7 && dims[k]%2 == 0:
		from = slices.Replace(from, k, k+1, 2, dims[k]/2)
	default:
		from = dims64(count(dims))
	}
	return r.reshaped(dims, from)
}

func dims64(d ...int64) []int64 { return d }

// ones adds an axis of length 1 or takes one away.
func (r *random) ones(dims []int64) step {
	if k := slices.Index(dims, 1); k >= 0 && r.chance(2) {
		return r.reshaped(dims, slices.Delete(slices.Clone(dims), k, k+1))
	}
	if len(dims) > 6 {
		return r.reshaped(dims, dims64(count(dims)))
	}
	return r.reshaped(dims, slices.Insert(slices.Clone(dims), r.IntN(len(dims)+1), 1))
}

func (r *random) reshaped(dims, from []int64) step {
	return step{fmt.Sprintf("reshape to %v", dims), from, func(i []int64) []int64 {
		n, j := int64(offset(dims, i)), make([]int64, len(from))
		for k := len(from) - 1; k >= 0; k-- {
			j[k] = n % from[k]
			n /= from[k]
		}
		return j
	}, func(x ir.Value) ir.Value { return op.Reshape(x, ir.Dims(dims...)...) }}
}

// pair is a call of a row whose operands come once as views and once in row-major order.
type pair struct {
	*rowCase
	operands []*chained // nil: absent
}

func (p *pair) String() string {
	s := p.label
	for _, o := range p.operands {
		if o == nil {
			s += "; nil"
			continue
		}
		s += "; " + o.String()
	}
	return s + "; " + p.text
}

// newPair draws the views of a case's operands.
func newPair(c *rowCase, r *random) *pair {
	p := &pair{c, make([]*chained, len(c.in))}
	for i, x := range c.in {
		if x != nil {
			p.operands[i] = r.chain(x, c.fixed)
		}
	}
	if r.chance(3) {
		p.halve(r)
	}
	return p
}

// halve makes two operands of one type the halves of one base.
func (p *pair) halve(r *random) {
	for i, x := range p.in {
		for j := range i {
			if y := p.in[j]; x != nil && y != nil && x.Rank() > 0 && x.Type().Equal(y.Type()) {
				k := r.IntN(x.Rank())
				base := p.joined(y, x, k)
				for half, at := range []int{j, i} {
					s := r.piece(x.Shape())
					start := int64(half) * x.Shape()[k]
					s.text, s.from = fmt.Sprintf("narrow axis %d from %d", k, start), base.Shape()
					s.view = func(v ir.Value) ir.Value { return op.Narrow(v, k, start, x.Shape()[k]) }
					p.operands[at] = &chained{x: p.in[at], base: base, steps: []step{s}, half: half + 1}
				}
				return
			}
		}
	}
}

// joined is y and x along axis k.
func (p *pair) joined(y, x *ir.Tensor, k int) *ir.Tensor {
	dims := slices.Clone(x.Shape())
	dims[k] *= 2
	base := zeros(x.DType(), dims)
	each(x.Shape(), func(n int, i []int64) {
		at := slices.Clone(i)
		copyElement(base, offset(dims, at), y, n)
		at[k] += x.Shape()[k]
		copyElement(base, offset(dims, at), x, n)
	})
	return base
}

// build adds both calls to a graph: case<number> reads views, dense<number> what they hold.
func (p *pair) build(g *ir.Graph, feed rlx.Feed, number int) error {
	views, dense := make([]ir.Value, len(p.operands)), make([]ir.Value, len(p.operands))
	var shared ir.Value
	for i, o := range p.operands {
		if o == nil {
			continue
		}
		name := fmt.Sprintf("dense%d_%d", number, i)
		dense[i], feed[name] = g.Input(name, o.x.DType(), o.x.Type().Shape), o.x
		v := shared
		if o.half != 2 {
			v = o.leaf(g, feed, fmt.Sprintf("base%d_%d", number, i))
		}
		if o.half == 1 {
			shared = v
		}
		for _, s := range slices.Backward(o.steps) {
			v = s.view(v)
		}
		views[i] = v
	}
	for name, in := range map[string][]ir.Value{caseName(number): views, "dense" + caseName(number): dense} {
		n, err := g.Add(p.row, name, p.attrs, in...)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for k, y := range n.Results() {
			g.Output(fmt.Sprintf("%s_%d", name, k), y)
		}
	}
	return g.Err()
}

func (o *chained) leaf(g *ir.Graph, feed rlx.Feed, name string) ir.Value {
	if o.constant {
		return g.Constant(o.base)
	}
	feed[name] = o.base
	v := g.Input(name, o.base.DType(), o.base.Type().Shape)
	if o.arena {
		return op.Copy(v)
	}
	return v
}

// differs says where the results of views differ from those of dense operands; NaN equals NaN.
func (p *pair) differs(out rlx.Feed, number int) error {
	for k := range p.types {
		got, want := out[fmt.Sprintf("%s_%d", caseName(number), k)], out[fmt.Sprintf("dense%s_%d", caseName(number), k)]
		if got != nil && want != nil && got.Type().Equal(want.Type()) && bytes.Equal(got.Bytes(), want.Bytes()) {
			continue
		}
		if err := (measure{exact: true}).compare(got, want); err != nil {
			return fmt.Errorf("result %d of views beside that of copies: %w", k, err)
		}
	}
	return nil
}

// viewRun is the test on one backend.
type viewRun struct {
	backend string
	strided map[int]ir.DTypeSet // by op number: whose kernels take strides
	pairs   map[string]int      // by kind
	views   int                 // operands that came as strides
	taken   int                 // of them those of kernels that take strides as they are
	passes  [2]rlx.Option
	text    [2]string
	lacks   map[string]bool
}

func newViewRun(t *testing.T, b string) *viewRun {
	device, err := hold(t.Context(), rlx.On(b))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { device.Close() })
	r := &viewRun{backend: b, strided: map[int]ir.DTypeSet{}, pairs: map[string]int{}, lacks: map[string]bool{},
		passes: [2]rlx.Option{rlx.OnlyPasses("views"), rlx.OnlyPasses()}, text: [2]string{"the views pass alone", "no passes"}}
	for _, c := range device.Caps() {
		if c.Strided {
			r.strided[c.Op] |= ir.DTypeSet(c.DTypes)
		}
	}
	return r
}

// run compiles and runs pairs as one graph.
func (r *viewRun) run(t *testing.T, pairs []*pair, how int) error {
	g, feed := ir.NewGraph("views"), rlx.Feed{}
	for i, p := range pairs {
		if err := p.build(g, feed, i); err != nil {
			return err
		}
	}
	var last *ir.Graph
	p, err := rlx.Compile(t.Context(), g, rlx.On(r.backend), r.passes[how], rlx.TracePasses(func(s rlx.PassStep) { last = s.After }))
	if err != nil {
		return err
	}
	defer p.Close()
	out, err := p.Run(t.Context(), feed, rlx.Seed(*firstSeed))
	if err != nil {
		return err
	}
	for i, p := range pairs {
		if err := p.differs(out, i); err != nil {
			return err
		}
	}
	if len(pairs) > 1 || how == 0 {
		r.count(last)
	}
	return nil
}

// count looks at how operands come once the passes are through.
func (r *viewRun) count(g *ir.Graph) {
	for _, n := range g.Nodes {
		if n.Row.Has(ir.Leaf) || n.Row.Has(ir.View) || len(n.In) == 0 || n.In[0].IsZero() {
			continue
		}
		for _, v := range n.In {
			if !v.IsZero() && !rowMajor(v) {
				r.views++
				if r.strided[n.Row.Num()].Has(n.In[0].DType()) {
					r.taken++
				}
			}
		}
	}
}

// rowMajor says whether the elements of v lie one behind the other from the beginning of what it is a view of.
func rowMajor(v ir.Value) bool {
	var chain []*ir.Node
	for n := v.Node(); n.Row.Has(ir.View); n = n.In[0].Node() {
		chain = append(chain, n)
	}
	if len(chain) == 0 {
		return true
	}
	s := contiguous(chain[len(chain)-1].In[0])
	for _, n := range slices.Backward(chain) {
		var ok bool
		if s.Dims, s.Strides, s.Offset, ok = op.ViewOf(n, s.Dims, s.Strides, s.Offset); !ok {
			s = contiguous(n.Out(0)) // copied
		}
	}
	want := contiguous(v)
	for k, d := range s.Dims {
		if d == 0 || d != 1 && s.Strides[k] != want.Strides[k] {
			return d == 0
		}
	}
	return s.Offset == 0
}

func contiguous(v ir.Value) op.Strided {
	dims, _ := ir.StaticShape(v.Shape())
	strides, n := make([]int64, len(dims)), int64(1)
	for k := len(dims) - 1; k >= 0; k-- {
		strides[k] = n
		n *= dims[k]
	}
	return op.Strided{Dims: dims, Strides: strides}
}

// shrunk takes views away as long as the pair still fails, and returns what is left with its failure.
func (r *viewRun) shrunk(t *testing.T, p *pair, how int, err error) (*pair, error) {
	for i := 0; i < len(p.operands); i++ {
		o := p.operands[i]
		if o == nil || o.half > 0 {
			continue
		}
		for less := range len(o.steps) {
			smaller := &pair{p.rowCase, slices.Clone(p.operands)}
			short := &chained{steps: o.steps[:less], constant: o.constant && less > 0}
			short.settle(p.in[i], newRandom(*firstSeed, 0))
			smaller.operands[i] = short
			if e := r.run(t, []*pair{smaller}, how); e != nil {
				p, err = smaller, e
				break
			}
		}
	}
	return p, err
}

// group runs pairs at once, and one by one where that fails.
func (r *viewRun) group(t *testing.T, pairs []*pair, how int) (failures int) {
	if len(pairs) == 0 {
		return 0
	}
	for _, p := range pairs {
		r.pairs[p.row.Name]++
	}
	if r.run(t, pairs, how) == nil {
		return 0
	}
	for _, p := range pairs {
		err := r.run(t, []*pair{p}, how)
		var u *rlx.UnsupportedError
		if errors.As(err, &u) {
			r.pairs[p.row.Name]--
			r.lacks[p.label+": "+unsupportedReason(u)] = true
			continue
		}
		if err == nil {
			continue
		}
		if failures++; failures <= 2 {
			small, err := r.shrunk(t, p, how, err)
			g := ir.NewGraph(p.row.Name)
			_ = small.build(g, rlx.Feed{}, 0)
			t.Errorf("%s, %s, seed %d: %s: %v\n%s", r.backend, r.text[how], *firstSeed, small, err, g)
		}
	}
	if failures == 0 {
		t.Errorf("%s, %s, seed %d: %s: %d pairs of which each holds alone fail together", r.backend, r.text[how], *firstSeed, pairs[0].label, len(pairs))
	}
	return failures
}

// pairsOf are some calls of a row for one dtype and one choice of its enum attributes.
func pairsOf(row *ir.Row, d ir.DType, enums map[string]string, turn int) []*pair {
	m := &maker{row: row, dtype: d, enums: enums, rng: newRandom(*firstSeed, uint64(row.Num()*1000+turn)), short: true, turn: turn + int(*firstSeed)}
	generatorOf(row)(m)
	g := &caseGroup{accepted: map[string]bool{}, refused: map[string]error{}}
	for _, c := range m.cases {
		if c.label = fmt.Sprintf("%s %s%s", row.Name, d, enumText(enums)); c.fails == "" {
			g.add(m, c)
		}
	}
	var pairs []*pair
	for _, c := range g.cases {
		pairs = append(pairs, newPair(c, m.rng))
	}
	return pairs
}

// Every op gives the bits of copied operands for operands that are views: of any order of axes, with steps of 0, below 0 and above 1,
// from an offset on, with axes of length 1, regrouped, and two of one buffer. Slow backends take a part of the dtypes and functions.
func TestViewsGiveTheBitsOfCopies(t *testing.T) {
	for _, b := range Backends() {
		t.Run(b, func(t *testing.T) {
			r, none := newViewRun(t, b), []string{}
			for _, row := range ir.Rows() {
				switch {
				case row.Has(ir.Leaf):
					none = append(none, row.Name+" (a leaf has no operands)")
				case len(row.In) == 0:
					none = append(none, row.Name+" (takes no tensors)")
				case Slow(b) && *slowDTypes == 0 && (row.Num()+int(*firstSeed))%3 != 0:
					none = append(none, row.Name+" (in the sample of another seed, or of -view-dtypes)")
				default:
					r.row(t, row)
				}
			}
			total := 0
			for _, n := range r.pairs {
				total += n
			}
			t.Logf("seed %d: %d pairs of %d kinds: %s", *firstSeed, total, len(r.pairs), kindsText(r.pairs))
			t.Logf("%d operands are strided, %d of them of kernels that take strides; the others are copied first", r.views, r.taken)
			t.Logf("not covered: %s", strings.Join(none, ", "))
			for _, l := range slices.Sorted(maps.Keys(r.lacks)) {
				t.Logf("not supported: %s", l)
			}
			if r.views < total {
				t.Errorf("%d strided operands in %d pairs: too few to say anything", r.views, total)
			}
		})
	}
}

func kindsText(pairs map[string]int) string {
	var list []string
	for _, k := range slices.Sorted(maps.Keys(pairs)) {
		list = append(list, fmt.Sprint(k, " ", pairs[k]))
	}
	return strings.Join(list, ", ")
}

// row runs pairs of one row: of every dtype, with some choices of its enum attributes each, which follow from the seed. The interpreter, whose
// kernels never see strides, and slow backends take one dtype with one choice.
func (r *viewRun) row(t *testing.T, row *ir.Row) {
	choices, list, first := enumChoices(row), row.In[0].DTypes.List(), row.Num()+int(*firstSeed)
	functions, dtypes, failures := 4, len(list), 0
	if testing.Short() {
		functions = 1
	}
	if r.backend == "ref" || Slow(r.backend) {
		functions, dtypes = 1, max(1, *slowDTypes)
	}
	for n, d := range rotated(list, first) {
		ran := 0
		for i, e := range rotated(choices, first+n) {
			pairs := pairsOf(row, d, e, n*len(choices)+i)
			if len(pairs) == 0 {
				continue
			}
			if failures += r.group(t, pairs, (n+i)%2); failures > 2 {
				return
			}
			if ran++; ran == functions {
				break
			}
		}
		if ran > 0 {
			if dtypes--; dtypes == 0 {
				break
			}
		}
	}
	if r.pairs[row.Name] == 0 {
		t.Errorf("%s: %s: no pair is legal", r.backend, row.Name)
	}
}
