package pass

import (
	"math"
	"slices"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// Lookup reads rows of a table where a product with one-hot rows computes them: sums of zeros and one entry, which are that entry.
var Lookup = Pass{Name: "lookup", Doc: "reads the rows of a table that one-hot rows choose", Rules: []Rule{{"one-hot product", oneHotRule}}}

// maxTable bounds the tables that are written anew, with a row of zeros.
const maxTable = 4 << 20

// oneHotRule makes of Cast(i == [0..n-1]) . table the rows i of the table, and of an index outside a row of zeros. Only for constant tables
// whose entries a product with 1 and a sum with zeros keep: infinities would make NaN of zeros, -0 becomes 0, and devices flush subnormals.
func oneHotRule(m *Match) []ir.Value {
	if m.Row.Name != "MatMul" || m.In[1].Rank() != 2 || m.Types[0].DType != m.In[1].DType() {
		return nil
	}
	table := fixed(m.In[1])
	index, n := oneHot(m.In[0])
	if index.IsZero() || table == nil || m.In[1].Dim(0) != ir.D(n) || !m.native(op.GatherRow(), table.DType()) || len(table.Bytes()) > maxTable || !plain(table) {
		return nil
	}
	if index.DType() != ir.I64 {
		index = op.Cast(index, ir.I64)
	}
	inside := op.BinaryOp(op.Ge(index, 0), op.Lt(index, n), "and")
	row, err := ir.Zeros(table.DType(), 1, table.Shape()[1])
	if err != nil {
		return nil
	}
	rows := op.Concat(0, m.In[1], m.Graph().Constant(row))
	return []ir.Value{op.Gather(rows, op.Where(inside, index, n), 0)}
}

// oneHot reads v as floats that are 1 where index, which lacks the last axis of v, equals 0 .. n-1; index is absent for other values.
func oneHot(v ir.Value) (index ir.Value, n int64) {
	if !isKind(v, "Cast") || v.DType() != ir.F32 && v.DType() != ir.F64 {
		return index, 0
	}
	c := v.Node().In[0].Node()
	if a, ok := c.Attrs.(*op.CompareAttrs); !ok || a.Fn != "eq" || !ir.Int.Has(c.In[0].DType()) {
		return index, 0
	}
	index, numbers := c.In[0], c.In[1]
	if fixed(unviewed(numbers)) == nil {
		index, numbers = numbers, index
	}
	shape := slices.Clone(v.Shape())
	last := len(shape) - 1
	n, ok := shape[last].Static()
	if !ok || !counts(fixed(numbers), n) {
		return ir.Value{}, 0
	}
	shape[last] = ir.D(1)
	if !slices.Equal(index.Shape(), shape) {
		return ir.Value{}, 0
	}
	return op.Reshape(index, shape[:last]...), n
}

// counts says whether t is 0 .. n-1 along its last axis, the only one.
func counts(t *ir.Tensor, n int64) bool {
	if t == nil || int64(t.Len()) != n || n == 0 || t.Shape()[t.Rank()-1] != n {
		return false
	}
	for i := range t.Len() {
		if t.Int(i) != int64(i) {
			return false
		}
	}
	return true
}

// plain says whether all elements are normal numbers or +0.
func plain(t *ir.Tensor) bool {
	least := float64(0x1p-126)
	if t.DType() == ir.F64 {
		least = 0x1p-1022
	}
	for i := range t.Len() {
		if x := t.Float(i); !(math.Abs(x) >= least && !math.IsInf(x, 0)) && math.Float64bits(x) != 0 {
			return false
		}
	}
	return true
}
