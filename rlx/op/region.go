package op

import (
	"slices"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// Prologue says how a region reads one of its operands.
type Prologue string

// EnumValues are "none", and the last two axes doubled.
func (Prologue) EnumValues() []string { return []string{"none", "resize_nearest_2x"} }

// ElementwiseRegionAttrs are the attributes of ElementwiseRegion.
type ElementwiseRegionAttrs struct {
	Body          *ir.Graph
	Prologue      Prologue `default:"none"`
	PrologueInput int64    `default:"0" min:"0" c:"C4"`
}

// BatchElementwiseRegionAttrs are the attributes of BatchElementwiseRegion.
type BatchElementwiseRegionAttrs struct {
	Body     *ir.Graph
	NumBatch int64    `min:"1" c:"C5"`
	Prologue Prologue `default:"none"`
}

// MatMulRegionAttrs are the attributes of MatMulRegion.
type MatMulRegionAttrs struct {
	Body  *ir.Graph
	Dtype ir.DType `default:"nil"`
}

// QMatMulRegionAttrs are the attributes of QMatMulRegion.
type QMatMulRegionAttrs struct {
	Body       *ir.Graph
	XZeroPoint int64 `default:"0"`
	WZeroPoint int64 `default:"0"`
}

// ReduceRegionAttrs are the attributes of ReduceRegion: a body and those of Reduce.
type ReduceRegionAttrs struct {
	Body     *ir.Graph
	Fn       ReduceFn `c:"C1"`
	Axes     []int    `default:"nil" c:"C2"`
	KeepDims bool     `default:"false"`
}

// The limits of a body, for kernels with tables of fixed size. A region beyond them runs as its body.
const (
	MaxRegionInputs  = 16
	MaxRegionNodes   = 64
	MaxRegionOutputs = 8
)

var (
	elementwiseRegion      = declareRegion[ElementwiseRegionAttrs]("ElementwiseRegion")
	batchElementwiseRegion = declareRegion[BatchElementwiseRegionAttrs]("BatchElementwiseRegion")
	matMulRegion           = declareRegion[MatMulRegionAttrs]("MatMulRegion")
	qMatMulRegion          = declareRegion[QMatMulRegionAttrs]("QMatMulRegion")
	reduceRegion           = declareRegion[ReduceRegionAttrs]("ReduceRegion")
)

func declareRegion[A any](name string) *ir.Op[A] { return ir.Declare[A]("region", name) }

// regional are the dtypes of a region's operands and of what its body makes of them.
var regional = ir.Real | ir.Set(ir.Bool)

// light are the dtypes that loops compute in as they are.
var light = regional &^ ir.Set(ir.F16, ir.BF16)

// ElementwiseRegion is (y_1, ...) = body(x_1, ..., x_n) for each element: a graph of elementwise nodes in one pass over memory. It means what its body
// means node by node, bit for bit: each inner node rounds to its own dtype.
//
// Shapes: the operands broadcast together to S, the shape of every result; the operand that a prologue names has rank 4 and is read as if its last two
// axes were doubled. Body: one input for each operand, seen as single elements (rank 0); elementwise kinds and constants of one element. Dtypes: bool,
// integers and floats down to f16. Errors: C1 number of inputs, C2 a node that is not elementwise, C3 shapes that do not broadcast, C4 the prologue.
// Source: XLA's loop fusion.
func ElementwiseRegion(g *ir.Graph, a ElementwiseRegionAttrs, x ...ir.Value) []ir.Value {
	if a.Prologue == "" {
		a.Prologue = "none"
	}
	return elementwiseRegion.ApplyIn(g, a, x...)
}

// BatchElementwiseRegion is ElementwiseRegion for each of NumBatch tensors, joined along axis 0: y = concat over i of body(x_i, shared...).
//
// Shapes: the first NumBatch operands agree after axis 0; the others are the same for every i and do not raise the rank. A prologue reads each x_i. Errors:
// C1 to C4 as ElementwiseRegion, C5 1 <= NumBatch <= operands, C6 dtypes and shapes of the x_i, C7 rank of a shared operand.
func BatchElementwiseRegion(g *ir.Graph, a BatchElementwiseRegionAttrs, x ...ir.Value) []ir.Value {
	if a.Prologue == "" {
		a.Prologue = "none"
	}
	return batchElementwiseRegion.ApplyIn(g, a, x...)
}

// MatMulRegion is (y_1, ...) = body(a b, x_1, ...): a matrix product whose elements go through a body while they are in cache. It means
// ElementwiseRegion of MatMul bit for bit: the product is rounded to its dtype first.
//
// Shapes: a and b as MatMul; each x broadcasts to the shape of the product, which every result has. Dtypes of a and b: as MatMul. Errors:
// C1, C2 as MatMul, C3 shape of an x, C4 the body.
func MatMulRegion(a MatMulRegionAttrs, x ...ir.Value) []ir.Value { return matMulRegion.Apply(a, x...) }

// QMatMulRegion is (y_1, ...) = body(sums, x_1, ...): a matrix product of codes whose i32 sums go through a body while they are in cache. It means
// ElementwiseRegion of QMatMul with neither bias nor multiplier, bit for bit.
//
// Shapes: x [..., K], w [K, N], the sums [..., N]; each x_i broadcasts to the shape of the sums, which every result has. Dtypes of x and w: i8 or u8.
// Errors: C1 K, C2 a zero point outside its dtype, C3 shape of an x_i, C4 the body, C5 dtypes.
func QMatMulRegion(a QMatMulRegionAttrs, x ...ir.Value) []ir.Value {
	return qMatMulRegion.Apply(a, x...)
}

// ReduceRegion is y = reduce(body(x_1, ...)): a body with one result whose elements are reduced as they are made, as Reduce does. It means
// Reduce of ElementwiseRegion bit for bit.
//
// Shapes and dtypes: x as ElementwiseRegion, y as Reduce of its result. Errors: C1, C2 as Reduce, C3 the body.
func ReduceRegion(a ReduceRegionAttrs, x ...ir.Value) ir.Value { return reduceRegion.Apply1(a, x...) }

func init() {
	tol := ir.Tolerance{Ulp: 64, Abs: 1e-6}
	elementwiseRegion.Define(ir.Def[ElementwiseRegionAttrs]{
		Doc:       "a small graph of elementwise nodes in one pass over memory",
		In:        []ir.Operand{ir.Any("x", regional)},
		Results:   []string{"y..."},
		Bits:      ir.Fused | ir.Elementwise,
		DTypeC:    "C2",
		Infer:     inferElementwiseRegion,
		Decompose: decomposeElementwiseRegion,
		Tol:       tol,
	})
	batchElementwiseRegion.Define(ir.Def[BatchElementwiseRegionAttrs]{
		Doc:       "one body over several tensors, joined along axis 0",
		In:        []ir.Operand{ir.Many("x", regional)},
		Results:   []string{"y..."},
		Bits:      ir.Fused,
		DTypeC:    "C2",
		Infer:     inferBatchElementwiseRegion,
		Decompose: decomposeBatchElementwiseRegion,
		Tol:       tol,
	})
	matMulRegion.Define(ir.Def[MatMulRegionAttrs]{
		Doc:       "an elementwise body over the elements of a matrix product",
		In:        []ir.Operand{ir.In("a", products), ir.In("b", products), ir.Any("x", regional)},
		Results:   []string{"y..."},
		Bits:      ir.Fused,
		DTypeC:    "C1",
		Infer:     inferMatMulRegion,
		Decompose: decomposeMatMulRegion,
		Tol:       tol,
	})
	qMatMulRegion.Define(ir.Def[QMatMulRegionAttrs]{
		Doc:       "an elementwise body over the sums of a matrix product of 8-bit codes",
		In:        []ir.Operand{ir.In("x", codeBytes), ir.In("w", codeBytes), ir.Any("x_i", regional)},
		Results:   []string{"y..."},
		Bits:      ir.Fused,
		DTypeC:    "C5",
		Infer:     inferQMatMulRegion,
		Decompose: decomposeQMatMulRegion,
		Tol:       tol,
	})
	reduceRegion.Define(ir.Def[ReduceRegionAttrs]{
		Doc:       "the reduction of what an elementwise body makes",
		In:        []ir.Operand{ir.Many("x", regional)},
		Bits:      ir.Fused | ir.Reduction,
		DTypeC:    "C3",
		Infer:     inferReduceRegion,
		Decompose: decomposeReduceRegion,
		Tol:       tol,
	})
}

// elements are operands as a body sees them.
func elements(types []ir.Type) []ir.Type {
	out := make([]ir.Type, len(types))
	for i, t := range types {
		out[i] = ir.Type{DType: t.DType, Shape: []ir.Dim{}}
	}
	return out
}

// BodyNode says whether n may stand in the body of a region: an elementwise kind with one result, of the dtypes that regions have.
func BodyNode(n *ir.Node) bool {
	if len(n.Types) != 1 || n.Row.Family != "elementwise" || !n.Row.Has(ir.Elementwise) {
		return false
	}
	for _, v := range n.In {
		if v.IsZero() || !regional.Has(v.DType()) {
			return false
		}
	}
	return regional.Has(n.Types[0].DType)
}

// Light says whether n, which may stand in a body, costs about as much as reading an operand. What is narrower than f32 is widened and rounded for each
// node, and so is not.
func Light(n *ir.Node) bool {
	if !light.Has(n.Types[0].DType) || slices.ContainsFunc(n.In, func(v ir.Value) bool { return !light.Has(v.DType()) }) {
		return false
	}
	if n.Row.Has(ir.Backward) {
		return false
	}
	switch a := n.Attrs.(type) {
	case *ActivationAttrs:
		s := unaryIndex[string(a.Fn)]
		return s != nil && s.Light()
	case *BinaryAttrs:
		s := binaryIndex[string(a.Fn)]
		return s != nil && s.Light()
	}
	return n.Row.Has(ir.Light)
}

// regionBody checks the body for operands of the given types and returns it with one output for each result.
func regionBody(t *ir.Infer, body *ir.Graph, types []ir.Type, c1, c2 string) (*ir.Graph, bool) {
	if body != nil && !t.Need(body.NumInputs() == len(types), c1, "body takes %d inputs, expected the %d operands", body.NumInputs(), len(types)) {
		return body, false
	}
	if body = t.Sub(body, "body", elements(types)); !t.OK() {
		return body, false
	}
	for _, n := range body.Nodes {
		_, constant := n.Out(0).Const()
		if constant || n.Row.Has(ir.Leaf) {
			k, ok := ir.Count(n.Types[0].Shape).Static()
			t.Need(ok && k == 1 && regional.Has(n.Types[0].DType), c2, "%s is %s, expected a bool or a real number of one element", n, n.Types[0])
		} else {
			t.Need(BodyNode(n), c2, "%s in the body, expected elementwise kinds over %s", n, regional)
		}
	}
	t.Need(len(body.Outputs) > 0, c2, "body has no outputs, expected at least one")
	return body, t.OK()
}

// doubled is a type under the prologue.
func doubled(t *ir.Infer, x ir.Type) (ir.Type, bool) {
	if !t.Need(len(x.Shape) == 4, "C4", "the operand of the prologue has shape %v, expected rank 4", x.Shape) {
		return x, false
	}
	s := slices.Clone(x.Shape)
	s[2], s[3] = s[2].Mul(ir.D(2)), s[3].Mul(ir.D(2))
	return ir.Type{DType: x.DType, Shape: s}, true
}

func shapesOf(types []ir.Type) [][]ir.Dim {
	list := make([][]ir.Dim, len(types))
	for i, t := range types {
		list[i] = t.Shape
	}
	return list
}

// results are the types of a body's outputs, each of the given shape.
func results(body *ir.Graph, shape []ir.Dim) []ir.Type {
	out := make([]ir.Type, len(body.Outputs))
	for i, o := range body.Outputs {
		out[i] = ir.Type{DType: o.Value.DType(), Shape: shape}
	}
	return out
}

func inferElementwiseRegion(t *ir.Infer, a *ElementwiseRegionAttrs) {
	types := t.Types(0, t.Len())
	var ok bool
	if a.Body, ok = regionBody(t, a.Body, types, "C1", "C2"); !ok {
		return
	}
	if a.Prologue != "none" {
		i := a.PrologueInput
		if !t.Need(i < int64(len(types)), "C4", "prologue_input is %d, expected below the %d operands", i, len(types)) {
			return
		}
		if types[i], ok = doubled(t, types[i]); !ok {
			return
		}
	}
	shape, ok := ir.Broadcast(shapesOf(types)...)
	if t.Need(ok, "C3", "shapes %v do not broadcast, expected equal dims or 1 from the last axis on", shapesOf(types)) {
		t.Out(results(a.Body, shape)...)
	}
}

// spliceBody writes a body's nodes over whole tensors; each result is expanded to shape.
func spliceBody(n *ir.Node, body *ir.Graph, in []ir.Value, shape []ir.Dim) []ir.Value {
	out, err := n.Graph().SpliceWith(body, in, func(m *ir.Node, args []ir.Value) {
		if !m.Row.Has(ir.Backward) { // those do not broadcast
			return
		}
		for i := range args {
			args[i] = spread(args[i], shape)
		}
	})
	if err != nil {
		n.Graph().Fail(n.Row.Name, err)
		return nil
	}
	for i := range out {
		out[i] = spread(out[i], shape)
	}
	return out
}

// spread is v, which broadcasts, in the given shape.
func spread(v ir.Value, shape []ir.Dim) ir.Value {
	if v.Poisoned() || slices.Equal(v.Shape(), shape) {
		return v
	}
	if v.Rank() > len(shape) { // a constant [1] among elements of rank 0
		v = Reshape(v, shape...)
	}
	return Expand(v, shape...)
}

func decomposeElementwiseRegion(n *ir.Node, a *ElementwiseRegionAttrs) []ir.Value {
	in := slices.Clone(n.In)
	if a.Prologue != "none" {
		in[a.PrologueInput] = ResizeNearest2x(in[a.PrologueInput])
	}
	return spliceBody(n, a.Body, in, n.Types[0].Shape)
}

func inferBatchElementwiseRegion(t *ir.Infer, a *BatchElementwiseRegionAttrs) {
	types := t.Types(0, t.Len())
	n := int(a.NumBatch)
	if !t.Need(n <= len(types), "C5", "num_batch is %d, expected at most the %d operands", n, len(types)) {
		return
	}
	var ok bool
	if a.Body, ok = regionBody(t, a.Body, slices.Concat(types[:1], types[n:]), "C1", "C2"); !ok {
		return
	}
	var shape []ir.Dim
	total := ir.D(0)
	for i, x := range types[:n] {
		if !t.Need(len(x.Shape) > 0, "C6", "slice %d has rank 0, expected an axis to join", i) {
			return
		}
		t.Need(x.DType == types[0].DType && len(x.Shape) == len(types[0].Shape) && same(x.Shape[1:], types[0].Shape[1:]), "C6",
			"slice %d is %s and slice 0 is %s, expected one type after axis 0", i, x, types[0])
		if !t.OK() {
			return
		}
		if a.Prologue != "none" {
			if x, ok = doubled(t, x); !ok {
				return
			}
		}
		one, ok := ir.Broadcast(append([][]ir.Dim{x.Shape}, shapesOf(types[n:])...)...)
		if !t.Need(ok, "C3", "slice %d of shape %v, expected one that broadcasts with %v", i, x.Shape, shapesOf(types[n:])) ||
			!t.Need(len(one) == len(x.Shape), "C7", "a shared operand raises the rank of slice %d to %d, expected %d", i, len(one), len(x.Shape)) {
			return
		}
		shape, total = one, total.Add(one[0])
	}
	shape = slices.Clone(shape)
	shape[0] = total
	t.Out(results(a.Body, shape)...)
}

func decomposeBatchElementwiseRegion(n *ir.Node, a *BatchElementwiseRegionAttrs) []ir.Value {
	k := int(a.NumBatch)
	parts := make([][]ir.Value, len(n.Types))
	for _, x := range n.In[:k] {
		r := ElementwiseRegionAttrs{Body: a.Body, Prologue: a.Prologue}
		for i, y := range elementwiseRegion.Apply(r, slices.Concat([]ir.Value{x}, n.In[k:])...) {
			if i < len(parts) {
				parts[i] = append(parts[i], y)
			}
		}
	}
	out := make([]ir.Value, len(parts))
	for i, p := range parts {
		out[i] = Concat(0, p...)
	}
	return out
}

func inferMatMulRegion(t *ir.Infer, a *MatMulRegionAttrs) {
	t.Need(t.Type(0).DType == t.Type(1).DType, "C1", "a is %s and b is %s, expected one dtype", t.Type(0).DType, t.Type(1).DType)
	d, ok := productDType(t, a.Dtype)
	shape, ok2 := matMulShape(t)
	if ok && ok2 && t.OK() {
		a.Body = bodyBehind(t, a.Body, ir.Type{DType: d, Shape: shape}, 2, "C3", "C4")
	}
}

// bodyBehind infers the results of a body behind a product; it gives the body as regionBody does. The first `operands` are the product's; shapeC and
// bodyC are the constraints for shapes of the others and for the body.
func bodyBehind(t *ir.Infer, body *ir.Graph, product ir.Type, operands int, shapeC, bodyC string) *ir.Graph {
	types := slices.Concat([]ir.Type{product}, t.Types(operands, t.Len()))
	body, ok := regionBody(t, body, types, bodyC, bodyC)
	if !ok {
		return body
	}
	for i, x := range types[1:] {
		all, ok := ir.Broadcast(product.Shape, x.Shape)
		t.Need(ok && same(all, product.Shape), shapeC, "x %d has shape %v, expected one that broadcasts to %v", i, x.Shape, product.Shape)
	}
	t.Out(results(body, product.Shape)...)
	return body
}

func decomposeMatMulRegion(n *ir.Node, a *MatMulRegionAttrs) []ir.Value {
	y := matMul.Apply1(MatMulAttrs{a.Dtype}, n.In[0], n.In[1])
	return spliceBody(n, a.Body, slices.Concat([]ir.Value{y}, n.In[2:]), n.Types[0].Shape)
}

func inferQMatMulRegion(t *ir.Infer, a *QMatMulRegionAttrs) {
	shape, ok := qMatMulShape(t)
	checkZero(t, "x_zero_point", a.XZeroPoint, t.Type(0).DType, "C2")
	checkZero(t, "w_zero_point", a.WZeroPoint, t.Type(1).DType, "C2")
	if ok && t.OK() {
		a.Body = bodyBehind(t, a.Body, ir.Type{DType: ir.I32, Shape: shape}, 2, "C3", "C4")
	}
}

func decomposeQMatMulRegion(n *ir.Node, a *QMatMulRegionAttrs) []ir.Value {
	sums := QMatMul(n.In[0], n.In[1], ir.Value{}, ir.Value{}, QMatMulAttrs{XZeroPoint: a.XZeroPoint, WZeroPoint: a.WZeroPoint, Multiplier: 1, Dtype: ir.I32})
	return spliceBody(n, a.Body, slices.Concat([]ir.Value{sums}, n.In[2:]), n.Types[0].Shape)
}

func inferReduceRegion(t *ir.Infer, a *ReduceRegionAttrs) {
	types := t.Types(0, t.Len())
	var ok bool
	if a.Body, ok = regionBody(t, a.Body, types, "C3", "C3"); !ok {
		return
	}
	shape, ok := ir.Broadcast(shapesOf(types)...)
	if !t.Need(ok, "C3", "shapes %v do not broadcast, expected equal dims or 1 from the last axis on", shapesOf(types)) || !t.Need(len(a.Body.Outputs) == 1, "C3", "body has %d outputs, expected 1", len(a.Body.Outputs)) {
		return
	}
	x := results(a.Body, shape)[0]
	g := ir.NewGraph("")
	y := reduce.Apply1(ReduceAttrs{a.Fn, a.Axes, a.KeepDims}, g.Input("x", x.DType, x.Shape))
	if err := g.Err(); t.Need(err == nil, "C1", "%v", err) {
		t.Out(y.Type())
	}
}

func decomposeReduceRegion(n *ir.Node, a *ReduceRegionAttrs) []ir.Value {
	shapes := make([][]ir.Dim, len(n.In))
	for i, v := range n.In {
		shapes[i] = v.Shape()
	}
	shape, _ := ir.Broadcast(shapes...)
	out := spliceBody(n, a.Body, n.In, shape)
	if len(out) != 1 {
		return nil
	}
	return []ir.Value{Reduce(out[0], a.Fn, a.Axes, a.KeepDims)}
}
