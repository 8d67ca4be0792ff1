// LayerNorm2d, GroupNorm and BatchNormInference of f64, and how all dtypes are split. Variance in two passes, the mean corrected by the
// mean of the deviations.
#include "../core/rlx_begin.h"

#include "channel.h"

namespace rlx {
namespace norm {
namespace {

constexpr int64_t WORK = 1 << 13;  // elements of a piece of work

double entry_f64(const Call &c, int operand, int64_t i, double absent) { return c.has(operand) ? c.in_ptr<double>(operand)[i] : absent; }

// Mean and 1 / sqrt(var + eps) of count stretches of n elements, step apart.
struct Moments {
  double mean, rest, inv;
};
Moments moments_of(const double *x, int64_t count, int64_t step, int64_t n, double eps) {
  Moments m = {x[0], 0, 0};
  const double total = double(count * n), first = x[0];
  auto sum = [&](auto f) {
    double s = 0;
    for (int64_t k = 0; k < count; k++) {
      double part = 0;
      for (int64_t i = 0; i < n; i++) part += f(x[k * step + i]);
      s += part;
    }
    return s;
  };
  m.mean = first + sum([=](double v) { return v - first; }) / total;
  m.rest = sum([=](double v) { return v - m.mean; }) / total;
  m.inv = 1 / ::sqrt(sum([=](double v) { return ((v - m.mean) - m.rest) * ((v - m.mean) - m.rest); }) / total + eps);
  return m;
}

// Nothing where the result has no elements.
Split split_of(const Call &c, int64_t count, int64_t length) { return split_lines(c.out(0).count == 0 ? 0 : count, length, WORK); }

}  // namespace

Split group_split(const Call &c) {
  const ChannelPlan p = channel_plan(c);
  return split_of(c, p.items * p.groups, p.channels / p.groups * p.points);
}

Split side_split(const Call &c) {
  const ChannelPlan p = channel_plan(c);
  return split_of(c, p.items * sides(p), p.channels * (p.points < SIDE ? p.points : SIDE));
}

Split batch_split(const Call &c) {
  const ChannelPlan p = channel_plan(c);
  return p.points == 1 ? split_of(c, p.items, p.channels) : split_of(c, p.items * p.channels, p.points);
}

void group_norm_f64(const Call &c, Range r) {
  const ChannelPlan p = channel_plan(c);
  const int64_t channels = p.channels / p.groups, n = channels * p.points;
  for (int64_t u = r.begin; u < r.end && !c.stopped(); u++) {
    const double *x = c.in_ptr<double>(0) + u * n;
    double *y = c.out_ptr<double>(0) + u * n;
    const Moments m = moments_of(x, channels, p.points, p.points, p.eps);
    for (int64_t k = 0; k < channels; k++) {
      const double gamma = entry_f64(c, 1, u % p.groups * channels + k, 1), beta = entry_f64(c, 2, u % p.groups * channels + k, 0);
      for (int64_t i = k * p.points; i < (k + 1) * p.points; i++) y[i] = ((x[i] - m.mean) - m.rest) * m.inv * gamma + beta;
    }
  }
}

void layer_norm2d_f64(const Call &c, Range r) {
  const ChannelPlan p = channel_plan(c);
  for (int64_t u = r.begin; u < r.end && !c.stopped(); u++) {
    const int64_t first = u % sides(p) * SIDE, last = first + SIDE < p.points ? first + SIDE : p.points;
    for (int64_t at = first; at < last; at++) {
      const double *x = c.in_ptr<double>(0) + u / sides(p) * p.channels * p.points + at;
      double *y = c.out_ptr<double>(0) + (x - c.in_ptr<double>(0));
      const Moments m = moments_of(x, p.channels, p.points, 1, p.eps);
      for (int64_t k = 0; k < p.channels; k++)
        y[k * p.points] = ((x[k * p.points] - m.mean) - m.rest) * m.inv * entry_f64(c, 1, k, 1) + entry_f64(c, 2, k, 0);
    }
  }
}

void batch_norm_f64(const Call &c, Range r) {
  const ChannelPlan p = channel_plan(c);
  const int64_t channels = p.points == 1 ? p.channels : 1;  // of a unit
  for (int64_t u = r.begin * channels; u < r.end * channels && !c.stopped(); u++) {
    const int64_t k = u % p.channels;
    const double gamma = entry_f64(c, 1, k, 1), beta = entry_f64(c, 2, k, 0), mean = entry_f64(c, 3, k, 0);
    const double inv = 1 / ::sqrt(entry_f64(c, 4, k, 0) + p.eps);
    const double *x = c.in_ptr<double>(0) + u * p.points;
    double *y = c.out_ptr<double>(0) + u * p.points;
    for (int64_t i = 0; i < p.points; i++) y[i] = (x[i] - mean) * inv * gamma + beta;
  }
}

}  // namespace norm
}  // namespace rlx
