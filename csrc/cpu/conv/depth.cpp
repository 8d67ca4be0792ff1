// Contract: kernel positions ascending in one f32 accumulator per element; rows in the padding are left out, columns of it are zeros. An
// element has the same bits whatever the batch and the threads. A unit is a band of rows of a channel.
#include "../core/rlx_begin.h"

#include "ending.h"

namespace rlx {
namespace conv {
namespace {

constexpr int64_t kBandFloats = 4096;  // results of a band: half of the first-level cache
constexpr int64_t kFar = 2048;         // columns of a band's rows of x that the first-level cache has not fetched by itself
constexpr int64_t kChunk = 1 << 18;    // multiplications of a piece of work

struct Depth {
  const Call *c;
  const Form *form;
  Window w;
  int64_t band, bands;  // rows of results of a unit, units of a channel
  void (*run)(const DepthRows &);
  Ending ending;
};

int kind_of(const Window &w) {
  const int64_t less = w.kernel[2] / 2 - w.begin[2];
  if ((w.kernel[2] != 3 && w.kernel[2] != 5) || less < 0 || less > 1) return kDepthKinds;
  switch (w.stride[1] * 100 + w.stride[2] * 10 + less) {
    case 110: return kDepth11;
    case 210: return kDepth21;
    case 220: return kDepth22;
    case 221: return kDepth22Less;
    default: return kDepthKinds;
  }
}

// The kernel of a result channel, which is copied where it is strided.
const float *kernel_of(const Depth &d, int64_t o, float *copy) {
  const Window &w = d.w;
  const int64_t k = w.kernel[2];
  const float *from = d.c->in_ptr<float>(1) + o * w.ws[0];
  if (w.ws[4] == 1 && w.ws[3] == k) return from;
  for (int64_t i = 0; i < k; i++)
    for (int64_t t = 0; t < k; t++) copy[i * k + t] = from[i * w.ws[3] + t * w.ws[4]];
  return copy;
}

void bands(void *ctx, int64_t begin, int64_t end, int) {
  const Depth &d = *static_cast<const Depth *>(ctx);
  const Window &w = d.w;
  const int64_t outs = w.groups * w.outs;
  int64_t channel = begin / d.bands, band = begin % d.bands;
  float copy[25];
  DepthRows r;
  r.pitch = w.xs[3], r.size[0] = w.size[1], r.size[1] = w.size[2], r.cols = w.out[2];
  for (int64_t u = begin; u < end && !d.c->stopped(); u++) {
    const int64_t oh = band * d.band, o = channel % outs, item = channel / outs, at = (channel * w.out[1] + oh) * w.out[2];
    r.top = oh * w.stride[1] - w.begin[1];
    r.x = d.c->in_ptr<float>(0) + item * w.xs[0] + (w.outs == 1 ? o : o / w.outs) * w.xs[1] + r.top * r.pitch;
    r.kernel = kernel_of(d, o, copy), r.finish = finish_of(d.ending, o, at);
    if (d.ending.residual != nullptr) r.finish.fn = kFinishNone;
    r.y = d.c->out_ptr<float>(0) + at, r.rows = w.out[1] - oh < d.band ? w.out[1] - oh : d.band;
    r.ahead = r.rows * r.cols * w.stride[1] * w.stride[2] > kFar;
    d.run(r);
    if (d.ending.residual != nullptr) {
      Ending rest = d.ending;
      rest.bias = nullptr;
      end_sums(rest, *d.form, r.y, r.rows * r.cols, o, at);
    } else if (d.ending.swept) {
      sweep(d.ending, r.y, r.rows * r.cols);
    }
    if (++band == d.bands) band = 0, channel++;
  }
}

}  // namespace

bool depth_fits(const Command &c, const Window &w) {
  return c.in[0].dtype == RLX_F32 && w.per == 1 && w.size[0] == 1 && w.kernel[0] == 1 && w.out[0] == 1 && w.begin[0] == 0 && w.kernel[1] == w.kernel[2] &&
         w.dilation[1] == 1 && w.dilation[2] == 1 && w.xs[4] == 1 && w.out[1] > 0 && w.out[2] > 0 && kind_of(w) != kDepthKinds;
}

void depth_run(const Call &c, const Window &w, const DepthTable &table, const Form &form, int isa) {
  Depth d = {&c, &form, w, 0, 0, table.run[kind_of(w)], ending_of(c, isa)};
  const int64_t fit = kBandFloats / w.out[2] > 4 ? kBandFloats / w.out[2] : 4;
  d.bands = (w.out[1] + fit - 1) / fit;
  d.band = (w.out[1] + d.bands - 1) / d.bands;
  if (d.bands > 1) d.band = (d.band + 3) / 4 * 4;
  d.bands = (w.out[1] + d.band - 1) / d.band;
  c.parallel(w.items * w.groups * w.outs * d.bands, 1 + kChunk / (1 + d.band * w.out[2] * w.taps), bands, &d);
}

}  // namespace conv
}  // namespace rlx
