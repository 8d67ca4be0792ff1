// Strips of rows of x for convolutions of f32 with few channels and kernel positions. A strip holds the columns that a piece of a row of results sees, in
// a line for each phase: those that lie the stride apart. So every kernel position reads neighbours, and a row serves all rows of results that see it.
#pragma once
#include "panel.h"

namespace rlx {
namespace conv {

// The columns of a row of x, phase by phase: to[phase*pitch + i] is column left + phase + i*phases, 0 where there is none.
struct StripRow {
  const float *x;        // the row; null where it lies in the padding
  int64_t left, width;   // width: of x
  int64_t stride;        // 1 or 2
  int64_t phases;        // that are wanted
  const float *ahead;    // a row to fetch meanwhile, or null
  float *to;
  int64_t pitch;         // whole vectors
};

struct StripSet {
  void (*lay)(const StripRow &);
  // Tiles whose row k of x starts at x + offset[k]; nothing is loaded, and the sums are finished.
  void (*run[2][kMostChannels + 1])(const ChannelTile &, const int32_t *offset);  // [vectors - 1][channels]
};

}  // namespace conv
}  // namespace rlx
