// Random numbers: how work is cut, and the parts that need no vectors.
#include "../core/rlx_begin.h"

#include "rng.h"

namespace rlx {
namespace rng {
namespace {

using elementwise::f64_bits;
using elementwise::f64_of_bits;

// ln((k + 1) 2^-53) for 0 <= k < 2^53, without cancellation near 1.
double log_of_draw(uint64_t k) {
  const double one = 9007199254740992.0, v = double(k) + 1;
  return v > one / 2 ? ::log1p(-(one - v) / one) : ::log(v / one);
}

// cos and sin of k 2^-53 turns: the nearest quarter turn is taken off exactly.
void turn(uint64_t k, double *cos, double *sin) {
  const uint64_t quarter = 1ull << 51, q = (k + quarter / 2) / quarter;
  const double a = 6.283185307179586476925 * (double(int64_t(k - q * quarter)) / 9007199254740992.0), s = ::sin(a), c = ::cos(a);
  switch (q & 3) {
    case 0: *cos = c, *sin = s; break;
    case 1: *cos = -s, *sin = c; break;
    case 2: *cos = -c, *sin = -s; break;
    default: *cos = s, *sin = -c; break;
  }
}

uint64_t draw53(const uint32_t *w) { return (uint64_t(w[1]) << 32 | w[0]) >> 11; }

}  // namespace

Split rng_split(const Call &c) {
  const int64_t n = unit_elements(c);
  return {(c.out(0).count + n - 1) / n, 64};
}

double round_to(uint32_t dtype, double v) {
  switch (dtype) {
    case RLX_F64: return v;
    case RLX_F16: return elementwise::f64_from_f16(elementwise::f16_from_f64(v));
    case RLX_BF16: return elementwise::f64_from_bf16(elementwise::bf16_from_f64(v));
    default: return double(float(v));
  }
}

double value_below(uint32_t dtype, double v) {
  if (dtype == RLX_F64) return ::nextafter(v, -double(INFINITY));
  if (dtype == RLX_F32) return double(::nextafterf(float(v), -float(INFINITY)));
  uint16_t h = dtype == RLX_F16 ? elementwise::f16_from_f64(v) : elementwise::bf16_from_f64(v);
  h = (h & 0x7fff) == 0 ? 0x8001 : (h >> 15) != 0 ? uint16_t(h + 1) : uint16_t(h - 1);
  return dtype == RLX_F16 ? elementwise::f64_from_f16(h) : elementwise::f64_from_bf16(h);
}

void normal_f64_unit(const uint32_t *words, double *z) {
  for (int i = 0; i < WORDS / 2; i += 2, words += 4) {
    const double r = ::sqrt(-2 * log_of_draw(draw53(words)));
    double cos, sin;
    turn(draw53(words + 2), &cos, &sin);
    z[i] = r * cos, z[i + 1] = r * sin;
  }
}

}  // namespace rng
}  // namespace rlx
