package pass

import (
	"math"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// ConvScale folds what follows a convolution and is the same factor and summand for all elements of a channel into its weights and one addition: a
// batch norm, and products and sums with constants. The new weights are computed in f64 and rounded once, so that only the rounding of inner steps
// changes, and what an inner sum beyond the largest number made of it. A chain stays as it is where
//   - the weights or a constant of it are not known, or have other readers, or anything but the next node reads an inner value
//   - a factor, a summand or a new weight is no finite number, or a weight gets so small that it loses digits or vanishes
//   - there is nothing but one addition
//   - the numbers are f16 or bf16.
var ConvScale = Pass{Name: "convbn", Rounds: true, Doc: "batch norms and factors of channels go into the weights of the convolution in front of them", Run: foldConvs}

func foldConvs(g *ir.Graph) (*ir.Graph, error) {
	uses, readers := usesOf(g), map[ir.Value]*ir.Node{}
	for _, n := range g.Nodes {
		for _, v := range n.In {
			readers[v] = n
		}
	}
	folded := map[*ir.Node]*channelChain{} // by last node
	for _, n := range g.Nodes {
		if c := newChannelChain(n, uses); c != nil {
			for c.last.Types[0].Equal(n.Types[0]) && uses[c.last.Out(0)] == 1 && c.takes(readers[c.last.Out(0)]) {
			}
			if c.worthwhile() && c.weigh() {
				folded[c.last] = c
			}
		}
	}
	if len(folded) == 0 {
		return g, nil
	}
	input := map[*ir.Node]ir.Value{} // of the convolutions, in the new graph
	out, err := g.Rebuild(false, func(to *ir.Graph, n *ir.Node, in []ir.Value) ([]ir.Value, error) {
		if n.Row.Family == "conv" && len(in) > 0 {
			input[n] = in[0]
		}
		if c := folded[n]; c != nil {
			return c.build(to, input[c.conv])
		}
		return nil, nil
	})
	if err != nil {
		return nil, err
	}
	return DCE(out)
}

// channelChain is a convolution and the nodes behind it that make factor*y + shift of it, with numbers for each channel.
type channelChain struct {
	conv, last    *ir.Node
	weights       *ir.Tensor
	factor, shift []float64
	scaled        bool // by anything but 1
	shifted       bool // by anything, if only by 0: -0 + 0 is 0
	length        int
}

// newChannelChain is the chain of a convolution alone; nil for other nodes, and where its weights cannot be replaced.
func newChannelChain(n *ir.Node, uses map[ir.Value]int) *channelChain {
	switch n.Row.Name {
	case "Conv", "Conv3d", "ConvTranspose2d", "ConvTranspose3d":
	default:
		return nil
	}
	channels, ok := n.Types[0].Shape[1].Static()
	w := fixed(n.In[1])
	if d := n.Types[0].DType; !ok || w == nil || uses[n.In[1]] != 1 || d != ir.F32 && d != ir.F64 {
		return nil
	}
	c := &channelChain{conv: n, last: n, weights: w, factor: make([]float64, channels), shift: make([]float64, channels)}
	for k := range c.factor {
		c.factor[k] = 1
	}
	return c
}

// takes adds n to the chain, if it is a factor or a summand for each channel.
func (c *channelChain) takes(n *ir.Node) bool {
	if n == nil || !n.Types[0].Equal(c.conv.Types[0]) {
		return false
	}
	y, count := c.last.Out(0), len(c.factor)
	var factor, shift []float64
	switch a := n.Attrs.(type) {
	case *op.BatchNormAttrs:
		if n.In[0] != y {
			return false
		}
		factor, shift = normNumbers(n, a, count)
	case *op.BinaryAttrs:
		if n.Row.Name != "Binary" {
			return false
		}
		other := n.In[1]
		if other == y {
			other = n.In[0]
		}
		factor, shift = binaryNumbers(a.Fn, channelNumbers(other, y.Rank(), count), n.In[0] == y)
	}
	if factor == nil {
		return false
	}
	for k := range factor {
		if f, s := c.after(k, factor, shift); !finite(f) || !finite(s) {
			return false
		}
	}
	c.shifted = c.shifted || shift != nil
	for k, f := range factor {
		c.scaled = c.scaled || f != 1
		c.factor[k], c.shift[k] = c.after(k, factor, shift)
	}
	c.last = n
	c.length++
	return true
}

// after is the factor and the summand of channel k with another factor, and a summand where there are any.
func (c *channelChain) after(k int, factor, shift []float64) (f, s float64) {
	f, s = c.factor[k]*factor[k], c.shift[k]*factor[k]
	if shift != nil {
		s += shift[k]
	}
	return f, s
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// normNumbers are the factors and summands of a batch norm over axis 1.
func normNumbers(n *ir.Node, a *op.BatchNormAttrs, count int) (factor, shift []float64) {
	if axis, ok := ir.WrapAxis(a.Axis, n.In[0].Rank()); !ok || axis != 1 {
		return nil, nil
	}
	var numbers [4][]float64 // gamma, beta, mean, variance
	for i := range numbers {
		if v := n.In[1+i]; !v.IsZero() {
			if numbers[i] = tensorNumbers(v, count); numbers[i] == nil {
				return nil, nil
			}
		}
	}
	factor, shift = make([]float64, count), make([]float64, count)
	for k := range factor {
		factor[k] = 1 / math.Sqrt(numbers[3][k]+a.Eps)
		if gamma := numbers[0]; gamma != nil {
			factor[k] *= gamma[k]
		}
		shift[k] = -numbers[2][k] * factor[k]
		if beta := numbers[1]; beta != nil {
			shift[k] += beta[k]
		}
	}
	return factor, shift
}

// binaryNumbers are the factors and summands of fn with numbers on its right side, or on its left.
func binaryNumbers(fn op.BinaryFn, numbers []float64, right bool) (factor, shift []float64) {
	if numbers == nil || !right && fn != "add" && fn != "mul" {
		return nil, nil
	}
	factor = make([]float64, len(numbers))
	if fn == "add" || fn == "sub" {
		shift = make([]float64, len(numbers))
	}
	for k, v := range numbers {
		factor[k] = 1
		switch fn {
		case "add":
			shift[k] = v
		case "sub":
			shift[k] = -v
		case "mul":
			factor[k] = v
		case "div":
			factor[k] = 1 / v
		default:
			return nil, nil
		}
	}
	return factor, shift
}

// channelNumbers are the numbers of a constant that has one for each channel, axis 1 of values of the given rank, or one for all; nil for other values.
func channelNumbers(v ir.Value, rank, count int) []float64 {
	at := v.Rank() - rank + 1 // the axis of v that meets axis 1
	for k, d := range v.Shape() {
		if !d.Is(1) && (k != at || !d.Is(int64(count))) {
			return nil
		}
	}
	return tensorNumbers(v, count)
}

// tensorNumbers are the elements of a constant, seen through reshapes; one element stands for all.
func tensorNumbers(v ir.Value, count int) []float64 {
	for isKind(v, "Reshape") {
		v = v.Node().In[0]
	}
	t := fixed(v)
	if t == nil || t.Len() != count && t.Len() != 1 {
		return nil
	}
	numbers := make([]float64, count)
	for k := range numbers {
		numbers[k] = t.Float(min(k, t.Len()-1))
	}
	return numbers
}

// worthwhile says whether folding leaves fewer nodes.
func (c *channelChain) worthwhile() bool { return c.scaled || c.length > 1 }

// weigh puts the factors into the weights. It is false where a weight loses digits, vanishes or is no finite number.
func (c *channelChain) weigh() bool {
	d := c.weights.DType()
	least, most := 0x1p-126, float64(math.MaxFloat32)
	if d == ir.F64 {
		least, most = 0x1p-1022, math.MaxFloat64
	}
	out, err := ir.Zeros(d, c.weights.Shape()...)
	if err != nil {
		return false
	}
	channel := c.channelOf()
	for i := range c.weights.Len() {
		v, f := c.weights.Float(i), c.factor[channel(i)]
		w := v * f
		if math.Abs(w) > most || !finite(w) || v != 0 && f != 0 && math.Abs(w) < min(least, math.Abs(v)) {
			return false
		}
		ir.PutFloat(d, out.Bytes(), i, w)
	}
	for _, s := range c.shift {
		if math.Abs(s) > most {
			return false
		}
	}
	c.weights = out
	return true
}

// channelOf gives the channel of the result that element i of the weights belongs to: [O, C/groups, k..], transposed [C, O/groups, k..].
func (c *channelChain) channelOf() func(i int) int {
	shape, inner := c.weights.Shape(), 1
	for _, d := range shape[2:] {
		inner *= int(d)
	}
	a, transposed := c.conv.Attrs.(*op.ConvTransposeAttrs)
	if !transposed {
		row := inner * int(shape[1])
		return func(i int) int { return i / row }
	}
	per, rows := int(shape[1]), int(shape[0]/a.Groups)
	return func(i int) int { return i/(inner*per)/rows*per + i/inner%per }
}

// build appends the convolution of x with the new weights, and the addition.
func (c *channelChain) build(to *ir.Graph, x ir.Value) ([]ir.Value, error) {
	weights := to.Constant(c.weights).Named(c.conv.In[1].Node().Name + ".folded")
	conv, err := to.Add(c.conv.Row, c.conv.Name, c.conv.Attrs, x, weights)
	if err != nil {
		return nil, err
	}
	conv.From = c.conv.From
	if !c.shifted {
		return conv.Results(), nil
	}
	shift, err := c.summand()
	if err != nil {
		return nil, err
	}
	y := to.WithOrigin(c.last.From, func() []ir.Value { return []ir.Value{op.Add(conv.Out(0), to.Constant(shift))} })
	if to.Err() == nil {
		y[0].Named(c.last.Name)
	}
	return y, to.Err()
}

// summand is what is added to the channels, [1, C, 1..].
func (c *channelChain) summand() (*ir.Tensor, error) {
	shape := make([]int64, c.weights.Rank())
	for k := range shape {
		shape[k] = 1
	}
	shape[1] = int64(len(c.shift))
	t, err := ir.Zeros(c.weights.DType(), shape...)
	if err != nil {
		return nil, err
	}
	for k, s := range c.shift {
		ir.PutFloat(t.DType(), t.Bytes(), k, s)
	}
	return t, nil
}
