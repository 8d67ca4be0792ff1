// What the ways to compute a convolution in tiles share: see tile.cpp and winograd.cpp.
#pragma once
#include "ending.h"
#include "tile.h"

namespace rlx {
namespace conv {

constexpr int64_t kMostWidth = 32;  // kernel positions of the last axis

struct Tiling {
  const Call *c;
  const TileTables *tables;
  Window w;
  int64_t depth, slice;
  int64_t rows, per_row;         // rows of results of an item; tiles in each
  int64_t block, blocks;         // tiles of a unit; units of an item
  int64_t panels, panel_floats;  // of w, of a group
  int64_t offsets, packed, slot; // floats of scratch: places of x, w when it is not constant, sums of a thread
  int64_t lo[kMostWidth], hi[kMostWidth];
  const int32_t *offset;
  const float *weights;
  bool winograd;                 // in quads instead: see winograd.cpp
  Ending ending;
};

// A tile of a unit: where its window starts in x, which may be in the padding, and which kernel positions of the outer axes see x.
struct Place {
  const float *x;
  int64_t at, n;  // its result positions of the row
  int64_t d0, d1, h0, h1;
  float *sums;
};

// The n result positions of a row from `at` on, of which od and oh are the outer axes; no sums yet.
Place place_at(const Tiling &t, int64_t item, int64_t g, int64_t od, int64_t oh, int64_t at, int64_t n);
// Depths [from, to) of one tile, in stretches that the same positions see. w is the panel; wide: both vectors of channels.
void run_tile(const Tiling &t, const Place &p, int64_t from, int64_t to, const float *w, bool wide, PositionTile *tile);
// Sums of n result positions that lie together, [position][2 vectors], as the results of outs channels from y on, finished.
void put_sums(const Tiling &t, const float *sums, int64_t n, int64_t outs, float *y, const Finish &finish);

}  // namespace conv
}  // namespace rlx
