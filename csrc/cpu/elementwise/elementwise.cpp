// The walk over operands of any strides, and the choice of loops for the rows of kernels.h. Contract: element i of the result is the
// function of element i of the broadcast operands, the same bits whatever the strides, the Range and the threads; the bounds are those
// of the scalar functions (vec_math.h). An operand may be the result's own memory.
#include "../core/rlx_begin.h"

#include "elementwise.h"
#include "convert.h"
#include "../core/isa.h"

namespace rlx {
namespace elementwise {
namespace {

constexpr int64_t POLL = 1 << 16;      // elements between two looks at the stop word
constexpr int64_t LONG_RUN = 128;      // runs of the last axis from which on they are walked one by one
constexpr int64_t REPEATS = 256;       // elements of a block that holds one value

// How operand k lies under the result.
enum Form { DIRECT, REPEATED, GATHERED };

struct Plan {
  int rank = 0;
  int64_t dims[RLX_MAX_RANK] = {}, strides[MAX_IN][RLX_MAX_RANK] = {};
  Form form[MAX_IN] = {};
  int size[MAX_IN] = {};
  bool direct = true;  // every operand is
  int64_t cap = 0;     // elements that a block of every operand holds
  bool by_rows = false;  // blocks are whole rows
};

Plan plan_of(const Call &c, int inputs) {
  Plan p;
  const Operand &out = c.out(0);
  for (int d = 0; d < int(out.rank); d++) p.dims[d] = out.dims[d];
  int widest = 1;
  for (int k = 0; k < inputs; k++) {
    broadcast_strides(c.in(k), out, p.strides[k]);
    p.size[k] = rlx_dtype_sizes[c.in(k).dtype];
    widest = p.size[k] > widest ? p.size[k] : widest;
  }
  p.rank = merge_axes(p.dims, int(out.rank), p.strides, inputs);
  p.cap = BLOCK / widest;
  for (int k = 0; k < inputs; k++) {
    int64_t want = 1;
    bool contiguous = true, repeated = true;
    for (int d = p.rank - 1; d >= 0; d--) {
      contiguous &= p.strides[k][d] == want;
      repeated &= p.strides[k][d] == 0;
      want *= p.dims[d];
    }
    p.form[k] = contiguous ? DIRECT : repeated ? REPEATED : GATHERED;
    p.direct &= contiguous;
  }
  return p;
}

template <class T> void copy_run_of(void *to, const void *from, int64_t step, int64_t n) {
  T *y = static_cast<T *>(to);
  const T *x = static_cast<const T *>(from);
  if (step == 1) {
    std::memcpy(y, x, size_t(n) * sizeof(T));
  } else if (step == 0) {
    const T v = *x;
    for (int64_t i = 0; i < n; i++) y[i] = v;
  } else {
    for (int64_t i = 0; i < n; i++) y[i] = x[i * step];
  }
}

}  // namespace

void copy_run(void *to, const void *from, int size, int64_t step, int64_t n) {
  switch (size) {
    case 1: return copy_run_of<uint8_t>(to, from, step, n);
    case 2: return copy_run_of<uint16_t>(to, from, step, n);
    case 4: return copy_run_of<uint32_t>(to, from, step, n);
    default: return copy_run_of<uint64_t>(to, from, step, n);
  }
}

namespace {

struct Blocks {
  alignas(64) char data[MAX_IN][BLOCK];
};

// Everything contiguous: the loop takes it as it lies.
void run_direct(const Call &c, Range r, const Work &w, const Plan &p, int out_size) {
  for (int64_t at = r.begin; at < r.end && !c.stopped(); at += POLL) {
    const void *in[MAX_IN] = {};
    for (int k = 0; k < w.inputs; k++) in[k] = c.in_ptr<char>(k) + at * p.size[k];
    w.loop(w, in, c.out_ptr<char>(0) + at * out_size, r.end - at < POLL ? r.end - at : POLL);
  }
}

// Long runs of the last axis: an operand that moves by 1 is read where it lies, one that stands still is repeated once for a run.
void run_long(const Call &c, Range r, const Work &w, const Plan &p, int out_size) {
  Blocks b;
  const char *filled[MAX_IN] = {};
  int64_t at = r.begin;
  for (Walk<MAX_IN> walk(p.dims, p.rank, p.strides, r.begin, r.end); walk.next();) {
    if (c.stopped()) return;
    int64_t cap = p.cap;
    for (int k = 0; k < w.inputs; k++)
      if (walk.step[k] == 0 && cap > REPEATS) cap = REPEATS;
    for (int64_t done = 0; done < walk.n;) {
      const int64_t n = walk.n - done < cap ? walk.n - done : cap;
      const void *in[MAX_IN] = {};
      for (int k = 0; k < w.inputs; k++) {
        const int64_t step = walk.step[k];
        const char *x = c.in_ptr<char>(k) + (walk.at[k] + done * step) * p.size[k];
        in[k] = step == 1 ? x : b.data[k];
        if (step == 1 || (step == 0 && filled[k] == x)) continue;
        copy_run(b.data[k], x, p.size[k], step, step == 0 ? cap : n);
        filled[k] = step == 0 ? x : nullptr;
      }
      w.loop(w, in, c.out_ptr<char>(0) + at * out_size, n);
      done += n;
      at += n;
    }
  }
}

// Whether blocks of whole rows are worth it: what is not contiguous is the same in neighbouring rows, and a block holds several.
bool rows_repeat(const Plan &p) {
  if (p.rank < 2 || p.dims[p.rank - 1] % 16 != 0 || 4 * p.dims[p.rank - 1] > p.cap) return false;
  for (int k = 0; k < MAX_IN; k++)
    if (p.form[k] == GATHERED && p.strides[k][p.rank - 2] != 0) return false;
  return true;
}

// Short runs: blocks that span several of them. Blocks of whole rows that are the same are gathered once.
void run_blocks(const Call &c, Range r, const Work &w, const Plan &p, int out_size) {
  Blocks b;
  const int64_t same = p.by_rows ? p.dims[p.rank - 1] * p.dims[p.rank - 2] : 1;
  int64_t held = -1;
  for (int k = 0; k < w.inputs; k++)
    if (p.form[k] == REPEATED) copy_run(b.data[k], c.in_data[k], p.size[k], 0, p.cap);
  for (int64_t at = r.begin; at < r.end && !c.stopped(); at += p.cap) {
    const int64_t n = r.end - at < p.cap ? r.end - at : p.cap;
    const void *in[MAX_IN] = {};
    const int64_t block = at / same;
    const bool again = p.by_rows && held == block && (at + n - 1) / same == block;
    held = p.by_rows && (at + n - 1) / same == block ? block : -1;
    for (int k = 0; k < w.inputs; k++) {
      const char *x = c.in_ptr<char>(k);
      in[k] = p.form[k] == DIRECT ? x + at * p.size[k] : b.data[k];
      if (p.form[k] != GATHERED || again) continue;
      char *to = b.data[k];
      for (Walk<1> walk(p.dims, p.rank, &p.strides[k], at, at + n); walk.next(); to += walk.n * p.size[k])
        copy_run(to, x + walk.at[0] * p.size[k], p.size[k], walk.step[0], walk.n);
    }
    w.loop(w, in, c.out_ptr<char>(0) + at * out_size, n);
  }
}

}  // namespace

bool streams(const Call &c, int result) {
  const Operand &out = c.out(result);
  bool own = out.dtype == RLX_F32 && out.count * 4 >= STREAM_BYTES;
  for (uint32_t k = 0; k < c.cmd->num_in; k++) own &= c.in_data[k] != c.out_data[result];
  return own;
}

void run(const Call &c, Range r, const Work &w) {
  Plan p = plan_of(c, w.inputs);
  const int out_size = rlx_dtype_sizes[c.out(0).dtype];
  if (!p.direct && rows_repeat(p)) {
    p.by_rows = true;
    p.cap = p.cap / p.dims[p.rank - 1] * p.dims[p.rank - 1];
  }
  Work past = w;
  past.stream = streams(c, 0);
  if (p.direct) run_direct(c, r, past, p, out_size);
  else if (p.dims[p.rank - 1] >= LONG_RUN && !p.by_rows) run_long(c, r, past, p, out_size);
  else run_blocks(c, r, past, p, out_size);
  if (past.stream) std::atomic_thread_fence(std::memory_order_seq_cst);  // no weaker one orders stores past the caches
}

namespace {

// The loop that was found, wrapped for f16 and bf16; null stays null.
Work found(const Command &c, const Lanes &l, Loop loop, Work w, bool bytes) {
  const uint32_t d = c.in[0].dtype;
  w.loop = loop;
  if (loop != nullptr && (d == RLX_F16 || d == RLX_BF16)) {
    w.inner = loop;
    w.loop = (bytes ? l.half_bytes : l.half)[d == RLX_BF16][w.inputs - 1];
  }
  return w;
}

template <class A> const A &attributes(const Command &c) { return *static_cast<const A *>(c.attrs); }

Work plain(Loop loop, int inputs) {
  Work w;
  w.inputs = inputs;
  w.loop = loop;
  return w;
}

bool is_half_or_f32(uint32_t dtype) { return dtype == RLX_F32 || (RLX_DTYPES_half >> dtype & 1) != 0; }
bool is_int(uint32_t dtype) { return (RLX_DTYPES_int >> dtype & 1) != 0; }

// The parameters as the computation has them: rounded to f32 unless it is in f64. The threshold that operands are compared with goes
// down, so that x <= alpha holds for the same f32 numbers x.
Work parameters(const Command &c, int inputs) {
  const rlx_ActivationAttrs &a = attributes<rlx_ActivationAttrs>(c);
  Work w;
  w.inputs = inputs;
  w.alpha = a.alpha;
  w.beta = a.beta;
  if (c.in[0].dtype == RLX_F64) return w;
  float alpha = float(a.alpha);
  if (a.fn == rlx_UnaryFn_thresholded_relu && double(alpha) > a.alpha) alpha = nextafterf(alpha, -INFINITY);
  w.alpha = double(alpha);
  w.beta = double(float(a.beta));
  return w;
}

Work activation(const Command &c, const Lanes &l) {
  const int fn = int(attributes<rlx_ActivationAttrs>(c).fn);
  const uint32_t d = c.in[0].dtype;
  if (!is_half_or_f32(d) && d != RLX_F64) return plain(is_int(d) ? pick_unary_int(fn, int(d)) : pick_unary_other(fn, int(d)), 1);
  Work w = parameters(c, 1);
  if (d == RLX_F64) {
    w.loop = pick_unary_f64(fn);
    return w;
  }
  if (fn == rlx_UnaryFn_identity) {
    w.loop = pick_copy(rlx_dtype_sizes[d]);
    return w;
  }
  return found(c, l, l.unary(fn), w, c.out[0].dtype == RLX_BOOL);
}

Work activation_backward(const Command &c, const Lanes &l) {
  const int fn = int(attributes<rlx_ActivationAttrs>(c).fn);
  Work w = parameters(c, 2);
  if (c.in[0].dtype != RLX_F64) return found(c, l, l.backward(fn), w, false);
  w.loop = pick_backward_f64(fn);
  return w;
}

Work relu_backward(const Command &c, const Lanes &l) {
  const uint32_t d = c.in[0].dtype;
  Work w = plain(d == RLX_F32 ? l.relu_backward : d == RLX_F64 ? pick_backward_f64(rlx_UnaryFn_relu) : l.relu_backward_half, 2);
  w.alpha = d == RLX_BF16 ? 1 : 0;  // tells the loop of halves which of them they are
  return w;
}

Work binary(const Command &c, const Lanes &l) {
  const int fn = int(attributes<rlx_BinaryAttrs>(c).fn);
  const uint32_t d = c.in[0].dtype;
  if (is_half_or_f32(d)) return found(c, l, l.binary(fn), plain(nullptr, 2), false);
  return plain(d == RLX_F64 ? pick_binary_f64(fn) : is_int(d) ? pick_binary_int(fn, int(d)) : pick_binary_other(fn, int(d)), 2);
}

Work compare(const Command &c, const Lanes &l) {
  const int fn = int(attributes<rlx_CompareAttrs>(c).fn);
  const uint32_t d = c.in[0].dtype;
  if (is_half_or_f32(d)) return found(c, l, l.compare(fn), plain(nullptr, 2), true);
  return plain(d == RLX_F64 ? pick_compare_f64(fn) : is_int(d) ? pick_compare_int(fn, int(d)) : pick_compare_other(fn, int(d)), 2);
}

Work cast(const Command &c, const Lanes &l) {
  const int from = int(c.in[0].dtype), to = int(c.out[0].dtype);
  Work w;
  w.saturate = attributes<rlx_CastAttrs>(c).saturate != 0;
  w.lo = from;
  w.hi = to;
  w.loop = from == to ? pick_copy(rlx_dtype_sizes[from]) : l.cast(from, to);
  if (w.loop == nullptr) w.loop = pick_cast(from, to);
  return w;
}

// A bound as f64: exact, or rounded to odd where a later rounding to fewer bits is the one that counts.
double bound_f64(const Number &n, bool odd) {
  int64_t i;
  uint64_t u;
  double f;
  std::memcpy(&i, &n.bits, 8);
  std::memcpy(&u, &n.bits, 8);
  std::memcpy(&f, &n.bits, 8);
  if (n.kind == 1) return odd ? odd_from_i64(i) : double(i);
  if (n.kind == 2) return odd ? odd_from_u64(u) : double(u);
  return f;
}

double round_to(double v, uint32_t dtype) {
  switch (dtype) {
    case RLX_F16: return f64_from_f16(f16_from_f64(v));
    case RLX_BF16: return f64_from_bf16(bf16_from_f64(v));
    case RLX_F32: return double(float(v));
    default: return v;
  }
}

// A bound as a value of the integer dtype: beyond its range it is the end of that.
int64_t bound_int(const Number &n, uint32_t dtype) {
  const int bits = 8 * rlx_dtype_sizes[dtype];
  const bool is_signed = (RLX_DTYPES_signed >> dtype & 1) != 0;
  const int64_t least = is_signed ? INT64_MIN >> (64 - bits) : 0;
  const uint64_t most = is_signed ? uint64_t(INT64_MAX) >> (64 - bits) : UINT64_MAX >> (64 - bits);
  int64_t i;
  std::memcpy(&i, &n.bits, 8);
  if (n.kind == 2) return int64_t(n.bits < most ? n.bits : most);
  if (n.kind == 1) return i < least ? least : i > 0 && uint64_t(i) > most ? int64_t(most) : i;
  return int_from_f64(bound_f64(n, false), bits, is_signed);
}

Work clamp(const Command &c, const Lanes &l) {
  const rlx_ClampAttrs &a = attributes<rlx_ClampAttrs>(c);
  const uint32_t d = c.in[0].dtype;
  Work w;
  if (is_int(d)) {
    w.lo = a.min.kind == 0 ? bound_int({3, 0xfff0000000000000u}, d) : bound_int(a.min, d);
    w.hi = a.max.kind == 0 ? bound_int({3, 0x7ff0000000000000u}, d) : bound_int(a.max, d);
    w.loop = pick_clamp(int(d));
    return w;
  }
  w.alpha = a.min.kind == 0 ? -INFINITY : round_to(bound_f64(a.min, d != RLX_F64), d);
  w.beta = a.max.kind == 0 ? INFINITY : round_to(bound_f64(a.max, d != RLX_F64), d);
  if (d != RLX_F64) return found(c, l, l.clamp, w, false);
  w.loop = pick_clamp(int(d));
  return w;
}

Work work_in(const Command &c, const Lanes &l) {
  switch (c.op) {
    case RLX_OP_Activation: return activation(c, l);
    case RLX_OP_ActivationBackward: return activation_backward(c, l);
    case RLX_OP_ReluBackward: return relu_backward(c, l);
    case RLX_OP_Binary: return binary(c, l);
    case RLX_OP_Compare: return compare(c, l);
    case RLX_OP_Where: return plain(l.where(rlx_dtype_sizes[c.out[0].dtype]), 3);
    case RLX_OP_Cast: return cast(c, l);
    case RLX_OP_Fma: return plain(c.in[0].dtype == RLX_F32 ? l.fma : pick_fma(int(c.in[0].dtype)), 3);
    case RLX_OP_Clamp: return clamp(c, l);
    default: return plain(nullptr, 0);
  }
}

void run_work(const Call &c, Range r, const Lanes &l) {
  const Work w = work_in(*c.cmd, l);
  if (w.loop != nullptr) return run(c, r, w);
  if (c.cmd->op == RLX_OP_Cast) return c.fail("C2", "%s to %s is not defined", rlx_dtype_names[c.in(0).dtype], rlx_dtype_names[c.out(0).dtype]);
  c.fail("C1", "function is not defined for dtype %s", rlx_dtype_names[c.in(0).dtype]);
}

}  // namespace

namespace {
const Lanes &lanes_of(int isa) {
#if defined(RLX_X86)
  if (isa == ISA_AVX512) return lanes_avx512;
  if (isa == ISA_AVX2) return lanes_avx2;
#elif defined(RLX_NEON)
  if (isa == ISA_NEON) return lanes_neon;
#endif
  (void)isa;
  return lanes_generic;
}
}  // namespace

Work work_of(const Command &c, int isa) { return work_in(c, lanes_of(isa)); }
Loop pick_chain(int isa) { return lanes_of(isa).chain; }
Repeat pick_repeat(int isa) { return lanes_of(isa).repeat; }

Link link_of(const Command &c) {
  if (c.in[0].dtype != RLX_F32 || c.out[0].dtype != RLX_F32) return LINK_NONE;
  if (c.op == RLX_OP_Activation) {
    const int64_t fn = attributes<rlx_ActivationAttrs>(c).fn;
    return fn == rlx_UnaryFn_relu ? LINK_RELU : fn == rlx_UnaryFn_tanh ? LINK_TANH : LINK_CALL;
  }
  if (c.op == RLX_OP_Clamp) return LINK_CALL;
  if (c.op != RLX_OP_Binary) return LINK_NONE;
  switch (attributes<rlx_BinaryAttrs>(c).fn) {
    case rlx_BinaryFn_add: return LINK_ADD;
    case rlx_BinaryFn_sub: return LINK_SUB;
    case rlx_BinaryFn_mul: return LINK_MUL;
    default: return LINK_CALL;
  }
}

// One entry for each row and instruction set.
#define RLX_ENTRIES(isa)                                                                             \
  void activation_f32_##isa(const Call &c, Range r) { run_work(c, r, lanes_##isa); }                 \
  void activation_backward_f32_##isa(const Call &c, Range r) { run_work(c, r, lanes_##isa); }        \
  void relu_backward_f32_##isa(const Call &c, Range r) { run_work(c, r, lanes_##isa); }              \
  void binary_f32_##isa(const Call &c, Range r) { run_work(c, r, lanes_##isa); }                     \
  void compare_f32_##isa(const Call &c, Range r) { run_work(c, r, lanes_##isa); }                    \
  void where_any_##isa(const Call &c, Range r) { run_work(c, r, lanes_##isa); }                      \
  void cast_any_##isa(const Call &c, Range r) { run_work(c, r, lanes_##isa); }                       \
  void fma_real_##isa(const Call &c, Range r) { run_work(c, r, lanes_##isa); }                       \
  void clamp_real_##isa(const Call &c, Range r) { run_work(c, r, lanes_##isa); }
RLX_ENTRIES(generic)
#if defined(RLX_X86)
RLX_ENTRIES(avx2)
RLX_ENTRIES(avx512)
#elif defined(RLX_NEON)
RLX_ENTRIES(neon)
#endif

Split heavy(const Call &c) { return {c.out(0).count, 512}; }
Split flat(const Call &c) {
  Split s = elements(c);
  if (streams(c, 0)) s.grain *= STREAM_GRAINS;
  return s;
}

// Dtypes without twins.
void activation_f64(const Call &c, Range r) { run_work(c, r, lanes_generic); }
void activation_backward_f64(const Call &c, Range r) { run_work(c, r, lanes_generic); }
void binary_f64(const Call &c, Range r) { run_work(c, r, lanes_generic); }
void compare_f64(const Call &c, Range r) { run_work(c, r, lanes_generic); }
void activation_int(const Call &c, Range r) { run_work(c, r, lanes_generic); }
void binary_int(const Call &c, Range r) { run_work(c, r, lanes_generic); }
void compare_int(const Call &c, Range r) { run_work(c, r, lanes_generic); }
void activation_other(const Call &c, Range r) { run_work(c, r, lanes_generic); }
void binary_other(const Call &c, Range r) { run_work(c, r, lanes_generic); }
void compare_other(const Call &c, Range r) { run_work(c, r, lanes_generic); }

}  // namespace elementwise
}  // namespace rlx
