package conform

import (
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

func init() {
	generate(ifCases, "If")
	generate(whileCases, "While")
	generate(scanCases, "Scan")
}

// sub is a sub-graph of so many inputs.
func sub(inputs int, build func(g *ir.Graph, in []ir.Value) []ir.Value) *ir.Graph {
	return ir.SubGraph("sub", inputs, build)
}

// changed is v under an op that is exact for its dtype: its first axis reversed, or a copy without one.
func changed(v ir.Value) ir.Value {
	if v.Rank() == 0 {
		return op.Copy(v)
	}
	return op.Reverse(v, 0)
}

// ifCases take both branches with captures of every dtype, one branch with a result that is a capture.
func ifCases(m *maker) {
	then := sub(2, func(_ *ir.Graph, in []ir.Value) []ir.Value { return []ir.Value{changed(in[0]), in[1]} })
	other := sub(2, func(_ *ir.Graph, in []ir.Value) []ir.Value { return []ir.Value{in[0], changed(in[1])} })
	for i, d := range ir.AnyDType.List() {
		for _, taken := range []bool{true, false} {
			pred := ir.Scalar(taken)
			if i%2 == 1 {
				pred = ir.New([]bool{taken}, 1)
			}
			s := [][]int64{{3, 5}, {}, {0, 2}, {17}}[i%4]
			m.add(attrs{"then_branch": then, "else_branch": other}, pred, m.rng.wide(d, s), m.rng.wide(d, s)).bound = true
		}
	}
}

// whileCases swap two carries as often as a captured limit says, and stop at max_trips too.
func whileCases(m *maker) {
	cond := sub(4, func(_ *ir.Graph, in []ir.Value) []ir.Value { return []ir.Value{op.Lt(in[2], in[3])} })
	body := sub(4, func(_ *ir.Graph, in []ir.Value) []ir.Value {
		return []ir.Value{in[1], changed(in[0]), op.Add(in[2], 1)}
	})
	for i, s := range [][]int64{{4, 3}, {}, {33}, {2, 0}} {
		for _, limit := range []int64{0, 1, 5} {
			a := attrs{"cond": cond, "body": body, "num_carries": 3}
			if i%2 == 1 {
				a["max_trips"] = 2
			}
			m.add(a, m.rng.wide(m.dtype, s), m.rng.wide(m.dtype, s), ir.Scalar(int64(0)), ir.Scalar(limit)).bound = true
		}
	}
}

// scanCases walk rows in both directions, with captures, carries that change places, and saved carries.
func scanCases(m *maker) {
	body := sub(4, func(_ *ir.Graph, in []ir.Value) []ir.Value {
		return []ir.Value{in[3], in[0], changed(in[2]), in[1]}
	})
	for i, length := range []int64{0, 1, 3, 7, 65} {
		s := [][]int64{{3}, {}, {2, 5}}[i%3]
		rows := append([]int64{length}, s...)
		x := func(shape []int64) *ir.Tensor { return m.rng.wide(m.dtype, shape) }
		for _, reverse := range []bool{false, true} {
			for _, saved := range []int64{0, 2, 100} {
				m.add(attrs{"body": body, "num_carries": 2, "num_captures": 1, "reverse": reverse, "num_checkpoints": saved}, x(s), x(s), x(s), x(rows)).bound = true
			}
		}
	}
	stack := sub(1, func(_ *ir.Graph, in []ir.Value) []ir.Value { return []ir.Value{changed(in[0]), in[0]} })
	m.add(attrs{"body": stack, "length": 4}, m.rng.wide(m.dtype, []int64{6})).bound = true
}
