package rlx_test

import (
	"bytes"
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

// A model file, run with two batch sizes and written as ONNX again.
func ExampleOpen() {
	ctx := context.Background()
	model, err := rlx.Open("../cmd/rlx/demo/digits.onnx")
	if err != nil {
		log.Fatal(err)
	}
	prog, err := model.Compile(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer prog.Close()
	for _, batch := range []int{1, 3} {
		pixels := make([]float32, batch*64) // 8 x 8 each
		out, err := prog.Run(ctx, rlx.Feed{"pixels": rlx.New(pixels, batch, 64)})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(out["probabilities"].Type())
	}
	var file bytes.Buffer
	if err := model.ExportONNX(&file); err != nil {
		log.Fatal(err)
	}
	again, err := rlx.OpenReader("again.onnx", bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(again.Graph().Outputs[0].Value.Type())
	// Output:
	// f32[1, 10]
	// f32[3, 10]
	// f32[batch, 10]
}

// Branches and bodies of loops are functions that build graphs of their own: they see what they are given and nothing else.
func Example_controlFlow() {
	type values = []rlx.Value
	g := rlx.NewGraph("control")
	x := g.Input("x", rlx.F32, rlx.Shape("n"))
	up := g.Input("up", rlx.Bool, nil)

	y := op.If(up, values{x},
		func(_ *rlx.Graph, captures values) values { return values{op.Add(captures[0], 1)} },
		func(_ *rlx.Graph, captures values) values { return values{op.Neg(captures[0])} })
	g.Output("if", y[0])

	// doubles the sum while it is below a limit, and emits what each trip found
	limit := g.Constant(rlx.New([]float32{20}))
	y = op.While(values{op.Sum(x)}, values{limit},
		func(_ *rlx.Graph, carries, captures values) rlx.Value { return op.Lt(carries[0], captures[0]) },
		func(_ *rlx.Graph, carries, _ values) values { return values{op.Mul(carries[0], 2), carries[0]} },
		op.WhileOptions{NumEmits: 1})
	g.Output("while", y[0])
	g.Output("trips", y[1])

	// the running sum: the carry, and a row for each element of x
	y = op.Scan(values{g.Constant(rlx.New([]float32{0}))}, nil, values{x},
		func(_ *rlx.Graph, carries, _, row values) values {
			sum := op.Add(carries[0], row[0])
			return values{sum, sum}
		}, op.ScanOptions{})
	g.Output("scan", y[1])

	ctx := context.Background()
	prog, err := rlx.Compile(ctx, g)
	if err != nil {
		log.Fatal(err)
	}
	defer prog.Close()
	out, err := prog.Run(ctx, rlx.Feed{"x": rlx.New([]float32{1, 2, 3}, 3), "up": rlx.New([]bool{true})})
	if err != nil {
		log.Fatal(err)
	}
	for _, name := range []string{"if", "while", "trips", "scan"} {
		data, err := rlx.Data[float32](out[name])
		fmt.Println(name, data, err)
	}
	// Output:
	// if [2 3 4] <nil>
	// while [24] <nil>
	// trips [6 12] <nil>
	// scan [1 3 6] <nil>
}

// Where the time of a run went.
func ExampleWithProfile() {
	g := rlx.NewGraph("profiled")
	x := g.Input("x", rlx.F32, rlx.Shape("n", "n"))
	g.Output("y", op.Softmax(op.MatMul(x, x), -1))
	prog, err := rlx.Compile(context.Background(), g)
	if err != nil {
		log.Fatal(err)
	}
	defer prog.Close()
	var profile rlx.Profile
	feed := rlx.Feed{"x": rlx.New(make([]float32, 64*64), 64, 64)}
	if _, err := prog.Run(context.Background(), feed, rlx.WithProfile(&profile)); err != nil {
		log.Fatal(err)
	}
	for _, o := range profile.ByOp() { // the most expensive first
		fmt.Println(o.Op, o.Commands, o.Nanos > 0)
	}
	// Unordered output:
	// MatMul 1 true
	// Softmax 1 true
}
