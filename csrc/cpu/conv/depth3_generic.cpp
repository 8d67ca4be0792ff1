// Depthwise rows of kernels of 3 for any machine. See depth_body.h.
#include "../core/rlx_begin.h"

#include "depth.h"

namespace rlx {
namespace conv {

namespace {
#include "../core/vec_generic.h"
#include "span.h"
#include "finish_body.h"
#include "depth_body.h"
}  // namespace

extern const DepthTable depth3_generic = depth_table<3>();

}  // namespace conv
}  // namespace rlx
