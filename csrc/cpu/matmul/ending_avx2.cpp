// Scaled rows of a product of codes for AVX2. See ending_body.h.
#include "../core/rlx_begin.h"

#include "ending.h"

#if defined(RLX_X86)
namespace rlx {
namespace matmul {

RLX_TARGET_AVX2_BEGIN
namespace {
#include "../core/vec_avx2.h"
#include "ending_body.h"
}  // namespace
RLX_TARGET_END

extern const ScaleRow scale_row_avx2 = scale_row;

}  // namespace matmul
}  // namespace rlx
#endif
