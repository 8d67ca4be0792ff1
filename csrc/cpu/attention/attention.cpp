// Attention: how it is cut into blocks of queries, and f64. Contract: scores of d terms in one accumulator each, softmax and the sums over
// keys in f32 (f64 for f64), one rounding at the end; a query has the same bits whatever the threads. Scratch grows with the head sizes
// and not with the number of keys, but for f64.
#include "../core/rlx_begin.h"

#include "attention.h"

namespace rlx {
namespace attention {
namespace {

constexpr int64_t WORK = 1 << 16;  // multiplications of a piece of work

// Steps of the mask along [B, H, Sq, Sk], to which it broadcasts.
void mask_steps(const Operand &m, int64_t *step) {
  for (int k = 0; k < 4; k++) {
    const int d = int(m.rank) - 4 + k;
    step[k] = d < 0 || m.dims[d] == 1 ? 0 : m.strides[d];
  }
}

// Everything but the memory and the instruction set.
Job plan(const Command &c) {
  const rlx_AttentionAttrs &a = *static_cast<const rlx_AttentionAttrs *>(c.attrs);
  const int64_t kv_heads = a.num_kv_heads != 0 ? a.num_kv_heads : a.num_heads;
  Job j = {};
  j.q = heads_of(c.in[0], a.layout, a.num_heads), j.y = heads_of(c.out[0], a.layout, a.num_heads);
  j.k = heads_of(c.in[1], a.layout, kv_heads), j.v = heads_of(c.in[2], a.layout, kv_heads);
  j.group = j.q.h / j.k.h;
  // Few queries share a block with those of the other heads that read the same keys.
  j.stack = 2 * j.q.s < QUERIES && j.group > 0 ? j.group : 1;
  j.rows = j.stack * j.q.s, j.blocks = (j.rows + QUERIES - 1) / QUERIES;
  j.causal = a.mask != rlx_AttentionMask_none, j.from_end = a.align == rlx_AttentionAlign_bottom_right;
  j.window = a.mask == rlx_AttentionMask_sliding_window ? a.window.v : INT64_MAX;
  j.scale = a.scale != 0 ? a.scale : 1 / ::sqrt(double(j.q.d > 1 ? j.q.d : 1));
  j.softcap = a.softcap;
  return j;
}

void bind(const Call &c, Job *j) {
  j->c = &c;
  if (!c.has(3)) return;
  j->mask = c.in_ptr<char>(3), j->mask_dtype = c.in(3).dtype;
  mask_steps(c.in(3), j->mask_step);
}

// False, and the run fails, where a kv_len is outside 0..Sk.
bool check_lengths(const Call &c, const Job &j) {
  for (int64_t b = 0; c.has(4) && b < j.q.b; b++) {
    const int64_t n = j.valid(b);
    if (n >= 0 && n <= j.k.s) continue;
    c.fail("C5", "kv_len %lld, expected in 0..%lld", (long long)n, (long long)j.k.s);
    return false;
  }
  return true;
}

struct Pass {
  const Job *j;
  AttentionUnit unit;
};
void units(void *ctx, int64_t begin, int64_t end, int slot) {
  const Pass &p = *static_cast<const Pass *>(ctx);
  float *mine = static_cast<float *>(p.j->c->scratch) + slot * p.j->slot_floats;
  for (int64_t u = begin; u < end && !p.j->c->stopped(); u++) p.unit(*p.j, u, mine);
}

void run(const Call &c, int isa) {
  const Set &s = set_of(isa);
  Job j = plan(*c.cmd);
  bind(c, &j);
  if (!check_lengths(c, j)) return;
  j.tiles = s.tiles;
  j.slot_floats = scratch_of(j.q.d, j.v.d, s.tiles->cols).total;
  const uint32_t d = c.in(0).dtype;
  Pass p = {&j, d == RLX_F16 ? s.f16 : d == RLX_BF16 ? s.bf16 : s.f32};
  const int64_t work = 1 + (j.rows < QUERIES ? j.rows : QUERIES) * j.k.s * (j.q.d + j.v.d + 1);
  c.parallel(j.q.b * (j.q.h / j.stack) * j.blocks, 1 + WORK / work, units, &p);
}

// ---- f64: one query at a time

double mask_f64(const Job &j, int64_t at) {
  switch (j.mask_dtype) {
    case RLX_BOOL: return reinterpret_cast<const uint8_t *>(j.mask)[at] != 0 ? 0.0 : -double(INFINITY);
    case RLX_F32: return double(reinterpret_cast<const float *>(j.mask)[at]);
    default: return reinterpret_cast<const double *>(j.mask)[at];
  }
}

// p[i] becomes the score of key i; returns the greatest.
double score_f64(const Job &j, int64_t b, int64_t h, int64_t i, Keys keys, double *p) {
  const double *q = j.c->in_ptr<double>(0) + j.q.at(b, h, i), *k = j.c->in_ptr<double>(1) + j.k.at(b, h / j.group, 0);
  const int64_t at = j.mask == nullptr ? 0 : j.mask_at(b, h, i);
  double top = -double(INFINITY);
  for (int64_t t = keys.lo; t < keys.hi; t++) {
    double z = 0;
    for (int64_t d = 0; d < j.q.d; d++) z += q[d * j.q.sd] * k[t * j.k.ss + d * j.k.sd];
    z *= j.scale;
    if (j.softcap > 0) z = j.softcap * ::tanh(z / j.softcap);
    if (j.mask != nullptr) {
      const double m = mask_f64(j, at + t * j.mask_step[3]);
      z = j.mask_dtype != RLX_BOOL ? z + m : m == 0 ? z : m;
    }
    if (z > top || z != z) top = z;
    p[t] = z;
  }
  return top;
}

void row_f64(const Job &j, int64_t b, int64_t h, int64_t i, double *p) {
  const Keys keys = j.keys(b, i);
  const double top = score_f64(j, b, h, i, keys, p);
  const bool empty = top == -double(INFINITY);
  double sum = 0;
  for (int64_t t = keys.lo; t < keys.hi && !empty; t++) sum += p[t] = ::exp(p[t] - top);
  const double *v = j.c->in_ptr<double>(2) + j.v.at(b, h / j.group, 0);
  double *y = j.c->out_ptr<double>(0) + j.y.at(b, h, i);
  for (int64_t d = 0; d < j.v.d; d++) y[d] = 0;
  for (int64_t t = keys.lo; t < keys.hi && !empty; t++) {
    const double f = p[t] / sum;
    for (int64_t d = 0; d < j.v.d; d++) y[d] += f * v[t * j.v.ss + d * j.v.sd];
  }
}

void rows_f64(void *ctx, int64_t begin, int64_t end, int slot) {
  const Job &j = *static_cast<const Job *>(ctx);
  double *p = static_cast<double *>(j.c->scratch) + slot * j.k.s;
  for (int64_t u = begin; u < end && !j.c->stopped(); u++) row_f64(j, u / (j.q.h * j.q.s), u / j.q.s % j.q.h, u % j.q.s, p);
}

}  // namespace

int32_t attention_prepare(Prepare &prepare) {
  const Job j = plan(*prepare.cmd);
  prepare.cmd->scratch = prepare.max_threads * scratch_of(j.q.d, j.v.d, set_of(prepare.isa).tiles->cols).total * int64_t(sizeof(float));
  return RLX_OK;
}

int32_t attention_f64_prepare(Prepare &prepare) {
  prepare.cmd->scratch = prepare.max_threads * plan(*prepare.cmd).k.s * int64_t(sizeof(double));
  return RLX_OK;
}

void attention_generic(const Call &c, Range) { run(c, ISA_GENERIC); }
#if defined(RLX_X86)
void attention_avx2(const Call &c, Range) { run(c, ISA_AVX2); }
void attention_avx512(const Call &c, Range) { run(c, ISA_AVX512); }
#elif defined(RLX_NEON)
void attention_neon(const Call &c, Range) { run(c, ISA_NEON); }
#endif

void attention_f64(const Call &c, Range) {
  Job j = plan(*c.cmd);
  bind(c, &j);
  if (!check_lengths(c, j)) return;
  c.parallel(j.q.b * j.q.h * j.q.s, 1 + WORK / 4 / (1 + j.k.s * (j.q.d + j.v.d)), rows_f64, &j);
}

}  // namespace attention
}  // namespace rlx
