// Packing and depthwise sums of convolutions for AVX2. See conv_body.h.
#include "../core/rlx_begin.h"

#include "conv.h"

#if defined(RLX_X86)
namespace rlx {
namespace conv {

RLX_TARGET_AVX2_BEGIN
namespace {
#include "../core/vec_avx2.h"
#include "../reduce/forms.h"
#include "step.h"
#include "span_avx2.h"
#include "finish_body.h"
#include "conv_body.h"
#include "tile_body.h"
#include "panel_body.h"
#include "shallow_body.h"
#include "winograd_body.h"
}  // namespace
RLX_TARGET_END

extern const ConvSet conv_avx2 = {form<f32_form>(), form<f16_form>(), form<bf16_form>(), depth_sums, &depth3_avx2, &depth5_avx2, tile_tables(), channel_tiles(), strip_set(), winograd_tables()};

}  // namespace conv
}  // namespace rlx
#endif
