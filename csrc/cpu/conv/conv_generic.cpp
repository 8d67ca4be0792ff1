// Packing and depthwise sums of convolutions for any machine. See conv_body.h.
#include "../core/rlx_begin.h"

#include "conv.h"

namespace rlx {
namespace conv {

namespace {
#include "../core/vec_generic.h"
#include "../reduce/forms.h"
#include "step.h"
#include "span.h"
#include "finish_body.h"
#include "conv_body.h"
#include "tile_body.h"
#include "panel_body.h"
#include "shallow_body.h"
#include "winograd_body.h"
}  // namespace

extern const ConvSet conv_generic = {form<f32_form>(), form<f16_form>(), form<bf16_form>(), depth_sums, &depth3_generic, &depth5_generic, tile_tables(), channel_tiles(), strip_set(), winograd_tables()};

}  // namespace conv
}  // namespace rlx
