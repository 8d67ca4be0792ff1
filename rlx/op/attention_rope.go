package op

import (
	"cmp"
	"math"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// RopeAttrs are the attributes of Rope. A RotaryDim of 0 means D; NumHeads is for layout bsd.
type RopeAttrs struct {
	Layout      HeadLayout `default:"bhsd" c:"C1"`
	NumHeads    int64      `default:"0" min:"0" c:"C1"`
	RotaryDim   int64      `default:"0" min:"0" c:"C2"`
	Interleaved bool       `default:"false"`
}

// AxialRope2dAttrs are the attributes of AxialRope2d.
type AxialRope2dAttrs struct {
	GridWidth    int64      `min:"1" c:"C3"`
	GridHeight   int64      `min:"1" c:"C3"`
	Theta        float64    `default:"10000"`
	RepeatFactor int64      `default:"1" min:"1" c:"C3"`
	Layout       HeadLayout `default:"bhsd" c:"C1"`
	NumHeads     int64      `default:"0" min:"0" c:"C1"`
}

var (
	rope        = ir.Declare[RopeAttrs]("attention", "Rope")
	axialRope2d = ir.Declare[AxialRope2dAttrs]("attention", "AxialRope2d")
)

// Rope rotates pairs of elements of each head by the angles of the token's row: with c and s the row of cos and sin and r =
// RotaryDim/2, y[i] = x[i] c[i] - x[i+r] s[i] and y[i+r] = x[i+r] c[i] + x[i] s[i] for i < r. Interleaved, the pairs are 2i and 2i+1.
// Elements from RotaryDim on are copied.
//
// Shapes: x in a.Layout; cos and sin [P, R], or [B or 1, S, R] with the row of every token, R >= r; positions [S] or [B, S] are rows
// of a [P, R] table, 0..S-1 where it is the zero Value; y as x. Dtypes: floats; cos and sin share one; positions i32 or i64. f16 and
// bf16 compute in f32. Errors: C1 layout, rank, C2 rotary_dim odd or above D, C3 tables, C4 shape of positions, C5 a position outside
// 0..P-1, when the node runs. Source: Su et al. 2021; ONNX RotaryEmbedding 23.
func Rope(x, cos, sin, positions ir.Value, a RopeAttrs) ir.Value {
	a.Layout = cmp.Or(a.Layout, "bhsd")
	return rope.Apply1(a, x, cos, sin, positions)
}

// AxialRope2d rotates interleaved pairs by the place of each token in a grid: those of the first D/2 elements by column * f, those of
// the others by row * f, with f[c] = theta^(-4c/D). Token t stands at p = t mod (W*H), column p mod W, row p / W.
//
// Shapes: x in a.Layout with S = W * H * RepeatFactor; y as x. Dtypes: floats. In a, a Theta of 0 means 10000 and a RepeatFactor of 0
// means 1. Errors: C1 layout, rank, C2 D is no multiple of 4, C3 S is not the grid. Source: SAM 2.
func AxialRope2d(x ir.Value, a AxialRope2dAttrs) ir.Value {
	a.Layout, a.Theta, a.RepeatFactor = cmp.Or(a.Layout, "bhsd"), cmp.Or(a.Theta, 10000), cmp.Or(a.RepeatFactor, 1)
	return axialRope2d.Apply1(a, x)
}

func init() {
	rope.Define(ir.Def[RopeAttrs]{
		Doc:       "rotary position embedding from a table",
		In:        []ir.Operand{ir.In("x", ir.Float), ir.In("cos", ir.Float), ir.In("sin", ir.Float), ir.Opt("positions", ir.Set(ir.I32, ir.I64))},
		DTypeC:    "C3",
		Infer:     inferRope,
		Decompose: decomposeRope,
		Tol:       ir.Tolerance{Ulp: 4, Abs: 1e-7},
	})
	axialRope2d.Define(ir.Def[AxialRope2dAttrs]{
		Doc:       "rotary embedding of a 2-D grid",
		In:        []ir.Operand{ir.In("x", ir.Float)},
		DTypeC:    "C1",
		Infer:     inferAxialRope2d,
		Decompose: decomposeAxialRope2d,
		Tol:       ir.Tolerance{Ulp: 4, Abs: 1e-7},
	})
}

func inferRope(t *ir.Infer, a *RopeAttrs) {
	x, ok := heads(t, 0, "x", a.Layout, a.NumHeads)
	if !ok {
		return
	}
	d, static := x[3].Static()
	rot := a.RotaryDim
	if rot == 0 {
		rot = d // 0 where it is not known yet
	}
	t.Need(rot%2 == 0 && (!static || rot <= d), "C2", "rotary_dim %d, expected an even number of at most the head size %s", rot, x[3])
	cos, sin := t.Type(1), t.Type(2)
	t.Need(cos.DType == sin.DType && same(cos.Shape, sin.Shape), "C3", "cos is %s and sin %s, expected equal ones", cos, sin)
	if !t.Need(len(cos.Shape) == 2 || len(cos.Shape) == 3, "C3", "cos has shape %v, expected [P, R] or [B, S, R]", cos.Shape) {
		return
	}
	width, known := cos.Shape[len(cos.Shape)-1].Static()
	t.Need(!known || width >= rot/2, "C3", "cos has %d columns, expected %d or more", width, rot/2)
	if len(cos.Shape) == 3 {
		t.Need(!t.Has(3), "C3", "cos has shape %v beside positions, expected [P, R]", cos.Shape)
		rows := cos.Shape
		t.Need((rows[0].Is(1) || !rows[0].Differs(x[0])) && !rows[1].Differs(x[2]), "C3", "cos has shape %v, expected [%s or 1, %s, R]", rows, x[0], x[2])
	}
	if t.Has(3) {
		p := t.Type(3).Shape
		okP := len(p) == 1 && !p[0].Differs(x[2]) || len(p) == 2 && (p[0].Is(1) || !p[0].Differs(x[0])) && !p[1].Differs(x[2])
		t.Need(okP, "C4", "positions has shape %v, expected [%s] or [%s, %s]", p, x[2], x[0], x[2])
	}
	t.Out(t.Type(0))
}

func inferAxialRope2d(t *ir.Infer, a *AxialRope2dAttrs) {
	x, ok := heads(t, 0, "x", a.Layout, a.NumHeads)
	if !ok {
		return
	}
	d, static := x[3].Static()
	t.Need(!static || d%4 == 0, "C2", "head size %d, expected a multiple of 4", d)
	grid := ir.D(a.GridWidth).Mul(ir.D(a.GridHeight)).Mul(ir.D(a.RepeatFactor))
	t.Need(!x[2].Differs(grid), "C3", "sequence of %s, expected grid_width %d * grid_height %d * repeat_factor %d", x[2], a.GridWidth, a.GridHeight, a.RepeatFactor)
	t.Need(a.Theta > 0, "", "theta %g, expected > 0", a.Theta)
	t.Out(t.Type(0))
}

func decomposeRope(n *ir.Node, a *RopeAttrs) []ir.Value {
	in := n.In[0]
	x := in
	shape, _ := ir.StaticShape(x.Shape())
	if a.Layout == "bsd" {
		shape = []int64{shape[0], shape[1], a.NumHeads, shape[2] / a.NumHeads}
		x = ReshapeInts(x, shape...)
	}
	rot := a.RotaryDim
	if rot == 0 {
		rot = shape[3]
	}
	r, wide := rot/2, widen(x).DType()
	cos, sin := ropeRows(n, a, shape, r, wide)
	turned := widen(Narrow(x, 3, 0, rot))
	axis := 3
	if a.Interleaved {
		turned, axis = ReshapeInts(turned, shape[0], shape[1], shape[2], r, 2), 4
		cos, sin = column(cos), column(sin)
	}
	half := turned.Dim(axis).FloorDiv(ir.D(2))
	m, _ := half.Static()
	x1, x2 := Narrow(turned, axis, 0, m), Narrow(turned, axis, m, m)
	y := narrow(Concat(axis, Sub(Mul(x1, cos), Mul(x2, sin)), Add(Mul(x2, cos), Mul(x1, sin))), in.DType())
	if a.Interleaved {
		y = ReshapeInts(y, shape[0], shape[1], shape[2], rot)
	}
	if rot < shape[3] {
		y = Concat(3, y, Narrow(x, 3, rot, shape[3]-rot))
	}
	return []ir.Value{Reshape(y, in.Shape()...)}
}

func column(x ir.Value) ir.Value {
	return Reshape(x, append(append([]ir.Dim{}, x.Shape()...), ir.D(1))...)
}

// ropeRows are the rows of cos and sin of each token, to broadcast over x of the given shape, of which the first r columns.
func ropeRows(n *ir.Node, a *RopeAttrs, shape []int64, r int64, d ir.DType) (cos, sin ir.Value) {
	s := shape[1]
	if a.Layout == "bhsd" {
		s = shape[2]
	}
	at := n.In[3]
	if p, _ := n.In[1].Dim(0).Static(); !at.IsZero() {
		at = Where(Lt(at, 0), p, at) // no row, where Gather would count from the end
	} else if n.In[1].Rank() == 2 && s > p {
		at = Iota(n.In[1].Graph(), s, ir.I64) // beyond the table: the run fails
	}
	rows := func(t ir.Value) ir.Value {
		switch {
		case !at.IsZero():
			t = Gather(t, at, 0)
		case t.Rank() == 2:
			t = Narrow(t, 0, 0, s)
		}
		batch := int64(1)
		if t.Rank() == 3 {
			batch, _ = t.Dim(0).Static()
		}
		t = narrow(Narrow(t, -1, 0, r), d)
		if a.Layout == "bhsd" {
			return ReshapeInts(t, batch, 1, s, r)
		}
		return ReshapeInts(t, batch, s, 1, r)
	}
	return rows(n.In[1]), rows(n.In[2])
}

func decomposeAxialRope2d(n *ir.Node, a *AxialRope2dAttrs) []ir.Value {
	x := n.In[0]
	g := x.Graph()
	d, _ := x.Dim(-1).Static()
	if a.Layout == "bsd" {
		d /= a.NumHeads
	}
	points := a.GridWidth * a.GridHeight
	cos, err := ir.Zeros(ir.F32, points, d/2)
	if err != nil {
		return []ir.Value{g.Fail("AxialRope2d", err)}
	}
	sin, err := ir.Zeros(ir.F32, points, d/2)
	if err != nil {
		return []ir.Value{g.Fail("AxialRope2d", err)}
	}
	for i := range cos.Len() {
		s, c := math.Sincos(AxialAngle(a, int64(i)/(d/2), int64(i)%(d/2), d))
		ir.PutFloat(ir.F32, cos.Bytes(), i, c)
		ir.PutFloat(ir.F32, sin.Bytes(), i, s)
	}
	var positions ir.Value
	if a.RepeatFactor > 1 {
		at, err := ir.Zeros(ir.I64, points*a.RepeatFactor)
		if err != nil {
			return []ir.Value{g.Fail("AxialRope2d", err)}
		}
		for i := range at.Len() {
			ir.PutInt(ir.I64, at.Bytes(), i, int64(i)%points)
		}
		positions = g.Constant(at)
	}
	return []ir.Value{Rope(x, g.Constant(cos), g.Constant(sin), positions, RopeAttrs{Layout: a.Layout, NumHeads: a.NumHeads, Interleaved: true})}
}

// AxialAngle is the angle of pair i of a head of d elements at point p of the grid.
func AxialAngle(a *AxialRope2dAttrs, p, i, d int64) float64 {
	place, c := p%a.GridWidth, i
	if i >= d/4 {
		place, c = p/a.GridWidth, i-d/4
	}
	return float64(place) * math.Pow(a.Theta, -4*float64(c)/float64(d))
}
