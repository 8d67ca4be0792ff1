// Tiles that slide over planes for AVX-512. See slide_body.h.
#include "../core/rlx_begin.h"

#include "slide.h"

#if defined(RLX_X86)
namespace rlx {
namespace conv {

RLX_TARGET_AVX512_BEGIN
namespace {
#include "../core/vec_avx512.h"
#include "slide_body.h"
}  // namespace
RLX_TARGET_END

extern const SlideTable slide_avx512 = slide_table();

}  // namespace conv
}  // namespace rlx
#endif
