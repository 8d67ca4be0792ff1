package ref

import (
	"math"

	"github.com/rlx-ml/rlx-go/rlx/op"
)

func init() {
	on("Lstm", lstm)
	on("Gru", gru)
	on("Rnn", rnn)
}

// layer is a recurrent layer: its sizes, its operands as float64, and the state of the sequence that runs.
type layer struct {
	c                     *call
	batch, steps, in      int
	dirs, hidden, gates   int
	x, wih, whh, bih, bhh []float64
	clip                  float64
	lengths               []int
}

// newLayer reads what Lstm, Gru and Rnn have in common. Operand seqLen is that.
func newLayer(c *call, gates, seqLen int, clip float64) (*layer, error) {
	x, whh := c.in[0], c.in[2]
	l := &layer{c: c, gates: gates, clip: clip, batch: int(x.dims[0]), steps: int(x.dims[1]), in: int(x.dims[2]), dirs: int(whh.dims[0]), hidden: int(whh.dims[2])}
	l.x, l.wih, l.whh = x.floats(), c.in[1].floats(), whh.floats()
	l.bih, l.bhh = l.orZeros(3, l.dirs*gates*l.hidden), l.orZeros(4, l.dirs*gates*l.hidden)
	l.lengths = make([]int, l.batch)
	for b := range l.lengths {
		l.lengths[b] = l.steps
		if !c.has(seqLen) {
			continue
		}
		n := c.in[seqLen].int(b)
		if n < 0 || n > int64(l.steps) {
			return nil, broken("C5", "seq_len %d, expected in 0..%d", n, l.steps)
		}
		l.lengths[b] = int(n)
	}
	return l, nil
}

// orZeros is operand i, or n zeros where it is absent.
func (l *layer) orZeros(i, n int) []float64 {
	if l.c.has(i) {
		return l.c.in[i].floats()
	}
	return make([]float64, n)
}

// times adds gate rows [first, last) of direction d of w, which has n columns, times v to z.
func (l *layer) times(z []float64, w []float64, d, n, first, last int, v []float64) {
	for r := first; r < last; r++ {
		row := w[(d*l.gates*l.hidden+r)*n:][:n]
		sum := 0.0
		for i, f := range row {
			sum += f * v[i]
		}
		z[r] += sum
	}
}

// squash clamps a pre-activation; NaN stays.
func (l *layer) squash(z float64) float64 {
	switch {
	case l.clip == 0:
	case z > l.clip:
		return l.clip
	case z < -l.clip:
		return -l.clip
	}
	return z
}

func sigmoid(x float64) float64 {
	if x >= 0 {
		return 1 / (1 + math.Exp(-x))
	}
	e := math.Exp(x)
	return e / (1 + e)
}

// run goes through every sequence of every direction. states are the initial states, h first; cell changes the slices of one sequence,
// given z = x_t W_ih^T + b_ih of its gates. Final states are results 1 and on.
func (l *layer) run(states [][]float64, cell func(d int, z []float64, states [][]float64)) error {
	h, z := l.hidden, make([]float64, l.gates*l.hidden)
	y := l.c.out[0]
	for d := range l.dirs {
		backward := l.dirs == 2 && d == 1 || l.reverse()
		for b := range l.batch {
			own := make([][]float64, len(states))
			for k, s := range states {
				own[k] = s[(d*l.batch+b)*h:][:h]
			}
			for k := range l.lengths[b] {
				if l.c.stopped() {
					return errCancelled
				}
				t := k
				if backward {
					t = l.lengths[b] - 1 - k
				}
				copy(z, l.bih[d*l.gates*h:])
				l.times(z, l.wih, d, l.in, 0, l.gates*h, l.x[(b*l.steps+t)*l.in:])
				cell(d, z, own)
				for i, v := range own[0] {
					y.set((b*l.steps+t)*l.dirs*h+d*h+i, v)
				}
			}
			for t := l.lengths[b]; t < l.steps; t++ {
				for i := range h {
					y.set((b*l.steps+t)*l.dirs*h+d*h+i, 0)
				}
			}
		}
	}
	for k, s := range states {
		for i, v := range s {
			l.c.out[1+k].set(i, v)
		}
	}
	return nil
}

func (l *layer) reverse() bool {
	switch a := l.c.cmd.Attrs.(type) {
	case *op.LstmAttrs:
		return a.Direction == "reverse"
	case *op.GruAttrs:
		return a.Direction == "reverse"
	case *op.RnnAttrs:
		return a.Direction == "reverse"
	}
	return false
}

// recur adds h W_hh^T + b_hh to gate rows [first, last) of z.
func (l *layer) recur(z []float64, d, first, last int, h []float64) {
	for r := first; r < last; r++ {
		z[r] += l.bhh[d*l.gates*l.hidden+r]
	}
	l.times(z, l.whh, d, l.hidden, first, last, h)
}

// lstm: see op.Lstm.
func lstm(c *call) error {
	l, err := newLayer(c, 4, 7, attrs[op.LstmAttrs](c).Clip)
	if err != nil {
		return err
	}
	n := l.hidden
	all := l.dirs * l.batch * n
	peep := l.orZeros(8, l.dirs*3*n)
	return l.run([][]float64{l.orZeros(5, all), l.orZeros(6, all)}, func(d int, z []float64, s [][]float64) {
		l.recur(z, d, 0, 4*n, s[0])
		h, cell, p := s[0], s[1], peep[d*3*n:]
		for k := range n {
			i, f := sigmoid(l.squash(z[k]+p[k]*cell[k])), sigmoid(l.squash(z[n+k]+p[n+k]*cell[k]))
			cell[k] = f*cell[k] + i*math.Tanh(l.squash(z[2*n+k]))
			h[k] = sigmoid(l.squash(z[3*n+k]+p[2*n+k]*cell[k])) * math.Tanh(cell[k])
		}
	})
}

// gru: see op.Gru.
func gru(c *call) error {
	a := attrs[op.GruAttrs](c)
	l, err := newLayer(c, 3, 6, a.Clip)
	if err != nil {
		return err
	}
	n := l.hidden
	reset, inner := make([]float64, n), make([]float64, 3*n)
	return l.run([][]float64{l.orZeros(5, l.dirs*l.batch*n)}, func(d int, z []float64, s [][]float64) {
		h := s[0]
		l.recur(z, d, 0, 2*n, h)
		clear(inner)
		for k := range n {
			reset[k] = h[k]
			if !a.LinearBeforeReset {
				reset[k] *= sigmoid(l.squash(z[k]))
			}
		}
		l.recur(inner, d, 2*n, 3*n, reset)
		for k := range n {
			m := inner[2*n+k]
			if a.LinearBeforeReset {
				m *= sigmoid(l.squash(z[k]))
			}
			u := sigmoid(l.squash(z[n+k]))
			h[k] = (1-u)*math.Tanh(l.squash(z[2*n+k]+m)) + u*h[k]
		}
	})
}

// rnn: see op.Rnn.
func rnn(c *call) error {
	a := attrs[op.RnnAttrs](c)
	l, err := newLayer(c, 1, 6, a.Clip)
	if err != nil {
		return err
	}
	return l.run([][]float64{l.orZeros(5, l.dirs*l.batch*l.hidden)}, func(d int, z []float64, s [][]float64) {
		l.recur(z, d, 0, l.hidden, s[0])
		for k, v := range z {
			v = l.squash(v)
			if a.Activation == "tanh" {
				v = math.Tanh(v)
			} else if v < 0 { // NaN passes
				v = 0
			}
			s[0][k] = v
		}
	})
}
