package golden

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
)

// The expected numbers of this file come from a NumPy twin of the generator (uint64 arithmetic masked to 32 bits).

func TestHash32(t *testing.T) {
	for _, c := range []struct{ i, seed, want uint32 }{
		{0, 0, 0}, {1, 0, 0x688990c0}, {2, 0, 0xd1132181}, {3, 0, 0x53f1e9dd},
		{0, 105, 0x72d4e25d}, {1, 105, 0x6a35cae7}, {2, 105, 0x95b6439a}, {3, 105, 0x341efdf1}, {2047, 105, 3473573004},
		{0, 0xffffffff, 0x7ed47951}, {1, 0xffffffff, 0xe559198d}, {2, 0xffffffff, 0x2a12ff67},
	} {
		if got := hash32(c.i, c.seed); got != c.want {
			t.Errorf("hash32(%d, %d) = %#x, want %#x", c.i, c.seed, got, c.want)
		}
	}
}

func TestFill(t *testing.T) {
	for _, c := range []struct {
		name string
		in   Input
		step int
		want any
	}{
		{"uniform", Input{DType: "float32", Shape: []int64{5}, Kind: "uniform", Lo: -1, Hi: 1, Seed: 7}, 0,
			[]float32{0x1.173a5p-3, 0x1.7637b8p-2, -0x1.6be9a8p-1, 0x1.fe262p-4, 0x1.8e5c7p-3}},
		{"uniform, step 2", Input{DType: "float32", Shape: []int64{4}, Kind: "uniform", Lo: -1, Hi: 1, Seed: 7}, 2,
			[]float32{-0.7260900735855103, 0.550534725189209, 0.28700125217437744, -0.6765826940536499}},
		{"int", Input{DType: "int32", Shape: []int64{2, 4}, Kind: "int", Lo: 0, Hi: 256, Seed: 105}, 0,
			[]int32{93, 231, 154, 241, 144, 57, 206, 28}},
		{"int from a negative, step 1", Input{DType: "int64", Shape: []int64{4}, Kind: "int", Lo: -5, Hi: 5, Seed: 3}, 1,
			[]int64{0, -2, 3, 1}},
		{"const", Input{DType: "int64", Shape: []int64{}, Kind: "const", Value: 16000}, 0, []int64{16000}},
		{"given", Input{DType: "float32", Shape: []int64{2}, Kind: "given", Values: []float64{1.5, -2}}, 0, []float32{1.5, -2}},
		{"chirp, step 1 of 2", Input{DType: "float32", Shape: []int64{4}, Kind: "chirp", Rate: 16, Amp: 0.5, F0: 1, F1: 3, Steps: 2}, 1, []float32{0.353553385, -0.024533838, -0.415734798, -0.451994658}},
		{"voiced", Input{DType: "float32", Shape: []int64{4}, Kind: "voiced", Rate: 100, Amp: 0.3, F0: 7, Harmonics: 3, Env: 2}, 0, []float32{0, 0.00135842909, 0.00662719039, 0.00921551604}},
		{"bars", Input{DType: "float32", Shape: []int64{2, 1, 2, 8}, Kind: "bars", Bg: 1.5, Fg: -1.5, Boxes: [][]int64{{1, 2, 1, 6, 2}}}, 0, []float32{1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5, -1.5, -1.5, 1.5, 1.5, -1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5, -1.5, -1.5, 1.5, 1.5}},
		{"lengths", Input{DType: "int64", Shape: []int64{2, 3}, Kind: "lengths", Lengths: []int64{3, 1}}, 0, []int64{1, 1, 1, 1, 0, 0}},
	} {
		got, err := c.in.Fill(c.step)
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %v, %v, want %v", c.name, got, err, c.want)
		}
	}
}

func TestFillErrors(t *testing.T) {
	for _, in := range []Input{
		{DType: "float32", Shape: []int64{2}, Kind: "noise"},
		{DType: "float99", Shape: []int64{2}, Kind: "const"},
		{DType: "float32", Shape: []int64{-2}, Kind: "const"},
		{DType: "float32", Shape: []int64{1 << 40, 1 << 40}, Kind: "const"},
		{DType: "float32", Shape: []int64{2}, Kind: "given", Values: []float64{1}},
		{DType: "int32", Shape: []int64{2}, Kind: "int", Lo: 3, Hi: 3},
		{DType: "int32", Shape: []int64{2, 2}, Kind: "lengths", Lengths: []int64{1}},
	} {
		if got, err := in.Fill(0); err == nil {
			t.Errorf("%+v: got %v, expected an error", in, got)
		}
	}
}

func TestStoredCases(t *testing.T) {
	cases, err := Read("../../testdata/models/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]int64{}
	for _, c := range cases {
		for name, in := range c.Inputs {
			v, err := in.Fill(0)
			if err != nil {
				t.Fatalf("%s: %s: %v", c.Name, name, err)
			}
			var sum int64
			switch v := v.(type) {
			case []int32:
				for _, x := range v {
					sum += int64(x)
				}
			case []int64:
				for _, x := range v {
					sum += x
				}
			}
			sums[c.Name+":"+name] = sum
		}
	}
	for name, want := range map[string]int64{
		"magika/bytes:bytes": 254871, "minilm_int8/3x33_masked:input_ids": 1384481,
		"minilm_int8/3x33_masked:attention_mask": 33 + 7 + 20, "minilm_int8/1x16:attention_mask": 16,
	} {
		if sums[name] != want {
			t.Errorf("%s sums to %d, want %d", name, sums[name], want)
		}
	}
	if len(cases) != 24 {
		t.Errorf("%d cases, want 24", len(cases))
	}
}

// compareCase is an output of four values with mean 2.5, standard deviation sqrt(1.25) and the largest value last.
func compareCase() (Case, []float64) {
	return Case{
		Name: "c", Tol: map[string]float64{"y": 0.01},
		Outputs: map[string]Output{"y": {
			DType: "float32", Shape: []int64{2, 2}, First: []float64{1, 2, 3, 4}, At: []int{0, 3}, ValuesAt: []float64{1, 4},
			Mean: 2.5, Std: 1.118033989, Min: 1, Max: 4, ArgMax: 3,
		}},
	}, []float64{1, 2, 3, 4}
}

func TestCompare(t *testing.T) {
	c, v := compareCase()
	if err := Compare(c, "y", "float32", []int64{2, 2}, v); err != nil {
		t.Error(err)
	}
	for _, bad := range []struct {
		name   string
		dtype  string
		shape  []int64
		values []float64
		say    string
	}{
		{"dtype", "float64", []int64{2, 2}, v, "dtype"},
		{"shape", "float32", []int64{4}, v, "shape"},
		{"too few", "float32", []int64{2, 2}, v[:3], "3 values"},
		{"value", "float32", []int64{2, 2}, []float64{1, 2, 3.02, 4}, "element 2"},
		{"NaN", "float32", []int64{2, 2}, []float64{1, math.NaN(), 3, 4}, "element 1"},
	} {
		err := Compare(c, "y", bad.dtype, bad.shape, bad.values)
		if !errors.Is(err, ErrMismatch) || !strings.Contains(err.Error(), bad.say) {
			t.Errorf("%s: got %v", bad.name, err)
		}
	}
	if err := Compare(c, "z", "float32", []int64{2, 2}, v); err == nil {
		t.Error("an output that is not stored was accepted")
	}
	// What is only in the moments has to be found too.
	o := c.Outputs["y"]
	o.First, o.At, o.ValuesAt = nil, nil, nil
	c.Outputs["y"] = o
	for name, values := range map[string][]float64{
		"mean": {1, 2, 3.2, 4}, "deviation": {1, 2.5, 2.5, 4}, "least": {0.9, 2.05, 3.05, 4}, "arg max": {2, 1, 4, 3},
		"NaN": {1, math.NaN(), 3, 4},
	} {
		if err := Compare(c, "y", "float32", []int64{2, 2}, values); !errors.Is(err, ErrMismatch) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if err := Compare(c, "y", "float32", []int64{2, 2}, []float64{1, 3, 2, 4}); err != nil {
		t.Errorf("swapped values that keep all moments: %v", err)
	}
}
