package ref

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx/internal/prog"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// indexing builds one op over tensors and runs it, or with composed set the nodes of its decomposition.
func indexing(t *testing.T, composed bool, build func(in []ir.Value) ir.Value, tensors ...*ir.Tensor) (*ir.Tensor, error) {
	t.Helper()
	g, done := ir.NewGraph(t.Name()), map[ir.Value]*ir.Tensor{}
	var in []ir.Value
	for i, x := range tensors {
		v := g.Input(string(rune('a'+i)), x.DType(), x.Type().Shape)
		in, done[v] = append(in, v), x
	}
	y := build(in)
	if composed && g.Err() == nil {
		y = y.Node().Row.Decompose(y.Node())[0]
	}
	if g.Err() != nil {
		t.Fatal(g.Err())
	}
	for _, n := range g.Nodes {
		if composed && n.Row == g.Nodes[len(tensors)].Row {
			continue // the op itself
		}
		args := make([]*ir.Tensor, len(n.In))
		for i, v := range n.In {
			args[i] = done[v]
		}
		if done[n.Out(0)] != nil {
			continue
		}
		if c, ok := n.Out(0).Const(); ok {
			done[n.Out(0)] = c
			continue
		}
		out, err := Apply(n.Row, n.Attrs, args, n.Types)
		if err != nil {
			return nil, err
		}
		done[n.Out(0)] = out[0]
	}
	return done[y], nil
}

func TestIndexValues(t *testing.T) {
	x := ir.New([]float32{1, 2, 3}, 3)
	gather := func(in []ir.Value) ir.Value { return op.Gather(in[0], in[1], 0) }
	nan := float32(math.NaN())
	for _, c := range []struct {
		index *ir.Tensor
		words []string
	}{
		{ir.New([]float32{0.5}, 1), []string{"C8", "0.5"}},
		{ir.New([]float32{nan}, 1), []string{"C8", "NaN"}},
		{ir.New([]float32{1e30}, 1), []string{"C7"}},
		{ir.New([]uint64{math.MaxUint64}, 1), []string{"C7", "18446744073709551615"}},
		{ir.New([]int64{1<<32 + 1}, 1), []string{"C7", "4294967297"}},
		{ir.New([]int64{math.MinInt64}, 1), []string{"C7", "-9223372036854775808"}},
	} {
		_, err := indexing(t, false, gather, x, c.index)
		for _, w := range append(c.words, "Gather") {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("index %v: got %v, expected an error with %q", c.index, err, w)
			}
		}
	}
	if _, err := indexing(t, false, gather, ir.New([]float32{}, 0, 2), ir.New([]int64{0}, 1)); err == nil {
		t.Error("an index into an empty axis: no error, expected C7")
	}
}

// In bf16, 256 + 1 rounds to 256 again, so sums that round at each step would stay there.
func TestScatterRoundsOnce(t *testing.T) {
	u, base := make([]ir.BFloat16, 256), ir.New([]ir.BFloat16{0x4380}, 1)
	for i := range u {
		u[i] = 0x3f80
	}
	y, err := indexing(t, false, func(in []ir.Value) ir.Value { return op.ScatterAdd(in[0], in[1], in[2], 0, 1) },
		ir.New(u, 256), ir.New(make([]int64, 256), 256), base)
	if err != nil || y.Float(0) != 512 {
		t.Errorf("got %v, %v, expected 512", y, err)
	}
}

func TestUnsignedMaxAndIntegerWrap(t *testing.T) {
	scatter := func(r op.ScatterReduction) func(in []ir.Value) ir.Value {
		return func(in []ir.Value) ir.Value { return op.ScatterElements(in[0], in[1], in[2], 0, r) }
	}
	zero := ir.New([]int64{0, 0}, 2)
	y, err := indexing(t, false, scatter(op.ScatterMax), ir.New([]uint64{1 << 63}, 1), zero, ir.New([]uint64{5, 7}, 2))
	if err != nil || y.Int(0) != math.MinInt64 { // the bits of 2^63
		t.Errorf("max: got %v, %v, expected 2^63", y, err)
	}
	y, err = indexing(t, false, scatter(op.ScatterMul), ir.New([]int8{16}, 1), zero, ir.New([]int8{16, 3}, 2))
	if err != nil || y.Int(0) != 0 { // 768 mod 256
		t.Errorf("mul: got %v, %v, expected 0", y, err)
	}
}

// One row that does not fit keeps every row of the cache, also where the result is written over it.
func TestKvAppendFailsWhole(t *testing.T) {
	row, err := ir.RowByName("KvAppend")
	if err != nil {
		t.Fatal(err)
	}
	cache := ir.New([]float32{1, 2, 3, 4}, 2, 2, 1)
	own := tensor{true, ir.F32, cache.Shape(), cache.Bytes()}
	old := tensor{true, ir.F32, cache.Shape(), slices.Clone(cache.Bytes())}
	rows, at := ir.New([]float32{8, 9}, 2, 1, 1), ir.New([]int64{0, 2}, 2)
	c := &call{in: []tensor{old, {true, ir.F32, rows.Shape(), rows.Bytes()}, {true, ir.I64, at.Shape(), at.Bytes()}}, out: []tensor{own}}
	attrs, err := row.NewAttrs(map[string]string{"axis": "1"})
	if err != nil {
		t.Fatal(err)
	}
	c.cmd = &prog.Command{Row: row, Attrs: attrs}
	if err := kvAppend(c); err == nil || !strings.Contains(err.Error(), "C4") {
		t.Errorf("got %v, expected C4", err)
	}
	if got, _ := ir.Data[float32](cache); !slices.Equal(got, []float32{1, 2, 3, 4}) {
		t.Errorf("cache is %v after the error, expected [1 2 3 4]", got)
	}
}

// Without a guard, coordinate 3 of a row of 3 would be the first element of the next row.
func TestDecomposedIndexStaysInRange(t *testing.T) {
	x := ir.New([]float32{0, 1, 2, 3, 4, 5}, 2, 3)
	nd := func(in []ir.Value) ir.Value { return op.GatherNd(in[0], in[1], 0) }
	elements := func(in []ir.Value) ir.Value { return op.GatherElements(in[0], in[1], 1) }
	for _, bad := range []int64{3, -4, math.MaxInt64, math.MinInt64} {
		if y, err := indexing(t, true, nd, x, ir.New([]int64{0, bad}, 1, 2)); err == nil || !strings.Contains(err.Error(), "C7") {
			t.Errorf("GatherNd at %d: got %v, %v, expected C7", bad, y, err)
		}
		if y, err := indexing(t, true, elements, x, ir.New([]int64{0, bad}, 2, 1)); err == nil || !strings.Contains(err.Error(), "C7") {
			t.Errorf("GatherElements at %d: got %v, %v, expected C7", bad, y, err)
		}
	}
	y, err := indexing(t, true, nd, x, ir.New([]int64{-1, -3, 0, 2}, 2, 2))
	if err != nil || y.Float(0) != 3 || y.Float(1) != 2 {
		t.Errorf("GatherNd: got %v, %v, expected 3 and 2", y, err)
	}
}

func TestDecomposedKvAppend(t *testing.T) {
	cache, rows := ir.New(make([]float32, 6), 2, 3, 1), ir.New([]float32{8, 9}, 2, 1, 1)
	appendRows := func(in []ir.Value) ir.Value { return op.KvAppend(in[0], in[1], in[2], 1) }
	y, err := indexing(t, true, appendRows, cache, rows, ir.New([]int32{2, 0}, 2))
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := ir.Data[float32](y); !slices.Equal(got, []float32{0, 0, 8, 9, 0, 0}) {
		t.Errorf("got %v, expected [0 0 8 9 0 0]", got)
	}
	for _, p := range [][]int32{{0, 3}, {-1, 0}} {
		if y, err := indexing(t, true, appendRows, cache, rows, ir.New(p, 2)); err == nil {
			t.Errorf("positions %v: got %v, expected an error", p, y)
		}
	}
}
