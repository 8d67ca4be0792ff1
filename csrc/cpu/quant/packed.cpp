// Packed weights: where they lie, and the schemes with side tensors. Contract: a weight of these is (code - zero) * scale or code * scale + bias in
// f32, each operation rounded.
#include "../core/rlx_begin.h"

#include "code_books_gen.h"
#include "packed.h"

namespace rlx {
namespace quant {
namespace {

float fp8(uint32_t dtype, uint8_t code) {
  return float(dtype == RLX_F8E4M3 ? elementwise::f64_from_f8e4m3(code) : elementwise::f64_from_f8e5m2(code));
}
struct {
  float operator()(int code) const { return float(fp4_doubled[code]) * 0.5f; }
} constexpr fp4;

// Codes of one width in a row, bit 0 of byte 0 first.
int bits_at(const uint8_t *row, int64_t bit, int bits) {
  const int64_t at = bit / 8;
  const uint32_t low = row[at], high = bit % 8 + bits > 8 ? row[at + 1] : 0;
  return int((low | high << 8) >> (bit % 8) & ((1u << bits) - 1));
}

// A scale as a number: u8 ones are codes, of E4M3 in blocks of 16, else of E8M0.
float scale_at(const Packed &p, int64_t i) {
  if (p.scale_dtype != RLX_U8 && p.scale_dtype != RLX_F8E4M3) return number_at(p.scale, p.scale_dtype, i);
  const uint8_t code = static_cast<const uint8_t *>(p.scale)[i];
  return p.block == 16 ? fp8(RLX_F8E4M3, code) : float(elementwise::f64_from_e8m0(code));
}

// Codes [at, at + count) of nibbles in one run, low ones first.
template <class Number> void nibbles(const uint8_t *w, int64_t at, int count, Number number, float *to) {
  int i = 0;
  if (at % 2 != 0 && count > 0) to[i++] = number(w[at / 2] >> 4);
  w += (at + i) / 2;
  for (; i + 1 < count; i += 2, w++) to[i] = number(*w & 15), to[i + 1] = number(*w >> 4);
  if (i < count) to[i] = number(*w & 15);
}
struct {
  float operator()(int code) const { return float(code); }
} constexpr as_number;

// Codes [k, k + count) of row j, as numbers.
void row_codes(const Packed &p, int64_t j, int64_t k, int count, float *to) {
  const uint8_t *row = p.w + j * p.row_bytes;
  switch (p.scheme) {
    case rlx_Scheme_int8_block:
    case rlx_Scheme_int8_block_asym:
      if (p.w_dtype == RLX_I8) for (int i = 0; i < count; i++) to[i] = float(int8_t(row[k + i]));
      else for (int i = 0; i < count; i++) to[i] = float(row[k + i]);
      return;
    case rlx_Scheme_fp8_e4m3:
    case rlx_Scheme_fp8_e5m2:
      for (int i = 0; i < count; i++) to[i] = fp8(p.w_dtype, row[k + i]);
      return;
    case rlx_Scheme_int4_block:
      return nibbles(row, k, count, as_number, to);
    case rlx_Scheme_nvfp4_block:
      return nibbles(row, k, count, fp4, to);
    case rlx_Scheme_mlx_affine:
      if (p.bits == 4) return nibbles(row, k, count, as_number, to);
      for (int i = 0; i < count; i++) to[i] = float(bits_at(row, (k + i) * p.bits, p.bits));
      return;
    case rlx_Scheme_mlx_mxfp4:
      return nibbles(row, k, count, fp4, to);
    default:
      for (int i = 0; i < count; i++) to[i] = fp8(RLX_F8E4M3, row[k + i]);
  }
}

// The zero point of int schemes: that of a side entry, or 8 for int4_block without one.
float zero_at(const Packed &p, int64_t i) {
  if (p.zero != nullptr) return number_at(p.zero, p.zero_dtype, i);
  return p.scheme == rlx_Scheme_int4_block ? 8.0f : 0.0f;
}

bool is_fp8(const Packed &p) { return p.scheme == rlx_Scheme_fp8_e4m3 || p.scheme == rlx_Scheme_fp8_e5m2; }

// What nvfp4_block multiplies every scale with.
float global_scale(const Packed &p) {
  return p.scheme == rlx_Scheme_nvfp4_block && p.zero != nullptr ? number_at(p.zero, p.zero_dtype, 0) : 1.0f;
}

// The side tensors, where there are any.
void sides_of(const Call &c, Packed *p) {
  if (c.has(2)) p->scale = c.in_ptr<void>(2), p->scale_dtype = c.in(2).dtype, p->one_scale = c.in(2).count == 1;
  if (c.has(3)) p->zero = c.in_ptr<void>(3), p->zero_dtype = c.in(3).dtype;
}

}  // namespace

rlx_DequantMatMulAttrs product_attrs(const Command &c) {
  if (c.op == RLX_OP_DequantMatMul) return *static_cast<const rlx_DequantMatMulAttrs *>(c.attrs);
  const rlx_DequantMatMulRegionAttrs &a = *static_cast<const rlx_DequantMatMulRegionAttrs *>(c.attrs);
  return {a.scheme, a.block_size, a.w_layout, a.bits, a.compute};
}

Packed packed_of(const Call &c) {
  const rlx_DequantMatMulAttrs a = product_attrs(*c.cmd);
  Packed p;
  p.scheme = a.scheme;
  p.k = c.in(0).dims[c.in(0).rank - 1], p.n = c.out(0).dims[c.out(0).rank - 1];
  p.w = c.in_ptr<uint8_t>(1), p.w_dtype = c.in(1).dtype, p.panels = static_cast<const uint8_t *>(c.cmd->packed);
  p.y = c.out_ptr<void>(0), p.y_dtype = c.in(0).dtype;
  sides_of(c, &p);
  if (a.scheme < GGUF_SCHEMES) {
    const BlockSize b = gguf_blocks[a.scheme];
    p.row_bytes = p.k / b.weights * b.bytes;
    return p;
  }
  const bool mlx = a.scheme >= rlx_Scheme_mlx_affine;
  p.rows = mlx || a.w_layout == rlx_WeightLayout_nk;
  p.block = a.scheme == rlx_Scheme_nvfp4_block ? 16 : a.block_size;
  if (is_fp8(p)) {
    p.w_dtype = a.scheme == rlx_Scheme_fp8_e4m3 ? RLX_F8E4M3 : RLX_F8E5M2;
    p.row_bytes = p.k;
    return p;
  }
  p.blocks = p.k > 0 ? (p.k - 1) / p.block + 1 : 0;
  p.bits = a.scheme == rlx_Scheme_mlx_mxfp4 ? 4 : a.scheme == rlx_Scheme_mlx_mxfp8 ? 8 : int(a.bits);
  if (mlx) p.row_bytes = p.k * p.bits / 8;
  else if (a.scheme == rlx_Scheme_int4_block || a.scheme == rlx_Scheme_nvfp4_block) p.row_bytes = p.rows ? p.blocks * (p.block / 2) : 0;
  else p.row_bytes = p.k;
  return p;
}

void decode_row(const Packed &p, int64_t j, int64_t k, int count, float *to) {
  if (p.scheme < GGUF_SCHEMES) {
    const BlockSize b = gguf_blocks[p.scheme];
    const uint8_t *from = p.w + j * p.row_bytes + k / b.weights * b.bytes;
    for (int i = 0; i < count; i += b.weights, from += b.bytes) decode_block(p.scheme, from, to + i);
    return;
  }
  row_codes(p, j, k, count, to);
  if (is_fp8(p)) {
    const float s = p.scale == nullptr ? 1.0f : number_at(p.scale, p.scale_dtype, p.one_scale ? 0 : j);
    for (int i = 0; i < count; i++) to[i] *= s;
    return;
  }
  const float g = global_scale(p);
  for (int i = 0; i < count;) {
    const int64_t block = (k + i) / p.block, side = j * p.blocks + block, left = (block + 1) * p.block - (k + i);
    const int end = left < count - i ? i + int(left) : count;
    const float s = scale_at(p, side) * g;
    if (p.scheme == rlx_Scheme_mlx_affine) {
      const float bias = number_at(p.zero, p.zero_dtype, side);
      for (; i < end; i++) to[i] = to[i] * s + bias;
      continue;
    }
    const float z = p.scheme == rlx_Scheme_nvfp4_block || p.scheme >= rlx_Scheme_mlx_affine ? 0.0f : zero_at(p, side);
    for (; i < end; i++) to[i] = (to[i] - z) * s;
  }
}

void decode_across(const Packed &p, int64_t k, int64_t j, int count, float *to) {
  const int64_t first = k * p.n + j;
  if (is_fp8(p)) {
    for (int i = 0; i < count; i++) {
      const float s = p.scale == nullptr ? 1.0f : number_at(p.scale, p.scale_dtype, p.one_scale ? 0 : j + i);
      to[i] = fp8(p.w_dtype, p.w[first + i]) * s;
    }
    return;
  }
  const int64_t side = k / p.block * p.n + j;
  if (p.scheme == rlx_Scheme_int4_block || p.scheme == rlx_Scheme_nvfp4_block) {
    const bool small = p.scheme == rlx_Scheme_nvfp4_block;
    if (small) nibbles(p.w, first, count, fp4, to);
    else nibbles(p.w, first, count, as_number, to);
    if (small) {
      const float g = global_scale(p);
      for (int i = 0; i < count; i++) to[i] *= scale_at(p, side + i) * g;
      return;
    }
  } else {
    const uint8_t *w = p.panels == nullptr ? p.w + first : p.panels + j * p.k + k * matmul::gemm_panel_cols();  // j begins a panel
    if (p.w_dtype == RLX_I8) for (int i = 0; i < count; i++) to[i] = float(int8_t(w[i]));
    else for (int i = 0; i < count; i++) to[i] = float(w[i]);
  }
  if (p.zero == nullptr && p.scale_dtype == RLX_F32) {
    const float z = zero_at(p, 0), *s = static_cast<const float *>(p.scale) + side;
    for (int i = 0; i < count; i++) to[i] = (to[i] - z) * s[i];
    return;
  }
  for (int i = 0; i < count; i++) to[i] = (to[i] - zero_at(p, side + i)) * number_at(p.scale, p.scale_dtype, side + i);
}

bool on_engine(const Command &c) {
  const rlx_DequantMatMulAttrs a = product_attrs(c);
  return c.in[0].dtype == RLX_F32 && a.w_layout == rlx_WeightLayout_kn && (a.scheme == rlx_Scheme_int8_block || a.scheme == rlx_Scheme_int8_block_asym);
}

void widen_panel(const void *packed, int64_t q, int64_t k0, int64_t kc, float *to) {
  const Packed &p = *static_cast<const Packed *>(packed);
  const int64_t cols = matmul::gemm_panel_cols(), j = q * cols, n = p.n - j < cols ? p.n - j : cols;
  for (int64_t k = k0; k < k0 + kc; k++, to += cols) {
    decode_across(p, k, j, int(n), to);
    for (int64_t i = n; i < cols; i++) to[i] = 0;
  }
}

void engine_plan(const Command &c, int threads, const matmul::Ending *ending, matmul::GemmF32 *g) {
  g->k = c.in[0].dims[c.in[0].rank - 1], g->n = c.out[0].dims[c.out[0].rank - 1];
  g->m = g->n > 0 ? c.out[0].count / g->n : 0;
  g->a_rs = g->k, g->a_cs = 1, g->c_rs = g->n;
  g->widen = widen_panel;
  if (ending != nullptr) g->finish = matmul::end_gemm_block, g->finish_ctx = const_cast<matmul::Ending *>(ending);
  matmul::gemm_f32_plan(g, threads);
}

namespace {

// Codes [k, n] on their way into panels.
struct Panels {
  const uint8_t *codes;
  uint8_t *panels;
  int64_t k, n, cols;
};

void pack_panels(void *ctx, int64_t begin, int64_t end, int) {
  const Panels &j = *static_cast<const Panels *>(ctx);
  for (int64_t q = begin; q < end; q++) {
    const int64_t left = j.n - q * j.cols, n = left < j.cols ? left : j.cols;
    uint8_t *to = j.panels + q * j.cols * j.k;
    for (int64_t i = 0; i < j.k; i++, to += j.cols) {
      std::memcpy(to, j.codes + i * j.n + q * j.cols, size_t(n));
      std::memset(to + n, 0, size_t(j.cols - n));
    }
  }
}

// The inverse of pack_panels; how is the columns of a panel.
void unpack_panels(const Operand &w, const int64_t *how, const char *packed, char *raw) {
  const int64_t k = w.dims[0], n = w.dims[1], cols = how[0];
  for (int64_t j = 0; j < n; j += cols)
    for (int64_t i = 0; i < k; i++, packed += cols) std::memcpy(raw + i * n + j, packed, size_t(n - j < cols ? n - j : cols));
}

// Constant codes in panels: rows of a panel follow each other in memory.
int32_t pack_codes(Prepare &prepare) {
  const Operand &w = prepare.cmd->in[1];
  const Source codes = prepare.constant(prepare, 1);
  if (!codes || w.count == 0) return RLX_OK;
  Panels j = {nullptr, nullptr, w.dims[0], w.dims[1], matmul::gemm_panel_cols()};
  const int64_t panels = (j.n + j.cols - 1) / j.cols;
  const PackedForm form = {uint64_t(RLX_OP_DequantMatMul) << 32 | uint64_t(j.cols), panels * j.cols * j.k, unpack_panels, {j.cols}};
  bool fresh = false;
  prepare.cmd->packed = j.panels = static_cast<uint8_t *>(prepare.cache(prepare, 1, form, &fresh));
  if (j.panels == nullptr) return RLX_NO_MEMORY;
  if (!fresh) return RLX_OK;
  j.codes = static_cast<const uint8_t *>(prepare.source(prepare, 1));
  if (j.codes == nullptr) return RLX_NO_MEMORY;
  parallel(prepare.pool, prepare.max_threads, panels, 1 + (1 << 16) / (j.k * j.cols), pack_panels, &j, nullptr);
  return RLX_OK;
}

// The scratch of a product, with an ending or without. Halves are widened once.
int32_t prepare_product(Prepare &prepare, bool ends, int64_t *scratch) {
  Command &c = *prepare.cmd;
  *scratch = 0;
  if (!on_engine(c)) {
    if (c.in[0].dtype != RLX_F32 && c.out[0].count != 0) *scratch = c.in[0].count * int64_t(sizeof(float));
    return RLX_OK;
  }
  const int32_t code = pack_codes(prepare);
  if (code != RLX_OK) return code;
  for (int threads = 1; threads <= prepare.max_threads; threads++) {
    matmul::GemmF32 g = {};
    if (ends) g.finish = matmul::end_gemm_block;
    engine_plan(c, threads, nullptr, &g);
    if (g.scratch_bytes > *scratch) *scratch = g.scratch_bytes;
  }
  return RLX_OK;
}

int64_t product_scratch(const Command &c, const Operand &product) {
  return matmul::result_for_product(c, product) >= 0 ? 0 : align64(product.count * int64_t(rlx_dtype_sizes[product.dtype]));
}

}  // namespace

int32_t dequant_matmul_prepare(Prepare &prepare) { return prepare_product(prepare, false, &prepare.cmd->scratch); }

int32_t dequant_matmul_region_prepare(Prepare &prepare) {
  Command &c = *prepare.cmd;
  if (c.num_in < OPERANDS) return RLX_BAD_WORDS;
  const Operand product = matmul::product_operand(c, c.in[0].dtype);
  int32_t code = matmul::prepare_ending(prepare, product, OPERANDS);
  if (code != RLX_OK || product.count == 0) return code;
  int64_t bytes = 0;
  if ((code = prepare_product(prepare, true, &bytes)) == RLX_OK) c.scratch = align64(matmul::ending_of(c).layout->bytes(prepare.max_threads)) + align64(bytes) + product_scratch(c, product);
  return code;
}

PackedRegion::PackedRegion(const Call &c) : product(matmul::product_operand(*c.cmd, c.in(0).dtype)), r(*matmul::ending_of(*c.cmd).layout) {
  char *at = static_cast<char *>(c.scratch);
  const int k = matmul::result_for_product(*c.cmd, product);
  y = k >= 0 ? c.out_ptr<void>(k) : at + c.cmd->scratch - product_scratch(*c.cmd, product);
  scratch = at + align64(r.layout.bytes(c.threads()));
  scales = on_engine(*c.cmd) && matmul::scaling_of(c, y, &scaling);
  if (!scales) r.open(at, [&](uint32_t j) { return j == 0 ? y : c.in_data[j + OPERANDS - 1]; });
}

// Units are rows of packed bytes. Contract: bits of the formulas, rounded once to the result's dtype.
void dequant_moe_weights(const Call &c, Range r) {
  const int64_t scheme = c.attrs<rlx_DequantMoEWeightsAttrs>().scheme, k = c.out(0).dims[1], n = c.out(0).dims[2];
  const BlockSize b = gguf_blocks[scheme];
  const uint32_t dtype = c.out(0).dtype;
  float w[CHUNK_K];
  for (int64_t u = r.begin; u < r.end && !c.stopped(); u++) {
    const uint8_t *from = c.in_ptr<uint8_t>(0) + u * (k / b.weights * b.bytes);
    const int64_t at = u / n * k * n + u % n;
    for (int64_t p = 0; p < k; p += b.weights, from += b.bytes) {
      decode_block(scheme, from, w);
      for (int i = 0; i < b.weights; i++) {
        const int64_t to = at + (p + i) * n;
        if (dtype == RLX_F32) c.out_ptr<float>(0)[to] = w[i];
        else c.out_ptr<uint16_t>(0)[to] = dtype == RLX_F16 ? elementwise::f16_from_f64(double(w[i])) : elementwise::bf16_from_f64(double(w[i]));
      }
    }
  }
}

Split packed_rows(const Call &c) {
  const int64_t k = c.out(0).dims[1];
  return {c.out(0).count == 0 ? 0 : c.out(0).count / k, 1 + 4096 / (k + 1)};
}

}  // namespace quant
}  // namespace rlx
