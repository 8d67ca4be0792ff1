package rlx_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rlx-ml/rlx-go/rlx"
)

// oddTensor draws a tensor for x f32[n, 3] that is mostly wrong, and n where it is right.
func oddTensor(r *rand.Rand) (x *rlx.Tensor, n int64, right bool) {
	dims := [][]int{{2, 3}, {0, 3}, {5, 3}, {6}, {}, {2, 4}, {0, 0}, {1, 2, 3}, {-1, 3}, {math.MaxInt64, 3}, {1 << 40, 1 << 40}, {math.MinInt64, 3}}[r.IntN(12)]
	n = int64(1)
	for _, d := range dims {
		n *= int64(d)
	}
	count := n
	if n < 0 || n > 100 || r.IntN(8) == 0 { // too few elements or too many
		n = int64(r.IntN(4))
	}
	right = n == count && len(dims) == 2 && dims[0] >= 0 && dims[1] == 3
	switch r.IntN(5) {
	case 0:
		return nil, 0, false
	case 1:
		return rlx.New(make([]int64, n), dims...), 0, false
	}
	data := make([]float32, n)
	for i := range data {
		data[i] = float32(i)
	}
	if len(dims) > 0 {
		n = int64(dims[0])
	}
	return rlx.New(data, dims...), n, right
}

// Whatever is fed: a FeedError, or y = x + w.
func TestOddFeeds(t *testing.T) {
	p := small(t)
	r := rand.New(rand.NewPCG(7, 1))
	refused, ran := 0, 0
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); {
		x, n, right := oddTensor(r)
		var in rlx.Feed
		switch r.IntN(8) {
		case 0:
			right = false
		case 1:
			in, right = rlx.Feed{"X": x}, false
		case 2:
			in, right = rlx.Feed{"x": x, "": nil}, false
		default:
			in = rlx.Feed{"x": x}
		}
		out, err := rlx.Feed(nil), error(nil)
		if r.IntN(2) == 0 {
			out, err = p.Run(t.Context(), in)
		} else {
			y, m, fits := oddTensor(r)
			runner := p.Runner()
			out = rlx.Feed{"y": y}
			err = runner.RunInto(t.Context(), in, out)
			right = right && fits && m == n
			if e := runner.Close(); e != nil {
				t.Fatal(e)
			}
		}
		if right != (err == nil) {
			t.Fatalf("feed %v into %v: right is %v, error is %v", in, out, right, err)
		}
		if err == nil {
			ran++
			checkSum(t, out["y"], n)
			continue
		}
		refused++
		if fe := new(rlx.FeedError); !errors.As(err, &fe) || fe.Name == "" && in["x"] == nil || fe.What == "" || fe.Expected == "" || fe.Got == "" {
			t.Fatalf("error has type %T: %v", err, err)
		}
	}
	t.Logf("%d feeds refused, %d runs", refused, ran)
	if ran == 0 || refused == 0 {
		t.Error("feeds of one kind alone")
	}
}

// checkSum expects 0, 1, 2, ... plus 1, 2, 3 in each of n rows.
func checkSum(t *testing.T, y *rlx.Tensor, n int64) {
	t.Helper()
	got, err := rlx.Data[float32](y)
	if err != nil || int64(len(got)) != 3*n {
		t.Fatalf("%d elements, expected %d: %v", len(got), 3*n, err)
	}
	for i, v := range got {
		if want := float32(i + i%3 + 1); v != want {
			t.Fatalf("element %d is %g, expected %g", i, v, want)
		}
	}
}
