// Scaled rows of a product of codes for SSE2 or what every machine has. See ending_body.h.
#include "../core/rlx_begin.h"

#include "ending.h"

namespace rlx {
namespace matmul {

namespace {
#include "../core/vec_generic.h"
#include "ending_body.h"
}  // namespace

extern const ScaleRow scale_row_generic = scale_row;

}  // namespace matmul
}  // namespace rlx
