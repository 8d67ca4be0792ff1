// Gradients of functions of f32, and splines, 4 lanes. See loops.h.
#include "../core/rlx_begin.h"

#include "spline_types.h"

#if defined(RLX_NEON)
namespace rlx {
namespace elementwise {

Loop backward_neon(int fn);

namespace {
#include "../core/vec_neon.h"
#include "../core/vec_math.h"
#include "../core/scalar_gen.h"
#include "loops.h"
#include "forms.h"
#include "gradients.h"
#include "spline.h"
}  // namespace

Loop backward_neon(int fn) { return backward_of(fn); }

extern const SplineLoops splines_neon = {
    {spline_loop<f32_form, false>, spline_loop<f16_form, false>, spline_loop<bf16_form, false>},
    {spline_loop<f32_form, true>, spline_loop<f16_form, true>, spline_loop<bf16_form, true>},
    {spline_coeff_loop<f32_form>, spline_coeff_loop<f16_form>, spline_coeff_loop<bf16_form>}};

}  // namespace elementwise
}  // namespace rlx

#endif
