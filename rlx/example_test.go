package rlx_test

import (
	"context"
	"fmt"
	"log"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// A graph built in Go, compiled once and run on any batch size.
func Example() {
	g := rlx.NewGraph("classifier")
	x := g.Input("x", rlx.F32, rlx.Shape("batch", 3))
	w := g.Param("w", rlx.New([]float32{1, -1, 0, 2, 1, 0}, 3, 2))
	g.Output("best", op.ArgMax(op.MatMul(x, w), -1))
	prog, err := rlx.Compile(context.Background(), g)
	if err != nil {
		log.Fatal(err)
	}
	defer prog.Close()
	out, err := prog.Run(context.Background(), rlx.Feed{"x": rlx.New([]float32{1, 2, 3, 0, 1, 0}, 2, 3)})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(rlx.Data[int64](out["best"]))
	// Output: [0 1] <nil>
}
