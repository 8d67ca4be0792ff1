package pass

import (
	"slices"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// Views writes moves of data in one way: moves that change nothing are dropped, chains of them become one, and pieces that are put together again are what
// they were cut from. What stays shows computations that later passes look for, and copies less.
var Views = Pass{
	Name: "views",
	Doc:  "drops moves of data that change nothing and writes chains of them as one",
	Rules: []Rule{
		{"same", sameRule},
		{"same pad", samePadRule},
		{"same tile", sameTileRule},
		{"same roll", sameRollRule},
		{"same resize", sameResizeRule},
		{"reshape of reshape", reshapeReshapeRule},
		{"reshape of transpose", splitTransposeRule},
		{"transpose of transpose", transposeTransposeRule},
		{"transpose of ones", transposeOnesRule},
		{"expand of expand", expandExpandRule},
		{"expand in broadcast", broadcastExpandRule},
		{"narrow", narrowRule},
		{"slice as narrow", sliceNarrowRule},
		{"reverse of reverse", reverseReverseRule},
		{"narrow of concat", narrowConcatRule},
		{"concat", concatRule},
		{"concat of pieces", concatPiecesRule},
		{"gather as narrow", gatherNarrowRule},
		{"where by constant", whereConstantRule},
	},
}

// maxScanned is how many elements of a constant rules look at.
const maxScanned = 1024

func sameShape(a, b []ir.Dim) bool { return slices.Equal(a, b) }

// made is the node that makes v if it is of the given kind; else nil.
func made(v ir.Value, row string) *ir.Node {
	if n := v.Node(); n != nil && n.Row != nil && n.Row.Name == row {
		return n
	}
	return nil
}

// reshape is x under another shape of as many elements, without a node where it has that shape.
func reshape(x ir.Value, shape []ir.Dim) ir.Value {
	if sameShape(x.Shape(), shape) {
		return x
	}
	return op.Reshape(x, shape...)
}

// sameRule drops nodes that give their operand.
func sameRule(m *Match) []ir.Value {
	if len(m.In) == 0 || m.In[0].IsZero() || len(m.Types) != 1 || !m.In[0].Type().Equal(m.Types[0]) {
		return nil
	}
	same := false
	switch a := m.Attrs.(type) {
	case *op.ReshapeAttrs, *op.NarrowAttrs: // of a narrow, the whole axis
		same = true
	case *op.ElementwiseAttrs:
		same = m.Row.Name == "StopGradient" // gradients have been taken
	case *op.TransposeAttrs:
		same = slices.IsSorted(permOf(a, m.In[0].Rank()))
	case *op.ExpandAttrs:
		same = expandKeeps(a, m.In[0].Shape())
	case *op.CastAttrs:
		same = ir.Set(ir.F16, ir.BF16, ir.F32, ir.F64, ir.Bool, ir.I8, ir.U8, ir.I16, ir.U16, ir.I32, ir.U32, ir.I64, ir.U64, ir.C64).Has(a.Dtype)
	case *op.ReverseAttrs:
		same = !slices.ContainsFunc(a.Axes, func(axis int64) bool { return !m.In[0].Dim(int(axis)).Is(1) })
	case *op.SliceAttrs: // a step of one that leaves the length starts at 0
		same = !slices.ContainsFunc(a.Steps, func(step int64) bool { return step != 1 })
	case *op.ConcatAttrs:
		same = len(m.In) == 1
	case *op.Interpolate3dAttrs:
		same = true
	}
	if !same {
		return nil
	}
	return []ir.Value{m.In[0]}
}

// expandKeeps says that no entry of the shape asks anything of x: symbols must be x's own.
func expandKeeps(a *op.ExpandAttrs, shape []ir.Dim) bool {
	for i, want := range a.Shape {
		if k := i - (len(a.Shape) - len(shape)); k < 0 || !want.Is(1) && !want.Is(-1) && want != shape[k] {
			return false
		}
	}
	return true
}

// permOf is a transpose's permutation, wrapped and written out.
func permOf(a *op.TransposeAttrs, rank int) []int {
	perm := make([]int, rank)
	for k := range perm {
		perm[k] = rank - 1 - k
		if len(a.Perm) > 0 {
			perm[k], _ = ir.WrapAxis(int(a.Perm[k]), rank)
		}
	}
	return perm
}

func samePadRule(m *Match) []ir.Value {
	a, ok := m.Attrs.(*op.PadAttrs)
	if !ok || slices.ContainsFunc(a.Padding, func(d ir.Dim) bool { return !d.Is(0) }) {
		return nil
	}
	return []ir.Value{m.In[0]}
}

func sameTileRule(m *Match) []ir.Value {
	a, ok := m.Attrs.(*op.TileAttrs)
	if !ok || slices.ContainsFunc(a.Repeats, func(d ir.Dim) bool { return !d.Is(1) }) {
		return nil
	}
	return []ir.Value{reshape(m.In[0], m.Types[0].Shape)} // more repeats than axes give axes of 1
}

func sameRollRule(m *Match) []ir.Value {
	a, ok := m.Attrs.(*op.RollAttrs)
	if !ok {
		return nil
	}
	for _, axis := range a.Axes {
		k, _ := ir.WrapAxis(int(axis), m.In[0].Rank())
		d, static := m.In[0].Dim(k).Static()
		if !static || a.Total(k, m.In[0].Rank(), d) != 0 {
			return nil
		}
	}
	return []ir.Value{m.In[0]}
}

func sameResizeRule(m *Match) []ir.Value {
	a, ok := m.Attrs.(*op.ResizeAttrs)
	if !ok || !m.In[0].Type().Equal(m.Types[0]) {
		return nil
	}
	in, ok := ir.StaticShape(m.In[0].Shape())
	if !ok || a.CoordinateMode == op.CropAndResize || slices.ContainsFunc(a.Scales, func(s float64) bool { return float32(s) != 1 }) {
		return nil
	}
	if len(a.Taps(in, in)) > 0 {
		return nil
	}
	return []ir.Value{m.In[0]}
}

// reshapeReshapeRule reads behind a reshape. Where counts of elements are not surely equal the first one is a check that must stay.
func reshapeReshapeRule(m *Match) []ir.Value {
	if m.Row.Name != "Reshape" {
		return nil
	}
	r := made(m.In[0], "Reshape")
	if r == nil || ir.Count(r.In[0].Shape()) != ir.Count(m.In[0].Shape()) {
		return nil
	}
	return []ir.Value{reshape(r.In[0], m.Types[0].Shape)}
}

// splitTransposeRule is for axes that were merged, moved and split again: [12b, s, d] -> [12b, d, s] between [b, 12, s, d] and [b, 12, d, s]. They move as
// they are.
func splitTransposeRule(m *Match) []ir.Value {
	if m.Row.Name != "Reshape" {
		return nil
	}
	t := made(m.In[0], "Transpose")
	if t == nil {
		return nil
	}
	r := made(t.In[0], "Reshape")
	if r == nil {
		return nil
	}
	x := r.In[0]
	groups, ok := groupAxes(x.Shape(), r.Types[0].Shape)
	if !ok {
		return nil
	}
	var perm []int
	var shape []ir.Dim
	for _, k := range permOf(t.Attrs.(*op.TransposeAttrs), r.Out(0).Rank()) {
		for axis := groups[k][0]; axis < groups[k][1]; axis++ {
			perm, shape = append(perm, axis), append(shape, x.Dim(axis))
		}
	}
	if !sameShape(shape, m.Types[0].Shape) {
		return nil
	}
	return []ir.Value{op.Transpose(x, perm...)}
}

// groupAxes finds the axes of x that each axis of y is made of, where y merges neighbours only.
func groupAxes(x, y []ir.Dim) (groups [][2]int, ok bool) {
	i := 0
	for k, want := range y {
		begin, have := i, ir.D(1)
		for i < len(x) && (have != want || i == begin || k == len(y)-1) {
			have = have.Mul(x[i])
			i++
		}
		if have != want {
			return nil, false
		}
		groups = append(groups, [2]int{begin, i})
	}
	return groups, i == len(x)
}

func transposeTransposeRule(m *Match) []ir.Value {
	a, ok := m.Attrs.(*op.TransposeAttrs)
	if !ok {
		return nil
	}
	t := made(m.In[0], "Transpose")
	if t == nil {
		return nil
	}
	rank := m.In[0].Rank()
	inner, perm := permOf(t.Attrs.(*op.TransposeAttrs), rank), permOf(a, rank)
	for k, p := range perm {
		perm[k] = inner[p]
	}
	if slices.IsSorted(perm) {
		return []ir.Value{t.In[0]}
	}
	return []ir.Value{op.Transpose(t.In[0], perm...)}
}

// transposeOnesRule is for transposes that move nothing but axes of length 1.
func transposeOnesRule(m *Match) []ir.Value {
	a, ok := m.Attrs.(*op.TransposeAttrs)
	if !ok || !movesOnes(permOf(a, m.In[0].Rank()), m.In[0].Shape()) {
		return nil
	}
	return []ir.Value{reshape(m.In[0], m.Types[0].Shape)}
}

// movesOnes says that the axes which are longer than 1 keep their order.
func movesOnes(perm []int, shape []ir.Dim) bool {
	last := -1
	for _, p := range perm {
		if shape[p].Is(1) {
			continue
		}
		if p < last {
			return false
		}
		last = p
	}
	return true
}

func expandExpandRule(m *Match) []ir.Value {
	if m.Row.Name != "Expand" {
		return nil
	}
	e := made(m.In[0], "Expand")
	if e == nil {
		return nil
	}
	x, out := e.In[0], m.Types[0].Shape
	for k := 1; k <= x.Rank(); k++ {
		if d := x.Dim(-k); !d.Is(1) && d != out[len(out)-k] {
			return nil
		}
	}
	for k := 1; k <= m.In[0].Rank(); k++ { // what the first one asks of its symbols must not get lost
		if d := m.In[0].Dim(-k); !d.Is(1) && d != out[len(out)-k] {
			return nil
		}
	}
	return []ir.Value{op.Expand(x, out...)}
}

// broadcastExpandRule drops an Expand in front of a node that broadcasts anyway.
func broadcastExpandRule(m *Match) []ir.Value {
	if !slices.Contains([]string{"Binary", "Compare", "Where", "Fma"}, m.Row.Name) {
		return nil
	}
	out := m.Types[0].Shape
	in := slices.Clone(m.In)
	changed := false
	for i, v := range in {
		e := made(v, "Expand")
		if e == nil || slices.ContainsFunc(alignedPairs(v.Shape(), out), func(p [2]ir.Dim) bool { return p[0] != p[1] && !p[0].Is(1) }) {
			continue
		}
		in[i] = e.In[0]
		shapes := make([][]ir.Dim, len(in))
		for k, w := range in {
			shapes[k] = w.Shape()
		}
		if shape, ok := ir.Broadcast(shapes...); !ok || !sameShape(shape, out) {
			in[i] = v
			continue
		}
		changed = true
	}
	if !changed {
		return nil
	}
	return again(m, in...)
}

// alignedPairs are the dims of a with those of b that they meet, b having as many axes or more.
func alignedPairs(a, b []ir.Dim) [][2]ir.Dim {
	var pairs [][2]ir.Dim
	for k := range a {
		pairs = append(pairs, [2]ir.Dim{a[k], b[len(b)-len(a)+k]})
	}
	return pairs
}

// again is the node of m with other operands.
func again(m *Match, in ...ir.Value) []ir.Value { return anew(m.Node, m.Attrs, in...) }

// anew adds a node of n's kind.
func anew(n *ir.Node, attrs any, in ...ir.Value) []ir.Value {
	g := n.Graph()
	c, err := g.Add(n.Row, "", attrs, in...)
	if err != nil {
		return []ir.Value{g.Fail(n.Row.Name, err)}
	}
	return c.Results()
}

// piece is a Narrow of an axis of known length, with axis and start counted from 0.
type piece struct {
	x             ir.Value
	axis          int
	start, length int64
}

func pieceOf(n *ir.Node) (p piece, ok bool) {
	a, ok := n.Attrs.(*op.NarrowAttrs)
	if !ok {
		return p, false
	}
	p = piece{x: n.In[0], start: a.Start, length: a.Length}
	p.axis, _ = ir.WrapAxis(a.Axis, p.x.Rank())
	d, static := p.x.Dim(p.axis).Static()
	if p.start < 0 {
		p.start += d
	}
	return p, static && p.start >= 0
}

func (p piece) value() ir.Value {
	if p.x.Dim(p.axis).Is(p.length) {
		return p.x
	}
	return op.Narrow(p.x, p.axis, p.start, p.length)
}

// narrowRule is a piece of a piece, whatever other pieces lie between them.
func narrowRule(m *Match) []ir.Value {
	p, ok := pieceOf(m.Node)
	if !ok {
		return nil
	}
	n := made(p.x, "Narrow")
	if n == nil {
		return nil
	}
	q, ok := pieceOf(n)
	if !ok || q.axis != p.axis {
		return nil
	}
	return []ir.Value{piece{q.x, q.axis, q.start + p.start, p.length}.value()}
}

// sliceNarrowRule writes slices with steps of one along axes of known length as narrows, where they leave something.
func sliceNarrowRule(m *Match) []ir.Value {
	a, ok := m.Attrs.(*op.SliceAttrs)
	if !ok || slices.ContainsFunc(a.Steps, func(step int64) bool { return step != 1 }) {
		return nil
	}
	pieces := make([]piece, len(a.Starts))
	for i := range pieces {
		axis := i
		if len(a.Axes) > 0 {
			axis, _ = ir.WrapAxis(int(a.Axes[i]), m.In[0].Rank())
		}
		d, okD := m.In[0].Dim(axis).Static()
		start, okStart := a.Starts[i].Static()
		length, okLength := m.Types[0].Shape[axis].Static()
		if !okD || !okStart || !okLength || length == 0 {
			return nil
		}
		if start < 0 {
			start = max(start+d, 0)
		}
		pieces[i] = piece{axis: axis, start: start, length: length}
	}
	x := m.In[0]
	for _, p := range pieces {
		p.x = x
		x = p.value()
	}
	return []ir.Value{x}
}

func reverseReverseRule(m *Match) []ir.Value {
	a, ok := m.Attrs.(*op.ReverseAttrs)
	if !ok {
		return nil
	}
	r := made(m.In[0], "Reverse")
	if r == nil {
		return nil
	}
	flipped := make([]bool, m.In[0].Rank())
	for _, list := range [][]int64{a.Axes, r.Attrs.(*op.ReverseAttrs).Axes} {
		for _, axis := range list {
			k, _ := ir.WrapAxis(int(axis), len(flipped))
			flipped[k] = !flipped[k]
		}
	}
	var axes []int
	for k, f := range flipped {
		if f {
			axes = append(axes, k)
		}
	}
	if axes == nil {
		return []ir.Value{r.In[0]}
	}
	return []ir.Value{op.Reverse(r.In[0], axes...)}
}

// narrowConcatRule is a piece that lies in one of the parts that were joined.
func narrowConcatRule(m *Match) []ir.Value {
	p, ok := pieceOf(m.Node)
	if !ok || p.length == 0 {
		return nil
	}
	c := made(p.x, "Concat")
	if c == nil {
		return nil
	}
	if axis, _ := ir.WrapAxis(c.Attrs.(*op.ConcatAttrs).Axis, p.x.Rank()); axis != p.axis {
		return nil
	}
	at := int64(0)
	for _, v := range c.In {
		d, static := v.Dim(p.axis).Static()
		if !static || p.start < at {
			return nil
		}
		if p.start+p.length <= at+d {
			return []ir.Value{piece{v, p.axis, p.start - at, p.length}.value()}
		}
		at += d
	}
	return nil
}

// concatRule takes the parts of a Concat in a Concat along the same axis, and leaves out parts of length 0.
func concatRule(m *Match) []ir.Value {
	a, ok := m.Attrs.(*op.ConcatAttrs)
	if !ok {
		return nil
	}
	axis, _ := ir.WrapAxis(a.Axis, m.In[0].Rank())
	var in []ir.Value
	changed := false
	for _, v := range m.In {
		if v.Dim(axis).Is(0) && len(m.In) > 1 {
			changed = true
			continue
		}
		if c := made(v, "Concat"); c != nil && m.Single(v) {
			if inner, _ := ir.WrapAxis(c.Attrs.(*op.ConcatAttrs).Axis, v.Rank()); inner == axis {
				in, changed = append(in, c.In...), true
				continue
			}
		}
		in = append(in, v)
	}
	if !changed || len(in) == 0 {
		return nil
	}
	return joined(axis, in)
}

func joined(axis int, in []ir.Value) []ir.Value {
	if len(in) == 1 {
		return in
	}
	return []ir.Value{op.Concat(axis, in...)}
}

// concatPiecesRule puts pieces of one value that follow each other together as one piece.
func concatPiecesRule(m *Match) []ir.Value {
	a, ok := m.Attrs.(*op.ConcatAttrs)
	if !ok {
		return nil
	}
	axis, _ := ir.WrapAxis(a.Axis, m.In[0].Rank())
	var runs []piece // of no x: the part at start of the operands
	for i, v := range m.In {
		p, ok := pieceOf(v.Node())
		if !ok || p.axis != axis {
			runs = append(runs, piece{start: int64(i)})
			continue
		}
		if k := len(runs) - 1; k >= 0 && runs[k].x == p.x && runs[k].start+runs[k].length == p.start {
			runs[k].length += p.length
			continue
		}
		runs = append(runs, p)
	}
	if len(runs) == len(m.In) {
		return nil
	}
	in := make([]ir.Value, len(runs))
	for i, p := range runs {
		if p.x.IsZero() {
			in[i] = m.In[p.start]
		} else {
			in[i] = p.value()
		}
	}
	return joined(axis, in)
}

// gatherNarrowRule is for constant indices that are one, or rise by one. Those out of range stay, to be the errors that they are.
func gatherNarrowRule(m *Match) []ir.Value {
	a, ok := m.Attrs.(*op.GatherAttrs)
	if !ok || m.Row.Name != "Gather" {
		return nil
	}
	x := m.In[0]
	axis, _ := ir.WrapAxis(a.Axis, x.Rank())
	d, static := x.Dim(axis).Static()
	t, constant := m.In[1].Const()
	if !static || !constant || t.Len() == 0 || t.Len() > maxScanned || t.DType() != ir.I64 && t.DType() != ir.I32 {
		return nil
	}
	start := t.Int(0)
	if start < 0 {
		start += d
	}
	for i := range t.Len() {
		k := t.Int(i)
		if k < 0 {
			k += d
		}
		if k < 0 || k >= d || k != start+int64(i) {
			return nil
		}
	}
	return []ir.Value{reshape(piece{x, axis, start, int64(t.Len())}.value(), m.Types[0].Shape)}
}

func whereConstantRule(m *Match) []ir.Value {
	if m.Row.Name != "Where" {
		return nil
	}
	t, ok := m.In[0].Const()
	if !ok || t.Len() == 0 || t.Len() > maxScanned {
		return nil
	}
	for i := range t.Len() {
		if t.Int(i) != t.Int(0) {
			return nil
		}
	}
	v, other := m.In[1], m.In[2]
	if t.Int(0) == 0 {
		v, other = other, v
	}
	// The side that falls away may not have a say in the shape that nobody else has.
	shape, ok := ir.Broadcast(v.Shape(), m.In[0].Shape())
	if !ok || !sameShape(shape, m.Types[0].Shape) && !fixedStretch(v, other, m.Types[0].Shape) {
		return nil
	}
	return []ir.Value{stretched(v, m.Types[0].Shape)}
}

// fixedStretch says that all shapes are known, so that stretching v loses no check.
func fixedStretch(v, other ir.Value, shape []ir.Dim) bool {
	for _, s := range [][]ir.Dim{v.Shape(), other.Shape(), shape} {
		if _, ok := ir.StaticShape(s); !ok {
			return false
		}
	}
	return true
}

// stretched is v broadcast to shape, without a node where it has it.
func stretched(v ir.Value, shape []ir.Dim) ir.Value {
	if sameShape(v.Shape(), shape) {
		return v
	}
	return op.Expand(v, shape...)
}
