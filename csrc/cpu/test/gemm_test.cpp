#include "../core/rlx_begin.h"

// Tests the GEMM engine under every instruction set that this machine runs. Each element of C must have the bits of a scalar chain of fma
// (multiply and add for the generic x86 set) and lie within 1.5 K eps sum|terms| of a double sum, whatever the strides, the packing,
// the batch and the threads.
//   g++ -std=c++17 -O2 gemm_test.cpp ../matmul/gemm*.cpp ../core/pool.cpp ../core/isa.cpp -pthread

#include <stdio.h>
#include <stdlib.h>

#include "../core/isa.h"
#include "../matmul/gemm.h"

using namespace rlx;
using namespace rlx::matmul;

namespace {

long failures = 0, elements = 0, cases = 0;
Pool *pool = nullptr;
constexpr float kGuard = -12345.5f;

uint32_t seed = 1;
uint32_t next() { return seed = seed * 1664525u + 1013904223u, seed >> 8; }
float next_float() { return static_cast<float>(next() & 0xffff) / 32768.0f - 1.0f; }

float *floats(int64_t n) {
  void *p = nullptr;
  if (posix_memalign(&p, 64, static_cast<size_t>(n) * sizeof(float) + 64) != 0) abort();
  return static_cast<float *>(p);
}

float chain_step(float a, float b, float c) {
#if defined(__x86_64__)
  if (isa_active() == ISA_GENERIC) return a * b + c;
#endif
  return __builtin_fmaf(a, b, c);
}

void fail(const char *what, const GemmF32 *g, int64_t i, int64_t j, float got, double want) {
  if (failures++ > 20) return;
  printf("%s %s: m %ld n %ld k %ld at %ld,%ld: got %.9g want %.9g\n", isa_name(isa_active()), what, static_cast<long>(g->m),
         static_cast<long>(g->n), static_cast<long>(g->k), static_cast<long>(i), static_cast<long>(j), static_cast<double>(got), want);
}

// How a matrix lies in memory; the buffer is rows*cols + slack floats and the view starts at origin.
enum Layout { kRowMajor, kColMajor, kPadded, kReversed, kStepped, kConstantRow, kConstantCol, kLayouts };
struct Matrix {
  float *data;
  const float *origin;
  int64_t rs, cs;
};
Matrix matrix(int64_t rows, int64_t cols, int64_t copies, int layout, int64_t *copy_stride) {
  Matrix m;
  m.rs = cols;
  m.cs = 1;
  if (layout == kColMajor) m.rs = 1, m.cs = rows;
  if (layout == kPadded) m.rs = cols + 5;
  if (layout == kStepped) m.rs = 2 * cols + 3, m.cs = 2;
  if (layout == kConstantRow) m.rs = 0;
  if (layout == kConstantCol) m.cs = 0;
  const int64_t span = 2 * rows * cols + 8 * (rows + cols) + 8;
  m.data = floats(span * copies);
  for (int64_t i = 0; i < span * copies; i++) m.data[i] = next_float();
  m.origin = m.data;
  if (layout == kReversed && rows > 0 && cols > 0) {
    m.rs = -cols;
    m.cs = -1;
    m.origin = m.data + rows * cols - 1;
  }
  *copy_stride = span;
  return m;
}

void check(const char *what, const GemmF32 *g, const float *c, int64_t c_span) {
  const int64_t copies = g->batch_rank == 1 ? g->batch[0] : 1;
  for (int64_t s = 0; s < copies; s++) {
    const float *a = g->a + s * g->a_bs[0], *b = g->b + s * g->b_bs[0], *cc = c + s * c_span;
    for (int64_t i = 0; i < g->m; i++)
      for (int64_t j = 0; j < g->n; j++) {
        float want = 0;
        double sum = 0, mag = 0;
        for (int64_t k = 0; k < g->k; k++) {
          const float x = a[i * g->a_rs + k * g->a_cs], y = b[k * g->b_rs + j * g->b_cs];
          want = chain_step(x, y, want);
          sum += static_cast<double>(x) * y;
          mag += fabs(static_cast<double>(x) * y);
        }
        const float got = cc[i * g->c_rs + j];
        elements++;
        if (memcmp(&got, &want, sizeof got) != 0) fail(what, g, i, j, got, want);
        if (!(fabs(got - sum) <= 1.5 * 5.97e-8 * (g->k + 1) * mag)) fail("sum", g, i, j, got, sum);
      }
    for (int64_t i = 0; i < g->m; i++)
      for (int64_t j = g->n; j < g->c_rs; j++)
        if (cc[i * g->c_rs + j] != kGuard) fail("guard", g, i, j, cc[i * g->c_rs + j], kGuard);
    for (int64_t x = g->m * g->c_rs; x < c_span; x++)
      if (cc[x] != kGuard) fail("guard behind", g, x, 0, cc[x], kGuard);
  }
}

void double_block(void *ctx, int64_t c_offset, int64_t i0, int64_t j0, int64_t m, int64_t n, float *c, int64_t c_rs, int) {
  const GemmF32 *g = static_cast<const GemmF32 *>(ctx);
  if (c != g->c + c_offset + i0 * g->c_rs + j0) fail("finish pointer", g, i0, j0, 0, 0);
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < n; j++) c[i * c_rs + j] *= 2;
}

// Runs one problem with packed and unpacked B on some threads, and once with a finish that doubles.
void problem(int64_t m, int64_t n, int64_t k, int la, int lb, int64_t copies, bool shared_b, int c_pad, int threads) {
  cases++;
  GemmF32 g = {};
  g.m = m;
  g.n = n;
  g.k = k;
  g.c_rs = n + c_pad;
  const int64_t c_span = m * g.c_rs + (c_pad ? 7 : 0);
  g.batch_rank = copies == 1 ? 0 : 1;
  g.batch[0] = copies;
  Matrix a = matrix(m, k, copies, la, &g.a_bs[0]), b = matrix(k, n, shared_b ? 1 : copies, lb, &g.b_bs[0]);
  if (shared_b) g.b_bs[0] = 0;
  // Rows of one batch after the other, so that the batch may be folded into rows.
  if (la == kRowMajor) g.a_bs[0] = m * k;
  g.c_bs[0] = c_span;
  g.a = a.origin;
  g.a_rs = a.rs;
  g.a_cs = a.cs;
  g.b = b.origin;
  g.b_rs = b.rs;
  g.b_cs = b.cs;
  float *c = floats(c_span * copies);
  const int64_t packed_floats = gemm_packed_b_bytes(k, n) / static_cast<int64_t>(sizeof(float));
  float *packed = floats(packed_floats * copies + 16);
  for (int64_t s = 0; s < copies; s++)
    for (int64_t j = 0; j < n; j += gemm_panel_cols())
      gemm_pack_b(packed + s * packed_floats, g.b + s * g.b_bs[0], g.b_rs, g.b_cs, k, n, j, j + gemm_panel_cols() < n ? j + gemm_panel_cols() : n);
  for (int variant = 0; variant < 3; variant++) {
    for (int64_t i = 0; i < c_span * copies; i++) c[i] = kGuard;
    GemmF32 run = g;
    run.c = c;
    if (variant == 1) {
      run.packed_b = packed;
      run.b_bs[0] = shared_b ? 0 : packed_floats;
    }
    GemmF32 original = run;
    if (variant == 2) {
      run.finish = double_block;
      run.finish_ctx = &original;
    }
    gemm_f32_plan(&run, threads);
    float *scratch = floats(run.scratch_bytes / static_cast<int64_t>(sizeof(float)));
    gemm_f32(pool, threads, &run, scratch, nullptr);
    free(scratch);
    if (variant == 2)
      for (int64_t s = 0; s < copies; s++)
        for (int64_t i = 0; i < m; i++)
          for (int64_t j = 0; j < n; j++) c[s * c_span + i * g.c_rs + j] /= 2;
    check(variant == 0 ? "plain" : variant == 1 ? "packed" : "finish", &g, c, c_span);
  }
  free(a.data);
  free(b.data);
  free(c);
  free(packed);
}

void sizes() {
  const int ms[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 14, 15, 16, 27, 28, 29, 43, 56, 57, 70};
  const int ns[] = {0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 47, 48, 63, 64, 65, 70};
  const int ks[] = {0, 1, 2, 3, 8, 15, 16, 17, 33, 70};
  for (int m : ms)
    for (int n : ns)
      for (int k : ks)
        problem(m, n, k, static_cast<int>(next() % kLayouts), static_cast<int>(next() % kLayouts), 1 + (next() % 8 == 0 ? next() % 3 : 0), next() % 2 == 0,
                next() % 3 == 0 ? 3 : 0, 1 + static_cast<int>(next() % 4));
}

// Beyond every block: rows, columns, depth, and the special cases of few rows.
void blocks() {
  for (int threads = 1; threads <= 4; threads += 1) {
    problem(131, 70, 1100, kRowMajor, kRowMajor, 1, false, 0, threads);
    problem(300, 600, 70, kColMajor, kColMajor, 1, false, 0, threads);
    problem(31, 150, 1100, kColMajor, kRowMajor, 1, false, 0, threads);
    problem(31, 70, 1024, kRowMajor, kColMajor, 1, false, 0, threads);  // rows of A a page apart
    problem(29, 1100, 530, kReversed, kStepped, 1, false, 3, threads);
    problem(3, 1100, 1030, kRowMajor, kRowMajor, 1, false, 0, threads);
    problem(9, 1064, 150, kRowMajor, kRowMajor, 1, false, 0, threads);
    problem(1, 100, 9000, kRowMajor, kColMajor, 1, false, 0, threads);
    problem(2, 100, 9000, kRowMajor, kRowMajor, 1, false, 0, threads);
    problem(1200, 1, 700, kRowMajor, kRowMajor, 1, false, 0, threads);
    problem(40, 33, 65, kRowMajor, kColMajor, 24, false, 0, threads);
    problem(1, 70, 65, kRowMajor, kRowMajor, 24, true, 0, threads);
    problem(16, 70, 65, kRowMajor, kRowMajor, 24, true, 0, threads);
    problem(200, 70, 65, kPadded, kPadded, 5, true, 3, threads);
  }
}

// Several batch dims, some of them broadcast: each matrix must equal the one computed alone.
void broadcast_batches() {
  const int64_t m = 20, n = 37, k = 19, d0 = 3, d1 = 2, d2 = 4;
  for (int mask = 0; mask < 64; mask++) {
    GemmF32 g = {};
    g.m = m, g.n = n, g.k = k, g.a_rs = k, g.a_cs = 1, g.b_rs = n, g.b_cs = 1, g.c_rs = n, g.batch_rank = 3;
    const int64_t dims[3] = {d0, d1, d2};
    int64_t a_size = m * k, b_size = k * n, c_size = m * n;
    for (int d = 2; d >= 0; d--) {
      g.batch[d] = dims[d];
      g.c_bs[d] = c_size;
      c_size *= dims[d];
      if (mask >> d & 1) g.a_bs[d] = a_size, a_size *= dims[d];
      if (mask >> (d + 3) & 1) g.b_bs[d] = b_size, b_size *= dims[d];
    }
    float *a = floats(a_size), *b = floats(b_size), *c = floats(c_size), *one = floats(m * n);
    for (int64_t i = 0; i < a_size; i++) a[i] = next_float();
    for (int64_t i = 0; i < b_size; i++) b[i] = next_float();
    for (int64_t i = 0; i < c_size; i++) c[i] = kGuard;
    g.a = a, g.b = b, g.c = c;
    GemmF32 all = g;
    const int threads = 1 + mask % 3;
    gemm_f32_plan(&all, threads);
    float *scratch = floats(all.scratch_bytes / static_cast<int64_t>(sizeof(float)));
    gemm_f32(pool, threads, &all, scratch, nullptr);
    free(scratch);
    for (int64_t i = 0; i < d0 * d1 * d2; i++) {
      const int64_t at[3] = {i / (d1 * d2), i / d2 % d1, i % d2};
      GemmF32 single = g;
      single.batch_rank = 0;
      for (int d = 0; d < 3; d++) single.a += at[d] * g.a_bs[d], single.b += at[d] * g.b_bs[d];
      single.c = one;
      gemm_f32_plan(&single, 1);
      scratch = floats(single.scratch_bytes / static_cast<int64_t>(sizeof(float)));
      gemm_f32(nullptr, 1, &single, scratch, nullptr);
      free(scratch);
      elements += m * n;
      if (memcmp(one, c + i * m * n, m * n * sizeof(float)) != 0) fail("broadcast batch", &g, mask, i, 0, 0);
    }
    free(a), free(b), free(c), free(one);
  }
}

}  // namespace

int main() {
  pool = pool_acquire(4);
  const int all[] = {ISA_GENERIC, ISA_AVX2, ISA_AVX512, ISA_NEON};
  for (int isa : all) {
    if (!isa_runs(isa)) {
      printf("%s: not executed\n", isa_name(isa));
      continue;
    }
    if (!isa_set(isa)) failures++;
    sizes();
    blocks();
    broadcast_batches();
    printf("%s: %ld problems, %ld elements, %ld failures\n", isa_name(isa), cases, elements, failures);
  }
  pool_release(pool);
  return failures != 0;
}
