// Code generated from the tables of scalar functions; DO NOT EDIT.

package op

import "github.com/rlx-ml/rlx-go/rlx/ir"

// Identity is x. Floats, integers, c64.
func Identity(x ir.Value) ir.Value { return unaryOf("identity", x) }

// Neg is -x; the least integer stays, unsigned wraps. Floats, integers, c64.
func Neg(x ir.Value) ir.Value { return unaryOf("neg", x) }

// Abs is |x|; the least integer stays. Floats, integers.
func Abs(x ir.Value) ir.Value { return unaryOf("abs", x) }

// Sign is -1, 0 or 1; 0 for both zeros. Floats, integers.
func Sign(x ir.Value) ir.Value { return unaryOf("sign", x) }

// Square is x*x. Floats, integers.
func Square(x ir.Value) ir.Value { return unaryOf("square", x) }

// Reciprocal is 1/x; 1/+-0 = +-inf. Floats.
func Reciprocal(x ir.Value) ir.Value { return unaryOf("reciprocal", x) }

// Sqrt is square root; NaN for x < 0, sqrt(-0) = -0. Floats.
func Sqrt(x ir.Value) ir.Value { return unaryOf("sqrt", x) }

// Rsqrt is 1/sqrt(x); +-0 gives +-inf. Floats.
func Rsqrt(x ir.Value) ir.Value { return unaryOf("rsqrt", x) }

// Exp is e^x. Floats.
func Exp(x ir.Value) ir.Value { return unaryOf("exp", x) }

// Exp2 is 2^x. Floats.
func Exp2(x ir.Value) ir.Value { return unaryOf("exp2", x) }

// Expm1 is e^x - 1, exact near 0. Floats.
func Expm1(x ir.Value) ir.Value { return unaryOf("expm1", x) }

// Log is ln x; 0 gives -inf, x < 0 NaN. Floats.
func Log(x ir.Value) ir.Value { return unaryOf("log", x) }

// Log2 is log to base 2. Floats.
func Log2(x ir.Value) ir.Value { return unaryOf("log2", x) }

// Log10 is log to base 10. Floats.
func Log10(x ir.Value) ir.Value { return unaryOf("log10", x) }

// Log1p is ln(1+x), exact near 0; -1 gives -inf. Floats.
func Log1p(x ir.Value) ir.Value { return unaryOf("log1p", x) }

// Sin is sine of radians; +-inf gives NaN. Floats.
func Sin(x ir.Value) ir.Value { return unaryOf("sin", x) }

// Cos is cosine of radians; +-inf gives NaN. Floats.
func Cos(x ir.Value) ir.Value { return unaryOf("cos", x) }

// Tan is sin/cos. Floats.
func Tan(x ir.Value) ir.Value { return unaryOf("tan", x) }

// Asin is inverse sine; NaN outside [-1, 1]. Floats.
func Asin(x ir.Value) ir.Value { return unaryOf("asin", x) }

// Acos is inverse cosine; NaN outside [-1, 1]. Floats.
func Acos(x ir.Value) ir.Value { return unaryOf("acos", x) }

// Atan is inverse tangent; +-inf gives +-pi/2. Floats.
func Atan(x ir.Value) ir.Value { return unaryOf("atan", x) }

// Sinh is (e^x - e^-x)/2. Floats.
func Sinh(x ir.Value) ir.Value { return unaryOf("sinh", x) }

// Cosh is (e^x + e^-x)/2. Floats.
func Cosh(x ir.Value) ir.Value { return unaryOf("cosh", x) }

// Tanh is sinh/cosh; +-inf gives +-1. Floats.
func Tanh(x ir.Value) ir.Value { return unaryOf("tanh", x) }

// Asinh is inverse hyperbolic sine, odd. Floats.
func Asinh(x ir.Value) ir.Value { return unaryOf("asinh", x) }

// Acosh is inverse hyperbolic cosine; NaN below 1. Floats.
func Acosh(x ir.Value) ir.Value { return unaryOf("acosh", x) }

// Atanh is inverse hyperbolic tangent; +-1 gives +-inf, outside NaN. Floats.
func Atanh(x ir.Value) ir.Value { return unaryOf("atanh", x) }

// Erf is 2/sqrt(pi) integral of e^(-t^2) from 0 to x. Floats.
func Erf(x ir.Value) ir.Value { return unaryOf("erf", x) }

// Erfc is 1 - erf(x) without cancellation. Floats.
func Erfc(x ir.Value) ir.Value { return unaryOf("erfc", x) }

// Round is nearest integer, halves to even; the sign of zero stays. Floats, integers.
func Round(x ir.Value) ir.Value { return unaryOf("round", x) }

// Floor is greatest integer not above x. Floats, integers.
func Floor(x ir.Value) ir.Value { return unaryOf("floor", x) }

// Ceil is least integer not below x. Floats, integers.
func Ceil(x ir.Value) ir.Value { return unaryOf("ceil", x) }

// Trunc is x without its fraction. Floats, integers.
func Trunc(x ir.Value) ir.Value { return unaryOf("trunc", x) }

// Relu is max(x, 0). Floats, integers.
func Relu(x ir.Value) ir.Value { return unaryOf("relu", x) }

// Relu6 is min(max(x, 0), 6). Floats, integers.
func Relu6(x ir.Value) ir.Value { return unaryOf("relu6", x) }

// LeakyRelu is x >= 0 ? x : alpha x. Floats. NaN stands for the usual alpha 0.01.
func LeakyRelu(x ir.Value, alpha float64) ir.Value { return Activation(x, "leaky_relu", alpha, alpha) }

// ThresholdedRelu is x <= alpha ? 0 : x. Floats. NaN stands for the usual alpha 1.
func ThresholdedRelu(x ir.Value, alpha float64) ir.Value {
	return Activation(x, "thresholded_relu", alpha, alpha)
}

// Elu is x > 0 ? x : alpha (e^x - 1). Floats. NaN stands for the usual alpha 1.
func Elu(x ir.Value, alpha float64) ir.Value { return Activation(x, "elu", alpha, alpha) }

// Celu is x > 0 ? x : alpha (e^(x/alpha) - 1). Floats. NaN stands for the usual alpha 1.
func Celu(x ir.Value, alpha float64) ir.Value { return Activation(x, "celu", alpha, alpha) }

// Selu is beta elu(x; alpha). Floats. NaN stands for the usual alpha 1.67326324, beta 1.05070099.
func Selu(x ir.Value, alpha, beta float64) ir.Value { return Activation(x, "selu", alpha, beta) }

// Sigmoid is s(x) = 1 / (1 + e^-x). Floats.
func Sigmoid(x ir.Value) ir.Value { return unaryOf("sigmoid", x) }

// LogSigmoid is min(x, 0) - ln(1 + e^-|x|). Floats.
func LogSigmoid(x ir.Value) ir.Value { return unaryOf("log_sigmoid", x) }

// Softplus is max(x, 0) + ln(1 + e^-|x|). Floats.
func Softplus(x ir.Value) ir.Value { return unaryOf("softplus", x) }

// Softsign is x / (1 + |x|); +-inf gives +-1. Floats.
func Softsign(x ir.Value) ir.Value { return unaryOf("softsign", x) }

// Silu is x s(x); -inf gives 0. Floats.
func Silu(x ir.Value) ir.Value { return unaryOf("silu", x) }

// Mish is x tanh(softplus(x)); -inf gives 0. Floats.
func Mish(x ir.Value) ir.Value { return unaryOf("mish", x) }

// Gelu is x Phi(x) = x/2 erfc(-x/sqrt 2); -inf gives 0. Floats.
func Gelu(x ir.Value) ir.Value { return unaryOf("gelu", x) }

// GeluTanh is x s(2u), u = sqrt(2/pi) (x + 0.044715 x^3); -inf gives 0. Floats.
func GeluTanh(x ir.Value) ir.Value { return unaryOf("gelu_tanh", x) }

// GeluQuick is x s(alpha x); -inf gives 0. Floats. NaN stands for the usual alpha 1.702.
func GeluQuick(x ir.Value, alpha float64) ir.Value { return Activation(x, "gelu_quick", alpha, alpha) }

// HardSigmoid is min(max(alpha x + beta, 0), 1). Floats. NaN stands for the usual alpha 0.166666667, beta 0.5.
func HardSigmoid(x ir.Value, alpha, beta float64) ir.Value {
	return Activation(x, "hard_sigmoid", alpha, beta)
}

// HardSwish is x min(max(x/6 + 1/2, 0), 1). Floats.
func HardSwish(x ir.Value) ir.Value { return unaryOf("hard_swish", x) }

// IsNaN tells whether x is NaN. Floats.
func IsNaN(x ir.Value) ir.Value { return unaryOf("is_nan", x) }

// IsInf tells whether x is +inf or -inf. Floats.
func IsInf(x ir.Value) ir.Value { return unaryOf("is_inf", x) }

// IsFinite tells whether x is neither NaN nor infinite. Floats.
func IsFinite(x ir.Value) ir.Value { return unaryOf("is_finite", x) }

// LogicalNot of bools: logical negation. Bool.
func LogicalNot(x ir.Value) ir.Value { return unaryOf("not", x) }

// BitNot is every bit flipped. Integers.
func BitNot(x ir.Value) ir.Value { return unaryOf("bit_not", x) }

// Add is a + b. Floats, integers, c64, broadcast.
func Add[A, B Operand](a A, b B) ir.Value { return binaryOf("add", a, b) }

// Sub is a - b. Floats, integers, c64, broadcast.
func Sub[A, B Operand](a A, b B) ir.Value { return binaryOf("sub", a, b) }

// Mul is a b. Floats, integers, c64, broadcast.
func Mul[A, B Operand](a A, b B) ir.Value { return binaryOf("mul", a, b) }

// Div is a / b; integers: the quotient toward zero, 0 for b = 0. Floats, integers, c64, broadcast.
func Div[A, B Operand](a A, b B) ir.Value { return binaryOf("div", a, b) }

// Max is the larger; NaN if either is. Floats, integers, broadcast.
func Max[A, B Operand](a A, b B) ir.Value { return binaryOf("max", a, b) }

// Min is the smaller; NaN if either is. Floats, integers, broadcast.
func Min[A, B Operand](a A, b B) ir.Value { return binaryOf("min", a, b) }

// Pow is a^b of IEEE 754; integers wrap, a negative exponent gives the quotient toward zero of 1 / a^-b. Floats, integers, broadcast.
func Pow[A, B Operand](a A, b B) ir.Value { return binaryOf("pow", a, b) }

// Mod is a - b trunc(a/b) exactly, with the sign of a; integers: a for b = 0. Floats, integers, broadcast.
func Mod[A, B Operand](a A, b B) ir.Value { return binaryOf("mod", a, b) }

// FloorMod is a - b floor(a/b), with the sign of b; integers: a for b = 0. Floats, integers, broadcast.
func FloorMod[A, B Operand](a A, b B) ir.Value { return binaryOf("floor_mod", a, b) }

// FloorDiv is floor of the exact quotient a/b; integers: 0 for b = 0. Floats, integers, broadcast.
func FloorDiv[A, B Operand](a A, b B) ir.Value { return binaryOf("floor_div", a, b) }

// Atan2 is angle of the point (b, a), in (-pi, pi]. Floats, broadcast.
func Atan2[A, B Operand](a A, b B) ir.Value { return binaryOf("atan2", a, b) }

// BitAnd is bits set in both. Integers, broadcast.
func BitAnd[A, B Operand](a A, b B) ir.Value { return binaryOf("bit_and", a, b) }

// BitOr is bits set in either. Integers, broadcast.
func BitOr[A, B Operand](a A, b B) ir.Value { return binaryOf("bit_or", a, b) }

// BitXor is bits set in one. Integers, broadcast.
func BitXor[A, B Operand](a A, b B) ir.Value { return binaryOf("bit_xor", a, b) }

// Shl is a shifted left by b bits; 0 for b outside 0..width-1. Integers, broadcast.
func Shl[A, B Operand](a A, b B) ir.Value { return binaryOf("shl", a, b) }

// Shr is a shifted right by b bits, arithmetic if signed; b outside 0..width-1 leaves the sign, 0 or -1. Integers, broadcast.
func Shr[A, B Operand](a A, b B) ir.Value { return binaryOf("shr", a, b) }

// LogicalAnd of bools: both. Bool, broadcast.
func LogicalAnd[A, B Operand](a A, b B) ir.Value { return binaryOf("and", a, b) }

// LogicalOr of bools: either. Bool, broadcast.
func LogicalOr[A, B Operand](a A, b B) ir.Value { return binaryOf("or", a, b) }

// LogicalXor of bools: one but not both. Bool, broadcast.
func LogicalXor[A, B Operand](a A, b B) ir.Value { return binaryOf("xor", a, b) }

// Eq tells whether a == b; false for NaN. Floats, integers, bool, c64, broadcast.
func Eq[A, B Operand](a A, b B) ir.Value { return compareOf("eq", a, b) }

// Ne tells whether a != b; true for NaN. Floats, integers, bool, c64, broadcast.
func Ne[A, B Operand](a A, b B) ir.Value { return compareOf("ne", a, b) }

// Lt tells whether a < b; false for NaN. Floats, integers, bool, broadcast.
func Lt[A, B Operand](a A, b B) ir.Value { return compareOf("lt", a, b) }

// Le tells whether a <= b; false for NaN. Floats, integers, bool, broadcast.
func Le[A, B Operand](a A, b B) ir.Value { return compareOf("le", a, b) }

// Gt tells whether a > b; false for NaN. Floats, integers, bool, broadcast.
func Gt[A, B Operand](a A, b B) ir.Value { return compareOf("gt", a, b) }

// Ge tells whether a >= b; false for NaN. Floats, integers, bool, broadcast.
func Ge[A, B Operand](a A, b B) ir.Value { return compareOf("ge", a, b) }
