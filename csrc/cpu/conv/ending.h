// What FusedConvBiasAct does to the sums of a convolution before they are rounded.
#pragma once
#include "../elementwise/elementwise.h"
#include "conv.h"

namespace rlx {
namespace conv {

struct Ending {
  bool present;
  const char *bias, *residual;  // null where absent; contiguous
  uint32_t dtype;
  elementwise::Loop act;        // null where there is none
  elementwise::Work work;
  int32_t fn;                   // a FinishFn: what tiles of f32 make of act
  bool swept;                   // they leave it, and it runs over what they stored
};

// Not present for the other kinds.
Ending ending_of(const Call &c, int isa);

// What tiles do with the sums of result channels o on, the first of which is element `at` of the result.
inline Finish finish_of(const Ending &e, int64_t o, int64_t at) {
  return {e.bias != nullptr ? reinterpret_cast<const float *>(e.bias) + o : nullptr,
          e.residual != nullptr ? reinterpret_cast<const float *>(e.residual) + at : nullptr, e.fn};
}
inline void sweep(const Ending &e, float *y, int64_t n) {
  const void *in[1] = {y};
  e.act(e.work, in, y, n);
}

// sums = act((sums + bias) + residual) for n sums of result channel o; element `at` of the result is the first.
void end_sums(const Ending &e, const Form &form, float *sums, int64_t n, int64_t o, int64_t at);
void end_row_f64(const Ending &e, double *sums, int64_t n, int64_t o, int64_t at);

}  // namespace conv
}  // namespace rlx
