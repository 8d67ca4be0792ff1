package rlx

import (
	"slices"
	"sync"
	"weak"

	"github.com/rlx-ml/rlx-go/rlx/backend"
	"github.com/rlx-ml/rlx-go/rlx/internal/plan"
	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// A program seldom needs its graph: to compile another set of shapes, and to show it. Between uses it is packed, and its constants are where the
// backend has them.

// kept is the graph of a program after the shape-free passes, and its constants.
type kept struct {
	packed *ir.Packed
	bytes  int64 // of the constants

	mu      sync.Mutex
	tensors []*ir.Tensor         // by number; nil: the backend gives the bytes back. Empty once all are
	read    backend.Trimmer      // which does
	last    weak.Pointer[opened] // while anybody uses it
	shown   *opened              // that somebody was given, who may keep it
	closed  bool
}

// opened is the graph with all that it consists of.
type opened struct {
	graph  *ir.Graph
	consts *plan.Constants
}

// keep packs a graph whose constants are the program's own.
func keep(o *opened) *kept {
	k := &kept{packed: ir.Pack(o.graph, o.consts.Tensors(), nil), tensors: slices.Clone(o.consts.Tensors()), last: weak.Make(o)}
	for _, t := range k.tensors {
		k.bytes += int64(t.Size())
	}
	return k
}

// open is the graph, made anew where nobody uses it.
func (k *kept) open() *opened {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.openLocked()
}

func (k *kept) openLocked() *opened {
	if o := k.last.Value(); o != nil {
		return o
	}
	o := &opened{graph: k.packed.Unpack(k.tensor)}
	o.consts = plan.NewConstants(o.graph)
	k.last = weak.Make(o)
	return o
}

// show is open for somebody who may keep the graph beyond the program.
func (k *kept) show() *ir.Graph {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.shown == nil {
		k.shown = k.openLocked()
	}
	return k.shown.graph
}

// tensor is constant i: a small one with its bytes, a large one reads them when they are asked for. The lock is held.
func (k *kept) tensor(i int, dtype ir.DType, shape []int64) *ir.Tensor {
	if i < len(k.tensors) && k.tensors[i] != nil {
		return k.tensors[i]
	}
	from := k.read
	t, err := ir.AtRest(dtype, shape, func(to []byte) error { return from.Read(i, to) })
	switch {
	case err != nil: // of a type that a tensor had
	case k.closed:
		ir.Drop(t, ErrClosed)
	case t.Size() < ir.SmallTensor:
		_ = ir.Keep(t) // what cannot be read shows when it is asked for
	}
	return t
}

// release forgets the constants that the backend gives back when they are asked for.
func (k *kept) release(from backend.Trimmer, done []bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.read = from
	all := true
	for i := range k.tensors {
		if i < len(done) && done[i] {
			k.tensors[i] = nil
		}
		all = all && k.tensors[i] == nil
	}
	if all {
		k.tensors = nil
	}
}

// part gives constants that somebody else may have their memory back before the backend frees its own; the others cannot be read any more.
func (k *kept) part() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closed = true
	list := k.tensors
	if o := k.last.Value(); o != nil {
		list = o.consts.Tensors()
	}
	for _, t := range list {
		if t == nil || k.shown != nil && ir.Keep(t) == nil {
			continue
		}
		ir.Drop(t, ErrClosed)
	}
}
