package ir_test

import (
	"strings"
	"testing"

	. "github.com/rlx-ml/rlx-go/rlx/ir"
)

func shapeOf(t *testing.T, s string) []Dim {
	t.Helper()
	out := []Dim{}
	for _, p := range strings.Fields(s) {
		d, err := ParseDim(p)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, d)
	}
	return out
}

// NumPy's rule: align at the right, 1 stretches to the other dim, zero included.
func TestBroadcast(t *testing.T) {
	for _, tc := range []struct {
		in   string // shapes, split by |
		want string // - for shapes that cannot meet
	}{
		{"", "[]"}, {"2 3", "[2, 3]"}, {"|", "[]"}, {"3|", "[3]"}, {"|3", "[3]"},
		{"2 3|3", "[2, 3]"}, {"3|2 3", "[2, 3]"}, {"2 1|1 3", "[2, 3]"}, {"8 1 6 1|7 1 5", "[8, 7, 6, 5]"},
		{"2 3|2", "-"}, {"3|4", "-"}, {"2 1|8 4 3", "-"},
		{"0|1", "[0]"}, {"1|0", "[0]"}, {"0|0", "[0]"}, {"0|2", "-"}, {"3 1|3 0", "[3, 0]"},
		{"1 1|1", "[1, 1]"}, {"2|1|2", "[2]"}, {"2 1|3|1 1", "[2, 3]"}, {"2|1|3", "-"},
		{"n|1", "[n]"}, {"1|n", "[n]"}, {"n|n", "[n]"}, {"n|4", "[4]"}, {"4|n", "[4]"}, {"n 3|3", "[n, 3]"}, {"n|m", "[max(m, n)]"}, {"n|n+1", "[n + 1]"},
	} {
		var shapes [][]Dim
		for _, s := range strings.Split(tc.in, "|") {
			shapes = append(shapes, shapeOf(t, s))
		}
		got, ok := Broadcast(shapes...)
		text := "-"
		if ok {
			text = ShapeText(got)
		}
		if text != tc.want {
			t.Errorf("%q: got %s, expected %s", tc.in, text, tc.want)
		}
	}
	if got, ok := Broadcast(); !ok || got == nil || len(got) != 0 {
		t.Errorf("no shapes: got %v", got)
	}
	// The operands stay as they are.
	x, y := Dims(1, 1), Dims(4, 5)
	if Broadcast(x, y); !x[0].Is(1) || !x[1].Is(1) {
		t.Errorf("an operand became %v", x)
	}
}

func TestShapes(t *testing.T) {
	if !SameShape(shapeOf(t, "n 3"), shapeOf(t, "4 3")) || SameShape(shapeOf(t, "n 3"), shapeOf(t, "n 4")) || SameShape(Dims(1), Dims(1, 1)) || SameShape(shapeOf(t, "n"), shapeOf(t, "n+1")) {
		t.Error("SameShape is wrong")
	}
	for _, tc := range []struct{ axis, rank, want int }{{0, 3, 0}, {2, 3, 2}, {-1, 3, 2}, {-3, 3, 0}, {3, 3, -1}, {-4, 3, -1}, {0, 0, -1}, {-1, 0, -1}} {
		got, ok := WrapAxis(tc.axis, tc.rank)
		if ok != (tc.want >= 0) || ok && got != tc.want {
			t.Errorf("axis %d of rank %d: got %d %v", tc.axis, tc.rank, got, ok)
		}
	}
	if n := Count(shapeOf(t, "n 3 n")); n.String() != "3*n*n" || !Count(nil).Is(1) {
		t.Errorf("count %s", n)
	}
	if _, ok := StaticShape(shapeOf(t, "n 3")); ok {
		t.Error("[n, 3] is static")
	}
}
