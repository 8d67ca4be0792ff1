// Reduce, ArgMax and ArgMin of f32, f16 and bf16, 4 lanes. See reduce_body.h and arg_body.h.
#include "../core/rlx_begin.h"

#include "arg.h"
#include "lines.h"
#include "reduce.h"

#if defined(RLX_NEON)
namespace rlx {
namespace reduce {

namespace {
#include "../core/vec_neon.h"
#include "../core/vec_math.h"
#include "forms.h"
#include "reduce_body.h"
#include "arg_body.h"
}  // namespace

void reduce_f32_neon(const Call &c, Range r) { Driver<Floats<f32_form>>::run(c, r); }
void reduce_f16_neon(const Call &c, Range r) { Driver<Floats<f16_form>>::run(c, r); }
void reduce_bf16_neon(const Call &c, Range r) { Driver<Floats<bf16_form>>::run(c, r); }
void arg_f32_neon(const Call &c, Range r) { arg_floats<f32_form>(c, r); }
void arg_f16_neon(const Call &c, Range r) { arg_floats<f16_form>(c, r); }
void arg_bf16_neon(const Call &c, Range r) { arg_floats<bf16_form>(c, r); }

}  // namespace reduce
}  // namespace rlx

#endif
