package conform

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// bug is a small graph that is known to go wrong in tensor systems, with its right values: worked out by hand, or stored results of ONNX
// Runtime and NumPy. Each runs with its operands bound and with them as constants, which folds it.
type bug struct {
	name  string
	in    []*ir.Tensor
	build func(in []ir.Value) []ir.Value
	want  []*ir.Tensor
	tol   float64  // relative and absolute; 0: equal bits, NaN equals NaN
	err   []string // words of the error that must come instead
}

var (
	nan  = float32(math.NaN())
	inf  = float32(math.Inf(1))
	neg0 = float32(math.Copysign(0, -1))
)

func f32s(v ...float32) *ir.Tensor { return ir.New(v, len(v)) }
func i64s(v ...int64) *ir.Tensor   { return ir.New(v, len(v)) }
func i32s(v ...int32) *ir.Tensor   { return ir.New(v, len(v)) }

func shapedF32(shape []int, v ...float32) *ir.Tensor { return ir.New(v, shape...) }

// filled is an f32 tensor of one value.
func filled(v float32, shape ...int64) *ir.Tensor {
	return fill(ir.F32, shape, func(int) float64 { return float64(v) })
}

func one(f func(x ir.Value) ir.Value) func([]ir.Value) []ir.Value {
	return func(in []ir.Value) []ir.Value { return []ir.Value{f(in[0])} }
}

func two(f func(a, b ir.Value) ir.Value) func([]ir.Value) []ir.Value {
	return func(in []ir.Value) []ir.Value { return []ir.Value{f(in[0], in[1])} }
}

func runBugs(t *testing.T, bugs []bug) {
	for _, b := range backends() {
		t.Run(b, func(t *testing.T) {
			defer Hold(t.Context(), rlx.On(b))()
			for _, c := range bugs {
				for _, constant := range []bool{false, true} {
					if err := c.run(t, constant, rlx.On(b)); err != nil {
						t.Errorf("%s (constant operands: %v): %v", c.name, constant, err)
					}
				}
			}
		})
	}
}

func (c *bug) run(t *testing.T, constant bool, opts ...rlx.Option) error {
	out, err := c.compute(t, constant, opts...)
	if len(c.err) > 0 {
		if err == nil {
			return fmt.Errorf("no error, expected one with %v", c.err)
		}
		for _, w := range c.err {
			if !strings.Contains(err.Error(), w) {
				return fmt.Errorf("the error lacks %q: %w", w, err)
			}
		}
		return nil
	}
	if err != nil {
		return err
	}
	for i, w := range c.want {
		got := out[outputName(i)]
		if c.tol > 0 {
			err = Compare(got, w, c.tol, c.tol)
		} else {
			err = measure{exact: true}.compare(got, w)
		}
		if err != nil {
			return fmt.Errorf("result %d: %w", i, err)
		}
	}
	return nil
}

func (c *bug) compute(t *testing.T, constant bool, opts ...rlx.Option) (rlx.Feed, error) {
	g, feed := ir.NewGraph(c.name), rlx.Feed{}
	in := make([]ir.Value, len(c.in))
	for i, x := range c.in {
		if err := x.Err(); err != nil {
			return nil, err
		}
		if constant {
			in[i] = g.Constant(x)
			continue
		}
		name := fmt.Sprintf("in%d", i)
		in[i], feed[name] = g.Input(name, x.DType(), x.Type().Shape), x
	}
	for i, v := range c.build(in) {
		g.Output(outputName(i), v)
	}
	if err := g.Err(); err != nil {
		return nil, err
	}
	p, err := rlx.Compile(t.Context(), g, opts...)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	return p.Run(t.Context(), feed)
}

// Softmax rows of infinities: plain Softmax keeps IEEE NaN, in its own row only, and does not overflow.
func TestSoftmaxOfInfinities(t *testing.T) {
	softmax := one(func(x ir.Value) ir.Value { return op.Softmax(x, -1) })
	runBugs(t, []bug{
		{"rows", []*ir.Tensor{shapedF32([]int{4, 3}, -inf, -inf, -inf, 0, 0, -inf, 1000, 1000, -1000, inf, 0, 0)}, softmax,
			[]*ir.Tensor{shapedF32([]int{4, 3}, nan, nan, nan, 0.5, 0.5, 0, 0.5, 0.5, 0, nan, nan, nan)}, 1e-6, nil},
		{"log", []*ir.Tensor{f32s(1e4, 0, -1e4)}, one(func(x ir.Value) ir.Value { return op.LogSoftmax(x, -1) }), []*ir.Tensor{f32s(0, -10000, -20000)}, 1e-6, nil},
		{"no rows", []*ir.Tensor{filled(0, 2, 0)}, softmax, []*ir.Tensor{filled(0, 2, 0)}, 0, nil},
	})
}

// Halves round to even at every length, -0.5 to negative zero, folded or not, alone or after another op.
func TestRoundHalfToEven(t *testing.T) {
	x := []float32{-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.49999997, 8388609}
	y := []float32{-2, -2, neg0, 0, 2, 2, 0, 8388609}
	var bugs []bug
	for _, n := range []int{1, 7, 8, 9, 64} {
		in, want := make([]float32, n), make([]float32, n)
		for i := range in {
			in[i], want[i] = x[(i+2)%8], y[(i+2)%8]
		}
		bugs = append(bugs, bug{fmt.Sprint("round ", n), []*ir.Tensor{f32s(in...)}, one(op.Round), []*ir.Tensor{f32s(want...)}, 0, nil},
			bug{fmt.Sprint("in a chain ", n), []*ir.Tensor{f32s(in...)}, one(func(x ir.Value) ir.Value { return op.Neg(op.Round(op.Neg(x))) }), []*ir.Tensor{f32s(want...)}, 0, nil})
	}
	runBugs(t, bugs)
}

// Integer quotients and remainders belong together: q*b + r = a, for every pair of int8 and the divisors 0 and -1.
func TestIntegerDivision(t *testing.T) {
	a, b := ir.New([]int8{-7, 7, -7, 7, -7, 7, -7, 7}, 8), ir.New([]int8{2, -2, -2, 2, 3, -3, -3, 3}, 8)
	ints := func(v ...int8) []*ir.Tensor { return []*ir.Tensor{ir.New(v, len(v))} }
	bugs := []bug{
		{"div", []*ir.Tensor{a, b}, two(op.Div[ir.Value, ir.Value]), ints(-3, -3, 3, 3, -2, -2, 2, 2), 0, nil},
		{"floor_div", []*ir.Tensor{a, b}, two(op.FloorDiv[ir.Value, ir.Value]), ints(-4, -4, 3, 3, -3, -3, 2, 2), 0, nil},
		{"floor_mod", []*ir.Tensor{a, b}, two(op.FloorMod[ir.Value, ir.Value]), ints(1, -1, -1, 1, 2, -2, -1, 1), 0, nil},
		{"mod", []*ir.Tensor{a, b}, two(op.Mod[ir.Value, ir.Value]), ints(-1, 1, -1, 1, -1, 1, -1, 1), 0, nil},
	}
	var x, y, q, r, fq, fr []int8
	for i := range 1 << 16 {
		n, d := int8(i>>8), int8(i)
		x, y = append(x, n), append(y, d)
		if d == 0 { // no trap: the quotient is 0
			q, r, fq, fr = append(q, 0), append(r, n), append(fq, 0), append(fr, n)
			continue
		}
		wide, rest := int(n)/int(d), int(n)%int(d)
		q, r = append(q, int8(wide)), append(r, int8(rest)) // -128 / -1 wraps
		if rest != 0 && (rest < 0) != (d < 0) {
			wide, rest = wide-1, rest+int(d)
		}
		fq, fr = append(fq, int8(wide)), append(fr, int8(rest))
	}
	in := []*ir.Tensor{ir.New(x, len(x)), ir.New(y, len(y))}
	bugs = append(bugs, bug{"all pairs", in, func(in []ir.Value) []ir.Value {
		return []ir.Value{op.Div(in[0], in[1]), op.Mod(in[0], in[1]), op.FloorDiv(in[0], in[1]), op.FloorMod(in[0], in[1])}
	}, []*ir.Tensor{ir.New(q, len(q)), ir.New(r, len(r)), ir.New(fq, len(fq)), ir.New(fr, len(fr))}, 0, nil})
	for _, d := range []int64{0, -1} {
		bugs = append(bugs, bug{fmt.Sprint("int64 by ", d), []*ir.Tensor{i64s(math.MinInt64, 5), i64s(d, d)}, two(op.Div[ir.Value, ir.Value]),
			[]*ir.Tensor{i64s([]int64{0, math.MinInt64}[-d], []int64{0, -5}[-d])}, 0, nil})
	}
	runBugs(t, bugs)
}

// Powers of negative bases and of zeros are those of IEEE 754, not exp(y log x).
func TestPow(t *testing.T) {
	runBugs(t, []bug{{"pow", []*ir.Tensor{f32s(-2, -2, -2, 0, 0, neg0, -8), f32s(2, 3, 0.5, 0, -1, -1, 1.0/3)}, two(op.Pow[ir.Value, ir.Value]),
		[]*ir.Tensor{f32s(4, -8, nan, 1, inf, -inf, nan)}, 0, nil}})
}

// A NaN stays at its place in max, min, relu and clip, whatever the length and the order of operands, and wins a reduction.
func TestNaNPropagates(t *testing.T) {
	var bugs []bug
	for _, n := range []int{1, 3, 7, 8, 9, 15, 16, 17, 31, 33, 64, 1024} {
		for _, at := range []int{0, n / 2, n - 1} {
			x, clipped := make([]float32, n), make([]float32, n)
			for i := range x {
				x[i], clipped[i] = 2, 1
			}
			x[at], clipped[at] = nan, nan
			bugs = append(bugs, bug{fmt.Sprintf("NaN at %d of %d", at, n), []*ir.Tensor{f32s(x...)}, one2(func(x ir.Value) []ir.Value {
				return []ir.Value{op.Relu(x), op.Max(x, 0), op.Max(0, x), op.Clamp(x, 0, 1), op.Min(x, 1), op.ReduceMax(x), op.ReduceMin(x)}
			}), []*ir.Tensor{f32s(x...), f32s(x...), f32s(x...), f32s(clipped...), f32s(clipped...), ir.Scalar(nan), ir.Scalar(nan)}, 0, nil})
		}
	}
	bugs = append(bugs,
		bug{"pairwise", []*ir.Tensor{f32s(nan, 1, nan, neg0), f32s(1, nan, nan, 0)}, two(op.Max[ir.Value, ir.Value]), []*ir.Tensor{f32s(nan, nan, nan, 0)}, 1e-30, nil},
		bug{"reduction", []*ir.Tensor{f32s(1, nan, 2)}, one(func(x ir.Value) ir.Value { return op.ReduceMax(x) }), []*ir.Tensor{ir.Scalar(nan)}, 0, nil},
		bug{"gradient of relu", []*ir.Tensor{f32s(nan, -1, 0, 2), f32s(5, 6, 7, 8)}, two(op.ReluBackward), []*ir.Tensor{f32s(5, 0, 0, 8)}, 0, nil})
	runBugs(t, bugs)
}

func one2(f func(x ir.Value) []ir.Value) func([]ir.Value) []ir.Value {
	return func(in []ir.Value) []ir.Value { return f(in[0]) }
}

// -0 is below 0 for max, min and Clamp.
func TestZerosInOrder(t *testing.T) {
	zeros := func() []*ir.Tensor { return []*ir.Tensor{f32s(neg0, 0, -1, 1)} }
	f64s := func(v ...float64) []*ir.Tensor { return []*ir.Tensor{ir.New(v, len(v))} }
	runBugs(t, []bug{
		{name: "clamp of f64 from 0", in: f64s(float64(neg0), 0, -1, 1), build: one(func(x ir.Value) ir.Value { return op.Clamp(x, 0, 6) }), want: f64s(0, 0, 0, 1)},
		{name: "clamp from 0", in: zeros(), build: one(func(x ir.Value) ir.Value { return op.Clamp(x, 0, 6) }), want: []*ir.Tensor{f32s(0, 0, 0, 1)}},
		{name: "max with 0", in: zeros(), build: one(func(x ir.Value) ir.Value { return op.Max(x, x.Graph().Constant(ir.Scalar(float32(0)))) }), want: []*ir.Tensor{f32s(0, 0, 0, 1)}},
		{name: "min with -0", in: zeros(), build: one(func(x ir.Value) ir.Value { return op.Min(x, x.Graph().Constant(ir.Scalar(neg0))) }), want: []*ir.Tensor{f32s(neg0, neg0, -1, neg0)}},
	})
}

// An index above 2^24 does not pass through f32.
func TestIndexAbove24Bits(t *testing.T) {
	const rows = 1<<24 + 2
	table := zeros(ir.I8, dims(rows, 1))
	table.Bytes()[rows-1] = 1
	c := bug{"last row", []*ir.Tensor{table, i64s(rows - 1)}, func(in []ir.Value) []ir.Value {
		return []ir.Value{op.Gather(in[0], in[1], 0), op.ArgMax(in[0], 0)}
	}, []*ir.Tensor{ir.New([]int8{1}, 1, 1), i64s(rows - 1)}, 0, nil}
	for _, b := range backends() {
		if b == "cpu" || b == "ref" && !testing.Short() {
			if err := c.run(t, false, rlx.On(b)); err != nil {
				t.Errorf("%s: %v", b, err)
			}
		}
	}
}

func TestGatherBounds(t *testing.T) {
	x := shapedF32([]int{3, 2}, 1, 2, 3, 4, 5, 6)
	gather := two(func(x, i ir.Value) ir.Value { return op.Gather(x, i, 0) })
	runBugs(t, []bug{
		{"negative", []*ir.Tensor{x, i64s(-1, 0, -3)}, gather, []*ir.Tensor{shapedF32([]int{3, 2}, 5, 6, 1, 2, 1, 2)}, 0, nil},
		{"past the end", []*ir.Tensor{x, i64s(3)}, gather, nil, 0, []string{"Gather", "C7", "3"}},
		{"before the start", []*ir.Tensor{x, i64s(-4)}, gather, nil, 0, []string{"Gather", "C7", "-4"}},
		{"none", []*ir.Tensor{x, i64s()}, gather, []*ir.Tensor{filled(0, 0, 2)}, 0, nil},
	})
}

// Tensors without elements: identities of reductions, zeros of a product over nothing, empty results.
func TestZeroSizes(t *testing.T) {
	e := filled(0, 0, 4)
	reduce := func(fn op.ReduceFn) func([]ir.Value) []ir.Value {
		return one(func(x ir.Value) ir.Value { return op.Reduce(x, fn, []int{0}, false) })
	}
	runBugs(t, []bug{
		{"sum", []*ir.Tensor{e}, reduce("sum"), []*ir.Tensor{filled(0, 4)}, 0, nil},
		{"prod", []*ir.Tensor{e}, reduce("prod"), []*ir.Tensor{filled(1, 4)}, 0, nil},
		{"mean", []*ir.Tensor{e}, reduce("mean"), []*ir.Tensor{filled(nan, 4)}, 0, nil},
		{"max", []*ir.Tensor{e}, reduce("max"), nil, 0, []string{"Reduce", "C3"}},
		{"matmul", []*ir.Tensor{filled(0, 2, 0), filled(0, 0, 3)}, two(op.MatMul), []*ir.Tensor{filled(0, 2, 3)}, 0, nil},
		{"matmul batch", []*ir.Tensor{filled(0, 3, 0, 0), filled(0, 0, 0)}, two(op.MatMul), []*ir.Tensor{filled(0, 3, 0, 0)}, 0, nil},
		{"gemm", []*ir.Tensor{filled(0, 2, 0), filled(0, 0, 2), f32s(1, 2)}, func(in []ir.Value) []ir.Value { return []ir.Value{op.Add(op.MatMul(in[0], in[1]), in[2])} },
			[]*ir.Tensor{shapedF32([]int{2, 2}, 1, 2, 1, 2)}, 0, nil},
		{"concat", []*ir.Tensor{filled(0, 0, 2), shapedF32([]int{1, 2}, 1, 2)}, two(func(a, b ir.Value) ir.Value { return op.Concat(0, a, b) }), []*ir.Tensor{shapedF32([]int{1, 2}, 1, 2)}, 0, nil},
		{"conv batch 0", []*ir.Tensor{filled(0, 0, 1, 5), filled(1, 2, 1, 3)}, two(func(x, w ir.Value) ir.Value { return op.Conv(x, w, op.ConvAttrs{}) }), []*ir.Tensor{filled(0, 0, 2, 3)}, 0, nil},
		{"slice of a zero dim backwards", []*ir.Tensor{filled(0, 0, 3)}, one(func(x ir.Value) ir.Value {
			return op.Slice(x, ir.Dims(-1), ir.Dims(math.MinInt64), []int{0}, []int64{-1})
		}), []*ir.Tensor{filled(0, 0, 3)}, 0, nil},
	})
}

// Products of transposed, expanded and permuted operands equal those of their copies.
func TestStridedProducts(t *testing.T) {
	a := shapedF32([]int{2, 3}, 0.7, -1.3, 2.1, -0.4, 1.9, -3.2)
	x := fill(ir.F32, dims(2, 3, 2, 2), func(i int) float64 { return float64(i) })
	var swapped []float32 // axes 1 and 2 swapped, by hand: [n][i][c][j] = [n][c][i][j]
	for n := range 2 {
		for i := range 2 {
			for c := range 3 {
				for j := range 2 {
					swapped = append(swapped, float32(n*12+c*4+i*2+j))
				}
			}
		}
	}
	runBugs(t, []bug{
		{"transposed", []*ir.Tensor{a, filled(1, 2, 2)}, two(func(a, b ir.Value) ir.Value { return op.MatMul(op.Transpose(a), b) }),
			[]*ir.Tensor{shapedF32([]int{3, 2}, 0.3, 0.3, 0.6, 0.6, -1.1, -1.1)}, 1e-6, nil},
		{"expanded", []*ir.Tensor{filled(1, 1, 32, 32), filled(1, 32, 32, 32)}, two(func(a, b ir.Value) ir.Value {
			return op.MatMul(op.Expand(a, ir.Dims(32, 32, 32)...), b)
		}), []*ir.Tensor{filled(32, 32, 32, 32)}, 0, nil},
		{"permuted", []*ir.Tensor{x, shapedF32([]int{2, 2}, 1, 0, 0, 1)}, two(func(x, b ir.Value) ir.Value { return op.MatMul(op.Transpose(x, 0, 2, 1, 3), b) }),
			[]*ir.Tensor{shapedF32([]int{2, 2, 3, 2}, swapped...)}, 0, nil},
	})
}

// bits makes halves from their bits.
func bits16[T ~uint16](v ...uint16) []T {
	out := make([]T, len(v))
	for i, b := range v {
		out[i] = T(b)
	}
	return out
}

// Scores of f16 operands exceed f16 on the way: they are summed and may be kept in f32. A mean of many ones does not stall.
func TestHalfSums(t *testing.T) {
	half := func(v float64, shape ...int64) *ir.Tensor { return fill(ir.F16, shape, func(int) float64 { return v }) }
	k := fill(ir.F16, dims(2, 128), func(i int) float64 { return []float64{23, 22.5}[i/128] })
	runBugs(t, []bug{
		{"scores", []*ir.Tensor{half(23, 1, 128), k, shapedF32([]int{2, 1}, 1, 2)}, func(in []ir.Value) []ir.Value {
			s := op.MatMulTo(ir.F32, in[0], op.Transpose(in[1]))
			return []ir.Value{s, op.MatMul(op.Softmax(op.Mul(s, 1/math.Sqrt(128)), -1), in[2])}
		}, []*ir.Tensor{shapedF32([]int{1, 2}, 67712, 66240), shapedF32([]int{1, 1}, 1)}, 1e-6, nil},
		{"overflow", []*ir.Tensor{half(23, 1, 128), half(23, 128, 1)}, two(op.MatMul), []*ir.Tensor{half(math.Inf(1), 1, 1)}, 0, nil},
		{"cancelling", []*ir.Tensor{half(256, 1, 512), fill(ir.F16, dims(512, 1), func(i int) float64 { return []float64{256, -256}[i/256] })}, two(op.MatMul), []*ir.Tensor{half(0, 1, 1)}, 0, nil},
		{"mean", []*ir.Tensor{half(1, 4096)}, one(func(x ir.Value) ir.Value { return op.Mean(x) }), []*ir.Tensor{half(1)}, 0, nil},
	})
}

// What must be refused with a typed error that names the op and the constraint.
func TestRefused(t *testing.T) {
	x := filled(1, 2, 3, 4)
	runBugs(t, []bug{
		{"batch dims", []*ir.Tensor{x, zeros(ir.I64, dims(3, 1))}, two(func(x, i ir.Value) ir.Value { return op.GatherNd(x, i, 1) }), nil, 0, []string{"GatherNd", "C2"}},
		{"reshape to -2", []*ir.Tensor{x}, one(func(x ir.Value) ir.Value { return op.ReshapeInts(x, -2, 12) }), nil, 0, []string{"Reshape", "C1"}},
		{"reshape to more", []*ir.Tensor{x}, one(func(x ir.Value) ir.Value { return op.ReshapeInts(x, 5, 5) }), nil, 0, []string{"Reshape", "C3"}},
		{"mixed dtypes", []*ir.Tensor{x, zeros(ir.F64, dims(4))}, two(op.Add[ir.Value, ir.Value]), nil, 0, []string{"Binary", "C2"}},
		{"contracted sizes", []*ir.Tensor{x, filled(1, 3, 4)}, two(op.MatMul), nil, 0, []string{"MatMul", "C2"}},
		{"scatter beyond", []*ir.Tensor{f32s(1, 2, 3), ir.New([]int64{5}, 1, 1), f32s(1)}, func(in []ir.Value) []ir.Value {
			return []ir.Value{op.ScatterNd(in[0], in[1], in[2], op.ScatterSum)}
		}, nil, 0, []string{"ScatterNd", "C7"}},
	})
}

// A broadcast in a chain is no index modulo the length.
func TestFusedBroadcast(t *testing.T) {
	runBugs(t, []bug{{"relu(a*b)+a", []*ir.Tensor{shapedF32([]int{2, 1}, 1, 2), shapedF32([]int{2, 2}, 10, 20, 30, 40)}, two(func(a, b ir.Value) ir.Value {
		return op.Add(op.Relu(op.Mul(a, b)), a)
	}), []*ir.Tensor{shapedF32([]int{2, 2}, 11, 21, 62, 82)}, 0, nil}})
}

// Chains take a value of each row from where it lies: rows of every number of vectors, which begin and end anywhere in a block of them.
func TestRowsInChains(t *testing.T) {
	const rows = 13
	var bugs []bug
	for _, n := range []int{16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 256, 320} {
		x, a, b, want := make([]float32, rows*n), make([]float32, rows), make([]float32, rows), make([]float32, rows*n)
		for r := range rows {
			a[r], b[r] = float32(100*r+1), float32(r-4)
			for k := range n {
				i := r*n + k
				x[i] = float32(i%97 - 40)
				want[i] = (a[r] - (x[i]+b[r])*b[r] - b[r]) * (x[i] - a[r])
			}
		}
		bugs = append(bugs, bug{fmt.Sprint("rows of ", n), []*ir.Tensor{ir.New(x, rows, n), ir.New(a, rows, 1), ir.New(b, rows, 1)}, func(in []ir.Value) []ir.Value {
			x, a, b := in[0], in[1], in[2]
			return []ir.Value{op.Mul(op.Sub(op.Sub(a, op.Mul(op.Add(x, b), b)), b), op.Sub(x, a))}
		}, []*ir.Tensor{ir.New(want, rows, n)}, 0, nil})
	}
	runBugs(t, bugs)
}

// Rewrites that look like algebra change IEEE results: none may happen, with all passes, with each one off and with none.
func TestNoUnsafeAlgebra(t *testing.T) {
	bugs := []bug{
		{"x*0", []*ir.Tensor{f32s(nan, inf, -1)}, one(func(x ir.Value) ir.Value { return op.Mul(x, 0) }), []*ir.Tensor{f32s(nan, nan, neg0)}, 0, nil},
		{"x+0", []*ir.Tensor{f32s(neg0)}, one(func(x ir.Value) ir.Value { return op.Add(x, 0) }), []*ir.Tensor{f32s(0)}, 0, nil},
		{"x-x", []*ir.Tensor{f32s(inf)}, one(func(x ir.Value) ir.Value { return op.Sub(x, x) }), []*ir.Tensor{f32s(nan)}, 0, nil},
		{"cast and back", []*ir.Tensor{f32s(1.0001)}, one(func(x ir.Value) ir.Value { return op.Cast(op.Cast(x, ir.F16), ir.F32) }), []*ir.Tensor{f32s(1)}, 0, nil},
		{"cast to itself", []*ir.Tensor{f32s(1.5, neg0)}, one(func(x ir.Value) ir.Value { return op.Mul(op.Cast(x, ir.F32), 1) }), []*ir.Tensor{f32s(1.5, neg0)}, 0, nil},
		{"scans that differ in one attribute", []*ir.Tensor{f32s(1, 2, 3)}, one2(func(x ir.Value) []ir.Value {
			return []ir.Value{op.Cumsum(x, 0), op.CumsumWith(x, op.CumAttrs{Exclusive: true})}
		}), []*ir.Tensor{f32s(1, 3, 6), f32s(0, 1, 3)}, 0, nil},
		{"dead code behind an output", []*ir.Tensor{f32s(4)}, one(func(x ir.Value) ir.Value {
			y := op.Sqrt(x)
			op.Neg(y)
			return y
		}), []*ir.Tensor{f32s(2)}, 0, nil},
	}
	passes := []string{"fold", "cse", "dce"}
	sets := append([][]string{nil, passes}, []string{"fold"}, []string{"cse"}, []string{"dce"}, []string{"fold", "cse"}, []string{"cse", "dce"}, []string{"fold", "dce"})
	for _, b := range backends() {
		release := Hold(t.Context(), rlx.On(b))
		for _, off := range sets {
			for _, c := range bugs {
				for _, constant := range []bool{false, true} {
					if err := c.run(t, constant, rlx.On(b), rlx.WithoutPasses(off...), rlx.Verify()); err != nil {
						t.Errorf("%s without %v: %s (constant operands: %v): %v", b, off, c.name, constant, err)
					}
				}
			}
		}
		release()
	}
}

func TestConvGeometry(t *testing.T) {
	conv := func(a op.ConvAttrs) func([]ir.Value) []ir.Value {
		return two(func(x, w ir.Value) ir.Value { return op.Conv(x, w, a) })
	}
	groups := shapedF32([]int{1, 4, 3}, 1, 2, 3, 10, 20, 30, 100, 200, 300, 1000, 2000, 3000)
	runBugs(t, []bug{
		{"asymmetric padding, stride, dilation", []*ir.Tensor{shapedF32([]int{1, 1, 7}, 1, 2, 3, 4, 5, 6, 7), shapedF32([]int{1, 1, 3}, 1, 10, 100)},
			conv(op.ConvAttrs{Padding: []int64{2, 0}, Stride: []int64{2}, Dilation: []int64{2}}), []*ir.Tensor{shapedF32([]int{1, 1, 3}, 310, 531, 753)}, 0, nil},
		{"groups", []*ir.Tensor{groups, shapedF32([]int{2, 2, 1}, 1, 1, 1, -1)}, conv(op.ConvAttrs{Groups: 2}),
			[]*ir.Tensor{shapedF32([]int{1, 2, 3}, 11, 22, 33, -900, -1800, -2700)}, 0, nil},
		{"same upper", []*ir.Tensor{shapedF32([]int{1, 1, 4}, 1, 2, 3, 4), filled(1, 1, 1, 2)}, conv(op.ConvAttrs{AutoPad: "same_upper"}), []*ir.Tensor{shapedF32([]int{1, 1, 4}, 3, 5, 7, 4)}, 0, nil},
		{"same lower", []*ir.Tensor{shapedF32([]int{1, 1, 4}, 1, 2, 3, 4), filled(1, 1, 1, 2)}, conv(op.ConvAttrs{AutoPad: "same_lower"}), []*ir.Tensor{shapedF32([]int{1, 1, 4}, 1, 3, 5, 7)}, 0, nil},
		{"shape", []*ir.Tensor{filled(0, 1, 1, 7, 5), filled(1, 1, 1, 3, 3)}, conv(op.ConvAttrs{Padding: []int64{1, 0, 1, 0}, Stride: []int64{2, 2}}), []*ir.Tensor{filled(0, 1, 1, 4, 2)}, 0, nil},
	})
}

// Equal indices combine in row-major order.
func TestScatterDuplicates(t *testing.T) {
	embedding := func(dy, i ir.Value) ir.Value { return op.GatherBackward(dy, i, 0, 3) }
	sum := func(in []ir.Value) []ir.Value { return []ir.Value{op.ScatterNd(in[0], in[1], in[2], op.ScatterSum)} }
	runBugs(t, []bug{
		{"elements", []*ir.Tensor{f32s(10, 20, 30), i64s(1, -1, 1), f32s(1, 2, 3)}, func(in []ir.Value) []ir.Value {
			return []ir.Value{op.ScatterElements(in[0], in[1], in[2], 0, op.ScatterSum)}
		}, []*ir.Tensor{f32s(10, 24, 32)}, 0, nil},
		{"tuples", []*ir.Tensor{filled(0, 2, 2), ir.New([]int64{0, 1, 1, 0, 0, 1}, 3, 2), f32s(1, 2, 3)}, sum, []*ir.Tensor{shapedF32([]int{2, 2}, 0, 4, 2, 0)}, 0, nil},
		{"embedding gradient", []*ir.Tensor{shapedF32([]int{3, 2}, 1, 2, 3, 4, 5, 6), i64s(1, 1, 2)}, two(embedding), []*ir.Tensor{shapedF32([]int{3, 2}, 0, 0, 4, 6, 5, 6)}, 0, nil},
		{"last one stays", []*ir.Tensor{f32s(0, 0), ir.New([]int64{1, 1, 1}, 3, 1), f32s(5, 6, 7)}, func(in []ir.Value) []ir.Value {
			return []ir.Value{op.ScatterNd(in[0], in[1], in[2], op.ScatterNone)}
		}, []*ir.Tensor{f32s(0, 7)}, 0, nil},
	})
}

func TestResizeModes(t *testing.T) {
	x, pair := f32s(1, 2, 3, 4), f32s(100, 200)
	resize := func(a op.ResizeAttrs) func([]ir.Value) []ir.Value {
		return one(func(x ir.Value) ir.Value { return op.Resize(x, a) })
	}
	linear := func(c op.CoordinateMode, scale float64) func([]ir.Value) []ir.Value {
		return resize(op.ResizeAttrs{Mode: op.ResizeLinear, CoordinateMode: c, Scales: []float64{scale}})
	}
	bugs := []bug{
		{"half pixel", []*ir.Tensor{x}, linear(op.HalfPixel, 1.5), []*ir.Tensor{f32s(1, 1.5, 2.1666667, 2.8333333, 3.5, 4)}, 1e-6, nil},
		{"asymmetric", []*ir.Tensor{x}, linear(op.Asymmetric, 1.5), []*ir.Tensor{f32s(1, 1.6666667, 2.3333333, 3, 3.6666667, 4)}, 1e-6, nil},
		{"align corners", []*ir.Tensor{x}, linear(op.AlignCorners, 1.5), []*ir.Tensor{f32s(1, 1.6, 2.2, 2.8, 3.4, 4)}, 1e-6, nil},
		{"smaller", []*ir.Tensor{x}, linear(op.HalfPixel, 0.6), []*ir.Tensor{f32s(1.3333333, 3)}, 1e-6, nil},
		{"scale 1.3", []*ir.Tensor{pair}, linear(op.HalfPixel, 1.3), []*ir.Tensor{f32s(100, 165.38462)}, 1e-6, nil},
		{"scale 1.3 symmetric", []*ir.Tensor{pair}, linear(op.HalfPixelSymmetric, 1.3), []*ir.Tensor{f32s(111.53846, 188.46154)}, 1e-6, nil},
	}
	for _, n := range []struct {
		c    op.CoordinateMode
		n    op.NearestMode
		want []float32
	}{
		{op.HalfPixel, op.RoundPreferFloor, []float32{0, 0, 1, 1, 2, 2}}, {op.HalfPixel, op.RoundPreferCeil, []float32{0, 0, 1, 1, 2, 2}},
		{op.HalfPixel, op.NearestFloor, []float32{0, 0, 0, 1, 1, 2}}, {op.HalfPixel, op.NearestCeil, []float32{0, 1, 1, 2, 2, 2}},
		{op.Asymmetric, op.RoundPreferFloor, []float32{0, 0, 1, 1, 2, 2}}, {op.Asymmetric, op.NearestFloor, []float32{0, 0, 1, 1, 2, 2}},
		{op.Asymmetric, op.RoundPreferCeil, []float32{0, 1, 1, 2, 2, 2}}, {op.Asymmetric, op.NearestCeil, []float32{0, 1, 1, 2, 2, 2}},
	} {
		bugs = append(bugs, bug{fmt.Sprintf("nearest %s %s", n.c, n.n), []*ir.Tensor{f32s(0, 1, 2)},
			resize(op.ResizeAttrs{Mode: op.ResizeNearest, CoordinateMode: n.c, NearestMode: n.n, Scales: []float64{2}}), []*ir.Tensor{f32s(n.want...)}, 0, nil})
	}
	bugs = append(bugs, bug{"batches stay apart", []*ir.Tensor{shapedF32([]int{2, 1, 2}, 0, 1, 100, 101)},
		resize(op.ResizeAttrs{Mode: op.ResizeLinear, Scales: []float64{1, 1, 2}}), []*ir.Tensor{shapedF32([]int{2, 1, 4}, 0, 0.25, 0.75, 1, 100, 100.25, 100.75, 101)}, 1e-6, nil})
	runBugs(t, bugs)
}

// Exclusive and reverse sums are sums of their own, not inclusive ones minus x.
func TestCumsumForms(t *testing.T) {
	cumsum := func(axis int, exclusive, reverse bool) func([]ir.Value) []ir.Value {
		return one(func(x ir.Value) ir.Value {
			return op.CumsumWith(x, op.CumAttrs{Axis: axis, Exclusive: exclusive, Reverse: reverse})
		})
	}
	x := f32s(1, 2, 3)
	runBugs(t, []bug{
		{"plain", []*ir.Tensor{x}, cumsum(0, false, false), []*ir.Tensor{f32s(1, 3, 6)}, 0, nil},
		{"exclusive", []*ir.Tensor{x}, cumsum(0, true, false), []*ir.Tensor{f32s(0, 1, 3)}, 0, nil},
		{"reverse", []*ir.Tensor{x}, cumsum(0, false, true), []*ir.Tensor{f32s(6, 5, 3)}, 0, nil},
		{"both", []*ir.Tensor{x}, cumsum(0, true, true), []*ir.Tensor{f32s(5, 3, 0)}, 0, nil},
		{"axis of one", []*ir.Tensor{shapedF32([]int{1, 2}, 1, 2)}, cumsum(-2, true, true), []*ir.Tensor{shapedF32([]int{1, 2}, 0, 0)}, 0, nil},
		{"large", []*ir.Tensor{f32s(1, 1e8)}, cumsum(0, true, false), []*ir.Tensor{f32s(0, 1)}, 0, nil},
		{"gradient of exclusive", []*ir.Tensor{x}, one(func(x ir.Value) ir.Value { return op.CumsumBackward(x, op.CumAttrs{Exclusive: true}) }), []*ir.Tensor{f32s(5, 3, 0)}, 0, nil},
	})
}

// Conversions to bf16 and f16 round to nearest even, bit by bit; the way back is exact for every code.
func TestHalfConversions(t *testing.T) {
	var in []float32
	for _, b := range []uint32{0x3F808000, 0x3F818000, 0x3F808001, 0x3F807FFF, 0x7F7FFFFF, 0x7F7F7FFF, 0x80000001, 0x00008000, 0x00018000, 0x3E89CCD5} {
		in = append(in, math.Float32frombits(b))
	}
	bf := bits16[ir.BFloat16](0x3F80, 0x3F82, 0x3F81, 0x3F80, 0x7F80, 0x7F7F, 0x8000, 0x0000, 0x0002, 0x3E8A)
	h := f32s(65519, 65520, 2049, 2051, 0x1p-25, 0x1p-24)
	runBugs(t, []bug{
		{"f32 to bf16", []*ir.Tensor{f32s(in...)}, one(func(x ir.Value) ir.Value { return op.Cast(x, ir.BF16) }), []*ir.Tensor{ir.New(bf, len(bf))}, 0, nil},
		{"f32 to f16", []*ir.Tensor{h}, one(func(x ir.Value) ir.Value { return op.Cast(op.Cast(x, ir.F16), ir.F32) }), []*ir.Tensor{f32s(65504, inf, 2048, 2052, 0, 0x1p-24)}, 0, nil},
	})
	testNaNBits(t)
	testAllCodes(t)
}

// A NaN becomes quiet and keeps its sign.
func testNaNBits(t *testing.T) {
	c := bug{name: "NaN to bf16", in: []*ir.Tensor{f32s(math.Float32frombits(0x7F800001), math.Float32frombits(0xFF800001))},
		build: one(func(x ir.Value) ir.Value { return op.Cast(x, ir.BF16) })}
	for _, b := range backends() {
		out, err := c.compute(t, false, rlx.On(b))
		if err != nil {
			t.Errorf("%s: %v", b, err)
		} else if got := out["out0"].Bytes(); !bytes.Equal(got, []byte{0xC0, 0x7F, 0xC0, 0xFF}) {
			t.Errorf("%s: NaN to bf16: got bytes % x, expected 7fc0 and ffc0", b, got)
		}
	}
}

func testAllCodes(t *testing.T) {
	codes := make([]uint16, 1<<16)
	bf, half := make([]float32, 1<<16), make([]float32, 1<<16)
	for i := range codes {
		codes[i] = uint16(i)
		bf[i] = math.Float32frombits(uint32(i) << 16)
		sign, exp, man := 1-2*float64(i>>15), i>>10&31, float64(i&1023)
		switch {
		case exp == 31 && man != 0:
			half[i] = nan
		case exp == 31:
			half[i] = float32(sign * math.Inf(1))
		case exp == 0:
			half[i] = float32(sign * man * 0x1p-24)
		default:
			half[i] = float32(sign * math.Ldexp(1+man/1024, exp-15))
		}
	}
	toF32 := one(func(x ir.Value) ir.Value { return op.Cast(x, ir.F32) })
	runBugs(t, []bug{
		{"bf16 to f32", []*ir.Tensor{ir.New(bits16[ir.BFloat16](codes...), 1<<16)}, toF32, []*ir.Tensor{f32s(bf...)}, 0, nil},
		{"f16 to f32", []*ir.Tensor{ir.New(bits16[ir.Float16](codes...), 1<<16)}, toF32, []*ir.Tensor{f32s(half...)}, 0, nil},
	})
}

// Shapes beyond 2^31 elements are counted in int64, as views that need no memory.
func TestBeyond31Bits(t *testing.T) {
	const side = 46341
	runBugs(t, []bug{{"corner", []*ir.Tensor{i32s(7)}, one(func(x ir.Value) ir.Value {
		y := op.Expand(op.ReshapeInts(x, 1, 1), ir.Dims(side, side)...)
		return op.Narrow(op.Narrow(y, 0, side-1, 1), 1, side-1, 1)
	}), []*ir.Tensor{ir.New([]int32{7}, 1, 1)}, 0, nil}})
	if n, ok := ir.Count(ir.Dims(side, side)).Static(); !ok || n != 2147488281 {
		t.Errorf("46341 * 46341: got %d", n)
	}
	farViews(t)
}

// farViews holds the layout of views of shapes beyond 2^31 elements, which no memory is behind, against numbers worked out by hand.
func farViews(t *testing.T) {
	for _, c := range []struct {
		name    string
		dims    []int64
		view    func(x ir.Value) ir.Value
		strides []int64
		offset  int64
	}{
		{"last row", dims(46341, 46341), func(x ir.Value) ir.Value { return op.Narrow(x, 0, 46340, 1) }, dims(46341, 1), 2147441940},
		{"row 24900", dims(24901, 131072), func(x ir.Value) ir.Value { return op.Narrow(x, 0, 24900, 1) }, dims(131072, 1), 3263692800},
		{"from behind", dims(46341, 46341), func(x ir.Value) ir.Value { return op.Reverse(x, 0, 1) }, dims(-46341, -1), 2147488280},
		{"transposed", dims(131072, 128, 130), func(x ir.Value) ir.Value { return op.Transpose(x, 2, 0, 1) }, dims(1, 16640, 130), 0},
		{"merged", dims(131072, 128, 130), func(x ir.Value) ir.Value { return op.ReshapeInts(x, 130, 131072, 128) }, dims(16777216, 128, 1), 0},
		{"steps", dims(1 << 33), func(x ir.Value) ir.Value {
			return op.Slice(x, ir.Dims(1<<32), ir.Dims(math.MinInt64), []int{0}, []int64{-1 << 31})
		}, dims(-1 << 31), 1 << 32},
	} {
		g := ir.NewGraph(c.name)
		v := c.view(g.Input("x", ir.I8, ir.Dims(c.dims...)))
		if err := g.Err(); err != nil {
			t.Fatal(err)
		}
		from := contiguous(v.Node().In[0])
		_, strides, offset, ok := op.ViewOf(v.Node(), from.Dims, from.Strides, 0)
		if !ok || !slices.Equal(strides, c.strides) || offset != c.offset {
			t.Errorf("%s of %v: got strides %v and offset %d, expected %v and %d", c.name, c.dims, strides, offset, c.strides, c.offset)
		}
	}
}
