package onnx

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestManyOfOne reads files that hold thousands of one thing: the work must not grow with the square of them.
func TestManyOfOne(t *testing.T) {
	const n = 20000
	x, y, relu := inputOf("x", DataFloat, 2), outputOf("y"), nodeOf("Relu", "x", "y")
	many := func(f func(i int) []byte) []byte {
		parts := make([][]byte, n)
		for i := range parts {
			parts[i] = f(i)
		}
		return slices.Concat(parts...)
	}
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprint("x", i)
	}
	all := strings.Join(names, " ")
	for name, data := range map[string][]byte{
		"attributes":    inGraph(x, y, nodeOf("Relu", "x", "y", many(func(i int) []byte { return intAttr(fmt.Sprint("a", i), 1) }))),
		"operator sets": join(many(func(i int) []byte { return body(8, text(1, fmt.Sprint("d", i)), varint(2, 1)) }), inGraph(x, y, relu)),
		"operands":      inGraph(y, many(func(i int) []byte { return inputOf(names[i], DataFloat, 2) }), nodeOf("Sum", all, "y")),
		"dims in a sum": inGraph(y, many(func(i int) []byte { return inputOf(names[i], DataFloat, fmt.Sprint("d", i)) }), nodeOf("Concat", all, "y", intAttr("axis", 0))),
		"dim names": inGraph(x, y, relu, many(func(i int) []byte {
			return inputOf(names[i], DataFloat, strings.Repeat("#", 1+i%3), strings.Repeat("_", i%30))
		})),
		"nodes without an operator": inGraph(x, y, relu, many(func(i int) []byte { return nodeOf(fmt.Sprint("Foo", i), "x", names[i]) })),
		"nodes of one name":         inGraph(x, y, relu, many(func(i int) []byte { return body(1, text(4, "Relu"), text(1, "x"), text(2, names[i]), text(3, "same")) })),
		"initializers":              inGraph(x, y, relu, many(func(i int) []byte { return intsOf(names[i], 1, 2) })),
		"outputs":                   inGraph(x, y, relu, many(func(i int) []byte { return outputOf(names[i]) }), many(func(i int) []byte { return nodeOf("Relu", "x", names[i]) })),
		"functions":                 join(inGraph(x, y, relu), many(func(i int) []byte { return function(names[i], nodeOf("Relu", "a", "b")) })),
		"lengths in a chain": inGraph(inputOf("x", DataFloat, "n"), y, nodeOf("Shape", "x", "s0"), many(func(i int) []byte {
			return nodeOf("Add", fmt.Sprintf("s%d s%d", i, i), fmt.Sprint("s", i+1))
		}), nodeOf("Expand", "x s20000", "y")),
	} {
		start := CPUTime()
		_, err := Import(data, Limit(1<<30))
		if took := CPUTime() - start; took > 2*time.Second {
			t.Errorf("%d %s: took %v (%.100s)", n, name, took, fmt.Sprint(err))
		}
	}
}
