package onnx

import (
	"slices"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

const preview = "ai.onnx.preview"

// flexRows are operators that stand for a formula of their own.
var flexRows = []row{
	{domain: preview, op: "FlexAttention", since: 1, in: arity{3, 3}, build: buildFlexAttention, attrs: []attrDecl{
		{name: "scale", kind: AttributeFloat}, {name: "softmax_precision", kind: AttributeInt}, graphAttr("score_mod"), graphAttr("prob_mod"),
	}},
	{op: "DeformConv", since: 19, in: arity{3, 5}, build: buildDeformConv, attrs: []attrDecl{
		integers("dilations"), integer("group", 1), integers("kernel_shape"), integer("offset_group", 1), integers("pads"), integers("strides"),
	}},
	{op: "TfIdfVectorizer", since: 9, in: arity{1, 1}, build: buildTfIdf, attrs: []attrDecl{
		required(integer("max_gram_length", 0)), required(integer("max_skip_count", 0)), required(integer("min_gram_length", 0)),
		required(str("mode", "TF", "IDF", "TFIDF")), required(integers("ngram_counts")), required(integers("ngram_indexes")),
		integers("pool_int64s"), listOf("pool_strings", AttributeStrings), floats("weights"),
	}},
	{op: "Det", since: 11, in: arity{1, 1}, build: buildDet},
}

// buildFlexAttention is softmax(score_mod(scale q k^T)) v, with prob_mod between the two.
func buildFlexAttention(n *node) {
	for i := range 3 {
		n.rank(i, 4, 4)
	}
	q, k, v := n.val(0), n.val(1), n.val(2)
	if !n.ok() {
		return
	}
	d, wide := q.DType(), ir.F32
	if d == ir.F64 {
		wide = d
	}
	wide = n.dtypeOr("softmax_precision", wide)
	if !n.ok() {
		return
	}
	modified := func(x ir.Value, attr string) ir.Value {
		if n.attr(attr) == nil || !n.ok() {
			return x
		}
		out := n.body(n.graph(attr), []*value{{typ: x.Type(), node: x, deps: n.deps()}})
		if len(out) != 1 || out[0] == nil {
			n.fail("attribute %s: expected one output", attr)
			return x
		}
		return n.get(out[0])
	}
	k, v = repeatHeads(k, q), repeatHeads(v, q)
	s := op.MatMul(castTo(q, wide), op.Transpose(castTo(k, wide), 0, 1, 3, 2))
	if n.attr("scale") == nil {
		s = n.byHeadSize(s, q)
	} else {
		s = op.Mul(s, n.float("scale"))
	}
	if s = modified(s, "score_mod"); n.ok() {
		p := modified(op.Softmax(s, -1), "prob_mod")
		if n.ok() {
			n.ret(castTo(op.MatMul(castTo(p, wide), castTo(v, wide)), d))
		}
	}
}

// buildDeformConv reads each tap at a place of its own, between elements, and multiplies by the weights.
func buildDeformConv(n *node) {
	for i, r := range []int{4, 4, 4, 1, 4} {
		n.rank(i, r, r)
	}
	x, w, offset, bias, mask := n.val(0), n.val(1), n.val(2), n.val(3), n.val(4)
	if !n.ok() {
		return
	}
	kernel, ok := ir.StaticShape(w.Shape())
	size, ok2 := ir.StaticShape(x.Shape()[1:])
	out, ok3 := ir.StaticShape(offset.Shape()[2:])
	group, parts := n.i("group"), n.i("offset_group")
	if !ok || !ok2 || !ok3 || group < 1 || parts < 1 || size[0]%parts != 0 || size[0] != kernel[1]*group || kernel[0]%group != 0 {
		n.refuse("", "input %s, weights %s, offsets %s, group %d and offset_group %d, expected known dims that agree",
			ir.ShapeText(x.Shape()), ir.ShapeText(w.Shape()), ir.ShapeText(offset.Shape()), group, parts)
		return
	}
	taps, points := kernel[2]*kernel[3], out[0]*out[1]
	d, batch := x.DType(), x.Dim(0)
	// Batch and offset groups become one axis; every group's channels are read at the same places.
	rows := batch.Mul(ir.D(parts))
	s := n.sampler(op.Reshape(x, rows, ir.D(size[0]/parts), ir.D(size[1]), ir.D(size[2])), d, "zeros", true)
	off := op.Reshape(offset, rows, ir.D(taps), ir.D(2), ir.D(points))
	place, base, fractions := make([]ir.Value, 2), make([]ir.Value, 2), make([][]ir.Value, 2)
	for i := range 2 {
		grid := n.table(d, n.tapPlace(i, kernel, out), 1, taps, points)
		if !n.ok() {
			return
		}
		place[i] = op.Reshape(op.Add(pick(off, 2, int64(i)), n.im.g.Constant(grid)), rows, ir.D(taps*points))
		base[i] = op.Floor(place[i])
		t := op.Sub(place[i], base[i])
		fractions[i] = []ir.Value{op.Sub(1, t), t}
	}
	y := s.blend(base, fractions, 0) // [rows, C/parts, taps*points]
	if n.has(4) {
		y = op.Mul(y, op.Reshape(mask, rows, ir.D(1), ir.D(taps*points)))
	}
	y = op.Reshape(y, batch, ir.D(group), ir.D(kernel[1]*taps), ir.D(points))
	y = op.MatMul(op.ReshapeInts(w, group, kernel[0]/group, kernel[1]*taps), y)
	y = op.Reshape(y, batch, ir.D(kernel[0]), ir.D(out[0]), ir.D(out[1]))
	if n.has(3) {
		y = op.Add(y, column(bias, 4))
	}
	n.ret(y)
}

// tapPlace is where tap and point of a flat index lie along axis i without an offset.
func (n *node) tapPlace(i int, kernel, out []int64) func(int) float64 {
	stride, dilation, pad := n.perAxis("strides", 2, 1)[i], n.perAxis("dilations", 2, 1)[i], n.perAxis("pads", 4, 0)[i]
	points := out[0] * out[1]
	return func(k int) float64 {
		tap, point := int64(k)/points, int64(k)%points
		if i == 0 {
			tap, point = tap/kernel[3], point/out[1]
		} else {
			tap, point = tap%kernel[3], point%out[1]
		}
		return float64(point*stride + tap*dilation - pad)
	}
}

// buildTfIdf counts how often each n-gram of a pool of integers occurs in a row, with up to max_skip_count elements left out between
// neighbours, alike in all gaps.
func buildTfIdf(n *node) {
	x := n.val(0)
	pool, starts, columns := n.intList("pool_int64s"), n.intList("ngram_counts"), n.intList("ngram_indexes")
	if n.ok() && (x.Rank() < 1 || x.Rank() > 2 || !ir.Int.Has(x.DType())) {
		n.refuse("", "input of %s, expected integers of rank 1 or 2", x.Type())
	}
	if !n.ok() {
		return
	}
	length, ok := x.Dim(-1).Static()
	if !ok {
		n.refuse("", "rows of length %s, expected a known one", x.Dim(-1))
		return
	}
	width := int64(0)
	for _, c := range columns {
		if c < 0 {
			n.fail("ngram_indexes %v, expected none below 0", columns)
			return
		}
		width = max(width, c, c+1)
	}
	if !n.spend(width) {
		return
	}
	counts := make([]ir.Value, width)
	gram := 0
	for size := int64(1); size <= int64(len(starts)) && n.ok(); size++ {
		from, to := starts[size-1], int64(len(pool))
		if int(size) < len(starts) {
			to = starts[size]
		}
		if from < 0 || to > int64(len(pool)) || (to-from)%size != 0 {
			n.fail("ngram_counts %v of a pool of %d", starts, len(pool))
			return
		}
		for ; from < to; from += size {
			if gram >= len(columns) {
				n.fail("ngram_indexes %v for more n-grams", columns)
				return
			}
			if size >= n.i("min_gram_length") && size <= n.i("max_gram_length") {
				counts[columns[gram]] = n.occurrences(x, pool[from:from+size], length)
			}
			gram++
		}
	}
	if n.ok() {
		n.ret(n.tfIdf(x, counts))
	}
}

// occurrences counts an n-gram in each row: [.., 1].
func (n *node) occurrences(x ir.Value, gram []int64, length int64) ir.Value {
	var sum ir.Value
	last := x.Rank() - 1
	for skip := int64(0); skip <= n.i("max_skip_count") && n.spend(1); skip++ {
		span := int64(len(gram)-1)*(skip+1) + 1
		if span > length || skip > 0 && len(gram) == 1 { // a single element has no gaps
			break
		}
		var all ir.Value
		for k, v := range gram {
			from := int64(k) * (skip + 1)
			same := op.Eq(op.Slice(x, ir.Dims(from), ir.Dims(from+length-span+1), []int{last}, nil), v)
			all = combined(op.LogicalAnd[iv, iv], all, same)
		}
		found := op.Reduce(op.Cast(all, ir.F32), "sum", []int{last}, true)
		sum = combined(op.Add[iv, iv], sum, found)
	}
	return sum
}

// tfIdf puts the counts side by side, weighted as the mode says. An n-gram that is in no place of the pool counts 0.
func (n *node) tfIdf(x ir.Value, counts []ir.Value) ir.Value {
	shape := append(slices.Clone(x.Shape()[:x.Rank()-1]), ir.D(1))
	zero := op.Expand(n.im.g.Constant(ir.Scalar(float32(0))), shape...)
	for i := range counts {
		if counts[i].IsZero() {
			counts[i] = zero
		}
	}
	if len(counts) == 0 {
		n.fail("ngram_indexes is empty")
		return zero
	}
	y := op.Concat(x.Rank()-1, counts...)
	mode := n.s("mode")
	if mode == "IDF" {
		y = op.Min(y, 1)
	}
	if a := n.attr("weights"); a != nil && mode != "TF" {
		weights := make([]float32, len(counts))
		for i, c := range n.intList("ngram_indexes") {
			if i < len(a.Floats) {
				weights[c] = a.Floats[i]
			}
		}
		y = op.Mul(y, n.im.g.Constant(ir.New(weights, len(weights))))
	}
	return y
}

// maxDet is the largest matrix whose determinant is written out.
const maxDet = 4

// buildDet expands the determinant of a small matrix along its first rows.
func buildDet(n *node) {
	n.rank(0, 2, ir.MaxRank)
	x := n.val(0)
	if !n.ok() {
		return
	}
	size, ok := x.Dim(-1).Static()
	if !ok || !x.Dim(-2).Is(size) || size < 1 || size > maxDet {
		n.refuse("", "matrices of shape %s, expected square ones of up to %d rows", ir.ShapeText(x.Shape()[x.Rank()-2:]), maxDet)
		return
	}
	columns := make([]int64, size)
	for i := range columns {
		columns[i] = int64(i)
	}
	n.ret(minor(x, 0, columns))
}

// minor is the determinant of the rows from row on and the given columns.
func minor(x ir.Value, row int64, columns []int64) ir.Value {
	var sum ir.Value
	for k, c := range columns {
		term := pick(pick(x, x.Rank()-2, row), x.Rank()-2, c)
		if len(columns) > 1 {
			term = op.Mul(term, minor(x, row+1, slices.Delete(slices.Clone(columns), k, k+1)))
		}
		sign := op.Add[iv, iv]
		if k%2 == 1 {
			sign = op.Sub[iv, iv]
		}
		sum = combined(sign, sum, term)
	}
	return sum
}
