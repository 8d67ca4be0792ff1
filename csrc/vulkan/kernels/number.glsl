// number.glsl: a number attribute cast to a dtype, in 32-bit words, so that no dtype needs a feature of the device. Include after types.glsl
// and tensor.glsl.
#ifndef RLX_NUMBER_GLSL
#define RLX_NUMBER_GLSL

uvec2 shifted_left(uvec2 v, uint n) {
  if (n == 0u) return v;
  return n < 32u ? uvec2(v.x << n, v.y << n | v.x >> (32u - n)) : uvec2(0u, v.x << (n - 32u));
}

uvec2 shifted_right(uvec2 v, uint n) {
  if (n == 0u) return v;
  return n < 32u ? uvec2(v.x >> n | v.y << (32u - n), v.y >> n) : uvec2(v.y >> (n - 32u), 0u);
}

uvec2 negated(uvec2 v) { return uvec2(0u - v.x, ~v.y + (v.x == 0u ? 1u : 0u)); }

// The f64 nearest to an integer.
uvec2 double_of(uvec2 v, bool has_sign) {
  const bool minus = has_sign && v.y >> 31 != 0u;
  if (minus) v = negated(v);
  if (v == uvec2(0u)) return v;
  const uint top = uint(v.y != 0u ? 32 + findMSB(v.y) : findMSB(v.x));
  v = shifted_left(v, 63u - top); // one bit, 52 of the result, 11 to round
  const uint rest = v.x & 0x7ffu;
  v = shifted_right(v, 11u);
  v.y = (v.y & 0xfffffu) | (1023u + top) << 20;
  if (rest > 0x400u || (rest == 0x400u && (v.x & 1u) != 0u)) {
    v.x++;
    if (v.x == 0u) v.y++;
  }
  return uvec2(v.x, v.y | (minus ? 0x80000000u : 0u));
}

// The integer part of an f64 below 2^64.
uvec2 integer_of(uvec2 v) {
  const int e = int((v.y >> 20) & 0x7ffu) - 1023;
  if (e < 0 || e > 63) return uvec2(0u);
  uvec2 m = uvec2(v.x, (v.y & 0xfffffu) | 0x100000u);
  m = e <= 52 ? shifted_right(m, uint(52 - e)) : shifted_left(m, uint(e - 52));
  return v.y >> 31 != 0u ? negated(m) : m;
}

// An f64 as f32, inexact ones with the last bit set: a shorter format then rounds as if from the f64.
float single_to_odd(uvec2 v) {
  const uint s = v.y & 0x80000000u;
  int e = int((v.y >> 20) & 0x7ffu) - 1023;
  uint m = 0x800000u | (v.y & 0xfffffu) << 3 | v.x >> 29;
  bool inexact = (v.x & 0x1fffffffu) != 0u;
  if ((v.y & 0x7fffffffu | v.x) == 0u) return uintBitsToFloat(s);
  if (e == 1024) return uintBitsToFloat(s | ((m & 0x7fffffu) != 0u || inexact ? 0x7fc00000u : 0x7f800000u));
  if (e > 127) return uintBitsToFloat(s | 0x7f7fffffu);
  if (e < -126) {
    const uint n = min(uint(-126 - e), 25u);
    inexact = inexact || (m & ((1u << n) - 1u)) != 0u;
    m >>= n;
    e = -127;
  }
  return uintBitsToFloat(s | uint(e + 127) << 23 | (m & 0x7fffffu) | (inexact ? 1u : 0u));
}

// The bits of number attribute a in a dtype; an absent number is 0.
uvec2 number_bits(uint a, uint dtype) {
  const uint kind = attr_word(a, 0);
  const uvec2 v = uvec2(attr_word(a, 1), attr_word(a, 2));
  const uvec2 f = kind == 3u ? v : double_of(v, kind == 1u);
  if (kind == 0u) return uvec2(0u);
  switch (dtype) {
    case RLX_BOOL: return uvec2((f.y & 0x7fffffffu | f.x) != 0u ? 1u : 0u, 0u);
    case RLX_F16: return uvec2(f16_store(single_to_odd(f)), 0u);
    case RLX_BF16: return uvec2(bf16_store(single_to_odd(f)), 0u);
    case RLX_F32: case RLX_C64: return uvec2(attr_word(a, 3), 0u);
    case RLX_F64: return f;
    default: return kind == 3u ? integer_of(v) : v;
  }
}

#ifdef VARIANT_size8
#define OF_BITS(bits) (bits)
#else
#define OF_BITS(bits) STORE((bits).x)
#endif

#endif
