// DequantMatMul, on any machine. See packed_body.h.
#include "../core/rlx_begin.h"

#include "packed.h"

namespace rlx {
namespace quant {
namespace {
#include "../core/vec_generic.h"
#include "../reduce/forms.h"
#include "../conv/step.h"
#include "packed_body.h"
}  // namespace

void dequant_matmul_generic(const Call &c, Range) { dequant_matmul(c); }

}  // namespace quant
}  // namespace rlx
