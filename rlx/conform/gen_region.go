package conform

import (
	"math"
	"slices"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

func init() {
	generate(elementwiseRegions, "ElementwiseRegion")
	generate(batchRegions, "BatchElementwiseRegion")
	generate(transformRegions, "TransformRegion")
	generate(matMulRegions, "MatMulRegion")
	generate(qMatMulRegions, "QMatMulRegion")
	generate(reduceRegions, "ReduceRegion")
}

// body is a sub-graph over elements.
type body struct {
	inputs int
	build  func(g *ir.Graph, in []ir.Value) []ir.Value
}

func (b body) graph() *ir.Graph { return ir.SubGraph("body", b.inputs, b.build) }

// as is a constant of v's dtype, or its nearest.
func as(v ir.Value, c float64) ir.Value {
	if v.DType() == ir.Bool {
		return v.Graph().Constant(ir.Scalar(c != 0))
	}
	return op.Cast(v.Graph().Constant(ir.Scalar(c)), v.DType())
}

// mixed is a chain over two values of any dtype that keeps the first one's dtype.
func mixed(a, b ir.Value) ir.Value {
	d := a.DType()
	b = op.Cast(b, d)
	switch {
	case d == ir.Bool:
		return op.Where(op.Eq(a, b), op.LogicalNot(a), b)
	case ir.Float.Has(d):
		// b comes from an operand as it is: a comparison of what was rounded on the way may fall out either way.
		return op.Where(op.Gt(b, as(b, 0.25)), op.Mul(op.Sub(a, as(a, 0.5)), b), op.Tanh(op.Add(a, b)))
	default:
		return op.Sub(op.Mul(op.Add(a, b), a), op.Max(b, as(a, 3)))
	}
}

// chain applies mixed n times with the inputs in turn.
func chain(inputs, n int) body {
	return body{inputs, func(_ *ir.Graph, in []ir.Value) []ir.Value {
		v := in[0]
		for i := range n {
			v = mixed(v, in[i%inputs])
		}
		return []ir.Value{v}
	}}
}

// gelu is x/2 (1 + erf(x/sqrt 2)) spelled out.
func gelu(x ir.Value) ir.Value {
	return op.Mul(op.Mul(x, as(x, 0.5)), op.Add(op.Erf(op.Mul(x, as(x, math.Sqrt2/2))), as(x, 1)))
}

// bodies are sub-graphs of many forms for a first operand of the given dtype.
func bodies(d ir.DType) []body {
	list := []body{
		chain(2, 1), chain(3, 4), chain(1, 2), chain(16, 16),
		{1, func(_ *ir.Graph, in []ir.Value) []ir.Value { return in }},
		{2, func(g *ir.Graph, in []ir.Value) []ir.Value { // an input, an inner value of another result, a constant, one twice
			a := mixed(in[0], in[1])
			b := mixed(a, in[1])
			return []ir.Value{in[1], a, b, g.Constant(ir.Scalar(float32(2.5))), b}
		}},
		{1, func(g *ir.Graph, in []ir.Value) []ir.Value { // every dtype on the way
			v := []ir.Value{}
			for _, t := range []ir.DType{ir.I8, ir.F64, ir.Bool, ir.U16, ir.F16, ir.I64, ir.BF16, ir.F32} {
				v = append(v, op.Cast(in[0], t))
			}
			return v
		}},
		{2, func(_ *ir.Graph, in []ir.Value) []ir.Value { // nobody reads the second
			return []ir.Value{mixed(in[0], in[0])}
		}},
		{3, func(_ *ir.Graph, in []ir.Value) []ir.Value { // nor the third, of a wider dtype
			return []ir.Value{mixed(in[0], in[1])}
		}},
		{3, func(_ *ir.Graph, in []ir.Value) []ir.Value { // 1 of the 3 in a result of its own
			return []ir.Value{mixed(in[2], in[2]), mixed(in[0], in[1])}
		}},
	}
	if !ir.Float.Has(d) {
		return list
	}
	return append(list,
		body{2, func(_ *ir.Graph, in []ir.Value) []ir.Value {
			return []ir.Value{gelu(op.Add(in[0], op.Cast(in[1], in[0].DType())))}
		}},
		body{3, func(_ *ir.Graph, in []ir.Value) []ir.Value {
			b, c := op.Cast(in[1], in[0].DType()), op.Cast(in[2], in[0].DType())
			return []ir.Value{op.Fma(op.Clamp(in[0], -1.5, 2.5), b, c), op.ReluBackward(in[0], op.Neg(in[0])), op.IsNaN(op.Exp(c))}
		}},
		body{1, func(_ *ir.Graph, in []ir.Value) []ir.Value { // as many nodes as a kernel's tables may hold
			v := in[0]
			for i := range op.MaxRegionNodes / 2 {
				v = op.Mul(op.Abs(v), as(v, 1+float64(i%3)/64))
			}
			return []ir.Value{v}
		}})
}

// broadcasts are shapes of operands that broadcast in every way: columns, rows, middle axes, single elements, beyond tiles.
var broadcasts = [][][]int64{
	{{4, 33}, {4, 33}, {33}}, {{2, 2}, {2, 1}, {1}}, {{17, 65}, {17, 1}, {1, 65}}, {{3, 1, 5}, {1, 7, 1}, {}}, {{}, {}, {}}, {{1}, {9}, {}},
	{{2, 3, 4}, {3, 1}, {2, 1, 1}}, {{0, 5}, {1, 5}, {}}, {{2, 0, 3}, {1}, {3}}, {{255}, {255}, {1}}, {{256}, {1}, {256}}, {{257}, {257}, {257}},
	{{1, 1, 1, 1}, {2, 1, 3, 1}, {9}}, {{3, 700}, {700}, {3, 1}}, {{2, 1, 2, 1, 2, 1, 2, 1}, {1, 2, 1, 2, 1, 2, 1, 2}, {}}, {{4, 2049}, {1}, {4, 1}}, {{9000}, {9000}, {}},
	{{33, 64}, {64}, {33, 64}}, {{5, 4, 6, 7}, {1, 4, 1, 1}, {7}},
}

// operands draws inputs of a body: the first of the maker's dtype, the others of others too.
func (m *maker) operands(b body, shapes [][]int64) []*ir.Tensor {
	in := make([]*ir.Tensor, b.inputs)
	for i := range in {
		d := m.dtype
		if i%3 == 2 {
			d = m.partner(ir.Real | ir.Set(ir.Bool))
		}
		in[i] = m.rng.odd(d, shapes[i%len(shapes)])
		if (len(m.cases)+i)%2 == 0 {
			in[i] = m.rng.plain(d, shapes[i%len(shapes)])
		}
	}
	return in
}

func elementwiseRegions(m *maker) {
	if m.enums["prologue"] != "none" {
		m.doubled()
		return
	}
	for i, b := range bodies(m.dtype) {
		for _, s := range part(m, 2, 6, rotated(broadcasts, 5*i+m.turn)) {
			m.add(attrs{"body": b.graph()}, m.operands(b, s)...)
		}
	}
	if m.turn == 0 {
		none := body{0, func(g *ir.Graph, _ []ir.Value) []ir.Value {
			return []ir.Value{op.Neg(g.Constant(ir.Scalar(float32(3)))), g.Constant(ir.Scalar(int64(7)))}
		}}
		m.add(attrs{"body": none.graph()})
	}
}

// rotated is list from place i on.
func rotated[S any](list []S, i int) []S {
	i %= len(list)
	return slices.Concat(list[i:], list[:i])
}

func (m *maker) doubled() {
	b, c := chain(2, 2), chain(3, 3)
	for _, s := range part(m, 2, 8, [][][]int64{
		{{2, 3, 4, 5}, {2, 3, 8, 10}}, {{1, 1, 1, 1}, {3, 2, 1, 1}}, {{1, 2, 3, 70}, {140}}, {{2, 1, 33, 17}, {3, 1, 1}}, {{1, 1, 0, 3}, {}}, {{2, 3, 2, 2}, {5, 2, 3, 4, 4}}, {{1, 1, 40, 41}, {2, 1, 80, 1}},
		{{1, 2, 1, 3}, {2, 1, 2, 1, 1, 2, 1, 6}},
	}) {
		m.add(attrs{"body": b.graph()}, m.operands(b, s)...)
		m.add(attrs{"body": b.graph(), "prologue_input": 1}, m.operands(b, [][]int64{s[1], s[0]})...)
		m.add(attrs{"body": c.graph(), "prologue_input": 0}, m.operands(c, [][]int64{s[0], s[1], s[1]})...)
	}
}

func batchRegions(m *maker) {
	shapes := [][][]int64{
		{{2, 3}, {2, 3}, {3}}, {{0, 4}, {3, 4}, {1}}, {{1}, {1}, {}}, {{5, 1, 9}, {2, 1, 9}, {1, 7, 1}}, {{300, 3}, {1, 3}, {3}}, {{2, 2, 3, 3}, {1, 2, 3, 3}, {}}, {{1, 4}, {1, 4}, {5, 1}},
	}
	for i, s := range part(m, 3, 7, shapes) {
		b := chain(2, 3)
		if i%3 == 1 {
			b = body{2, func(_ *ir.Graph, in []ir.Value) []ir.Value { return []ir.Value{mixed(in[0], in[1]), in[0]} }}
		}
		if m.enums["prologue"] != "none" {
			s = [][]int64{{2, 2, 3, 4}, {int64(i), 2, 3, 4}, {int64(1 + i%2*7)}}
		}
		in := []*ir.Tensor{m.rng.odd(m.dtype, s[0]), m.rng.plain(m.dtype, s[1]), m.rng.odd(m.dtype, s[0]), m.rng.plain(m.dtype, s[2])}
		m.add(attrs{"body": b.graph(), "num_batch": 3}, in...)
		m.add(attrs{"body": b.graph(), "num_batch": 1}, in[2:]...)
	}
}

func transformRegions(m *maker) {
	type call struct {
		steps string
		shape []int64
	}
	for _, c := range part(m, 4, 20, []call{
		{`[]`, dims(3, 4)}, {`[]`, dims()}, {`[{"fn":"resize_nearest_2x"}]`, dims(2, 3, 4, 5)},
		{`[{"fn":"crop","starts":[1,2],"sizes":[3,17]},{"fn":"flip","axes":[1]}]`, dims(5, 20)},
		{`[{"fn":"flip","axes":[-1]},{"fn":"crop","starts":[1,2],"sizes":[3,17]}]`, dims(5, 20)},
		{`[{"fn":"flip","axes":[0,1]},{"fn":"transpose","perm":[1,0]}]`, dims(33, 17)},
		{`[{"fn":"resize_nearest_2x"},{"fn":"crop","starts":[0,1,1,3],"sizes":[1,2,6,7]},{"fn":"flip","axes":[3]},{"fn":"resize_nearest_2x"},{"fn":"transpose","perm":[0,2,3,1]}]`, dims(1, 3, 4, 6)},
		{`[{"fn":"transpose","perm":[0,3,2,1]},{"fn":"resize_nearest_2x"},{"fn":"flip","axes":[2,3]},{"fn":"crop","starts":[0,0,1,1],"sizes":[2,5,3,2]}]`, dims(2, 2, 3, 5)},
		{`[{"fn":"resize_nearest_2x"},{"fn":"resize_nearest_2x"},{"fn":"flip","axes":[-2]},{"fn":"resize_nearest_2x"}]`, dims(1, 2, 3, 5)},
		{`[{"fn":"crop","starts":[2],"sizes":[0]}]`, dims(2)}, {`[{"fn":"flip","axes":[0]}]`, dims(0)},
		{`[{"fn":"transpose","perm":[7,6,5,4,3,2,1,0]}]`, dims(2, 1, 2, 1, 2, 1, 2, 3)},
		{`[{"fn":"transpose","perm":[1,0]}]`, dims(129, 65)},
	}) {
		m.add(attrs{"steps": c.steps}, m.rng.wide(m.dtype, c.shape))
	}
}

func matMulRegions(m *maker) {
	type call struct{ a, b, x []int64 }
	list := []call{
		{dims(3, 17), dims(17, 15), dims(15)}, {dims(33, 20), dims(20, 100), dims(33, 1)}, {dims(1, 8), dims(8, 130), dims(130)}, {dims(7, 5), dims(5, 1), dims(1)}, {dims(1, 4), dims(4, 1), dims()},
		{dims(2, 3, 9), dims(9, 40), dims(3, 40)}, {dims(2, 3, 9), dims(2, 9, 33), dims(2, 1, 33)}, {dims(9), dims(9, 5), dims(5)}, {dims(5, 9), dims(9), dims(5)}, {dims(7), dims(7), dims()},
		{dims(4, 0), dims(0, 3), dims(3)}, {dims(0, 4), dims(4, 3), dims(3)}, {dims(70, 300), dims(300, 65), dims(70, 65)}, {dims(200, 600), dims(600, 48), dims(48)}, {dims(2, 1, 3, 16), dims(1, 3, 16, 2), dims(3, 1, 2)},
	}
	form := func(f func(y, x ir.Value) []ir.Value) body {
		return body{2, func(_ *ir.Graph, in []ir.Value) []ir.Value { return f(in[0], op.Cast(in[1], in[0].DType())) }}
	}
	forms := []body{
		form(func(y, x ir.Value) []ir.Value { return []ir.Value{op.Cast(op.Add(y, x), ir.F32)} }),
		form(func(y, x ir.Value) []ir.Value { return []ir.Value{op.Add(op.Mul(y, as(y, 2)), x)} }),
		form(func(y, x ir.Value) []ir.Value { return []ir.Value{op.Gt(y, x)} }),
		form(func(y, x ir.Value) []ir.Value {
			return []ir.Value{op.Gt(y, x), op.Max(y, x), y, op.Cast(op.Sub(y, x), ir.F16)}
		}),
		form(func(_, x ir.Value) []ir.Value { return []ir.Value{x} }),
	}
	if ir.Float.Has(m.dtype) {
		forms = append(forms, form(func(y, x ir.Value) []ir.Value { return []ir.Value{gelu(op.Add(y, x))} }))
	}
	for _, d := range m.results() {
		for i, c := range part(m, 3, 15, list) {
			x, y := m.rng.few(m.dtype, c.a), m.rng.few(m.dtype, c.b)
			if i%4 == 3 {
				x = m.rng.odd(m.dtype, c.a)
			}
			for _, f := range part(m, 1, 2, rotated(forms, i+m.turn)) {
				m.add(attrs{"body": f.graph(), "dtype": d}, x, y, m.rng.few(m.partner(ir.Real|ir.Set(ir.Bool)), c.x)).linear = true
			}
		}
		m.turn++
	}
	for _, d := range (ir.Real | ir.Set(ir.Bool)).List() { // every dtype of x at least once
		m.add(attrs{"body": forms[1].graph()}, m.rng.few(m.dtype, dims(2, 3)), m.rng.few(m.dtype, dims(3, 5)), m.rng.few(d, dims(5))).linear = true
	}
}

func qMatMulRegions(m *maker) {
	type call struct{ x, w, side []int64 }
	list := []call{
		{dims(3, 17), dims(17, 15), dims(15)}, {dims(33, 20), dims(20, 100), dims(33, 1)}, {dims(1, 8), dims(8, 130), dims(130)}, {dims(7, 5), dims(5, 1), dims(1)}, {dims(2, 3, 9), dims(9, 40), dims(3, 40)},
		{dims(9), dims(9, 5), dims(5)}, {dims(4, 0), dims(0, 3), dims(3)}, {dims(0, 4), dims(4, 3), dims(3)}, {dims(70, 300), dims(300, 65), dims(70, 65)}, {dims(3, 64), dims(64, 1100), dims(3, 1)}, {dims(14, 12), dims(12, 32), dims()},
	}
	form := func(f func(y, x ir.Value) []ir.Value) body {
		return body{2, func(_ *ir.Graph, in []ir.Value) []ir.Value { return f(in[0], in[1]) }}
	}
	forms := []body{
		form(func(y, x ir.Value) []ir.Value { return []ir.Value{op.Mul(op.Cast(y, ir.F32), op.Cast(x, ir.F32))} }),
		form(func(y, x ir.Value) []ir.Value { return []ir.Value{op.Sub(op.Mul(y, as(y, 3)), op.Cast(x, ir.I32))} }),
		form(func(y, x ir.Value) []ir.Value { return []ir.Value{op.Gt(y, op.Cast(x, ir.I32))} }), // no result has room for a sum
		form(func(y, x ir.Value) []ir.Value {
			f := op.Cast(y, ir.F32)
			return []ir.Value{op.Cast(x, ir.F32), op.Max(f, op.Cast(x, ir.F32)), y, op.Cast(op.Mul(f, as(f, 1.0/256)), ir.F16), op.Cast(y, ir.F64)}
		}),
		form(func(y, x ir.Value) []ir.Value {
			return []ir.Value{gelu(op.Mul(op.Cast(y, ir.F32), as(op.Cast(x, ir.F32), 1.0/1024)))}
		}),
	}
	for _, w := range bytes8 {
		for i, c := range part(m, 4, len(list), list) {
			a := attrs{"body": forms[(i+m.turn)%len(forms)].graph()}
			for name, d := range map[string]ir.DType{"x_zero_point": m.dtype, "w_zero_point": w} {
				if lo, hi := op.IntRange(d); i%3 != 0 && (i%3 == 1 || name == "x_zero_point") {
					a[name] = lo + m.fixedDraw(name, len(m.cases))%(hi-lo+1)
				}
			}
			m.add(a, m.bytes(m.dtype, c.x), m.bytes(w, c.w), m.rng.few(m.partner(ir.Real|ir.Set(ir.Bool)), c.side))
		}
		m.turn++
	}
	for _, d := range (ir.Real | ir.Set(ir.Bool)).List() { // every dtype of a side operand at least once
		m.add(attrs{"body": forms[0].graph()}, m.bytes(m.dtype, dims(2, 3)), m.bytes(ir.I8, dims(3, 5)), m.rng.few(d, dims(5)))
	}
}

// few draws from few whole numbers, of which sums of products are exact.
func (r *random) few(d ir.DType, shape []int64) *ir.Tensor {
	return fill(d, shape, func(int) float64 {
		if v := float64(r.IntN(5) - 2); v > 0 || ir.Float.Has(d) {
			return v
		}
		return 0
	})
}

func reduceRegions(m *maker) {
	type call struct {
		axes   string
		shapes [][]int64
	}
	list := []call{
		{`[-1]`, [][]int64{{4, 33}, {33}}}, {`[1]`, [][]int64{{20, 9}, {20, 1}}}, {`[0]`, [][]int64{{20, 17}, {17}}}, {``, [][]int64{{3, 5, 7}, {1, 5, 1}}}, {`[0, 1]`, [][]int64{{3, 65}, {3, 65}}},
		{`[2, 1]`, [][]int64{{2, 3, 50}, {3, 1}}}, {`[1]`, [][]int64{{2, 30, 8}, {2, 1, 8}}}, {`[0, 2]`, [][]int64{{5, 4, 6}, {}}}, {`[-1]`, [][]int64{{3, 0}, {1}}}, {`[0]`, [][]int64{{3, 0}, {1}}}, {`[1]`, [][]int64{{300, 400}, {400}}},
		{``, [][]int64{{}, {}}}, {`[-1]`, [][]int64{{2, 5000}, {2, 1}}},
	}
	for i, c := range part(m, 3, 13, list) {
		fn := m.enums["fn"]
		if (fn == "max" || fn == "min") && slices.Contains(c.shapes[0], 0) && c.axes == `[-1]` {
			continue
		}
		n := 1 + i%2
		b := body{2, func(g *ir.Graph, in []ir.Value) []ir.Value {
			y := chain(2, n).build(g, in)
			if ir.Float.Has(y[0].DType()) {
				y[0] = op.Abs(y[0]) // a sum near 0 would be all error
			}
			return y
		}}
		a := attrs{"body": b.graph(), "keep_dims": i%2 == 1}
		if c.axes != "" {
			a["axes"] = c.axes
		}
		m.add(a, m.rng.plain(m.dtype, c.shapes[0]), m.rng.plain(m.dtype, c.shapes[1])).linear = true
	}
}
