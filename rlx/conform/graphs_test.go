package conform

import (
	"flag"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

var (
	graphCount = flag.Int("graphs", 0, "random graphs to run; 0: 40 in a short run, else 300")
	firstSeed  = flag.Uint64("seed", 1, "seed of the cases made from rows and of the first random graph")
)

// grower adds random nodes to a graph. Values that no rounding op has touched are exact: only they reach ops that jump, such as floor and
// comparisons, since a last-place difference in front of those would not stay small.
type grower struct {
	*random
	g      *ir.Graph
	feed   rlx.Feed
	values []ir.Value
	exact  map[ir.Value]bool
}

// grow makes the graph of a seed with n nodes: a smaller n gives a prefix of the same graph.
func grow(seed uint64, n int) *grower {
	w := &grower{random: newRandom(seed, 7), g: ir.NewGraph(fmt.Sprint("seed ", seed)), feed: rlx.Feed{}, exact: map[ir.Value]bool{}}
	for i := range 3 {
		shape := make([]int64, w.IntN(4))
		for k := range shape {
			shape[k] = []int64{1, 2, 3, 5, 8, 17}[w.IntN(6)]
		}
		x := w.plain(ir.F32, shape)
		if w.chance(4) {
			w.add(w.g.Constant(x), true)
			continue
		}
		name := fmt.Sprint("in", i)
		w.feed[name] = x
		w.add(w.g.Input(name, ir.F32, ir.Dims(shape...)), true)
	}
	for len(w.values) < n+3 {
		w.node()
	}
	used := map[ir.Value]bool{}
	for _, node := range w.g.Nodes {
		for _, v := range node.In {
			used[v] = true
		}
	}
	for i, v := range w.values {
		if !used[v] || i%4 == 3 {
			w.g.Output(fmt.Sprint("out", i), v)
		}
	}
	return w
}

func (w *grower) add(v ir.Value, exact bool) {
	w.values = append(w.values, v)
	w.exact[v] = exact
}

// pick draws a value, rather a late one.
func (w *grower) pick() ir.Value {
	n := len(w.values)
	return w.values[n-1-min(w.IntN(n), w.IntN(n))]
}

// like draws a value that broadcasts with x and has its dtype.
func (w *grower) like(x ir.Value) ir.Value {
	for range 20 {
		y := w.pick()
		if _, ok := ir.Broadcast(x.Shape(), y.Shape()); ok && y.DType() == x.DType() {
			return y
		}
	}
	return x
}

func (w *grower) node() {
	x, y := w.pick(), ir.Value{}
	ex := w.exact[x]
	if n, _ := ir.Count(x.Shape()).Static(); n > 1<<12 { // keep graphs small
		x = op.Narrow(op.ReshapeInts(x, -1), 0, 0, 64)
	}
	switch rank := x.Rank(); w.IntN(8) {
	case 0:
		y, ex = w.unary(x, ex)
	case 1:
		z := w.like(x)
		y, ex = w.binary(x, z, ex && w.exact[z])
	case 2, 3:
		if rank > 0 {
			y = w.move(x, w.IntN(rank))
		}
	case 4:
		if rank > 0 {
			y, ex = w.reduce(x, w.IntN(rank), ex)
		}
	case 5:
		if z := w.pick(); rank > 1 && z.Rank() > 1 && z.Rank() == rank {
			if y = w.product(x, z); !y.IsZero() {
				ex = false
			}
		}
	case 6:
		z := w.like(x)
		if ex && w.exact[z] {
			y = op.Where(op.Lt(x, z), x, z)
		}
	case 7:
		if ex {
			y = op.Cast(op.Cast(x, []ir.DType{ir.F16, ir.BF16, ir.I32, ir.F64}[w.IntN(4)]), ir.F32)
		}
	}
	if !y.IsZero() && !y.Poisoned() {
		w.add(y, ex)
	}
}

func (w *grower) unary(x ir.Value, exact bool) (ir.Value, bool) {
	moves := []func(ir.Value) ir.Value{op.Neg, op.Abs, op.Relu, op.StopGradient, func(v ir.Value) ir.Value { return op.Clamp(v, -1, 2) }}
	jumps := []func(ir.Value) ir.Value{op.Floor, op.Round, op.Sign}
	smooth := []func(ir.Value) ir.Value{op.Tanh, op.Sigmoid, op.Gelu, op.Softplus, op.Sin}
	switch k := w.IntN(3); {
	case k == 0:
		return moves[w.IntN(len(moves))](x), exact
	case k == 1 && exact:
		return jumps[w.IntN(len(jumps))](x), true
	}
	return smooth[w.IntN(len(smooth))](x), false
}

func (w *grower) binary(x, z ir.Value, exact bool) (ir.Value, bool) {
	switch w.IntN(5) {
	case 0:
		return op.Add(x, z), false
	case 1:
		return op.Sub(x, z), false
	case 2:
		return op.Mul(x, op.Tanh(z)), false
	case 3:
		return op.Max(x, z), exact
	}
	return op.Min(x, z), exact
}

// move rearranges x along an axis.
func (w *grower) move(x ir.Value, axis int) ir.Value {
	d, _ := x.Dim(axis).Static()
	switch w.IntN(8) {
	case 0:
		return op.Transpose(x)
	case 1:
		return op.Reverse(x, axis)
	case 2:
		return op.Slice(x, ir.Dims(d/3), ir.Dims(d), []int{axis}, []int64{2})
	case 3:
		return op.Concat(axis, x, x)
	case 4:
		return op.Expand(op.Reshape(x, append(ir.Dims(1), x.Shape()...)...), append(ir.Dims(2), x.Shape()...)...)
	case 5:
		return op.ReshapeInts(x, -1)
	case 6:
		return op.Gather(x, w.g.Constant(w.index(ir.I64, dims(3), d)), axis)
	}
	padding := make([]int64, x.Rank())
	padding[axis] = 1
	return op.Pad(x, ir.Dims(padding...), []op.PadMode{op.PadConstant, op.PadReflect, op.PadReplicate, op.PadCircular}[w.IntN(4)], ir.FloatNumber(0.5))
}

func (w *grower) reduce(x ir.Value, axis int, exact bool) (ir.Value, bool) {
	switch w.IntN(6) {
	case 0:
		return op.Reduce(x, "max", []int{axis}, w.chance(2)), exact
	case 1:
		return op.Reduce(x, "mean", []int{axis}, w.chance(2)), false
	case 2:
		return op.Softmax(x, axis), false
	case 3:
		return op.LayerNorm(x, ir.Value{}, ir.Value{}, axis, 0.1), false
	case 4:
		return op.Cumsum(x, axis), false
	}
	if !exact {
		return op.Sum(x, axis), false
	}
	y, _ := op.Sort(x, axis, w.chance(2))
	return y, true
}

// product multiplies x by z or its transpose, where the sizes fit.
func (w *grower) product(x, z ir.Value) ir.Value {
	perm := make([]int, z.Rank())
	for k := range perm {
		perm[k] = k
	}
	slices.Reverse(perm[len(perm)-2:])
	for _, t := range []ir.Value{z, op.Transpose(z, perm...), op.Transpose(x, perm...)} {
		if _, ok := ir.Broadcast(x.Shape()[:x.Rank()-2], t.Shape()[:t.Rank()-2]); ok && t.Dim(-2) == x.Dim(-1) {
			return op.MatMul(x, t)
		}
	}
	return ir.Value{}
}

// run compiles and runs the graph.
func (w *grower) run(t *testing.T, opts ...rlx.Option) (rlx.Feed, error) {
	if err := w.g.Err(); err != nil {
		return nil, err
	}
	p, err := rlx.Compile(t.Context(), w.g, append(opts, rlx.Verify())...)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	return p.Run(t.Context(), w.feed)
}

// agree compares two runs of the graph. same: bit for bit; else rounding may differ where values are not exact.
func (w *grower) agree(got, want rlx.Feed, same bool) error {
	size := 1.0
	for _, x := range want {
		for i := range x.Len() {
			if v := math.Abs(x.Float(i)); v > size && !math.IsInf(v, 0) {
				size = v
			}
		}
	}
	for _, o := range w.g.Outputs {
		m := measure{exact: same, tol: ir.Tolerance{Abs: 1e-4 * size}}
		if w.exact[o.Value] {
			m.tol.Abs = math.SmallestNonzeroFloat64 // max and min may give either zero
		}
		if err := m.compare(got[o.Name], want[o.Name]); err != nil {
			return fmt.Errorf("%s (%s): %w", o.Name, o.Value.Node(), err)
		}
	}
	return nil
}

var passSets = [][]string{nil, {"fold"}, {"cse"}, {"dce"}, {"fold", "cse", "dce"}}

// exact switches off the passes that may round otherwise, and those of the interpreter's kernels that round once.
func exact() rlx.Option {
	names := []string{"epilogue"}
	for _, p := range rlx.Passes() {
		if p.Rounds {
			names = append(names, p.Name)
		}
	}
	return rlx.WithoutPasses(names...)
}

// interprets says whether a backend runs every op as ref does, and none composed of others.
func interprets(b string) bool {
	return slices.Contains([]string{"ref", "ref-poisoned", "ref-host", "ref-dense"}, b)
}

// differs says what is wrong with the graph of a seed on some backend or under some passes.
func differs(t *testing.T, seed uint64, n int) error {
	w := grow(seed, n)
	want, err := w.run(t, rlx.On("ref"), rlx.OnlyPasses())
	if err != nil {
		return fmt.Errorf("ref: %w", err)
	}
	for _, b := range poisonable(t) {
		var first rlx.Feed
		sets := passSets
		if Slow(b) {
			if sets = passSets[:1]; testing.Short() && seed%4 != 0 {
				continue
			}
		}
		for _, off := range sets {
			got, err := w.run(t, rlx.On(b), exact(), rlx.WithoutPasses(off...))
			if err == nil {
				err = w.agree(got, want, interprets(b))
			}
			if err == nil && first != nil {
				err = w.agree(got, first, true)
			}
			if err != nil {
				return fmt.Errorf("%s without passes %v: %w", b, off, err)
			}
			if first == nil {
				first = got
			}
		}
	}
	return nil
}

// Random graphs give the same on every backend and with any passes off.
func TestRandomGraphs(t *testing.T) {
	count := *graphCount
	switch {
	case count > 0:
	case testing.Short():
		count = 40
	default:
		count = 300
	}
	for _, b := range backends() {
		defer Hold(t.Context(), rlx.On(b))()
	}
	for seed := *firstSeed; seed < *firstSeed+uint64(count); seed++ {
		n, most := 1, 3+int(seed%13)
		if differs(t, seed, most) == nil {
			continue
		}
		for n < most && differs(t, seed, n) == nil { // the shortest prefix of the graph that fails
			n++
		}
		t.Errorf("seed %d, %d nodes: %v\n%s", seed, n, differs(t, seed, n), grow(seed, n).g)
	}
}
