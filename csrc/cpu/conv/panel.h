// A product of a packed panel of result channels and some rows of windows: channels by result positions, with positions in lanes. See conv.cpp.
#pragma once
#include "finish.h"

namespace rlx {
namespace conv {

constexpr int kMostChannels = 14;  // of a tile

// y[i][j] = (load ? y[i][j] : +0) + sum over k of w[k][i] * x[k][j] for j < n, k ascending in one accumulator. Strides count floats. Rows of x are as many
// whole vectors long as n takes.
struct ChannelTile {
  const float *w, *x;
  int64_t x_rs;
  float *y;
  int64_t y_rs;
  int64_t k;
  int32_t n;
  bool load, last;    // last: these are all of k, and the sums are finished
  Finish finish;
  const char *ahead;  // fetched meanwhile, a line for each k
  int64_t ahead_step;
};

struct ChannelTiles {
  int channels, columns;  // of a tile at most
  void (*run[2][kMostChannels + 1])(const ChannelTile &);  // [vectors - 1][channels]
};

}  // namespace conv
}  // namespace rlx
