package ir_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	. "github.com/rlx-ml/rlx-go/rlx/ir"
	_ "github.com/rlx-ml/rlx-go/rlx/op"
)

type testMode string

func (testMode) EnumValues() []string { return []string{"sum", "mean"} }

type testAttrs struct {
	Count  int64
	Axis   int       `default:"-1" min:"-8" max:"7" c:"C3"`
	Eps    float64   `default:"1e-5" min:"0"`
	Keep   bool      `default:"false"`
	Mode   testMode  `default:"sum" c:"C2"`
	Label  string    `default:""`
	To     DType     `default:""`
	Value  Number    `default:"0"`
	Opt    *int64    `default:"nil" max:"9"`
	Axes   []int64   `default:"nil" min:"0"`
	Scales []float64 `default:"nil"`
	LN1Eps uint64    `default:"0"`
	Data   *Tensor   `default:"nil"`
	Shape  []Dim     `default:"nil"`
}

var (
	testOp = Declare[testAttrs]("test", "TestAttrs")
	// needed has a required list, as the leaves do.
	needed = Declare[struct {
		Perm []int64
		Dims []Dim
	}]("test", "TestNeeded")
)

func init() {
	testOp.Define(Def[testAttrs]{Infer: func(t *Infer, a *testAttrs) { t.Out(Type{F32, Dims()}) }})
	needed.Define(Def[struct {
		Perm []int64
		Dims []Dim
	}]{Infer: func(t *Infer, _ *struct {
		Perm []int64
		Dims []Dim
	}) {
		t.Out(Type{F32, Dims()})
	}})
}

func TestAttrDefaults(t *testing.T) {
	v, err := testOp.Row().NewAttrs(map[string]string{"count": "3"})
	if err != nil {
		t.Fatal(err)
	}
	want := &testAttrs{Count: 3, Axis: -1, Eps: 1e-5, Mode: "sum", Value: IntNumber(0)}
	if !reflect.DeepEqual(v, want) {
		t.Errorf("got %+v, expected %+v", v, want)
	}
	if got := testOp.Row().AttrText(v); got != " {count=3}" {
		t.Errorf("text %q", got)
	}
	v, err = testOp.Row().NewAttrs(map[string]string{"count": "-9223372036854775808", "axis": "7", "eps": "inf", "keep": "true", "mode": "mean", "label": `"a, \"b\" = {c}"`, "to": "bf16",
		"value": "18446744073709551615", "opt": "0", "axes": "[]", "scales": "[1, -0.5]", "ln1_eps": "18446744073709551615", "shape": "[2*n, -1]", "data": "i16[2]:AQD//w=="})
	if err != nil {
		t.Fatal(err)
	}
	got, zero := v.(*testAttrs), int64(0)
	if got.Data == nil || got.Data.String() != "i16[2][1 -1]" {
		t.Errorf("data %v", got.Data)
	}
	if i, big, ok := got.Value.Int(); !ok || !big || uint64(i) != math.MaxUint64 {
		t.Errorf("value %v", got.Value)
	}
	got.Data, got.Value = nil, Number{}
	want = &testAttrs{Count: math.MinInt64, Axis: 7, Eps: math.Inf(1), Keep: true, Mode: "mean", Label: `a, "b" = {c}`, To: BF16, Opt: &zero, Axes: []int64{}, Scales: []float64{1, -0.5},
		LN1Eps: math.MaxUint64, Shape: []Dim{Sym("n").Mul(D(2)), D(-1)}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, expected %+v", got, want)
	}
}

func TestAttrErrors(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"", "", "TestAttrs: count: required attribute is missing, expected int"},
		{"cuont", "1", "TestAttrs: cuont: unknown attribute, expected one of count axis eps"},
		{"count", "1.5", "TestAttrs: count: got 1.5, expected int"},
		{"count", "nil", "count: got nil, expected int"},
		{"count", "9223372036854775808", "count: got 9223372036854775808, expected int"},
		{"keep", "1", "keep: got 1, expected bool"},
		{"eps", "small", "eps: got small, expected float"},
		{"to", "float32", `to: unknown dtype "float32"`},
		{"value", "x", "value: got x, expected number"},
		{"opt", "1.0", "opt: got 1.0, expected int?"},
		{"axes", "1", "axes: got 1, expected int list"},
		{"axes", "[1, x]", "axes: got [1, x], expected int list"},
		{"axes", "[1,]", "axes: got [1,], expected int list"},
		{"scales", "[[1]]", "scales: got [[1]], expected float list"},
		{"ln1_eps", "-1", "ln1_eps: got -1, expected uint"},
		{"shape", "[2 2]", "shape: got [2 2], expected dim list"},
		{"data", "i16[2]", "data: got i16[2], expected tensor"},
		{"data", "i16[2]:AQD/", "data: got i16[2]:AQD/, expected tensor"},
		{"data", "i16[n]:AQD/", "expected tensor"},
		{"data", "i16[-1]:", "expected tensor"},
		// Ranges and enums are found where the node is made.
		{"axis", "8", "TestAttrs: C3: axis: got 8, expected -8 to 7"},
		{"axis", "-9", "TestAttrs: C3: axis: got -9, expected -8 to 7"},
		{"eps", "-1e-9", "TestAttrs: eps: got -1e-09, expected >= 0"},
		{"opt", "10", "TestAttrs: opt: got 10, expected <= 9"},
		{"axes", "[3, -1]", "TestAttrs: axes: got -1, expected >= 0"},
		{"mode", "max", `TestAttrs: C2: mode: got "max", expected one of sum mean`},
	} {
		given := map[string]string{"count": "1"}
		if given[tc.name] = tc.text; tc.name == "" {
			given = nil
		}
		v, err := testOp.Row().NewAttrs(given)
		if err == nil {
			_, err = NewGraph("g").Add(testOp.Row(), "", v)
		}
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s=%s: got error %v, expected %q", tc.name, tc.text, err, tc.want)
		}
	}
	for _, attrs := range []any{nil, 5, &ParamAttrs{}, (*testAttrs)(nil), testAttrs{}} {
		if _, err := NewGraph("g").Add(testOp.Row(), "", attrs); err == nil || !strings.Contains(err.Error(), "attributes are a") {
			t.Errorf("attributes %T: got error %v", attrs, err)
		}
	}
}

func TestSchemaNames(t *testing.T) {
	var got []string
	for _, a := range testOp.Row().Schema {
		got = append(got, a.Name)
	}
	if want := "count axis eps keep mode label to value opt axes scales ln1_eps data shape"; strings.Join(got, " ") != want {
		t.Errorf("got %s, expected %s", strings.Join(got, " "), want)
	}
	// A required list has no nil: it reads back as the empty one.
	row := needed.Row()
	if text := row.AttrText(row.Zero()); text != " {perm=[], dims=[]}" {
		t.Errorf("got %s", text)
	}
}

func TestNumbers(t *testing.T) {
	for _, tc := range []struct {
		in, out string
		f       float64
		isInt   bool
	}{
		{"3", "3", 3, true}, {"-3", "-3", -3, true}, {"9223372036854775807", "9223372036854775807", 0x1p63, true}, {"9223372036854775808", "9223372036854775808", 0x1p63, true},
		{"18446744073709551616", "1.8446744073709552e+19", 0x1p64, false}, {"2.5", "2.5", 2.5, false}, {"1e3", "1000", 1000, true}, {"inf", "+Inf", math.Inf(1), false},
		{"-inf", "-Inf", math.Inf(-1), false}, {"nan", "NaN", math.NaN(), false}, {"-0", "-0", math.Copysign(0, -1), true}, {"-0.0", "-0", math.Copysign(0, -1), true},
	} {
		n, err := ParseNumber(tc.in)
		if err != nil || !n.Present() || n.String() != tc.out || math.Float64bits(n.Float()) != math.Float64bits(tc.f) {
			t.Errorf("%s: got %s = %g (%v), expected %s = %g", tc.in, n, n.Float(), err, tc.out, tc.f)
		}
		if _, _, ok := n.Int(); ok != tc.isInt {
			t.Errorf("%s is an integer: %v", tc.in, ok)
		}
		if back, err := ParseNumber(n.String()); err != nil || math.Float64bits(back.Float()) != math.Float64bits(n.Float()) {
			t.Errorf("%s reads back as %s (%v)", n, back, err)
		}
	}
	if _, err := ParseNumber("1,5"); err == nil {
		t.Error("1,5 is a number")
	}
	if (Number{}).Present() || (Number{}).String() != "absent" {
		t.Error("the zero Number is present")
	}
}

// randomAttrs fills the attribute struct of a row; dims stay static where symbols is false.
func randomAttrs(r *rand.Rand, row *Row, symbols bool) any {
	attrs := row.Zero()
	v := reflect.ValueOf(attrs).Elem()
	for i, a := range row.Schema {
		randomAttr(r, a, v.Field(i), symbols)
	}
	return attrs
}

func randomAttr(r *rand.Rand, a Attr, f reflect.Value, symbols bool) {
	lo, hi := math.Max(a.Min, -1000), math.Min(a.Max, 1000)
	integer := func() int64 { return int64(lo) + r.Int64N(int64(hi)-int64(lo)+1) }
	if a.Kind == AttrInt && math.IsInf(a.Min, -1) && math.IsInf(a.Max, 1) && r.IntN(3) == 0 && f.Kind() == reflect.Int64 {
		f.SetInt(int64(r.Uint64()))
		return
	}
	real := func() float64 {
		if special := []float64{math.Inf(1), math.Inf(-1), math.NaN(), math.Copysign(0, -1)}; math.IsInf(a.Min, -1) && r.IntN(4) == 0 {
			return special[r.IntN(4)]
		}
		return lo + r.Float64()*(hi-lo)
	}
	n := r.IntN(4)
	absent := !a.Required && n == 3
	if coded, ok := f.Addr().Interface().(IntCoded); ok {
		coded.UnmarshalText([]byte([]string{`[]`, `[{"fn":"flip","axes":[0,-1]}]`, `[{"fn":"crop","starts":[1],"sizes":[2]},{"fn":"resize_nearest_2x"}]`, `[{"fn":"transpose","perm":[1,0]}]`}[n]))
		return
	}
	switch a.Kind {
	case AttrInt:
		f.SetInt(integer())
	case AttrUint:
		f.SetUint(r.Uint64())
	case AttrFloat:
		f.SetFloat(real())
	case AttrBool:
		f.SetBool(n > 1)
	case AttrEnum:
		f.SetString(a.Enum[r.IntN(len(a.Enum))])
	case AttrString:
		f.SetString([]string{"", "plain", "a, b = \"{c}\" : [d](\\)", "\x00\xff\n größe", "nil", "} :"}[r.IntN(6)])
	case AttrDType:
		if !absent || a.Default != "" {
			f.SetUint(uint64(DTypes()[r.IntN(len(DTypes()))]))
		}
	case AttrNumber:
		f.Set(reflect.ValueOf([]Number{IntNumber(int64(r.Uint64())), FloatNumber(real() + 0.25), FloatNumber(math.Copysign(0, -1)), FloatNumber(math.NaN())}[n]))
	case AttrOptInt:
		if x := integer(); !absent {
			f.Set(reflect.ValueOf(&x))
		}
	case AttrTensor:
		if !absent {
			x, _ := Zeros(DTypes()[r.IntN(len(DTypes()))], int64(n), r.Int64N(3))
			for i := range x.Bytes() {
				x.Bytes()[i] = byte(r.Uint32())
			}
			f.Set(reflect.ValueOf(x))
		}
	default:
		if absent {
			return
		}
		f.Set(reflect.MakeSlice(f.Type(), n, n))
		for i := range n {
			switch e := f.Index(i); a.Kind {
			case AttrFloats:
				e.SetFloat(real())
			case AttrInts:
				e.SetInt(integer())
			case AttrDims:
				d := D(integer())
				if symbols {
					d = d.Mul(Sym("n")).Add(D(integer())).FloorDiv(Sym("m")).Max(Sym("x#0"))
				}
				e.Set(reflect.ValueOf(d))
			}
		}
	}
}

// Attributes of every row survive the text form and the words.
func TestAttrRoundTrips(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, row := range Rows() {
		for range 60 {
			if slices.ContainsFunc(row.Schema, func(a Attr) bool { return a.Kind == AttrGraph }) { // TestSubGraphText
				break
			}
			attrs := randomAttrs(r, row, true)
			text := row.AttrText(attrs)
			back := reparsed(t, row, text)
			if again := row.AttrText(back); again != text {
				t.Fatalf("%s: %s reads back as %s", row.Name, text, again)
			}
			attrs = randomAttrs(r, row, false)
			words := encoded(t, row, attrs)
			if again := encoded(t, row, reparsed(t, row, row.AttrText(attrs))); !slices.Equal(again, words) {
				t.Fatalf("%s: the text%s loses something: words %x, expected %x", row.Name, row.AttrText(attrs), again, words)
			}
			decoded, rest, err := row.ReadAttrs(append(slices.Clone(words), 77, 88), nil)
			if err != nil || !slices.Equal(rest, []uint32{77, 88}) {
				t.Fatalf("%s%s: words %x leave %d (%v)", row.Name, row.AttrText(attrs), words, rest, err)
			}
			if again := encoded(t, row, decoded); !slices.Equal(again, words) {
				t.Fatalf("%s: words %x, expected %x", row.Name, again, words)
			}
			for n := range words {
				if _, rest, err := row.ReadAttrs(words[:n], nil); err == nil && len(rest) == 0 && n < len(words) {
					t.Fatalf("%s: %d of %d words are enough", row.Name, n, len(words))
				}
			}
		}
	}
}

func reparsed(t *testing.T, row *Row, text string) any {
	t.Helper()
	given := map[string]string{}
	if text != "" {
		var err error
		if given, err = ParseAttrText(text); err != nil {
			t.Fatalf("%s: %s: %v", row.Name, text, err)
		}
	}
	// What the text leaves out has its default, so nothing is missing.
	v, err := row.NewAttrs(given)
	if err != nil {
		t.Fatalf("%s: %s: %v", row.Name, text, err)
	}
	return v
}

func encoded(t *testing.T, row *Row, attrs any) []uint32 {
	t.Helper()
	w, err := row.AppendAttrs(nil, attrs)
	if err != nil {
		t.Fatalf("%s%s: %v", row.Name, row.AttrText(attrs), err)
	}
	return w
}

// Words with any word changed decode to attributes or an error.
func TestHostileAttrWords(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, row := range Rows() {
		for range 20 {
			if slices.ContainsFunc(row.Schema, func(a Attr) bool { return a.Kind == AttrGraph }) { // whose words are those of programs: package prog
				break
			}
			words := encoded(t, row, randomAttrs(r, row, false))
			if len(words) == 0 {
				break
			}
			words[r.IntN(len(words))] = []uint32{0, 1, math.MaxUint32, math.MaxUint32 - 1, 1 << 31, r.Uint32()}[r.IntN(6)]
			row.ReadAttrs(words, nil)
		}
	}
	row := testOp.Row()
	words := encoded(t, row, &testAttrs{Count: 1, Mode: "sum", Value: IntNumber(1)})
	for _, tc := range []struct {
		at   int
		word uint32
		want string
	}{
		{7, 2, "TestAttrs: mode: enum value 2, expected less than 2"},
		{8, 1 << 30, "TestAttrs: label: length 1073741824"},
		{9, uint32(len(DTypes())) + 1, "TestAttrs: to: 19 is not a dtype"},
		{9, 256 + 1, "TestAttrs: to: 257 is not a dtype"},
		{10, 4, "TestAttrs: value: number kind 4"},
		{3, math.MaxInt32, "TestAttrs: C3: axis: got"},
	} {
		w := slices.Clone(words)
		w[tc.at] = tc.word
		if _, _, err := row.ReadAttrs(w, nil); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("word %d = %d: got error %v, expected %q", tc.at, tc.word, err, tc.want)
		}
	}
	if _, err := row.AppendAttrs(nil, &testAttrs{Mode: "sum", Shape: []Dim{Sym("n")}}); err == nil || !strings.Contains(err.Error(), "dim n is not static") {
		t.Errorf("got error %v", err)
	}
}

func TestBindAttrs(t *testing.T) {
	row := testOp.Row()
	old := &testAttrs{Count: 1, Mode: "sum", Shape: []Dim{Sym("n").Mul(D(2)), D(3), Sym("m")}}
	symbols := map[string]bool{}
	if row.AttrSymbols(old, symbols); fmt.Sprint(symbols) != "map[m:true n:true]" {
		t.Errorf("symbols %v", symbols)
	}
	with, err := row.BindAttrs(old, map[string]int64{"n": 5})
	if err != nil {
		t.Fatal(err)
	}
	bound := with.(*testAttrs)
	if ShapeText(bound.Shape) != "[10, 3, m]" || bound.Count != 1 || ShapeText(old.Shape) != "[2*n, 3, m]" {
		t.Errorf("got %v from %v", bound.Shape, old.Shape)
	}
	static := &testAttrs{Shape: Dims(1)}
	if same, err := row.BindAttrs(static, map[string]int64{"n": 5}); same != any(static) || err != nil {
		t.Error("attributes without symbols were copied")
	}
}
