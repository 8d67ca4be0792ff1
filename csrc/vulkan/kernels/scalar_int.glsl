// scalar_int.glsl: the scalar functions of integers, on COMPUTE of at least 32 bits; storing keeps the low BITS. They wrap, and every pair of
// operands has a result: q*b + r == a for div with mod and for floor_div with floor_mod; x/0 gives 0 with rest x, MIN/-1 gives MIN with rest 0.
#ifndef RLX_SCALAR_INT_GLSL
#define RLX_SCALAR_INT_GLSL

#ifdef IS_SIGNED
bool below_zero(COMPUTE a) { return a < COMPUTE(0); }
bool minus_one(COMPUTE b) { return b == COMPUTE(-1); }
#else
bool below_zero(COMPUTE a) { return false; }
bool minus_one(COMPUTE b) { return false; }
#endif

COMPUTE int_div(COMPUTE a, COMPUTE b) {
  const bool plain = b != COMPUTE(0) && !minus_one(b);
  const COMPUTE q = a / (plain ? b : COMPUTE(1));
  return plain ? q : b == COMPUTE(0) ? b : COMPUTE(0) - a;
}
COMPUTE int_mod(COMPUTE a, COMPUTE b) { return a - int_div(a, b) * b; } // % of negative numbers is undefined

bool steps_down(COMPUTE r, COMPUTE b) { return b != COMPUTE(0) && r != COMPUTE(0) && below_zero(r) != below_zero(b); }

COMPUTE int_pow(COMPUTE a, COMPUTE b) {
  if (below_zero(b)) return a == COMPUTE(1) || (minus_one(a) && (b & COMPUTE(1)) == COMPUTE(0)) ? COMPUTE(1) : minus_one(a) ? a : COMPUTE(0);
  COMPUTE r = COMPUTE(1), x = a;
  while (b != COMPUTE(0)) {
    if ((b & COMPUTE(1)) != COMPUTE(0)) r *= x;
    x *= x;
    b >>= 1;
  }
  return r;
}

COMPUTE int_unary(uint fn, COMPUTE a) {
  switch (fn) {
    case UnaryFn_neg: return COMPUTE(0) - a;
    case UnaryFn_abs: return below_zero(a) ? COMPUTE(0) - a : a;
    case UnaryFn_sign: return below_zero(a) ? COMPUTE(0) - COMPUTE(1) : a == COMPUTE(0) ? a : COMPUTE(1);
    case UnaryFn_square: return a * a;
    case UnaryFn_relu: return below_zero(a) ? COMPUTE(0) : a;
    case UnaryFn_relu6: return below_zero(a) ? COMPUTE(0) : a > COMPUTE(6) ? COMPUTE(6) : a;
    case UnaryFn_bit_not: return ~a;
  }
  return a; // the roundings
}

COMPUTE int_binary(uint fn, COMPUTE a, COMPUTE b) {
  const bool in_range = !below_zero(b) && b < COMPUTE(BITS);
  const uint by = in_range ? uint(b) : 0u;
  switch (fn) {
    case BinaryFn_add: return a + b;
    case BinaryFn_sub: return a - b;
    case BinaryFn_mul: return a * b;
    case BinaryFn_div: return int_div(a, b);
    case BinaryFn_max: return a < b ? b : a;
    case BinaryFn_min: return b < a ? b : a;
    case BinaryFn_pow: return int_pow(a, b);
    case BinaryFn_mod: return int_mod(a, b);
    case BinaryFn_floor_div: return int_div(a, b) - (steps_down(int_mod(a, b), b) ? COMPUTE(1) : COMPUTE(0));
    case BinaryFn_floor_mod: return int_mod(a, b) + (steps_down(int_mod(a, b), b) ? b : COMPUTE(0));
    case BinaryFn_bit_and: return a & b;
    case BinaryFn_bit_or: return a | b;
    case BinaryFn_bit_xor: return a ^ b;
    case BinaryFn_shl: return in_range ? a << by : COMPUTE(0);
    case BinaryFn_shr: return in_range ? a >> by : below_zero(a) ? COMPUTE(0) - COMPUTE(1) : COMPUTE(0);
  }
  return a;
}

#endif
