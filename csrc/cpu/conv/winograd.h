// Convolutions of 3 x 3 kernels that move by 1 with 4 multiplications for each 9: F(2x2, 3x3) of Lavin and Gray, "Fast Algorithms for Convolutional Neural
// Networks" (2015). Two by two results see 4 x 4 elements d of a channel; with the kernel g they are A' [(G g G') o (B' d B)] A, summed over channels
// before A. See winograd.cpp.
#pragma once
#include "shallow.h"
#include "window.h"

namespace rlx {
namespace conv {

struct Tiling;

constexpr int64_t kEntries = 16;  // of a transformed kernel or window: 4 rows of 4

// Sums of quads of results that lie side by side: entry e of quad i is sums[e*plane + i*rs], rs being two vectors.
struct QuadRow {
  const float *sums;
  int64_t plane, quads;
  float *to[2];     // rows of results, [column][two vectors]; the second is null where there is none
  int64_t columns;  // 2*quads, or one less
  bool wide;        // both vectors
  int32_t *again;   // by quad: 1 if its results are not to be used, else 0
};

struct WinogradTables {
  void (*lay)(const StripRow &);
  // v[e*plane + i] = entry e of B' d B of quad i of a row, for i < n. Row k of the elements that it sees are two phases of `pitch` at strips + 2*k*pitch.
  // Touches up to `room` floats from v on.
  void (*windows)(const float *strips, int64_t pitch, float *v, int64_t plane, int64_t n, int64_t room);
  // u[e*plane + i] = entry e of G g G', for two vectors of result channels of each channel, i counting floats. Kernel position (row, column) is
  // (3*column + row)*tap floats behind w.
  void (*kernels)(const float *w, int64_t tap, int64_t channels, float *u, int64_t plane);
  // The results of a row of quads; whether all of them are to be used. Not so where a product is not finite, or where one of the four results is less than
  // 1/32 of the root of the sum of its products' squares in half of the channels of a vector: elements of very different size meet there, and the small
  // results would be the rounding of the large ones.
  bool (*results)(const QuadRow &);
};

// Whether tiles of a convolution are computed so, how, and the floats of scratch of a thread and of all of them.
bool winograd_fits(const Window &w, int lanes);
int64_t winograd_slot(const Window &w, int lanes, int threads);
int64_t winograd_offsets(const Window &w);
// offsets: as many as winograd_offsets says.
void winograd_run(const Tiling &t, const WinogradTables &tables, int32_t *offsets, float *slots);

}  // namespace conv
}  // namespace rlx
