// number.h: the bits of a number attribute in a dtype.
#pragma once
#include "../core/rlx_begin.h"
#include "../core/kernel.h"
#include "../elementwise/convert.h"

namespace rlx {
namespace shape {

// n cast to dtype, in the first bytes of out: floats round once from f64, integers truncate and keep the low bits, bool is n != 0. An
// absent number is 0.
inline void number_as(const Number &n, uint32_t dtype, void *out) {
  namespace e = elementwise;
  const double f = n.kind == 1 ? double(int64_t(n.bits)) : n.kind == 2 ? double(n.bits) : n.kind == 3 ? e::f64_of_bits(n.bits) : 0.0;
  uint64_t bits = 0;
  const float single = float(f);
  switch (dtype) {
    case RLX_BOOL: bits = f != 0; break;
    case RLX_F16: bits = e::f16_from_f64(f); break;
    case RLX_BF16: bits = e::bf16_from_f64(f); break;
    case RLX_F64: bits = e::f64_bits(f); break;
    case RLX_F32: case RLX_C64: std::memcpy(&bits, &single, 4); break;  // the imaginary part is 0
    case RLX_F8E4M3: bits = e::f8e4m3_from_f64(f, true); break;
    case RLX_F8E5M2: bits = e::f8e5m2_from_f64(f, true); break;
    case RLX_F4E2M1: bits = e::f4e2m1_from_f64(f); break;
    case RLX_E8M0: bits = e::e8m0_from_f64(f); break;
    default:
      if (n.kind != 3) bits = n.bits;
      else if (f >= 0x1p63 && f < 0x1p64 && f == std::trunc(f)) bits = uint64_t(f);
      else bits = uint64_t(e::int_from_f64(f < 0x1.fffffffffffffp62 || f != f ? f : 0x1.fffffffffffffp62, 64, true));
      break;
  }
  std::memcpy(out, &bits, rlx_dtype_sizes[dtype]);  // little-endian: the low bytes come first
}

}  // namespace shape
}  // namespace rlx
