// layer.h: what the files of Lstm, Gru and Rnn share.
#pragma once
#include "../core/rlx_begin.h"
#include "../core/kernel.h"
#include "../matmul/gemm_tile.h"

namespace rlx {
namespace sequence {

// How a cell makes the next state of its gates.
enum Cell { LSTM, GRU, GRU_RESET_FIRST, RNN_TANH, RNN_RELU };

struct Layer {
  Cell cell;
  int64_t batch, steps, in, dirs, hidden, gates;
  bool reverse;  // of a single direction
  double clip;   // 0: off
  int seq_len;   // operand; h0 is operand 5, c0 6, the peephole 8

  bool backward(int64_t d) const { return dirs == 2 ? d == 1 : reverse; }
};

inline Layer layer_of(const DecodedCommand &c) {
  Layer l = {};
  l.batch = c.in[0].dims[0], l.steps = c.in[0].dims[1], l.in = c.in[0].dims[2];
  l.dirs = c.in[2].dims[0], l.hidden = c.in[2].dims[2];
  int64_t direction = 0;
  l.seq_len = 6;
  if (c.op == RLX_OP_Lstm) {
    const rlx_LstmAttrs &a = *static_cast<const rlx_LstmAttrs *>(c.attrs);
    l.cell = LSTM, l.gates = 4, l.seq_len = 7, l.clip = a.clip, direction = a.direction;
  } else if (c.op == RLX_OP_Gru) {
    const rlx_GruAttrs &a = *static_cast<const rlx_GruAttrs *>(c.attrs);
    l.cell = a.linear_before_reset != 0 ? GRU : GRU_RESET_FIRST, l.gates = 3, l.clip = a.clip, direction = a.direction;
  } else {
    const rlx_RnnAttrs &a = *static_cast<const rlx_RnnAttrs *>(c.attrs);
    l.cell = a.activation == rlx_RnnActivation_relu ? RNN_RELU : RNN_TANH, l.gates = 1, l.clip = a.clip, direction = a.direction;
  }
  l.reverse = direction == rlx_Direction_reverse;
  return l;
}

// seq_len[b]; all steps where it is absent.
inline int64_t length_at(const Call &c, const Layer &l, int64_t b) {
  if (!c.has(l.seq_len)) return l.steps;
  const Operand &o = c.in(l.seq_len);
  const int64_t at = b * o.strides[0];
  return o.dtype == RLX_I32 ? int64_t(c.in_ptr<int32_t>(l.seq_len)[at]) : c.in_ptr<int64_t>(l.seq_len)[at];
}

// False, and the run fails, where a length is outside 0..S.
inline bool check_lengths(const Call &c, const Layer &l) {
  for (int64_t b = 0; b < l.batch; b++) {
    const int64_t n = length_at(c, l, b);
    if (n >= 0 && n <= l.steps) continue;
    c.fail("C5", "seq_len %lld, expected in 0..%lld", (long long)n, (long long)l.steps);
    return false;
  }
  return true;
}

// ---- f32, f16 and bf16. Hidden units are padded to `wide`, whole tiles.

// One step of one direction, on memory of the run in f32.
struct Step {
  const Layer *l;
  const Call *c;
  const matmul::TileSetF32 *tiles;
  int64_t d, t, wide;
  const float *h;      // [B][wide] before the step
  float *next;         // [B][wide] after it
  float *cell;         // [B][wide], of an Lstm
  float *z;            // [B][gates][wide]: x W_ih^T; the gates on the way
  float *inner;        // [B][wide]: what Gru's reset gate multiplies, or its product
  const float *bias;   // [gates][wide]
  const float *after;  // [wide]: Gru's b_hh of n, inside of what the reset gate multiplies
  const float *peep;   // [3][wide], zeros without one
  const float *w;      // W_hh: panels [hidden][cols] of each gate
  const int64_t *lengths;  // null: all full

  // x W_ih^T of the steps of the next group, a part in each step of this one. Column i of x and z_of[i] belong to step i of it; turn is the
  // number of this step in its group.
  const float *x, *wih;  // x: [in][kGroup]
  int64_t rows, turn;    // rows: 0 for none
  float *z_of[8];
};
constexpr int64_t kGroup = 8;  // steps of a group

// Units [u, u + cols) of rows [row, row + rows) of a step; phase 0 of 1, or of 2 for GRU_RESET_FIRST.
typedef void (*StepUnit)(const Step &s, int phase, int64_t u, int64_t row, int64_t rows);

struct Set {
  const matmul::TileSetF32 *tiles;
  struct Form {
    StepUnit step;
    StepUnit overlapped;  // of an Lstm and one sequence, with its part of the next group's x W_ih^T; null: none
    // Columns [0, n) of a k-row panel of cols: dst[i * cols + j] = src[i * sk + j * sj].
    void (*pack)(float *dst, int cols, const void *src, int64_t sk, int64_t sj, int64_t k, int64_t n);
    void (*take)(float *dst, const void *src, int64_t step, int64_t n);
    void (*put)(void *dst, const float *src, int64_t n);
  } f32, f16, bf16;
};
extern const Set set_generic, set_avx2, set_avx512, set_neon;

}  // namespace sequence
}  // namespace rlx
