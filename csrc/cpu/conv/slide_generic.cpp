// Tiles that slide over planes for any machine. See slide_body.h.
#include "../core/rlx_begin.h"

#include "slide.h"

namespace rlx {
namespace conv {

namespace {
#include "../core/vec_generic.h"
#include "slide_body.h"
}  // namespace

extern const SlideTable slide_generic = slide_table();

}  // namespace conv
}  // namespace rlx
