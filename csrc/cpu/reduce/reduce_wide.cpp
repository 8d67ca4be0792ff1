// Reduce of integers of 32 and 64 bits.
#include "../core/rlx_begin.h"

#include "reduce_int.h"

namespace rlx {
namespace reduce {

void reduce_int_wide(const Call &c, Range r) {
  switch (c.in(0).dtype) {
    case RLX_I32: return Driver<Integers<int32_t, uint32_t>>::run(c, r);
    case RLX_I64: return Driver<Integers<int64_t, uint64_t>>::run(c, r);
    case RLX_U32: return Driver<Integers<uint32_t, uint32_t>>::run(c, r);
    default: return Driver<Integers<uint64_t, uint64_t>>::run(c, r);
  }
}

}  // namespace reduce
}  // namespace rlx
