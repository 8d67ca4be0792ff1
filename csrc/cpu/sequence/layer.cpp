// Lstm, Gru and Rnn of f32, f16 and bf16. Contract: x W_ih^T of many steps at once by the GEMM engine, or, for an Lstm of one sequence, beside
// h W_hh^T of the steps before; then, step by step, h W_hh^T is added in the same accumulators and the cell computed, in f32; results round once. A row of the batch has the same bits whatever the
// batch, the threads and the number of steps taken at once.
//
// The hidden units of a tile are one unit of work of a step: it makes all their gates, so that threads meet once a step (twice where Gru
// resets before its product). Steps of y behind a sequence's length are 0 and keep its state, which holds for both directions.
#include "../core/rlx_begin.h"

#include "../matmul/gemm.h"
#include "../matmul/of_isa.h"
#include "layer.h"

namespace rlx {
namespace sequence {
namespace {

constexpr int64_t kChunkFloats = 1 << 20;  // of x W_ih^T at once
constexpr int64_t kUnitFma = 1 << 15;      // less is not worth another thread

int64_t align16(int64_t n) { return (n + 15) & ~int64_t(15); }

const Set &set_of(int isa) { return matmul::of_isa<set_generic, set_avx2, set_avx512, set_neon>(isa); }
const Set::Form &form_of(const Set &s, uint32_t dtype) { return dtype == RLX_F16 ? s.f16 : dtype == RLX_BF16 ? s.bf16 : s.f32; }
int bytes_of(uint32_t dtype) { return dtype == RLX_F32 ? 4 : 2; }

// Where things lie in scratch, in floats.
struct Plan {
  Layer l;
  const Set *set;
  const Set::Form *form;
  int bytes;             // of an element
  int64_t wide, chunk;   // hidden units in whole tiles; steps at once
  int64_t wih, whh;      // floats of the packed weights of all directions
  int64_t at_wih, at_whh, at_bias, at_after, at_peep, at_h, at_cell, at_inner, at_z, at_x, at_lengths, at_gemm;
  int64_t state;         // floats of a state of one direction
  bool overlaps;         // x W_ih^T is computed beside h W_hh^T
};

// The product of one chunk of one direction, without its memory.
matmul::GemmF32 product(const Plan &p, const Command &c, int64_t steps, int threads) {
  const Layer &l = p.l;
  matmul::GemmF32 g = {};
  g.m = steps, g.n = l.hidden, g.k = l.in;
  if (p.bytes == 4) {
    g.a_rs = c.in[0].strides[1], g.a_cs = c.in[0].strides[2], g.a_bs[1] = c.in[0].strides[0];
  } else { // converted: [batch][steps][in]
    g.a_rs = l.in, g.a_cs = 1, g.a_bs[1] = steps * l.in;
  }
  static const float none = 0;
  g.packed_b = &none;  // the blocking depends on whether b is packed; the memory follows
  g.c_rs = l.batch * l.gates * p.wide;
  g.batch_rank = 2;
  g.batch[0] = l.gates, g.batch[1] = l.batch;
  g.b_bs[0] = p.wide * l.in;
  g.c_bs[0] = p.wide, g.c_bs[1] = l.gates * p.wide;
  matmul::gemm_f32_plan(&g, threads);
  return g;
}

Plan plan_of(const Command &c, int isa) {
  Plan p = {};
  const Layer l = p.l = layer_of(c);
  p.set = &set_of(isa), p.form = &form_of(*p.set, c.in[0].dtype), p.bytes = bytes_of(c.in[0].dtype);
  const int64_t cols = p.set->tiles->cols;
  p.wide = (l.hidden + cols - 1) / cols * cols;
  p.overlaps = l.cell == LSTM && l.batch == 1 && p.form->overlapped != nullptr;
  const int64_t each = l.dirs * l.batch * l.gates * p.wide;
  p.chunk = p.overlaps ? 2 * kGroup : max64(1, min64(l.steps, kChunkFloats / max64(1, each)));
  p.wih = l.dirs * l.gates * p.wide * l.in, p.whh = l.dirs * l.gates * p.wide * l.hidden;
  p.state = align16(l.batch * p.wide);
  int64_t at = 0;
  const auto take = [&at](int64_t floats) {
    const int64_t here = at;
    at += align16(floats);
    return here;
  };
  p.at_bias = take(l.dirs * l.gates * p.wide), p.at_after = take(l.dirs * p.wide), p.at_peep = take(l.dirs * 3 * p.wide);
  p.at_h = take(2 * l.dirs * p.state), p.at_cell = take(l.dirs * p.state), p.at_inner = take(l.dirs * p.state);
  p.at_z = take(p.chunk * each);
  p.at_x = take(p.overlaps ? l.dirs * kGroup * l.in : p.bytes == 4 ? 0 : p.chunk * l.batch * l.in);
  p.at_lengths = take(2 * l.batch);
  p.at_wih = take(c.packed != nullptr ? 0 : p.wih), p.at_whh = take(c.detail[0] != 0 ? 0 : p.whh);
  p.at_gemm = at;
  return p;
}

// W as panels [k][cols] of each direction and gate; k is the length of its rows.
struct Packing {
  const Plan *p;
  const Operand *w;
  const char *src;
  float *dst;
  int64_t k;
};
void pack_panels(void *ctx, int64_t begin, int64_t end, int) {
  const Packing &k = *static_cast<const Packing *>(ctx);
  const Layer &l = k.p->l;
  const int64_t cols = k.p->set->tiles->cols, panels = k.p->wide / cols;
  for (int64_t u = begin; u < end; u++) {
    const int64_t first = u % panels * cols, gate = u / panels % l.gates, d = u / panels / l.gates;
    const int64_t at = d * k.w->strides[0] + (gate * l.hidden + first) * k.w->strides[1];
    k.p->form->pack(k.dst + u * cols * k.k, int(cols), k.src + at * k.p->bytes, k.w->strides[2], k.w->strides[1], k.k, min64(cols, l.hidden - first));
  }
}
int64_t panels_of(const Plan &p) { return p.l.dirs * p.l.gates * (p.wide / p.set->tiles->cols); }

// The inverse of pack_panels for f32; how is the gates of a direction and the columns of a panel.
void unpack_panels(const Operand &w, const int64_t *how, const char *packed, char *raw) {
  const int64_t gates = how[0], cols = how[1], hidden = w.dims[1] / gates, k = w.dims[2], panels = (hidden + cols - 1) / cols;
  const float *from = reinterpret_cast<const float *>(packed);
  float *to = reinterpret_cast<float *>(raw);
  for (int64_t u = 0; u < w.dims[0] * gates * panels; u++, from += k * cols) {
    const int64_t first = u % panels * cols, gate = u / panels % gates, d = u / panels / gates;
    for (int64_t j = 0; j < min64(cols, hidden - first); j++)
      for (int64_t i = 0; i < k; i++) to[d * w.strides[0] + (gate * hidden + first + j) * w.strides[1] + i * w.strides[2]] = from[i * cols + j];
  }
}

// Packs constant operand i into the weights; *out stays null where it is no constant.
int32_t pack_constant(Prepare &prepare, const Plan &p, int i, int64_t floats, float **out) {
  *out = nullptr;
  if (!prepare.constant_view(prepare, i) || floats == 0) return RLX_OK;
  const Operand &w = prepare.cmd->in[i];
  const int64_t cols = p.set->tiles->cols;
  const PackedForm form = {uint64_t(prepare.cmd->op) << 32 | uint64_t(cols), floats * int64_t(sizeof(float)), p.bytes == 4 ? unpack_panels : nullptr, {p.l.gates, cols}};
  bool fresh = false;
  *out = static_cast<float *>(prepare.cache(prepare, i, form, &fresh));
  const void *src = fresh ? prepare.source(prepare, i) : nullptr;
  if (*out == nullptr || (fresh && src == nullptr)) return RLX_NO_MEMORY;
  Packing k = {&p, &w, static_cast<const char *>(src), *out, w.dims[2]};
  if (fresh) parallel(prepare.pool, prepare.max_threads, panels_of(p), 1, pack_panels, &k, nullptr);
  return RLX_OK;
}

// ---- a run

struct Run {
  const Call *c;
  Plan p;
  float *mem;  // scratch
  const float *wih, *whh;
  const int64_t *lengths;
  Step steps[2];
  int phase;
  int64_t rows, blocks;  // of a unit; of the batch
  int64_t first, count;  // steps of the chunk
};

// A padded vector of floats: element j of dims [D, n * H] for direction d and block g.
void read_vector(const Run &r, int operand, int64_t d, int64_t g, float *dst, bool add) {
  const Layer &l = r.p.l;
  if (!add) std::memset(dst, 0, size_t(r.p.wide) * sizeof(float));
  if (!r.c->has(operand)) return;
  const Operand &o = r.c->in(operand);
  const char *src = r.c->in_ptr<char>(operand) + (d * o.strides[0] + g * l.hidden * o.strides[1]) * r.p.bytes;
  float part[64];
  for (int64_t i = 0; i < l.hidden; i += 64) {
    const int64_t n = min64(64, l.hidden - i);
    r.p.form->take(part, src + i * o.strides[1] * r.p.bytes, o.strides[1], n);
    for (int64_t k = 0; k < n; k++) dst[i + k] += part[k];
  }
}

void read_state(const Run &r, int operand, int64_t d, float *dst) {
  std::memset(dst, 0, size_t(r.p.state) * sizeof(float));
  if (!r.c->has(operand)) return;
  const Operand &o = r.c->in(operand);
  for (int64_t b = 0; b < r.p.l.batch; b++) {
    const char *src = r.c->in_ptr<char>(operand) + (d * o.strides[0] + b * o.strides[1]) * r.p.bytes;
    r.p.form->take(dst + b * r.p.wide, src, o.strides[2], r.p.l.hidden);
  }
}

void put_state(const Run &r, int result, int64_t d, const float *src) {
  const Layer &l = r.p.l;
  char *dst = r.c->out_ptr<char>(result) + d * l.batch * l.hidden * r.p.bytes;
  for (int64_t b = 0; b < l.batch; b++) r.p.form->put(dst + b * l.hidden * r.p.bytes, src + b * r.p.wide, l.hidden);
}

const float *packed(const Run &r, int operand, const void *have, float *dst, int64_t k) {
  if (have != nullptr) return static_cast<const float *>(have);
  Packing job = {&r.p, &r.c->in(operand), r.c->in_ptr<char>(operand), dst, k};
  r.c->parallel(panels_of(r.p), 1 + (1 << 14) / (1 + k * r.p.set->tiles->cols), pack_panels, &job);
  return dst;
}

// Biases, peepholes and states of direction d, and what never changes in its steps.
void start(Run *r, int64_t d) {
  const Plan &p = r->p;
  const Layer &l = p.l;
  float *bias = r->mem + p.at_bias + d * l.gates * p.wide, *after = r->mem + p.at_after + d * p.wide, *peep = r->mem + p.at_peep + d * 3 * p.wide;
  for (int64_t g = 0; g < l.gates; g++) {
    const bool apart = g == 2 && l.cell != LSTM;  // Gru's n keeps b_hh by itself
    read_vector(*r, 3, d, g, bias + g * p.wide, false);
    read_vector(*r, 4, d, g, apart ? after : bias + g * p.wide, !apart);
  }
  for (int64_t g = 0; g < 3; g++) {
    if (l.cell == LSTM) read_vector(*r, 8, d, g, peep + g * p.wide, false);
  }
  Step &s = r->steps[d];
  float *h = r->mem + p.at_h + 2 * d * p.state, *cell = r->mem + p.at_cell + d * p.state;
  read_state(*r, 5, d, h);
  if (l.cell == LSTM) read_state(*r, 6, d, cell);
  s = {};
  s.l = &r->p.l, s.c = r->c, s.tiles = p.set->tiles, s.d = d, s.wide = p.wide;
  s.h = h, s.next = h + p.state, s.cell = cell, s.inner = r->mem + p.at_inner + d * p.state;
  s.bias = bias, s.after = after, s.peep = peep;
  s.w = r->whh + d * l.gates * p.wide * l.hidden;
  s.lengths = r->lengths;
}

// Input of a chunk of f16 or bf16, as f32 [batch][steps][in].
struct Rows {
  const Run *r;
  int64_t first;
};
void convert_rows(void *ctx, int64_t begin, int64_t end, int) {
  const Rows &k = *static_cast<const Rows *>(ctx);
  const Run &r = *k.r;
  const Operand &x = r.c->in(0);
  for (int64_t u = begin; u < end; u++) {
    const int64_t at = u / r.count * x.strides[0] + (k.first + u % r.count) * x.strides[1];
    r.p.form->take(r.mem + r.p.at_x + u * r.p.l.in, r.c->in_ptr<char>(0) + at * r.p.bytes, x.strides[2], r.p.l.in);
  }
}

// z of direction d for steps [first, first + count) of time.
void project(const Run &r, int64_t d, int64_t first) {
  const Plan &p = r.p;
  const Layer &l = p.l;
  matmul::GemmF32 g = product(p, *r.c->cmd, r.count, r.c->threads());
  g.packed_b = r.wih + d * l.gates * p.wide * l.in;
  g.c = r.mem + p.at_z + d * p.chunk * l.batch * l.gates * p.wide;
  if (p.bytes == 4) {
    g.a = r.c->in_ptr<float>(0) + first * r.c->in(0).strides[1];
  } else {
    Rows k = {&r, first};
    r.c->parallel(l.batch * r.count, 1 + (1 << 13) / (1 + l.in), convert_rows, &k);
    g.a = r.mem + p.at_x;
  }
  matmul::gemm_f32(r.c->pool(), r.c->threads(), &g, r.mem + p.at_gemm, r.c->cancel());
}

void step_units(void *ctx, int64_t begin, int64_t end, int) {
  const Run &r = *static_cast<const Run *>(ctx);
  const int64_t cols = r.p.set->tiles->cols, panels = r.p.wide / cols;
  for (int64_t u = begin; u < end; u++) {
    const int64_t row = u % r.blocks * r.rows, panel = u / r.blocks % panels, d = u / r.blocks / panels;
    r.p.form->step(r.steps[d], r.phase, panel * cols, row, min64(r.rows, r.p.l.batch - row));
  }
}

// Where step k of an overlapped direction d is: its time, and its z among those of two groups.
int64_t time_of(const Run &r, int64_t d, int64_t k) { return r.p.l.backward(d) ? r.p.l.steps - 1 - k : k; }
float *z_of(const Run &r, int64_t d, int64_t k) { return r.mem + r.p.at_z + (d * 2 * kGroup + k % (2 * kGroup)) * r.p.l.gates * r.p.wide; }

// Step k of direction d: its z, and what it computes of the next group.
void aim(Run *r, int64_t d, int64_t k) {
  const Layer &l = r->p.l;
  Step &s = r->steps[d];
  const int64_t next = (k / kGroup + 1) * kGroup;
  s.t = time_of(*r, d, k), s.z = z_of(*r, d, k);
  s.turn = k % kGroup, s.rows = max64(0, min64(kGroup, l.steps - next));
  float *x = r->mem + r->p.at_x + d * kGroup * l.in;
  s.x = x;
  s.wih = r->wih + d * l.gates * r->p.wide * l.in;
  for (int64_t i = 0; i < s.rows; i++) s.z_of[i] = z_of(*r, d, next + i);
  if (s.turn != 0 || s.rows == 0) return;
  const int64_t *step = r->c->in(0).strides;
  r->p.form->pack(x, int(kGroup), r->c->in_ptr<float>(0) + time_of(*r, d, next) * step[1], step[2], l.backward(d) ? -step[1] : step[1], l.in, s.rows);
}

void swap_states(Run *r) {
  for (int64_t d = 0; d < r->p.l.dirs; d++) {
    Step &s = r->steps[d];
    float *old = const_cast<float *>(s.h);
    s.h = s.next, s.next = old;
  }
}

void overlapped_units(void *ctx, int64_t begin, int64_t end, int) {
  const Run &r = *static_cast<const Run *>(ctx);
  const int64_t cols = r.p.set->tiles->cols, panels = r.p.wide / cols;
  for (int64_t i = begin; i < end; i++) {
    // Every second step goes backward: what the one before used last is still near.
    const int64_t u = r.steps[0].turn % 2 == 0 ? i : r.p.l.dirs * panels - 1 - i;
    r.p.form->overlapped(r.steps[u / panels], 0, u % panels * cols, 0, 1);
  }
}

// All steps of one sequence: x W_ih^T of the first group by the GEMM engine, then of each group in the steps of the one before.
void run_overlapped(Run *r) {
  const Plan &p = r->p;
  const Layer &l = p.l;
  for (int64_t d = 0; d < l.dirs; d++) {
    matmul::GemmF32 g = product(p, *r->c->cmd, min64(kGroup, l.steps), r->c->threads());
    g.packed_b = r->wih + d * l.gates * p.wide * l.in;
    g.a = r->c->in_ptr<float>(0) + time_of(*r, d, 0) * r->c->in(0).strides[1];
    if (l.backward(d)) g.a_rs = -g.a_rs;
    g.c = z_of(*r, d, 0);
    matmul::gemm_f32(r->c->pool(), r->c->threads(), &g, r->mem + p.at_gemm, r->c->cancel());
  }
  const int64_t cols = p.set->tiles->cols, units = l.dirs * (p.wide / cols), fma = l.gates * cols * (l.hidden + l.in + 16);
  for (int64_t k = 0; k < l.steps && !r->c->stopped(); k++) {
    for (int64_t d = 0; d < l.dirs; d++) aim(r, d, k);
    r->c->parallel(units, 1 + kUnitFma / fma, overlapped_units, r);
    swap_states(r);
  }
}

void run_chunk(Run *r) {
  const Plan &p = r->p;
  const Layer &l = p.l;
  int64_t base[2] = {};
  for (int64_t d = 0; d < l.dirs; d++) {
    base[d] = l.backward(d) ? l.steps - r->first - r->count : r->first;
    project(*r, d, base[d]);
  }
  const int64_t cols = p.set->tiles->cols, units = l.dirs * (p.wide / cols) * r->blocks, fma = l.gates * r->rows * cols * (l.hidden + 16);
  for (int64_t k = 0; k < r->count && !r->c->stopped(); k++) {
    for (int64_t d = 0; d < l.dirs; d++) {
      const int64_t at = l.backward(d) ? r->count - 1 - k : k;
      r->steps[d].t = base[d] + at;
      r->steps[d].z = r->mem + p.at_z + (d * p.chunk + at) * l.batch * l.gates * p.wide;
    }
    for (r->phase = 0; r->phase < (l.cell == GRU_RESET_FIRST ? 2 : 1); r->phase++) r->c->parallel(units, 1 + kUnitFma / fma, step_units, r);
    swap_states(r);
  }
}

void run(const Call &c, int isa) {
  Run r = {};
  r.c = &c, r.p = plan_of(*c.cmd, isa), r.mem = static_cast<float *>(c.scratch);
  const Plan &p = r.p;
  const Layer &l = p.l;
  if (!check_lengths(c, l) || l.batch == 0 || l.hidden == 0) return;
  if (c.has(l.seq_len)) {
    int64_t *lengths = reinterpret_cast<int64_t *>(r.mem + p.at_lengths);
    for (int64_t b = 0; b < l.batch; b++) lengths[b] = length_at(c, l, b);
    r.lengths = lengths;
  }
  r.wih = packed(r, 1, c.cmd->packed, r.mem + p.at_wih, l.in);
  r.whh = packed(r, 2, reinterpret_cast<const void *>(c.cmd->detail[0]), r.mem + p.at_whh, l.hidden);
  for (int64_t d = 0; d < l.dirs; d++) start(&r, d);
  // Rows of the batch are cut where the hidden units alone do not keep the threads busy.
  const int64_t panels = l.dirs * (p.wide / p.set->tiles->cols), tile = p.set->tiles->rows;
  r.rows = panels >= c.threads() ? l.batch : max64(tile, (l.batch * panels / c.threads() + tile - 1) / tile * tile);
  r.blocks = (l.batch + r.rows - 1) / r.rows;
  if (r.p.overlaps) run_overlapped(&r);
  for (r.first = 0; r.first < l.steps && !r.p.overlaps && !c.stopped(); r.first += r.count) {
    r.count = min64(p.chunk, l.steps - r.first);
    run_chunk(&r);
  }
  for (int64_t d = 0; d < l.dirs; d++) {
    put_state(r, 1, d, r.steps[d].h);
    if (l.cell == LSTM) put_state(r, 2, d, r.steps[d].cell);
  }
}

}  // namespace

int32_t layer_prepare(Prepare &prepare) {
  Command &c = *prepare.cmd;
  Plan p = plan_of(c, prepare.isa);
  float *wih, *whh;
  int32_t code = pack_constant(prepare, p, 1, p.wih, &wih);
  if (code == RLX_OK) code = pack_constant(prepare, p, 2, p.whh, &whh);
  if (code != RLX_OK) return code;
  c.packed = wih, c.detail[0] = reinterpret_cast<int64_t>(whh);
  p = plan_of(c, prepare.isa);
  c.scratch = p.at_gemm * int64_t(sizeof(float));
  if (p.l.batch == 0 || p.l.hidden == 0 || p.l.steps == 0) return RLX_OK;
  int64_t gemm = 0;
  for (int threads = 1; threads <= prepare.max_threads; threads++) {
    gemm = max64(gemm, product(p, c, p.overlaps ? min64(kGroup, p.l.steps) : p.chunk, threads).scratch_bytes);
    if (const int64_t rest = p.l.steps % p.chunk; rest != 0) gemm = max64(gemm, product(p, c, rest, threads).scratch_bytes);
  }
  c.scratch += gemm;
  return RLX_OK;
}

void layer_generic(const Call &c, Range) { run(c, ISA_GENERIC); }
#if defined(RLX_X86)
void layer_avx2(const Call &c, Range) { run(c, ISA_AVX2); }
void layer_avx512(const Call &c, Range) { run(c, ISA_AVX512); }
#elif defined(RLX_NEON)
void layer_neon(const Call &c, Range) { run(c, ISA_NEON); }
#endif

}  // namespace sequence
}  // namespace rlx
