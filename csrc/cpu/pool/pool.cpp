// Pool of integers and f64, and the plan of all dtypes.
#include "../core/rlx_begin.h"

#include "pool.h"

namespace rlx {
namespace pool {
namespace {

constexpr int64_t WORK = 1 << 14;  // elements of x that a piece of work reads
constexpr int64_t RUN = 16;        // elements of a window along the last axis that are worth vectors of their own
constexpr int64_t LONE_RUN = 4;    // the same where there is one window
constexpr int64_t LINES = 4096;    // floats of the lines of a patch: half of the nearest cache

Window window_of(const Command &c, int64_t *end) {
  const rlx_PoolAttrs &a = *static_cast<const rlx_PoolAttrs *>(c.attrs);
  const Operand &x = c.in[0], &y = c.out[0];
  const int r = int(x.rank) - 2;
  const Ints none = {};
  Window w = {};
  if (a.global) {
    conv::fill_window(&w, x, x.dims + 2, y.dims + 2, {&none, &none, &none, rlx_AutoPad_none});
    return w;
  }
  conv::fill_window(&w, x, a.kernel_size.v, y.dims + 2, {a.stride.n > 0 ? &a.stride : &a.kernel_size, &a.dilation, &a.padding, a.auto_pad});
  for (int i = 0; i < r; i++) {
    const int at = 3 - r + i;
    if (a.auto_pad == rlx_AutoPad_none) {
      end[at] = a.padding.n > 0 ? a.padding.v[a.padding.n - r + i] : 0;
    } else if (a.auto_pad != rlx_AutoPad_valid) {
      const int64_t total = (w.out[at] - 1) * w.stride[at] + w.dilation[at] * (w.kernel[at] - 1) + 1 - w.size[at];
      end[at] = total > 0 ? total - w.begin[at] : 0;
    }
  }
  conv::settle(&w);
  return w;
}

// Windows as wide as x, one beside the other in memory: the last two axes are one.
bool join(Window *w, int64_t *end) {
  const int64_t n = w->size[2];
  if (w->kernel[2] != n || w->out[2] != 1 || w->begin[2] != 0 || end[2] != 0 || w->dilation[2] != 1 || w->dilation[1] != 1) return false;
  if (w->size[1] == 1 || w->xs[3] != n * w->xs[4]) return false;
  w->size[2] = w->size[1] * n, w->kernel[2] = w->kernel[1] * n, w->stride[2] = w->stride[1] * n;
  w->begin[2] = w->begin[1] * n, end[2] = end[1] * n, w->out[2] = w->out[1];
  w->size[1] = w->size[0], w->kernel[1] = w->kernel[0], w->stride[1] = w->stride[0], w->dilation[1] = w->dilation[0];
  w->begin[1] = w->begin[0], end[1] = end[0], w->out[1] = w->out[0], w->xs[3] = w->xs[2];
  w->size[0] = w->kernel[0] = w->stride[0] = w->dilation[0] = w->out[0] = 1;
  w->begin[0] = end[0] = w->xs[2] = 0;
  return true;
}

// Lines serve windows that are one or two elements apart.
bool lines_fit(const Window &w) {
  if (w.xs[4] != 1 || w.dilation[2] != 1 || w.stride[2] > 2 || w.kernel[2] > kLineRows) return false;
  if (w.kernel[0] > kLineRows || w.kernel[1] > kLineRows || w.kernel[0] * w.kernel[1] > kLineRows) return false;
  return w.size[2] < LINES / 2 && w.begin[2] < w.kernel[2] && w.out[2] <= LINES / 2;
}

// The channel is the window.
bool whole_channel(const Window &w) {
  for (int a = 0; a < 3; a++)
    if (w.out[a] != 1 || w.begin[a] != 0 || w.kernel[a] != w.size[a]) return false;
  return w.kernel[0] == 1 && w.kernel[1] == 1 && w.xs[4] == 1;
}

// Maxima of integers, everything of f64. A NaN stays: nothing is greater, and nothing else differs from itself.
template <class T> void plain_row(const Plan &p, const Row &r, const T *x, T *y) {
  const Window &w = p.w;
  for (int64_t ow = 0; ow < w.out[2]; ow++) {
    int64_t k0, k1;
    inside(w, 2, ow, &k0, &k1);
    const int64_t first = ow * w.stride[2] - w.begin[2];
    T all = 0;
    bool fresh = true;
    for (int64_t kd = r.d0; kd < r.d1; kd++)
      for (int64_t kh = r.h0; kh < r.h1; kh++) {
        const T *from = x + r.x + r.at(w, kd, kh);
        T sum = 0;
        for (int64_t kw = k0; kw < k1; kw++) {
          const T v = from[(first + kw * w.dilation[2]) * w.xs[4]];
          if (p.fn != rlx_PoolFn_max) sum += v;
          else if (fresh || v > all || v != v) all = v;
          fresh = false;
        }
        if (p.fn != rlx_PoolFn_max) all += sum;
      }
    y[ow] = p.fn == rlx_PoolFn_avg ? T(all / T(r.count * counted(p, 2, ow))) : all;
  }
}

template <class T> void rows_of(const Call &c, Range range) {
  const Plan p = plan_of(*c.cmd);
  for (int64_t u = range.begin; u < range.end && !c.stopped(); u++) plain_row<T>(p, row_of(p, u), c.in_ptr<T>(0), c.out_ptr<T>(0) + u * p.w.out[2]);
}

}  // namespace

Plan plan_of(const Command &c) {
  const rlx_PoolAttrs &a = *static_cast<const rlx_PoolAttrs *>(c.attrs);
  Plan p;
  p.w = window_of(c, p.end);
  p.fn = a.fn;
  p.include = a.count_include_pad != 0;
  Window &w = p.w;
  if (join(&w, p.end)) join(&w, p.end);
  w.taps = w.kernel[0] * w.kernel[1] * w.kernel[2];
  p.rows = w.items * w.channels * w.out[0] * w.out[1];
  p.lone = (w.xs[4] == 1 && w.dilation[2] == 1 && w.kernel[2] >= (w.out[2] == 1 ? LONE_RUN : RUN)) || !conv::plane_of(w).fits;
  p.whole = p.lone && whole_channel(w);
  p.lines = !p.lone && lines_fit(w);
  return p;
}

namespace {

// Rows of results that read about WORK elements. A kernel may be far larger than x.
int64_t lone_grain(const Window &w) {
  int64_t reads = w.out[2];
  for (int a = 0; a < 3; a++) {
    const int64_t k = w.kernel[a] < w.size[a] ? w.kernel[a] : w.size[a];
    reads = reads < WORK ? reads * k : reads;
  }
  return 1 + WORK / (reads > 0 ? reads : 1);
}

int64_t align16(int64_t floats) { return (floats + 15) & ~int64_t(15); }
int64_t table_floats(const Plan &p) { return align16(2 * p.w.taps) + align16(p.w.out[2]); }  // an offset is two floats long

conv::Plane plane_for(const Plan &p) { return p.lines ? line_plane(p.w) : conv::plane_of(p.w); }

}  // namespace

conv::Plane line_plane(const Window &w) {
  conv::Plane p = {};
  const int64_t held = w.begin[2] + w.size[2], seen = (w.out[2] - 1) * w.stride[2] + w.kernel[2];
  p.pitch = align16((held > seen ? held : seen) + 2 * 16);  // a vector of results may see two vectors more
  p.tiles = w.out[2] > 0 ? 1 : 0, p.tile = w.out[2];
  p.block = LINES / p.pitch < w.out[1] ? LINES / p.pitch : w.out[1];
  if (p.block < 1) p.block = 1;
  p.blocks = (w.out[1] + p.block - 1) / p.block;
  if (p.blocks > 0) p.block = (w.out[1] + p.blocks - 1) / p.blocks;  // even ones
  p.total = p.block * p.pitch;
  return p;
}

int32_t pool_prepare(Prepare &prepare) {
  const Plan p = plan_of(*prepare.cmd);
  if (!p.lone) prepare.cmd->scratch = (table_floats(p) + prepare.max_threads * slot_floats(plane_for(p))) * int64_t(sizeof(float));
  return RLX_OK;
}

bool start_job(const Call &c, const conv::Form &form, Job *j) {
  *j = {&c, &form, plan_of(*c.cmd), {}, nullptr, nullptr, nullptr, 1};
  const Window &w = j->p.w;
  if (c.out(0).count == 0) return false;
  if (j->p.lone) {
    j->grain = lone_grain(w);
    return true;
  }
  j->plane = plane_for(j->p);
  j->grain = 1 + WORK / (j->plane.block * j->plane.pitch * w.taps);
  j->offset = static_cast<int64_t *>(c.scratch);
  j->columns = static_cast<float *>(c.scratch) + align16(2 * w.taps);
  j->slots = static_cast<float *>(c.scratch) + table_floats(j->p);
  if (!j->p.lines) conv::plane_offsets(w, j->plane, j->offset);
  for (int64_t i = 0; i < w.out[2]; i++) j->columns[i] = float(counted(j->p, 2, i));
  return true;
}

Split pool_split(const Call &c) {
  const Plan p = plan_of(*c.cmd);
  return {p.w.out[2] > 0 ? p.rows : 0, lone_grain(p.w)};
}

void pool_plain(const Call &c, Range r) {
  switch (c.out(0).dtype) {
    case RLX_I8: return rows_of<int8_t>(c, r);
    case RLX_I16: return rows_of<int16_t>(c, r);
    case RLX_I32: return rows_of<int32_t>(c, r);
    case RLX_I64: return rows_of<int64_t>(c, r);
    case RLX_U8: return rows_of<uint8_t>(c, r);
    case RLX_U16: return rows_of<uint16_t>(c, r);
    case RLX_U32: return rows_of<uint32_t>(c, r);
    case RLX_U64: return rows_of<uint64_t>(c, r);
    default: return rows_of<double>(c, r);
  }
}

}  // namespace pool
}  // namespace rlx
