// Reduce of integers of 16 bits.
#include "../core/rlx_begin.h"

#include "reduce_int.h"

namespace rlx {
namespace reduce {

void reduce_int16(const Call &c, Range r) {
  if (c.in(0).dtype == RLX_I16) return Driver<Integers<int16_t, uint16_t>>::run(c, r);
  Driver<Integers<uint16_t, uint16_t>>::run(c, r);
}

}  // namespace reduce
}  // namespace rlx
