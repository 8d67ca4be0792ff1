// Gradients of functions of f32, and splines, 4 lanes of plain C++. See loops.h.
#include "../core/rlx_begin.h"

#include "spline_types.h"

namespace rlx {
namespace elementwise {

Loop backward_generic(int fn);

namespace {
#include "../core/vec_generic.h"
#include "../core/vec_math.h"
// The functions rest on one rounding (floor_div), which the fast fma here does not have.
#define fma fma_exact
#include "../core/scalar_gen.h"
#undef fma
#include "loops.h"
#include "forms.h"
#include "gradients.h"
#include "spline.h"
}  // namespace

Loop backward_generic(int fn) { return backward_of(fn); }

extern const SplineLoops splines_generic = {
    {spline_loop<f32_form, false>, spline_loop<f16_form, false>, spline_loop<bf16_form, false>},
    {spline_loop<f32_form, true>, spline_loop<f16_form, true>, spline_loop<bf16_form, true>},
    {spline_coeff_loop<f32_form>, spline_coeff_loop<f16_form>, spline_coeff_loop<bf16_form>}};

}  // namespace elementwise
}  // namespace rlx
