package main

import (
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/rlx-ml/rlx-go/rlx/onnx"
)

// Messages of onnx.proto, by field number.

func message(num protowire.Number, parts ...[]byte) []byte {
	b := protowire.AppendTag(nil, num, protowire.BytesType)
	var body []byte
	for _, p := range parts {
		body = append(body, p...)
	}
	return protowire.AppendBytes(b, body)
}

func text(num protowire.Number, s string) []byte { return message(num, []byte(s)) }

func number(num protowire.Number, v int64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, num, protowire.VarintType), uint64(v))
}

// value is an input or output of a graph; dims are lengths or names.
func value(num protowire.Number, name string, elem int64, dims ...any) []byte {
	var shape [][]byte
	for _, d := range dims {
		if s, ok := d.(string); ok {
			shape = append(shape, message(1, text(2, s)))
		} else {
			shape = append(shape, message(1, number(1, int64(d.(int)))))
		}
	}
	return message(num, text(1, name), message(2, message(1, number(1, elem), message(2, shape...))))
}

func node(op, name string, in, out []string, attrs ...[]byte) []byte {
	parts := [][]byte{text(3, name), text(4, op)}
	for _, s := range in {
		parts = append(parts, text(1, s))
	}
	for _, s := range out {
		parts = append(parts, text(2, s))
	}
	return message(1, append(parts, attrs...)...)
}

func writeModel(t *testing.T, name string, graph ...[]byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	b := append(number(1, 8), message(7, append(graph, text(2, "g"))...)...)
	b = append(append(b, message(8, number(2, 17))...), text(2, "by hand")...)
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const (
	f32 = int64(onnx.DataFloat)
	i64 = int64(onnx.DataInt64)
)

// rates is y = relu(p) if sr is 16000, else -p, where p is a maximum over 5 neighbours: x must be at least 5 long.
func rates(t *testing.T) string {
	branch := func(attr, op string) []byte {
		return message(5, text(1, attr), number(20, 5), message(6, node(op, op, []string{"p"}, []string{op + "_y"}), value(12, op+"_y", f32, "batch", 3, "n"), text(2, attr)))
	}
	return writeModel(t, "rates.onnx",
		value(11, "x", f32, "batch", 3, "len"), value(11, "sr", i64), value(12, "y", f32, "batch", 3, "n"),
		node("MaxPool", "pool", []string{"x"}, []string{"p"}, message(5, text(1, "kernel_shape"), number(20, 7), number(8, 5))),
		node("Constant", "c", nil, []string{"rate"}, message(5, text(1, "value"), number(20, 4), message(5, number(2, i64), number(7, 16000)))),
		node("Equal", "eq", []string{"sr", "rate"}, []string{"e"}),
		node("If", "choice", []string{"e"}, []string{"y"}, branch("then_branch", "Relu"), branch("else_branch", "Neg")))
}

// sums is the sum of x over axes that are an input, which decides the rank of y.
func sums(t *testing.T) string {
	return writeModel(t, "sums.onnx", value(11, "x", f32, 2, 3), value(11, "axes", i64, 1), value(12, "y", f32, "n"),
		node("ReduceSum", "sum", []string{"x", "axes"}, []string{"y"}, message(5, text(1, "keepdims"), number(20, 2), number(3, 0))))
}

// tokens looks rows of a table of 7 up by two inputs of the same shape.
func tokens(t *testing.T) string {
	table := message(5, number(1, 7), number(1, 1), number(2, f32), text(8, "table"), message(4, make([]byte, 28)))
	return writeModel(t, "tokens.onnx", value(11, "ids", i64, "batch", "sequence"), value(11, "mask", f32, "batch", "sequence"),
		value(12, "y", f32, "batch", "sequence", 1), value(12, "m", f32, "batch", "sequence"), table,
		node("Gather", "look", []string{"table", "ids"}, []string{"y"}), node("Relu", "relu", []string{"mask"}, []string{"m"}))
}
