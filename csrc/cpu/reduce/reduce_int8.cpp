// Reduce of integers of 8 bits; bool, whose bytes are 0 and 1, is u8.
#include "../core/rlx_begin.h"

#include "reduce_int.h"

namespace rlx {
namespace reduce {

void reduce_int8(const Call &c, Range r) {
  if (c.in(0).dtype == RLX_I8) return Driver<Integers<int8_t, uint8_t>>::run(c, r);
  Driver<Integers<uint8_t, uint8_t>>::run(c, r);
}

}  // namespace reduce
}  // namespace rlx
