// LayerNorm, RmsNorm and Softmax of f64, and how all dtypes are split. Everything runs in f64, variance in two passes, the mean
// corrected by the mean of the deviations.
#include "../core/rlx_begin.h"

#include "norm.h"

namespace rlx {
namespace norm {
namespace {

constexpr int64_t WORK = 1 << 13;  // elements of a piece of work
constexpr int PARTS = 8;           // sums that run beside each other

template <class Fn> double sum_row(const double *x, int64_t n, Fn f) {
  double s[PARTS] = {};
  int64_t i = 0;
  for (; i + PARTS <= n; i += PARTS)
    for (int k = 0; k < PARTS; k++) s[k] += f(x[i + k]);
  for (int k = 0; i + k < n; k++) s[k] += f(x[i + k]);
  return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}

void norm_row_f64(const Call &c, const NormPlan &p, int64_t row) {
  const double *x = norm_row<double>(c, p, row), n = double(p.n);
  double *y = c.out_ptr<double>(0) + row * p.n, mean = 0, rest = 0;
  if (!p.rms) {
    const double first = x[0];
    mean = first + sum_row(x, p.n, [=](double v) { return v - first; }) / n;
    rest = sum_row(x, p.n, [=](double v) { return v - mean; }) / n;
  }
  const double square = sum_row(x, p.n, [=](double v) { return ((v - mean) - rest) * ((v - mean) - rest); });
  const double inv = 1 / ::sqrt(square / n + p.eps);
  double gammas[CHUNK], betas[CHUNK];
  for (int64_t i = 0; i < p.n; i += CHUNK) {
    const int64_t m = p.n - i < CHUNK ? p.n - i : CHUNK;
    const double *gamma = affine_chunk(c, 1, i, m, gammas), *beta = affine_chunk(c, 2, i, m, betas);
    for (int64_t j = 0; j < m; j++) {
      double v = ((x[i + j] - mean) - rest) * inv;
      if (gamma != nullptr) v *= gamma[j];
      if (beta != nullptr) v += beta[j];
      y[i + j] = v;
    }
  }
}

void softmax_line_f64(const double *x, int64_t x_step, double *y, int64_t y_step, int64_t n) {
  double top = -double(INFINITY), s = 0;
  for (int64_t k = 0; k < n; k++)
    if (const double v = x[k * x_step]; v > top || v != v) top = v;
  for (int64_t k = 0; k < n; k++) s += y[k * y_step] = ::exp(x[k * x_step] - top);
  for (int64_t k = 0; k < n; k++) y[k * y_step] /= s;
}

}  // namespace

Split norm_split(const Call &c) {
  const NormPlan p = norm_plan(c);
  return split_lines(p.rows, p.n, elementwise::streams(c, 0) ? WORK * elementwise::STREAM_GRAINS : WORK);
}

Split softmax_split(const Call &c) {
  const Lines l = lines_of(c.in(0), c.attrs<rlx_SoftmaxAttrs>().axis);
  Split s = split_lines(l.count, l.length, elementwise::streams(c, 0) ? WORK * elementwise::STREAM_GRAINS : WORK / 2);
  if (l.y_step != 1) s.grain = (s.grain + 15) / 16 * 16;  // whole vectors of neighbours
  if (l.length == 0) s.units = 0;
  return s;
}

void norm_f64(const Call &c, Range r) {
  const NormPlan p = norm_plan(c);
  for (int64_t row = r.begin; row < r.end && !c.stopped(); row++) norm_row_f64(c, p, row);
}

void softmax_f64(const Call &c, Range r) {
  const Lines l = lines_of(c.in(0), c.attrs<rlx_SoftmaxAttrs>().axis);
  for (Walk<2> w = l.walk(r.begin, r.end); w.next();)
    for (int64_t i = 0; i < w.n && !c.stopped(); i++)
      softmax_line_f64(c.in_ptr<double>(0) + w.at[0] + i * w.step[0], l.x_step, c.out_ptr<double>(0) + w.at[1] + i * w.step[1], l.y_step, l.length);
}

}  // namespace norm
}  // namespace rlx
