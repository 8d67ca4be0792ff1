package fuzz

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// grower adds random nodes to a graph and computes each as it comes, so that a step can look at the numbers: only exact values reach
// functions that jump, such as floor and comparisons, and what grows too large or magnifies errors is left as it is and read no more.
type grower struct {
	*rand.Rand
	g      *ir.Graph
	bench  *bench
	feed   rlx.Feed
	pool   []ir.Value // what steps may read
	done   int        // nodes that are computed
	rough  map[ir.Value]bool
	extra  []ir.Value // inner values that become outputs
	float  ir.DType   // of most values
	odd    bool       // NaN, infinities and the like among the inputs
	symbol bool       // the first axis of some inputs is symbolic
	err    error
}

// Grow makes the graph of a seed with at least n steps; nil where the seed gives none, which is rare.
func Grow(seed uint64, n int) (*Case, error) {
	w := &grower{Rand: rand.New(rand.NewPCG(seed, 5)), g: ir.NewGraph(fmt.Sprint("seed ", seed)), bench: newBench(seed), feed: rlx.Feed{},
		rough: map[ir.Value]bool{}, float: ir.F32}
	if w.chance(5) {
		w.float = []ir.DType{ir.F64, ir.F16, ir.BF16, ir.F64}[w.IntN(4)]
	}
	w.odd, w.symbol = w.chance(6), w.chance(3)
	for range 2 + w.IntN(3) {
		w.leaf()
	}
	for steps := 0; steps < n && w.err == nil; steps++ {
		w.step()
	}
	if w.err == nil {
		w.outputs()
	}
	if w.err == nil {
		w.err = w.g.Err()
	}
	if w.err != nil {
		return nil, fmt.Errorf("seed %d: %w", seed, w.err)
	}
	return &Case{w.g, w.feed, seed}, nil
}

func (w *grower) chance(oneIn int) bool { return w.IntN(oneIn) == 0 }

func pickOf[T any](w *grower, list ...T) T { return list[w.IntN(len(list))] }

// sizes are on both sides of vector widths, rather the small ones.
func (w *grower) size() int64 {
	if w.chance(40) {
		return 0
	}
	if w.chance(4) {
		return pickOf[int64](w, 15, 16, 17, 31, 32, 33)
	}
	return pickOf[int64](w, 1, 2, 3, 4, 5, 7, 8, 9)
}

func (w *grower) shape(rank int) []int64 {
	shape := make([]int64, rank)
	n := int64(1)
	for i := range shape {
		if shape[i] = w.size(); n*max(shape[i], 1) > 2048 {
			shape[i] = 2
		}
		n *= max(shape[i], 1)
	}
	return shape
}

// tensor draws ordinary values, with odd ones among them where the graph has such.
func (w *grower) tensor(d ir.DType, shape []int64) *ir.Tensor {
	t, err := ir.Zeros(d, slices.Clone(shape)...)
	if err != nil {
		w.err = err
		return ir.Scalar(float32(0))
	}
	for i := range t.Len() {
		switch {
		case ir.Float.Has(d):
			v := w.NormFloat64()
			if w.odd && w.chance(8) {
				v = pickOf(w, math.NaN(), math.Inf(1), math.Inf(-1), 0, math.Copysign(0, -1), 0x1p-149, -3*0x1p-149, 0x1p-1074, 1, 1)
			} else if w.chance(4) { // ties, and numbers that are exact in every format
				if v = float64(w.IntN(9)-4) / 2; v == 0 && w.chance(2) {
					v = math.Copysign(0, -1)
				}
			}
			ir.PutFloat(d, t.Bytes(), i, v)
		case d == ir.Bool:
			t.Bytes()[i] = byte(w.IntN(2))
		case ir.Unsigned.Has(d):
			ir.PutInt(d, t.Bytes(), i, int64(w.IntN(20)))
		default:
			v := int64(w.IntN(19) - 9)
			if w.odd && w.chance(6) {
				v = int64(w.Uint64())
			}
			ir.PutInt(d, t.Bytes(), i, v)
		}
	}
	return t
}

// leaf adds an input, a constant or a param to the pool.
func (w *grower) leaf() {
	d := w.float
	if w.chance(5) {
		d = pickOf(w, ir.I32, ir.I64, ir.U8, ir.I8, ir.Bool, ir.F32)
	}
	w.add(w.bind(w.tensor(d, w.shape(w.IntN(5))), 0))
}

// bind makes a leaf of t: an input, and with one chance in others each a constant or a param.
func (w *grower) bind(t *ir.Tensor, others int) ir.Value {
	name := fmt.Sprint("in", len(w.g.Nodes))
	if others == 0 {
		others = 6
	}
	switch w.IntN(others) {
	case 0:
		return w.g.Constant(t)
	case 1:
		return w.g.Param(name, t)
	}
	w.feed[name] = t
	shape := t.Type().Shape
	if n := int64(3); w.symbol && t.Rank() > 1 && t.Shape()[0] == n || w.symbol && t.Rank() > 1 && len(w.g.Symbols()) == 0 && t.Shape()[0] > 0 {
		if known := w.g.Symbols(); len(known) == 0 {
			shape = append([]ir.Dim{ir.Sym("n")}, shape[1:]...)
		} else if w.bench.symbols["n"] == t.Shape()[0] {
			shape = append([]ir.Dim{ir.Sym("n")}, shape[1:]...)
		}
	}
	return w.g.Input(name, t.DType(), shape)
}

// weight is a tensor that is rather a constant or a param.
func (w *grower) weight(d ir.DType, scale float64, shape ...int64) ir.Value {
	odd := w.odd
	w.odd = odd && scale == 1 // what is 0 times an infinity depends on whether padding is multiplied
	t := w.tensor(d, shape)
	w.odd = odd
	if ir.Float.Has(d) && scale != 1 {
		for i := range t.Len() {
			ir.PutFloat(d, t.Bytes(), i, t.Float(i)*scale)
		}
	}
	return w.bind(t, 3)
}

// compute runs the nodes that were added since, and says whether all of them can be told from noise.
func (w *grower) compute() bool {
	if w.err == nil {
		w.err = w.g.Err()
	}
	for ; w.err == nil && w.done < len(w.g.Nodes); w.done++ {
		n := w.g.Nodes[w.done]
		if w.err = w.bench.node(n, w.feed); w.err != nil {
			w.err = fmt.Errorf("%s: %w", n, w.err)
		}
		for _, v := range n.In {
			if !v.IsZero() && w.rough[v] {
				for _, r := range n.Results() {
					w.rough[r] = true
				}
			}
		}
	}
	return w.err == nil
}

// add puts a value into the pool, if it is worth reading.
func (w *grower) add(v ir.Value) {
	if v.IsZero() || v.Poisoned() || !w.compute() {
		return
	}
	if k := w.known(v); k.steady() && w.moderate(k.base) {
		w.pool = append(w.pool, v)
	}
}

// moderate says whether the finite elements are small enough to be multiplied once more, and not too many.
func (w *grower) moderate(t *ir.Tensor) bool {
	if t.Len() > 1<<13 {
		return false
	}
	if !ir.Float.Has(t.DType()) {
		return true
	}
	limit := 1e4
	if t.DType() == ir.F16 {
		limit = 100
	}
	for i := range t.Len() {
		if v := math.Abs(t.Float(i)); v > limit && !math.IsInf(v, 0) {
			return false
		}
	}
	return true
}

func (w *grower) known(v ir.Value) *known { return w.bench.values[v] }

// finite says whether all elements are.
func (w *grower) finite(v ir.Value) bool { return allFinite(w.known(v).base) }

func allFinite(t *ir.Tensor) bool {
	for i := range t.Len() {
		if x := t.Float(i); math.IsNaN(x) || math.IsInf(x, 0) {
			return false
		}
	}
	return true
}

// exact says whether v is so on every backend and under all passes.
func (w *grower) exact(v ir.Value) bool { return w.known(v).exact && !w.rough[v] }

// shapeOf is the shape of v in this run.
func (w *grower) shapeOf(v ir.Value) []int64 { return w.known(v).base.Shape() }

// most is the largest absolute value of v.
func (w *grower) most(v ir.Value) float64 {
	m, t := 0.0, w.known(v).base
	for i := range t.Len() {
		if x := math.Abs(t.Float(i)); x > m || math.IsNaN(x) {
			m = x
		}
	}
	return m
}

// pick draws a value, rather a late one.
func (w *grower) pick() ir.Value {
	if len(w.pool) == 0 {
		w.add(w.bind(w.tensor(w.float, w.shape(2)), 0))
		if len(w.pool) == 0 { // the draw was no steady tensor, which a plain one is
			w.odd = false
			return w.pick()
		}
	}
	n := len(w.pool)
	return w.pool[n-1-min(w.IntN(n), w.IntN(n))]
}

// pickIf draws a value that ok takes; the zero Value if it finds none.
func (w *grower) pickIf(ok func(ir.Value) bool) ir.Value {
	for range 12 {
		if v := w.pick(); ok(v) {
			return v
		}
	}
	return ir.Value{}
}

func isFloat(v ir.Value) bool { return ir.Float.Has(v.DType()) }

func (w *grower) pickFloat() ir.Value {
	if v := w.pickIf(isFloat); !v.IsZero() {
		return v
	}
	v := w.bind(w.tensor(w.float, w.shape(1+w.IntN(3))), 0)
	w.add(v)
	return v
}

// static says whether the dim of an axis is a number.
func static(v ir.Value, axis int) bool { return v.Dim(axis).IsStatic() }

// axis draws an axis of v whose dim is a number; ok is false where there is none.
func (w *grower) axis(v ir.Value) (int, bool) {
	for range 6 {
		if v.Rank() > 0 {
			if k := w.IntN(v.Rank()); static(v, k) {
				return k, true
			}
		}
	}
	return 0, false
}

// step adds what one kind of step adds.
func (w *grower) step() {
	steps := []struct {
		name   string
		weight int
		add    func(*grower)
	}{
		{"unary", 6, (*grower).unary}, {"binary", 8, (*grower).binary}, {"bait", 5, (*grower).bait}, {"choose", 3, (*grower).choose},
		{"cast", 2, (*grower).cast}, {"view", 9, (*grower).view}, {"gather", 3, (*grower).gatherStep}, {"concat", 3, (*grower).concat},
		{"reduce", 5, (*grower).reduce}, {"norm", 3, (*grower).norm}, {"product", 6, (*grower).product}, {"convolution", 5, (*grower).convolution},
		{"pattern", 9, (*grower).pattern}, {"control", 2, (*grower).control}, {"generic", 4, (*grower).generic}, {"twin", 2, (*grower).twin},
		{"leaf", 1, (*grower).leaf}, {"integers", 2, (*grower).integers},
	}
	total := 0
	for i := range steps {
		if steps[i].name == Emphasis {
			steps[i].weight *= 10
		}
		total += steps[i].weight
	}
	k := w.IntN(total)
	for _, s := range steps {
		if k -= s.weight; k < 0 {
			s.add(w)
			return
		}
	}
}

// Emphasis names a kind of step that Grow takes ten times as often; empty for none.
var Emphasis string

// outputs names some values: those that nothing reads, others of the pool, inputs, and one twice now and then.
func (w *grower) outputs() {
	read := map[ir.Value]bool{}
	for _, n := range w.g.Nodes {
		for _, v := range n.In {
			read[v] = true
		}
	}
	var list []ir.Value
	for i, v := range w.pool {
		if leaf := v.Node().Row.Has(ir.Leaf); !read[v] && !w.chance(6) && !leaf || !leaf && w.chance(9) || leaf && w.chance(12) || i == len(w.pool)-1 {
			list = append(list, v)
		}
	}
	for _, v := range w.extra {
		if k := w.known(v); k != nil && k.steady() {
			list = append(list, v)
		}
	}
	if w.chance(8) && len(list) > 0 {
		list = append(list, list[0])
	}
	if len(list) == 0 {
		list = append(list, w.pick())
	}
	w.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	for i, v := range list {
		w.g.Output(fmt.Sprint("out", i), v)
	}
}

// ---- elementwise ----

var (
	smooth = []op.UnaryFn{"tanh", "sigmoid", "gelu", "gelu_tanh", "softplus", "sin", "cos", "erf", "silu", "mish", "softsign", "atan", "elu", "hard_swish",
		"hard_sigmoid", "log_sigmoid", "asinh", "selu", "gelu_quick", "celu"}
	plain = []op.UnaryFn{"neg", "abs", "relu", "relu6", "identity", "square", "neg", "leaky_relu"}
	jumps = []op.UnaryFn{"floor", "round", "sign", "ceil", "trunc", "thresholded_relu"}
)

func (w *grower) unary() {
	x := w.pickFloat()
	nan := math.NaN()
	switch k := w.IntN(6); {
	case k < 2:
		w.add(op.Activation(x, plain[w.IntN(len(plain))], nan, nan))
	case k == 2 && w.exact(x):
		w.add(op.Activation(x, jumps[w.IntN(len(jumps))], nan, nan))
	case k == 3:
		w.add(op.Exp(op.Min(x, 4)))
	case k == 4:
		y := op.Add(op.Abs(x), 0.5)
		w.add(pickOf(w, op.Sqrt, op.Rsqrt, op.Log, op.Reciprocal, op.Log1p)(y))
	default:
		w.add(op.Activation(x, smooth[w.IntN(len(smooth))], nan, nan))
	}
}

// broadcasts says whether two values do, as symbols and in this run.
func (w *grower) broadcasts(x, y ir.Value) bool {
	if !w.compute() {
		return false
	}
	_, ok := ir.Broadcast(x.Shape(), y.Shape())
	_, now := ir.Broadcast(ir.Dims(w.shapeOf(x)...), ir.Dims(w.shapeOf(y)...))
	return ok && now
}

// like draws a value of x's dtype that broadcasts with it, or makes one.
func (w *grower) like(x ir.Value) ir.Value {
	y := w.pickIf(func(y ir.Value) bool {
		return y.DType() == x.DType() && w.broadcasts(x, y)
	})
	if !y.IsZero() && !w.chance(4) {
		return y
	}
	shape := slices.Clone(w.shapeOf(x))
	for i := range shape {
		if !static(x, i) || w.chance(3) {
			shape[i] = 1
		}
	}
	return w.weight(x.DType(), 1, shape[w.IntN(len(shape)+1):]...)
}

func (w *grower) binary() {
	x := w.pickFloat()
	for range 1 + w.IntN(4) { // chains, as fusion likes them
		y := w.like(x)
		var z ir.Value
		switch w.IntN(9) {
		case 0, 1:
			z = op.Add(x, y)
		case 2:
			z = op.Sub(x, y)
		case 3, 4:
			z = op.Mul(x, y)
		case 5:
			z = op.Max(x, y)
		case 6:
			z = op.Min(y, x)
		case 7:
			z = op.Div(x, op.Add(op.Abs(y), 0.5))
		default:
			z = op.Fma(x, y, x)
			if ok := z.Shape(); len(ok) == 0 && x.Rank() > 0 {
				return
			}
		}
		w.add(z)
		if w.err != nil || z.Poisoned() || !w.moderate(w.known(z).base) {
			return
		}
		x = z
	}
}

// bait is what algebra may simplify, or may not: neutral elements, inverses, doubled operations.
func (w *grower) bait() {
	x := w.pick()
	if x.DType() == ir.Bool || x.DType() == ir.C64 || ir.Code.Has(x.DType()) {
		return
	}
	if !isFloat(x) {
		w.add(pickOf(w, func() ir.Value { return op.Add(x, 0) }, func() ir.Value { return op.Mul(x, 1) }, func() ir.Value { return op.Mul(x, 0) },
			func() ir.Value { return op.Sub(x, x) }, func() ir.Value { return op.Div(x, 1) }, func() ir.Value { return op.Max(x, x) },
			func() ir.Value { return op.Neg(op.Neg(x)) }, func() ir.Value { return op.Add(op.Add(x, 3), 5) })())
		return
	}
	negZero := func() ir.Value {
		z := w.tensor(x.DType(), nil)
		ir.PutFloat(x.DType(), z.Bytes(), 0, math.Copysign(0, -1))
		return w.g.Constant(z)
	}
	y := pickOf(w,
		func() ir.Value { return op.Add(x, 0.0) }, func() ir.Value { return op.Add(0.0, x) }, func() ir.Value { return op.Add(x, negZero()) },
		func() ir.Value { return op.Sub(x, 0.0) }, func() ir.Value { return op.Sub(0.0, x) }, func() ir.Value { return op.Sub(x, negZero()) },
		func() ir.Value { return op.Mul(x, 1.0) }, func() ir.Value { return op.Mul(x, 0.0) }, func() ir.Value { return op.Mul(x, -1.0) },
		func() ir.Value { return op.Div(x, 1.0) }, func() ir.Value { return op.Div(x, 2.0) }, func() ir.Value { return op.Div(x, 3.0) },
		func() ir.Value { return op.Sub(x, x) }, func() ir.Value { return op.Neg(op.Neg(x)) }, func() ir.Value { return op.Abs(op.Abs(op.Neg(x))) },
		func() ir.Value { return op.Relu(op.Relu(x)) }, func() ir.Value { return op.Max(op.Max(x, 1.0), 2.0) },
		func() ir.Value { return op.Clamp(op.Clamp(x, -1, 1), -2.0, 0.5) }, func() ir.Value { return op.Mul(op.Mul(x, 2.0), 0.5) },
		func() ir.Value { return op.Add(op.Add(x, 1.0), 1.0) }, func() ir.Value { return op.Max(x, 0.0) }, func() ir.Value { return op.Min(op.Max(x, 0.0), 6.0) },
		func() ir.Value { return op.Mul(x, x) }, func() ir.Value { return op.Pow(op.Add(op.Abs(x), 0.5), 2.0) },
		func() ir.Value { return op.Cast(op.Cast(x, ir.F64), x.DType()) }, func() ir.Value { return op.Cast(x, x.DType()) },
		func() ir.Value { return op.Copy(op.Copy(x)) }, func() ir.Value { return op.StopGradient(x) })()
	w.add(y)
}

// choose compares, selects and combines conditions.
func (w *grower) choose() {
	x := w.pickFloat()
	y := w.like(x)
	if !w.compute() || !w.exact(x) || !w.exact(y) {
		c := w.pickIf(func(c ir.Value) bool {
			return c.DType() == ir.Bool && w.exact(c) && w.broadcasts(x, c)
		})
		if !c.IsZero() {
			w.add(op.Where(c, x, 0.25))
		}
		return
	}
	c := op.CompareOp(x, y, pickOf[op.CompareFn](w, "eq", "ne", "lt", "le", "gt", "ge"))
	if w.chance(3) {
		c = op.LogicalNot(c)
	}
	w.add(c)
	w.add(op.Where(c, x, y))
}

func (w *grower) cast() {
	x := w.pick()
	if x.DType() == ir.C64 || ir.Code.Has(x.DType()) {
		return
	}
	to := pickOf(w, w.float, w.float, ir.F32, ir.F16, ir.BF16, ir.F64, ir.I32, ir.I64, ir.U8, ir.I8)
	if !ir.Float.Has(to) && !w.exact(x) {
		return
	}
	y := op.Cast(x, to)
	w.add(y)
	if w.chance(2) && w.err == nil {
		w.add(op.Cast(y, x.DType()))
	}
}

func (w *grower) integers() {
	x := w.pickIf(func(v ir.Value) bool { return ir.Int.Has(v.DType()) })
	if x.IsZero() {
		return
	}
	y := w.like(x)
	w.add(pickOf(w, op.Add[ir.Value, ir.Value], op.Sub[ir.Value, ir.Value], op.Mul[ir.Value, ir.Value], op.Max[ir.Value, ir.Value], op.BitAnd[ir.Value, ir.Value],
		op.BitXor[ir.Value, ir.Value], op.Div[ir.Value, ir.Value], op.FloorMod[ir.Value, ir.Value])(x, y))
}

// twin computes something of the pool a second time, and reads both: equal subtrees.
func (w *grower) twin() {
	v := w.pick()
	n := v.Node()
	if n.Row.Has(ir.Leaf) || n.Row.Has(ir.Random) {
		return
	}
	c, err := w.g.Add(n.Row, "", n.Attrs, n.In...)
	if err != nil {
		w.err = err
		return
	}
	u := c.Out(v.Index())
	w.rough[u] = w.rough[v]
	w.add(u)
	if isFloat(v) {
		w.add(op.Sub(v, op.Mul(u, 0.5)))
	}
}
