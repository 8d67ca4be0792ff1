package op

import "math"

// Functions that package math leaves short of the bounds of the table: logarithms to base 2 and 10 near 1, powers with large
// exponents, and the corners of sinh, cosh and atan2. Logarithms are carried as unevaluated sums hi + lo of two f64.

const (
	invLn2Hi, invLn2Lo   = 0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56
	invLn10Hi, invLn10Lo = 0x1.bcb7b1526e50ep-2, 0x1.95355baaafad3p-57
	ln2Hi, ln2Lo         = 0x1.62e42fef00000p-1, 0x1.473de6af278edp-34 // ln2Hi has 33 bits: k * ln2Hi is exact for exponents k
	thirdHi, thirdLo     = 0x1.5555555555555p-2, 0x1.5555555555555p-56
)

func f64Sign(x float64) float64 {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -1
	case x == 0:
		return 0
	}
	return x
}

// f64Exp halves results between the last ones of math.Exp, which is infinite from 709.5 on where it is written in assembly, and the last
// finite one. The difference x - ln2High is exact.
func f64Exp(x float64) float64 {
	const (
		ln2High = 0.6931471805598903301870450377464294433593750
		ln2Low  = 5.497923018708371e-14
	)
	if x > 709 && x < 710 {
		h := math.Exp(x - ln2High)
		return 2 * (h - float64(h*ln2Low))
	}
	return math.Exp(x)
}

// f64Expm1 is e^x where the 1 is below half an ulp of it: math.Expm1 is infinite at the last x whose result is finite.
func f64Expm1(x float64) float64 {
	if x > 60 {
		return f64Exp(x)
	}
	return math.Expm1(x)
}

// f64Sinh and f64Cosh take e^x as a square of e^(x/2) where e^x overflows and its half does not.
func f64Sinh(x float64) float64 {
	if a := math.Abs(x); a > 700 {
		h := math.Exp(a / 2)
		return math.Copysign(0.5*h*h, x)
	}
	return math.Sinh(x)
}

func f64Cosh(x float64) float64 {
	if a := math.Abs(x); a > 700 {
		h := math.Exp(a / 2)
		return 0.5 * h * h
	}
	return math.Cosh(x)
}

// f64Atan2 has the sign of a, also where a/b underflows.
func f64Atan2(a, b float64) float64 { return math.Copysign(math.Atan2(a, b), a) }

// twoSum is a + b as a rounded sum and its error, for |a| >= |b| or a = 0.
func twoSum(a, b float64) (s, e float64) {
	s = a + b
	return s, b - (s - a)
}

// twoMul is a * b as a rounded product and its error.
func twoMul(a, b float64) (p, e float64) {
	p = float64(a * b)
	return p, math.FMA(a, b, -p)
}

// atanhTail holds 1/5, 1/7, ... of the series atanh(s)/s = 1 + z/3 + z^2/5 + ..., z = s^2 <= 0.0295, to 2^-68.
var atanhTail = [...]float64{1.0 / 5, 1.0 / 7, 1.0 / 9, 1.0 / 11, 1.0 / 13, 1.0 / 15, 1.0 / 17, 1.0 / 19, 1.0 / 21, 1.0 / 23, 1.0 / 25, 1.0 / 27}

// logPair is ln x = hi + lo for finite x > 0, to about 2^-64 relative: x = 2^k m, m near 1, ln m = 2 atanh((m-1)/(m+1)).
func logPair(x float64) (hi, lo float64) {
	m, k := math.Frexp(x)
	if m < math.Sqrt2/2 {
		m, k = 2*m, k-1
	}
	f := m - 1
	dh, dl := twoSum(2, f)
	s := f / dh
	sl := (math.FMA(-s, dh, f) - s*dl) / dh
	z, zl := twoMul(s, s)
	zl += 2 * s * sl

	tail := 0.0
	for i := len(atanhTail) - 1; i >= 0; i-- {
		tail = tail*z + atanhTail[i]
	}
	p, pl := twoMul(z, thirdHi)
	pl += z*thirdLo + zl*thirdHi + z*z*tail
	q, ql := twoMul(s, p)
	ql += s*pl + sl*p

	hi, lo = twoSum(2*s, 2*q)
	lo += 2 * (sl + ql)
	if k != 0 { // then |k ln 2| is the larger part
		h, l := twoSum(float64(k)*ln2Hi, hi)
		hi, lo = h, l+lo+float64(k)*ln2Lo
	}
	return twoSum(hi, lo)
}

// f64Log is the natural logarithm. The standard library's takes subnormal numbers for the least normal one on amd64.
func f64Log(x float64) float64 {
	if x > 0 && x < 0x1p-1022 {
		return math.Log(x*0x1p54) - 54*math.Ln2
	}
	return math.Log(x)
}

// f64LogBase is the logarithm of x to a base b with 1 / ln b = hi + lo.
func f64LogBase(x, hi, lo float64) float64 {
	if !(x > 0) || math.IsInf(x, 1) {
		return math.Log(x)
	}
	lh, ll := logPair(x)
	p, e := twoMul(lh, hi)
	return p + (e + (lh*lo + ll*hi))
}

// f64Pow is the pow of IEEE 754.
func f64Pow(x, y float64) float64 {
	whole := y == math.Trunc(y) // infinities count as even integers
	odd := whole && math.Abs(y) < 0x1p53 && int64(y)&1 != 0
	switch {
	case y == 0 || x == 1:
		return 1
	case x != x || y != y:
		return x + y
	case x == 0 || math.IsInf(x, 0):
		r := 0.0
		if (x == 0) == (y < 0) {
			r = math.Inf(1)
		}
		if odd {
			return math.Copysign(r, x)
		}
		return r
	case math.IsInf(y, 0):
		a := math.Abs(x)
		if a == 1 {
			return 1
		}
		if (a > 1) == (y > 0) {
			return math.Inf(1)
		}
		return 0
	case x < 0 && !whole:
		return math.NaN()
	}
	r := powPositive(math.Abs(x), y)
	if x < 0 && odd {
		return -r
	}
	return r
}

// powPositive is x^y for finite x > 0 and y.
func powPositive(x, y float64) float64 {
	lh, ll := logPair(x)
	p := y * lh
	e := math.FMA(y, lh, -p) + y*ll
	switch {
	case p > 720:
		return math.Inf(1)
	case p < -760:
		return 0
	case y == 0.5:
		return math.Sqrt(x)
	case math.Abs(y) <= 64 && y == math.Trunc(y) && math.Abs(p) < 690:
		return powSmall(x, int(y))
	}
	r := f64Exp(p)
	if math.IsInf(r, 1) {
		return r
	}
	return r + r*e
}

// powSmall multiplies in pairs, so that powers that f64 holds exactly come out so.
func powSmall(x float64, n int) float64 {
	neg := n < 0
	if neg {
		n = -n
	}
	rh, rl := 1.0, 0.0
	for xh, xl := x, 0.0; ; xh, xl = mulPair(xh, xl, xh, xl) {
		if n&1 != 0 {
			rh, rl = mulPair(rh, rl, xh, xl)
		}
		if n >>= 1; n == 0 {
			break
		}
	}
	if !neg {
		return rh + rl
	}
	q := 1 / rh
	return q + q*(math.FMA(-q, rh, 1)-q*rl)
}

func mulPair(ah, al, bh, bl float64) (h, l float64) {
	p, e := twoMul(ah, bh)
	return twoSum(p, e+(ah*bl+al*bh))
}
