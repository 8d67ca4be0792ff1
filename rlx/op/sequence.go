package op

import (
	"cmp"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// Direction is the way a recurrent layer runs through time.
type Direction string

// EnumValues lists the directions.
func (Direction) EnumValues() []string { return []string{"forward", "reverse", "bidirectional"} }

// Count is the number of directions: 2 for bidirectional.
func (d Direction) Count() int64 {
	if d == "bidirectional" {
		return 2
	}
	return 1
}

// RnnActivation is the activation of an Elman cell.
type RnnActivation string

// EnumValues lists the activations.
func (RnnActivation) EnumValues() []string { return []string{"tanh", "relu"} }

// LstmAttrs are the attributes of Lstm. A Clip above 0 clamps every gate's pre-activation to [-Clip, Clip].
type LstmAttrs struct {
	Direction Direction `default:"forward" c:"C1"`
	Clip      float64   `default:"0" min:"0" c:"C6"`
}

// GruAttrs are the attributes of Gru; see LstmAttrs.
type GruAttrs struct {
	Direction         Direction `default:"forward" c:"C1"`
	Clip              float64   `default:"0" min:"0" c:"C6"`
	LinearBeforeReset bool      `default:"true"`
}

// RnnAttrs are the attributes of Rnn; see LstmAttrs.
type RnnAttrs struct {
	Direction  Direction     `default:"forward" c:"C1"`
	Clip       float64       `default:"0" min:"0" c:"C6"`
	Activation RnnActivation `default:"tanh" c:"C7"`
}

var (
	lstm = ir.Declare[LstmAttrs]("sequence", "Lstm")
	gru  = ir.Declare[GruAttrs]("sequence", "Gru")
	rnn  = ir.Declare[RnnAttrs]("sequence", "Rnn")
)

// RnnWeights are the weights of a recurrent layer of G gates (Lstm 4, Gru 3, Rnn 1), rows in torch order, and where it starts. D is 2
// for a bidirectional layer, else 1. All but Wih and Whh may be the zero Value: no bias, states of zeros, sequences of full length.
type RnnWeights struct {
	Wih, Whh ir.Value // [D, G*H, I], [D, G*H, H]
	Bih, Bhh ir.Value // [D, G*H]
	H0       ir.Value // [D, B, H]
	SeqLen   ir.Value // [B] i32 or i64: steps from SeqLen[b] on give 0 and leave the states; reverse starts at the sequence's own end
}

// Lstm is one LSTM layer: i, f, o = sigmoid and g = tanh of x Wih^T + Bih + h Whh^T + Bhh, c' = f*c + i*g, h' = o * tanh(c'). Rows of
// the weights: i, f, g, o. A peephole [D, 3*H] adds p*c to i and f and p*c' to o.
//
// Shapes: x [B, S, I], c0 [D, B, H] or the zero Value, y [B, S, D*H] in time order, backward behind forward, hN and cN [D, B, H].
// Dtypes: floats, the same for all; f16 and bf16 compute in f32. Errors: C1 direction, C2 rank of x, C3 weights and biases, C4 initial
// states, C5 SeqLen, C6 clip < 0, C7 peephole. Source: Hochreiter, Schmidhuber 1997; torch LSTM; ONNX LSTM 22.
func Lstm(x ir.Value, w RnnWeights, c0, peephole ir.Value, a LstmAttrs) (y, hN, cN ir.Value) {
	a.Direction = cmp.Or(a.Direction, "forward")
	r := lstm.Apply(a, x, w.Wih, w.Whh, w.Bih, w.Bhh, w.H0, c0, w.SeqLen, peephole)
	return r[0], r[1], r[2]
}

// Gru is one GRU layer: r, z = sigmoid(x Wih^T + Bih + h Whh^T + Bhh), n = tanh(x Wn^T + b + r * (h Un^T + d)), h' = (1-z)*n + z*h.
// Rows of the weights: r, z, n. Without LinearBeforeReset n = tanh(x Wn^T + b + (r*h) Un^T + d).
//
// Shapes, dtypes and errors as Lstm, without c0, cN and C7. Source: Cho et al. 2014; torch GRU; ONNX GRU 22.
func Gru(x ir.Value, w RnnWeights, a GruAttrs) (y, hN ir.Value) {
	a.Direction = cmp.Or(a.Direction, "forward")
	r := gru.Apply(a, x, w.Wih, w.Whh, w.Bih, w.Bhh, w.H0, w.SeqLen)
	return r[0], r[1]
}

// Rnn is one Elman layer: h' = act(x Wih^T + Bih + h Whh^T + Bhh).
//
// Shapes, dtypes and errors as Lstm, without c0 and cN; C7 is the activation. Source: Elman 1990; torch RNN; ONNX RNN 22.
func Rnn(x ir.Value, w RnnWeights, a RnnAttrs) (y, hN ir.Value) {
	a.Direction, a.Activation = cmp.Or(a.Direction, "forward"), cmp.Or(a.Activation, "tanh")
	r := rnn.Apply(a, x, w.Wih, w.Whh, w.Bih, w.Bhh, w.H0, w.SeqLen)
	return r[0], r[1]
}

func init() {
	first := []ir.Operand{ir.In("x", ir.Float), ir.In("w_ih", ir.Float), ir.In("w_hh", ir.Float), ir.Opt("b_ih", ir.Float), ir.Opt("b_hh", ir.Float),
		ir.Opt("h0", ir.Float)}
	seqLen := ir.Opt("seq_len", ir.Set(ir.I32, ir.I64))
	tol := ir.Tolerance{Ulp: 64, Abs: 2e-6}
	lstm.Define(ir.Def[LstmAttrs]{
		Doc:     "one LSTM layer, 1 or 2 directions",
		In:      append(first[:6:6], ir.Opt("c0", ir.Float), seqLen, ir.Opt("peephole", ir.Float)),
		Results: []string{"y", "h_n", "c_n"},
		SameC:   "C3",
		Infer: func(t *ir.Infer, a *LstmAttrs) {
			r, ok := inferRecurrent(t, 4, 7, a.Direction, a.Clip)
			if !ok {
				return
			}
			needShape(t, "C4", 6, "c0", r.state())
			needShape(t, "C7", 8, "peephole", []ir.Dim{r.d, r.h.Mul(ir.D(3))})
			t.Out(r.results(t.Type(0).DType, 2)...)
		},
		Tol: tol,
	})
	gru.Define(ir.Def[GruAttrs]{
		Doc:     "one GRU layer, 1 or 2 directions",
		In:      append(first[:6:6], seqLen),
		Results: []string{"y", "h_n"},
		SameC:   "C3",
		Infer: func(t *ir.Infer, a *GruAttrs) {
			if r, ok := inferRecurrent(t, 3, 6, a.Direction, a.Clip); ok {
				t.Out(r.results(t.Type(0).DType, 1)...)
			}
		},
		Tol: tol,
	})
	rnn.Define(ir.Def[RnnAttrs]{
		Doc:     "one Elman layer, 1 or 2 directions",
		In:      append(first[:6:6], seqLen),
		Results: []string{"y", "h_n"},
		SameC:   "C3",
		Infer: func(t *ir.Infer, a *RnnAttrs) {
			if r, ok := inferRecurrent(t, 1, 6, a.Direction, a.Clip); ok {
				t.Out(r.results(t.Type(0).DType, 1)...)
			}
		},
		Tol: tol,
	})
}

// recurrent are the sizes of a recurrent layer.
type recurrent struct{ b, s, d, h ir.Dim }

func (r recurrent) state() []ir.Dim { return []ir.Dim{r.d, r.b, r.h} }

func (r recurrent) results(d ir.DType, states int) []ir.Type {
	out := []ir.Type{{DType: d, Shape: []ir.Dim{r.b, r.s, r.d.Mul(r.h)}}}
	for range states {
		out = append(out, ir.Type{DType: d, Shape: r.state()})
	}
	return out
}

// needShape checks the shape of operand i where it is present.
func needShape(t *ir.Infer, c string, i int, name string, want []ir.Dim) {
	if t.Has(i) {
		t.Need(same(t.Type(i).Shape, want), c, "%s has shape %v, expected %v", name, t.Type(i).Shape, want)
	}
}

// inferRecurrent checks what Lstm, Gru and Rnn have in common. Operand seqLen is that.
func inferRecurrent(t *ir.Infer, gates int64, seqLen int, direction Direction, clip float64) (recurrent, bool) {
	x, whh := t.Type(0).Shape, t.Type(2).Shape
	if !t.Need(len(x) == 3, "C2", "x has shape %v, expected [B, S, I]", x) || !t.Need(len(whh) == 3, "C3", "w_hh has shape %v, expected [D, %d*H, H]", whh, gates) {
		return recurrent{}, false
	}
	r := recurrent{b: x[0], s: x[1], d: ir.D(direction.Count()), h: whh[2]}
	rows := r.h.Mul(ir.D(gates))
	needShape(t, "C3", 2, "w_hh", []ir.Dim{r.d, rows, r.h})
	needShape(t, "C3", 1, "w_ih", []ir.Dim{r.d, rows, x[2]})
	needShape(t, "C3", 3, "b_ih", []ir.Dim{r.d, rows})
	needShape(t, "C3", 4, "b_hh", []ir.Dim{r.d, rows})
	needShape(t, "C4", 5, "h0", r.state())
	needShape(t, "C5", seqLen, "seq_len", []ir.Dim{r.b})
	t.Need(clip >= 0, "C6", "clip %g, expected >= 0", clip)
	return r, t.OK()
}
