// Package rlx compiles and runs machine learning graphs inside a Go process.
//
// A graph, built with package op or read from a model file, is compiled for a backend and run many times:
//
//	model, err := rlx.Open("model.onnx")
//	prog, err := model.Compile(ctx)
//	defer prog.Close()
//	out, err := prog.Run(ctx, rlx.Feed{"x": rlx.New(data, 1, 64)})
//
// A Program is immutable and safe for concurrent Run. Nothing in the library panics, exits or prints.
package rlx

import (
	"context"
	"fmt"

	_ "github.com/rlx-ml/rlx-go/cgo/cpu"    // the CPU kernels, where cgo is on
	_ "github.com/rlx-ml/rlx-go/cgo/vulkan" // with -tags vulkan
	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// The types that graphs are made of. Package ir documents their methods.
type (
	Tensor   = ir.Tensor   // dense, row-major: see New, Data, and ir.Zeros and ir.Scalar
	DType    = ir.DType    // F32, I64 ...
	Graph    = ir.Graph    // Input, Param, Constant and Output declare what it takes, holds and gives
	Value    = ir.Value    // a result of a node: what builders of package op take and return
	Dim      = ir.Dim      // a number, or an expression over named symbols
	Float16  = ir.Float16  // the bits of an IEEE half
	BFloat16 = ir.BFloat16 // the upper half of a float32
)

// The dtypes.
const (
	Bool   = ir.Bool
	I8     = ir.I8
	I16    = ir.I16
	I32    = ir.I32
	I64    = ir.I64
	U8     = ir.U8
	U16    = ir.U16
	U32    = ir.U32
	U64    = ir.U64
	F16    = ir.F16
	BF16   = ir.BF16
	F32    = ir.F32
	F64    = ir.F64
	C64    = ir.C64
	F8E4M3 = ir.F8E4M3
	F8E5M2 = ir.F8E5M2
	F4E2M1 = ir.F4E2M1
	E8M0   = ir.E8M0
)

// New is the tensor of the given shape over data, which it aliases: data must not change while a run uses the tensor. A shape that
// does not fit the data is reported by whatever takes the tensor.
func New[T ir.Elem](data []T, shape ...int) *Tensor { return ir.New(data, shape...) }

// Data is a typed view of t's elements, without a copy; an error if the dtype differs.
func Data[T ir.Elem](t *Tensor) ([]T, error) { return ir.Data[T](t) }

// NewGraph is an empty graph.
func NewGraph(name string) *Graph { return ir.NewGraph(name) }

// Shape makes dims of integers, symbol names and Dims: Shape("batch", 64).
func Shape(dims ...any) []Dim {
	out := make([]Dim, len(dims))
	for i, d := range dims {
		switch d := d.(type) {
		case int:
			out[i] = ir.D(int64(d))
		case int64:
			out[i] = ir.D(d)
		case Dim:
			out[i] = d
		case string:
			e, err := ir.ParseDim(d)
			if err != nil {
				e = ir.D(-1) // refused, with the shape's text, by whatever takes it
			}
			out[i] = e
		default:
			out[i] = ir.D(-1)
		}
	}
	return out
}

// Feed binds tensors to names.
type Feed map[string]*Tensor

// Model is a graph read from a file.
type Model struct {
	File  string
	graph *Graph
	bound []string // inputs of the file that became constants
}

// Graph is the model's graph. It must not be changed.
func (m *Model) Graph() *Graph { return m.graph }

// Compile compiles the model; see Compile.
func (m *Model) Compile(ctx context.Context, opts ...Option) (*Program, error) {
	p, err := Compile(ctx, m.graph, opts...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.File, err)
	}
	return p, nil
}
