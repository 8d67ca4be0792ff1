// Channels laid out so that every kernel position of a window reads consecutive elements: result (oh, ow) of a block of results, pitch
// floats a row, finds what position t sees at offset[t] + oh*pitch + ow. So rows of results run on into each other, whatever their length;
// what lies between them is computed too, and dropped. Every position that falls between others by the stride has a plane of its own.
#pragma once
#include "window.h"

namespace rlx {
namespace conv {

struct Plane {
  int64_t tile, tiles;         // results of a row that are in a block; blocks beside each other
  int64_t block, blocks;       // rows of results in a block; blocks below each other
  int64_t slots[3], extra[3];  // axes 1 and 2: planes, and how much further kernel positions reach than the first
  int64_t pitch, floats;       // of a plane
  int64_t total, sums;         // floats of all planes and of a block of results, with what whole vectors touch behind them
  bool fits;                   // otherwise the kernel reaches too far, and the last two lines are not filled in
};

constexpr int64_t kPlaneFloats = 8192;  // of all planes, where results have enough rows: 32 KB
constexpr int64_t kTile = 2048;
constexpr int64_t kReach = 1 << 20;     // elements along an axis, and kernel positions
constexpr int64_t kMostFloats = 1 << 22;
constexpr int64_t kBehind = 256;        // floats

// Where kernel position k of an axis lies: in which plane, and how far behind the first.
inline void place(const Window &w, int axis, int64_t k, int64_t *slot, int64_t *offset) {
  const int64_t at = k * w.dilation[axis], s = w.stride[axis];
  *slot = s <= w.kernel[axis] ? at % s : k;
  *offset = s <= w.kernel[axis] ? at / s : 0;
}
// The first element of a plane, seen from where the window starts.
inline int64_t start(const Window &w, int axis, int64_t slot) { return w.stride[axis] <= w.kernel[axis] ? slot : slot * w.dilation[axis]; }

inline Plane plane_of(const Window &w, int64_t floats = kPlaneFloats) {
  Plane p = {};
  for (int a = 0; a < 3; a++)
    if (w.kernel[a] > kReach || (w.kernel[a] - 1) * w.dilation[a] > kReach) return p;
  if (w.kernel[0] * w.kernel[1] > kReach || w.kernel[0] * w.kernel[1] * w.kernel[2] > kReach) return p;
  p.tiles = w.out[2] > 0 ? (w.out[2] + kTile - 1) / kTile : 0, p.tile = w.out[2] < kTile ? w.out[2] : kTile;
  int64_t planes = w.kernel[0];
  for (int a = 1; a < 3; a++) {
    int64_t slot;
    p.slots[a] = w.stride[a] <= w.kernel[a] ? w.stride[a] : w.kernel[a];
    place(w, a, w.kernel[a] - 1, &slot, &p.extra[a]);
    planes *= p.slots[a];
  }
  p.pitch = p.tile + p.extra[2];
  const int64_t fit = floats / (planes * (p.pitch > 0 ? p.pitch : 1)) - p.extra[1], least = 2 * p.extra[1] + 1;
  p.block = fit > least ? fit : least;
  if (p.block > w.out[1]) p.block = w.out[1];
  p.blocks = p.block > 0 ? (w.out[1] + p.block - 1) / p.block : 0;
  if (p.blocks > 0) p.block = (w.out[1] + p.blocks - 1) / p.blocks;  // even ones
  p.floats = (p.block + p.extra[1]) * p.pitch;
  p.fits = p.floats <= kMostFloats && planes * p.floats <= kMostFloats;
  p.total = planes * p.floats + kBehind, p.sums = p.block * p.pitch + kBehind;
  return p;
}

// Where kernel position t of the first result lies.
inline int64_t plane_offset(const Window &w, const Plane &p, int64_t t) {
  int64_t slot[3], at[3];
  place(w, 1, t / w.kernel[2] % w.kernel[1], &slot[1], &at[1]);
  place(w, 2, t % w.kernel[2], &slot[2], &at[2]);
  const int64_t plane = (t / (w.kernel[2] * w.kernel[1]) * p.slots[1] + slot[1]) * p.slots[2] + slot[2];
  return plane * p.floats + at[1] * p.pitch + at[2];
}
// offset[t] for every kernel position.
inline void plane_offsets(const Window &w, const Plane &p, int64_t *offset) {
  for (int64_t t = 0; t < w.taps; t++) offset[t] = plane_offset(w, p, t);
}

// The results of a unit of work: unit = ((channel * out[0] + od) * blocks + block) * tiles + tile.
struct Patch {
  int64_t channel, od, oh, ow, rows, cols;
};
inline Patch patch_of(const Window &w, const Plane &p, int64_t unit) {
  Patch a;
  a.ow = unit % p.tiles * p.tile, unit /= p.tiles;
  a.oh = unit % p.blocks * p.block, unit /= p.blocks;
  a.od = unit % w.out[0], a.channel = unit / w.out[0];
  a.rows = w.out[1] - a.oh < p.block ? w.out[1] - a.oh : p.block;
  a.cols = w.out[2] - a.ow < p.tile ? w.out[2] - a.ow : p.tile;
  return a;
}
inline int64_t patches(const Window &w, const Plane &p, int64_t channels) { return channels * w.out[0] * p.blocks * p.tiles; }

}  // namespace conv
}  // namespace rlx
