package pass

import (
	"encoding/binary"
	"math"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// ConvScale folds what follows a convolution and is the same factor and summand for all elements of a channel into its weights and one addition: a
// batch norm, and products and sums with constants. The new weights are computed in f64 and rounded once, so that only the rounding of inner steps
// changes, and what an inner sum beyond the largest number made of it. A chain stays as it is where
//   - the weights or a constant of it are not known, or have other readers, or anything but the next node reads an inner value
//   - a factor, a summand or a new weight is no finite number, or a weight vanishes
//   - a weight gets so small that it loses digits. One that is subnormal already, as those of dead channels are, may: with the largest input it
//     is wrong by less than the op's tolerance, if there are few of them
//   - there is nothing but one addition
//   - the numbers are f16 or bf16.
var ConvScale = Pass{Name: "convbn", Rounds: true, Doc: "batch norms and factors of channels go into the weights of the convolution in front of them", Run: foldConvs}

func foldConvs(g *ir.Graph, count map[string]int) (*ir.Graph, error) {
	uses, readers := usesOf(g), map[ir.Value]*ir.Node{}
	for _, n := range g.Nodes {
		for _, v := range n.In {
			readers[v] = n
		}
	}
	folded := map[*ir.Node]*channelChain{} // by each of their nodes
	for _, n := range g.Nodes {
		if c := newChannelChain(n, uses); c != nil {
			for c.last.Types[0].Equal(n.Types[0]) && uses[c.last.Out(0)] == 1 && c.takes(readers[c.last.Out(0)]) {
			}
			if c.worthwhile() && c.weigh() {
				for _, n := range c.nodes {
					folded[n] = c
					count[n.Row.Name]++
				}
			}
		}
	}
	if len(folded) == 0 {
		return g, nil
	}
	out, err := g.Rebuild(false, func(to *ir.Graph, n *ir.Node, in []ir.Value) ([]ir.Value, error) {
		if c := folded[n]; c != nil {
			return c.build(to, n, in)
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
	nodes         []*ir.Node // from conv to last
	weights       *ir.Tensor
	factor, shift []float64
	scaled        bool     // by anything but 1
	shifted       bool     // by anything, if only by 0: -0 + 0 is 0
	built         ir.Value // the new convolution
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
	c := &channelChain{conv: n, last: n, nodes: []*ir.Node{n}, weights: w, factor: make([]float64, channels), shift: make([]float64, channels)}
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
	c.nodes = append(c.nodes, n)
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
func (c *channelChain) worthwhile() bool { return c.scaled || len(c.nodes) > 2 }

// weigh puts the factors into the weights. It is false where a weight loses digits that matter, vanishes or is no finite number.
func (c *channelChain) weigh() bool {
	d := c.weights.DType()
	l := floatLimits{least: 0x1p-126, step: 0x1p-149, most: math.MaxFloat32}
	if d == ir.F64 {
		l = floatLimits{least: 0x1p-1022, step: 0x1p-1074, most: math.MaxFloat64}
	}
	out, err := ir.Zeros(d, c.weights.Shape()...)
	if err != nil {
		return false
	}
	run, channel := c.runs()
	size, lossy := run*d.Size(), make([]int, len(c.factor))
	allowed := int(c.conv.Row.Tol.Abs / (l.step * l.most / 2)) // wrong by half a step each
	for j := range len(out.Bytes()) / max(size, 1) {
		k := channel(j)
		n, ok := l.scale(d, out.Bytes()[j*size:(j+1)*size], c.weights.Bytes()[j*size:(j+1)*size], c.factor[k])
		if lossy[k] += n; !ok || lossy[k] > allowed {
			return false
		}
	}
	for _, s := range c.shift {
		if math.Abs(s) > l.most {
			return false
		}
	}
	c.weights = out
	return true
}

// floatLimits are the least normal number of a dtype, the distance of those below it, and the largest number.
type floatLimits struct{ least, step, most float64 }

// scale writes the numbers of from times f to to, and counts those that lose digits, all of which are subnormal. ok is false where another one does, or
// one vanishes or is no finite number.
func (l floatLimits) scale(d ir.DType, to, from []byte, f float64) (lossy int, ok bool) {
	for i := range len(from) / d.Size() {
		var v float64
		if d == ir.F32 {
			v = float64(math.Float32frombits(binary.LittleEndian.Uint32(from[4*i:])))
		} else {
			v = ir.FloatAt(d, from, i)
		}
		w := v * f
		if d == ir.F32 {
			binary.LittleEndian.PutUint32(to[4*i:], math.Float32bits(float32(w)))
		} else {
			ir.PutFloat(d, to, i, w)
		}
		if size := math.Abs(w); size >= l.least && size <= l.most || v == 0 {
			continue
		} else if !(size < l.least) {
			return 0, false
		}
		r := ir.FloatAt(d, to, i)
		if f == 0 || r == w && r != 0 && d == ir.F32 { // w itself is rounded for f64
			continue
		}
		if lossy++; r == 0 || math.Abs(v) >= l.least {
			return 0, false
		}
	}
	return lossy, true
}

// runs are the stretches of weights that belong to one channel of the result: their length, and the channel of each. Weights are [O, C/groups, k..],
// transposed [C, O/groups, k..].
func (c *channelChain) runs() (length int, channel func(j int) int) {
	shape, inner := c.weights.Shape(), 1
	for _, d := range shape[2:] {
		inner *= int(d)
	}
	a, transposed := c.conv.Attrs.(*op.ConvTransposeAttrs)
	if !transposed {
		return inner * int(shape[1]), func(j int) int { return j }
	}
	per, rows := int(shape[1]), int(shape[0]/a.Groups)
	return inner, func(j int) int { return j/per/rows*per + j%per }
}

// build gives what stands for n, a node of the chain: the convolution with the new weights, and behind the last node the addition.
func (c *channelChain) build(to *ir.Graph, n *ir.Node, in []ir.Value) ([]ir.Value, error) {
	if n == c.conv {
		weights := to.Constant(c.weights).Named(n.In[1].Node().Name + ".folded")
		conv, err := to.Add(n.Row, n.Name, n.Attrs, in[0], weights)
		if err != nil {
			return nil, err
		}
		conv.Inherit(n)
		c.built = conv.Out(0)
		return conv.Results(), nil
	}
	if n != c.last || !c.shifted {
		c.built.Node().Absorb(n)
		return []ir.Value{c.built}, nil
	}
	shift, err := c.summand()
	if err != nil {
		return nil, err
	}
	y := op.Add(c.built, to.Constant(shift)).Named(n.Name)
	if err := to.Err(); err != nil {
		return nil, err
	}
	y.Node().Inherit(n)
	return []ir.Value{y}, nil
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
