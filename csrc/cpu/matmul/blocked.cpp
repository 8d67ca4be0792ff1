// MatMul of f16, bf16, f64 and integers. Contract: k ascending in one accumulator per element (f32 for halves, else the dtype), one rounding
// at the end; a row of y has the same bits whatever the batch, the threads and the packing. Bound: 1.5 K eps sum |a||b| and the last rounding.
//
// A unit is a block of y, kBlockRows by kBlockCols at most, whose sums stay in scratch. For each slice of depth its rows of a and columns
// of b are packed (and halves widened) once. bf16.cpp does the same for bf16 on machines that multiply pairs of them.
#include "../core/rlx_begin.h"

#include "bf16.h"
#include "blocked.h"
#include "matmul.h"
#include "of_isa.h"

namespace rlx {
namespace matmul {
namespace {

constexpr int64_t kBlockRows = 56, kBlockCols = 128, kSlice = 256;
constexpr int64_t kChunkFma = 1 << 16;  // about a microsecond: less is not worth handing to another thread

const BlockedSet &set_of(int isa, uint32_t dtype) {
  const BlockedSets &s = of_isa<blocked_generic, blocked_avx2, blocked_avx512, blocked_neon>(isa);
  switch (dtype) {
    case RLX_F16: return s.f16;
    case RLX_BF16: return s.bf16;
    case RLX_F64: return s.f64;
    case RLX_I32:
    case RLX_U32: return s.u32;
    default: return s.u64;
  }
}

// Bytes of one slot: a block of sums, a slice of a, a panel of b.
struct Layout { int64_t a, b, bytes; };
Layout layout_of(const BlockedSet &s) {
  const int64_t sums = kBlockRows * (kBlockCols + s.cols()) * s.work_bytes, a = kBlockRows * kSlice * s.work_bytes, b = kSlice * s.cols() * s.work_bytes;
  return {(sums + 63) & ~int64_t(63), (sums + a + 127) & ~int64_t(63), (sums + a + b + 255) & ~int64_t(63)};
}

struct Job {
  const Call *c;
  const BlockedSet *set;
  Product p;
  const char *a, *b, *packed;
  char *y;
  int64_t row_blocks, col_blocks, block_cols;  // columns of a block
  bool keep_work;                              // the result has the dtype of the sums
};

// One block: rows [i0, i0 + m), columns [j0, j0 + n) of the matrices at a, b, y.
struct Block {
  const char *a, *b;
  char *y;
  int64_t i0, m, j0, n;
  char *sums, *slice_a, *panel_b;
  int64_t sums_rs;
};

void run_tile(const BlockedSet &s, int64_t h, const char *a, const char *b, char *c, int64_t c_rs, int64_t k, bool load) {
  if (s.f32 == nullptr) return s.tile[h](a, b, c, c_rs, k, load);
  constexpr int64_t f = sizeof(float);
  TileF32 t;
  t.a = reinterpret_cast<const float *>(a), t.a_rs = f, t.a_cs = h * f;
  t.b = reinterpret_cast<const float *>(b), t.b_rs = s.f32->cols * f;
  t.c = reinterpret_cast<float *>(c), t.c_rs = c_rs * f;
  t.k = k, t.load = load;
  t.ahead = b, t.ahead_step = 0;
  s.f32->run[h](&t);
}

void slice(const Job &job, const Block &x, int64_t k0, int64_t kc) {
  const BlockedSet &s = *job.set;
  const Product &p = job.p;
  const int64_t e = s.elem_bytes, w = s.work_bytes, rows = s.rows(), cols = s.cols();
  for (int64_t i = 0; i < x.m; i += rows) {
    const int h = int(min64(rows, x.m - i));
    s.pack(x.slice_a + i * kc * w, h, x.a + ((x.i0 + i) * p.a_rs + k0 * p.a_cs) * e, p.a_cs, p.a_rs, kc, h);
  }
  for (int64_t j = 0; j < x.n; j += cols) {
    const int n = int(min64(cols, x.n - j));
    const char *panel = x.panel_b;
    if (job.packed == nullptr) {
      s.pack(x.panel_b, int(cols), x.b + (k0 * p.b_rs + (x.j0 + j) * p.b_cs) * e, p.b_rs, p.b_cs, kc, n);
    } else {
      const char *src = x.b + ((x.j0 + j) * p.k + k0 * cols) * e;
      if (e == w) panel = src;
      else s.pack(x.panel_b, int(cols), src, cols, 1, kc, int(cols));
    }
    for (int64_t i = 0; i < x.m; i += rows)
      run_tile(s, min64(rows, x.m - i), x.slice_a + i * kc * w, panel, x.sums + (i * x.sums_rs + j) * w, x.sums_rs, kc, k0 > 0);
  }
}

void block(const Job &job, const Block &x) {
  const BlockedSet &s = *job.set;
  int64_t k0 = 0;
  do {
    const int64_t kc = min64(kSlice, job.p.k - k0);
    slice(job, x, k0, kc);
    k0 += kc;
  } while (k0 < job.p.k && !job.c->stopped());
  const int64_t out_bytes = job.keep_work ? s.work_bytes : s.elem_bytes;
  for (int64_t i = 0; i < x.m; i++) {
    char *y = x.y + ((x.i0 + i) * job.p.n + x.j0) * out_bytes;
    const char *sums = x.sums + i * x.sums_rs * s.work_bytes;
    if (job.keep_work) std::memcpy(y, sums, size_t(x.n * s.work_bytes));
    else s.put(y, sums, x.n);
  }
}

void units(void *ctx, int64_t begin, int64_t end, int slot) {
  const Job &job = *static_cast<const Job *>(ctx);
  const BlockedSet &s = *job.set;
  const Product &p = job.p;
  const Layout l = layout_of(s);
  Block x;
  x.sums = static_cast<char *>(job.c->scratch) + slot * l.bytes;
  x.slice_a = x.sums + l.a, x.panel_b = x.sums + l.b;
  for (int64_t u = begin; u < end && !job.c->stopped(); u++) {
    int64_t at[3] = {}, matrix = u / (job.row_blocks * job.col_blocks);
    for (int d = p.rank - 1; d >= 0; d--) {
      for (int o = 0; o < 3; o++) at[o] += matrix % p.batch[d] * p.strides[o][d];
      matrix /= p.batch[d];
    }
    x.a = job.a + at[0] * s.elem_bytes;
    x.b = (job.packed != nullptr ? job.packed : job.b) + at[1] * s.elem_bytes;
    x.y = job.y + at[2] * (job.keep_work ? s.work_bytes : s.elem_bytes);
    x.i0 = u % job.row_blocks * kBlockRows, x.m = min64(kBlockRows, p.m - x.i0);
    x.j0 = u / job.row_blocks % job.col_blocks * job.block_cols, x.n = min64(job.block_cols, p.n - x.j0);
    x.sums_rs = ceil_div(x.n, s.cols()) * s.cols();
    block(job, x);
  }
}

// A constant operand 1 is packed in its own dtype, since halves are read faster than f32.
template <int Isa> void run(const Call &c) {
  const BlockedSet &s = set_of(Isa, c.in(0).dtype);
  Job job = {};
  job.c = &c, job.set = &s;
  const Operand &b = c.in(1);
  const int64_t packed_size = c.cmd->packed == nullptr ? 0 : ceil_div(b.dims[b.rank - 1], s.cols()) * s.cols() * b.dims[b.rank - 2];
  product_of(*c.cmd, packed_size, &job.p);
  const Product &p = job.p;
  if (p.matrices == 0 || p.n == 0) return;
  job.a = c.in_ptr<char>(0), job.b = c.in_ptr<char>(1), job.y = c.out_ptr<char>(0);
  job.packed = static_cast<const char *>(c.cmd->packed);
  job.keep_work = c.out(0).dtype != c.in(0).dtype || s.elem_bytes == s.work_bytes;
  job.block_cols = kBlockCols / s.cols() * s.cols();
  job.row_blocks = ceil_div(p.m, kBlockRows), job.col_blocks = ceil_div(p.n, job.block_cols);
  const int64_t work = min64(p.m, kBlockRows) * min64(p.n, job.block_cols) * (p.k + 1);
  c.parallel(p.matrices * job.row_blocks * job.col_blocks, 1 + kChunkFma / work, units, &job);
}

template <class T> void pack_panel(const Product &p, void *panel, int cols, const void *from, int64_t columns) {
  T *dst = static_cast<T *>(panel);
  const T *src = static_cast<const T *>(from);
  for (int64_t k = 0; k < p.k; k++, dst += cols, src += p.b_rs)
    for (int64_t j = 0; j < cols; j++) dst[j] = j < columns ? src[j * p.b_cs] : T(0);
}

}  // namespace

int32_t matmul_blocked_prepare(Prepare &prepare) {
  int32_t code;
  if (prepare.cmd->in[0].dtype == RLX_BF16 && matmul_bf16_prepare(prepare, &code)) return code;
  const BlockedSet &s = set_of(prepare.isa, prepare.cmd->in[0].dtype);
  prepare.cmd->scratch = layout_of(s).bytes * prepare.max_threads;
  const PackPanel pack = s.elem_bytes == 2 ? pack_panel<uint16_t> : s.elem_bytes == 4 ? pack_panel<uint32_t> : pack_panel<uint64_t>;
  return pack_constant_b(prepare, s.cols(), s.elem_bytes, uint32_t(s.elem_bytes), pack);
}

void matmul_blocked_generic(const Call &c, Range) { run<ISA_GENERIC>(c); }
#if defined(RLX_X86)
void matmul_blocked_avx2(const Call &c, Range) { run<ISA_AVX2>(c); }
void matmul_blocked_avx512(const Call &c, Range) { run<ISA_AVX512>(c); }
#elif defined(RLX_NEON)
void matmul_blocked_neon(const Call &c, Range) { run<ISA_NEON>(c); }
#endif

}  // namespace matmul
}  // namespace rlx
