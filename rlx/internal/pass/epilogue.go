package pass

import (
	"math"
	"slices"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// ConvEpilogue gives convolutions the bias, the residual and the activation behind them, in this order. Only for f32 and f64, where one rounding at
// the end gives the bits of one after each node. It runs on legal graphs, before regions take the nodes.
var ConvEpilogue = Pass{Name: "epilogue", Doc: "lets products and convolutions finish their elements: bias, scale, residual, activation, cast",
	Rules: []Rule{{"conv bias", convBiasRule}, {"conv residual", convResidualRule}, {"conv activation", convActivationRule}}}

// MatMulEpilogue gives matrix products the region, or the elementwise node, behind them. It runs behind regions.
var MatMulEpilogue = Pass{Name: "epilogue", Doc: ConvEpilogue.Doc, Rules: []Rule{{"matmul", matMulRule}}}

// convolution is v as a FusedConvBiasAct that may still grow: its operands and attributes. ok is false for other values, and where more than m reads it.
func convolution(m *Match, v ir.Value) (in [4]ir.Value, a op.FusedConvAttrs, ok bool) {
	if v.IsZero() || !m.Single(v) || v.DType() != ir.F32 && v.DType() != ir.F64 || m.Support == nil || !m.Support.NativeRow(op.FusedConvRow(), v.DType()) {
		return in, a, false
	}
	n := v.Node()
	switch x := n.Attrs.(type) {
	case *op.ConvAttrs:
		if n.Row.Name != "Conv" && n.Row.Name != "Conv3d" {
			return in, a, false
		}
		a = op.FusedConvAttrs{Stride: x.Stride, Dilation: x.Dilation, Padding: x.Padding, AutoPad: x.AutoPad, Groups: x.Groups, Activation: "none", Alpha: math.NaN(), Beta: math.NaN()}
	case *op.FusedConvAttrs:
		a = *x
	default:
		return in, a, false
	}
	copy(in[:], n.In)
	return in, a, true
}

func fusedConv(in [4]ir.Value, a op.FusedConvAttrs) []ir.Value {
	return []ir.Value{op.FusedConvBiasAct(in[0], in[1], in[2], in[3], a)}
}

// sides calls f with the operands of a commutative Binary fn both ways round, until it gives something.
func sides(n *ir.Node, fn op.BinaryFn, f func(a, b ir.Value) []ir.Value) []ir.Value {
	if a, ok := n.Attrs.(*op.BinaryAttrs); !ok || a.Fn != fn {
		return nil
	}
	if out := f(n.In[0], n.In[1]); out != nil {
		return out
	}
	return f(n.In[1], n.In[0])
}

func convBiasRule(m *Match) []ir.Value {
	return sides(m.Node, "add", func(y, b ir.Value) []ir.Value {
		in, a, ok := convolution(m, y)
		if !ok || !in[2].IsZero() || !in[3].IsZero() || a.Activation != "none" {
			return nil
		}
		if in[2] = channelVector(b, y.Shape()); in[2].IsZero() {
			return nil
		}
		return fusedConv(in, a)
	})
}

// channelVector is b as [C], where b holds one number for each channel (axis 1) of values of the given shape; absent if it does not.
func channelVector(b ir.Value, shape []ir.Dim) ir.Value {
	at := b.Rank() - (len(shape) - 1) // the axis of b that meets axis 1
	if at < 0 || at > 1 || b.Dim(at) != shape[1] {
		return ir.Value{}
	}
	for k, d := range b.Shape() {
		if k != at && d != ir.D(1) {
			return ir.Value{}
		}
	}
	if x := b.Node(); x.Row.Name == "Reshape" && x.In[0].Rank() == 1 {
		return x.In[0]
	}
	return op.Reshape(b, shape[1])
}

func convResidualRule(m *Match) []ir.Value {
	return sides(m.Node, "add", func(y, r ir.Value) []ir.Value {
		in, a, ok := convolution(m, y)
		if !ok || !in[3].IsZero() || a.Activation != "none" || !slices.Equal(r.Shape(), y.Shape()) || r == y {
			return nil
		}
		in[3] = r
		return fusedConv(in, a)
	})
}

func convActivationRule(m *Match) []ir.Value {
	f, ok := activationAttrs(m.Node)
	if !ok || m.Types[0].DType == ir.Bool {
		return nil
	}
	in, a, ok := convolution(m, m.In[0])
	if !ok || a.Activation != "none" {
		return nil
	}
	a.Activation, a.Alpha, a.Beta = op.ConvActivation(f.Fn), f.Alpha, f.Beta
	return fusedConv(in, a)
}

// activationAttrs are those of an Activation, and of a Clamp that has the formula of one.
func activationAttrs(n *ir.Node) (op.ActivationAttrs, bool) {
	switch a := n.Attrs.(type) {
	case *op.ActivationAttrs:
		return *a, n.Row.Name == "Activation"
	case *op.ClampAttrs:
		if n.Row.Name != "Clamp" || a.Min.Float() != 0 || math.Signbit(a.Min.Float()) {
			break
		}
		switch a.Max.Float() {
		case 6:
			return op.ActivationAttrs{Fn: "relu6", Alpha: math.NaN(), Beta: math.NaN()}, true
		case math.Inf(1):
			return op.ActivationAttrs{Fn: "relu", Alpha: math.NaN(), Beta: math.NaN()}, true
		}
	}
	return op.ActivationAttrs{}, false
}

// matMulRule puts a region, or one elementwise node, behind the product that it reads last.
func matMulRule(m *Match) []ir.Value {
	a, isRegion := m.Attrs.(*op.ElementwiseRegionAttrs)
	if m.Support == nil || isRegion && a.Prologue != "none" || !isRegion && m.Row.Family != "elementwise" {
		return nil
	}
	product := -1
	for i, v := range m.In {
		if v.IsZero() || !m.isProduct(v) || slices.Contains(m.In[:i], v) {
			continue
		}
		if product < 0 || v.Node().ID() > m.In[product].Node().ID() {
			product = i
		}
	}
	if product < 0 {
		return nil
	}
	body, in := m.wholeBody(m.In[product])
	if body == nil {
		return nil
	}
	first := slices.Index(in, m.In[product])
	others := slices.Delete(slices.Clone(in), first, first+1)
	if first > 0 {
		if body = rotated(body, first); body == nil {
			return nil
		}
	}
	return endedBy(m.In[product].Node(), body, others)
}

// endedBy is the product n with the body behind it.
func endedBy(n *ir.Node, body *ir.Graph, others []ir.Value) []ir.Value {
	switch a := n.Attrs.(type) {
	case *op.QMatMulAttrs:
		return op.QMatMulRegion(op.QMatMulRegionAttrs{Body: body, XZeroPoint: a.XZeroPoint, WZeroPoint: a.WZeroPoint}, slices.Concat(n.In[:2], others)...)
	case *op.DequantMatMulAttrs:
		r := op.DequantMatMulRegionAttrs{Body: body, Scheme: a.Scheme, BlockSize: a.BlockSize, WLayout: a.WLayout, Bits: a.Bits, Compute: a.Compute}
		return op.DequantMatMulRegion(r, slices.Concat(n.In, others)...)
	}
	return op.MatMulRegion(op.MatMulRegionAttrs{Body: body, Dtype: n.Attrs.(*op.MatMulAttrs).Dtype}, slices.Concat(n.In, others)...)
}

// endingOf is the row of the product n with a body behind it; nil for what is no such product.
func endingOf(n *ir.Node) *ir.Row {
	switch a := n.Attrs.(type) {
	case *op.MatMulAttrs:
		if n.In[0].Rank() >= 2 && n.In[1].Rank() >= 2 {
			return op.MatMulRegionRow()
		}
	case *op.QMatMulAttrs:
		if a.Dtype == ir.I32 && n.In[2].IsZero() {
			return op.QMatMulRegionRow()
		}
	case *op.DequantMatMulAttrs:
		return op.DequantMatMulRegionRow()
	}
	return nil
}

// isProduct says whether v is a product of a row with endings that only the node reads, in the shape of the node's results.
func (m *Match) isProduct(v ir.Value) bool {
	n := v.Node()
	if row := endingOf(n); row == nil || !m.Support.NativeRow(row, n.In[0].DType()) {
		return false
	}
	reads := 0
	for _, x := range m.In {
		if x == v {
			reads++
		}
	}
	return m.uses[v] <= reads && slices.Equal(v.Shape(), m.Types[0].Shape)
}

// wholeBody is the node's body and operands: those of a region, or of the node alone, where the product is an operand.
func (m *Match) wholeBody(product ir.Value) (*ir.Graph, []ir.Value) {
	if a, ok := m.Attrs.(*op.ElementwiseRegionAttrs); ok {
		return a.Body, m.In
	}
	body, in := bodyAround(m, m.Node)
	if !slices.Contains(in, product) {
		return nil, nil
	}
	return body, in
}

// rotated is the body with input k in front of the others; nil if it cannot be made.
func rotated(body *ir.Graph, k int) *ir.Graph {
	to, values := ir.NewGraph(body.Name), map[ir.Value]ir.Value{}
	order := append([]*ir.Node{body.Inputs[k]}, slices.Delete(slices.Clone(body.Inputs), k, k+1)...)
	for _, n := range order {
		name, _ := n.InputName()
		values[n.Out(0)] = to.Input(name, n.Types[0].DType, n.Types[0].Shape)
	}
	for _, n := range body.Nodes {
		if _, ok := n.InputName(); ok {
			continue
		}
		out, err := to.Copy(n, mapped(n.In, values))
		if err != nil {
			return nil
		}
		for i, v := range out {
			values[n.Out(i)] = v
		}
	}
	for _, o := range body.Outputs {
		to.Output(o.Name, values[o.Value])
	}
	if to.Err() != nil {
		return nil
	}
	return to
}
