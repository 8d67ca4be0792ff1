package rlx_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/conform"
)

func openDigits(t testing.TB) *rlx.Model {
	t.Helper()
	m, err := rlx.Open(digitsModel)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func pixels(rows int, seed uint64) rlx.Feed {
	r := rand.New(rand.NewPCG(seed, 1))
	v := make([]float32, rows*64)
	for i := range v {
		v[i] = float32(r.IntN(17)) / 16
	}
	return rlx.Feed{"pixels": rlx.New(v, rows, 64)}
}

func bits(t testing.TB, f rlx.Feed) []uint32 {
	t.Helper()
	var out []uint32
	for _, y := range f {
		v, err := rlx.Data[float32](y)
		if err != nil {
			t.Error(err)
		}
		for _, x := range v {
			out = append(out, math.Float32bits(x))
		}
	}
	return out
}

// 64 goroutines share two programs over more shapes than their caches hold; every result has the bits of a serial run.
func TestConcurrentRuns(t *testing.T) {
	for _, b := range backends() {
		t.Run(b, func(t *testing.T) {
			type load struct {
				p    *rlx.Program
				in   rlx.Feed
				want rlx.Feed
			}
			var loads []load
			add := func(p *rlx.Program, in rlx.Feed) {
				out, err := p.Run(t.Context(), in)
				if err != nil {
					t.Fatal(err)
				}
				loads = append(loads, load{p, in, out})
			}
			digits, dynamic := compile(t, openDigits(t), rlx.On(b), rlx.Specialisations(4)), compileGraph(t, dynamicNet(), rlx.On(b), rlx.Specialisations(4))
			for s := range 6 {
				add(digits, pixels(1+s*3, uint64(s)))
				add(dynamic, dynamicFeed(s, 1+s*s))
			}
			runs := 25
			switch {
			case conform.Slow(b):
				runs = 2
			case b == "ref":
				runs = 5
			}
			var wg sync.WaitGroup
			for g := range 64 {
				wg.Go(func() {
					for k := range runs {
						l := loads[(g+k*(g%5+1))%len(loads)]
						out, err := l.p.Run(t.Context(), l.in)
						if err != nil {
							t.Error(err)
							return
						}
						if !sameFeed(out, l.want) {
							t.Errorf("goroutine %d run %d: other bits than the serial run", g, k)
							return
						}
					}
				})
			}
			wg.Wait()
		})
	}
}

// MiniLM from 8 goroutines, 5 runs each.
func TestConcurrentMiniLM(t *testing.T) {
	if !slices.Contains(backends(), "cpu") {
		t.Skip("cpu: not compiled in (CGO_ENABLED=0)")
	}
	p := compile(t, open(t, minilm), rlx.On("cpu"))
	var want [3][]float32
	for s := range want {
		want[s] = hidden(t, p, tokens(1+s, 8*(s+1)))
	}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for k := range 5 {
				s := (g + k) % len(want)
				out, err := p.Run(t.Context(), tokens(1+s, 8*(s+1)))
				if err != nil {
					t.Error(err)
					return
				}
				v, err := rlx.Data[float32](out["last_hidden_state"])
				if err != nil || !slices.Equal(v, want[s]) {
					t.Errorf("goroutine %d run %d: other bits than the serial run (%v)", g, k, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// The number of threads never shows in results.
func TestThreadsGiveEqualBits(t *testing.T) {
	for _, b := range backends() {
		one, two := compile(t, openDigits(t), rlx.On(b), rlx.Threads(1)), compile(t, openDigits(t), rlx.On(b), rlx.Threads(2))
		for _, rows := range []int{1, 2, 13, 64, 450} {
			t.Run(fmt.Sprintf("%s/%d", b, rows), func(t *testing.T) {
				x, err := one.Run(t.Context(), pixels(rows, 3))
				if err != nil {
					t.Fatal(err)
				}
				y, err := two.Run(t.Context(), pixels(rows, 3))
				if err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(bits(t, x), bits(t, y)) {
					t.Error("two threads give other bits than one")
				}
			})
		}
	}
}

// Close waits for runs that are under way, and later runs get ErrClosed.
func TestCloseDuringRuns(t *testing.T) {
	for _, b := range backends() {
		t.Run(b, func(t *testing.T) {
			p, err := openDigits(t).Compile(t.Context(), rlx.On(b))
			if err != nil {
				t.Fatal(err)
			}
			runs := 25
			if conform.Slow(b) {
				runs = 4
			}
			var wg sync.WaitGroup
			for g := range 8 {
				wg.Go(func() {
					for k := range runs {
						if _, err := p.Run(t.Context(), pixels(1+(g+k)%7, 1)); err != nil && err != rlx.ErrClosed {
							t.Error(err)
							return
						}
					}
				})
			}
			if err := p.Close(); err != nil {
				t.Error(err)
			}
			wg.Wait()
		})
	}
}
