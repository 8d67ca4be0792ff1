package onnx

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"
)

// badWeight is an initializer w of the given parts, added to x.
func badWeight(parts ...[]byte) []byte {
	return inGraph(inputOf("x", DataFloat, 2), outputOf("y"), body(5, append([][]byte{text(8, "w")}, parts...)...), nodeOf("Add", "x w", "y"))
}

// deepIf is a model with graphs inside one another.
func deepIf(depth int) []byte {
	inner := nodeOf("Identity", "x", "o")
	for range depth {
		g := func(name string) []byte {
			return body(5, text(1, name), body(6, text(2, name), inner, outputOf("o")), varint(20, 5))
		}
		inner = nodeOf("If", "c", "o", g("then_branch"), body(5, text(1, "else_branch"), body(6, nodeOf("Identity", "x", "o"), outputOf("o")), varint(20, 5)))
	}
	return inGraph(inputOf("x", DataFloat, 2), body(5, varint(2, uint64(DataBool)), text(8, "c"), varints(5, 1)), outputOf("o"), inner)
}

// function is a function of domain d with one input and one output.
func function(name string, nodes ...[]byte) []byte {
	parts := [][]byte{text(1, name), text(10, "d"), text(4, "a"), text(5, "b"), body(9, varint(2, 17)), body(9, text(1, "d"), varint(2, 1))}
	for _, n := range nodes {
		parts = append(parts, append([]byte{0x3a}, n[1:]...)) // a node of a function is its field 7
	}
	return body(25, parts...)
}

func callOf(name, in, out string) []byte { return nodeOf(name, in, out, text(7, "d")) }

// TestBadModels wants an error with a type for each way to contradict oneself, which names the place and what was found, without work that
// the file claims.
func TestBadModels(t *testing.T) {
	raw := func(n int) []byte { return body(9, make([]byte, n)) }
	x, y := inputOf("x", DataFloat, 2), outputOf("y")
	relu := nodeOf("Relu", "x", "y")
	dims := func(d ...uint64) []byte { return varints(1, d...) }
	float := varint(2, uint64(DataFloat))
	for _, c := range []struct {
		name  string
		data  []byte
		words string // of the error, separated by spaces
	}{
		{"empty file", nil, "empty"},
		{"text", []byte("hello, world"), "text hello"},
		{"zip", []byte("PK\x03\x04rest"), "ZIP"},
		{"no ir_version", join(body(8, varint(2, 17)), body(7, x, y, relu)), "ir_version"},
		{"ir_version 0", join(varint(1, 0), body(8, varint(2, 17)), body(7, x, y, relu)), "ir_version"},
		{"negative ir_version", join(varint(1, minus(1)), body(8, varint(2, 17)), body(7, x, y, relu)), "ir_version"},
		{"ir_version of the far future", join(varint(1, 1<<40), body(8, varint(2, 17)), body(7, x, y, relu)), "ir_version 1099511627776"},
		{"no graph", join(varint(1, 8), body(8, varint(2, 17))), "graph"},
		{"no outputs", inGraph(x, relu), "outputs"},
		{"opset 0", join(varint(1, 8), body(8, varint(2, 0)), body(7, x, y, relu)), "operator set 0"},
		{"negative opset", join(varint(1, 8), body(8, varint(2, minus(3))), body(7, x, y, relu)), "operator set -3"},
		{"huge opset", join(varint(1, 8), body(8, varint(2, 1<<62)), body(7, x, y, relu)), "operator set 4611686018427387904 28"},
		{"two versions of one operator set", join(varint(1, 8), body(8, varint(2, 17)), body(8, text(1, "ai.onnx"), varint(2, 13)), body(7, x, y, relu)), "operator set 17 13"},

		{"negative dim", badWeight(dims(minus(2)), float, raw(8)), `"w" dims -2`},
		{"dims that wrap", badWeight(dims(1<<32, 1<<32, 2), float, raw(8)), `"w" dims overflow`},
		{"bytes that wrap", badWeight(dims(1<<62), float, raw(8)), `"w" dims overflow`},
		{"zero among huge dims", badWeight(dims(0, 1<<62, 1<<62), float, raw(0)), `"w" dims overflow`},
		{"more dims than the data have", badWeight(dims(1<<40), float, raw(8)), `"w" 4398046511104 8`},
		{"raw data too short", badWeight(dims(2), float, raw(7)), `"w" 8 7`},
		{"raw data too long", badWeight(dims(2), float, raw(9)), `"w" 8 9`},
		{"float data too short", badWeight(dims(2), float, fixed32(4, 0)), `"w" 8 4 float_data`},
		{"data of another type", badWeight(dims(2), float, varints(7, 1, 2)), `"w" FLOAT int64_data`},
		{"data twice", badWeight(dims(2), float, raw(8), fixed32(4, 0)), `"w" raw_data float_data`},
		{"no data", badWeight(dims(2), float), `"w" 8 0`},
		{"unknown data type", badWeight(dims(2), varint(2, 99), raw(8)), `"w" 99`},
		{"negative data type", badWeight(dims(2), varint(2, minus(1)), raw(8)), `"w" -1`},
		{"no data type", badWeight(dims(2), raw(8)), `"w" 0`},
		{"strings", badWeight(dims(2), varint(2, uint64(DataString)), text(6, "a"), text(6, "b")), `"w" STRING`},
		{"a hundred axes", badWeight(dims(bytesAs(100)...), float, raw(4)), `"w" rank`},
		{"an initializer without a name", inGraph(x, y, body(5, dims(2), float, raw(8)), relu), "name"},
		{"an unknown data location", badWeight(dims(2), float, raw(8), varint(14, 7)), `"w" data_location 7`},

		{"a cycle", inGraph(x, y, nodeOf("Add", "x b", "a"), nodeOf("Relu", "a", "b"), nodeOf("Relu", "b", "y")), `Add "node.a" "b"`},
		{"a node that reads itself", inGraph(x, y, nodeOf("Add", "x y", "y")), `Add "node.y" "y"`},
		{"an undefined input", inGraph(x, y, nodeOf("Add", "x nowhere", "y")), `Add "nowhere"`},
		{"an undefined output", inGraph(x, outputOf("z"), relu), `"z"`},
		{"two values of one name", inGraph(x, y, nodeOf("Abs", "x", "y"), relu), `Relu "y" twice`},
		{"an output named like an input", inGraph(x, y, nodeOf("Relu", "x", "x")), `Relu "x" twice`},
		{"two inputs of one name", inGraph(x, x, y, relu), `"x" twice`},
		{"two outputs of one name", inGraph(x, y, y, relu), `"y" twice`},
		{"two initializers of one name", inGraph(x, y, intsOf("w", 1), intsOf("w", 1), relu), `"w" twice`},
		{"an input without a type", inGraph(body(11, text(1, "x")), y, relu), `"x" type`},
		{"an unknown operator", inGraph(x, y, nodeOf("Frobnicate", "x", "y")), `Frobnicate "node.y"`},
		{"an operator of an unknown domain", inGraph(x, y, nodeOf("Relu", "x", "y", text(7, "com.acme"))), `com.acme Relu`},
		{"no operator", inGraph(x, y, body(1, text(1, "x"), text(2, "y"))), `"y" operator`},
		{"too many inputs", inGraph(x, y, nodeOf("Relu", "x x", "y")), `Relu 2 1`},
		{"too few inputs", inGraph(x, y, nodeOf("Add", "x", "y")), `Add 1 2`},
		{"an attribute of another type", inGraph(x, y, nodeOf("LeakyRelu", "x", "y", intAttr("alpha", 1))), `LeakyRelu alpha`},
		{"a missing attribute", inGraph(x, y, nodeOf("Cast", "x", "y")), `Cast to missing`},
		{"an unknown attribute", inGraph(x, y, nodeOf("Relu", "x", "y", intAttr("foo", 1))), `Relu foo`},
		{"an attribute twice", inGraph(x, y, nodeOf("LeakyRelu", "x", "y", floatAttr("alpha", 1), floatAttr("alpha", 2))), `LeakyRelu alpha twice`},
		{"an attribute of a function outside of one", inGraph(x, y, nodeOf("LeakyRelu", "x", "y", body(5, text(1, "alpha"), text(21, "a"), varint(20, 1)))), `LeakyRelu alpha`},

		{"a name with NUL", inGraph(inputOf("a\x00b", DataFloat, 2), y, nodeOf("Relu", "a\x00b", "y")), `NUL`},
		{"a name that is not UTF-8", inGraph(inputOf("a\xff", DataFloat, 2), y, nodeOf("Relu", "a\xff", "y")), `UTF-8`},
		{"an output that is not UTF-8", inGraph(x, outputOf("\xff"), nodeOf("Relu", "x", "\xff")), `UTF-8`},

		{"a function that calls itself", join(inGraph(x, y, callOf("F", "x", "y")), body(8, text(1, "d"), varint(2, 1)), function("F", callOf("F", "a", "b"))), `F 64 deep`},
		{"functions that call each other", join(inGraph(x, y, callOf("F", "x", "y")), body(8, text(1, "d"), varint(2, 1)),
			function("F", callOf("G", "a", "b")), function("G", callOf("F", "a", "b"))), `64 deep`},
		{"functions that double", doubling(40), "nodes"},
		{"a function twice", join(inGraph(x, y, callOf("F", "x", "y")), body(8, text(1, "d"), varint(2, 1)),
			function("F", nodeOf("Relu", "a", "b")), function("F", nodeOf("Abs", "a", "b"))), `F twice`},
		{"10,000 graphs inside one another", nested(10_000), "nested byte"},
		{"65 graphs inside one another", deepIf(65), "nested"},
		{"a loop without end", inGraph(x, y, scalarOf("m", 1<<62), nodeOf("Loop", "m _ x", "y", body(5, text(1, "body"), body(6,
			inputOf("i", DataInt64), inputOf("c", DataBool), inputOf("v", DataFloat, 2), nodeOf("Relu", "v", "w"), nodeOf("Identity", "c", "k"),
			outputOf("k"), outputOf("w")), varint(20, 5)))), `Loop trips`},
	} {
		start := CPUTime()
		_, err := Import(c.data)
		if took := CPUTime() - start; took > 2*time.Second {
			t.Errorf("%s: took %v", c.name, took)
		}
		if err == nil {
			t.Errorf("%s: it loads, expected an error with %q", c.name, c.words)
			continue
		}
		var decode *DecodeError
		var unsupported *UnsupportedError
		var defect *ImportError
		if !errors.As(err, &decode) && !errors.As(err, &unsupported) && !errors.As(err, &defect) {
			t.Errorf("%s: an error of no type: %T %v", c.name, err, err)
		}
		for _, w := range strings.Fields(c.words) {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: got %v, expected %q in it", c.name, err, w)
				break
			}
		}
	}
}

// bytesAs are n ones.
func bytesAs(n int) []uint64 {
	out := make([]uint64, n)
	for i := range out {
		out[i] = 1
	}
	return out
}

// nested is a file of n graphs inside one another.
func nested(n int) []byte {
	g := text(4, "If")
	for range n {
		g = body(5, body(6, body(1, g)))
	}
	return inGraph(body(1, g))
}

// doubling is a model of n functions, each of which calls the next twice.
func doubling(n int) []byte {
	name := func(i int) string { return string(rune('A'+i/26)) + string(rune('a'+i%26)) }
	parts := [][]byte{inGraph(inputOf("x", DataFloat, 2), outputOf("y"), callOf(name(0), "x", "y")), body(8, text(1, "d"), varint(2, 1))}
	for i := range n {
		parts = append(parts, function(name(i), callOf(name(i+1), "a", "m"), callOf(name(i+1), "m", "b")))
	}
	return bytes.Join(append(parts, function(name(n), nodeOf("Relu", "a", "b"))), nil)
}
