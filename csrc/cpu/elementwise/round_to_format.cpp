// RoundToFormat: y = s * round(x / s), bit for bit the same on every machine. Values are f32 held in f64, in which scaling by powers of
// two and the rounding to a few bits are exact. f32 subnormals count as zeros of their sign, on the way in and out.
#include "../core/rlx_begin.h"

#include "elementwise.h"
#include "convert.h"

namespace rlx {
namespace elementwise {
namespace {

constexpr double TINY = 0x1p-126;  // the smallest normal f32

struct Format {
  int man, min_exp;  // bits behind the point; exponent of the smallest normal value
  double max;        // largest finite value
};

double pow2(int e) { return f64_of_bits(uint64_t(1023 + e) << 52); }
double flush(double v) { return fabs(v) < TINY ? copysign(0.0, v) : v; }
int exponent(double v) { return int(f64_bits(v) >> 52 & 2047) - 1023; }  // floor(log2 |v|); no f32 is an f64 subnormal

bool is(const Text &t, const char *name) { return t.n == int64_t(std::strlen(name)) && std::memcmp(t.v, name, size_t(t.n)) == 0; }

// Reads the digits at *at; -1 if there are none.
int number(const Text &t, int64_t *at) {
  int v = -1;
  for (; *at < t.n && t.v[*at] >= '0' && t.v[*at] <= '9' && v < 1000; ++*at) v = (v < 0 ? 0 : v) * 10 + (t.v[*at] - '0');
  return v;
}

// f<N>e<X>m<Y>: every code is finite. f<N>m<Y>e<X>: the top exponent is reserved. The compiler checked the name.
bool parse(const Text &t, Format *f) {
  if (is(t, "f16")) return *f = {10, -14, 65504.0}, true;
  if (is(t, "bf16")) return *f = {7, -126, (2 - 0x1p-7) * 0x1p127}, true;
  if (is(t, "f8e5m2")) return *f = {2, -14, 57344.0}, true;
  if (is(t, "f8e4m3")) return *f = {3, -6, 448.0}, true;
  int64_t at = 1;
  if (t.n < 2 || t.v[0] != 'f' || number(t, &at) < 0 || at >= t.n) return false;
  const char first = t.v[at++];
  const int a = number(t, &at);
  if (a < 0 || at >= t.n) return false;
  const char second = t.v[at++];
  const int b = number(t, &at);
  const bool finite = first == 'e' && second == 'm';
  if (b < 0 || at != t.n || !(finite || (first == 'm' && second == 'e'))) return false;
  const int exp = finite ? a : b, man = finite ? b : a;
  if (exp < 1 || exp > 8 || man > 23) return false;
  const int bias = (1 << (exp - 1)) - 1;
  const double top = (2 - pow2(-man)) * pow2(finite ? (1 << exp) - 1 - bias : bias);
  *f = {man, 1 - bias, top < 3.4028234663852886e+38 ? top : 3.4028234663852886e+38};
  return true;
}

// The value of the format nearest to v, ties to even, saturating; NaN stays.
double round_small(double v, const Format &f) {
  if (v != v) return v;
  v = flush(v);
  const double a = fabs(v);
  if (a >= f.max) return copysign(f.max, v);
  if (a == 0) return v;
  const int e = exponent(a) > f.min_exp ? exponent(a) : f.min_exp;
  // a / unit is below 2^24, where adding 2^52 rounds to whole numbers.
  const double q = ((a * pow2(f.man - e) + 0x1p52) - 0x1p52) * pow2(e - f.man);
  return flush(copysign(q > f.max ? f.max : q, v));
}

float largest(const float *x, int64_t n) {
  float top = 0;
  for (int64_t i = 0; i < n; i++) {
    const float a = fabsf(x[i]);
    if (a > top) top = a;
  }
  return top;
}

double power_scale(double top, const Format &f) {
  if (top == 0 || top == double(INFINITY)) return 1;
  const int e = exponent(top) - exponent(f.max);
  return pow2(e < -126 ? -126 : e > 127 ? 127 : e);
}

// The least (1 + m/8) 2^k that brings top into the format.
double fine_scale(double top, const Format &f) {
  if (top == 0 || top == double(INFINITY)) return 1;
  int least = exponent(top) - exponent(f.max) - 1;
  least = least < -126 ? -126 : least > 125 ? 125 : least;
  for (int k = least; k < least + 3; k++)
    for (int m = 0; m < 8; m++) {
      const double s = (1 + m / 8.0) * pow2(k);
      if (s * f.max >= top) return s;
    }
  return 1.875 * 0x1p127;
}

void put(float *y, float x, double v) { *y = x != x ? x : float(v); }

void round_block(const float *x, float *y, int64_t n, const Format &f, double s) {
  for (int64_t i = 0; i < n; i++) put(y + i, x[i], flush(round_small(double(x[i]) / s, f) * s));
}

void round_fine(const float *x, float *y, int64_t n, const Format &f, double s) {
  const float r = float(1 / s);
  for (int64_t i = 0; i < n; i++) put(y + i, x[i], flush(round_small(double(x[i] * r), f) * s));
}

// The squared error of scale s, summed in f32 in index order: every backend takes the same scale.
float block_error(const float *x, int64_t n, const Format &f, double s) {
  float e = 0;
  for (int64_t i = 0; i < n; i++) {
    const float d = float(flush(round_small(double(x[i]) / s, f) * s)) - x[i];
    e += d * d;
  }
  return e;
}

void scale_block(const float *x, float *y, int64_t n, const Format &f, bool fine) {
  const double top = double(largest(x, n));
  if (fine) return round_fine(x, y, n, f, fine_scale(top, f));
  double s = power_scale(top, f);
  if (top != double(INFINITY) && top / s > f.max && s < 0x1p127 && block_error(x, n, f, 2 * s) < block_error(x, n, f, s)) s *= 2;
  round_block(x, y, n, f, s);
}

int64_t row_of(const Operand &x) { return x.rank == 0 ? 1 : x.dims[x.rank - 1]; }
bool blocked(const rlx_RoundToFormatAttrs &a) { return a.scale_layout == rlx_ScaleLayout_block || a.scale_layout == rlx_ScaleLayout_fine_block; }

}  // namespace

// Units: elements, the blocks of all rows, or everything for one scale.
Split round_units(const Call &c) {
  const rlx_RoundToFormatAttrs &a = c.attrs<rlx_RoundToFormatAttrs>();
  const int64_t count = c.out(0).count;
  if (count == 0) return {0, 1};
  if (a.scale_layout == rlx_ScaleLayout_none) return {count, 2048};
  if (!blocked(a)) return {1, 1};
  const int64_t row = row_of(c.out(0)), size = a.block_size < row ? a.block_size : row;
  return {count / row * ((row + size - 1) / size), size < 2048 ? 2048 / size : 1};
}

void round_to_format_f32(const Call &c, Range r) {
  const rlx_RoundToFormatAttrs &a = c.attrs<rlx_RoundToFormatAttrs>();
  const float *x = c.in_ptr<float>(0);
  float *y = c.out_ptr<float>(0);
  Format f;
  if (!parse(a.format, &f)) return c.fail("C1", "bad format %s", a.format.v);
  if (a.scale_layout == rlx_ScaleLayout_none) {
    for (int64_t i = r.begin; i < r.end; i++) put(y + i, x[i], round_small(double(x[i]), f));
  } else if (!blocked(a)) {
    const int64_t n = c.out(0).count;
    round_block(x, y, n, f, power_scale(double(largest(x, n)), f));
  } else {
    const int64_t row = row_of(c.out(0)), size = a.block_size < row ? a.block_size : row, blocks = (row + size - 1) / size;
    for (int64_t b = r.begin; b < r.end && !c.stopped(); b++) {
      const int64_t k = b % blocks * size, at = b / blocks * row + k;
      scale_block(x + at, y + at, size < row - k ? size : row - k, f, a.scale_layout == rlx_ScaleLayout_fine_block);
    }
  }
}

}  // namespace elementwise
}  // namespace rlx
