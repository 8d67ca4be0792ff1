package op

import (
	"cmp"
	"math"
	"slices"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// ResizeMode says how Resize samples.
type ResizeMode string

// The modes of Resize.
const (
	ResizeNearest ResizeMode = "nearest"
	ResizeLinear  ResizeMode = "linear"
	ResizeCubic   ResizeMode = "cubic"
)

// EnumValues lists the values in the order of the command words.
func (ResizeMode) EnumValues() []string { return []string{"nearest", "linear", "cubic"} }

// CoordinateMode maps an output index to a coordinate of the input.
type CoordinateMode string

// The coordinate modes of Resize, for output index j of m and an axis of n elements.
const (
	HalfPixel          CoordinateMode = "half_pixel"           // (j+0.5)/scale - 0.5
	HalfPixelSymmetric CoordinateMode = "half_pixel_symmetric" // the same around the centre of the axis
	TorchHalfPixel     CoordinateMode = "pytorch_half_pixel"   // half_pixel, 0 if m = 1
	AlignCorners       CoordinateMode = "align_corners"        // j*(n-1)/(m-1)
	Asymmetric         CoordinateMode = "asymmetric"           // j/scale
	CropAndResize      CoordinateMode = "tf_crop_and_resize"   // within the roi
)

// EnumValues lists the values in the order of the command words.
func (CoordinateMode) EnumValues() []string {
	return []string{"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize"}
}

// NearestMode rounds a coordinate.
type NearestMode string

// The nearest modes of Resize; the first two say what happens to ties.
const (
	RoundPreferFloor NearestMode = "round_prefer_floor"
	RoundPreferCeil  NearestMode = "round_prefer_ceil"
	NearestFloor     NearestMode = "floor"
	NearestCeil      NearestMode = "ceil"
)

// EnumValues lists the values in the order of the command words.
func (NearestMode) EnumValues() []string {
	return []string{"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}
}

// ResizeAttrs are the attributes of Resize. Empty Axes mean all; exactly one of Sizes and Scales is given.
type ResizeAttrs struct {
	Axes               []int64        `default:"nil"`
	Sizes              []ir.Dim       `default:"nil"`
	Scales             []float64      `default:"nil"`
	Mode               ResizeMode     `default:"nearest" c:"C5"`
	CoordinateMode     CoordinateMode `default:"half_pixel" c:"C5"`
	NearestMode        NearestMode    `default:"round_prefer_floor" c:"C5"`
	CubicCoeffA        float64        `default:"-0.75"`
	ExcludeOutside     bool           `default:"false"`
	Roi                []float64      `default:"nil"`
	ExtrapolationValue float64        `default:"0"`
}

var resize = ir.Declare[ResizeAttrs]("shape", "Resize")

// Resize samples x on another grid along the given axes: each output element is a weighted sum of the input elements next to its
// coordinate, one (nearest), two (linear) or four (cubic) per axis. Empty modes in a mean nearest, half_pixel and round_prefer_floor;
// a CubicCoeffA of 0 means -0.75.
//
// Shapes: m = sizes, or floor(n*scales). Any dtype for nearest, float else; accumulated in f32 at least. Errors: C1 dtype, C2 not one
// of sizes and scales or another number of entries, C3 scale <= 0 or size < 0, C4 an empty axis cannot grow, C5 unknown mode, C9 axis
// outside the rank or named twice. Source: ONNX Resize 19.
func Resize(x ir.Value, a ResizeAttrs) ir.Value {
	if a.Mode == "" {
		a.Mode = ResizeNearest
	}
	if a.CoordinateMode == "" {
		a.CoordinateMode = HalfPixel
	}
	if a.NearestMode == "" {
		a.NearestMode = RoundPreferFloor
	}
	if a.CubicCoeffA == 0 {
		a.CubicCoeffA = -0.75
	}
	return resize.Apply1(a, x)
}

func init() {
	resize.Define(ir.Def[ResizeAttrs]{
		Doc: "x sampled on another grid: nearest, linear or cubic", In: []ir.Operand{ir.In("x", ir.AnyDType)},
		Infer: inferResize, Decompose: decomposeResize, Tol: ir.Tolerance{Ulp: 16, Abs: 1e-6},
	})
}

// axis is entry i of the axes.
func (a *ResizeAttrs) axis(i int) int {
	if len(a.Axes) == 0 {
		return i
	}
	return int(a.Axes[i])
}

func inferResize(t *ir.Infer, a *ResizeAttrs) {
	x := t.Type(0)
	rank := len(x.Shape)
	count := rank
	if len(a.Axes) > 0 {
		if _, ok := wrapAxes(t, "C9", a.Axes, rank); !ok {
			return
		}
		count = len(a.Axes)
	}
	t.Need(a.Mode == ResizeNearest || ir.Float.Has(x.DType), "C1", "mode %s of dtype %s, expected one of %s", string(a.Mode), x.DType, ir.Float)
	if !t.Need((len(a.Sizes) == 0) != (len(a.Scales) == 0), "C2", "%d sizes and %d scales, expected one of the two", len(a.Sizes), len(a.Scales)) ||
		!t.Need(len(a.Sizes)+len(a.Scales) == count, "C2", "sizes or scales have %d entries, expected %d", len(a.Sizes)+len(a.Scales), count) ||
		!t.Need(len(a.Roi) == 0 || a.CoordinateMode != CropAndResize || len(a.Roi) == 2*count, "C2", "roi has %d entries, expected %d", len(a.Roi), 2*count) {
		return
	}
	out := append([]ir.Dim{}, x.Shape...)
	for i := range count {
		k, _ := wrap(a.axis(i), rank)
		if len(a.Sizes) > 0 {
			m, static := a.Sizes[i].Static()
			t.Need(!static || m >= 0, "C3", "size %d of axis %d, expected >= 0", m, k)
			out[k] = a.Sizes[i]
		} else {
			s := float32(a.Scales[i])
			t.Need(s > 0, "C3", "scale %g of axis %d, expected > 0", a.Scales[i], k)
			out[k] = scaledDim(t, k, x.Shape[k], s)
		}
		m, static := out[k].Static()
		t.Need(!x.Shape[k].Is(0) || !static || m == 0, "C4", "length %d for axis %d, expected 0: it is empty", m, k)
	}
	t.Out(ir.Type{DType: x.DType, Shape: out})
}

// scaledDim is floor(f32(n)*scale), as a dim where n is symbolic and the scale or its inverse is whole.
func scaledDim(t *ir.Infer, k int, n ir.Dim, scale float32) ir.Dim {
	len, static := n.Static()
	whole := func(v float32) bool { return v == float32(int32(v)) && v < 1<<20 }
	switch {
	case static:
		m := math.Floor(float64(float32(len) * scale))
		if !(m < 0x1p63) {
			return ir.D(maxInt64)
		}
		return ir.D(int64(m))
	case whole(scale):
		return n.Mul(ir.D(int64(scale)))
	case whole(1/scale) && 1/(1/scale) == scale:
		return n.FloorDiv(ir.D(int64(1 / scale)))
	}
	return t.Unknown(k)
}

// Taps says how one axis is resampled: output j is the sum of Weight[j*Per+i] * x[Index[j*Per+i]], or the extrapolation value where
// Outside[j].
type Taps struct {
	Axis    int
	Per     int
	Index   []int64
	Weight  []float64
	Outside []bool // nil: nowhere
}

// Taps lists the axes that Resize changes from in to out dims; other axes stay as they are.
func (a *ResizeAttrs) Taps(in, out []int64) []Taps {
	var list []Taps
	for i := range max(len(a.Sizes), len(a.Scales)) {
		k, _ := wrap(a.axis(i), len(in))
		n, m := in[k], out[k]
		scale := float32(m) / float32(max(n, 1))
		if len(a.Scales) > 0 {
			scale = float32(a.Scales[i])
		}
		if m == n && scale == 1 && a.CoordinateMode != CropAndResize {
			continue
		}
		lo, hi := float32(0), float32(1)
		if len(a.Roi) > 0 {
			lo, hi = float32(a.Roi[i]), float32(a.Roi[i+len(a.Roi)/2])
		}
		list = append(list, a.axisTaps(k, n, m, func(j int64) float32 {
			return coordinate(a.CoordinateMode, float32(j), float32(n), float32(m), scale, lo, hi)
		}))
	}
	return list
}

// coordinate is the position in the input of output index j, in f32: the conversions keep each operation rounded by itself.
func coordinate(mode CoordinateMode, j, n, m, scale, lo, hi float32) float32 {
	half := func() float32 { return float32(float32(j+0.5)/scale) - 0.5 }
	switch mode {
	case HalfPixelSymmetric:
		return float32(float32(n/2)*float32(1-float32(m/float32(scale*n)))) + float32(float32(j+0.5)/scale) - 0.5
	case TorchHalfPixel:
		if m > 1 {
			return half()
		}
		return 0
	case AlignCorners:
		if m > 1 {
			return float32(j*float32(n-1)) / float32(m-1)
		}
		return 0
	case Asymmetric:
		return j / scale
	case CropAndResize:
		if m > 1 {
			return float32(lo*float32(n-1)) + float32(float32(float32(j*float32(hi-lo))*float32(n-1))/float32(m-1))
		}
		return float32(0.5*float32(lo+hi)) * float32(n-1)
	}
	return half()
}

func (a *ResizeAttrs) axisTaps(k int, n, m int64, at func(j int64) float32) Taps {
	t := Taps{Axis: k, Per: map[ResizeMode]int{ResizeNearest: 1, ResizeLinear: 2, ResizeCubic: 4}[a.Mode]}
	for j := range m {
		c := float64(at(j))
		if a.CoordinateMode == CropAndResize {
			t.Outside = append(t.Outside, !(c >= 0 && c <= float64(n-1)))
		}
		if a.Mode == ResizeNearest {
			t.Index, t.Weight = append(t.Index, clampIndex(a.NearestMode.round(c), n)), append(t.Weight, 1)
			continue
		}
		first, sum := math.Floor(c)-float64(t.Per/2-1), 0.0
		weights := make([]float64, t.Per)
		for i := range weights {
			tap := first + float64(i)
			if !a.ExcludeOutside || tap >= 0 && tap < float64(n) {
				weights[i] = a.weight(math.Abs(tap - c))
			}
			sum += weights[i]
			t.Index = append(t.Index, clampIndex(tap, n))
		}
		for _, w := range weights {
			if a.ExcludeOutside && sum != 0 {
				w /= sum
			}
			t.Weight = append(t.Weight, w)
		}
	}
	return t
}

func (m NearestMode) round(c float64) float64 {
	switch m {
	case NearestFloor:
		return math.Floor(c)
	case NearestCeil:
		return math.Ceil(c)
	case RoundPreferCeil:
		return math.Floor(c + 0.5)
	}
	return math.Ceil(c - 0.5)
}

// clampIndex is i in [0, n-1]; a NaN is 0.
func clampIndex(i float64, n int64) int64 {
	switch {
	case i >= float64(n-1):
		return n - 1
	case i > 0:
		return int64(i)
	}
	return 0
}

// weight is the interpolation kernel at distance d: the triangle, or Keys' cubic.
func (a *ResizeAttrs) weight(d float64) float64 {
	c := a.CubicCoeffA
	switch {
	case a.Mode == ResizeLinear:
		return max(0, 1-d)
	case d <= 1:
		return ((c+2)*d-(c+3))*d*d + 1
	case d < 2:
		return (((d-5)*d+8)*d - 4) * c
	}
	return 0
}

func decomposeResize(n *ir.Node, a *ResizeAttrs) []ir.Value {
	if v, ok := emptyResult(n); ok {
		return v
	}
	x := n.In[0]
	in, _ := ir.StaticShape(x.Shape())
	out, _ := ir.StaticShape(n.Types[0].Shape)
	y, g := x, x.Graph()
	if a.Mode != ResizeNearest {
		y = widen(x)
	}
	taps := a.Taps(in, out)
	if a.Mode == ResizeNearest { // the axes come in any order
		slices.SortStableFunc(taps, func(s, t Taps) int { return cmp.Compare(turn(s.Axis, in, out), turn(t.Axis, in, out)) })
	}
	for _, t := range taps {
		y = resample(y, t)
	}
	y = narrow(y, x.DType())
	for _, t := range taps {
		if outside := boolTensor(t.Outside); outside.Len() > 0 {
			value := g.Constant(NumberAs(x.DType(), ir.FloatNumber(a.ExtrapolationValue)))
			y = Where(along(g.Constant(outside), t.Axis, x.Rank()), value, y)
		}
	}
	return []ir.Value{y}
}

// turn is when an axis is gathered: what leaves fewer elements comes first, and the later an axis the fewer elements it is to find, for neighbours in memory
// are gathered one by one, and rows as they are.
func turn(axis int, in, out []int64) int {
	if out[axis] < in[axis] {
		return axis - len(in)
	}
	return len(in) - axis
}

// boolTensor is the tensor of v, empty where no entry is set.
func boolTensor(v []bool) *ir.Tensor {
	for _, b := range v {
		if b {
			return ir.New(v, len(v))
		}
	}
	return ir.New([]bool{}, 0)
}

// resample gathers each tap along its axis and adds them up by weight. A tap of weight 0 is left out, so that an infinity there
// does not become NaN.
func resample(y ir.Value, t Taps) ir.Value {
	g, m := y.Graph(), len(t.Index)/t.Per
	var sum ir.Value
	for i := range t.Per {
		index, weight, skip := make([]int64, m), make([]float64, m), make([]bool, m)
		for j := range m {
			index[j], weight[j] = t.Index[j*t.Per+i], t.Weight[j*t.Per+i]
			skip[j] = weight[j] == 0
		}
		v := Gather(y, g.Constant(indexTensor(index)), t.Axis)
		if t.Per == 1 {
			return v
		}
		v = Mul(v, along(Cast(g.Constant(ir.New(weight, m)), y.DType()), t.Axis, y.Rank()))
		if zero := boolTensor(skip); zero.Len() > 0 {
			v = Where(along(g.Constant(zero), t.Axis, y.Rank()), g.Constant(NumberAs(y.DType(), ir.IntNumber(0))), v)
		}
		if sum.IsZero() {
			sum = v
		} else {
			sum = Add(sum, v)
		}
	}
	return sum
}
