// Reduce of integers of 8 and 16 bits; bool, whose bytes are 0 and 1, is u8.
#include "../core/rlx_begin.h"

#include "reduce_int.h"

namespace rlx {
namespace reduce {

void reduce_int_narrow(const Call &c, Range r) {
  switch (c.in(0).dtype) {
    case RLX_I8: return Driver<Integers<int8_t, uint8_t>>::run(c, r);
    case RLX_I16: return Driver<Integers<int16_t, uint16_t>>::run(c, r);
    case RLX_U16: return Driver<Integers<uint16_t, uint16_t>>::run(c, r);
    default: return Driver<Integers<uint8_t, uint8_t>>::run(c, r);
  }
}

}  // namespace reduce
}  // namespace rlx
