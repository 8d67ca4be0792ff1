// quant.h: what the files of Quantize and Dequantize share. A unit of work is a run of elements that have one scale, or whose scales lie
// beside each other.
#pragma once
#include "../core/rlx_begin.h"
#include "../core/kernel.h"
#include "../elementwise/convert.h"

namespace rlx {
namespace quant {

// How scales lie against x, seen as [outer, n, inner] around the axis.
struct Runs {
  int64_t count = 0, n = 1, inner = 1, block = 0, blocks = 1;
  enum { TENSOR, CHANNEL_ROW, CHANNEL, BLOCK_ROW, BLOCK } kind = TENSOR;  // _ROW: one scale for each element of the run
};

struct Run {
  int64_t at, length;  // elements of x
  int64_t scale;       // the first one
  bool vector;         // one scale for each element
};

Runs runs_of(const Call &c);

inline Run run_of(const Runs &r, int64_t u) {
  switch (r.kind) {
    case Runs::CHANNEL_ROW: return {u * r.n, r.n, 0, true};
    case Runs::CHANNEL: return {u * r.inner, r.inner, u % r.n, false};
    case Runs::BLOCK_ROW: return {u * r.inner, r.inner, (u / r.n * r.blocks + u % r.n / r.block) * r.inner, true};
    default: break;
  }
  const int64_t first = u % r.blocks * r.block, left = r.n - first;
  return {u / r.blocks * r.n + first, left < r.block ? left : r.block, u, false};
}

struct Ends {
  int32_t lo, hi;
};
// The range of a code dtype.
inline Ends ends_of(uint32_t dtype) {
  switch (dtype) {
    case RLX_I8: return {-128, 127};
    case RLX_U8: return {0, 255};
    case RLX_I16: return {-32768, 32767};
    default: return {0, 65535};
  }
}

// v to an integer, halves to even, NaN to 0, plus zero, clamped. Clamping first changes nothing, as the ends are whole, and leaves numbers
// so small that adding 1.5 2^23 rounds them.
RLX_FN int32_t to_code(float v, int32_t zero, Ends e) {
  const float lo = float(e.lo - zero), hi = float(e.hi - zero);
  v = v == v ? v : 0.0f;
  v = v < lo ? lo : v;
  v = v > hi ? hi : v;
  return int32_t((v + 12582912.0f) - 12582912.0f) + zero;
}

}  // namespace quant
}  // namespace rlx
