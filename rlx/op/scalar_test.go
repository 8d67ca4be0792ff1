package op

import (
	"encoding/json"
	"math"
	"os"
	"testing"
)

// scalarFile holds what mpmath gave with 126 digits: per function points [x, y, dy/dx], the derivative only where it has one
// away from kinks, and for two operands [a, b, y]. y is rounded to f64.
type scalarFile struct {
	Unary []struct {
		Fn          string
		Alpha, Beta float64
		Points      [][]float64
	}
	Binary []struct {
		Fn     string
		Points [][]float64
	}
}

func loadScalars(t *testing.T) scalarFile {
	t.Helper()
	raw, err := os.ReadFile("testdata/scalar.json")
	if err != nil {
		t.Fatal(err)
	}
	var f scalarFile
	if err := json.Unmarshal(raw, &f); err != nil {
		t.Fatal(err)
	}
	return f
}

func isF32(x float64) bool { return float64(float32(x)) == x }

// ulpsOff is the distance of got from want in units of the last place of want; subnormal units below min.
func ulpsOff(got, want float64, mantissa int, min float64) float64 {
	if got == want || got != got && want != want {
		return 0
	}
	_, e := math.Frexp(math.Max(math.Abs(want), min))
	return math.Abs(got-want) / math.Ldexp(1, e-1-mantissa)
}

func TestScalarEvalF64(t *testing.T) {
	f := loadScalars(t)
	check := func(s *Scalar, in []float64, alpha, beta, want float64) {
		got := s.Eval(in, alpha, beta)
		if math.Abs(got-want) <= s.AbsErr*0x1p-29 { // the absolute allowance, taken to f64
			return
		}
		if off := ulpsOff(got, want, 52, 0x1p-1022); off > s.ULP+1.5 { // half a unit for the rounding of want
			t.Errorf("%s%v alpha %v: got %v, want %v, %.2f ulp of %v", s.Name, in, alpha, got, want, off, s.ULP+1)
		}
	}
	for _, r := range f.Unary {
		s, _ := Unary(r.Fn)
		for _, p := range r.Points {
			check(s, p[:1], r.Alpha, r.Beta, p[1])
		}
	}
	for _, r := range f.Binary {
		s, _ := Binary(r.Fn)
		for _, p := range r.Points {
			check(s, p[:2], 0, 0, p[2])
		}
	}
}

// evalF32 runs a function with every primitive rounded to f32, as a backend with exact primitives would.
func evalF32(s *Scalar, a, b, alpha, beta float64) float64 {
	p, _ := compileScalar(s.call())
	for i, v := range p.init {
		p.init[i] = float64(float32(v))
	}
	for i := range p.steps {
		f := p.steps[i].f
		p.steps[i].f = func(a, b, c float64) float64 { return float64(float32(f(a, b, c))) }
	}
	return p.run(a, b, 0, alpha, beta)
}

func TestScalarFormulasInF32(t *testing.T) {
	f := loadScalars(t)
	check := func(s *Scalar, a, b, alpha, beta, want float64) {
		if math.Abs(want) < 0x1p-126 || math.Abs(want) > math.MaxFloat32 {
			return
		}
		got := evalF32(s, a, b, alpha, beta)
		tiny := 0.0
		if s.Formula.Uses(func(e Expr) bool { return e.fn == "sigmoid" || e.fn == "exp" || e.fn == "erfc" }) {
			tiny = 1e-30 // the sigmoids may give 0 below this
		}
		if math.Abs(got-want) <= s.AbsErr+tiny {
			return
		}
		bound := max(s.ULP, 0.5) // a stored value is not rounded to f32, so an exact result is half a unit off
		if off := ulpsOff(got, want, 23, 0x1p-126); off > bound {
			t.Errorf("%s(%v, %v) alpha %v: got %v, want %v, %.2f ulp of %v", s.Name, a, b, alpha, got, want, off, bound)
		}
	}
	n := 0
	for _, r := range f.Unary {
		s, _ := Unary(r.Fn)
		if !isF32(r.Alpha) || !isF32(r.Beta) {
			continue
		}
		for _, p := range r.Points {
			if isF32(p[0]) {
				n++
				check(s, p[0], 0, r.Alpha, r.Beta, p[1])
			}
		}
	}
	for _, r := range f.Binary {
		s, _ := Binary(r.Fn)
		for _, p := range r.Points {
			n++
			check(s, p[0], p[1], 0, 0, p[2])
		}
	}
	if n < 1000 {
		t.Errorf("only %d points", n)
	}
}

func TestScalarDerivatives(t *testing.T) {
	for _, r := range loadScalars(t).Unary {
		s, _ := Unary(r.Fn)
		if s.Predicate {
			continue
		}
		bw := s.BackwardFunc(0, r.Alpha, r.Beta)
		for _, p := range r.Points {
			if len(p) < 3 {
				continue
			}
			got, want := EvalExpr(s.Deriv(0), p[:1], r.Alpha, r.Beta), p[2]
			if math.Abs(got-want) > 1e-10*math.Abs(want)+1e-14 {
				t.Errorf("d %s(%v) alpha %v: got %v, want %v", s.Name, p[0], r.Alpha, got, want)
			}
			if g := bw(p[0], 0, -3); math.Abs(g+3*want) > 3e-10*math.Abs(want)+3e-14 {
				t.Errorf("backward %s(%v): got %v, want %v", s.Name, p[0], g, -3*want)
			}
		}
	}
}

var (
	pInf, qNaN = math.Inf(1), math.NaN()
	nZero      = math.Copysign(0, -1)
)

// sameNum compares with NaN equal to itself and the zeros apart.
func sameNum(a, b float64) bool {
	return a != a && b != b || a == b && math.Signbit(a) == math.Signbit(b)
}

// e^x stays finite up to the last finite result, where math.Exp and math.Expm1 need not; values of libm.
func TestExpBelowOverflow(t *testing.T) {
	for _, c := range []struct{ x, want float64 }{
		{709.4, 1.2260423226426727e308}, {709.5, 1.3549863193146328e308}, {709.7, 1.6549840276802644e308}, {709.782712893384, 1.7976931348622732e308},
	} {
		for _, fn := range []string{"exp", "expm1"} {
			s, _ := Unary(fn)
			if got := s.Eval([]float64{c.x}, 0, 0); !(math.Abs(got-c.want) <= 0x1p-51*c.want) {
				t.Errorf("%s(%v): got %v, want %v", fn, c.x, got, c.want)
			}
		}
	}
}

func TestScalarUnaryCorners(t *testing.T) {
	for _, c := range []struct {
		fn      string
		x, want float64
	}{
		{"neg", 0, nZero}, {"sign", nZero, 0}, {"sign", -3, -1}, {"sign", qNaN, qNaN},
		{"reciprocal", nZero, -pInf}, {"sqrt", -1, qNaN}, {"sqrt", nZero, nZero}, {"rsqrt", nZero, -pInf}, {"rsqrt", 0, pInf},
		{"exp", -pInf, 0}, {"exp", 1000, pInf}, {"exp", 709.79, pInf},
		{"expm1", -pInf, -1}, {"log", 0, -pInf}, {"log", -1, qNaN}, {"log", pInf, pInf},
		{"log2", 0, -pInf}, {"log2", -1, qNaN}, {"log2", pInf, pInf}, {"log2", 8, 3}, {"log2", 0x1p-1074, -1074}, {"log10", 1000, 3}, {"log10", nZero, -pInf},
		{"log1p", -1, -pInf}, {"log1p", -2, qNaN}, {"sin", pInf, qNaN}, {"cos", -pInf, qNaN}, {"tan", pInf, qNaN},
		{"asin", 1.5, qNaN}, {"asin", 1, math.Pi / 2}, {"asin", nZero, nZero}, {"acos", -1.5, qNaN}, {"acos", 1, 0}, {"acos", -1, math.Pi},
		{"atan", -pInf, -math.Pi / 2}, {"sinh", -pInf, -pInf}, {"cosh", -pInf, pInf}, {"tanh", -pInf, -1}, {"tanh", pInf, 1},
		{"asinh", nZero, nZero}, {"asinh", pInf, pInf}, {"asinh", -pInf, -pInf}, {"asinh", qNaN, qNaN},
		{"acosh", 1, 0}, {"acosh", 0.5, qNaN}, {"acosh", -5, qNaN}, {"acosh", -pInf, qNaN}, {"acosh", pInf, pInf}, {"acosh", -1e200, qNaN},
		{"atanh", 1, pInf}, {"atanh", -1, -pInf}, {"atanh", 1.5, qNaN}, {"atanh", -pInf, qNaN}, {"atanh", nZero, nZero},
		{"erf", pInf, 1}, {"erfc", -pInf, 2}, {"erfc", pInf, 0}, {"round", 2.5, 2}, {"round", -0.5, nZero}, {"round", 3.5, 4},
		{"ceil", -0.5, nZero}, {"trunc", -0.5, nZero}, {"floor", -0.5, -1},
		{"relu", -pInf, 0}, {"relu", pInf, pInf}, {"relu", qNaN, qNaN}, {"relu6", pInf, 6}, {"relu6", -pInf, 0}, {"relu6", qNaN, qNaN},
		{"leaky_relu", -pInf, -pInf}, {"leaky_relu", qNaN, qNaN}, {"thresholded_relu", 1, 0}, {"thresholded_relu", qNaN, qNaN}, {"thresholded_relu", -pInf, 0},
		{"elu", -pInf, -1}, {"elu", qNaN, qNaN}, {"celu", -pInf, -1}, {"selu", pInf, pInf}, {"selu", qNaN, qNaN},
		{"sigmoid", -pInf, 0}, {"sigmoid", pInf, 1}, {"sigmoid", qNaN, qNaN}, {"log_sigmoid", -pInf, -pInf}, {"log_sigmoid", pInf, 0},
		{"log_sigmoid", qNaN, qNaN}, {"softplus", -pInf, 0}, {"softplus", pInf, pInf}, {"softplus", qNaN, qNaN},
		{"softsign", pInf, 1}, {"softsign", -pInf, -1}, {"softsign", qNaN, qNaN}, {"silu", -pInf, 0}, {"silu", pInf, pInf}, {"silu", qNaN, qNaN},
		{"mish", -pInf, 0}, {"mish", pInf, pInf}, {"mish", qNaN, qNaN}, {"gelu", -pInf, 0}, {"gelu", pInf, pInf}, {"gelu", qNaN, qNaN},
		{"gelu_tanh", -pInf, 0}, {"gelu_tanh", pInf, pInf}, {"gelu_tanh", qNaN, qNaN}, {"gelu_tanh", 1e200, 1e200}, {"gelu_tanh", -1e200, nZero},
		{"gelu_quick", -pInf, 0}, {"gelu_quick", pInf, pInf}, {"gelu_quick", qNaN, qNaN}, {"gelu_quick", 1.5e308, 1.5e308}, {"gelu_quick", -1.5e308, nZero},
		{"gelu_quick", 0, 0}, {"hard_sigmoid", -pInf, 0}, {"hard_sigmoid", pInf, 1}, {"hard_sigmoid", qNaN, qNaN},
		{"hard_swish", -pInf, 0}, {"hard_swish", pInf, pInf}, {"hard_swish", qNaN, qNaN}, {"hard_swish", -3, 0}, {"hard_swish", 3, 3},
		{"is_nan", qNaN, 1}, {"is_nan", pInf, 0}, {"is_inf", -pInf, 1}, {"is_inf", qNaN, 0}, {"is_finite", qNaN, 0}, {"is_finite", pInf, 0}, {"is_finite", 3, 1},
	} {
		s, ok := Unary(c.fn)
		if !ok {
			t.Errorf("no function %s", c.fn)
			continue
		}
		if got := s.Eval([]float64{c.x}, s.Alpha, s.Beta); !sameNum(got, c.want) {
			t.Errorf("%s(%v): got %v, want %v", c.fn, c.x, got, c.want)
		}
		if !s.Predicate {
			if got := s.Eval([]float64{qNaN}, s.Alpha, s.Beta); got == got {
				t.Errorf("%s(NaN): got %v", c.fn, got)
			}
		}
	}
}

func TestScalarDerivativeCorners(t *testing.T) {
	for _, c := range []struct {
		fn      string
		x, want float64
	}{
		{"abs", 0, 0}, {"abs", -2, -1}, {"sign", 2, 0}, {"round", 2.3, 1}, {"floor", 2.3, 0},
		{"relu", 0, 0}, {"relu", 1, 1}, {"relu", qNaN, 1}, {"relu6", 0, 0}, {"relu6", 6, 0}, {"relu6", 5.9, 1}, {"relu6", qNaN, 1},
		{"leaky_relu", 0, 0.01}, {"leaky_relu", qNaN, 1}, {"thresholded_relu", 1, 0}, {"thresholded_relu", 1.1, 1}, {"thresholded_relu", qNaN, 1},
		{"elu", 0, 1}, {"elu", -pInf, 0}, {"celu", 0, 1}, {"silu", -pInf, 0}, {"silu", pInf, 1}, {"mish", -pInf, 0}, {"mish", pInf, 1},
		{"gelu", -pInf, 0}, {"gelu", pInf, 1}, {"gelu_tanh", -pInf, 0}, {"gelu_tanh", pInf, 1}, {"gelu_quick", -pInf, 0}, {"gelu_quick", pInf, 1},
		{"gelu_quick", 1.7e308, 1}, {"gelu_quick", -1.7e308, nZero}, {"gelu_quick", qNaN, qNaN}, {"gelu", qNaN, qNaN}, {"gelu_tanh", qNaN, qNaN}, {"mish", qNaN, qNaN}, {"gelu", 1e200, 1}, {"gelu_tanh", 1e200, 1}, {"gelu_tanh", -1e200, 0},
		{"hard_sigmoid", -3.5, 0}, {"hard_sigmoid", 3.5, 0}, {"hard_sigmoid", 0, 1.0 / 6}, {"hard_sigmoid", qNaN, 1.0 / 6},
		{"hard_swish", -3, 0}, {"hard_swish", 3, 1}, {"hard_swish", 0, 0.5}, {"hard_swish", qNaN, qNaN},
		{"asin", 1, pInf}, {"acos", 1, -pInf}, {"sqrt", 0, pInf}, {"atanh", 1, pInf}, {"softplus", -pInf, 0}, {"softplus", pInf, 1},
	} {
		s, _ := Unary(c.fn)
		if got := EvalExpr(s.Deriv(0), []float64{c.x}, s.Alpha, s.Beta); !sameNum(got, c.want) {
			t.Errorf("d %s(%v): got %v, want %v", c.fn, c.x, got, c.want)
		}
	}
	for _, c := range []struct {
		fn          string
		x, dy, want float64
	}{
		{"relu", -1, pInf, 0}, {"relu", 0, qNaN, 0}, {"relu", qNaN, 5, 5}, {"relu", 2, 5, 5}, {"relu6", 7, pInf, 0}, {"relu6", -1, qNaN, 0},
		{"thresholded_relu", 0, pInf, qNaN}, {"sqrt", 0, 0, qNaN}, // a plain product elsewhere
	} {
		s, _ := Unary(c.fn)
		if got := s.BackwardFunc(0, s.Alpha, s.Beta)(c.x, 0, c.dy); !sameNum(got, c.want) {
			t.Errorf("backward %s(%v) of %v: got %v, want %v", c.fn, c.x, c.dy, got, c.want)
		}
	}
}

func TestScalarBinaryCorners(t *testing.T) {
	for _, c := range []struct {
		fn         string
		a, b, want float64
	}{
		{"max", nZero, 0, 0}, {"max", 0, nZero, 0}, {"max", qNaN, pInf, qNaN}, {"max", pInf, qNaN, qNaN}, {"min", qNaN, -pInf, qNaN}, {"min", 0, nZero, nZero},
		{"div", 1, nZero, -pInf}, {"div", 0, 0, qNaN},
		{"pow", -2, 3, -8}, {"pow", -8, 1.0 / 3, qNaN}, {"pow", 0, -1, pInf}, {"pow", nZero, -1, -pInf}, {"pow", nZero, -2, pInf}, {"pow", nZero, 3, nZero},
		{"pow", nZero, 0.5, 0}, {"pow", qNaN, 0, 1}, {"pow", 1, qNaN, 1}, {"pow", qNaN, 1, qNaN}, {"pow", 2, qNaN, qNaN}, {"pow", -1, pInf, 1}, {"pow", -1, -pInf, 1},
		{"pow", 0.5, pInf, 0}, {"pow", 0.5, -pInf, pInf}, {"pow", -2, pInf, pInf}, {"pow", -pInf, 3, -pInf}, {"pow", -pInf, -3, nZero}, {"pow", -pInf, 2.5, pInf},
		{"pow", pInf, -1, 0}, {"pow", pInf, 0.5, pInf}, {"pow", 0, 0.5, 0}, {"pow", 0, pInf, 0}, {"pow", 0, -pInf, pInf}, {"pow", 3, 20, 3486784401}, {"pow", 2, -3, 0.125},
		{"pow", 10, 22, 1e22}, {"pow", 4, 0.5, 2}, {"pow", 10, 400, pInf}, {"pow", -10, 401, -pInf}, {"pow", 10, -400, 0}, {"pow", -1, 1 << 60, 1}, {"pow", 2, -1074, 0x1p-1074},
		{"mod", -6, 3, nZero}, {"mod", 7, -3, 1}, {"mod", -7, 3, -1}, {"mod", 5, pInf, 5}, {"mod", pInf, 3, qNaN}, {"mod", 5, 0, qNaN}, {"mod", qNaN, 1, qNaN},
		{"floor_mod", -7, 3, 2}, {"floor_mod", 7, -3, -2}, {"floor_mod", -6, 3, 0}, {"floor_mod", 6, -3, nZero}, {"floor_mod", -1, pInf, pInf},
		{"floor_mod", 1, pInf, 1}, {"floor_mod", 0, pInf, 0}, {"floor_mod", 1, -pInf, -pInf}, {"floor_mod", 5, 0, qNaN}, {"floor_mod", 1, qNaN, qNaN}, {"floor_mod", pInf, 2, qNaN},
		{"floor_div", -7, 2, -4}, {"floor_div", 7, 2, 3}, {"floor_div", 1, 0, pInf}, {"floor_div", -1, 0, -pInf}, {"floor_div", 0, 0, qNaN}, {"floor_div", 1, 0.1, 9},
		{"floor_div", -1, pInf, -1}, {"floor_div", 1, pInf, 0}, {"floor_div", 1, -pInf, -1}, {"floor_div", pInf, 2, qNaN}, {"floor_div", pInf, pInf, qNaN},
		{"floor_div", 0, -3, nZero}, {"floor_div", nZero, 3, nZero}, {"floor_div", qNaN, 3, qNaN}, {"floor_div", 3, qNaN, qNaN}, {"floor_div", -1e-300, 1e300, -1},
		{"floor_div", 1e300, 1e-300, pInf}, {"floor_div", 0, pInf, 0}, {"floor_div", -6, 3, -2},
		{"atan2", 0, -1, math.Pi}, {"atan2", nZero, -1, -math.Pi}, {"atan2", nZero, 1, nZero}, {"atan2", 0, 0, 0}, {"atan2", 1, 0, math.Pi / 2},
		{"atan2", pInf, -pInf, 3 * math.Pi / 4}, {"atan2", -1, -pInf, -math.Pi}, {"atan2", -1e-320, -1e10, -math.Pi}, {"atan2", qNaN, 1, qNaN},
	} {
		s, _ := Binary(c.fn)
		if got := s.Eval([]float64{c.a, c.b}, 0, 0); !sameNum(got, c.want) {
			t.Errorf("%s(%v, %v): got %v, want %v", c.fn, c.a, c.b, got, c.want)
		}
	}
}

func TestScalarBinaryDerivatives(t *testing.T) {
	ln2 := math.Ln2
	for _, c := range []struct {
		fn             string
		a, b, dy       float64
		wantDA, wantDB float64
	}{
		{"add", 2, 3, 5, 5, 5}, {"sub", 2, 3, 5, 5, -5}, {"mul", 2, 3, 5, 15, 10}, {"div", 2, 4, 8, 2, -1},
		{"max", 1, 2, 6, 0, 6}, {"max", 2, 2, 6, 3, 3}, {"max", qNaN, 2, 6, 6, 6}, {"max", 1, 2, pInf, 0, pInf}, {"min", 1, 2, 6, 6, 0}, {"min", 2, 2, 6, 3, 3},
		{"pow", 2, 3, 1, 12, 8 * ln2}, {"pow", 0, 0, 1, 0, 0}, {"pow", 0, 2, 1, 0, 0}, {"pow", 5, 0, pInf, 0, pInf}, {"pow", 2, 1, 1, 1, 2 * ln2},
		{"mod", 7, 2, 3, 3, -9}, {"mod", 1, 0.1, 3, 3, -27}, {"mod", -1, 0.1, 3, 3, 27}, {"mod", 5, pInf, 3, 3, 0}, {"mod", 5, -4, 3, 3, 3}, {"mod", -7, 2, 3, 3, 9}, {"floor_mod", -7, 2, 3, 3, 12}, {"floor_mod", 1, 0.1, 3, 3, -27}, {"floor_div", 7, 2, 3, 0, 0},
		{"atan2", 1, 2, 5, 2, -1}, {"atan2", 0, 0, 5, 0, 0},
	} {
		s, _ := Binary(c.fn)
		da, db := s.BackwardFunc(0, 0, 0)(c.a, c.b, c.dy), s.BackwardFunc(1, 0, 0)(c.a, c.b, c.dy)
		near := func(x, y float64) bool { return x == y || x != x && y != y || math.Abs(x-y) <= 1e-14*math.Abs(y) }
		if !near(da, c.wantDA) || !near(db, c.wantDB) {
			t.Errorf("backward %s(%v, %v) of %v: got %v and %v, want %v and %v", c.fn, c.a, c.b, c.dy, da, db, c.wantDA, c.wantDB)
		}
	}
}

func TestScalarInt(t *testing.T) {
	const min64 = math.MinInt64
	for _, c := range []struct {
		fn     string
		width  uint
		signed bool
		a, b   int64
		want   int64
	}{
		{"add", 8, true, 127, 1, -128}, {"add", 8, false, 255, 1, 0}, {"sub", 8, false, 0, 1, 255}, {"mul", 16, true, 300, 300, 24464}, {"mul", 32, false, 1 << 31, 2, 0},
		{"div", 8, true, -128, -1, -128}, {"mod", 8, true, -128, -1, 0}, {"div", 64, true, min64, -1, min64}, {"mod", 64, true, min64, -1, 0},
		{"div", 32, true, -7, 2, -3}, {"mod", 32, true, -7, 2, -1}, {"div", 32, true, 7, 0, 0}, {"mod", 32, true, 7, 0, 7}, {"mod", 8, false, 200, 0, 200},
		{"floor_div", 32, true, -7, 2, -4}, {"floor_mod", 32, true, -7, 2, 1}, {"floor_mod", 32, true, 7, -2, -1}, {"floor_div", 32, true, 7, 0, 0}, {"floor_mod", 32, true, -7, 0, -7},
		{"floor_div", 8, true, -128, -1, -128}, {"floor_mod", 8, true, -128, -1, 0}, {"div", 64, false, -1, 2, math.MaxInt64}, {"floor_div", 64, false, -1, 2, math.MaxInt64},
		{"max", 64, false, -1, 1, -1}, {"max", 64, true, -1, 1, 1}, {"min", 64, false, -1, 1, 1}, {"min", 8, true, -5, 3, -5},
		{"pow", 32, true, 2, 10, 1024}, {"pow", 8, true, 2, 7, -128}, {"pow", 32, true, 0, 0, 1}, {"pow", 32, true, 2, -1, 0}, {"pow", 32, true, 1, -5, 1},
		{"pow", 32, true, -1, -5, -1}, {"pow", 32, true, -1, -4, 1}, {"pow", 32, true, 0, -1, 0}, {"pow", 64, false, 3, 41, -420491770248316829},
		{"bit_and", 8, false, 0xF0, 0x3C, 0x30}, {"bit_or", 8, false, 0xF0, 0x3C, 0xFC}, {"bit_xor", 8, true, -1, 1, -2},
		{"shl", 8, true, 1, 7, -128}, {"shl", 8, true, 1, 8, 0}, {"shl", 8, true, 1, -1, 0}, {"shl", 8, false, 129, 1, 2}, {"shl", 64, true, 1, 63, min64},
		{"shr", 8, true, -128, 7, -1}, {"shr", 8, true, -5, 9, -1}, {"shr", 8, true, 5, -1, 0}, {"shr", 8, true, -5, -1, -1}, {"shr", 8, false, 128, 7, 1},
		{"shr", 64, false, -1, 63, 1}, {"shr", 64, false, -1, -1, 0}, {"shr", 64, true, min64, 63, -1},
		{"neg", 8, true, -128, 0, -128}, {"neg", 8, false, 1, 0, 255}, {"abs", 8, true, -128, 0, -128}, {"abs", 8, true, -5, 0, 5}, {"abs", 64, false, -1, 0, -1},
		{"sign", 8, true, -5, 0, -1}, {"sign", 64, false, -5, 0, 1}, {"sign", 8, true, 0, 0, 0}, {"square", 8, true, 12, 0, -112}, {"relu", 8, true, -5, 0, 0},
		{"relu", 64, false, -5, 0, -5}, {"relu6", 8, true, 9, 0, 6}, {"relu6", 8, false, 255, 0, 6}, {"round", 8, true, -5, 0, -5}, {"bit_not", 8, false, 1, 0, 254}, {"bit_not", 8, true, 1, 0, -2},
	} {
		s, ok := Binary(c.fn)
		args := []int64{c.a, c.b}
		if !ok {
			s, _ = Unary(c.fn)
			args = args[:1]
		}
		if got := s.EvalInt(args, c.width, c.signed); got != c.want {
			t.Errorf("%s of %d bits, signed %v, %v: got %d, want %d", c.fn, c.width, c.signed, args, got, c.want)
		}
	}
	// q*b + r == a for every pair of i8, and the rests have the sign they should
	get := func(fn string) func(a, b int64) int64 { s, _ := Binary(fn); return s.IntFunc(8, true) }
	div, mod, fdiv, fmod := get("div"), get("mod"), get("floor_div"), get("floor_mod")
	for a := int64(-128); a < 128; a++ {
		for b := int64(-128); b < 128; b++ {
			if int8(div(a, b)*b+mod(a, b)) != int8(a) || int8(fdiv(a, b)*b+fmod(a, b)) != int8(a) {
				t.Fatalf("pair %d, %d: %d rest %d, %d rest %d", a, b, div(a, b), mod(a, b), fdiv(a, b), fmod(a, b))
			}
			if r, f := mod(a, b), fmod(a, b); b != 0 && (r*a < 0 || f*b < 0 || max(f, -f) >= max(b, -b)) {
				t.Fatalf("pair %d, %d: rests %d, %d", a, b, r, f)
			}
		}
	}
}

func TestScalarCompareAndBool(t *testing.T) {
	want := map[string][4]bool{ // for 1 and 2, 2 and 2, 2 and 1, NaN and 1
		"eq": {false, true, false, false}, "ne": {true, false, true, true}, "lt": {true, false, false, false},
		"le": {true, true, false, false}, "gt": {false, false, true, false}, "ge": {false, true, true, false},
	}
	for fn, w := range want {
		s, ok := Compare(fn)
		if !ok {
			t.Fatalf("no comparison %s", fn)
		}
		for i, p := range [][2]float64{{1, 2}, {2, 2}, {2, 1}, {qNaN, 1}} {
			if got := s.Eval(p[:], 0, 0) == 1; got != w[i] {
				t.Errorf("%s%v: got %v", fn, p, got)
			}
			if i < 3 {
				if got := s.EvalInt([]int64{int64(p[0]), int64(p[1])}, 8, true) == 1; got != w[i] {
					t.Errorf("%s%v of i8: got %v", fn, p, got)
				}
				if got := s.EvalBool([]bool{p[0] == 2, p[1] == 2}); got != w[i] {
					t.Errorf("%s of bool: got %v", fn, got)
				}
			}
		}
	}
	lt, _ := Compare("lt")
	if lt.EvalInt([]int64{-1, 1}, 64, false) != 0 || lt.EvalInt([]int64{-1, 1}, 64, true) != 1 {
		t.Error("lt of 64 bits ignores the signedness")
	}
	if eq, _ := Compare("eq"); eq.Eval([]float64{0, nZero}, 0, 0) != 1 || !eq.Takes(ScalarC64) || lt.Takes(ScalarC64) {
		t.Error("eq of zeros, or c64 comparisons")
	}
	for i, w := range []map[string]bool{{"and": false, "or": false, "xor": false}, {"and": false, "or": true, "xor": true}, {"and": true, "or": true, "xor": false}} {
		for fn, v := range w {
			s, _ := Binary(fn)
			if got := s.EvalBool([]bool{i > 1, i > 0}); got != v {
				t.Errorf("%s(%v, %v): got %v", fn, i > 1, i > 0, got)
			}
		}
	}
	if not, _ := Unary("not"); not.EvalBool([]bool{true}) || !not.EvalBool([]bool{false}) {
		t.Error("not")
	}
}

func TestScalarTable(t *testing.T) {
	for alias, name := range map[string]string{"gelu_approx": "gelu_tanh", "recip": "reciprocal"} {
		if s, ok := Unary(alias); !ok || s.Name != name {
			t.Errorf("alias %s", alias)
		}
	}
	known := map[string]bool{"select": true, "fma": true, "and": true, "or": true}
	for _, n := range append(append(CompareNames(), UnaryNames()...), BinaryNames()...) {
		s, _ := anyRow(n)
		exprs := []Expr{s.Formula}
		for i := range s.Derivs {
			exprs = append(exprs, s.Backward(i))
		}
		for i, e := range exprs {
			if e == nil {
				continue
			}
			e.Uses(func(e Expr) bool {
				if e.kind == ExprCall && !known[e.fn] {
					if f, ok := anyRow(e.fn); !ok || i == 0 && !f.Primitive && f.index >= s.index {
						t.Errorf("%s uses %s, which is no primitive and no earlier row", n, e.fn)
					}
				}
				return false
			})
			if p, ok := compileScalar(e); !ok || len(p.init) > scalarRegs {
				t.Errorf("%s: expression %d takes %d registers, compiles %v", n, i, len(p.init), ok)
			}
		}
		if s.Primitive && s.Takes(ScalarFloat) && scalarPrims[n] == nil {
			t.Errorf("%s is a primitive that cannot be evaluated", n)
		}
		if (s.ints != nil) != s.Takes(ScalarInt) || (s.bools != nil) != s.Takes(ScalarBool) {
			t.Errorf("%s: dtypes and evaluation disagree", n)
		}
	}
	for fn, uses := range map[string][2]bool{"selu": {true, true}, "elu": {true, false}, "gelu": {false, false}, "hard_sigmoid": {true, true}, "silu": {false, false}} {
		if s, _ := Unary(fn); s.UsesAlpha() != uses[0] || s.UsesBeta() != uses[1] {
			t.Errorf("%s: uses alpha %v, beta %v", fn, s.UsesAlpha(), s.UsesBeta())
		}
	}
	if s, _ := Unary("thresholded_relu"); true {
		if a, _ := s.Params32(0.1, 0); float64(a) > 0.1 || float64(math.Nextafter32(a, 1)) <= 0.1 {
			t.Errorf("threshold 0.1 in f32 is %v", a)
		}
	}
}

// ln(2^-1074) = -1074 ln 2.
func TestLogOfSubnormal(t *testing.T) {
	s, _ := Unary("log")
	if got, want := s.Eval([]float64{0x1p-1074}, 0, 0), -1074*math.Ln2; math.Abs(got-want) > 1e-12 {
		t.Errorf("log(2^-1074) = %v, expected %v", got, want)
	}
}
