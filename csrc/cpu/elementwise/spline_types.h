// spline_types.h: what spline.cpp gives to the loops of an instruction set.
#pragma once
#include "elementwise.h"
#include "convert.h"

namespace rlx {
namespace elementwise {

constexpr int64_t SPLINE_LANES = 16;  // of the widest vector: pieces of work do not depend on the instruction set

struct Spline {
  const void *x = nullptr, *dy = nullptr;
  void *y = nullptr;
  const float *centers = nullptr, *table = nullptr;  // table: bumps rows of pitch coefficients
  int64_t channels = 0, rows = 0, bumps = 0, pitch = 0, vector = SPLINE_LANES;
  double step = 0, low = 0;  // u = (x - (low + g / step)) * step
};

typedef void (*SplineLoop)(const Spline &s, int64_t begin, int64_t end);

// For f32, f16, bf16. forward and slope: units are elements. coeff: units are SPLINE_LANES channels.
struct SplineLoops {
  SplineLoop forward[3], slope[3], coeff[3];
};
extern const SplineLoops splines_generic;
#if defined(RLX_X86)
extern const SplineLoops splines_avx2, splines_avx512;
#elif defined(RLX_NEON)
extern const SplineLoops splines_neon;
#endif

}  // namespace elementwise
}  // namespace rlx
