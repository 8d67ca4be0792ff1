// rng.h: what the files of RngUniform and RngNormal share with each other and with other kinds that draw. A unit of work is a batch of blocks
// of Philox4x32-10, so that all lanes of a vector run through the rounds together.
#pragma once
#include "../core/rlx_begin.h"
#include "../core/kernel.h"
#include "../elementwise/convert.h"

namespace rlx {
namespace rng {

constexpr int BLOCKS = 16, WORDS = 4 * BLOCKS;  // of a unit

struct Stream {
  uint32_t seed[2], key[2], step;
};

// The stream of a node whose operand number step, if it is there, counts its draws.
inline Stream stream_of(const Call &c, const Number &seed, uint64_t key, int step = 1) {
  const uint64_t s = seed.kind == 0 ? c.seed() : seed.kind == 3 ? uint64_t(rlx::elementwise::f64_of_bits(seed.bits)) : seed.bits;
  Stream r = {{uint32_t(s), uint32_t(s >> 32)}, {uint32_t(key), uint32_t(key >> 32)}, 0};
  if (c.has(step)) r.step = uint32_t(*c.in_ptr<int64_t>(step));
  return r;
}

// The words of unit u, in the order of the stream: for kinds that draw few.
void stream_words(const Stream &s, int64_t u, uint32_t *words);

// Elements that a unit makes: an f64 takes two words.
inline int64_t unit_elements(const Call &c) { return c.out(0).dtype == RLX_F64 ? WORDS / 2 : WORDS; }

inline uint16_t half_bits(uint32_t dtype, float v) {
  return dtype == RLX_F16 ? elementwise::f16_from_f64(double(v)) : elementwise::bf16_from_f64(double(v));
}
inline float half_value(uint32_t dtype, uint16_t h) {
  return float(dtype == RLX_F16 ? elementwise::f64_from_f16(h) : elementwise::f64_from_bf16(h));
}

// v, rounded once to a dtype.
double round_to(uint32_t dtype, double v);
// The largest value of the dtype below v.
double value_below(uint32_t dtype, double v);

// Normal numbers of f64 out of the words of one unit. Contract: libm's log, log1p, sin and cos, on angles below an eighth of a turn.
void normal_f64_unit(const uint32_t *words, double *z);

}  // namespace rng
}  // namespace rlx
