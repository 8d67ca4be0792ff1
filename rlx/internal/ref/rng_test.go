package ref

import (
	"slices"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// The vectors that the authors of Philox publish with Random123.
func TestPhilox(t *testing.T) {
	const all = 0xffffffff
	for _, v := range []struct {
		counter [4]uint32
		key     [2]uint32
		want    [4]uint32
	}{
		{[4]uint32{}, [2]uint32{}, [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{[4]uint32{all, all, all, all}, [2]uint32{all, all}, [4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{[4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, [2]uint32{0xa4093822, 0x299f31d0}, [4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	} {
		if got := philox(v.counter, v.key); got != v.want {
			t.Errorf("philox(%x, %x) = %x, expected %x", v.counter, v.key, got, v.want)
		}
	}
}

// A span that f32 does not hold; values of NumPy.
func TestUniformOfWideRange(t *testing.T) {
	row, err := ir.RowByName("RngUniform")
	if err != nil {
		t.Fatal(err)
	}
	a := &op.RngUniformAttrs{Shape: ir.Dims(4), Dtype: ir.BF16, Low: -3e38, High: 3e38, Seed: ir.IntNumber(42)}
	y, err := Apply(row, a, []*ir.Tensor{nil, nil}, []ir.Type{{DType: ir.BF16, Shape: ir.Dims(4)}})
	if err != nil {
		t.Fatal(err)
	}
	want := []float64{6.579678579135334e+37, -2.110149443308554e+37, -2.5787023118227368e+38, -9.63690296944064e+37}
	if got := []float64{y[0].Float(0), y[0].Float(1), y[0].Float(2), y[0].Float(3)}; !slices.Equal(got, want) {
		t.Errorf("got %v, expected %v", got, want)
	}
}
