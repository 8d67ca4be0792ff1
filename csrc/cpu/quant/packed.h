// packed.h: weights as they are packed, decoded a chunk at a time. Chunks begin at multiples of CHUNK_K along k, so that they hold whole
// blocks of the GGUF formats.
#pragma once
#include "../core/rlx_begin.h"
#include "../core/kernel.h"
#include "../elementwise/convert.h"
#include "../matmul/ending.h"
#include "../matmul/gemm.h"

namespace rlx {
namespace quant {

constexpr int CHUNK_K = 256;
constexpr int COLUMN_BLOCK = 24;  // outputs of a unit of work where weights lie in rows; CHUNK_K of them elsewhere

// The attributes of a DequantMatMul, or of the product of a DequantMatMulRegion.
rlx_DequantMatMulAttrs product_attrs(const Command &c);

// The operands of such a product, and how they lie.
struct Packed {
  int64_t scheme = 0, n = 0, k = 0;
  bool rows = true;              // a row for each output (nk, GGUF, MLX); else [k, n]
  const uint8_t *w = nullptr;
  int64_t block = 0, blocks = 0; // weights of a side entry, and side entries along k
  int64_t row_bytes = 0;         // of a row of w, where rows
  int bits = 0;                  // of a code of an MLX scheme
  uint32_t w_dtype = 0;
  const void *scale = nullptr, *zero = nullptr;  // null where absent
  uint32_t scale_dtype = 0, zero_dtype = 0;
  bool one_scale = false;        // fp8: one for all columns
  const uint8_t *panels = nullptr;  // int8 codes in panels of the GEMM engine's columns, [k][columns] each, zero-padded; w is unused then
  void *y = nullptr;             // the product, of this dtype
  uint32_t y_dtype = 0;
};

Packed packed_of(const Call &c);

// Products of f32 with int8 weights that lie as [k, n] run on the GEMM engine, which widens weights as it uses them: they stay int8 in memory, constant
// ones in panels, and results have the bits of MatMul with the weights as f32. engine_plan fills all of g but the pointers to memory.
bool on_engine(const Command &c);
void engine_plan(const Command &c, int threads, const matmul::Ending *ending, matmul::GemmF32 *g);
void widen_panel(const void *packed, int64_t q, int64_t k0, int64_t kc, float *to);  // see matmul::GemmWidenF32

// What DequantMatMulRegion has around the product: its body, where the product and the product's own scratch lie.
constexpr uint32_t OPERANDS = 4;  // of the product
struct PackedRegion {
  Operand product;
  region::Region r;
  void *y;
  void *scratch;
  matmul::Scaling scaling;
  bool scales;  // the body is scaling; else r is open
  explicit PackedRegion(const Call &c);
};

// Weights [k, k + count) of output j, where weights lie in rows; k is a multiple of CHUNK_K and count at most CHUNK_K.
void decode_row(const Packed &p, int64_t j, int64_t k, int count, float *to);

// Weight k of outputs [j, j + count), where they lie as [k, n]; count is at most CHUNK_K.
void decode_across(const Packed &p, int64_t k, int64_t j, int count, float *to);

// Block of a GGUF scheme, as weights and bytes.
struct BlockSize {
  int weights, bytes;
};
constexpr int GGUF_SCHEMES = 24;  // they come first
extern const BlockSize gguf_blocks[GGUF_SCHEMES];

// The weights of one block.
void decode_block(int64_t scheme, const uint8_t *block, float *to);

inline float number_at(const void *p, uint32_t dtype, int64_t i) {
  switch (dtype) {
    case RLX_F16: return float(elementwise::f64_from_f16(static_cast<const uint16_t *>(p)[i]));
    case RLX_BF16: return float(elementwise::f64_from_bf16(static_cast<const uint16_t *>(p)[i]));
    default: return static_cast<const float *>(p)[i];
  }
}

}  // namespace quant
}  // namespace rlx
