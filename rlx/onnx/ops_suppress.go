package onnx

import (
	"slices"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// maxSuppressed bounds how many pairs of boxes a model may ask to compare while it is read.
const maxSuppressed = 1 << 28

// suppression is one NonMaxSuppression, whose results have a length that depends on values: all is known while the model is read.
type suppression struct {
	boxes, scores    *ir.Tensor // [batch, count, 4] and [batch, classes, count]
	center, scored   bool       // boxes are centre and size; there is a least score
	most             int64      // boxes of a class
	overlap, atLeast float32
}

// buildNonMaxSuppression lists (batch, class, box) of the boxes that are kept, the best of a class first.
func buildNonMaxSuppression(n *node) {
	s := suppression{boxes: n.want(0, "boxes"), scores: n.want(1, "scores"), center: n.i("center_point_box") == 1, scored: n.has(4)}
	s.most = n.int(2, "max_output_boxes_per_class", 0)
	s.overlap, s.atLeast = n.threshold(3, "iou_threshold"), n.threshold(4, "score_threshold")
	n.rank(0, 3, 3)
	n.rank(1, 3, 3)
	if !n.ok() {
		return
	}
	b, c := s.boxes.Shape(), s.scores.Shape()
	if s.boxes.DType() != ir.F32 || s.scores.DType() != ir.F32 || b[2] != 4 || b[0] != c[0] || b[1] != c[2] {
		n.fail("boxes are %s and scores %s, expected f32[b, n, 4] and f32[b, c, n]", s.boxes.Type(), s.scores.Type())
		return
	}
	kept := min(max(s.most, 0), b[1])
	if b[1] > 0 && prod([]int64{c[0], c[1], b[1], max(kept, 1)}) > maxSuppressed {
		n.refuse("", "%d boxes in %d classes are too many", b[1], c[1])
		return
	}
	var found []int64
	for batch := range int(c[0]) {
		for class := range int(c[1]) {
			for _, box := range s.class(batch, class) {
				found = append(found, int64(batch), int64(class), int64(box))
			}
		}
	}
	n.give(0, ir.New(found, len(found)/3, 3))
}

// threshold is the one element of a float input, 0 where it is absent.
func (n *node) threshold(i int, what string) float32 {
	if !n.has(i) {
		return 0
	}
	t := n.want(i, what)
	if t != nil && t.Len() != 1 {
		n.fail("input %d (%s) has %d elements, expected one", i, what, t.Len())
	}
	if t == nil || !n.ok() {
		return 0
	}
	return float32(t.Float(0))
}

// class lists the boxes of one class that are kept: a box goes where it overlaps a better one too much.
func (s *suppression) class(batch, class int) (kept []int) {
	count := int(s.boxes.Shape()[1])
	score := func(box int) float64 { return s.scores.Float((batch*int(s.scores.Shape()[1])+class)*count + box) }
	var order []int
	for box := range count {
		if !s.scored || score(box) > float64(s.atLeast) {
			order = append(order, box)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch x, y := score(a), score(b); {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return 0
	})
	for _, box := range order {
		if int64(len(kept)) >= s.most {
			break
		}
		covered := func(better int) bool { return overlap(s.corners(batch, better), s.corners(batch, box)) > s.overlap }
		if !slices.ContainsFunc(kept, covered) {
			kept = append(kept, box)
		}
	}
	return kept
}

// corners are the least and the greatest coordinates of a box, along its two axes. A box names any two opposite corners.
func (s *suppression) corners(batch, box int) (c [2][2]float32) {
	at := (batch*int(s.boxes.Shape()[1]) + box) * 4
	for axis := range c {
		a, b := float32(s.boxes.Float(at+axis)), float32(s.boxes.Float(at+axis+2))
		if s.center {
			a, b = a-b/2, a+b/2
		}
		c[axis] = [2]float32{min(a, b), max(a, b)}
	}
	return c
}

// overlap is the area that two boxes share, as a part of what they cover together; 0 for a box without area.
func overlap(a, b [2][2]float32) float32 {
	area := func(c [2][2]float32) float32 { return (c[0][1] - c[0][0]) * (c[1][1] - c[1][0]) }
	both := float32(1)
	for axis := range a {
		both *= max(0, min(a[axis][1], b[axis][1])-max(a[axis][0], b[axis][0]))
	}
	if area(a) <= 0 || area(b) <= 0 {
		return 0
	}
	return both / (area(a) + area(b) - both)
}
