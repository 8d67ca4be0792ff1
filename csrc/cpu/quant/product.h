// product.h: what the files of QMatMul and QConv2d share: exact sums of products of codes, as rows by panels of columns.
//
// A lane of 32 bits takes a group of codes at a time: four u8 by four i8 where the machine has that, else two by two as i16, whose products of
// codes never saturate (those of u8 by i8 to i16 would). Sums wrap. Rows are [rows][groups][group], panels [groups][columns][group], filled up
// with zeros. Codes of the other signedness are moved by 128, their zero points with them:
//   sum of (x - zx)(w - zw) = sum of x w - zw * sum of x - zx * sum of w + k zx zw
#pragma once
#include "../core/isa.h"
#include "../matmul/of_isa.h"
#include "quant.h"

namespace rlx {
namespace quant {

constexpr int MAX_COLUMNS = 32;  // of a panel
constexpr int MAX_ROWS = 14;     // of a tile

// Operand i, or null where it is absent.
template <class T> const T *operand(const Call &c, int i) { return c.has(i) ? c.in_ptr<T>(i) : nullptr; }

// How sums become results.
struct Requant {
  uint32_t dtype;
  Ends ends;
  int32_t zero;
  float multiplier;          // of all channels, where there are none of their own
  const float *multipliers;
};

// c[i][j] = start[j] + the sum over groups of row i by column j.
struct Tile {
  const char *a;
  int64_t a_step;        // bytes from row to row
  const char *b;         // a panel
  int64_t groups;
  const int32_t *start;
  int32_t *c;
  int64_t c_step;        // elements
  const char *ahead;     // memory to fetch meanwhile, a line a group
  int64_t ahead_step;
};
typedef void (*RunTile)(const Tile &);

// An instruction set's tiles; [h] is that of h rows.
struct TileSet {
  int rows, columns;                // of the largest tile
  int group, code_bytes;            // codes of a group; bytes of a code in rows and wide panels
  RunTile bytes[MAX_ROWS + 1];      // rows of u8 by panels of i8, one byte each
  RunTile wide[MAX_ROWS + 1];       // the same by panels that widen made
  RunTile windows[MAX_ROWS + 1];    // rows of i8 by wide panels of u8
  void (*widen)(void *to, const int8_t *from, int64_t codes);  // null where bytes are used as they are
  // The results y[at + j] of n sums, each plus add: channel j, or all of one channel where step is 0.
  void (*finish)(const Requant &q, void *y, int64_t at, const int32_t *sums, int32_t add, int n, int64_t channel, int step);
};

extern const TileSet tiles_generic, tiles_avx2, tiles_avx512, tiles_vnni, tiles_neon, tiles_dot;
inline const TileSet &tiles_of(int isa) {
#if defined(RLX_X86)
  if (isa == ISA_AVX512 && isa_has_avx512_vnni()) return tiles_vnni;
#elif defined(RLX_NEON)
  if (isa == ISA_NEON && isa_has_neon_dot()) return tiles_dot;
#endif
  return matmul::of_isa<tiles_generic, tiles_avx2, tiles_avx512, tiles_neon>(isa);
}

inline int64_t groups_of(const TileSet &s, int64_t k) { return (k + s.group - 1) / s.group; }
// Bytes of a row: of a long one an odd number of lines, so that rows do not fall into one set of a cache.
inline int64_t row_bytes(const TileSet &s, int64_t k) {
  const int64_t bytes = groups_of(s, k) * 4;
  return bytes <= 512 ? bytes : ((bytes + 63) / 64 | 1) * 64;
}
inline int64_t byte_panel(const TileSet &s, int64_t k) { return groups_of(s, k) * s.group * s.columns; }
inline int64_t wide_panel(const TileSet &s, int64_t k) { return groups_of(s, k) * 4 * s.columns; }

// How codes of a dtype become codes of the set: the bit that is changed, and their zero point then.
struct Shift {
  uint8_t flip;
  int32_t zero;
};
inline Shift to_unsigned(uint32_t dtype, int64_t zero) { return dtype == RLX_U8 ? Shift{0, int32_t(zero)} : Shift{0x80, int32_t(zero) + 128}; }
inline Shift to_signed(uint32_t dtype, int64_t zero) { return dtype == RLX_I8 ? Shift{0, int32_t(zero)} : Shift{0x80, int32_t(zero) - 128}; }

// What is the same in all sums of a row and a column: see above. Products wrap.
inline int32_t start_of(int32_t bias, int32_t column_sum, int32_t row_zero, int32_t column_zero, int64_t k) {
  return int32_t(uint32_t(bias) - uint32_t(row_zero) * uint32_t(column_sum) + uint32_t(k) * uint32_t(row_zero) * uint32_t(column_zero));
}

template <class Code, class To> int32_t pack_row_as(To *to, const uint8_t *from, int64_t k, int64_t end, uint8_t flip) {
  uint32_t sum = 0;
  for (int64_t i = 0; i < k; i++) {
    const Code v = Code(from[i] ^ flip);
    to[i] = To(v), sum += uint32_t(int32_t(v));
  }
  for (int64_t i = k; i < end; i++) to[i] = 0;
  return int32_t(sum);
}

// k codes to a row of the set; returns their sum. Code is the type they have then.
template <class Code> int32_t pack_row(const TileSet &s, void *to, const void *codes, int64_t k, uint8_t flip) {
  const int64_t end = groups_of(s, k) * s.group;
  const uint8_t *from = static_cast<const uint8_t *>(codes);
  return s.code_bytes == 1 ? pack_row_as<Code>(static_cast<uint8_t *>(to), from, k, end, flip) : pack_row_as<Code>(static_cast<int16_t *>(to), from, k, end, flip);
}

// Rows [at, at + GROUP) of columns [0, n), as groups.
template <int GROUP> void pack_group(int8_t *to, int32_t *sums, const uint8_t *from, int64_t stride, int n, uint8_t flip) {
  for (int j = 0; j < n; j++)
    for (int r = 0; r < GROUP; r++) {
      const int8_t v = int8_t(from[r * stride + j] ^ flip);
      to[j * GROUP + r] = v, sums[j] = int32_t(uint32_t(sums[j]) + uint32_t(v));
    }
}

// Columns [0, n) of a k x stride matrix to a panel of i8 and the sums of its columns.
inline void pack_panel(const TileSet &s, int8_t *to, int32_t *sums, const void *codes, int64_t stride, int64_t k, int n, uint8_t flip) {
  const uint8_t *from = static_cast<const uint8_t *>(codes);
  const int64_t line = int64_t(s.group) * s.columns;
  std::memset(sums, 0, size_t(s.columns) * sizeof(int32_t));
  for (int64_t i = 0; i < k; i += s.group, to += line) {
    if (n < s.columns || k - i < s.group) std::memset(to, 0, size_t(line));
    if (k - i >= 4 && s.group == 4) pack_group<4>(to, sums, from + i * stride, stride, n, flip);
    else if (k - i >= 2 && s.group == 2) pack_group<2>(to, sums, from + i * stride, stride, n, flip);
    else
      for (int r = 0; r < k - i; r++)
        for (int j = 0; j < n; j++) {
          const int8_t v = int8_t(from[(i + r) * stride + j] ^ flip);
          to[j * s.group + r] = v, sums[j] = int32_t(uint32_t(sums[j]) + uint32_t(v));
        }
  }
}

}  // namespace quant
}  // namespace rlx
