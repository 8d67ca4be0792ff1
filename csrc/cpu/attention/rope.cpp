// Rope: tokens are independent. cos and sin of a token are read once, as f32 (f64 for f64), and turn all of its heads.
#include "../core/rlx_begin.h"

#include "../elementwise/convert.h"
#include "attention.h"

namespace rlx {
namespace attention {
namespace {

constexpr int64_t WORK = 1 << 13;  // elements of a piece of work

RopeJob plan(const Command &c) {
  const rlx_RopeAttrs &a = *static_cast<const rlx_RopeAttrs *>(c.attrs);
  RopeJob j = {};
  j.x = heads_of(c.in[0], a.layout, a.num_heads), j.y = heads_of(c.out[0], a.layout, a.num_heads);
  j.half = (a.rotary_dim != 0 ? a.rotary_dim : j.x.d) / 2;
  j.interleaved = a.interleaved != 0;
  return j;
}

// Where rows of a table lie; a table of rank 3 has a row for each token.
struct Table {
  int operand;
  int64_t b, row, col;
};
Table table_of(const RopeJob &j, int operand) {
  const Operand &o = j.c->in(operand);
  const int r = int(o.rank);
  return {operand, r == 3 && o.dims[0] != 1 ? o.strides[0] : 0, o.strides[r - 2], o.strides[r - 1]};
}

// The first columns of a row, as float or double.
template <class T> void read_row(const RopeJob &j, const Table &t, int64_t b, int64_t row, T *dst) {
  const Call &c = *j.c;
  const int64_t at = b * t.b + row * t.row;
  for (int64_t i = 0; i < j.half; i++) {
    const int64_t k = at + i * t.col;
    switch (c.in(t.operand).dtype) {
      case RLX_F32: dst[i] = T(c.in_ptr<float>(t.operand)[k]); break;
      case RLX_F64: dst[i] = T(c.in_ptr<double>(t.operand)[k]); break;
      case RLX_F16: dst[i] = T(elementwise::f64_from_f16(c.in_ptr<uint16_t>(t.operand)[k])); break;
      default: dst[i] = T(elementwise::f64_from_bf16(c.in_ptr<uint16_t>(t.operand)[k])); break;
    }
  }
}

// False, and the run fails, where a position is no row of the table.
bool check_positions(const RopeJob &j) {
  const Call &c = *j.c;
  if (c.in(1).rank == 3) return true;
  const int64_t rows = c.in(1).dims[0], batch = c.has(3) && c.in(3).rank == 2 ? c.in(3).dims[0] : 1;
  for (int64_t b = 0; b < batch; b++)
    for (int64_t s = 0; s < j.x.s; s++) {
      const int64_t p = j.row(b, s);
      if (p >= 0 && p < rows) continue;
      c.fail("C5", "position %lld, expected in 0..%lld", (long long)p, (long long)rows - 1);
      return false;
    }
  return true;
}

void token_f64(const RopeJob &j, int64_t b, int64_t s, const double *cos, const double *sin) {
  const int64_t step = j.x.sd, next = j.interleaved ? 1 : j.half, pair = j.interleaved ? 2 : 1;
  for (int64_t h = 0; h < j.x.h; h++) {
    const double *x = j.c->in_ptr<double>(0) + j.x.at(b, h, s);
    double *y = j.c->out_ptr<double>(0) + j.y.at(b, h, s);
    for (int64_t i = 0; i < j.half; i++) {
      const double p = x[i * pair * step], q = x[(i * pair + next) * step];
      y[i * pair] = p * cos[i] - q * sin[i];
      y[i * pair + next] = q * cos[i] + p * sin[i];
    }
    for (int64_t i = 2 * j.half; i < j.x.d; i++) y[i] = x[i * step];
  }
}

struct Pass {
  const RopeJob *j;
  RopeToken token;
  Table cos, sin;
};

void tokens(void *ctx, int64_t begin, int64_t end, int slot) {
  const Pass &p = *static_cast<const Pass *>(ctx);
  const RopeJob &j = *p.j;
  const bool each = j.c->in(1).rank == 3;
  double *wide = static_cast<double *>(j.c->scratch) + slot * 2 * j.half;
  float *narrow = reinterpret_cast<float *>(wide);
  for (int64_t u = begin; u < end && !j.c->stopped(); u++) {
    const int64_t b = u / j.x.s, s = u % j.x.s, row = each ? s : j.row(b, s);
    if (p.token == nullptr) {
      read_row(j, p.cos, b, row, wide), read_row(j, p.sin, b, row, wide + j.half);
      token_f64(j, b, s, wide, wide + j.half);
    } else {
      read_row(j, p.cos, b, row, narrow), read_row(j, p.sin, b, row, narrow + j.half);
      p.token(j, b, s, narrow, narrow + j.half);
    }
  }
}

void run(const Call &c, RopeToken token) {
  RopeJob j = plan(*c.cmd);
  j.c = &c;
  if (!check_positions(j)) return;
  Pass p = {&j, token, table_of(j, 1), table_of(j, 2)};
  c.parallel(j.x.b * j.x.s, 1 + WORK / (1 + j.x.h * j.x.d), tokens, &p);
}

void run(const Call &c, int isa) {
  const Set &s = set_of(isa);
  const uint32_t d = c.in(0).dtype;
  run(c, d == RLX_F16 ? s.rope_f16 : d == RLX_BF16 ? s.rope_bf16 : s.rope_f32);
}

}  // namespace

int32_t rope_prepare(Prepare &prepare) {
  prepare.cmd->scratch = prepare.max_threads * 2 * plan(*prepare.cmd).half * int64_t(sizeof(double));
  return RLX_OK;
}

void rope_generic(const Call &c, Range) { run(c, ISA_GENERIC); }
#if defined(RLX_X86)
void rope_avx2(const Call &c, Range) { run(c, ISA_AVX2); }
void rope_avx512(const Call &c, Range) { run(c, ISA_AVX512); }
#elif defined(RLX_NEON)
void rope_neon(const Call &c, Range) { run(c, ISA_NEON); }
#endif
void rope_f64(const Call &c, Range) { run(c, RopeToken(nullptr)); }

}  // namespace attention
}  // namespace rlx
