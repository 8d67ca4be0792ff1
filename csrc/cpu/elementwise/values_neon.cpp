// Functions of f32, 4 lanes. See loops.h.
#include "../core/rlx_begin.h"

#include "elementwise.h"

#if defined(RLX_NEON)
namespace rlx {
namespace elementwise {

namespace {
#include "../core/vec_neon.h"
#include "../core/vec_math.h"
#include "../core/scalar_gen.h"
#include "loops.h"
#include "forms.h"
#include "values.h"
#include "moves.h"
}  // namespace

Loop backward_neon(int fn);  // gradients_neon.cpp

extern const Lanes lanes_neon = {
    unary_of, backward_neon, binary_of, compare_of, where_of, cast_of,
    {{half_loop<f16_form, 1, false>, half_loop<f16_form, 2, false>}, {half_loop<bf16_form, 1, false>, half_loop<bf16_form, 2, false>}},
    {{half_loop<f16_form, 1, true>, half_loop<f16_form, 2, true>}, {half_loop<bf16_form, 1, true>, half_loop<bf16_form, 2, true>}},
    fma_loop, unary_loop<clamp_to>, backward_loop<relu_gradient_of>, relu_backward_half, chain_loop, repeat_rows};

}  // namespace elementwise
}  // namespace rlx

#endif
