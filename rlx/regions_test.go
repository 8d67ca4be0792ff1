package rlx_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// bodyDTypes are the dtypes that values inside a region may have.
var bodyDTypes = (ir.Real | ir.Set(ir.Bool)).List()

// legal are the functions of the scalar table that a dtype has, by the letter of the row: unary, binary, compare, backward of a unary,
// reduce.
var legal = sync.OnceValue(func() map[ir.DType]map[string][]string {
	all := map[ir.DType]map[string][]string{}
	for _, d := range bodyDTypes {
		all[d] = map[string][]string{}
		try := func(kind string, names []string, f func(x ir.Value, name string) ir.Value) {
			for _, name := range names {
				g := ir.NewGraph("try")
				if f(g.Input("x", d, ir.Dims(2, 2)), name); g.Err() == nil {
					all[d][kind] = append(all[d][kind], name)
				}
			}
		}
		nan := math.NaN()
		try("unary", op.UnaryNames(), func(x ir.Value, n string) ir.Value { return op.Activation(x, op.UnaryFn(n), nan, nan) })
		try("backward", op.UnaryNames(), func(x ir.Value, n string) ir.Value { return op.ActivationBackward(x, x, op.UnaryFn(n), nan, nan) })
		try("binary", op.BinaryNames(), func(x ir.Value, n string) ir.Value { return op.BinaryOp(x, x, op.BinaryFn(n)) })
		try("compare", op.CompareNames(), func(x ir.Value, n string) ir.Value { return op.CompareOp(x, x, op.CompareFn(n)) })
		try("reduce", []string{"sum", "mean", "prod", "max", "min", "l1", "l2", "sum_square", "log_sum", "logsumexp"},
			func(x ir.Value, n string) ir.Value { return op.Reduce(x, op.ReduceFn(n), []int{1}, false) })
		try("fma", []string{""}, func(x ir.Value, _ string) ir.Value { return op.Fma(x, x, x) })
		try("clamp", []string{""}, func(x ir.Value, _ string) ir.Value { return op.Clamp(x, 1, 3) })
	}
	return all
})

// regionCase is a random computation that a region may hold. All draws follow from its seed.
type regionCase struct {
	seed uint64
	*rand.Rand
	g     *ir.Graph
	feed  rlx.Feed
	first int // inputs of the cases before this one

	products []ir.DType // of the products that have a region on the device
}

func drawFrom[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

// elements draws values of a dtype, odd ones among them: NaN, infinities, zeros of both signs, subnormals, the ends of integers.
func (c *regionCase) elements(d ir.DType, shape []int64) *ir.Tensor {
	x, err := ir.Zeros(d, slices.Clone(shape)...)
	if err != nil {
		return ir.Scalar(float32(0)) // no case has such a shape; the feed's check would tell
	}
	few := c.IntN(3) == 0 // whole numbers, of which much is equal
	for i := range x.Len() {
		switch {
		case d == ir.Bool:
			x.Bytes()[i] = byte(c.IntN(2))
		case ir.Int.Has(d) && c.IntN(4) == 0:
			ir.PutInt(d, x.Bytes(), i, drawFrom(c.Rand, 0, -1, math.MinInt64, math.MaxInt64, int64(c.Uint64())))
		case ir.Int.Has(d):
			ir.PutInt(d, x.Bytes(), i, c.Int64N(40)-20)
		case c.IntN(6) == 0:
			ir.PutFloat(d, x.Bytes(), i, drawFrom(c.Rand, math.NaN(), math.Inf(1), math.Inf(-1), 0, math.Copysign(0, -1), 0x1p-149, -0x1p-1074, 1e4, -3e38))
		case few:
			ir.PutFloat(d, x.Bytes(), i, float64(c.IntN(9)-4)/2)
		default:
			ir.PutFloat(d, x.Bytes(), i, 2*c.NormFloat64())
		}
	}
	return x
}

func (c *regionCase) input(d ir.DType, shape ...int64) ir.Value {
	name := fmt.Sprintf("in%d_%d", c.seed, len(c.feed)-c.first)
	c.feed[name] = c.elements(d, shape)
	return c.g.Input(name, d, ir.Dims(shape...))
}

// lengths are on both sides of vector widths, and of the pieces in which regions run.
var lengths = []int64{1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 127, 128, 129, 255, 256, 257, 1023, 1025, 2047, 2048, 2049, 4097}

// shape draws one of up to 1<<13 elements, now and then one that several threads share.
func (c *regionCase) shape() []int64 {
	switch c.IntN(12) {
	case 0:
		return []int64{20000 + c.Int64N(70)}
	case 1:
		return []int64{2, 2}
	case 2:
		return []int64{3, 1367, 5}
	case 3:
		return nil
	case 4:
		return []int64{3, 0, 2}
	}
	n := drawFrom(c.Rand, lengths...)
	shape := []int64{n}
	for range c.IntN(4) {
		if d := drawFrom(c.Rand, lengths...); n*d <= 1<<13 {
			n *= d
			shape = slices.Insert(shape, c.IntN(len(shape)+1), d)
		}
	}
	return shape
}

// broadcast draws a shape that broadcasts to the given one: rows, columns, single elements, as [2,1] against [2,2].
func (c *regionCase) broadcast(shape []int64) []int64 {
	s := slices.Clone(shape)
	if c.IntN(2) == 0 {
		for k := range s {
			if c.IntN(2) == 0 {
				s[k] = 1
			}
		}
	}
	if c.IntN(3) == 0 {
		s = s[c.IntN(len(s)+1):]
	}
	return s
}

// chain is a random body: nodes that each read the one before, and operands, constants and earlier nodes beside it. The first operand has
// the whole shape. It draws the same whatever the shapes are. It returns all its nodes.
func chain(r *rand.Rand, g *ir.Graph, in []ir.Value) []ir.Value {
	pool, whole := slices.Clone(in), []ir.Value{in[0]}
	x, all := in[0], []ir.Value{}
	for range 2 + r.IntN(12) {
		y := drawFrom(r, pool...)
		if r.IntN(6) == 0 {
			y = g.Constant(ir.Scalar(drawFrom(r, 0, 1, -1, 0.5, 2, 3, math.Inf(1), math.NaN())))
		}
		x = link(r, x, y, drawFrom(r, whole...))
		pool, whole, all = append(pool, x), append(whole, x), append(all, x)
	}
	return all
}

// link is one node that reads x; y broadcasts to it, full has its shape.
func link(r *rand.Rand, x, y, full ir.Value) ir.Value {
	d, nan := x.DType(), math.NaN()
	fns := legal()[d]
	some := func(kind string) string { return fns[kind][r.IntN(len(fns[kind]))] }
	cast := func(v ir.Value) ir.Value {
		if v.DType() == d {
			return v
		}
		return op.Cast(v, d)
	}
	switch k := r.IntN(12); {
	case k < 3 && len(fns["unary"]) > 0:
		return op.Activation(x, op.UnaryFn(some("unary")), nan, nan)
	case k < 7 && len(fns["binary"]) > 0:
		if r.IntN(3) == 0 {
			return op.BinaryOp(cast(y), x, op.BinaryFn(some("binary")))
		}
		return op.BinaryOp(x, cast(y), op.BinaryFn(some("binary")))
	case k == 7 && len(fns["compare"]) > 0:
		c := op.CompareOp(x, cast(y), op.CompareFn(some("compare")))
		if r.IntN(2) == 0 {
			return c
		}
		return op.Where(c, x, cast(full))
	case k == 8 && len(fns["fma"]) > 0:
		return op.Fma(x, cast(y), cast(full))
	case k == 9 && len(fns["clamp"]) > 0:
		return op.Clamp(x, 1, 3)
	case k == 10 && len(fns["backward"]) > 0:
		if ir.Float.Has(d) && r.IntN(3) == 0 {
			return op.ReluBackward(x, cast(full))
		}
		return op.ActivationBackward(x, cast(full), op.UnaryFn(some("backward")), nan, nan)
	}
	to := bodyDTypes[r.IntN(len(bodyDTypes))]
	if to == d {
		to = ir.F32
		if d == ir.F32 {
			to = ir.F64
		}
	}
	return op.Cast(x, to)
}

// operands draws what a body over values of the given shape reads besides its first operand.
func (c *regionCase) operands(shape []int64) []ir.Value {
	var in []ir.Value
	for range c.IntN(5) {
		in = append(in, c.input(drawFrom(c.Rand, bodyDTypes...), c.broadcast(shape)...))
	}
	return in
}

// elementwise has the last node of a chain for its result, and some inner ones.
func (c *regionCase) elementwise() []ir.Value {
	shape := c.shape()
	in := append([]ir.Value{c.input(drawFrom(c.Rand, bodyDTypes...), shape...)}, c.operands(shape)...)
	all := chain(c.Rand, c.g, in)
	out := all[len(all)-1:]
	for range c.IntN(4) {
		if v := all[c.IntN(len(all))]; !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}

func (c *regionCase) reduce() []ir.Value {
	for {
		shape := c.shape()
		if len(shape) == 0 || slices.Contains(shape, 0) {
			continue
		}
		in := append([]ir.Value{c.input(drawFrom(c.Rand, bodyDTypes...), shape...)}, c.operands(shape)...)
		all := chain(c.Rand, c.g, in)
		x := all[len(all)-1]
		fns := legal()[x.DType()]["reduce"]
		if len(fns) == 0 {
			x = op.Cast(x, ir.F32)
			fns = legal()[ir.F32]["reduce"]
		}
		// The last axes, or any that follow each other.
		n := 1 + c.IntN(len(shape))
		first := len(shape) - n
		if c.IntN(2) == 0 {
			first = c.IntN(first + 1)
		}
		var axes []int
		for k := range n {
			axes = append(axes, first+n-1-k)
		}
		return []ir.Value{op.Reduce(x, op.ReduceFn(fns[c.IntN(len(fns))]), axes, c.IntN(2) == 0)}
	}
}

// shared is the reverse of a normalisation by rows: what its reductions and its result read is computed in each of them.
func (c *regionCase) shared() []ir.Value {
	d := drawFrom(c.Rand, ir.F32, ir.F32, ir.F32, ir.F64, ir.F16)
	b, s := 1+c.Int64N(3), drawFrom(c.Rand, lengths[2:20]...)
	n := drawFrom[int64](c.Rand, 7, 16, 32, 33, 48, 64, 80, 96, 128, 160, 192, 256, 1100, 2048)
	x, dy, scale := c.input(d, b, s, n), c.input(d, b, s, n), c.input(d, b, 1, n)
	mean := func(v ir.Value) ir.Value { return op.Reduce(v, "mean", []int{2}, true) }
	centred := op.Sub(x, mean(x))
	inverse := op.Rsqrt(op.Add(mean(op.Mul(centred, centred)), 1e-5))
	xhat, g := op.Mul(centred, inverse), op.Mul(dy, scale)
	dx := op.Mul(inverse, op.Sub(op.Sub(g, mean(g)), op.Mul(xhat, mean(op.Mul(g, xhat)))))
	return []ir.Value{dx, op.Reduce(op.Mul(dy, xhat), drawFrom[op.ReduceFn](c.Rand, "sum", "max", "l2", "prod"), []int{1}, true)}
}

func (c *regionCase) matMul() []ir.Value {
	d := drawFrom(c.Rand, c.products...)
	size := func() int64 { return drawFrom(c.Rand, lengths[:17]...) }
	m, k, n := size(), size(), size()
	if c.IntN(8) == 0 {
		m, k, n = 200, 70, 130
	}
	var lead []int64
	if c.IntN(3) == 0 {
		lead = []int64{2}
	}
	a, b := c.input(d, append(slices.Clone(lead), m, k)...), c.input(d, k, n)
	return []ir.Value{c.ended(op.MatMul(a, b), append(lead, m, n))}
}

// codes is a product of codes; size keeps the lengths of the product's test.
func (c *regionCase) codes() []ir.Value {
	size := func() int64 { return drawFrom(c.Rand, lengths[:17]...) }
	m, k, n := size(), size(), size()
	if c.IntN(4) == 0 {
		m, k, n = 70, 130, 650
	}
	shape := []int64{m, n}
	if c.IntN(3) == 0 {
		shape = []int64{2, m, n}
	}
	a := op.QMatMulAttrs{Multiplier: 1, Dtype: ir.I32}
	operand := func(zero *int64, shape ...int64) ir.Value {
		d := drawFrom(c.Rand, ir.I8, ir.U8)
		if lo, hi := op.IntRange(d); c.IntN(2) == 0 {
			*zero = lo + c.Int64N(hi-lo+1)
		}
		return c.input(d, shape...)
	}
	x := operand(&a.XZeroPoint, append(slices.Clone(shape[:len(shape)-1]), k)...)
	w := operand(&a.WZeroPoint, k, n)
	sums := op.QMatMul(x, w, ir.Value{}, ir.Value{}, a)
	return []ir.Value{c.ended(sums, shape)}
}

// ended is a product with any body behind it, or with a scaling.
func (c *regionCase) ended(product ir.Value, shape []int64) ir.Value {
	if c.IntN(2) == 0 {
		return c.scaled(product, shape)
	}
	all := chain(c.Rand, c.g, append([]ir.Value{product}, c.operands(shape)...))
	return all[len(all)-1]
}

// scaled is what mostly follows a product, and what is nearly that: factors and summands for each row, column or element, or for all.
func (c *regionCase) scaled(product ir.Value, shape []int64) ir.Value {
	x := product
	if !ir.Float.Has(x.DType()) {
		x = op.Cast(x, drawFrom(c.Rand, ir.F32, ir.F32, ir.F32, ir.F32, ir.F64, ir.F16))
	}
	rows := append(slices.Clone(shape[:len(shape)-1]), 1)
	for range 1 + c.IntN(5) {
		y := c.g.Constant(c.elements(x.DType(), nil))
		if k := c.IntN(20); k == 0 && x.DType() == product.DType() {
			y = product
		} else if k %= 6; k > 0 {
			y = c.input(x.DType(), [][]int64{shape, c.broadcast(shape), shape[len(shape)-1:], rows, rows}[k-1]...)
		}
		if c.IntN(3) == 0 {
			x, y = y, x
		}
		x = op.BinaryOp(x, y, drawFrom[op.BinaryFn](c.Rand, "mul", "mul", "mul", "add", "add", "add", "sub"))
	}
	return x
}

// packed is a product with a packed weight, a constant or not: mostly int8 codes, whose products run in blocks.
func (c *regionCase) packed() []ir.Value {
	size := func() int64 { return drawFrom(c.Rand, lengths[:17]...) }
	m, k, n := size(), size(), size()
	if c.IntN(4) == 0 {
		m, k, n = 70, 400, 650
	}
	shape := []int64{m, n}
	if c.IntN(3) == 0 {
		shape = []int64{2, m, n}
	}
	held := func(d ir.DType, shape ...int64) ir.Value {
		if c.IntN(3) == 0 {
			return c.input(d, shape...)
		}
		return c.g.Constant(c.elements(d, shape))
	}
	d, a := ir.F32, op.DequantMatMulAttrs{Scheme: "int8_block", BlockSize: drawFrom(c.Rand, 1, 16, 130, k)}
	var w, scale, zero ir.Value
	switch c.IntN(6) {
	case 0:
		k = (k + 31) / 32 * 32
		d, a, w = drawFrom(c.Rand, ir.F32, ir.F16, ir.BF16), op.DequantMatMulAttrs{Scheme: "q4_0"}, held(ir.U8, n, k/32*18)
	case 1:
		d, a, w, scale = drawFrom(c.Rand, ir.F32, ir.F16, ir.BF16), op.DequantMatMulAttrs{Scheme: "fp8_e4m3"}, held(ir.F8E4M3, k, n), held(ir.F32, n)
	default:
		side := func() ir.Value {
			return held(drawFrom(c.Rand, ir.F32, ir.F32, ir.F32, ir.F16), (k+a.BlockSize-1)/a.BlockSize, n)
		}
		w, scale = held(drawFrom(c.Rand, ir.I8, ir.U8), k, n), side()
		if c.IntN(2) == 0 {
			a.Scheme, zero = "int8_block_asym", side()
		}
	}
	x := c.input(d, append(slices.Clone(shape[:len(shape)-1]), k)...)
	return []ir.Value{c.ended(op.DequantMatMul(x, w, scale, zero, a), shape)}
}

// batch is a body over slices, which no pass makes: the region stands in the graph. written: as its body over each slice, joined.
func (c *regionCase) batch(written bool) []ir.Value {
	slice := []int64{1 + c.Int64N(3), drawFrom(c.Rand, lengths[:20]...), 1 + c.Int64N(3)}
	d := drawFrom(c.Rand, bodyDTypes...)
	n := 1 + c.IntN(3)
	var in []ir.Value
	for range n {
		in = append(in, c.input(d, slice...))
	}
	shared, draws := c.operands(slice), c.Uint64()
	body := func(g *ir.Graph, in []ir.Value) []ir.Value {
		all := chain(rand.New(rand.NewPCG(draws, 1)), g, in)
		return slices.Compact([]ir.Value{all[len(all)-1], all[len(all)/2]})
	}
	if !written {
		return op.BatchElementwiseRegion(c.g, op.BatchElementwiseRegionAttrs{Body: ir.SubGraph("body", 1+len(shared), body), NumBatch: int64(n)}, append(in, shared...)...)
	}
	parts := make([][]ir.Value, 2)
	for _, x := range in {
		for k, y := range body(c.g, append([]ir.Value{x}, shared...)) {
			parts[k] = append(parts[k], y)
		}
	}
	out := []ir.Value{op.Concat(0, parts[0]...)}
	if len(parts[1]) > 0 {
		out = append(out, op.Concat(0, parts[1]...))
	}
	return out
}

// doubled is a region that reads its first operand as if it were doubled, which no pass makes.
func (c *regionCase) doubled(written bool) []ir.Value {
	shape := []int64{1 + c.Int64N(2), 1 + c.Int64N(3), drawFrom(c.Rand, lengths[:8]...), drawFrom(c.Rand, lengths[:14]...)}
	whole := []int64{shape[0], shape[1], 2 * shape[2], 2 * shape[3]}
	x, others, draws := c.input(drawFrom(c.Rand, bodyDTypes...), shape...), c.operands(whole), c.Uint64()
	body := func(g *ir.Graph, in []ir.Value) []ir.Value {
		all := chain(rand.New(rand.NewPCG(draws, 1)), g, in)
		return all[len(all)-1:]
	}
	if written {
		return body(c.g, append([]ir.Value{op.ResizeNearest2x(x)}, others...))
	}
	a := op.ElementwiseRegionAttrs{Body: ir.SubGraph("body", 1+len(others), body), Prologue: "resize_nearest_2x"}
	return op.ElementwiseRegion(c.g, a, append([]ir.Value{x}, others...)...)
}

// transform is a chain of steps with a doubling before the last one.
func (c *regionCase) transform() []ir.Value {
	d := drawFrom(c.Rand, bodyDTypes...)
	x := c.input(d, 1+c.Int64N(2), 1+c.Int64N(4), drawFrom(c.Rand, lengths[:8]...), drawFrom(c.Rand, lengths[:10]...))
	steps, doublings := 2+c.IntN(5), 0
	for k := range steps {
		size, _ := ir.StaticShape(x.Shape())
		switch axis := c.IntN(4); {
		case doublings == 0 && k == steps-2 || doublings < 2 && c.IntN(4) == 0 && k < steps-1:
			x = op.ResizeNearest2x(x)
			doublings++
		case c.IntN(3) == 0:
			x = op.Reverse(x, axis)
		case c.IntN(2) == 0:
			x = op.Transpose(x, c.Perm(4)...)
		default:
			start := c.Int64N(size[axis])
			x = op.Narrow(x, axis, start, 1+c.Int64N(size[axis]-start))
		}
	}
	return []ir.Value{x}
}

// regionKinds are the computations, and the region that each becomes.
var regionKinds = []struct {
	name, region string
	build        func(c *regionCase, written bool) []ir.Value
}{
	{"elementwise", "ElementwiseRegion", func(c *regionCase, _ bool) []ir.Value { return c.elementwise() }},
	{"reduce", "ReduceRegion", func(c *regionCase, _ bool) []ir.Value { return c.reduce() }},
	{"shared", "ElementwiseRegion", func(c *regionCase, _ bool) []ir.Value { return c.shared() }},
	{"product", "MatMulRegion", func(c *regionCase, _ bool) []ir.Value { return c.matMul() }},
	{"codes", "QMatMulRegion", func(c *regionCase, _ bool) []ir.Value { return c.codes() }},
	{"packed", "DequantMatMulRegion", func(c *regionCase, _ bool) []ir.Value { return c.packed() }},
	{"transform", "TransformRegion", func(c *regionCase, _ bool) []ir.Value { return c.transform() }},
	{"batch", "BatchElementwiseRegion", (*regionCase).batch},
	{"doubled", "ElementwiseRegion", (*regionCase).doubled},
}

// productDTypes are the dtypes of MatMulRegion on the cpu backend; other products have a region behind them.
var productDTypes = sync.OnceValue(func() (list []ir.DType) {
	b, _, err := rlx.Lookup("cpu")
	if err != nil {
		return nil
	}
	for _, c := range b.Caps() {
		if c.Op == op.MatMulRegionRow().Num() {
			list = append(list, ir.DTypeSet(c.DTypes).List()...)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
})

// regionRun is one compilation of the cases of some seeds.
type regionRun struct {
	out    rlx.Feed
	formed map[string]bool // outputs that a region makes
}

// runRegions computes the cases of the seeds: node by node without passes, or with the passes that make regions.
func runRegions(t *testing.T, kind int, seeds []uint64, threads int, written bool) (*regionRun, *rlx.Graph, error) {
	k := regionKinds[kind]
	g, feed := ir.NewGraph(k.name), rlx.Feed{}
	for _, seed := range seeds {
		c := &regionCase{seed: seed, Rand: rand.New(rand.NewPCG(seed, uint64(kind))), g: g, feed: feed, first: len(feed), products: productDTypes()}
		for i, v := range k.build(c, written) {
			g.Output(fmt.Sprintf("%d_%d", seed, i), v)
		}
		if err := g.Err(); err != nil {
			return nil, g, fmt.Errorf("seed %d: %w", seed, err)
		}
	}
	passes := []string{"regions", "epilogue", "transform"}
	if written {
		passes = nil
	}
	var last *ir.Graph
	trace := rlx.TracePasses(func(s rlx.PassStep) { last = s.After })
	p, err := rlx.Compile(t.Context(), g, rlx.On("cpu"), rlx.Threads(threads), rlx.OnlyPasses(passes...), rlx.Verify(), trace)
	if err != nil {
		return nil, g, err
	}
	defer p.Close()
	var profile rlx.Profile
	r := &regionRun{formed: map[string]bool{}}
	if r.out, err = p.Run(t.Context(), feed, rlx.WithProfile(&profile)); err != nil {
		return nil, g, err
	}
	if threads > 1 {
		err = errors.Join(err, runAtOnce(t, p, feed, r.out))
	}
	native := map[string]bool{} // the region ran in a kernel of its own
	for _, s := range profile.Steps {
		native[s.Op] = native[s.Op] || s.Place == "native" && s.Native > 0
	}
	for _, o := range last.Outputs {
		row := o.Value.Node().Row.Name
		r.formed[o.Name] = row == k.region && native[row]
	}
	return r, g, err
}

// runAtOnce runs a program from three goroutines, which share what the program keeps of its regions.
func runAtOnce(t *testing.T, p *rlx.Program, feed, want rlx.Feed) error {
	errs := make([]error, 3)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			out, err := p.Run(t.Context(), feed)
			for name := range out {
				err = errors.Join(err, sameElements(out[name], want[name]))
			}
			errs[i] = err
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// checkRegions compares the cases of seeds as regions, on one thread and on two, with the same node by node.
func checkRegions(t *testing.T, kind int, seeds []uint64) error {
	want, g, err := runRegions(t, kind, seeds, 1, true)
	if err != nil {
		return fmt.Errorf("%w\n%s", err, g)
	}
	for _, threads := range []int{1, 2} {
		got, g, err := runRegions(t, kind, seeds, threads, false)
		if err != nil {
			return fmt.Errorf("%d threads: %w\n%s", threads, err, g)
		}
		for _, seed := range seeds {
			formed := false
			for i := 0; want.out[fmt.Sprintf("%d_%d", seed, i)] != nil; i++ {
				name := fmt.Sprintf("%d_%d", seed, i)
				formed = formed || got.formed[name]
				if err := sameElements(got.out[name], want.out[name]); err != nil {
					return fmt.Errorf("%d threads: output %s: %w\n%s", threads, name, err, g)
				}
			}
			if !formed {
				return fmt.Errorf("seed %d: no %s\n%s", seed, regionKinds[kind].region, g)
			}
		}
	}
	return nil
}

// sameElements says where two tensors have other bits; NaN equals NaN.
func sameElements(got, want *ir.Tensor) error {
	if got == nil || !got.Type().Equal(want.Type()) {
		return fmt.Errorf("got %v, expected %s", got, want.Type())
	}
	size := want.DType().Size()
	for i := range want.Len() {
		a, b := got.Bytes()[i*size:(i+1)*size], want.Bytes()[i*size:(i+1)*size]
		if !bytes.Equal(a, b) && !(ir.Float.Has(want.DType()) && math.IsNaN(got.Float(i)) && math.IsNaN(want.Float(i))) {
			return fmt.Errorf("%s: element %d: got %v (% x), expected %v (% x)", want.Type(), i, got.At(i), a, want.At(i), b)
		}
	}
	return nil
}

var (
	regionSeed  = flag.Uint64("region-seed", 1, "first seed of TestRegionsMeanTheirBodies")
	regionCases = flag.Int("region-cases", 0, "cases of each kind of region and each instruction set; 0: 20 in a short run, else 40")
)

// Random bodies give, as regions of every kind, the bits that their nodes give one by one: on one thread and on two, on every instruction set.
func TestRegionsMeanTheirBodies(t *testing.T) {
	if os.Getenv("RLX_TEST_REGIONS") != "" {
		regionsMeanTheirBodies(t)
		return
	}
	if !slices.Contains(backends(), "cpu") {
		t.Skip("cpu: not compiled in (CGO_ENABLED=0)")
	}
	if *regionCases == 0 {
		*regionCases = 40
		if testing.Short() {
			*regionCases = 20
		}
	}
	t.Logf("%d cases of each kind from seed %d", *regionCases, *regionSeed)
	onEveryISA(t, "RLX_TEST_REGIONS", func(*testing.T, []byte) {}, fmt.Sprint("-region-seed=", *regionSeed), fmt.Sprint("-region-cases=", *regionCases))
}

func regionsMeanTheirBodies(t *testing.T) {
	const together = 20 // cases of one graph
	for kind, k := range regionKinds {
		for done := 0; done < *regionCases; done += together {
			var seeds []uint64
			for i := range min(together, *regionCases-done) {
				seeds = append(seeds, *regionSeed+uint64(done+i))
			}
			if checkRegions(t, kind, seeds) == nil {
				continue
			}
			for _, seed := range seeds {
				if err := checkRegions(t, kind, []uint64{seed}); err != nil {
					t.Errorf("%s, -region-seed %d: %v", k.name, seed, err)
					break
				}
			}
		}
	}
}

// The greatest magnitude of rows of any length, with what quantisation never has: zeros, infinities, NaN.
func TestGreatestMagnitude(t *testing.T) {
	if os.Getenv("RLX_TEST_MAGNITUDE") == "" {
		if !slices.Contains(backends(), "cpu") {
			t.Skip("cpu: not compiled in (CGO_ENABLED=0)")
		}
		onEveryISA(t, "RLX_TEST_MAGNITUDE", func(*testing.T, []byte) {})
		return
	}
	r := rand.New(rand.NewPCG(3, 1))
	g, feed, want := rlx.NewGraph(""), rlx.Feed{}, map[string][]float64{}
	for n := range 140 {
		const rows = 5
		name := fmt.Sprint("x", n)
		x := normals(r, rows*(n+1))
		x[r.IntN(len(x))] = drawFrom(r, 0, float32(math.Inf(-1)), float32(math.NaN()), -1e-42)
		for i := range x[:n+1] {
			x[i] = 0 // of the first row all
		}
		feed[name] = rlx.New(x, rows, n+1)
		for i := range rows {
			top := 0.0
			for _, v := range x[i*(n+1) : (i+1)*(n+1)] {
				top = max(top, math.Abs(float64(v))) // NaN wins
			}
			want[name] = append(want[name], top)
		}
		g.Output(name, op.Reduce(op.Abs(g.Input(name, rlx.F32, rlx.Shape(rows, n+1))), "max", []int{1}, false))
	}
	out, err := compileGraph(t, g, rlx.On("cpu")).Run(t.Context(), feed)
	if err != nil {
		t.Fatal(err)
	}
	for name, rows := range want {
		for i, w := range rows {
			if v := out[name].Float(i); v != w && (v == v || w == w) {
				t.Errorf("%s, row %d: got %g, expected %g", name, i, v, w)
			}
		}
	}
}
