package op

import (
	"fmt"
	"math"
)

// scalarPrims evaluates the primitives in f64. Conditions are 1 and 0. Each function rounds on its own, so that no compiler
// joins two of them into one rounding.
var scalarPrims = map[string]func(a, b, c float64) float64{
	"identity":   func(a, _, _ float64) float64 { return a },
	"neg":        func(a, _, _ float64) float64 { return -a },
	"abs":        func(a, _, _ float64) float64 { return math.Abs(a) },
	"sign":       func(a, _, _ float64) float64 { return f64Sign(a) },
	"reciprocal": func(a, _, _ float64) float64 { return 1 / a },
	"sqrt":       func(a, _, _ float64) float64 { return math.Sqrt(a) },
	"rsqrt":      func(a, _, _ float64) float64 { return 1 / math.Sqrt(a) },
	"exp":        func(a, _, _ float64) float64 { return f64Exp(a) },
	"exp2":       func(a, _, _ float64) float64 { return math.Exp2(a) },
	"expm1":      func(a, _, _ float64) float64 { return f64Expm1(a) },
	"log":        func(a, _, _ float64) float64 { return f64Log(a) },
	"log2":       func(a, _, _ float64) float64 { return f64LogBase(a, invLn2Hi, invLn2Lo) },
	"log10":      func(a, _, _ float64) float64 { return f64LogBase(a, invLn10Hi, invLn10Lo) },
	"log1p":      func(a, _, _ float64) float64 { return math.Log1p(a) },
	"sin":        func(a, _, _ float64) float64 { return math.Sin(a) },
	"cos":        func(a, _, _ float64) float64 { return math.Cos(a) },
	"tan":        func(a, _, _ float64) float64 { return math.Tan(a) },
	"asin":       func(a, _, _ float64) float64 { return math.Atan2(a, math.Sqrt((1-a)*(1+a))) },
	"acos":       func(a, _, _ float64) float64 { return 2 * math.Atan2(math.Sqrt(1-a), math.Sqrt(1+a)) },
	"atan":       func(a, _, _ float64) float64 { return math.Atan(a) },
	"sinh":       func(a, _, _ float64) float64 { return f64Sinh(a) },
	"cosh":       func(a, _, _ float64) float64 { return f64Cosh(a) },
	"tanh":       func(a, _, _ float64) float64 { return math.Tanh(a) },
	"erf":        func(a, _, _ float64) float64 { return math.Erf(a) },
	"erfc":       func(a, _, _ float64) float64 { return math.Erfc(a) },
	"round":      func(a, _, _ float64) float64 { return math.RoundToEven(a) },
	"floor":      func(a, _, _ float64) float64 { return math.Floor(a) },
	"ceil":       func(a, _, _ float64) float64 { return math.Ceil(a) },
	"trunc":      func(a, _, _ float64) float64 { return math.Trunc(a) },

	"add":   func(a, b, _ float64) float64 { return a + b },
	"sub":   func(a, b, _ float64) float64 { return a - b },
	"mul":   func(a, b, _ float64) float64 { return a * b },
	"div":   func(a, b, _ float64) float64 { return a / b },
	"max":   func(a, b, _ float64) float64 { return max(a, b) }, // the built-ins give NaN for a NaN, and +0 above -0
	"min":   func(a, b, _ float64) float64 { return min(a, b) },
	"pow":   func(a, b, _ float64) float64 { return f64Pow(a, b) },
	"mod":   func(a, b, _ float64) float64 { return math.Mod(a, b) },
	"atan2": func(a, b, _ float64) float64 { return f64Atan2(a, b) },

	"eq": func(a, b, _ float64) float64 { return truth(a == b) },
	"ne": func(a, b, _ float64) float64 { return truth(a != b) },
	"lt": func(a, b, _ float64) float64 { return truth(a < b) },
	"le": func(a, b, _ float64) float64 { return truth(a <= b) },
	"gt": func(a, b, _ float64) float64 { return truth(a > b) },
	"ge": func(a, b, _ float64) float64 { return truth(a >= b) },

	"and":    func(a, b, _ float64) float64 { return truth(a != 0 && b != 0) },
	"or":     func(a, b, _ float64) float64 { return truth(a != 0 || b != 0) },
	"fma":    math.FMA,
	"select": selectNum,
}

func selectNum(c, a, b float64) float64 {
	if c != 0 {
		return a
	}
	return b
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// scalarProgram is an expression in straight-line form: registers hold the operands and dy, alpha, beta, then
// constants and one result per step.
type scalarProgram struct {
	init  []float64 // the registers before the first step, operands and parameters left 0
	steps []scalarStep
	out   uint16
}

type scalarStep struct {
	f          func(a, b, c float64) float64
	a, b, c, d uint16 // d receives f(a, b, c)
}

const (
	regAlpha = 3 // after at most two operands and dy
	regBeta  = 4
	regFirst = 5

	scalarRegs = 80 // more registers than any row of the table needs
)

// compileScalar flattens an expression; calls of rows that are no primitives are expanded. ok is false if a function has no
// evaluation for floats.
func compileScalar(e Expr) (p scalarProgram, ok bool) {
	p.init = make([]float64, regFirst)
	ok = true
	consts, steps := map[uint64]uint16{}, map[string]uint16{}
	reg := func(v float64) uint16 {
		p.init = append(p.init, v)
		return uint16(len(p.init) - 1)
	}
	var emit func(e Expr, vars []uint16) uint16
	emit = func(e Expr, vars []uint16) uint16 {
		return Fold(e, func(e Expr) uint16 {
			switch e.kind {
			case ExprVar:
				if e.index < len(vars) {
					return vars[e.index]
				}
				ok = false
				return 0
			case ExprParam:
				return uint16(regAlpha + e.index)
			}
			b := math.Float64bits(e.value)
			if _, seen := consts[b]; !seen {
				consts[b] = reg(e.value)
			}
			return consts[b]
		}, func(fn string, args []uint16) uint16 {
			f, isPrim := scalarPrims[fn]
			if !isPrim {
				if s, found := anyRow(fn); found && s.Formula != nil {
					return emit(s.Formula, args)
				}
				ok = false
				return 0
			}
			key := fmt.Sprint(fn, args)
			if d, seen := steps[key]; seen {
				return d
			}
			st := scalarStep{f: f, d: reg(0)}
			for i, to := range []*uint16{&st.a, &st.b, &st.c} {
				if i < len(args) {
					*to = args[i]
				}
			}
			p.steps = append(p.steps, st)
			steps[key] = st.d
			return st.d
		})
	}
	p.out = emit(e, []uint16{0, 1, 2})
	return p, ok
}

func anyRow(name string) (*Scalar, bool) {
	for _, m := range []map[string]*Scalar{unaryIndex, binaryIndex, compareIndex} {
		if s, ok := m[name]; ok {
			return s, true
		}
	}
	return nil, false
}

func (p *scalarProgram) run(a, b, dy, alpha, beta float64) float64 {
	if len(p.init) <= 16 { // the usual size: clearing the full room would take longer than the steps
		var room [16]float64
		return p.runIn(room[:], a, b, dy, alpha, beta)
	}
	if len(p.init) <= scalarRegs {
		var room [scalarRegs]float64
		return p.runIn(room[:], a, b, dy, alpha, beta)
	}
	return p.runIn(make([]float64, len(p.init)), a, b, dy, alpha, beta)
}

func (p *scalarProgram) runIn(r []float64, a, b, dy, alpha, beta float64) float64 {
	copy(r, p.init)
	r[0], r[1], r[2], r[regAlpha], r[regBeta] = a, b, dy, alpha, beta
	for i := range p.steps {
		s := &p.steps[i]
		r[s.d] = s.f(r[s.a], r[s.b], r[s.c])
	}
	return r[p.out]
}

// call is the function as an expression of its own operands.
func (s *Scalar) call() Expr {
	if s.Formula != nil {
		return s.Formula
	}
	if s.Arity == 1 {
		return eFn(s.Name, eX)
	}
	return eFn(s.Name, eA, eB)
}

// Func is the function on f64 for fixed parameters; b is ignored where there is one operand, and predicates give 1 and 0. It is
// nil for functions of integers or bools only. Results are within ULP + 1 units of f64, so rounding one to a narrower dtype
// rounds once for all but ties that nearly are ties. The returned function may be called from several goroutines.
func (s *Scalar) Func(alpha, beta float64) func(a, b float64) float64 {
	if !s.Takes(ScalarFloat) {
		return nil
	}
	if f, ok := scalarPrims[s.Name]; ok {
		return func(a, b float64) float64 { return f(a, b, 0) }
	}
	p, ok := compileScalar(s.call())
	if !ok {
		return nil
	}
	return func(a, b float64) float64 { return p.run(a, b, 0, alpha, beta) }
}

// BackwardFunc is the gradient of operand i on f64, dy times the derivative; nil if there is none.
func (s *Scalar) BackwardFunc(i int, alpha, beta float64) func(a, b, dy float64) float64 {
	e := s.Backward(i)
	if e == nil {
		return nil
	}
	if s.Arity == 1 { // dy is variable 1 there
		p, ok := compileScalar(e)
		if !ok {
			return nil
		}
		return func(a, _, dy float64) float64 { return p.run(a, dy, 0, alpha, beta) }
	}
	p, ok := compileScalar(e)
	if !ok {
		return nil
	}
	return func(a, b, dy float64) float64 { return p.run(a, b, dy, alpha, beta) }
}

// EvalExpr evaluates an expression of up to three variables on f64; NaN where it names a function that floats do not have.
func EvalExpr(e Expr, args []float64, alpha, beta float64) float64 {
	p, ok := compileScalar(e)
	if !ok {
		return math.NaN()
	}
	var v [3]float64
	copy(v[:], args)
	return p.run(v[0], v[1], v[2], alpha, beta)
}

// Eval is the function at one point, on f64; see [Scalar.Func]. It is NaN for functions that do not take floats and for a wrong
// number of operands.
func (s *Scalar) Eval(args []float64, alpha, beta float64) float64 {
	f := s.Func(alpha, beta)
	if f == nil || len(args) != s.Arity {
		return math.NaN()
	}
	return f(args[0], args[len(args)-1])
}

// IntFunc is the function on integers of the given width; b is ignored where there is one operand, and comparisons give 1 and 0.
// Values travel as int64: sign-extended if signed, zero-extended if not, the bits of a u64 as they are. It is nil for functions
// that do not take integers.
func (s *Scalar) IntFunc(width uint, signed bool) func(a, b int64) int64 {
	if s.ints == nil || !s.Takes(ScalarInt) {
		return nil
	}
	f, t := s.ints, intType{width, signed}
	return func(a, b int64) int64 { return f(a, b, t) }
}

// EvalInt is the function at one point, on integers; see [Scalar.IntFunc]. It is 0 for functions that do not take integers and
// for a wrong number of operands.
func (s *Scalar) EvalInt(args []int64, width uint, signed bool) int64 {
	f := s.IntFunc(width, signed)
	if f == nil || len(args) != s.Arity {
		return 0
	}
	return f(args[0], args[len(args)-1])
}

// BoolFunc is the function on bools; nil for functions that do not take them.
func (s *Scalar) BoolFunc() func(a, b bool) bool { return s.bools }

// EvalBool is the function at one point, on bools; false for functions that do not take them and for a wrong number of operands.
func (s *Scalar) EvalBool(args []bool) bool {
	if s.bools == nil || len(args) != s.Arity {
		return false
	}
	return s.bools(args[0], args[len(args)-1])
}
