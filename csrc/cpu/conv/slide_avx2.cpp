// Tiles that slide over planes for AVX2. See slide_body.h.
#include "../core/rlx_begin.h"

#include "slide.h"

#if defined(RLX_X86)
namespace rlx {
namespace conv {

RLX_TARGET_AVX2_BEGIN
namespace {
#include "../core/vec_avx2.h"
#include "slide_body.h"
}  // namespace
RLX_TARGET_END

extern const SlideTable slide_avx2 = slide_table();

}  // namespace conv
}  // namespace rlx
#endif
