// Depthwise rows of kernels of 5 for any machine. See depth_body.h.
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

extern const DepthTable depth5_generic = depth_table<5>();

}  // namespace conv
}  // namespace rlx
