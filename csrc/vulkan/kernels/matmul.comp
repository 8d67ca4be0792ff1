#version 450
#extension GL_GOOGLE_include_directive : enable
#extension GL_EXT_control_flow_attributes : enable
#include "types.glsl"
#include "tensor.glsl"
#include "reduce.glsl"

// MatMul. Every element of y is one sum over k upwards in one accumulator, so it has the same bits in both ways of getting it:
//
//   tiles     LOCAL x COLUMNS elements a workgroup. Blocks of BLOCK steps of k are staged in shared memory, an invocation multiplies
//             8 rows by 8 columns of them
//   thin      up to THIN rows or columns, where most of a tile would be idle: an invocation does an element
//
// A workgroup takes tiles until there are none, so any number of workgroups will do.
layout(std430, set = 0, binding = BIND_TENSORS) writeonly buffer Y { STORE y[]; };
layout(std430, set = 0, binding = BIND_TENSORS + 1) readonly buffer A { STORE a[]; };
layout(std430, set = 0, binding = BIND_TENSORS + 2) readonly buffer B { STORE b[]; };

#if defined(VARIANT_f16) || defined(VARIANT_bf16)
layout(std430, set = 0, binding = BIND_TENSORS) writeonly buffer Wide { float wide[]; };
layout(constant_id = S_OUT_DTYPE) const uint OUT = 0;
#endif

#if defined(VARIANT_f64)
#define VEC4 dvec4
#elif defined(VARIANT_u32)
#define VEC4 uvec4
#elif defined(VARIANT_u64)
#define VEC4 u64vec4
#else
#define VEC4 vec4
#endif
#ifdef IS_FLOAT
#define MULTIPLY_ADD(a, b, c) fma(a, b, c)
#else
#define MULTIPLY_ADD(a, b, c) ((a) * (b) + (c))
#endif

#define COLUMNS TILE_N
#define BLOCK 8
#define THIN 4

// The product without its batch: y[m, n] = sum of a[m, k] * b[k, n]. Steps are between neighbours along an axis.
uint m_size, n_size, k_size, batches;
int a_m, a_k, b_k, b_n;

// Whether all axes of a in front of the last are one axis with a single step, which is then a_m.
bool rows_merge() {
  uint extent = 1;
  int step_ = 0;
  for (int d = int(rank_of(1)) - 2; d >= 0; d--) {
    const uint n = dim(1, d);
    if (n == 1) continue;
    if (extent == 1) step_ = stride(1, d);
    else if (stride(1, d) != step_ * int(extent)) return false;
    extent *= n;
  }
  a_m = step_;
  return true;
}

void plan() {
  const uint ra = rank_of(1), rb = rank_of(2);
  m_size = ra > 1 ? dim(1, ra - 2) : 1;
  n_size = rb > 1 ? dim(2, rb - 1) : 1;
  k_size = dim(1, ra - 1);
  a_m = ra > 1 ? stride(1, ra - 2) : 0;
  a_k = stride(1, ra - 1);
  b_k = stride(2, rb > 1 ? rb - 2 : 0);
  b_n = rb > 1 ? stride(2, rb - 1) : 0;
  batches = count_of(0) / (m_size * n_size);
  if (batches > 1 && count_of(2) == k_size * n_size && count_of(1) == count_of(0) / n_size * k_size && rows_merge()) {
    m_size *= batches;
    batches = 1;
  }
}

// Where the first element of a (k = 1) or b (k = 2) of a batch lies.
int batch_start(uint k, uint batch) {
  int at = int(offset_of(k));
  if (batches == 1) return at;
  const int rank = int(rank_of(0)) - (rank_of(1) > 1 ? 1 : 0) - (rank_of(2) > 1 ? 1 : 0), own = max(int(rank_of(k)) - 2, 0);
  for (int d = rank - 1; d >= 0; d--) {
    if (d >= rank - own) at += int(batch % dim(0, d)) * stride(k, d - (rank - own));
    batch /= dim(0, d);
  }
  return at;
}

// Writes an element of y, which is f32 where that was asked for.
void put(uint batch, uint m, uint n, COMPUTE v) {
  const uint at = offset_of(0) + (batch * m_size + m) * n_size + n;
#if defined(VARIANT_f16) || defined(VARIANT_bf16)
  if (OUT == RLX_F32) {
    wide[at] = v;
    return;
  }
#endif
  y[at] = store(v);
}

// ---- thin

void thin() {
  const uint size = m_size * n_size;
  uint i = thread_unit();
  for (; i < count_of(0); i += GROUPS * LOCAL) {
    if (stopped()) return;
    const uint batch = i / size, m = i % size / n_size, n = i % n_size;
    int p = batch_start(1, batch) + int(m) * a_m, q = batch_start(2, batch) + int(n) * b_n;
    precise COMPUTE sum = COMPUTE(0);
    uint k = 0;
    for (; k + 8 <= k_size; k += 8)
      [[unroll]] for (uint u = 0; u < 8; u++, p += a_k, q += b_k) sum = MULTIPLY_ADD(load(a[p]), load(b[q]), sum);
    for (; k < k_size; k++, p += a_k, q += b_k) sum = MULTIPLY_ADD(load(a[p]), load(b[q]), sum);
    expect_end(k, k_size);
    put(batch, m, n, sum);
  }
  expect_end(i, count_of(0));
}

// ---- tiles

shared VEC4 a_block[BLOCK * LOCAL / 4]; // [k][m]
shared VEC4 b_block[BLOCK * COLUMNS / 4]; // [k][n]

// Neighbouring invocations read neighbours in memory where a or b has them along k or along the other axis.
void stage_a(int start, uint m0, uint k0) {
  const uint quads = LOCAL / 4;
  const bool along_k = abs(a_k) < abs(a_m);
  [[unroll]] for (uint part = 0; part < BLOCK / 4; part++) {
    const uint e = part * LOCAL + gl_LocalInvocationID.x;
    const uint k = along_k ? e % BLOCK : e / quads, quad = along_k ? e / BLOCK : e % quads;
    const uint m = m0 + quad * 4;
    const int at = start + int(m) * a_m + int(k0 + k) * a_k;
    VEC4 v = VEC4(0);
    if (k0 + k < k_size)
      for (uint c = 0; c < 4; c++)
        if (m + c < m_size) v[c] = load(a[at + int(c) * a_m]);
    a_block[k * quads + quad] = v;
  }
}

void stage_b(int start, uint n0, uint k0) {
  const uint quads = COLUMNS / 4;
  const bool along_k = abs(b_k) < abs(b_n);
  for (uint e = gl_LocalInvocationID.x; e < BLOCK * quads; e += LOCAL) {
    const uint k = along_k ? e % BLOCK : e / quads, quad = along_k ? e / BLOCK : e % quads;
    const uint n = n0 + quad * 4;
    const int at = start + int(n) * b_n + int(k0 + k) * b_k;
    VEC4 v = VEC4(0);
    if (k0 + k < k_size)
      for (uint c = 0; c < 4; c++)
        if (n + c < n_size) v[c] = load(b[at + int(c) * b_n]);
    b_block[k * quads + quad] = v;
  }
}

// An invocation has rows m ... m + 7 and two quads of columns, half a tile apart. Returns false where the run is to stop.
bool tile(uint batch, uint m0, uint n0) {
  const uint across = gl_LocalInvocationID.x % 8, down = gl_LocalInvocationID.x / 8;
  const int a_start = batch_start(1, batch), b_start = batch_start(2, batch);
  precise VEC4 sum[8][2];
  for (uint i = 0; i < 8; i++) sum[i][0] = sum[i][1] = VEC4(0);
  uint k0 = 0;
  for (; k0 < k_size; k0 += BLOCK) {
    if (k0 % 1024 == 0 && group_stopped()) return false;
    stage_a(a_start, m0, k0);
    stage_b(b_start, n0, k0);
    barrier();
    [[unroll]] for (uint k = 0; k < BLOCK; k++) {
      const VEC4 p[2] = {a_block[k * LOCAL / 4 + down * 2], a_block[k * LOCAL / 4 + down * 2 + 1]};
      const VEC4 q[2] = {b_block[k * COLUMNS / 4 + across], b_block[k * COLUMNS / 4 + 8 + across]};
      for (uint i = 0; i < 8; i++)
        for (uint j = 0; j < 2; j++) sum[i][j] = MULTIPLY_ADD(VEC4(p[i / 4][i % 4]), q[j], sum[i][j]);
    }
    barrier();
  }
  expect_end(k0, k_size);
  VEC4 quads[16]; // apart from sum, which can stay in registers, and in a loop that stays one: conversions are long
  for (uint i = 0; i < 16; i++) quads[i] = sum[i / 2][i % 2];
  [[dont_unroll]] for (uint i = 0; i < 16; i++) {
    const uint m = m0 + down * 8 + i / 2, n = n0 + i % 2 * 32 + across * 4;
    const VEC4 v = quads[i];
    if (m >= m_size) break;
    for (uint c = 0; c < 4; c++)
      if (n + c < n_size) put(batch, m, n + c, v[c]);
  }
  return true;
}

void main() {
  plan();
  if (m_size <= THIN || n_size <= THIN) {
    thin();
    return;
  }
  const uint down = (m_size + LOCAL - 1) / LOCAL, across = (n_size + COLUMNS - 1) / COLUMNS;
  uint unit = group_unit();
  for (; unit < batches * down * across; unit += GROUPS) {
    const uint at = unit % (down * across);
    if (!tile(unit / (down * across), at / across * LOCAL, at % across * COLUMNS)) return;
  }
  expect_end(unit, batches * down * across);
}
