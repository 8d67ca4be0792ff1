// Depthwise rows of kernels of 3 for NEON. See depth_body.h.
#include "../core/rlx_begin.h"

#include "depth.h"

#if defined(RLX_NEON)
namespace rlx {
namespace conv {

namespace {
#include "../core/vec_neon.h"
#include "span.h"
#include "finish_body.h"
#include "depth_body.h"
}  // namespace

extern const DepthTable depth3_neon = depth_table<3>();

}  // namespace conv
}  // namespace rlx
#endif
