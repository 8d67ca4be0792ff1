// A convolution as tiles of result positions by result channels, with channels in lanes: kernel positions that lie in the padding are left
// out, and x is read where it lies. For f32 whose positions lie together; see tile.cpp.
#pragma once
#include "finish.h"
#include "window.h"

namespace rlx {
namespace conv {

constexpr int kMostPositions = 14;  // of a tile

// sums[p][o] += sum over k of x[offset[k] + p*step] * w[k][o], k ascending in one accumulator. Rows of w and sums are 2 vectors long.
struct PositionTile {
  const float *x;
  const int32_t *offset;
  const float *w;
  float *sums;
  int64_t k;
  bool load;          // otherwise sums start from 0
  const char *ahead;  // of w: fetched meanwhile, a line for each k
  int64_t ahead_step;
};

struct TileTables {
  int positions, lanes;
  // [step - 1][vectors of channels - 1][positions]
  void (*run[2][2][kMostPositions + 1])(const PositionTile &);
  // to[o*to_rs + p] = sums[p][o], finished, for p < n and o < outs; reads up to lanes - 1 rows of sums behind the last
  void (*turn)(const float *sums, int64_t n, int64_t outs, float *to, int64_t to_rs, const Finish &finish);
};

struct ConvSet;

// Whether a convolution is computed in tiles; what it needs; and a run.
bool tiles_fit(const Command &c, const Window &w, const TileTables &tables);
int32_t tiles_prepare(Prepare &prepare, const Window &w, const ConvSet &set);
void tiles_run(const Call &c, const Window &w, const ConvSet &set, int isa);

}  // namespace conv
}  // namespace rlx
