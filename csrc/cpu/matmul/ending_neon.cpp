// Scaled rows of a product of codes for NEON. See ending_body.h.
#include "../core/rlx_begin.h"

#include "ending.h"

#if defined(RLX_NEON)
namespace rlx {
namespace matmul {

namespace {
#include "../core/vec_neon.h"
#include "ending_body.h"
}  // namespace

extern const ScaleRow scale_row_neon = scale_row;

}  // namespace matmul
}  // namespace rlx
#endif
