package onnx

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// dims is a list of dims as a value of i64: an initializer where all are known, else computed from the lengths of the inputs.
func (x *emission) dims(list []ir.Dim) string {
	if shape, ok := ir.StaticShape(list); ok {
		return x.ints(shape...)
	}
	var parts []string
	for i := 0; i < len(list); {
		var known []int64
		for ; i < len(list) && list[i].IsStatic(); i++ {
			n, _ := list[i].Static()
			known = append(known, n)
		}
		if len(known) > 0 {
			parts = append(parts, x.ints(known...))
			continue
		}
		parts = append(parts, x.length(list[i]))
		i++
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return x.op("Concat", parts, attr("axis", 0))
}

// length is one dim as a value [1] of i64: the length of an axis that has it, else its expression computed.
func (x *emission) length(d ir.Dim) string {
	text := d.String()
	if name := x.found(text); name != "" {
		return name
	}
	c := dimCompiler{x: x, rest: text}
	name := c.sum()
	x.lengths[text] = name
	return name
}

// found is a dim that was computed before or that an axis of a value has, by its text; empty where there is none.
func (x *emission) found(text string) string {
	if name, ok := x.lengths[text]; ok {
		return name
	}
	l, ok := x.sources[text]
	if !ok {
		return ""
	}
	y := x.values[l.value]
	switch {
	case !l.element:
		y = x.op("Shape", y, attr("start", l.index), attr("end", l.index+1))
	case l.value.Rank() == 0:
		y = x.op("Reshape", []string{y, x.ints(1)})
	case !l.value.Dim(0).Is(1):
		y = x.op("Slice", []string{y, x.ints(int64(l.index)), x.ints(int64(l.index) + 1), x.ints(0)})
	}
	if l.element {
		y = x.cast(y, l.value.DType(), ir.I64)
	}
	x.lengths[text] = y
	return y
}

// dimCompiler turns the text form of a dim into nodes: sums of products of numbers, symbols and calls.
type dimCompiler struct {
	x    *emission
	rest string
}

func (c *dimCompiler) take(s string) bool {
	c.rest = strings.TrimLeft(c.rest, " ")
	rest, ok := strings.CutPrefix(c.rest, s)
	if ok {
		c.rest = rest
	}
	return ok
}

func (c *dimCompiler) sum() string {
	y := c.product()
	for c.x.reason == "" {
		switch {
		case c.take("+"):
			y = c.x.op("Add", []string{y, c.product()})
		case c.take("-"):
			y = c.x.op("Sub", []string{y, c.product()})
		default:
			return y
		}
	}
	return y
}

func (c *dimCompiler) product() string {
	y := c.atom()
	for c.x.reason == "" && c.take("*") {
		y = c.x.op("Mul", []string{y, c.atom()})
	}
	return y
}

// atom is a number, a symbol, or a call of two operands.
func (c *dimCompiler) atom() string {
	negative := c.take("-")
	c.take("")
	end := strings.IndexAny(c.rest, " ,()*+-")
	if end < 0 {
		end = len(c.rest)
	}
	word := c.rest[:end]
	c.rest = c.rest[end:]
	if word == "" {
		c.x.refuse("the dim expression %q cannot be computed", c.rest)
		return ""
	}
	if word[0] >= '0' && word[0] <= '9' {
		return c.x.ints(number(word, negative))
	}
	if !c.take("(") {
		name := c.x.found(word)
		if name == "" {
			c.x.refuse("%s is no length of an input or of a value before it", word)
		}
		return name
	}
	call := word + "(" + c.rest[:closing(c.rest)]
	name := c.x.found(call)
	if name != "" {
		c.rest = c.rest[closing(c.rest):]
		return name
	}
	clamped := word == "max" && c.take("0, ceildiv(")
	if clamped {
		word = "range"
	}
	from := c.rest
	a := c.sum()
	dividend := from[:len(from)-len(c.rest)]
	c.take(",")
	b := c.sum()
	c.take(")")
	if clamped {
		c.take(")")
	}
	name = c.call(word, a, b, !strings.ContainsAny(dividend, "-#"))
	c.x.lengths[call] = name
	return name
}

func number(digits string, negative bool) int64 {
	n := uint64(0)
	for _, d := range digits {
		n = n*10 + uint64(d-'0')
	}
	if negative {
		return -int64(n)
	}
	return int64(min(n, math.MaxInt64))
}

// closing is the end of a call whose operands begin s, its parenthesis included.
func closing(s string) int {
	depth := 1
	for i, c := range s {
		switch c {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(s)
}

// call is one of the functions of dims; range is ceildiv(a, b) where that is above 0. A division by zero is 0, which no runtime promises.
// Where the dividend cannot be negative the quotient toward zero is the floor; else Mod, which has the sign of the divisor, takes the rest
// off first.
func (c *dimCompiler) call(fn, a, b string, positive bool) string {
	x := c.x
	divisor, known := c.number(b)
	switch {
	case fn == "min":
		return x.op("Min", []string{a, b})
	case fn == "max":
		return x.op("Max", []string{a, b})
	case fn == "range" && known && divisor > 0: // as many numbers as there are from 0 to a in steps of b
		scalar := func(v string) string { return x.op("Reshape", []string{v, x.ints()}) }
		y := x.op("Range", []string{x.constant("zero", ir.Scalar(int64(0))), scalar(a), x.constant("step", ir.Scalar(divisor))})
		return x.op("Shape", y)
	case fn == "range":
		return x.op("Max", []string{x.ints(0), c.call("ceildiv", a, b, positive)})
	case known && divisor > 0 && positive:
		if fn == "ceildiv" {
			a = x.op("Add", []string{a, x.ints(divisor - 1)})
		}
		return x.op("Div", []string{a, b})
	}
	zero, safe := "", b
	if !known {
		zero = x.op("Equal", []string{b, x.ints(0)})
		safe = x.op("Where", []string{zero, x.ints(1), b})
	}
	if fn == "ceildiv" {
		a = x.op("Neg", a)
	}
	q := x.op("Div", []string{x.op("Sub", []string{a, x.op("Mod", []string{a, safe})}), safe})
	if fn == "ceildiv" {
		q = x.op("Neg", q)
	}
	if !known {
		q = x.op("Where", []string{zero, x.ints(0), q})
	}
	return q
}

// number is the value of a constant.
func (c *dimCompiler) number(name string) (int64, bool) {
	for _, t := range c.x.graph.Initializers {
		if t.Name == name && len(t.raw) == 8 {
			return int64(binary.LittleEndian.Uint64(t.raw)), true
		}
	}
	return 0, false
}

// target is the shape operand of a Reshape of v to dims, and whether a 0 in it is a length. Dims that stay where they are and one other
// need no operand that is computed: a dim that no axis has, or one that the reader of the model finds again by dividing.
func (x *emission) target(v ir.Value, dims []ir.Dim) (shape string, allowZero bool) {
	list := slices.Clone(dims)
	if slices.ContainsFunc(dims, func(d ir.Dim) bool { return d.Is(0) }) {
		return x.dims(list), true
	}
	free := -1
	for i, d := range dims {
		switch {
		case d.IsStatic():
		case i < v.Rank() && v.Dim(i) == d:
			list[i] = ir.D(0)
		case free >= 0 && !x.isFound(dims[free]):
		case !x.isFound(d) || quotient(v.Shape(), dims, i) == d:
			free = i
		}
	}
	if free >= 0 {
		list[free] = ir.D(-1)
	}
	return x.dims(list), false
}

// quotient is the number of elements of a shape by that of dims without dim i.
func quotient(shape, dims []ir.Dim, i int) ir.Dim {
	return ir.Count(shape).FloorDiv(ir.Count(slices.Delete(slices.Clone(dims), i, i+1)))
}

// squeezedAxes lists the axes of long that have to be taken out to get short, all of length 1; ok is false where there are none.
func squeezedAxes(long, short []ir.Dim) (axes []int64, ok bool) {
	for i, d := range long {
		switch {
		case len(short) > 0 && d == short[0] && len(long)-i >= len(short):
			short = short[1:]
		case d.Is(1):
			axes = append(axes, int64(i))
		default:
			return nil, false
		}
	}
	return axes, len(short) == 0 && len(axes) > 0
}

// isFound says that a dim need not be computed.
func (x *emission) isFound(d ir.Dim) bool {
	_, computed := x.lengths[d.String()]
	_, there := x.sources[d.String()]
	return computed || there
}
