// Depthwise rows of kernels of 3 for AVX-512. See depth_body.h.
#include "../core/rlx_begin.h"

#include "depth.h"

#if defined(RLX_X86)
namespace rlx {
namespace conv {

RLX_TARGET_AVX512_BEGIN
namespace {
namespace half {
#include "../core/vec_avx2.h"
#include "span_avx2.h"
#include "finish_body.h"
#include "depth_body.h"
}  // namespace half
#define RLX_DEPTH_HALF
#include "../core/vec_avx512.h"
#include "span_avx512.h"
#include "finish_body.h"
#include "depth_body.h"
}  // namespace
RLX_TARGET_END

extern const DepthTable depth3_avx512 = depth_table<3>();

}  // namespace conv
}  // namespace rlx
#endif
