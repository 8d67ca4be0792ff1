package plan

import (
	"cmp"
	"slices"
)

// align is the alignment of arena buffers: a cache line, and the widest vector.
const align = 64

func roundUp(n int64) int64 { return (n + align - 1) / align * align }

// assign gives every buffer an offset so that buffers that live at the same time never overlap: the largest first, each at the lowest
// place that fits best. It returns the size of the arena, and the lower bound that the order of steps sets.
func assign(bufs []*buffer) (size, bound int64) {
	order := slices.Clone(bufs)
	slices.SortStableFunc(order, func(a, b *buffer) int { return cmp.Compare(b.bytes, a.bytes) })
	var placed []*buffer // by offset
	for _, b := range order {
		b.offset = bestFit(placed, b)
		i, _ := slices.BinarySearchFunc(placed, b, func(x, y *buffer) int { return cmp.Compare(x.offset, y.offset) })
		placed = slices.Insert(placed, i, b)
		size = max(size, b.offset+roundUp(b.bytes))
	}
	return size, liveBound(bufs)
}

// bestFit is the start of the smallest gap between placed buffers that live with b and that holds it.
func bestFit(placed []*buffer, b *buffer) int64 {
	need := roundUp(b.bytes)
	best, bestGap, at := int64(-1), int64(-1), int64(0)
	for _, o := range placed {
		if o.end < b.first || b.end < o.first || o.bytes == 0 {
			continue
		}
		if gap := o.offset - at; gap >= need && (best < 0 || gap < bestGap) {
			best, bestGap = at, gap
		}
		at = max(at, o.offset+roundUp(o.bytes))
	}
	if best < 0 {
		return at
	}
	return best
}

// liveBound is the largest sum of the buffers that live at one step.
func liveBound(bufs []*buffer) int64 {
	change := map[int]int64{}
	last := 0
	for _, b := range bufs {
		change[b.first] += roundUp(b.bytes)
		change[b.end+1] -= roundUp(b.bytes)
		last = max(last, b.end+1)
	}
	live, most := int64(0), int64(0)
	for i := 0; i <= last; i++ {
		live += change[i]
		most = max(most, live)
	}
	return most
}
