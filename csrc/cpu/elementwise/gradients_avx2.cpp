// Gradients of functions of f32, 8 lanes. See loops.h.
#include "../core/rlx_begin.h"

#include "elementwise.h"

#if defined(RLX_X86)
namespace rlx {
namespace elementwise {

Loop backward_avx2(int fn);

RLX_TARGET_AVX2_BEGIN
namespace {
#include "../core/vec_avx2.h"
#include "../core/vec_math.h"
#include "../core/scalar_gen.h"
#include "loops.h"
#include "gradients.h"
}  // namespace

Loop backward_avx2(int fn) { return backward_of(fn); }

RLX_TARGET_END

}  // namespace elementwise
}  // namespace rlx

#endif
