// DequantMatMul, on any machine. See packed_body.h.
#include "../core/rlx_begin.h"

#include "code_books_gen.h"
#include "packed.h"

namespace rlx {
namespace quant {
namespace {
#include "../core/vec_generic.h"
#include "../reduce/forms.h"
#include "../conv/step.h"
template <class Code> RLX_FN vf codes_at(const Code *w) {
  int32_t codes[LANES];
  for (int i = 0; i < LANES; i++) codes[i] = w[i];
  return to_f(load_i(codes));
}
typedef uint8_t u8x16 __attribute__((vector_size(16)));
float half_at(const uint8_t *p) { return float(elementwise::f64_from_f16(uint16_t(p[0] | p[1] << 8))); }
RLX_FN u8x16 pick16(u8x16 table, u8x16 at) {
  u8x16 v;
  for (int i = 0; i < 16; i++) v[i] = table[at[i]];
  return v;
}
#include "codes_body.h"
#include "rows_body.h"
RowForm form_of(int64_t scheme) { return form_of_rows(scheme); }
#include "packed_body.h"
}  // namespace

void dequant_matmul_generic(const Call &c, Range) { dequant_matmul(c); }
void dequant_matmul_region_generic(const Call &c, Range) { dequant_matmul_region(c); }

}  // namespace quant
}  // namespace rlx
