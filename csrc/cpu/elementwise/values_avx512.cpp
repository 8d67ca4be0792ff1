// Functions of f32, 16 lanes. See loops.h.
#include "../core/rlx_begin.h"

#include "elementwise.h"

#if defined(RLX_X86)
namespace rlx {
namespace elementwise {

RLX_TARGET_AVX512_BEGIN
namespace {
#include "../core/vec_avx512.h"
#include "../core/vec_math.h"
#include "../core/scalar_gen.h"
#include "loops.h"
#include "forms.h"
#include "values.h"
#include "moves.h"
}  // namespace

RLX_TARGET_END

Loop backward_avx512(int fn);  // gradients_avx512.cpp

extern const Lanes lanes_avx512 = {
    unary_of, backward_avx512, binary_of, compare_of, where_of, cast_of,
    {{half_loop<f16_form, 1, false>, half_loop<f16_form, 2, false>}, {half_loop<bf16_form, 1, false>, half_loop<bf16_form, 2, false>}},
    {{half_loop<f16_form, 1, true>, half_loop<f16_form, 2, true>}, {half_loop<bf16_form, 1, true>, half_loop<bf16_form, 2, true>}},
    fma_loop, unary_loop<clamp_to>, backward_loop<relu_gradient_of>, relu_backward_half, chain_loop, repeat_rows};

}  // namespace elementwise
}  // namespace rlx

#endif
