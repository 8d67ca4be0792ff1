// index.glsl: an operand that holds indices: any integer dtype, or integers encoded as f32. Include after tensor.glsl and define
// INDEX_OPERAND, its number. It is read as 32-bit words, so that no dtype needs a feature of the device; values are 64 bits, low and high
// word.
#ifndef RLX_INDEX_GLSL
#define RLX_INDEX_GLSL
#include "ops_gen.glsl"
#include "wide.glsl"

layout(constant_id = S_IN_DTYPE + INDEX_OPERAND) const uint INDEX_DTYPE = 0;
layout(std430, set = 0, binding = BIND_TENSORS + 1 + INDEX_OPERAND) readonly buffer Indices { uint index_words[]; };

// The constraints that fail names, in the high word of its limit: no length needs more than 32 bits.
#define C_VALUES 4
#define C_RANGE 7
#define C_INTEGER 8

int narrow_word(uint at, uint size) { return int(index_words[at * size >> 2]) << (32 - 8 * size - 8 * (at * size & 3)) >> (32 - 8 * size); }

ivec2 extended(int v) { return ivec2(v, v >> 31); }

// The integer that an f32 holds; those beyond 64 bits become the largest or least one. False: it holds none.
bool float_integer(uint bits, out ivec2 v) {
  const uint e = (bits >> 23) & 0xffu, m = (bits & 0x7fffffu) | 0x800000u;
  v = ivec2(0);
  if ((bits & 0x7fffffffu) == 0u) return true;
  if (e < 127u || e == 255u || (e < 150u && (m & ((1u << (150u - e)) - 1u)) != 0u)) return false;
  const bool minus = bits >> 31 != 0u;
  uvec2 w = e < 150u ? uvec2(m >> (150u - e), 0u) : shl64(uvec2(m, 0u), e - 150u);
  if (e >= 190u) w = minus ? uvec2(0u, 0x80000000u) : uvec2(0xffffffffu, 0x7fffffffu);
  else if (minus) w = sub64(uvec2(0u), w);
  v = ivec2(w);
  return true;
}

// The value of the element that lies at `at`. False, after a call of fail: it is no integer.
bool index_value(uint at, out ivec2 v) {
  switch (INDEX_DTYPE) {
    case RLX_I8: v = extended(narrow_word(at, 1)); return true;
    case RLX_I16: v = extended(narrow_word(at, 2)); return true;
    case RLX_I32: v = extended(int(index_words[at])); return true;
    case RLX_U8: v = ivec2(narrow_word(at, 1) & 0xff, 0); return true;
    case RLX_U16: v = ivec2(narrow_word(at, 2) & 0xffff, 0); return true;
    case RLX_U32: v = ivec2(index_words[at], 0); return true;
    case RLX_F32:
      if (float_integer(index_words[at], v)) return true;
      fail(ivec2(index_words[at], 0), 0u, uint(C_INTEGER), BAD_FRACTION);
      return false;
    default: v = ivec2(index_words[2 * at], index_words[2 * at + 1]); return true;
  }
}

bool index_negative(ivec2 v) { return v.y < 0 && INDEX_DTYPE != RLX_U64; }

// The index that lies at `at`, along a length d: one below 0 counts from the end. False, after a call of fail: it is out of range.
bool index_within(uint at, uint d, out uint i) {
  ivec2 v;
  i = 0;
  if (!index_value(at, v)) return false;
  const uint low = uint(v.x);
  i = index_negative(v) ? low + d : low;
  if (v.y == 0 ? low < d : v.y == -1 && index_negative(v) && low >= 0u - d && d != 0u) return true;
  fail(v, uint(d), uint(C_RANGE), BAD_INDEX);
  return false;
}

#endif
