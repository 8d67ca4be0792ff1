// wide.glsl: integers of 64 bits as two words, low and high, and numbers made of them, so that nothing here needs a feature of the device.
#ifndef RLX_WIDE_GLSL
#define RLX_WIDE_GLSL

uvec2 add64(uvec2 a, uvec2 b) { uint carry; const uint lo = uaddCarry(a.x, b.x, carry); return uvec2(lo, a.y + b.y + carry); }
uvec2 sub64(uvec2 a, uvec2 b) { uint borrow; const uint lo = usubBorrow(a.x, b.x, borrow); return uvec2(lo, a.y - b.y - borrow); }
bool less64(uvec2 a, uvec2 b) { return a.y != b.y ? a.y < b.y : a.x < b.x; }
uvec2 mul64(uvec2 a, uvec2 b) {
  uint hi, lo;
  umulExtended(a.x, b.x, hi, lo);
  return uvec2(lo, hi + a.x * b.y + a.y * b.x);
}
uvec2 shl64(uvec2 v, uint n) {
  if (n == 0u) return v;
  return n < 32u ? uvec2(v.x << n, v.y << n | v.x >> (32u - n)) : n < 64u ? uvec2(0u, v.x << (n - 32u)) : uvec2(0u);
}
uvec2 shr64(uvec2 v, uint n) {
  if (n == 0u) return v;
  return n < 32u ? uvec2(v.x >> n | v.y << (32u - n), v.y >> n) : n < 64u ? uvec2(v.y >> (n - 32u), 0u) : uvec2(0u);
}
// v >> n, with the last bit set if one was lost.
uvec2 shr64_sticky(uvec2 v, uint n) {
  const uvec2 q = shr64(v, n);
  return uvec2(q.x | (shl64(q, n) == v ? 0u : 1u), q.y);
}
int top_bit(uvec2 v) { return v.y != 0u ? 32 + findMSB(v.y) : findMSB(v.x); } // -1 for 0

// +-m * 2^e
struct wide { uvec2 m; int e; bool minus; };

// a*b + c of 24-bit mantissas, such that rounding it to as many bits or fewer gives what the exact sum gives: what falls off sets the
// last bit.
wide product_sum(uint ma, int ea, uint mb, int eb, bool minus, uint mc, int ec, bool minus_c) {
  uvec2 p, c = uvec2(mc, 0u);
  umulExtended(ma, mb, p.y, p.x);
  int ep = ea + eb;
  if (p == uvec2(0u)) return wide(c, ec, minus_c);
  if (mc == 0u) return wide(p, ep, minus);
  // both with their top bit at 61: room for the sum above, and a bit lost below cannot matter
  const int up = 61 - top_bit(p), uc = 61 - top_bit(c);
  p = shl64(p, uint(up));
  c = shl64(c, uint(uc));
  ep -= up;
  ec -= uc;
  const int e = max(ep, ec);
  p = shr64_sticky(p, uint(e - ep));
  c = shr64_sticky(c, uint(e - ec));
  if (minus == minus_c) return wide(add64(p, c), e, minus);
  return less64(p, c) ? wide(sub64(c, p), e, minus_c) : wide(sub64(p, c), e, minus);
}

// |x| rounded, half to even, to a code of `man` mantissa bits whose least normal number is 2^emin; as if exponents had no upper end.
uvec2 rounded(wide x, int man, int emin) {
  if (x.m == uvec2(0u)) return x.m;
  const int up = 63 - top_bit(x.m), e = x.e + 63 - up; // 1.xxx * 2^e
  const uint drop = uint(63 - man + clamp(emin - e, 0, 64));
  const uvec2 q = shr64_sticky(shl64(x.m, uint(up)), drop - 2u); // two bits more than the result, to round by
  uvec2 code = shr64(q, 2u);
  if ((q.x & 3u) == 3u || ((q.x & 3u) == 2u && (code.x & 1u) != 0u)) code = add64(code, uvec2(1u, 0u));
  return e < emin ? code : add64(code, shl64(uvec2(uint(e - emin), 0u), uint(man))); // the implicit bit counts one exponent
}

#endif
