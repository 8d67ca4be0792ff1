package op

import (
	"slices"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// IfAttrs are the attributes of If.
type IfAttrs struct {
	ThenBranch *ir.Graph
	ElseBranch *ir.Graph
}

// WhileAttrs are the attributes of While. NumCarries is nil for all operands.
type WhileAttrs struct {
	Cond       *ir.Graph
	Body       *ir.Graph
	NumCarries *int64 `default:"nil" min:"0" c:"C4"`
	MaxTrips   int64  `default:"-1"`
	NumEmits   int64  `default:"0" min:"0" c:"C2"`
	// Capacity is the rows that a run has memory for, of each stack of emitted values. It is set by inference: a symbol of the node, that the
	// runtime binds, or MaxTrips where every run makes as many trips.
	Capacity []ir.Dim `default:"nil"`
}

// ScanAttrs are the attributes of Scan. Length is nil where the operands that are scanned tell it.
type ScanAttrs struct {
	Body           *ir.Graph
	Length         *int64 `default:"nil" min:"0" c:"C1"`
	NumCarries     int64  `default:"1" min:"0"`
	NumCaptures    int64  `default:"0" min:"0"`
	Reverse        bool   `default:"false"`
	NumCheckpoints int64  `default:"0" min:"0" c:"C5"`
}

var (
	ifOp    = ir.Declare[IfAttrs]("control", "If")
	whileOp = ir.Declare[WhileAttrs]("control", "While")
	scanOp  = ir.Declare[ScanAttrs]("control", "Scan")
)

// Branch adds the nodes of a branch to g, a graph of its own in which captures are inputs, and returns what it gives.
type Branch func(g *ir.Graph, captures []ir.Value) []ir.Value

// If returns the results of then where pred holds, else those of otherwise:
//
//	(y_1, ...) = pred ? then(captures) : otherwise(captures)
//
// pred is a bool of one element; a condition for each element is Where. Each branch is a graph of its own: it reads its arguments, which
// are the captures, and constants of its own. Both return as many values, of the same dtypes and shapes. Only the branch that is
// taken runs. Like jax.lax.cond, and ONNX's If with the captures written out.
func If(pred ir.Value, captures []ir.Value, then, otherwise Branch) []ir.Value {
	a := IfAttrs{ir.SubGraph("then", len(captures), then), ir.SubGraph("else", len(captures), otherwise)}
	return ifOp.Apply(a, append([]ir.Value{pred}, captures...)...)
}

// WhileOptions bound a While.
type WhileOptions struct {
	Bounded  bool  // at most MaxTrips trips
	MaxTrips int64 // ends the loop without an error
	NumEmits int   // values that body returns beside the carries
}

// While runs body as long as cond holds:
//
//	v = init; n = 0; while (n < MaxTrips) and cond(v, captures): (v, e) = body(v, captures); n += 1
//
// It returns the carries v after the last trip, then for each emitted value e the stack [n, *e] of what the trips emitted. cond gives one bool of
// one element and is asked before every trip; body returns the carries, of unchanged dtype and shape, and then the emitted values. The
// length of a stack is known only after the run: it may only be an output of the graph. cond and body are graphs of their own, as in If.
// Like jax.lax.while_loop and ONNX's Loop.
func While(init, captures []ir.Value, cond func(g *ir.Graph, carries, captures []ir.Value) ir.Value, body func(g *ir.Graph, carries, captures []ir.Value) []ir.Value, o WhileOptions) []ir.Value {
	n, all := len(init), len(init)+len(captures)
	carries, trips := int64(n), int64(-1)
	if o.Bounded {
		trips = max(o.MaxTrips, 0)
	}
	a := WhileAttrs{NumCarries: &carries, MaxTrips: trips, NumEmits: int64(o.NumEmits)}
	if cond != nil {
		a.Cond = ir.SubGraph("cond", all, func(g *ir.Graph, in []ir.Value) []ir.Value { return []ir.Value{cond(g, in[:n:n], in[n:])} })
	}
	if body != nil {
		a.Body = ir.SubGraph("body", all, func(g *ir.Graph, in []ir.Value) []ir.Value { return body(g, in[:n:n], in[n:]) })
	}
	out := whileOp.Apply(a, append(append([]ir.Value{}, init...), captures...)...)
	return out[:min(len(out), max(n+o.NumEmits, 1))]
}

// ScanOptions change a Scan.
type ScanOptions struct {
	Length      int64 // steps, where xs is empty
	Reverse     bool  // from the last step to the first
	Checkpoints int64 // carries to save, see Scan
}

// Scan runs body for each index of the first axis of xs:
//
//	for step s = 0 .. T-1, t = s (reversed: T-1-s): (c, y[t]) = body(c, captures, xs[t])
//
// It returns the carries after the last step, the stacks [T, *y], and with Checkpoints = K > 0 for each carry the stack [min(K, T), *c] whose row k is the
// carry that enters step floor(k T / min(K, T)). body gets the carries, the captures and a row of each xs, and returns the carries, of unchanged dtype and
// shape, and then the ys. It is a graph of its own, as in If. Like jax.lax.scan and ONNX's Scan.
func Scan(init, captures, xs []ir.Value, body func(g *ir.Graph, carries, captures, xs []ir.Value) []ir.Value, o ScanOptions) []ir.Value {
	c, b := len(init), len(init)+len(captures)
	a := ScanAttrs{NumCarries: int64(c), NumCaptures: int64(len(captures)), Reverse: o.Reverse, NumCheckpoints: o.Checkpoints}
	if len(xs) == 0 {
		a.Length = &o.Length
	}
	if body != nil {
		a.Body = ir.SubGraph("body", b+len(xs), func(g *ir.Graph, in []ir.Value) []ir.Value { return body(g, in[:c:c], in[c:b:b], in[b:]) })
	}
	return scanOp.Apply(a, append(append(append([]ir.Value{}, init...), captures...), xs...)...)
}

// IfGraphs, WhileGraphs and ScanGraphs are If, While and Scan of sub-graphs that exist: of a model's file. The operands are those of the node. While
// with emitted values has one more result: the number of trips, an i64 of rank 0.
func IfGraphs(pred ir.Value, captures []ir.Value, then, otherwise *ir.Graph) []ir.Value {
	return ifOp.Apply(IfAttrs{then, otherwise}, append([]ir.Value{pred}, captures...)...)
}

// WhileGraphs: see IfGraphs.
func WhileGraphs(g *ir.Graph, a WhileAttrs, operands ...ir.Value) []ir.Value {
	return whileOp.ApplyIn(g, a, operands...)
}

// ScanGraphs: see IfGraphs.
func ScanGraphs(g *ir.Graph, a ScanAttrs, operands ...ir.Value) []ir.Value {
	return scanOp.ApplyIn(g, a, operands...)
}

func init() {
	ifOp.Define(ir.Def[IfAttrs]{
		Doc:     "(y_1, ...) = pred ? then_branch(captures) : else_branch(captures)",
		In:      []ir.Operand{ir.In("pred", ir.Set(ir.Bool)).Cite("C1"), ir.Any("captures", ir.AnyDType)},
		Results: []string{"y..."},
		Bits:    ir.Control,
		Infer:   inferIf,
		Inline:  inlineIf,
		NoGrad:  "not written yet",
	})
	whileOp.Define(ir.Def[WhileAttrs]{
		Doc:     "v = init; n = 0; while (max_trips < 0 or n < max_trips) and cond(v, captures): (v, e) = body(v, captures); n += 1",
		In:      []ir.Operand{ir.Any("operands", ir.AnyDType)},
		Results: []string{"y..."},
		Bits:    ir.Control,
		Infer:   inferWhile,
		Inline:  inlineWhile,
		NoGrad:  "not written yet",
	})
	scanOp.Define(ir.Def[ScanAttrs]{
		Doc:       "for step s = 0..T-1, t = s (reverse: T-1-s): (c, y[t]) = body(c, captures, xs[t])",
		In:        []ir.Operand{ir.Any("operands", ir.AnyDType)},
		Results:   []string{"y..."},
		Bits:      ir.Control,
		Infer:     inferScan,
		Decompose: unrollScan,
		NoGrad:    "not written yet",
	})
}

// oneBool says whether t can be a condition.
func oneBool(t ir.Type) bool {
	return t.DType == ir.Bool && len(t.Shape) <= 1 && (len(t.Shape) == 0 || !t.Shape[0].Differs(ir.D(1)))
}

func inferIf(t *ir.Infer, a *IfAttrs) {
	if !t.Need(oneBool(t.Type(0)), "C1", "pred is %s, expected a bool of one element", t.Type(0)) {
		return
	}
	captures := t.Types(1, t.Len())
	for _, b := range []struct {
		name string
		g    *ir.Graph
	}{{"then_branch", a.ThenBranch}, {"else_branch", a.ElseBranch}} {
		if b.g != nil && !t.Need(b.g.NumInputs() == len(captures), "C2", "%s takes %d values, expected the %d captures", b.name, b.g.NumInputs(), len(captures)) {
			return
		}
	}
	if pred, ok := t.In(0).Const(); ok { // the other branch is never run, and may be wrong
		taken := &a.ElseBranch
		if pred.Int(0) != 0 {
			taken = &a.ThenBranch
		}
		if *taken = t.Sub(*taken, "the branch taken", captures); t.OK() {
			a.ThenBranch, a.ElseBranch = *taken, *taken
			t.Out((*taken).OutputTypes()...)
		}
		return
	}
	if a.ThenBranch = t.Sub(a.ThenBranch, "then_branch", captures); !t.OK() {
		return
	}
	if a.ElseBranch = t.Sub(a.ElseBranch, "else_branch", captures); !t.OK() {
		return
	}
	then, other := a.ThenBranch.OutputTypes(), a.ElseBranch.OutputTypes()
	if !t.Need(len(then) == len(other), "C3", "then_branch gives %d values and else_branch %d, expected as many", len(then), len(other)) {
		return
	}
	for i := range then {
		t.Need(sameType(then[i], other[i]), "C3", "result %d is %s in then_branch and %s in else_branch, expected one type", i, then[i], other[i])
		if !t.OK() {
			return
		}
		shape := slices.Clone(then[i].Shape) // which is the branch's own
		for k, d := range shape {            // a dim that only one branch knows
			if !d.IsStatic() && other[i].Shape[k].IsStatic() {
				shape[k] = other[i].Shape[k]
			}
		}
		then[i].Shape = shape
	}
	t.Out(then...)
}

// freshDraws wants every random tensor in the body of a loop to have a step: without one each trip would draw the same numbers.
func freshDraws(t *ir.Infer, g *ir.Graph) bool {
	g.EachNode(func(n *ir.Node) {
		random := n.Row == rngUniform.Row() || n.Row == rngNormal.Row()
		t.Need(!random || len(n.In) > 1 && !n.In[1].IsZero(), "", "%s: C6: %s has no step, expected one in the body of a loop", n.Row.Name, n)
	})
	return t.OK()
}

func sameType(a, b ir.Type) bool { return a.DType == b.DType && ir.SameShape(a.Shape, b.Shape) }

// inlineIf writes the branch in place of the node where the predicate is a constant.
func inlineIf(n *ir.Node, a *IfAttrs) []ir.Value {
	pred, ok := n.In[0].Const()
	if !ok {
		return nil
	}
	taken := a.ElseBranch
	if pred.Int(0) != 0 {
		taken = a.ThenBranch
	}
	return splice(n, taken, n.In[1:])
}

func splice(n *ir.Node, g *ir.Graph, in []ir.Value) []ir.Value {
	out, err := n.Graph().Splice(g, in)
	if err != nil {
		n.Graph().Fail(n.Row.Name, err)
		return nil
	}
	return out
}

func inferWhile(t *ir.Infer, a *WhileAttrs) {
	n := t.Len()
	if a.NumCarries != nil {
		if !t.Need(*a.NumCarries <= int64(n), "C4", "num_carries is %d, expected at most the %d operands", *a.NumCarries, n) {
			return
		}
		n = int(*a.NumCarries)
	}
	types := t.Types(0, t.Len())
	if a.Cond = t.Sub(a.Cond, "cond", types); !t.OK() {
		return
	}
	cond := a.Cond.OutputTypes()
	if len(cond) != 1 || !oneBool(cond[0]) {
		t.Need(false, "C1", "cond gives %v, expected one bool of one element", cond)
		return
	}
	if a.Body = t.Sub(a.Body, "body", types); !t.OK() {
		return
	}
	if !freshDraws(t, a.Cond) || !freshDraws(t, a.Body) {
		return
	}
	body := a.Body.OutputTypes()
	if !t.Need(len(body) == n+int(a.NumEmits), "C2", "body gives %d values, expected %d carries and %d emitted values", len(body), n, a.NumEmits) {
		return
	}
	out := make([]ir.Type, 0, len(body)+1)
	for i := range n {
		t.Need(sameType(body[i], types[i]), "C3", "carry %d is %s, body gives %s, expected one type", i, types[i], body[i])
		out = append(out, types[i])
	}
	if a.NumEmits == 0 {
		t.Out(out...)
		return
	}
	if trips, ok := a.certain(); ok {
		a.Capacity = ir.Dims(trips)
	}
	if a.Capacity == nil {
		a.Capacity = []ir.Dim{t.Measured(len(body))}
	}
	if !t.Need(len(a.Capacity) == 1, "", "capacity has %d entries, expected one", len(a.Capacity)) {
		return
	}
	for _, e := range body[n:] {
		out = append(out, ir.Type{DType: e.DType, Shape: append([]ir.Dim{a.Capacity[0]}, e.Shape...)})
	}
	t.Out(append(out, ir.Type{DType: ir.I64, Shape: []ir.Dim{}})...)
}

// certain is how many trips every run makes, where that is known: cond is a constant.
func (a *WhileAttrs) certain() (trips int64, ok bool) {
	cond, ok := a.Cond.Outputs[0].Value.Const()
	switch {
	case !ok:
		return 0, false
	case cond.Int(0) == 0:
		return 0, true
	}
	return a.MaxTrips, a.MaxTrips >= 0
}

// inlineWhile makes a Scan of a loop that always runs max_trips trips.
func inlineWhile(n *ir.Node, a *WhileAttrs) []ir.Value {
	trips, ok := a.certain()
	if !ok {
		return nil
	}
	carries := len(n.In)
	if a.NumCarries != nil {
		carries = int(*a.NumCarries)
	}
	s := ScanAttrs{Body: a.Body, Length: &trips, NumCarries: int64(carries), NumCaptures: int64(len(n.In) - carries)}
	out := scanOp.ApplyIn(n.Graph(), s, n.In...)
	if a.NumEmits > 0 {
		out = append(out, n.Graph().Constant(ir.Scalar(trips)))
	}
	return out
}

// scanned is what a Scan is made of: its length, and the number of values that body takes before the rows of xs.
func (a *ScanAttrs) scanned(xs []ir.Type) (length ir.Dim, ok bool) {
	switch {
	case a.Length != nil:
		return ir.D(*a.Length), true
	case len(xs) > 0 && len(xs[0].Shape) > 0:
		return xs[0].Shape[0], true
	}
	return ir.Dim{}, false
}

func inferScan(t *ir.Infer, a *ScanAttrs) {
	c, b := a.NumCarries, a.NumCaptures
	if !t.Need(c <= int64(t.Len()) && b <= int64(t.Len())-c, "C5", "num_carries is %d and num_captures %d, expected at most the %d operands", c, b, t.Len()) {
		return
	}
	first := int(c + b)
	xs := t.Types(first, t.Len())
	types := t.Types(0, first)
	length, ok := a.scanned(xs)
	if !t.Need(ok || len(xs) > 0, "C1", "no length and nothing scanned, expected a length or xs that tell it") {
		return
	}
	for i, x := range xs {
		if !t.Need(len(x.Shape) > 0, "C2", "xs %d has rank 0, expected at least 1", i) || !t.Need(!x.Shape[0].Differs(length), "C2", "xs %d has length %s, expected %s", i, x.Shape[0], length) {
			return
		}
		types = append(types, ir.Type{DType: x.DType, Shape: x.Shape[1:]})
	}
	if a.Body != nil && !t.Need(a.Body.NumInputs() == len(types), "C3", "body takes %d values, expected %d carries, %d captures and a row of %d xs", a.Body.NumInputs(), c, b, len(xs)) {
		return
	}
	if a.Body = t.Sub(a.Body, "body", types); !t.OK() {
		return
	}
	if !freshDraws(t, a.Body) {
		return
	}
	body := a.Body.OutputTypes()
	if !t.Need(int64(len(body)) >= c, "C3", "body gives %d values, expected at least the %d carries", len(body), c) {
		return
	}
	out := make([]ir.Type, 0, len(body)+int(c))
	for i := range int(c) {
		t.Need(sameType(body[i], types[i]), "C4", "carry %d is %s, body gives %s, expected one type", i, types[i], body[i])
		out = append(out, types[i])
	}
	stack := func(rows ir.Dim, of ir.Type) {
		out = append(out, ir.Type{DType: of.DType, Shape: append([]ir.Dim{rows}, of.Shape...)})
	}
	for _, y := range body[c:] {
		stack(length, y)
	}
	if a.NumCheckpoints > 0 {
		for i := range int(c) {
			stack(length.Min(ir.D(a.NumCheckpoints)), types[i])
		}
	}
	t.Out(out...)
}

// The most that unrollScan writes out: steps, and nodes of all steps together.
const (
	unrollMaxLength = 64
	unrollBudget    = 4096
)

// unrollScan writes the steps out one after the other.
func unrollScan(n *ir.Node, a *ScanAttrs) []ir.Value {
	first := int(a.NumCarries + a.NumCaptures)
	xs := n.In[first:]
	types := make([]ir.Type, len(xs))
	for i, x := range xs {
		types[i] = x.Type()
	}
	dim, _ := a.scanned(types)
	length, ok := dim.Static()
	if !ok || length == 0 || length > unrollMaxLength || length*int64(len(a.Body.Nodes)) > unrollBudget {
		return nil
	}
	c := int(a.NumCarries)
	carries := n.In[:c:c]
	ys := make([][]ir.Value, len(a.Body.Outputs)-c)
	for i := range ys {
		ys[i] = make([]ir.Value, length)
	}
	var entering [][]ir.Value // carries, by step
	for s := range length {
		t := s
		if a.Reverse {
			t = length - 1 - s
		}
		entering = append(entering, carries)
		in := append(append([]ir.Value{}, carries...), n.In[c:first]...)
		for _, x := range xs {
			in = append(in, row(x, t))
		}
		out := splice(n, a.Body, in)
		if out == nil {
			return nil
		}
		carries = out[:c:c]
		for i, y := range out[c:] {
			ys[i][t] = y
		}
	}
	results := append([]ir.Value{}, carries...)
	for _, list := range ys {
		results = append(results, stacked(list))
	}
	if k := min(a.NumCheckpoints, length); k > 0 {
		for i := range c {
			saved := make([]ir.Value, k)
			for j := range k {
				saved[j] = entering[j*length/k][i]
			}
			results = append(results, stacked(saved))
		}
	}
	return results
}

// row is x at index t of the first axis, without that axis.
func row(x ir.Value, t int64) ir.Value {
	return Reshape(Slice(x, ir.Dims(t), ir.Dims(t+1), []int{0}, nil), x.Shape()[1:]...)
}

// stacked puts values one after the other along a new first axis.
func stacked(list []ir.Value) ir.Value {
	parts := make([]ir.Value, len(list))
	for i, v := range list {
		parts[i] = Reshape(v, append(ir.Dims(1), v.Shape()...)...)
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return Concat(0, parts...)
}
