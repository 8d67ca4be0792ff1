package onnx

import (
	"slices"
	"strings"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// recurrentRows are layers with a state from step to step.
var recurrentRows = []row{
	{op: "LSTM", since: 7, in: arity{3, 8}, attrs: append(recurrentAttrs(), integer("input_forget", 0, 0, 1)), build: buildLSTM},
	{op: "GRU", since: 7, in: arity{3, 6}, attrs: append(recurrentAttrs(), integer("linear_before_reset", 0)), build: buildGRU},
	{op: "RNN", since: 7, in: arity{3, 6}, attrs: recurrentAttrs(), build: buildRNN},
}

func recurrentAttrs() []attrDecl {
	return []attrDecl{
		floats("activation_alpha"), floats("activation_beta"), listOf("activations", AttributeStrings), {name: "clip", kind: AttributeFloat},
		str("direction", "forward", "reverse", "bidirectional"), {name: "hidden_size", kind: AttributeInt}, integer("layout", 0, 0, 1),
	}
}

// recurrent are the operands in the order of package op.
type recurrent struct {
	x         ir.Value // [B, S, I]
	w         op.RnnWeights
	batchLast bool // layout 0: batch behind time and direction
}

// recurrent reads the operands that the three operators share. order lists ONNX's gate blocks in the order of ours.
func (n *node) recurrent(order ...int64) recurrent {
	for i, rank := range []int{3, 3, 3, 2, 1, 3, 3, 2} {
		n.rank(i, rank, rank)
	}
	in := n.firstVals(6)
	r := recurrent{batchLast: n.i("layout") == 0}
	if !n.ok() {
		return r
	}
	hidden := in[2].Dim(-1)
	r.x = in[0]
	r.w.Wih, r.w.Whh = gates(in[1], hidden, order), gates(in[2], hidden, order)
	if n.has(3) {
		half := hidden.Mul(ir.D(int64(len(order))))
		b := op.Slice(in[3], ir.Dims(0), []ir.Dim{half}, []int{1}, nil)
		r.w.Bih = gates(b, hidden, order)
		b = op.Slice(in[3], []ir.Dim{half}, []ir.Dim{half.Mul(ir.D(2))}, []int{1}, nil)
		r.w.Bhh = gates(b, hidden, order)
	}
	r.w.SeqLen, r.w.H0 = in[4], r.state(in[5])
	if r.batchLast {
		r.x = op.Transpose(r.x, 1, 0, 2)
	}
	return r
}

// gates puts the blocks of hidden rows along axis 1 into another order.
func gates(w ir.Value, hidden ir.Dim, order []int64) ir.Value {
	if slices.IsSorted(order) {
		return w
	}
	var parts []ir.Value
	for _, k := range order {
		parts = append(parts, op.Slice(w, []ir.Dim{hidden.Mul(ir.D(k))}, []ir.Dim{hidden.Mul(ir.D(k + 1))}, []int{1}, nil))
	}
	return op.Concat(1, parts...)
}

// state is an initial or final state with the axes direction and batch swapped where the layout asks for it.
func (r recurrent) state(h ir.Value) ir.Value {
	if h.IsZero() || r.batchLast {
		return h
	}
	return op.Transpose(h, 1, 0, 2)
}

// sequence is y [B, S, D*H] as ONNX has it: [S, D, B, H] or [B, S, D, H].
func (r recurrent) sequence(y ir.Value) ir.Value {
	d := r.w.Whh.Dim(0)
	if y.Rank() != 3 { // of a value that could not be made
		return y
	}
	y = op.Reshape(y, y.Dim(0), y.Dim(1), d, y.Dim(2).FloorDiv(d))
	if r.batchLast {
		return op.Transpose(y, 1, 2, 0, 3)
	}
	return y
}

// activations says that the functions of each direction are among those given, and which.
func (n *node) activations(allowed ...string) (fns string, ok bool) {
	a := n.attr("activations")
	if a == nil || len(a.Strings) == 0 {
		return allowed[0], true
	}
	size := len(a.Strings) / n.directions()
	got := strings.Join(a.Strings[:size], " ")
	return got, slices.Contains(allowed, got) && (n.directions() == 1 || got == strings.Join(a.Strings[size:], " "))
}

// written reads the layer step by step.
func (n *node) written(gates int64, def ...string) {
	fns := n.activationFns(def...)
	if !n.ok() {
		return
	}
	if c := n.cells(gates, fns); c != nil && n.ok() {
		n.ret(c.run()...)
	}
}

func buildLSTM(n *node) {
	if _, ok := n.activations("Sigmoid Tanh Tanh"); !ok || n.i("input_forget") != 0 {
		n.written(4, "Sigmoid", "Tanh", "Tanh")
		return
	}
	r, c0, peephole := n.recurrent(0, 2, 3, 1), n.val(6), n.val(7)
	if !n.ok() {
		return
	}
	if n.has(7) {
		peephole = gates(peephole, r.w.Whh.Dim(-1), []int64{0, 2, 1})
	}
	y, h, c := op.Lstm(r.x, r.w, r.state(c0), peephole, op.LstmAttrs{Direction: op.Direction(n.s("direction")), Clip: n.float("clip")})
	n.ret(r.sequence(y), r.state(h), r.state(c))
}

func buildGRU(n *node) {
	if _, ok := n.activations("Sigmoid Tanh"); !ok {
		n.written(3, "Sigmoid", "Tanh")
		return
	}
	r := n.recurrent(1, 0, 2)
	if !n.ok() {
		return
	}
	y, h := op.Gru(r.x, r.w, op.GruAttrs{
		Direction: op.Direction(n.s("direction")), Clip: n.float("clip"), LinearBeforeReset: n.i("linear_before_reset") != 0,
	})
	n.ret(r.sequence(y), r.state(h))
}

func buildRNN(n *node) {
	fn := op.RnnActivation("tanh")
	switch name, ok := n.activations("Tanh", "Relu"); {
	case !ok:
		n.written(1, "Tanh")
		return
	case name == "Relu":
		fn = "relu"
	}
	r := n.recurrent(0)
	if !n.ok() {
		return
	}
	y, h := op.Rnn(r.x, r.w, op.RnnAttrs{Direction: op.Direction(n.s("direction")), Clip: n.float("clip"), Activation: fn})
	n.ret(r.sequence(y), r.state(h))
}
