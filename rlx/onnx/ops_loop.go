package onnx

import (
	"slices"
	"strconv"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// Loops of at most so many trips, and so many nodes over all trips, are unrolled where the number of trips is known: their values may decide on
// shapes then.
const (
	unrolledTrips = 64
	unrolledNodes = 4096
)

// mostTrips is the most that a loop without a condition may make: beyond it no run ends.
const mostTrips = 1 << 48

func tripsText(n int64) string {
	if n < 0 {
		return "any number of"
	}
	return strconv.FormatInt(n, 10)
}

// loop is an ONNX Loop as a While or a Scan. Its carries are the number of the trip, what the body says of the next one where that is not
// always true, and those of the model.
type loop struct {
	n        *node
	body     *region
	trips    *ir.Tensor // how many at most, nil where that is not known
	cond     *ir.Tensor // of the first trip, nil where that is not known
	endless  bool       // the body's condition is always true
	carries  []ir.Value // without the number of the trip
	captures []ir.Value
}

// loop reads a Loop whose body stays a sub-graph, as one of many trips does, or of a number that only a run tells. It says whether that can
// be: the carries keep their types.
func (n *node) loop(g *GraphProto, carried []*value, scans int) bool {
	l := &loop{n: n}
	if n.has(0) {
		l.trips = n.im.known(n.in[0])
	}
	if n.has(1) {
		l.cond = n.im.known(n.in[1])
	}
	if slices.ContainsFunc(carried, func(v *value) bool { return v == nil || !v.isTensor() }) {
		return false
	}
	d := depsOf(n)
	body, err := n.region(g, func(r *region) []*value {
		args := []*value{r.argument("trip", counterType(&g.Inputs[0], ir.I64), d), n.counter(&g.Inputs[1], ir.Scalar(true))}
		for _, v := range carried {
			args = append(args, r.argument("carry", v.typ, d))
		}
		return args
	})
	if err != nil || len(body.results) != 1+len(carried)+scans {
		return false
	}
	for i, v := range carried {
		if !body.results[1+i].Type().Equal(v.typ) {
			return false
		}
	}
	l.body = body
	if t, ok := body.results[0].Const(); ok && t.Len() == 1 && t.Int(0) != 0 {
		l.endless = true
	}
	if most := l.most(); l.endless && (most > mostTrips || most < 0 && !n.has(0) && (!n.has(1) || l.cond != nil)) {
		n.fail("its condition is always true and it makes %s trips, expected at most %d", tripsText(most), int64(mostTrips))
		return false
	}
	if !l.endsInOutputs(len(carried), scans) {
		return false
	}
	for _, v := range carried {
		l.carries = append(l.carries, n.get(v))
	}
	l.captures = capturesOf(body)
	if !n.ok() {
		return false
	}
	l.build(&g.Inputs[0], scans)
	return true
}

// counterType is the type of an integer or bool of one element, with the rank that the body declares.
func counterType(in *ValueInfoProto, d ir.DType) ir.Type {
	if in.HasShape && len(in.Shape) == 1 {
		return ir.Type{DType: d, Shape: ir.Dims(1)}
	}
	return ir.Type{DType: d, Shape: []ir.Dim{}}
}

// most is the number of trips where it is known, -1 for no bound.
func (l *loop) most() int64 {
	switch {
	case l.cond != nil && l.cond.Len() == 1 && l.cond.Int(0) == 0:
		return 0
	case l.trips != nil && l.trips.Len() == 1:
		return max(l.trips.Int(0), 0)
	}
	return -1
}

// counted says that every run makes most trips.
func (l *loop) counted() bool {
	return l.endless && l.most() >= 0 && (!l.n.has(1) || l.cond != nil)
}

// endsInOutputs says whether all stacks are outputs of the model and nothing else, or as long in every run.
func (l *loop) endsInOutputs(carried, scans int) bool {
	im := l.n.im
	for i := range scans {
		if l.counted() || !l.n.wants(carried+i) {
			continue
		}
		name := l.n.p.Output[carried+i]
		isOutput := slices.ContainsFunc(im.m.Graph.Outputs, func(o ValueInfoProto) bool { return o.Name == name })
		if im.sc != im.root || !isOutput || reads(im.m.Graph.Nodes, name) {
			return false
		}
	}
	return true
}

// reads says whether a node, or one in its sub-graphs, reads a value of this name.
func reads(nodes []NodeProto, name string) bool {
	for i := range nodes {
		if slices.Contains(nodes[i].Input, name) {
			return true
		}
		for k := range nodes[i].Attribute {
			if g := nodes[i].Attribute[k].G; g != nil && (reads(g.Nodes, name) || slices.ContainsFunc(g.Outputs, func(o ValueInfoProto) bool { return o.Name == name })) {
				return true
			}
		}
	}
	return false
}

// build makes the node: a Scan where every run makes the same trips, else a While.
func (l *loop) build(counter *ValueInfoProto, scans int) {
	n, k := l.n, len(l.carries)
	trip := counterType(counter, ir.I64)
	zero, _ := ir.Zeros(ir.I64, make([]int64, len(trip.Shape))...)
	if len(trip.Shape) == 1 {
		zero = ir.New([]int64{0}, 1)
	}
	first := n.im.g.Constant(zero)
	if l.counted() {
		length := l.most()
		body := l.body.graph(1+k+len(l.captures), places(0, 1+k), l.captures, 1+k, func(_ *ir.Graph, in, out []ir.Value) []ir.Value {
			return append([]ir.Value{op.Add(in[0], 1)}, out[1:]...)
		})
		in := slices.Concat([]ir.Value{first}, l.carries, l.captures)
		out := op.ScanGraphs(n.im.g, op.ScanAttrs{Body: body, Length: &length, NumCarries: int64(1 + k), NumCaptures: int64(len(l.captures))}, in...)
		n.setOutputs(out[1:], depsOf(n, l.body))
		return
	}
	l.while(first, scans)
}

// while makes a While with carries: the trip, the condition of the next trip, those of the model. The bound is a capture where only a run
// tells it.
func (l *loop) while(first ir.Value, scans int) {
	n, k := l.n, len(l.carries)
	condType := l.body.results[0].Type()
	cond := n.im.g.Constant(ir.Scalar(true))
	if n.has(1) {
		cond = n.val(1)
	}
	cond = op.Reshape(cond, condType.Shape...)
	captures, most := slices.Clone(l.captures), l.most()
	bound := -1
	if n.has(0) && l.trips == nil {
		bound = 2 + k + len(captures)
		captures = append(captures, op.ReshapeInts(n.val(0)))
	}
	test := ir.SubGraph("cond", 2+k+len(captures), func(_ *ir.Graph, in []ir.Value) []ir.Value {
		holds := op.ReshapeInts(in[1])
		if bound >= 0 {
			holds = op.LogicalAnd(holds, op.Lt(op.ReshapeInts(in[0]), in[bound]))
		}
		return []ir.Value{holds}
	})
	body := l.body.graph(2+k+len(captures), append([]int{0}, places(2, k)...), captures, 2+k, func(_ *ir.Graph, in, out []ir.Value) []ir.Value {
		return append([]ir.Value{op.Add(in[0], 1)}, out...)
	})
	if !n.ok() {
		return
	}
	carries := int64(2 + k)
	in := slices.Concat([]ir.Value{first, cond}, l.carries, captures)
	out := op.WhileGraphs(n.im.g, op.WhileAttrs{Cond: test, Body: body, NumCarries: &carries, MaxTrips: most, NumEmits: int64(scans)}, in...)
	if n.ok() {
		n.setOutputs(out[2:2+k+scans], depsOf(n, l.body))
	}
}

// scanLoop reads a Scan whose body stays a sub-graph, where it has many steps, or a number that only the shapes of a run tell. It says whether
// that can be: the states keep their types.
func (n *node) scanLoop(g *GraphProto, states []*value, xs []ir.Value, axes []int) bool {
	length := xs[0].Dim(axes[0])
	if steps, ok := length.Static(); ok && steps <= unrolledTrips && steps*int64(len(g.Nodes)) <= unrolledNodes {
		return false
	}
	d := union(n.in)
	for k, x := range xs {
		if axes[k] != 0 {
			x = op.Transpose(x, firstAxis(axes[k], x.Rank())...)
		}
		if at(n.intList("scan_input_directions"), k) == 1 {
			x = op.Reverse(x, 0)
		}
		xs[k] = x
	}
	r, err := n.region(g, func(r *region) []*value {
		var args []*value
		for _, v := range states {
			args = append(args, r.argument("state", v.typ, d))
		}
		for _, x := range xs {
			args = append(args, r.argument("row", ir.Type{DType: x.DType(), Shape: x.Shape()[1:]}, d))
		}
		return args
	})
	if err != nil || len(r.results) != len(g.Outputs) {
		return false
	}
	var in []ir.Value
	for i, v := range states {
		if !r.results[i].Type().Equal(v.typ) {
			return false
		}
		in = append(in, n.get(v))
	}
	captures := capturesOf(r)
	in = slices.Concat(in, captures, xs)
	count := len(states)
	body := r.graph(len(in), append(places(0, count), places(count+len(captures), len(xs))...), captures, count, asIs)
	if !n.ok() {
		return false
	}
	out := op.ScanGraphs(n.im.g, op.ScanAttrs{Body: body, NumCarries: int64(count), NumCaptures: int64(len(captures))}, in...)
	if !n.ok() {
		return true
	}
	n.scanOutputs(out, count)
	n.setOutputs(out, depsOf(n, r))
	return true
}

// firstAxis is the permutation that brings an axis to the front, and backAxis the one that brings it back.
func firstAxis(axis, rank int) []int {
	perm := []int{axis}
	for i := range rank {
		if i != axis {
			perm = append(perm, i)
		}
	}
	return perm
}

func backAxis(axis, rank int) []int {
	perm := make([]int, rank)
	for i, from := range firstAxis(axis, rank) {
		perm[from] = i
	}
	return perm
}

// scanOutputs turns stacks along the first axis into what the attributes of the node ask for.
func (n *node) scanOutputs(out []ir.Value, states int) {
	for k := range out[states:] {
		y := &out[states+k]
		if at(n.intList("scan_output_directions"), k) == 1 {
			*y = op.Reverse(*y, 0)
		}
		axis := n.wrap(at(n.intList("scan_output_axes"), k), y.Rank(), "scan_output_axes")
		if !n.ok() {
			return
		}
		if axis != 0 {
			*y = op.Transpose(*y, backAxis(axis, y.Rank())...)
		}
	}
}
