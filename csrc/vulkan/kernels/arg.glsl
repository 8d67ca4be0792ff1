// arg.glsl: ArgMax and ArgMin. The includer defines LEAST and the numbers of two attributes, AXIS and LAST. Elements are compared
// as unsigned keys in their order, NaN above all; ArgMin turns the order of the others around. The keys of 64-bit numbers are two words, so
// that no variant needs more of a device than memory access.
#include "types.glsl"
#include "tensor.glsl"
#include "axes.glsl"
#include "reduce.glsl"

layout(std430, set = 0, binding = BIND_TENSORS) writeonly buffer Y { uint y[]; }; // i32 or f32
layout(std430, set = 0, binding = BIND_TENSORS) writeonly buffer Long { uvec2 y64[]; };
layout(std430, set = 0, binding = BIND_TENSORS + 1) readonly buffer X { STORE x[]; };

layout(constant_id = S_ATTR + LAST) const uint SELECT_LAST = 0;
layout(constant_id = S_OUT_DTYPE) const uint OUT = RLX_I64;

#define SHORT 32 // elements of a line that one invocation does at once

#if defined(VARIANT_size8)
#include "wide.glsl"
#define KEY uvec2
layout(constant_id = S_IN_DTYPE) const uint IN = RLX_I64;
bool above(uvec2 a, uvec2 b) { return less64(b, a); }
#else
#define KEY uint
bool above(uint a, uint b) { return a > b; }
#endif
#define NAN_KEY KEY(0xffffffffu)

// The greatest key so far and where it stands. 0xffffffff: none yet.
struct Best { KEY key; uint at; };

Best better(Best a, Best b) {
  if (b.at == 0xffffffffu) return a;
  if (a.at == 0xffffffffu) return b;
  if (a.key == b.key) return (a.at < b.at) == (SELECT_LAST == 0) ? a : b;
  return above(a.key, b.key) ? a : b;
}

#if defined(VARIANT_size8)
uvec2 key_of(uvec2 v) {
  const bool minus = (v.y & 0x80000000u) != 0;
  if (IN == RLX_F64) {
    const uint magnitude = v.y & 0x7fffffffu;
    if (magnitude > 0x7ff00000u || (magnitude == 0x7ff00000u && v.x != 0)) return NAN_KEY;
    if ((magnitude | v.x) == 0) v = uvec2(0);
    else if (minus) v = ~v ^ uvec2(0, 0x80000000u);
  }
  if (IN != RLX_U64) v.y ^= 0x80000000u;
  return LEAST ? ~v : v;
}
#elif defined(IS_FLOAT)
uint key_of(STORE s) {
  uint v = floatBitsToUint(load(s));
  const uint magnitude = v & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return NAN_KEY;
  v = magnitude == 0 ? 0x80000000u : (v & 0x80000000u) != 0 ? ~v : v | 0x80000000u;
  return LEAST ? ~v : v;
}
#else
uint key_of(STORE s) {
  uint v = uint(load(s));
#ifdef IS_SIGNED
  v ^= 0x80000000u;
#endif
  return LEAST ? ~v : v;
}
#endif

GROUP_JOIN(Best, group_best, better)

Best best_of(uint start, uint n, int x_step, uint first, uint step_) {
  Best b = Best(KEY(0), 0xffffffffu);
  uint k = first;
  for (; k < n; k += 4 * step_)
    [[unroll]] for (uint u = 0; u < 4; u++) {
      const uint at = k + u * step_;
      if (at < n) b = better(b, Best(key_of(x[int(start) + int(at) * x_step]), at));
    }
  expect_end(k, n);
  return b;
}

void put(uint line, uint at) {
  const uint to = offset_of(0) + line;
  if (OUT == RLX_I64) y64[to] = uvec2(at, 0);
  else y[to] = OUT == RLX_F32 ? floatBitsToUint(float(at)) : at;
}

void main() {
  const uint rank = rank_of(1), axis = axis_of(attr_int(AXIS), rank), n = dim(1, axis), me = gl_LocalInvocationID.x;
  const int x_step = stride(1, axis);
  const uint inner = extent(1, axis + 1, rank), lines = count_of(0);
  if (n <= SHORT || (inner > 1 && n / 4 <= lines)) {
    uint line = thread_unit();
    for (; line < lines; line += GROUPS * LOCAL) {
      if (stopped()) return;
      put(line, best_of(element_of(1, line_start(line, n, inner)), n, x_step, 0, 1).at);
    }
    expect_end(line, lines);
    return;
  }
  uint line = group_unit();
  for (; line < lines; line += GROUPS) {
    if (group_stopped()) return;
    const Best b = group_best(best_of(element_of(1, line_start(line, n, inner)), n, x_step, me, LOCAL));
    if (me == 0) put(line, b.at);
  }
  expect_end(line, lines);
}
