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
};

// Not present for the other kinds.
Ending ending_of(const Call &c, int isa);

// sums = act((sums + bias) + residual) for n sums of result channel o; element `at` of the result is the first.
void end_sums(const Ending &e, const Form &form, float *sums, int64_t n, int64_t o, int64_t at);
void end_row_f64(const Ending &e, double *sums, int64_t n, int64_t o, int64_t at);

}  // namespace conv
}  // namespace rlx
