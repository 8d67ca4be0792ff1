package conform

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// attended is one Attention over several blocks of keys and queries, of two batch items.
type attended struct {
	attrs                op.AttentionAttrs
	h, kv, sq, sk, d, dv int64
	q, k, v, mask, kvLen *ir.Tensor
	tol                  float64
	name                 string
}

func pick[T any](r *random, of ...T) T { return of[r.IntN(len(of))] }

// newAttended makes the case of a seed: what scores are like, and which mask there is.
func newAttended(seed int) *attended {
	r := newRandom(uint64(seed), 7)
	heads := pick(r, [2]int64{1, 1}, [2]int64{2, 2}, [2]int64{4, 2}, [2]int64{3, 1})
	a := &attended{h: heads[0], kv: heads[1], sq: pick[int64](r, 3, 17, 33, 64, 65, 100), sk: pick[int64](r, 64, 128, 129, 150, 192, 260),
		d: pick[int64](r, 5, 8, 9, 31, 32, 40, 64), dv: pick[int64](r, 1, 16, 31, 32, 33, 64), tol: 1e-5}
	d := pick(r, ir.F32, ir.F32, ir.F32, ir.F16, ir.BF16)
	a.attrs.Scale = pick(r, 0, 0, 0, 1, 2, -0.3, 0.05)
	a.attrs.Mask = pick[op.AttentionMask](r, "none", "none", "none", "causal", "sliding_window")
	a.attrs.Align = pick[op.AttentionAlign](r, "bottom_right", "top_left")
	if a.attrs.Mask == "sliding_window" {
		a.attrs.Window = ptr(pick[int64](r, 3, 70, 130, 135))
	}
	if r.chance(6) {
		a.attrs.Softcap = 3
	}
	normal := func(int) float64 { return r.NormFloat64() }
	a.q, a.v = fill(d, dims(2, a.h, a.sq, a.d), normal), fill(d, dims(2, a.kv, a.sk, a.dv), normal)
	scores := pick(r, "calm", "calm", "growing", "steep", "odd")
	a.k = fill(d, dims(2, a.kv, a.sk, a.d), func(i int) float64 {
		key := float64(int64(i) / a.d % a.sk)
		switch x := r.NormFloat64(); {
		case scores == "growing": // what softmax takes off changes in later blocks, of some queries
			return x * (1 + key/20)
		case scores == "steep" && key > 70 && r.chance(20):
			return x * 20
		case scores == "odd" && r.chance(2000):
			return pick(r, math.Inf(1), math.Inf(-1), math.NaN(), 1e30)
		default:
			return x
		}
	})
	if scores != "calm" || a.attrs.Scale >= 1 {
		a.tol = 2e-4 // of scores up to 100, of which f32 has the 5th digit behind the point
	}
	a.tol += map[ir.DType]float64{ir.F16: 0x1p-11, ir.BF16: 0x1p-8}[d] // of the result
	mask := a.masked(r)
	a.name = fmt.Sprintf("seed %d: %s, %d heads of %d, %d queries, %d keys of %d, values of %d, %s, %s, %+v", seed, d, a.h, a.kv, a.sq, a.sk, a.d, a.dv, scores, mask, a.attrs)
	return a
}

func ptr[T any](v T) *T { return &v }

// masked adds a mask and lengths, and says which.
func (a *attended) masked(r *random) string {
	lost := pick(r, math.Inf(-1), -math.MaxFloat32, -30)
	row := pick(r, dims(2, 1, 1, a.sk), dims(1, a.sk), dims(a.sk))
	kind := pick(r, "no mask", "no mask", "zeros", "padding", "far padding", "padding before", "bools", "bools before", "kept", "rows", "lengths")
	switch kind {
	case "zeros":
		a.mask = fill(ir.F32, row, func(int) float64 { return 0 })
	case "padding", "far padding":
		far := 0.0
		if kind == "far padding" {
			far = 1000
		}
		from := r.Int64N(a.sk)
		a.mask = fill(ir.F32, row, func(i int) float64 {
			if int64(i)%a.sk > from {
				return far + lost
			}
			return far
		})
	case "padding before": // queries that see no key of the first blocks
		from := pick(r, 64, 128, r.Int64N(a.sk)) // most at the start of a block
		a.mask = fill(ir.F32, row, func(i int) float64 {
			if int64(i)%a.sk < from {
				return lost
			}
			return 0
		})
	case "bools before":
		from := pick(r, 64, 128, r.Int64N(a.sk))
		a.mask = fill(ir.Bool, row, func(i int) float64 {
			if int64(i)%a.sk < from {
				return 0
			}
			return 1
		})
	case "bools":
		a.mask = fill(ir.Bool, dims(a.sq, a.sk), func(i int) float64 { return float64(min(r.IntN(300), 1)) })
	case "kept":
		a.mask = fill(ir.Bool, row, func(int) float64 { return 1 })
	case "rows":
		a.mask = fill(ir.F32, dims(a.h, a.sq, a.sk), func(int) float64 { return r.NormFloat64() })
	case "lengths":
		n := []int64{r.Int64N(a.sk + 1), a.sk}
		a.kvLen = ir.New(n, 2)
		for _, x := range []*ir.Tensor{a.k, a.v} {
			each(x.Shape(), func(i int, at []int64) {
				if at[2] >= n[at[0]] {
					put(x, i, math.NaN())
				}
			})
		}
	}
	return kind
}

// run computes the queries [from, to) of each head.
func (a *attended) run(t *testing.T, from, to int64, opts ...rlx.Option) *ir.Tensor {
	t.Helper()
	g, feed := ir.NewGraph(""), rlx.Feed{}
	input := func(name string, x *ir.Tensor) ir.Value {
		if x == nil {
			return ir.Value{}
		}
		feed[name] = x
		return g.Input(name, x.DType(), x.Type().Shape)
	}
	q := op.Slice(input("q", a.q), []ir.Dim{ir.D(from)}, []ir.Dim{ir.D(to)}, []int{2}, []int64{1})
	g.Output("y", op.Attention(q, input("k", a.k), input("v", a.v), input("mask", a.mask), input("kv_len", a.kvLen), a.attrs))
	p, err := rlx.Compile(t.Context(), g, opts...)
	if err != nil {
		t.Fatalf("%s: %v", a.name, err)
	}
	defer p.Close()
	y, err := p.Run(t.Context(), feed)
	if err != nil {
		t.Fatalf("%s: %v", a.name, err)
	}
	return y["y"]
}

// Blocks of keys whose scores stay within what earlier ones let softmax take off take a way of their own, as do those that no mask touches: the
// result is that of the interpreter, with the bits of any number of threads, and of a query among few others.
func TestAttentionBlocks(t *testing.T) {
	if !slices.Contains(backends(), "cpu") {
		return
	}
	const cases = 150
	want := make([]*ir.Tensor, cases)
	for seed := range want {
		want[seed] = newAttended(seed).run(t, 0, newAttended(seed).sq, rlx.On("ref"))
	}
	for _, isa := range map[string][]string{"amd64": {"generic", "avx2", "avx512"}, "arm64": {"generic", "neon"}}[runtime.GOARCH] {
		t.Run(isa, func(t *testing.T) {
			t.Setenv("RLX_ISA", isa)
			p, err := hold(t.Context(), rlx.On("cpu"))
			if err != nil {
				t.Skipf("%s: not executed: %v", isa, err)
			}
			defer p.Close()
			for seed := range cases {
				a := newAttended(seed)
				got := a.run(t, 0, a.sq, rlx.On("cpu"), rlx.Threads(1))
				if err := Compare(got, want[seed], a.tol, a.tol); err != nil {
					t.Errorf("%s: %v", a.name, err)
				}
				if err := (measure{exact: true}).compare(a.run(t, 0, a.sq, rlx.On("cpu"), rlx.Threads(2)), got); err != nil {
					t.Errorf("%s: with 2 threads: %v", a.name, err)
				}
				a.fewQueries(t, got)
			}
		})
	}
}

// fewQueries compares the bits of three queries by themselves, where nothing says at which place they stand.
func (a *attended) fewQueries(t *testing.T, all *ir.Tensor) {
	t.Helper()
	if a.attrs.Mask != "none" || a.mask != nil && len(a.mask.Shape()) != 1 && a.mask.Shape()[len(a.mask.Shape())-2] != 1 {
		return
	}
	from, to := a.sq-3, a.sq
	few := a.run(t, from, to, rlx.On("cpu"), rlx.Threads(1))
	each(few.Shape(), func(i int, at []int64) {
		whole := int(((at[0]*a.h+at[1])*a.sq+from+at[2])*a.dv + at[3])
		if x, y := few.Float(i), all.Float(whole); x != y && (x == x || y == y) {
			t.Errorf("%s: query %d alone: %g, among others %g", a.name, from+at[2], x, y)
			a.name = "again"
		}
	})
}
