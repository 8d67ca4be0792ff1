// fft.h: what the files of Fft share. A line is transformed by Stockham's passes of radix 8, 4, 2, 3, 5 and other primes, on real and
// imaginary parts apart: as many lines at once as a vector has lanes, where there are as many. A long one is cut in two (Bailey's four
// steps), whose short transforms stand in the lanes; a length with a large prime factor is a convolution (Bluestein). Inverse transforms are
// forward ones with the parts exchanged, and even real ones have half the length. How a line is transformed depends on its length alone.
// Tables of roots are made in each run, out of two short ones in f64: that costs about n products.
#pragma once
#include "../core/rlx_begin.h"
#include "../core/kernel.h"
#include "../elementwise/convert.h"
#include "../reduce/lines.h"

namespace rlx {
namespace fft {

constexpr int64_t MAX_PRIME = 61;       // the largest radix; a greater prime factor makes a convolution
constexpr int MAX_PASSES = 64;
constexpr int64_t MOST_LANES = 16;      // of a vector
constexpr int64_t MOST_AT_ONCE = 2048;  // the longest line that stands in a lane: its vectors fit in the second level of cache

// Stockham's passes over n numbers.
struct Passes {
  int64_t n = 0;
  int count = 0, radix[MAX_PASSES] = {};
};

// What is transformed, and how.
struct Plan {
  int64_t n = 0;                // length of the transform
  int64_t have = 0, give = 0;   // entries of a line of the operand, and of the result
  int64_t length = 0;           // of the complex transform: n, or n/2 where pairs of real numbers make complex ones
  int64_t m = 0;                // of the transform by passes: length, or that of the convolution
  Passes whole;                 // of m, or, where it is split
  Passes first, second;         // of its two factors
  bool split = false, chirp = false, half = false, inverse = false, real_in = false, real_out = false, block = false;
  double scale = 1;
  Lines lines;
};

// Where tables and buffers stand in scratch, in numbers. Each is real parts and then imaginary parts; all start on 64 bytes.
struct Layout {
  int64_t first, second, turned, chirp, image, turns, slots, per_slot, total;
  int64_t width;  // numbers of a part of a buffer of a line
  int64_t lanes;  // where those of many lines stand in a slot
  int64_t wide;   // numbers of a part of one
};

Plan plan_of(const Command &c);
Layout layout_of(const Plan &p, int threads);

// exp(-2 pi i k / n), 0 <= k < n: the angle is reduced exactly to an eighth of a turn.
void exact_root(int64_t k, int64_t n, double *re, double *im);

}  // namespace fft
}  // namespace rlx
