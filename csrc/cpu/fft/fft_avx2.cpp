// Fft for AVX2. See fft_body.h.
#include "../core/rlx_begin.h"

#include "fft.h"

#if defined(RLX_X86)
namespace rlx {
namespace fft {

RLX_TARGET_AVX2_BEGIN
namespace {
constexpr int VECTOR = 32;
#include "fft_body.h"
}  // namespace

void fft_f32_avx2(const Call &c, Range) { fft_f32(c); }
void fft_f64_avx2(const Call &c, Range) { fft_f64(c); }

RLX_TARGET_END

}  // namespace fft
}  // namespace rlx

#endif
