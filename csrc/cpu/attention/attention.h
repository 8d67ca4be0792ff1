// attention.h: what the files of Attention and Rope share.
#pragma once
#include "../core/rlx_begin.h"
#include "../core/kernel.h"
#include "../matmul/gemm_tile.h"
#include "../matmul/of_isa.h"

namespace rlx {
namespace attention {

// A tensor as [B, H, S, D], with the distance of neighbours along each axis in elements.
struct Heads {
  int64_t b, h, s, d;
  int64_t sb, sh, ss, sd;
  int64_t at(int64_t bi, int64_t hi, int64_t si) const { return bi * sb + hi * sh + si * ss; }
};

inline Heads heads_of(const Operand &o, int64_t layout, int64_t count) {
  const int64_t *n = o.dims, *st = o.strides;
  if (layout == rlx_HeadLayout_bhsd) return {n[0], n[1], n[2], n[3], st[0], st[1], st[2], st[3]};
  if (layout == rlx_HeadLayout_bshd) return {n[0], n[2], n[1], n[3], st[0], st[2], st[1], st[3]};
  const int64_t d = n[2] / count;
  return {n[0], count, n[1], d, st[0], d * st[2], st[1], st[2]};
}

// Element i of an i32 or i64 vector or matrix.
inline int64_t integer_at(const Operand &o, const void *data, int64_t i) {
  return o.dtype == RLX_I32 ? int64_t(static_cast<const int32_t *>(data)[i]) : static_cast<const int64_t *>(data)[i];
}

// ---- Attention

struct Keys { int64_t lo, hi; };  // keys [lo, hi)

struct Job {
  const Call *c;
  const matmul::TileSetF32 *tiles;
  Heads q, k, v, y;
  int64_t group;                // query heads of a kv head
  int64_t stack;                // heads of a group whose queries stand in one list, query by query
  int64_t rows, blocks;         // queries of a list; blocks of it
  bool causal, from_end;
  int64_t window;  // INT64_MAX: none
  double scale, softcap;
  const char *mask;  // null: none
  uint32_t mask_dtype;
  int64_t mask_step[4];  // along b, h, query and key
  int64_t slot_floats;   // scratch of a thread

  int64_t valid(int64_t b) const { return c->has(4) ? integer_at(c->in(4), c->in_data[4], b * c->in(4).strides[0]) : k.s; }
  // The keys that kv_len and the positional mask leave to query i.
  Keys keys(int64_t b, int64_t i) const {
    const int64_t n = valid(b);
    if (!causal) return {0, n};
    const int64_t at = from_end ? i + n - q.s : i;
    const int64_t hi = at < 0 ? 0 : at + 1 < n ? at + 1 : n;
    const int64_t lo = at > window ? at - window : 0;
    return {lo < hi ? lo : hi, hi};
  }
  int64_t mask_at(int64_t b, int64_t h, int64_t i) const { return b * mask_step[0] + h * mask_step[1] + i * mask_step[2]; }
};

constexpr int64_t KEYS = 64;     // of a block
constexpr int64_t QUERIES = 64;  // of a block, where there are as many
static_assert(QUERIES % matmul::kMaxTileCols == 0, "whole tiles");

// Parts of the scratch of a thread, in floats, for head sizes d and dv.
struct Scratch {
  int64_t queries, scores, bias, sums, keys, values, rows, total;
};
inline Scratch scratch_of(int64_t d, int64_t dv, int64_t cols) {
  const int64_t wide = (dv + cols - 1) / cols * cols;
  const int64_t sizes[] = {QUERIES * d, KEYS * QUERIES, KEYS * QUERIES, QUERIES * wide, KEYS * d, KEYS * wide, 6 * QUERIES};
  int64_t at[8] = {};
  for (int i = 0; i < 7; i++) at[i + 1] = at[i] + (sizes[i] + 15) / 16 * 16;
  return {at[0], at[1], at[2], at[3], at[4], at[5], at[6], at[7]};
}

// Block u of queries, in f32 lanes; slot is the thread's scratch.
typedef void (*AttentionUnit)(const Job &j, int64_t u, float *slot);

// ---- Rope

struct RopeJob {
  const Call *c;
  Heads x, y;
  int64_t half;  // pairs
  bool interleaved;
  int64_t row(int64_t b, int64_t s) const {  // of a [P, R] table, for token s
    if (!c->has(3)) return s;
    const Operand &p = c->in(3);
    const int64_t at = p.rank == 1 ? s * p.strides[0] : (p.dims[0] == 1 ? 0 : b * p.strides[0]) + s * p.strides[1];
    return integer_at(p, c->in_data[3], at);
  }
};
// The heads of one token: cos and sin are its row.
typedef void (*RopeToken)(const RopeJob &j, int64_t b, int64_t s, const float *cos, const float *sin);

// What an instruction set does.
struct Set {
  const matmul::TileSetF32 *tiles;
  AttentionUnit f32, f16, bf16;
  RopeToken rope_f32, rope_f16, rope_bf16;
};
extern const Set set_generic, set_avx2, set_avx512, set_neon;

inline const Set &set_of(int isa) { return matmul::of_isa<set_generic, set_avx2, set_avx512, set_neon>(isa); }

}  // namespace attention
}  // namespace rlx
