// Reduce of integers of 32 bits.
#include "../core/rlx_begin.h"

#include "reduce_int.h"

namespace rlx {
namespace reduce {

void reduce_int32(const Call &c, Range r) {
  if (c.in(0).dtype == RLX_I32) return Driver<Integers<int32_t, uint32_t>>::run(c, r);
  Driver<Integers<uint32_t, uint32_t>>::run(c, r);
}

}  // namespace reduce
}  // namespace rlx
