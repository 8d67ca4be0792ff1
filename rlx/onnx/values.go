package onnx

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// value is what a name of the model stands for. Small integer tensors are known as dims, and their nodes are made only when something
// needs them as data: so a Shape feeding a Reshape leaves no node behind.
type value struct {
	typ     ir.Type
	node    ir.Value
	make    func() (ir.Value, error) // makes node on first use
	dims    *dimTensor
	broken  bool // a node before it could not be read
	konst   *ir.Tensor
	ratio   *ratio     // the elements as quotients of dims, where dims is nil
	folded  *ir.Tensor // what node computes, where it was asked for and depends on no input
	depth   int        // of the chain of pending makes
	deps    *deps      // inputs of the model that the elements depend on; nil for none
	symbols []string   // that the elements depend on, where deps is nil and dims are not known
	elem    int32      // element type of the file, 0 where it is not known: some are narrower than the dtype
	seq     *sequence  // a list of values instead of a tensor
	absent  bool       // an optional without a value
	missing bool       // an input that the call of a function left out
}

// sequence is an ONNX sequence: lists that change make new ones.
type sequence struct{ items []*value }

func (v *value) isTensor() bool { return v.seq == nil && !v.absent }

// maxPending bounds the recursion of makes.
const maxPending = 100

func (v *value) get() (ir.Value, error) {
	if v.node.IsZero() {
		if v.make == nil {
			return ir.Value{}, errNotTensor
		}
		n, err := v.make()
		if err != nil {
			return n, err
		}
		v.node, v.make = n, nil
	}
	return v.node, nil
}

// dimTensor is a small tensor whose elements are dims. Its dtype may be a float one, with whole numbers only.
type dimTensor struct {
	dtype ir.DType
	shape []int64
	elem  []ir.Dim
}

// maxTracked is the most elements of a tracked tensor.
const maxTracked = ir.MaxStaticInput

// maxDimText bounds the size of an expression, and with it the work that a hostile model can cause.
const maxDimText = 4096

// tooLong says that d is longer than that, or holds the symbol that package ir has for what it does not write out.
func tooLong(d ir.Dim) bool {
	s := d.String()
	return len(s) > maxDimText || strings.Contains(s, "?large#")
}

func vector(d ...ir.Dim) *dimTensor { return &dimTensor{ir.I64, []int64{int64(len(d))}, d} }
func scalar(d ir.Dim) *dimTensor    { return &dimTensor{ir.I64, nil, []ir.Dim{d}} }

func (t *dimTensor) typ() ir.Type { return ir.Type{DType: t.dtype, Shape: ir.Dims(t.shape...)} }

// static returns the elements if all are integers.
func (t *dimTensor) static() ([]int64, bool) { return ir.StaticShape(t.elem) }

// sound says whether every element is a value of the dtype, as far as it is known, and small enough to go on with.
func (t *dimTensor) sound() bool {
	if len(t.elem) > maxTracked || int64(len(t.elem)) != prod(t.shape) {
		return false
	}
	for _, d := range t.elem {
		n, ok := d.Static()
		if !ok {
			if tooLong(d) {
				return false
			}
			continue
		}
		lo, hi := whole(t.dtype)
		if n < lo || n > hi {
			return false
		}
	}
	return true
}

// whole is the range of whole numbers that dtype d holds exactly, in int64.
func whole(d ir.DType) (lo, hi int64) {
	switch d {
	case ir.Bool:
		return 0, 1
	case ir.I8:
		return math.MinInt8, math.MaxInt8
	case ir.U8:
		return 0, math.MaxUint8
	case ir.I16:
		return math.MinInt16, math.MaxInt16
	case ir.U16:
		return 0, math.MaxUint16
	case ir.I32:
		return math.MinInt32, math.MaxInt32
	case ir.U32:
		return 0, math.MaxUint32
	case ir.I64:
		return math.MinInt64, math.MaxInt64
	case ir.U64:
		return 0, math.MaxInt64
	case ir.F32:
		return -1 << 24, 1 << 24
	case ir.F64:
		return -1 << 53, 1 << 53
	}
	return 0, -1 // none
}

// trackTensor reads a constant as dims; nil if it is too large or not whole.
func trackTensor(t *ir.Tensor) *dimTensor {
	d := &dimTensor{t.DType(), t.Shape(), nil}
	if lo, hi := whole(t.DType()); lo > hi || t.Len() > maxTracked {
		return nil
	}
	for i := range t.Len() {
		n := t.Int(i)
		if ir.Float.Has(t.DType()) {
			f := t.Float(i)
			if f != math.Trunc(f) || math.Abs(f) > 1<<53 || f == 0 && math.Signbit(f) {
				return nil
			}
		}
		d.elem = append(d.elem, ir.D(n))
	}
	if !d.sound() {
		return nil
	}
	return d
}

// tensor is t as a constant tensor; all elements must be static.
func (t *dimTensor) tensor() (*ir.Tensor, error) {
	out, err := ir.Zeros(t.dtype, t.shape...)
	if err != nil {
		return nil, err
	}
	for i, d := range t.elem {
		n, _ := d.Static()
		ir.PutInt(t.dtype, out.Bytes(), i, n)
	}
	return out, nil
}

// data makes t in the graph out of nothing but lengths: the number of elements of a vector of d ones is d, which the folder computes
// once d is bound.
func (t *dimTensor) data(g *ir.Graph) ir.Value {
	if _, ok := t.static(); ok {
		c, err := t.tensor()
		if err != nil {
			return g.Fail("Constant", err)
		}
		return g.Constant(c)
	}
	parts := make([]ir.Value, len(t.elem))
	for i, d := range t.elem {
		if n, ok := d.Static(); ok {
			parts[i] = g.Constant(ir.New([]int64{n}, 1))
			continue
		}
		parts[i] = op.Reduce(op.Expand(g.Constant(ir.New([]int64{1}, 1)), d), "sum", []int{0}, true)
	}
	y := parts[0]
	if len(parts) > 1 {
		y = op.Concat(0, parts...)
	}
	if len(t.shape) != 1 {
		y = op.ReshapeInts(y, t.shape...)
	}
	if t.dtype != ir.I64 {
		y = op.Cast(y, t.dtype)
	}
	return y
}

// atLeastZero says that d is never negative: it has no subtraction and names only lengths, not elements of inputs.
func atLeastZero(d ir.Dim) bool {
	if n, ok := d.Static(); ok {
		return n >= 0
	}
	return !strings.ContainsAny(d.String(), "-#")
}

// lengths holds dims of tensors, which are never negative, however they are written.
type lengths map[ir.Dim]bool

func (l lengths) atLeastZero(d ir.Dim) bool { return l[d] || atLeastZero(d) }

// dimFn computes one element from those of the operands; false ends the tracking.
type dimFn func(l lengths, e []ir.Dim) (ir.Dim, bool)

// within is f with what the importer knows.
func (n *node) within(f dimFn) func(e []ir.Dim) (ir.Dim, bool) {
	return func(e []ir.Dim) (ir.Dim, bool) { return f(n.im.lengths, e) }
}

// prod is the product of lengths, the greatest integer where it is beyond that or one is negative.
func prod(shape []int64) int64 {
	n := int64(1)
	for _, d := range shape {
		if d < 0 || d > 0 && n > math.MaxInt64/d {
			return math.MaxInt64
		}
		n *= d
	}
	return n
}

// rowMajor are the strides of a contiguous tensor.
func rowMajor(shape []int64) []int64 {
	s := make([]int64, len(shape))
	n := int64(1)
	for i := len(shape) - 1; i >= 0; i-- {
		s[i] = n
		n *= shape[i]
	}
	return s
}

// pick makes a tensor of the given shape whose element at index idx is t's element at position at(idx).
func (t *dimTensor) pick(shape []int64, at func(idx []int64) int64) *dimTensor {
	out := &dimTensor{t.dtype, shape, nil}
	n := int64(1)
	for _, d := range shape {
		if d < 0 || d > maxTracked {
			return nil
		}
		if n *= d; n > maxTracked {
			return nil
		}
	}
	idx := make([]int64, len(shape))
	for range n {
		p := at(idx)
		if p < 0 || p >= int64(len(t.elem)) {
			return nil
		}
		out.elem = append(out.elem, t.elem[p])
		for k := len(idx) - 1; k >= 0; k-- {
			if idx[k]++; idx[k] < shape[k] {
				break
			}
			idx[k] = 0
		}
	}
	return out
}

// reshape is t under other dims, with ONNX's 0 and -1 resolved.
func (t *dimTensor) reshape(shape []int64) *dimTensor {
	if prod(shape) != int64(len(t.elem)) || len(shape) > ir.MaxRank || slices.Min(append([]int64{0}, shape...)) < 0 {
		return nil
	}
	return &dimTensor{t.dtype, shape, t.elem}
}

// expand broadcasts t to shape, which must be reachable.
func (t *dimTensor) expand(shape []int64) *dimTensor {
	if len(shape) < len(t.shape) {
		return nil
	}
	off, strides := len(shape)-len(t.shape), rowMajor(t.shape)
	for i, d := range t.shape {
		switch {
		case d == 1:
			strides[i] = 0
		case d != shape[off+i]:
			return nil
		}
	}
	return t.pick(shape, func(idx []int64) int64 {
		p := int64(0)
		for i, s := range strides {
			p += s * idx[off+i]
		}
		return p
	})
}

// along picks positions list of axis.
func (t *dimTensor) along(axis int, list []int64) *dimTensor {
	shape, strides := slices.Clone(t.shape), rowMajor(t.shape)
	for _, p := range list {
		if p < 0 || p >= shape[axis] {
			return nil
		}
	}
	shape[axis] = int64(len(list))
	return t.pick(shape, func(idx []int64) int64 {
		p := int64(0)
		for i, s := range strides {
			if i == axis {
				p += s * list[idx[i]]
			} else {
				p += s * idx[i]
			}
		}
		return p
	})
}

// broadcastDims is NumPy's broadcast of static shapes.
func broadcastDims(a, b []int64) ([]int64, bool) {
	out, ok := ir.Broadcast(ir.Dims(a...), ir.Dims(b...))
	if !ok {
		return nil, false
	}
	return ir.StaticShape(out)
}

// mapDims applies f to the elements of the operands, broadcast; false ends the tracking.
func mapDims(dtype ir.DType, f func(e []ir.Dim) (ir.Dim, bool), in ...*dimTensor) *dimTensor {
	shape := []int64{}
	for _, t := range in {
		if t == nil {
			return nil
		}
		var ok bool
		if shape, ok = broadcastDims(shape, t.shape); !ok {
			return nil
		}
	}
	wide := make([]*dimTensor, len(in))
	for i, t := range in {
		if wide[i] = t.expand(shape); wide[i] == nil {
			return nil
		}
	}
	out := &dimTensor{dtype, shape, make([]ir.Dim, prod(shape))}
	e := make([]ir.Dim, len(in))
	for i := range out.elem {
		for k, t := range wide {
			e[k] = t.elem[i]
		}
		var ok bool
		if out.elem[i], ok = f(e); !ok {
			return nil
		}
	}
	return out
}

// ---- functions of dims; false where the result is not certain ----

func unsaturated(d ir.Dim) (ir.Dim, bool) {
	n, ok := d.Static()
	return d, !ok || n != math.MaxInt64 && n != math.MinInt64
}

func addDims(_ lengths, e []ir.Dim) (ir.Dim, bool) { return unsaturated(e[0].Add(e[1])) }
func subDims(_ lengths, e []ir.Dim) (ir.Dim, bool) { return unsaturated(e[0].Sub(e[1])) }
func mulDims(_ lengths, e []ir.Dim) (ir.Dim, bool) { return unsaturated(e[0].Mul(e[1])) }
func minDims(_ lengths, e []ir.Dim) (ir.Dim, bool) { return e[0].Min(e[1]), true }
func maxDims(_ lengths, e []ir.Dim) (ir.Dim, bool) { return e[0].Max(e[1]), true }

// divDims is the quotient toward zero: the floor where both are certainly not negative, and of others where the divisor is a known number.
func divDims(l lengths, e []ir.Dim) (ir.Dim, bool) {
	a, okA := e[0].Static()
	b, okB := e[1].Static()
	switch {
	case okB && b == 0:
		return ir.Dim{}, false
	case okB && b == 1:
		return e[0], true
	case okA && okB:
		return ir.D(a / b), a != math.MinInt64 || b != -1
	}
	floor := e[0].FloorDiv(e[1])
	if l.atLeastZero(e[0]) && (okB || l.atLeastZero(e[1])) {
		return floor, !okB || b > 0
	}
	return floor.Max(ir.D(0)).Add(e[0].CeilDiv(e[1]).Min(ir.D(0))), okB && b > 0
}

// modDims is what the floor of the quotient leaves, with the sign of the divisor.
func modDims(l lengths, e []ir.Dim) (ir.Dim, bool) {
	a, okA := e[0].Static()
	b, okB := e[1].Static()
	switch {
	case !okB || b <= 0:
		return ir.Dim{}, false
	case okA:
		return ir.D((a%b + b) % b), true
	}
	return e[0].Sub(e[0].FloorDiv(e[1]).Mul(e[1])), true
}

func truth(b bool) ir.Dim {
	if b {
		return ir.D(1)
	}
	return ir.D(0)
}

// equalDims compares: equal expressions are equal, a constant difference is not, and a length is never negative.
func equalDims(l lengths, e []ir.Dim) (ir.Dim, bool) {
	a, b := e[0], e[1]
	if a == b {
		return ir.D(1), true
	}
	if diff, ok := a.Sub(b).Static(); ok {
		return truth(diff == 0), true
	}
	negative := func(d ir.Dim) bool { n, ok := d.Static(); return ok && n < 0 }
	if negative(a) && l.atLeastZero(b) || negative(b) && l.atLeastZero(a) {
		return ir.D(0), true
	}
	return ir.Dim{}, false
}

// lessDims is a < b.
func lessDims(l lengths, e []ir.Dim) (ir.Dim, bool) {
	diff := e[0].Sub(e[1])
	if n, ok := diff.Static(); ok {
		return truth(n < 0), true
	}
	if l.atLeastZero(diff) {
		return ir.D(0), true
	}
	if l.atLeastZero(ir.D(-1).Sub(diff)) { // b - a - 1 >= 0
		return ir.D(1), true
	}
	return ir.Dim{}, false
}

// notDims and the logical functions take 0 and 1.
func notDims(_ lengths, e []ir.Dim) (ir.Dim, bool) {
	n, ok := e[0].Static()
	return truth(n == 0), ok
}

func andDims(_ lengths, e []ir.Dim) (ir.Dim, bool) {
	a, okA := e[0].Static()
	b, okB := e[1].Static()
	if okA && a == 0 || okB && b == 0 {
		return ir.D(0), true
	}
	return ir.D(1), okA && okB
}

func orDims(_ lengths, e []ir.Dim) (ir.Dim, bool) {
	a, okA := e[0].Static()
	b, okB := e[1].Static()
	if okA && a != 0 || okB && b != 0 {
		return ir.D(1), true
	}
	return ir.D(0), okA && okB
}

func whereDims(_ lengths, e []ir.Dim) (ir.Dim, bool) {
	c, ok := e[0].Static()
	if !ok {
		return e[1], e[1] == e[2]
	}
	if c != 0 {
		return e[1], true
	}
	return e[2], true
}

// rangeLength is the number of elements of Range: ceil((limit - start) / delta), at least 0.
func rangeLength(start, limit, delta ir.Dim) (ir.Dim, error) {
	step, ok := delta.Static()
	if !ok || step == 0 {
		return ir.Dim{}, fmt.Errorf("delta is %s, expected a known number other than 0", delta)
	}
	room := limit.Sub(start)
	if step < 0 {
		room, step = ir.Dim{}.Sub(room), -step
	}
	n := room.CeilDiv(ir.D(step))
	if !atLeastZero(n) {
		n = n.Max(ir.D(0))
	}
	return n, nil
}
