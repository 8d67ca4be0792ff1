// Fft on any machine. See fft_body.h.
#include "../core/rlx_begin.h"

#include "fft.h"

namespace rlx {
namespace fft {
namespace {
constexpr int VECTOR = 16;
#include "fft_body.h"
}  // namespace

void fft_f32_generic(const Call &c, Range) { fft_f32(c); }
void fft_f64_generic(const Call &c, Range) { fft_f64(c); }

}  // namespace fft
}  // namespace rlx
