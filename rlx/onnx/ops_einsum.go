package onnx

import (
	"slices"
	"strings"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

var einsumRows = []row{
	{op: "Einsum", since: 12, in: arity{1, many}, attrs: []attrDecl{required(listOf("equation", AttributeString))}, build: buildEinsum},
}

// labelled is an operand with a letter for each axis. Letters of an ellipsis are the digits of their distance from its end.
type labelled struct {
	x      ir.Value
	labels []rune
}

func (l labelled) axis(r rune) int { return slices.Index(l.labels, r) }

// buildEinsum contracts operands pairwise from the left.
func buildEinsum(n *node) {
	xs := n.vals()
	if !n.ok() {
		return
	}
	operands, out, ok := n.equation(xs)
	if !ok {
		return
	}
	for i := range operands {
		if operands[i] = n.diagonals(operands[i]); !n.ok() {
			return
		}
	}
	y := operands[0]
	for i, next := range operands[1:] {
		needed := slices.Clone(out)
		for _, later := range operands[i+2:] {
			needed = append(needed, later.labels...)
		}
		y = contract(y, next, needed)
	}
	y = sumOut(y, out)
	perm := make([]int, len(out))
	for i, r := range out {
		if perm[i] = y.axis(r); perm[i] < 0 {
			n.fail("the result has label %c, which no operand has", r)
			return
		}
	}
	if len(perm) > 1 {
		y.x = op.Transpose(y.x, perm...)
	}
	n.ret(y.x)
}

// equation reads the labels of the operands and of the result.
func (n *node) equation(xs []ir.Value) (operands []labelled, out []rune, ok bool) {
	text := strings.ReplaceAll(n.s("equation"), " ", "")
	left, right, explicit := strings.Cut(text, "->")
	terms := strings.Split(left, ",")
	if len(terms) != len(xs) {
		n.fail("equation %q has %d operands, the node %d", text, len(terms), len(xs))
		return nil, nil, false
	}
	widest := 0
	for i, term := range terms {
		letters := len(strings.Replace(term, "...", "", 1))
		dots := xs[i].Rank() - letters
		if !strings.Contains(term, "...") && dots != 0 || dots < 0 {
			n.fail("equation %q: operand %d has rank %d", text, i, xs[i].Rank())
			return nil, nil, false
		}
		widest = max(widest, dots)
		operands = append(operands, labelled{xs[i], expandDots(term, dots)})
	}
	if explicit {
		return operands, expandDots(right, widest), true
	}
	count := map[rune]int{}
	for _, o := range operands {
		for _, r := range o.labels {
			count[r]++
		}
	}
	out = expandDots("...", widest)
	var letters []rune
	for r, c := range count {
		if c == 1 && !slices.Contains(out, r) {
			letters = append(letters, r)
		}
	}
	slices.Sort(letters)
	return operands, append(out, letters...), true
}

// expandDots replaces the ellipsis by labels for that many axes, which count from the end as broadcasting does.
func expandDots(term string, dots int) []rune {
	var out []rune
	for term != "" {
		if rest, ok := strings.CutPrefix(term, "..."); ok {
			for k := dots; k > 0; k-- {
				out = append(out, rune('0'+k))
			}
			term = rest
			continue
		}
		out, term = append(out, rune(term[0])), term[1:]
	}
	return out
}

// diagonals keeps the elements where axes of the same label agree.
func (n *node) diagonals(l labelled) labelled {
	for i := 0; i < len(l.labels); i++ {
		k := slices.Index(l.labels[i+1:], l.labels[i])
		if k < 0 {
			continue
		}
		k += i + 1
		d, ok := l.x.Dim(i).Static()
		if !ok || !l.x.Dim(k).Is(d) {
			n.refuse("equation", "a diagonal of axes of lengths %s and %s, expected known and equal ones", l.x.Dim(i), l.x.Dim(k))
			return l
		}
		var perm []int
		var shape []ir.Dim
		var labels []rune
		for a := range l.labels {
			if a != i && a != k {
				perm, shape, labels = append(perm, a), append(shape, l.x.Dim(a)), append(labels, l.labels[a])
			}
		}
		x := op.Transpose(l.x, append(perm, i, k)...)
		x = op.Reshape(x, append(slices.Clone(shape), ir.D(d*d))...)
		x = op.Slice(x, ir.Dims(0), ir.Dims(d*d), []int{len(shape)}, []int64{d + 1})
		l = labelled{x, append(labels, l.labels[i])}
		i = -1
	}
	return l
}

// sumOut sums over the axes whose labels are not needed.
func sumOut(l labelled, needed []rune) labelled {
	var axes []int
	var labels []rune
	for i, r := range l.labels {
		if slices.Contains(needed, r) {
			labels = append(labels, r)
		} else {
			axes = append(axes, i)
		}
	}
	if len(axes) == 0 {
		return l
	}
	return labelled{op.Reduce(l.x, "sum", axes, false), labels}
}

// contract is the product of two operands, summed over the labels that nothing needs any more.
func contract(a, b labelled, needed []rune) labelled {
	a, b = dropOnes(a, b), dropOnes(b, a)
	a = sumOut(a, slices.Concat(needed, b.labels))
	b = sumOut(b, slices.Concat(needed, a.labels))
	var at op.DotGeneralAttrs
	var batch, free []rune
	for i, r := range a.labels {
		k := b.axis(r)
		switch {
		case k < 0:
			free = append(free, r)
		case slices.Contains(needed, r):
			at.LhsBatch, at.RhsBatch = append(at.LhsBatch, i), append(at.RhsBatch, k)
			batch = append(batch, r)
		default:
			at.LhsContracting, at.RhsContracting = append(at.LhsContracting, i), append(at.RhsContracting, k)
		}
	}
	for _, r := range b.labels {
		if a.axis(r) < 0 {
			free = append(free, r)
		}
	}
	return labelled{op.DotGeneral(a.x, b.x, at), append(batch, free...)}
}

// dropOnes removes axes of length 1 from a that broadcast against longer ones of b.
func dropOnes(a, b labelled) labelled {
	var shape []ir.Dim
	var labels []rune
	for i, r := range a.labels {
		if k := b.axis(r); k >= 0 && a.x.Dim(i).Is(1) && !b.x.Dim(k).Is(1) {
			continue
		}
		shape, labels = append(shape, a.x.Dim(i)), append(labels, r)
	}
	if len(labels) == len(a.labels) {
		return a
	}
	return labelled{op.Reshape(a.x, shape...), labels}
}
