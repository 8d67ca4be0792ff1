// Packing and the depthwise row of convolutions for any machine. See conv_body.h.
#include "../core/rlx_begin.h"

#include "conv.h"

namespace rlx {
namespace conv {

namespace {
constexpr bool FUSED = false;
#include "../core/vec_generic.h"
#include "conv_body.h"
}  // namespace

extern const ConvSet conv_generic = {&matmul::kTilesF32Generic, form<F32>(), form<F16>(), form<BF16>(), depth_row};

}  // namespace conv
}  // namespace rlx
