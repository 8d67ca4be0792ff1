package onnx

import (
	"math"
	"slices"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// controlRows hold sub-graphs. Where it is known how they run a branch is put in place of its If, and short loops are unrolled; else the
// sub-graph stays one: see region.
var controlRows = []row{
	{op: "If", since: 1, in: arity{1, 1}, lists: true, build: buildIf, attrs: []attrDecl{required(graphAttr("then_branch")), required(graphAttr("else_branch"))}},
	{op: "Loop", since: 1, in: arity{0, many}, lists: true, build: buildLoop, attrs: []attrDecl{required(graphAttr("body"))}},
	{op: "Scan", since: 8, in: arity{0, many}, build: buildScan8,
		attrs: []attrDecl{required(graphAttr("body")), required(integer("num_scan_inputs", 0)), integers("directions")}},
	{op: "Scan", since: 9, in: arity{1, many}, build: buildScan9, attrs: []attrDecl{
		required(graphAttr("body")), required(integer("num_scan_inputs", 0)), integers("scan_input_axes"), integers("scan_input_directions"),
		integers("scan_output_axes"), integers("scan_output_directions"),
	}},
}

func graphAttr(name string) attrDecl { return listOf(name, AttributeGraph) }

// graph is an attribute that holds a sub-graph.
func (n *node) graph(name string) *GraphProto {
	a := n.attr(name)
	if a == nil || a.G == nil {
		n.fail("attribute %s has no graph", name)
		return &GraphProto{}
	}
	return a.G
}

// survey checks the operators of a sub-graph that cannot be read, so that the error lists them too.
func (im *importer) survey(g *GraphProto) {
	for i := range g.Nodes {
		n := &node{im: im, p: im.resolve(&g.Nodes[i]), prefix: im.sc.prefix}
		n.check()
		for k := range n.p.Attribute {
			if a := &n.p.Attribute[k]; a.G != nil {
				im.survey(a.G)
			}
		}
	}
}

func buildIf(n *node) {
	then, other := n.graph("then_branch"), n.graph("else_branch")
	if n.ok() && n.im.known(n.in[0]) == nil && n.branches(then, other) {
		return
	}
	cond, ok := n.truth(n.in[0], "input 0 (cond)")
	switch {
	case !ok:
		n.im.survey(then)
		n.im.survey(other)
	case cond:
		copy(n.out, n.body(then, nil))
	default:
		copy(n.out, n.body(other, nil))
	}
}

// branches reads an If that each run decides. It says whether that can be: both branches can be read, and give the same types.
func (n *node) branches(then, other *GraphProto) bool {
	none := func(*region) []*value { return nil }
	a, err := n.region(then, none)
	if err != nil {
		return false
	}
	b, err := n.region(other, none)
	if err != nil || !slices.EqualFunc(a.results, b.results, func(x, y ir.Value) bool { return x.Type().Equal(y.Type()) }) {
		return false
	}
	captures := capturesOf(a, b)
	pred := n.val(0)
	if !n.ok() {
		return false
	}
	out := op.IfGraphs(pred, captures, a.graph(len(captures), nil, captures, 0, asIs), b.graph(len(captures), nil, captures, 0, asIs))
	n.setOutputs(out, depsOf(n, a, b))
	return true
}

// setOutputs sets the outputs.
func (n *node) setOutputs(out []ir.Value, d *deps) {
	for i := range min(len(out), len(n.out)) {
		n.out[i] = &value{typ: out[i].Type(), node: out[i], deps: d}
	}
}

// truth is the one element of a condition, which must be known.
func (n *node) truth(v *value, what string) (cond, ok bool) {
	t := n.im.known(v)
	switch {
	case t == nil:
		if n.ok() {
			n.unknownValue(v, what)
		}
		return false, false
	case t.Len() != 1:
		n.fail("%s has %d elements, expected one", what, t.Len())
		return false, false
	}
	return t.Int(0) != 0, n.ok()
}

// counter is an integer for a body, with the rank that the body declares: exporters write scalars as vectors of one element.
func (n *node) counter(in *ValueInfoProto, t *ir.Tensor) *value {
	if in.HasShape && len(in.Shape) == 1 {
		if v, err := ir.FromBytes(t.DType(), []int64{1}, t.Bytes()); err == nil {
			t = v
		}
	}
	return n.im.constant(t)
}

func buildLoop(n *node) {
	g := n.graph("body")
	carried := append([]*value{}, n.in[min(2, len(n.in)):]...)
	scans := len(g.Outputs) - 1 - len(carried)
	if n.ok() && (scans < 0 || len(g.Inputs) != 2+len(carried)) {
		n.fail("its body has %d inputs and %d outputs, expected %d and at least %d", len(g.Inputs), len(g.Outputs), 2+len(carried), 1+len(carried))
	}
	if !n.ok() {
		n.im.survey(g)
		return
	}
	u := &unrolling{n: n, g: g, carried: carried, scans: scans}
	if u.decided() && u.run(true) || n.ok() && n.loop(g, carried, scans) || !n.ok() {
		return
	}
	trips, cond := int64(math.MaxInt64), true
	if n.has(0) {
		trips = n.int(0, "M", 0)
	}
	if n.has(1) && n.ok() {
		cond, _ = n.truth(n.in[1], "input 1 (cond)")
	}
	if !n.ok() {
		n.im.survey(g)
		return
	}
	u.trips, u.cond = trips, cond
	u.run(false)
}

// unrolling writes the trips of a Loop out one after the other.
type unrolling struct {
	n       *node
	g       *GraphProto
	carried []*value
	scans   int
	trips   int64
	cond    bool
}

// decided says whether it is known how many trips there are at most, and whether there is a first.
func (u *unrolling) decided() bool {
	n := u.n
	u.trips, u.cond = math.MaxInt64, true
	if n.has(0) {
		t := n.im.known(n.in[0])
		if t == nil || t.Len() != 1 {
			return false
		}
		u.trips = t.Int(0)
	}
	if n.has(1) {
		t := n.im.known(n.in[1])
		if t == nil || t.Len() != 1 {
			return false
		}
		u.cond = t.Int(0) != 0
	}
	return n.ok()
}

// run writes the trips out. With trial set it says no to a loop of many trips, and to one whose condition is not known after a trip: nothing is
// reported then.
func (u *unrolling) run(trial bool) bool {
	n, g, carried, cond := u.n, u.g, u.carried, u.cond
	before := n.im.count
	if trial && u.trips > unrolledTrips && n.has(0) {
		return false
	}
	collected := make([][]*value, u.scans)
	for i := int64(0); i < u.trips && cond && n.ok() && n.spend(1); i++ {
		if trial && (i >= unrolledTrips || n.im.count-before > unrolledNodes) {
			return false
		}
		args := append([]*value{n.counter(&g.Inputs[0], ir.Scalar(i)), n.counter(&g.Inputs[1], ir.Scalar(true))}, carried...)
		out := n.body(g, args)
		if out == nil {
			return false
		}
		carried = out[1 : 1+len(carried)]
		for k := range collected {
			collected[k] = append(collected[k], out[1+len(carried)+k])
		}
		if i+1 < u.trips {
			if trial && n.im.known(out[0]) == nil {
				return false
			}
			cond, _ = n.truth(out[0], "the condition of its body")
		}
	}
	if n.ok() {
		copy(n.out, carried)
		n.stackAll(g, collected, len(carried), 1+len(carried), nil, nil)
	}
	return true
}

// stackAll sets outputs from first on: what the trips collected, one after the other along a new axis. The body's output for the first of
// them is number of.
func (n *node) stackAll(g *GraphProto, collected [][]*value, first, of int, axes, directions []int64) {
	for k, list := range collected {
		if !n.wants(first + k) {
			continue
		}
		axis := int64(0)
		if k < len(axes) {
			axis = axes[k]
		}
		if k < len(directions) && directions[k] == 1 {
			list = reversed(list)
		}
		if y := n.stack(list, axis, &g.Outputs[of+k]); n.ok() {
			n.out[first+k] = &value{typ: y.Type(), node: y, deps: union(list)}
		}
	}
}

func reversed[T any](l []T) []T {
	out := make([]T, len(l))
	for i, v := range l {
		out[len(l)-1-i] = v
	}
	return out
}

// stack puts values one after the other along a new axis. Nothing has the declared type.
func (n *node) stack(list []*value, axis int64, declared *ValueInfoProto) ir.Value {
	if len(list) == 0 {
		return n.nothing(axis, declared)
	}
	parts := make([]ir.Value, len(list))
	for i, v := range list {
		if parts[i] = n.get(v); !n.ok() {
			return ir.Value{}
		}
	}
	k := n.wrap(axis, parts[0].Rank()+1, "scan axis")
	if !n.ok() {
		return ir.Value{}
	}
	for i, x := range parts {
		parts[i] = withAxis(x, k)
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return op.Concat(k, parts...)
}

// nothing is the stack of no values.
func (n *node) nothing(axis int64, declared *ValueInfoProto) ir.Value {
	d, reason := dtype(declared.ElemType)
	if reason == "" && (!declared.HasShape || !staticShape(declared)) {
		reason = "it runs no trip, and the shape of what it would collect is not known"
	}
	if reason != "" {
		n.refuse("", "%s", reason)
		return ir.Value{}
	}
	k := n.wrap(axis, len(declared.Shape)+1, "scan axis")
	var shape []int64
	for i, dim := range declared.Shape {
		if i == k {
			shape = append(shape, 0)
		}
		shape = append(shape, dim.Value)
	}
	if k == len(declared.Shape) {
		shape = append(shape, 0)
	}
	t, err := ir.Zeros(d, shape...)
	if err != nil {
		n.fail("%w", err)
		return ir.Value{}
	}
	return n.im.g.Constant(t)
}

// withAxis is x with an axis of length 1 inserted.
func withAxis(x ir.Value, axis int) ir.Value {
	if axis > x.Rank() { // of a value that could not be made
		return x
	}
	shape := append([]ir.Dim{}, x.Shape()[:axis]...)
	shape = append(append(shape, ir.D(1)), x.Shape()[axis:]...)
	return op.Reshape(x, shape...)
}

// pick is x at index i of axis, without that axis.
func pick(x ir.Value, axis int, i int64) ir.Value {
	if axis >= x.Rank() { // of a value that could not be made
		return x
	}
	y := op.Slice(x, ir.Dims(i), ir.Dims(i+1), []int{axis}, nil)
	shape := append([]ir.Dim{}, x.Shape()[:axis]...)
	return op.Reshape(y, append(shape, x.Shape()[axis+1:]...)...)
}

func at(list []int64, i int) int64 {
	if i < len(list) {
		return list[i]
	}
	return 0
}

func buildScan9(n *node) {
	g, scans := n.graph("body"), int(n.i("num_scan_inputs"))
	states := len(n.in) - scans
	if scans < 1 || states < 0 || len(g.Outputs) < states {
		n.fail("num_scan_inputs is %d of %d inputs, its body has %d outputs", scans, len(n.in), len(g.Outputs))
	}
	xs := n.vals()
	if !n.ok() {
		n.im.survey(g)
		return
	}
	axes := make([]int, scans)
	for k, x := range xs[states:] {
		axes[k] = n.wrap(at(n.intList("scan_input_axes"), k), x.Rank(), "scan_input_axes")
	}
	if !n.ok() {
		return
	}
	if n.scanLoop(g, n.in[:states], xs[states:], axes) {
		return
	}
	carried, collected := n.unroll(g, n.in[:states], xs[states:], axes, n.intList("scan_input_directions"))
	if n.ok() {
		copy(n.out, carried)
		n.stackAll(g, collected, states, states, n.intList("scan_output_axes"), n.intList("scan_output_directions"))
	}
}

// unroll runs the body of a Scan once for each index of the scanned axes.
func (n *node) unroll(g *GraphProto, carried []*value, xs []ir.Value, axes []int, directions []int64) ([]*value, [][]*value) {
	length, ok := xs[0].Dim(axes[0]).Static()
	if !ok {
		n.refuse("", "its length is %s, expected one that is known before the run", xs[0].Dim(axes[0]))
		n.im.survey(g)
		return nil, nil
	}
	d := union(n.in)
	collected := make([][]*value, len(g.Outputs)-len(carried))
	if !n.spend(length) {
		return nil, nil
	}
	for i := range length {
		args := append([]*value{}, carried...)
		for k, x := range xs {
			from := i
			if at(directions, k) == 1 {
				from = length - 1 - i
			}
			y := pick(x, axes[k], from)
			if y.Poisoned() {
				n.fail("scan input %d has length %s, expected %d", k, x.Dim(axes[k]), length)
				return nil, nil
			}
			args = append(args, &value{typ: y.Type(), node: y, deps: d})
		}
		out := n.body(g, args)
		if out == nil {
			return nil, nil
		}
		carried = out[:len(carried)]
		for k := range collected {
			collected[k] = append(collected[k], out[len(carried)+k])
		}
	}
	return carried, collected
}

// buildScan8 reads the first form of Scan: all operands have a batch axis, and the rows of a batch run apart.
func buildScan8(n *node) {
	g, scans := n.graph("body"), int(n.i("num_scan_inputs"))
	states := len(n.in) - 1 - scans
	if scans < 1 || states < 0 || len(g.Outputs) < states {
		n.fail("num_scan_inputs is %d of %d inputs, its body has %d outputs", scans, len(n.in), len(g.Outputs))
	}
	if n.has(0) {
		n.refuse("", "input 0 (sequence_lens) is not supported")
	}
	for i := 1; i < len(n.in); i++ {
		if !n.has(i) {
			n.fail("input %d is missing", i)
		}
	}
	if !n.ok() {
		n.im.survey(g)
		return
	}
	xs := make([]ir.Value, len(n.in)-1)
	for i := range xs {
		xs[i] = n.val(i + 1)
	}
	if !n.ok() {
		return
	}
	batch, ok := xs[0].Dim(0).Static()
	if !ok || batch == 0 {
		n.refuse("", "its batch is %s, expected a known one", xs[0].Dim(0))
		return
	}
	if !n.spend(batch) {
		return
	}
	d := union(n.in)
	results := make([][]*value, len(g.Outputs))
	for b := range batch {
		var carried []*value
		var rows []ir.Value
		for i, x := range xs {
			row := pick(x, 0, b)
			if i < states {
				carried = append(carried, &value{typ: row.Type(), node: row, deps: d})
			} else {
				rows = append(rows, row)
			}
		}
		last, collected := n.unroll(g, carried, rows, make([]int, scans), n.intList("directions"))
		if !n.ok() {
			return
		}
		for i, v := range last {
			results[i] = append(results[i], v)
		}
		for k, list := range collected {
			y := n.stack(list, 0, &g.Outputs[states+k])
			results[states+k] = append(results[states+k], &value{typ: y.Type(), node: y, deps: d})
		}
	}
	n.stackAll(g, results, 0, 0, nil, nil)
}
