#include "../core/rlx_begin.h"

// Tests the tiles of QMatMul and QConv2d of every instruction set that this machine runs, also those of machines that lack instructions of bytes: each
// sum must equal that of 64-bit integers modulo 2^32, for codes at the ends of their ranges too.
#include <stdio.h>

#include "../quant/product.h"

using namespace rlx;
using namespace rlx::quant;

namespace {

long failures, sums;
uint32_t seed = 1;
uint32_t next() { return seed = seed * 1664525u + 1013904223u, seed >> 8; }

constexpr int MAX_K = 300;
uint8_t x[MAX_ROWS * MAX_K], w[MAX_K * MAX_COLUMNS];
alignas(64) char rows[MAX_ROWS * 1024], panel[MAX_COLUMNS * MAX_K * 2], wide[MAX_COLUMNS * MAX_K * 4 + 64];

// form 0: random codes, 1 and 2: extreme ones.
void fill(int form) {
  for (uint8_t &v : x) v = form == 0 ? uint8_t(next()) : 255;
  for (uint8_t &v : w) v = form == 0 ? uint8_t(next()) : form == 1 ? 128 : 127;
}

void check(const char *name, const char *kind, RunTile run, int h, const TileSet &s, int k, const char *b, bool windows) {
  int32_t start[MAX_COLUMNS], got[MAX_ROWS * MAX_COLUMNS];
  for (int32_t &v : start) v = int32_t(next() * 257u);
  Tile t = {rows, row_bytes(s, k), b, groups_of(s, k), start, got, s.columns, b, 0};
  run(t);
  for (int i = 0; i < h; i++)
    for (int j = 0; j < s.columns; j++, sums++) {
      uint32_t want = uint32_t(start[j]);
      for (int64_t p = 0; p < k; p++) {
        const int64_t a = windows ? int64_t(int8_t(x[i * k + p])) : int64_t(x[i * k + p]), c = windows ? int64_t(w[p * s.columns + j]) : int64_t(int8_t(w[p * s.columns + j]));
        want += uint32_t(a * c);
      }
      if (uint32_t(got[i * s.columns + j]) != want && failures++ < 20)
        fprintf(stderr, "FAIL %s %s: %d rows, k %d, at %d,%d: got %d, want %d\n", name, kind, h, k, i, j, got[i * s.columns + j], int32_t(want));
    }
}

// A wide panel of u8 codes.
template <class Code> void window_panel(const TileSet &s, int k) {
  Code *to = reinterpret_cast<Code *>(wide);
  for (int64_t i = 0; i < groups_of(s, k) * s.group * s.columns; i++) to[i] = 0;
  for (int p = 0; p < k; p++)
    for (int j = 0; j < s.columns; j++) to[p / s.group * s.group * s.columns + j * s.group + p % s.group] = Code(w[p * s.columns + j]);
}

void test(const char *name, const TileSet &s) {
  const int depths[] = {1, 2, 3, 4, 5, 15, 16, 33, 255, MAX_K};
  int32_t column_sums[MAX_COLUMNS];
  for (int form = 0; form < 3; form++)
    for (int k : depths)
      for (int h = 1; h <= s.rows; h++) {
        fill(form);
        for (int i = 0; i < h; i++) pack_row<uint8_t>(s, rows + i * row_bytes(s, k), x + i * k, k, 0);
        pack_panel(s, reinterpret_cast<int8_t *>(panel), column_sums, w, s.columns, k, s.columns, 0);
        check(name, "bytes", s.bytes[h], h, s, k, panel, false);
        if (s.widen != nullptr) {
          s.widen(wide, reinterpret_cast<int8_t *>(panel), groups_of(s, k) * s.group * s.columns);
          check(name, "wide", s.wide[h], h, s, k, wide, false);
        }
        for (int i = 0; i < h; i++) pack_row<int8_t>(s, rows + i * row_bytes(s, k), x + i * k, k, 0);
        if (s.code_bytes == 1) window_panel<uint8_t>(s, k);
        else window_panel<int16_t>(s, k);
        check(name, "windows", s.windows[h], h, s, k, wide, true);
      }
  printf("%s: %ld sums, %ld failures\n", name, sums, failures);
}

}  // namespace

int main() {
  test("generic", tiles_generic);
#if defined(RLX_X86)
  if (isa_runs(ISA_AVX2)) test("avx2", tiles_avx2);
  else printf("avx2: not executed\n");
  if (isa_runs(ISA_AVX512)) test("avx512", tiles_avx512);
  else printf("avx512: not executed\n");
  if (isa_has_avx512_vnni()) test("avx512 with vnni", tiles_vnni);
  else printf("vnni: not executed\n");
#elif defined(RLX_NEON)
  test("neon", tiles_neon);
  if (isa_has_neon_dot()) test("neon with dot products", tiles_dot);
  else printf("neon with dot products: not executed\n");
#endif
  return failures != 0;
}
