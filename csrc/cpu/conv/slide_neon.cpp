// Tiles that slide over planes for NEON. See slide_body.h.
#include "../core/rlx_begin.h"

#include "slide.h"

#if defined(RLX_NEON)
namespace rlx {
namespace conv {

namespace {
#include "../core/vec_neon.h"
#include "slide_body.h"
}  // namespace

extern const SlideTable slide_neon = slide_table();

}  // namespace conv
}  // namespace rlx
#endif
