// What a tile of f32 does to its sums in registers, before they are stored: bias, residual and the functions that cost a few instructions. Other functions
// run over what was stored: see ending.h.
#pragma once
#include <cstdint>

namespace rlx {
namespace conv {

enum FinishFn : int32_t { kFinishNone, kFinishRelu, kFinishRelu6, kFinishHardSwish };

struct Finish {
  const float *bias;      // of the first channel of the tile; null where there is none
  const float *residual;  // of its first sum, laid out as the result is; null where there is none
  int32_t fn;
};

}  // namespace conv
}  // namespace rlx
