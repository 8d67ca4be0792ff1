// Depthwise rows of kernels of 3 for AVX2. See depth_body.h.
#include "../core/rlx_begin.h"

#include "depth.h"

#if defined(RLX_X86)
namespace rlx {
namespace conv {

RLX_TARGET_AVX2_BEGIN
namespace {
#include "../core/vec_avx2.h"
#include "span_avx2.h"
#include "finish_body.h"
#include "depth_body.h"
}  // namespace
RLX_TARGET_END

extern const DepthTable depth3_avx2 = depth_table<3>();

}  // namespace conv
}  // namespace rlx
#endif
