// Reduce of integers of 64 bits.
#include "../core/rlx_begin.h"

#include "reduce_int.h"

namespace rlx {
namespace reduce {

void reduce_int64(const Call &c, Range r) {
  if (c.in(0).dtype == RLX_I64) return Driver<Integers<int64_t, uint64_t>>::run(c, r);
  Driver<Integers<uint64_t, uint64_t>>::run(c, r);
}

}  // namespace reduce
}  // namespace rlx
