// Fft for AVX-512. See fft_body.h.
#include "../core/rlx_begin.h"

#include "fft.h"

#if defined(RLX_X86)
namespace rlx {
namespace fft {

RLX_TARGET_AVX512_BEGIN
namespace {
constexpr int VECTOR = 64;
#include "fft_body.h"
}  // namespace

void fft_f32_avx512(const Call &c, Range) { fft_f32(c); }
void fft_f64_avx512(const Call &c, Range) { fft_f64(c); }

RLX_TARGET_END

}  // namespace fft
}  // namespace rlx

#endif
