package ir

import (
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"math"
	"os"
	"strconv"
	"testing"
)

// floatFile holds what NumPy and ml_dtypes gave: rows of [binary64 bits, code per format], checksums of the codes of a long
// sweep, the values of all 8- and 4-bit codes, and integers with their single roundings to 24 and 8 bits.
type floatFile struct {
	Rows     [][]any           `json:"rows"`
	CRC      map[string]uint32 `json:"crc"`
	F16ToF32 uint32            `json:"f16_to_f32"`
	Codes    map[string][]any  `json:"codes"`
	Odd      [][3]string       `json:"odd"`
}

var narrowings = []struct {
	name string
	lo   int // the sweep's smallest exponent
	span uint64
	wide bool
	f    func(float64) uint16
}{
	{"f16", -28, 46, true, func(x float64) uint16 { return uint16(F16FromF64(x)) }},
	{"bf16", -136, 266, true, func(x float64) uint16 { return uint16(BF16FromF64(x)) }},
	{"e4m3sat", -28, 46, false, func(x float64) uint16 { return uint16(F8E4M3FromF64(x, true)) }},
	{"e4m3", -28, 46, false, func(x float64) uint16 { return uint16(F8E4M3FromF64(x, false)) }},
	{"e5m2sat", -28, 46, false, func(x float64) uint16 { return uint16(F8E5M2FromF64(x, true)) }},
	{"e5m2", -28, 46, false, func(x float64) uint16 { return uint16(F8E5M2FromF64(x, false)) }},
	{"f4", -28, 46, false, func(x float64) uint16 { return uint16(F4E2M1FromF64(x)) }},
	{"e8m0", -136, 266, false, func(x float64) uint16 { return uint16(E8M0FromF64(x)) }},
}

func loadFloats(t *testing.T) floatFile {
	t.Helper()
	raw, err := os.ReadFile("testdata/float.json")
	if err != nil {
		t.Fatal(err)
	}
	var f floatFile
	if err := json.Unmarshal(raw, &f); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestFloatNarrowRows(t *testing.T) {
	for _, row := range loadFloats(t).Rows {
		b, err := strconv.ParseUint(row[0].(string), 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		x := math.Float64frombits(b)
		for i, n := range narrowings {
			if got, want := n.f(x), uint16(row[i+1].(float64)); got != want {
				t.Errorf("%s of %v (%016x): got %#x, want %#x", n.name, x, b, got, want)
			}
		}
	}
}

// sweepValue is element i of the sweep that the stored checksums cover: splitmix64 bits, exponents folded into a window, and
// most mantissas cut to 12 bits, so that ties are frequent.
func sweepValue(i, span uint64, lo int) float64 {
	z := i * 0x9E3779B97F4A7C15
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	z ^= z >> 31
	man := z >> 12
	if z&3 != 0 {
		man &^= 1<<40 - 1
	}
	return math.Float64frombits(z>>63<<63 | (uint64(1023+lo)+z>>2%span)<<52 | man&(1<<52-1))
}

func TestFloatNarrowSweep(t *testing.T) {
	want := loadFloats(t).CRC
	for _, n := range narrowings {
		var out []byte
		for i := uint64(1); i <= 100000; i++ {
			c := n.f(sweepValue(i, n.span, n.lo))
			if n.wide {
				out = binary.LittleEndian.AppendUint16(out, c)
			} else {
				out = append(out, uint8(c))
			}
		}
		if got := crc32.ChecksumIEEE(out); got != want[n.name] {
			t.Errorf("%s: checksum of 100000 roundings is %08x, want %08x", n.name, got, want[n.name])
		}
	}
}

func TestFloat16AllCodes(t *testing.T) {
	var out []byte
	for c := 0; c < 1<<16; c++ {
		h := Float16(c)
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(h.Float32()))
		want := h
		if h&0x7C00 == 0x7C00 && h&0x3FF != 0 {
			want = h&0x8000 | 0x7E00
		}
		if got := F16FromF32(h.Float32()); got != want {
			t.Fatalf("round trip of %#04x gives %#04x", c, got)
		}
	}
	if got, want := crc32.ChecksumIEEE(out), loadFloats(t).F16ToF32; got != want {
		t.Errorf("checksum of all widened codes is %08x, want %08x", got, want)
	}
}

func TestBFloat16AllCodes(t *testing.T) {
	for c := 0; c < 1<<16; c++ {
		h := BFloat16(c)
		want := h
		if h&0x7FFF > 0x7F80 {
			want = h&0x8000 | 0x7FC0
		}
		if got := BF16FromF32(h.Float32()); got != want {
			t.Fatalf("f32 round trip of %#04x gives %#04x", c, got)
		}
		if got := BF16FromF64(h.Float64()); got != want {
			t.Fatalf("f64 round trip of %#04x gives %#04x", c, got)
		}
	}
	for i := uint64(1); i < 100000; i++ { // the two roundings are written apart, so each checks the other
		x := float32(sweepValue(i, 266, -136))
		if a, b := BF16FromF32(x), BF16FromF64(float64(x)); a != b {
			t.Fatalf("%v: %#04x from f32, %#04x from f64", x, a, b)
		}
	}
}

func TestFloatSmallCodes(t *testing.T) {
	codes := loadFloats(t).Codes
	for name, f := range map[string]func(uint8) float64{"f8e4m3": F8E4M3ToF64, "f8e5m2": F8E5M2ToF64, "f4e2m1": F4E2M1ToF64} {
		for c, v := range codes[name] {
			want, ok := v.(float64)
			if !ok {
				want, _ = strconv.ParseFloat(v.(string), 64)
			}
			got := f(uint8(c))
			if got != want && !(got != got && want != want) {
				t.Errorf("%s code %#x: got %v, want %v", name, c, got, want)
			}
			if top := len(codes[name]) / 2; math.Signbit(got) != (c >= top) {
				t.Errorf("%s code %#x: sign bit of %v", name, c, got)
			}
		}
	}
	for c, want := range map[uint8]float64{0: 0x1p-127, 1: 0x1p-126, 127: 1, 130: 8, 254: 0x1p127} {
		if got := E8M0ToF64(c); got != want {
			t.Errorf("e8m0 code %d: got %v, want %v", c, got, want)
		}
	}
	if got := E8M0ToF64(255); got == got {
		t.Errorf("e8m0 code 255: got %v, want NaN", got)
	}
}

func TestF64Odd(t *testing.T) {
	for _, row := range loadFloats(t).Odd {
		v, _ := strconv.ParseInt(row[0], 10, 64)
		f32, _ := strconv.ParseFloat(row[1], 64)
		b16, _ := strconv.ParseFloat(row[2], 64)
		odd := F64OddFromI64(v)
		if got := float64(float32(odd)); got != f32 {
			t.Errorf("%d to f32: got %v, want %v", v, got, f32)
		}
		if got := BF16FromF64(odd).Float64(); got != b16 {
			t.Errorf("%d to bf16: got %v, want %v", v, got, b16)
		}
	}
	if got := F64OddFromU64(math.MaxUint64); got != math.Ldexp(1<<53-1, 11) {
		t.Errorf("2^64-1 rounded to odd: got %v", got)
	}
}

func TestIntFromF64(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		x      float64
		width  uint
		signed bool
		want   int64
	}{
		{2.9, 8, true, 2}, {-2.9, 8, true, -2}, {127.9, 8, true, 127}, {128, 8, true, 127}, {-128.9, 8, true, -128}, {-129, 8, true, -128},
		{255.5, 8, false, 255}, {256, 8, false, 255}, {-0.5, 8, false, 0}, {-3, 8, false, 0}, {math.NaN(), 32, true, 0},
		{inf, 16, true, 32767}, {-inf, 16, true, -32768}, {inf, 16, false, 65535}, {-inf, 16, false, 0},
		{0x1p63, 64, true, math.MaxInt64}, {-0x1p63, 64, true, math.MinInt64}, {-0x1p64, 64, true, math.MinInt64},
		{0x1p63, 64, false, math.MinInt64}, {0x1p64, 64, false, -1}, {inf, 64, false, -1}, {0x1p31, 32, true, math.MaxInt32},
		{4294967295, 32, false, 4294967295},
	} {
		if got := IntFromF64(c.x, c.width, c.signed); got != c.want {
			t.Errorf("IntFromF64(%v, %d, %v): got %d, want %d", c.x, c.width, c.signed, got, c.want)
		}
	}
}
