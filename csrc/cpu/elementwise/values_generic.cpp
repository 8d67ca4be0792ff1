// Functions of f32, 4 lanes of plain C++. See loops.h.
#include "../core/rlx_begin.h"

#include "elementwise.h"

namespace rlx {
namespace elementwise {

namespace {
#include "../core/vec_generic.h"
#include "../core/vec_math.h"
// The functions rest on one rounding (floor_div), which the fast fma here does not have.
#define fma fma_exact
#include "../core/scalar_gen.h"
#undef fma
#include "loops.h"
#include "forms.h"
#include "values.h"
#include "moves.h"
}  // namespace

Loop backward_generic(int fn);  // gradients_generic.cpp

extern const Lanes lanes_generic = {
    unary_of, backward_generic, binary_of, compare_of, where_of, cast_of,
    {{half_loop<f16_form, 1, false>, half_loop<f16_form, 2, false>}, {half_loop<bf16_form, 1, false>, half_loop<bf16_form, 2, false>}},
    {{half_loop<f16_form, 1, true>, half_loop<f16_form, 2, true>}, {half_loop<bf16_form, 1, true>, half_loop<bf16_form, 2, true>}},
    fma_loop, unary_loop<clamp_to>, backward_loop<relu_gradient_of>, relu_backward_half, chain_loop, repeat_rows};

}  // namespace elementwise
}  // namespace rlx
