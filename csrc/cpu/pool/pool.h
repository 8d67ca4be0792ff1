// pool.h: what the files of Pool share. A unit of work is a row of results; rows do not depend on each other.
#pragma once
#include "../core/rlx_begin.h"
#include "../conv/conv.h"

namespace rlx {
namespace pool {

using conv::inside;
using conv::Window;

struct Plan {
  Window w;
  int64_t fn = 0;        // rlx_PoolFn
  int64_t end[3] = {};   // padding behind
  bool include = false;  // an average counts padding
  bool lone = false;     // windows are computed one by one: their rows are long, or far apart
  bool whole = false;    // a lone window is a channel of x, whose elements lie together
  bool lines = false;    // windows come from lines: see line_plane
  int64_t rows = 0;
};

Plan plan_of(const Command &c);

// How many kernel positions of an axis an average counts at result position p: those in x, or in x and its padding.
inline int64_t counted(const Plan &p, int axis, int64_t at) {
  const int64_t pad = p.include ? p.w.begin[axis] : 0, end = p.include ? p.end[axis] : 0;
  int64_t lo, hi;
  inside(p.w, axis, at, p.w.begin[axis] - pad, pad + p.w.size[axis] + end, &lo, &hi);
  return hi - lo;
}

// A row of results: where its channel of x starts, and the kernel positions of the outer axes that see x.
struct Row {
  int64_t x, od, oh;
  int64_t d0, d1, h0, h1;
  int64_t count;  // of the outer axes, for an average

  // Where kernel positions kd, kh of result od, oh start along the last axis, in elements of the channel.
  int64_t at(const Window &w, int64_t kd, int64_t kh) const {
    return (od * w.stride[0] + kd * w.dilation[0] - w.begin[0]) * w.xs[2] + (oh * w.stride[1] + kh * w.dilation[1] - w.begin[1]) * w.xs[3];
  }
};

inline Row row_of(const Plan &p, int64_t unit) {
  const Window &w = p.w;
  Row r;
  r.oh = unit % w.out[1], r.od = unit / w.out[1] % w.out[0];
  const int64_t plane = unit / (w.out[0] * w.out[1]);
  r.x = plane / w.channels * w.xs[0] + plane % w.channels * w.xs[1];
  inside(w, 0, r.od, &r.d0, &r.d1);
  inside(w, 1, r.oh, &r.h0, &r.h1);
  r.count = p.fn == rlx_PoolFn_avg ? counted(p, 0, r.od) * counted(p, 1, r.oh) : 1;
  return r;
}

// Windows of a few rows that lie together in x: a line per row of results is what the rows of its windows give, column by column, with padding on both
// sides; windows then slide along the line. `pitch` floats a line, `block` lines at a time; a block of results is a patch of conv/plane.h.
conv::Plane line_plane(const Window &w);
constexpr int64_t kLineRows = 16;  // the most rows of a window, and elements of one along the last axis: so sums keep their bound

// A command of f32, f16 or bf16. Windows that are not lone slide over lines or over planes of x (conv/plane.h), in scratch: the offsets of their
// positions, what averages count along the last axis, then for each thread the lines, or the planes and results, of a patch.
struct Job {
  const Call *c;
  const conv::Form *form;
  Plan p;
  conv::Plane plane;
  int64_t *offset;
  float *columns, *slots;
  int64_t grain;
};
inline int64_t slot_floats(const conv::Plane &p) { return (p.total + p.sums + 15) & ~int64_t(15); }

// Fills the job and its tables; false where there is nothing to do.
bool start_job(const Call &c, const conv::Form &form, Job *j);

}  // namespace pool
}  // namespace rlx
