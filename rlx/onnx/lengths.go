package onnx

import (
	"maps"
	"slices"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// place is an axis of an input of the model.
type place struct {
	input string
	axis  int
}

// dim is a symbol, or its length where that is fixed.
func (im *importer) dim(symbol string, at place) ir.Dim {
	if n, ok := im.fixed[symbol]; ok {
		return ir.D(n)
	}
	im.places[symbol] = at
	return ir.Sym(symbol)
}

// fixLengths fixes the dims that an import asked for to those of feed, and says whether there was anything new.
func (o *options) fixLengths(u *UnsupportedError, feed map[string]*ir.Tensor) bool {
	more := false
	for _, item := range u.Items {
		for _, symbol := range item.Dims {
			at, isDim := o.places[symbol]
			t := feed[at.input]
			if _, done := o.fixed[symbol]; isDim && !done && t != nil && at.axis < t.Rank() {
				o.fixed[symbol] = t.Shape()[at.axis]
				more = true
			}
		}
	}
	return more
}

// lengths are the symbols that the elements of a value depend on which depends on no input but on shapes, sorted.
func (v *value) lengths() []string {
	switch {
	case v == nil:
		return nil
	case v.dims == nil:
		return v.symbols
	}
	found := map[string]bool{}
	for _, d := range v.dims.elem {
		d.Symbols(found)
	}
	return slices.Sorted(maps.Keys(found))
}

// lengths are the symbols that the results depend on, where those depend on no input but on shapes.
func (n *node) lengths() []string {
	var list []string
	found := map[string]bool{}
	for _, v := range n.in {
		list = append(list, v.lengths()...)
		if v != nil && n.row != nil && n.row.ofShape {
			for _, d := range v.typ.Shape {
				d.Symbols(found)
			}
		}
	}
	list = slices.AppendSeq(list, maps.Keys(found))
	slices.Sort(list)
	return slices.Compact(list)
}
