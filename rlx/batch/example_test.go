package batch_test

import (
	"context"
	"fmt"
	"log"
	"sync"
	"time"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/batch"
)

// Goroutines that each have one row share a program.
func Example() {
	ctx := context.Background()
	model, err := rlx.Open("../../cmd/rlx/demo/digits.onnx")
	if err != nil {
		log.Fatal(err)
	}
	prog, err := model.Compile(ctx, rlx.Threads(2))
	if err != nil {
		log.Fatal(err)
	}
	defer prog.Close()
	b, err := batch.New(prog, batch.Options{MaxBatch: 4, MaxDelay: time.Minute, QueueSize: 100})
	if err != nil {
		log.Fatal(err)
	}
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, 10*time.Second) // its own deadline, the wait included
			defer cancel()
			out, err := b.Do(ctx, rlx.Feed{"pixels": rlx.New(make([]float32, 64), 1, 64)})
			if err != nil {
				log.Fatal(err) // batch.ErrQueueFull, batch.ErrClosed, *rlx.FeedError ...
			}
			fmt.Println(out["probabilities"].Type())
		})
	}
	callers.Wait()
	if err := b.Close(ctx); err != nil { // before the program
		log.Fatal(err)
	}
	s := b.Stats()
	fmt.Println(s.Batches, s.MeanBatch())
	// Output:
	// f32[1, 10]
	// f32[1, 10]
	// f32[1, 10]
	// f32[1, 10]
	// 1 4
}
