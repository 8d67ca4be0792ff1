// ConvTranspose2d and ConvTranspose3d. For f32, f16 and bf16 a product gives what every element of x adds, [result channel, kernel
// position] by positions of x, for some result channels and some lines of x that together fit the cache; then each row of y gathers what
// falls on it. Where few channels of x meet in a result, and for f64, rows are computed directly.
// Contract: channels ascending in one accumulator for each kernel position, then slabs of lines and in each kernel positions ascending; an
// element has the same bits whatever the batch and the threads. Bound: 1.5 K eps sum |w||x|, K = channels of a group plus kernel positions.
#include "../core/rlx_begin.h"

#include "../core/pool.h"
#include "../matmul/gemm.h"
#include "conv.h"

namespace rlx {
namespace conv {
namespace {

constexpr int64_t kBlockFloats = 1 << 18;  // products of a block: 1 MB
constexpr int64_t kSlab = 1024;            // positions of x in a block, at least
constexpr int64_t kLines = 64;             // that reach a row of y
constexpr int64_t kStretch = 256;          // elements of a row of y that are summed up together
constexpr int64_t kChunk = 1 << 14;        // elements moved by a piece of work
constexpr int64_t kFewChannels = 2;        // channels of x in a group from which rows are computed directly

// Scratch, in floats: x and w of f16 and bf16 widened, and the sums of a block; the products of a block, then what the product needs. A line
// is a row of x along the last axis.
struct Plan {
  Window w;
  int64_t lines, sites, image;  // of x; positions of x and of y
  int64_t block, slab;          // result channels and lines of a block
  int64_t wide_x, wide_w, sums, products;
};

Plan plan_of(const Command &c) {
  Plan p;
  p.w = window_of_transpose(c);
  const Window &w = p.w;
  p.lines = w.out[0] * w.out[1], p.sites = w.points, p.image = w.size[0] * w.size[1] * w.size[2];
  const int64_t one = max64(1, w.taps * w.out[2]);  // products of one line and result channel
  p.slab = max64(1 + (kSlab - 1) / w.out[2], kBlockFloats / one / max64(1, w.outs));
  p.slab = min64(p.slab, p.lines);
  p.block = max64(1, min64(w.outs, kBlockFloats / one / p.slab));
  const bool half = c.in[0].dtype != RLX_F32;
  p.wide_x = half ? align16(c.in[0].count) : 0, p.wide_w = half ? align16(c.in[1].count) : 0;
  p.sums = half ? align16(p.block * p.image) : 0;
  p.products = align16(p.block * p.slab * one);
  return p;
}

bool direct(const Command &c, const Window &w) { return c.in[0].dtype == RLX_F32 && w.per <= kFewChannels; }

// Some lines of x, and some result channels of a group.
struct Block {
  int64_t item, group, first, outs;  // first: within the group
  int64_t line, lines;
};

void product_of(const Plan &p, const Block &b, const float *x, const float *k, float *to, int threads, matmul::GemmF32 *m) {
  const Window &w = p.w;
  m->m = b.outs * w.taps, m->n = b.lines * w.out[2], m->k = w.per;
  m->a = k + (b.group * w.per * w.outs + b.first) * w.taps, m->a_rs = 1, m->a_cs = w.outs * w.taps;
  m->b = x + (b.item * w.groups + b.group) * w.per * p.sites + b.line * w.out[2], m->b_rs = p.sites, m->b_cs = 1;
  m->c = to, m->c_rs = m->n;
  matmul::gemm_f32_plan(m, threads);
}

// The position of x along an axis that reaches result position s through kernel position k, or -1.
int64_t site(const Window &w, int axis, int64_t s, int64_t k) {
  const int64_t at = s + w.begin[axis] - k * w.dilation[axis];
  return at >= 0 && at % w.stride[axis] == 0 && at / w.stride[axis] < w.out[axis] ? at / w.stride[axis] : -1;
}

// Calls f(t, line) for each line of x that reaches row (sd, sh) of y, and t, the first of the kernel positions through which it does.
template <class Fn> void reaching(const Window &w, int64_t sd, int64_t sh, Fn f) {
  for (int64_t kd = 0; kd < w.kernel[0]; kd++) {
    const int64_t pd = site(w, 0, sd, kd);
    for (int64_t kh = 0; kh < w.kernel[1] && pd >= 0; kh++)
      if (const int64_t ph = site(w, 1, sh, kh); ph >= 0) f((kd * w.kernel[1] + kh) * w.kernel[2], pd * w.out[1] + ph);
  }
}

// Adds k * x[p] to row[p*stride + kw*dilation - begin] for every p that falls on it.
template <class T> void scatter(const Window &w, T *row, int64_t kw, T k, const T *x) {
  int64_t lo, hi;
  seen(w, 2, kw, &lo, &hi);
  T *to = row + kw * w.dilation[2] - w.begin[2];
  const int64_t s = w.stride[2];
  if (s == 1)
    for (int64_t p = lo; p < hi; p++) to[p] += k * x[p];
  else if (s == 2)
    for (int64_t p = lo; p < hi; p++) to[2 * p] += k * x[p];
  else
    for (int64_t p = lo; p < hi; p++) to[p * s] += k * x[p];
}

// The rows of y on which a block of products falls.
struct Gather {
  const Call *c;
  const Plan *p;
  Block b;
  const float *products;
  float *sums;             // of the block's first result channel
  int64_t d0, d1, h0, h1;  // the rows that the block may reach; in the first slab all, as those that nothing reaches are 0
};

// Where windows at [first, end) of an axis of x lie in y.
void span(const Window &w, int axis, int64_t first, int64_t end, int64_t *lo, int64_t *hi) {
  *lo = max64(0, first * w.stride[axis] - w.begin[axis]);
  *hi = min64(w.size[axis], (end - 1) * w.stride[axis] - w.begin[axis] + (w.kernel[axis] - 1) * w.dilation[axis] + 1);
}

Gather gather_of(const Call &c, const Plan &p, const Block &b, const float *products, float *sums) {
  const Window &w = p.w;
  Gather g = {&c, &p, b, products, sums, 0, w.size[0], 0, w.size[1]};
  if (b.line == 0) return g;
  const int64_t last = b.line + b.lines - 1;
  span(w, 0, b.line / w.out[1], last / w.out[1] + 1, &g.d0, &g.d1);
  if (b.line / w.out[1] == last / w.out[1]) span(w, 1, b.line % w.out[1], last % w.out[1] + 1, &g.h0, &g.h1);
  return g;
}

// The sums of every stride-th element of a row of y, from the phase-th of the padding on, numbers [q0, q1) of them: the same kernel
// positions reach them all.
void phase_sums(const Gather &g, const float *const *list, int64_t n, int64_t phase, int64_t q0, int64_t q1, float *sums) {
  const Window &w = g.p->w;
  const int64_t sites = g.b.lines * w.out[2], s = w.stride[2];
  for (int64_t q = 0; q < q1 - q0; q++) sums[q] = 0;
  for (int64_t i = 0; i < n; i++)
    for (int64_t kw = 0; kw < w.kernel[2]; kw++) {
      const int64_t at = kw * w.dilation[2], shift = s == 1 ? at : at / s;
      if (at - shift * s != phase) continue;
      const int64_t lo = max64(q0, shift), hi = min64(q1, w.out[2] + shift);
      const float *from = list[i] + kw * sites - shift;
      for (int64_t q = lo; q < hi; q++) sums[q - q0] += from[q];
    }
}

// to[k*s] = or += from[k]
void put_apart(float *to, const float *from, int64_t n, int64_t s, bool fresh) {
  if (fresh)
    for (int64_t k = 0; k < n; k++) to[k * s] = from[k];
  else
    for (int64_t k = 0; k < n; k++) to[k * s] += from[k];
}
void put_pairs(float *to, const float *even, const float *odd, int64_t n, bool fresh) {
  if (fresh)
    for (int64_t k = 0; k < n; k++) to[2 * k] = 0 + even[k], to[2 * k + 1] = 0 + odd[k];  // a sum is no -0
  else
    for (int64_t k = 0; k < n; k++) to[2 * k] += even[k], to[2 * k + 1] += odd[k];
}

void gather_row(const Gather &g, const float *const *list, int64_t n, bool fresh, float *row) {
  const Window &w = g.p->w;
  const int64_t s = w.stride[2], b = w.begin[2], end = steps(w.size[2] + b, s);
  if (s == 2 && w.kernel[2] == 2 && w.dilation[2] == 1 && n == 1 && b == 0 && w.size[2] == 2 * w.out[2])  // one product falls on each element
    return put_pairs(row, list[0], list[0] + g.b.lines * w.out[2], w.out[2], fresh);
  float sums[2][kStretch];
  for (int64_t q0 = b / s; q0 < end; q0 += kStretch) {
    const int64_t q1 = min64(end, q0 + kStretch);
    // element q of phase r is row[q*s + r - b]
    const bool inner = q0 * s >= b && q1 * s - b <= w.size[2];
    if (s == 2 && inner) {
      for (int64_t r = 0; r < 2; r++) phase_sums(g, list, n, r, q0, q1, sums[r]);
      put_pairs(row + q0 * 2 - b, sums[0], sums[1], q1 - q0, fresh);
      continue;
    }
    // a stride may be far longer than y
    const int64_t r0 = q1 - q0 == 1 ? max64(0, b - q0 * s) : 0, r1 = min64(s, w.size[2] + b - q0 * s);
    for (int64_t r = r0; r < r1; r++) {
      phase_sums(g, list, n, r, q0, q1, sums[0]);
      const int64_t from = q0 * s + r < b ? q0 + 1 : q0, to = (q1 - 1) * s + r - b >= w.size[2] ? q1 - 1 : q1;
      if (from < to) put_apart(row + from * s + r - b, sums[0] + (from - q0), to - from, s, fresh);
    }
  }
}

void gather_rows(void *ctx, int64_t begin, int64_t end, int) {
  const Gather &g = *static_cast<const Gather *>(ctx);
  const Window &w = g.p->w;
  const int64_t rows = g.h1 - g.h0, sites = g.b.lines * w.out[2];
  for (int64_t u = begin; u < end && !g.c->stopped(); u++) {
    const int64_t sh = g.h0 + u % rows, sd = g.d0 + u / rows % (g.d1 - g.d0), o = u / (rows * (g.d1 - g.d0));
    float *row = g.sums + ((o * w.size[0] + sd) * w.size[1] + sh) * w.size[2];
    int64_t least = -1, n = 0;  // the first line of x that reaches the row
    reaching(w, sd, sh, [&](int64_t, int64_t line) { least = least < 0 ? line : min64(least, line); });
    bool fresh = least >= g.b.line || (least < 0 && g.b.line == 0);
    const float *list[kLines];
    auto add = [&]() {
      if (n > 0 || fresh) gather_row(g, list, n, fresh, row);
      fresh = false, n = 0;
    };
    reaching(w, sd, sh, [&](int64_t t, int64_t line) {
      if (line < g.b.line || line >= g.b.line + g.b.lines) return;
      if (n == kLines) add();
      list[n++] = g.products + (o * w.taps + t) * sites + (line - g.b.line) * w.out[2];
    });
    add();
  }
}

// Rounds the sums of a block.
struct Round {
  const Form *form;
  const float *sums;
  char *y;
};
void round_sums(void *ctx, int64_t begin, int64_t end, int) {
  const Round &r = *static_cast<const Round *>(ctx);
  r.form->put(r.y + begin * r.form->bytes, r.sums + begin, end - begin);
}

// Elements of f16 or bf16 to f32.
struct Widen {
  const Form *form;
  const char *from;
  float *to;
};
void widen(void *ctx, int64_t begin, int64_t end, int) {
  const Widen &v = *static_cast<const Widen *>(ctx);
  v.form->spread(v.to + begin, 1, v.from + begin * v.form->bytes, 1, end - begin);
}
const float *widened(const Call &c, const Form &form, int operand, float *to) {
  if (c.in(operand).dtype == RLX_F32) return c.in_ptr<float>(operand);
  Widen v = {&form, c.in_ptr<char>(operand), to};
  c.parallel(c.in(operand).count, kChunk, widen, &v);
  return to;
}

template <class T> void direct_rows(const Call &c, const Window &w, int64_t begin, int64_t end) {
  const int64_t outs = w.groups * w.outs;
  for (int64_t u = begin; u < end && !c.stopped(); u++) {
    const int64_t o = u / (w.size[0] * w.size[1]) % outs, item = u / (w.size[0] * w.size[1] * outs);
    T *row = c.out_ptr<T>(0) + u * w.size[2];
    for (int64_t i = 0; i < w.size[2]; i++) row[i] = 0;
    reaching(w, u / w.size[1] % w.size[0], u % w.size[1], [&](int64_t t, int64_t line) {
      for (int64_t ch = o / w.outs * w.per; ch < (o / w.outs + 1) * w.per; ch++) {
        const T *k = c.in_ptr<T>(1) + (ch * w.outs + o % w.outs) * w.taps + t;
        const T *from = c.in_ptr<T>(0) + (item * w.groups * w.per + ch) * w.points + line * w.out[2];
        for (int64_t kw = 0; kw < w.kernel[2]; kw++) scatter(w, row, kw, k[kw], from);
      }
    });
  }
}

struct Direct {
  const Call *c;
  const Window *w;
};
void direct_f32(void *ctx, int64_t begin, int64_t end, int) {
  const Direct &d = *static_cast<const Direct *>(ctx);
  direct_rows<float>(*d.c, *d.w, begin, end);
}

int64_t direct_grain(const Window &w) { return 1 + kChunk / max64(1, w.size[2] * w.per * w.taps); }

// The sums of all lines of x for some result channels.
void block_of(const Call &c, const Plan &p, Block b, const float *x, const float *k, float *products, float *rest, float *sums) {
  for (b.line = 0; b.line < p.lines && !c.stopped(); b.line += p.slab) {
    b.lines = min64(p.slab, p.lines - b.line);
    matmul::GemmF32 m = {};
    product_of(p, b, x, k, products, c.threads(), &m);
    matmul::gemm_f32(c.pool(), c.threads(), &m, rest, c.cancel());
    Gather g = gather_of(c, p, b, products, sums);
    const int64_t rows = b.outs * max64(0, g.d1 - g.d0) * max64(0, g.h1 - g.h0);
    c.parallel(rows, 1 + kChunk / (p.w.size[2] * p.w.kernel[2]), gather_rows, &g);
  }
}

template <int Isa> void run(const Call &c) {
  const Plan p = plan_of(*c.cmd);
  const Window &w = p.w;
  if (c.out(0).count == 0) return;  // no scratch either
  if (direct(*c.cmd, w)) {
    Direct d = {&c, &w};
    return c.parallel(w.items * w.groups * w.outs * w.size[0] * w.size[1], direct_grain(w), direct_f32, &d);
  }
  const Form &form = form_of(set_of(Isa), c.out(0).dtype);
  if (w.per == 0 || w.taps == 0) {
    std::memset(c.out_ptr<char>(0), 0, size_t(c.out(0).count * form.bytes));
    return;
  }
  float *scratch = static_cast<float *>(c.scratch);
  const float *x = widened(c, form, 0, scratch), *k = widened(c, form, 1, scratch + p.wide_x);
  float *sums = scratch + p.wide_x + p.wide_w, *products = sums + p.sums, *rest = products + p.products;
  const bool half = c.out(0).dtype != RLX_F32;
  for (int64_t n = 0; n < w.items; n++)
    for (int64_t g = 0; g < w.groups; g++)
      for (int64_t o = 0; o < w.outs && !c.stopped(); o += p.block) {
        const Block b = {n, g, o, min64(p.block, w.outs - o), 0, 0};
        char *y = c.out_ptr<char>(0) + ((n * w.groups + g) * w.outs + o) * p.image * form.bytes;
        block_of(c, p, b, x, k, products, rest, half ? sums : reinterpret_cast<float *>(y));
        Round r = {&form, sums, y};
        if (half) c.parallel(b.outs * p.image, kChunk, round_sums, &r);
      }
}

}  // namespace

int32_t conv_transpose_prepare(Prepare &prepare) {
  Command &c = *prepare.cmd;
  const Plan p = plan_of(c);
  if (direct(c, p.w) || p.w.per == 0 || p.w.taps == 0 || p.w.outs == 0 || p.w.items == 0) return RLX_OK;
  int64_t most = 0;
  // A run may use fewer threads, and the last blocks are smaller: other needs.
  for (int threads = 1; threads <= prepare.max_threads; threads++)
    for (int i = 0; i < 4; i++) {
      const Block b = {0, 0, 0, i % 2 == 0 ? p.block : p.w.outs % p.block, 0, i / 2 == 0 ? p.slab : p.lines % p.slab};
      matmul::GemmF32 m = {};
      product_of(p, b, nullptr, nullptr, nullptr, threads, &m);
      most = max64(most, m.scratch_bytes);
    }
  c.scratch = (p.wide_x + p.wide_w + p.sums + p.products) * int64_t(sizeof(float)) + most;
  return RLX_OK;
}

void conv_transpose_f32_generic(const Call &c, Range) { run<ISA_GENERIC>(c); }
#if defined(RLX_X86)
void conv_transpose_f32_avx2(const Call &c, Range) { run<ISA_AVX2>(c); }
void conv_transpose_f32_avx512(const Call &c, Range) { run<ISA_AVX512>(c); }
#elif defined(RLX_NEON)
void conv_transpose_f32_neon(const Call &c, Range) { run<ISA_NEON>(c); }
#endif

Split transposed_rows(const Call &c) {
  const Window w = window_of_transpose(*c.cmd);
  return {w.items * w.groups * w.outs * w.size[0] * w.size[1], direct_grain(w)};
}

void conv_transpose_f64(const Call &c, Range r) { direct_rows<double>(c, window_of_transpose(*c.cmd), r.begin, r.end); }

}  // namespace conv
}  // namespace rlx
