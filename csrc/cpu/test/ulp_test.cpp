// ulp_test.cpp: measures the vector math of csrc/cpu/core against double-precision libm, for every instruction set
// that this machine runs, and fails above the bounds of the function table.
//
//   g++ -std=c++17 -O3 ulp_test.cpp -o ulp_test -lm && ./ulp_test [stride [function [isa]]]
//   ./ulp_test all [function [isa]]
//
// Unary functions see every stride-th of the 2^32 bit patterns (default 997) and a list of corners; binary ones all pairs
// of corners and pseudo-random pairs. `all` takes every pattern, two minutes for most unary functions, says how far it is
// on standard error, and ends with what it has seen at Ctrl-C. Every block (of `all`, one in 16) is computed twice, the second
// time with other values in every other lane: a lane must not depend on its neighbours.
#include "../core/rlx_begin.h"

#include "../norm/norm.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>

using namespace rlx;
using namespace rlx::norm;

typedef void (*kernel)(const float* a, const float* b, float* y, int n);
struct isa_table {
  const kernel* unary;
  const kernel* binary;
  int (*check_memory)();
  void (*widen)(const uint16_t* h, float* f16, float* bf16, int n);
  void (*narrow)(const float* x, uint16_t* f16, uint16_t* bf16, int n);
  int lanes;
};

namespace generic {
namespace {
#include "../core/vec_generic.h"
#include "../core/vec_math.h"
#include "../reduce/forms.h"
#include "../norm/power.h"
#include "../norm/norm_body.h"
#include "ulp_kernels.h"
}  // namespace
}  // namespace generic

#if defined(RLX_X86)
RLX_TARGET_AVX2_BEGIN
namespace avx2 {
namespace {
#include "../core/vec_avx2.h"
#include "../core/vec_math.h"
#include "../reduce/forms.h"
#include "../norm/power.h"
#include "../norm/norm_body.h"
#include "ulp_kernels.h"
}  // namespace
}  // namespace avx2
RLX_TARGET_END

RLX_TARGET_AVX512_BEGIN
namespace avx512 {
namespace {
#include "../core/vec_avx512.h"
#include "../core/vec_math.h"
#include "../reduce/forms.h"
#include "../norm/power_avx512.h"
#include "../norm/norm_body.h"
#include "ulp_kernels.h"
}  // namespace
}  // namespace avx512
RLX_TARGET_END
#elif defined(RLX_NEON)
namespace neon {
namespace {
#include "../core/vec_neon.h"
#include "../core/vec_math.h"
#include "../reduce/forms.h"
#include "../norm/power.h"
#include "../norm/norm_body.h"
#include "ulp_kernels.h"
}  // namespace
}  // namespace neon
#endif

namespace {

struct isa { const char* name; const isa_table* table; };
isa isas[3];
int isa_count = 0;

void find_isas(const char* only) {
  isas[isa_count++] = {"generic", &generic::table};
#if defined(RLX_X86)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2")) isas[isa_count++] = {"avx2", &avx2::table};
  else std::printf("avx2: not executed\n");
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    isas[isa_count++] = {"avx512", &avx512::table};
  else std::printf("avx512: not executed\n");
#elif defined(RLX_NEON)
  isas[isa_count++] = {"neon", &neon::table};
#endif
  for (int i = 0; only && i < isa_count; i++)
    if (std::strcmp(isas[i].name, only) == 0) {
      isas[0] = isas[i];
      isa_count = 1;
    }
}

// Bounds: 0 is bit-equal to the oracle rounded to f32 (any NaN for a NaN), but that either zero will do for EITHER_ZERO.
// Others are ULP of the exact value; for arguments below `below` an error of at most `absolute` counts as none.
enum flags { NONE = 0, EITHER_ZERO = 1 };
struct row1 { const char* name; double bound; int flags; double (*f)(double); double absolute = 0, below = -HUGE_VAL; };
struct row2 { const char* name; double bound; int flags; double (*f)(double, double); };

#define LIBM1(name) [](double x) { return ::name(x); }
const row1 unary_rows[] = {
    {"identity", 0, NONE, [](double x) { return x; }},
    {"neg", 0, NONE, [](double x) { return -x; }},
    {"abs", 0, NONE, LIBM1(fabs)},
    {"sign", 0, NONE, [](double x) { return x != x ? x : static_cast<double>((x > 0) - (x < 0)); }},
    {"square", 0, NONE, [](double x) { return x * x; }},
    {"reciprocal", 0, NONE, [](double x) { return static_cast<double>(1.0f / static_cast<float>(x)); }},
    {"sqrt", 0, NONE, LIBM1(sqrt)},
    {"rsqrt", 2, NONE, [](double x) { return 1.0 / ::sqrt(x); }},
    {"round", 0, NONE, LIBM1(rint)},
    {"floor", 0, NONE, LIBM1(floor)},
    {"ceil", 0, NONE, LIBM1(ceil)},
    {"trunc", 0, NONE, LIBM1(trunc)},
    {"is_nan", 0, NONE, [](double x) { return x != x ? 1.0 : 0.0; }},
    {"is_inf", 0, NONE, [](double x) { return ::fabs(x) == HUGE_VAL ? 1.0 : 0.0; }},
    {"is_finite", 0, NONE, [](double x) { return ::fabs(x) < HUGE_VAL ? 1.0 : 0.0; }},
    {"exp", 2, NONE, LIBM1(exp)},
    {"exp2", 2, NONE, LIBM1(exp2)},
    {"expm1", 3, NONE, LIBM1(expm1)},
    {"log", 2, NONE, LIBM1(log)},
    {"log2", 2, NONE, LIBM1(log2)},
    {"log10", 2, NONE, LIBM1(log10)},
    {"log1p", 3, NONE, LIBM1(log1p)},
    {"sin", 2, NONE, LIBM1(sin)},
    {"cos", 2, NONE, LIBM1(cos)},
    {"tan", 4, NONE, LIBM1(tan)},
    {"asin", 3, NONE, LIBM1(asin)},
    {"acos", 3, NONE, LIBM1(acos)},
    {"atan", 3, NONE, LIBM1(atan)},
    {"sinh", 3, NONE, LIBM1(sinh)},
    {"cosh", 3, NONE, LIBM1(cosh)},
    {"tanh", 3, NONE, LIBM1(tanh)},
    {"asinh", 4, NONE, LIBM1(asinh)},
    {"acosh", 4, NONE, LIBM1(acosh)},
    {"atanh", 4, NONE, LIBM1(atanh)},
    {"erf", 3, NONE, LIBM1(erf)},
    {"erfc", 3, NONE, LIBM1(erfc)},
    {"gelu", 3, EITHER_ZERO, [](double x) { return x == -HUGE_VAL ? 0 : x / 2 * ::erfc(-x / ::sqrt(2.0)); }, 4.2e-8, -2},  // the spec: 8 ULP + 1e-7
    {"exp_below", 1.5, NONE, [](double x) { return ::exp(-::fabs(x)); }, 0x1.67p-126, HUGE_VAL},  // e^-87: smaller results may be 0
    {"power", 1.5, NONE, [](double x) { return ::exp2(-::fabs(x)); }, 0x1p-126, HUGE_VAL},
};
const row2 binary_rows[] = {
    {"add", 0, NONE, [](double a, double b) { return a + b; }},
    {"sub", 0, NONE, [](double a, double b) { return a - b; }},
    {"mul", 0, NONE, [](double a, double b) { return a * b; }},
    {"div", 0, NONE, [](double a, double b) { return static_cast<double>(static_cast<float>(a) / static_cast<float>(b)); }},
    {"max", 0, EITHER_ZERO, [](double a, double b) { return a != a || b != b ? a + b : ::fmax(a, b); }},
    {"min", 0, EITHER_ZERO, [](double a, double b) { return a != a || b != b ? a + b : ::fmin(a, b); }},
    {"copysign", 0, NONE, [](double a, double b) { return ::copysign(a, b); }},
    {"lt", 0, NONE, [](double a, double b) { return a < b ? 1.0 : 0.0; }},
    {"le", 0, NONE, [](double a, double b) { return a <= b ? 1.0 : 0.0; }},
    {"gt", 0, NONE, [](double a, double b) { return a > b ? 1.0 : 0.0; }},
    {"ge", 0, NONE, [](double a, double b) { return a >= b ? 1.0 : 0.0; }},
    {"eq", 0, NONE, [](double a, double b) { return a == b ? 1.0 : 0.0; }},
    {"ne", 0, NONE, [](double a, double b) { return a != b ? 1.0 : 0.0; }},
    {"pow", 4, NONE, [](double a, double b) { return ::pow(a, b); }},
    {"mod", 0, NONE, [](double a, double b) { return ::fmod(a, b); }},
    {"atan2", 4, NONE, [](double a, double b) { return ::atan2(a, b); }},
};

uint32_t to_bits(float x) {
  uint32_t b;
  std::memcpy(&b, &x, 4);
  return b;
}
float from_pattern(uint32_t b) {
  float x;
  std::memcpy(&x, &b, 4);
  return x;
}

const double FLT_LIMIT = 0x1p128, FLT_TOP = 0x1.fffffep127;

// Of a normal number, its exponent: 2^exponent <= x < 2^(exponent + 1).
int exponent(double x) {
  uint64_t b;
  std::memcpy(&b, &x, 8);
  return static_cast<int>(b >> 52 & 2047) - 1023;
}
double power_of_two(int e) {
  const uint64_t b = static_cast<uint64_t>(e + 1023) << 52;
  double x;
  std::memcpy(&x, &b, 8);
  return x;
}

// The error of y in ULP of the exact value `want`, 0 up to `absolute`; HUGE_VAL where a corner rule is broken.
double ulp_error(float y, double want, double bound, int flags, double absolute) {
  if (want != want) return y != y ? 0 : HUGE_VAL;
  if (y != y) return HUGE_VAL;
  if (absolute > 0 && ::fabs(static_cast<double>(y) - want) <= absolute) return 0;
  const float rounded = static_cast<float>(want);
  if (to_bits(y) == to_bits(rounded) && (bound == 0 || want == 0 || ::fabs(want) >= FLT_LIMIT)) return 0;
  if (bound == 0) return (flags & EITHER_ZERO) && y == 0 && want == 0 ? 0 : HUGE_VAL;
  if (want == 0 || ::fabs(want) == HUGE_VAL) return HUGE_VAL;
  if ((flags & EITHER_ZERO) && y == 0 && ::fabs(want) < 0x1p-149) return 0;
  if (std::signbit(y) != std::signbit(want)) return HUGE_VAL;
  const double size = ::fabs(want);
  double got = ::fabs(static_cast<double>(y));
  if (got == HUGE_VAL) {
    if (rounded == y) return 0;
    return HUGE_VAL;  // early overflow
  }
  if (size >= FLT_LIMIT && size > FLT_TOP * (1 + bound * 0x1p-24)) return HUGE_VAL;
  if (size < 0x1p-126 && got == 0) return 0;  // a flushed subnormal
  return ::fabs(got - size) * (size < 0x1p-125 ? 0x1p149 : power_of_two(23 - exponent(size)));
}

const int BLOCK = 4096;
struct worst { double ulp; float a, b, y; double want; long bad; long coupled; };

const uint32_t corner_bits[] = {
    0x00000000, 0x00000001, 0x00000002, 0x007fffff, 0x00800000, 0x00800001, 0x0d000000, 0x2e800000, 0x32ffffff, 0x33000000, 0x33800000,
    0x34000000, 0x39800000, 0x3e800000, 0x3effffff, 0x3f000000, 0x3f000001, 0x3f1fffff, 0x3f200000, 0x3f2aaaaa, 0x3f2aaaab, 0x3f3504f3,
    0x3f7fffff, 0x3f800000, 0x3f800001, 0x3faaaaab, 0x3fb504f3, 0x3fc00000, 0x3fc90fda, 0x3fc90fdb, 0x40000000, 0x40200000, 0x40400000,
    0x40490fdb, 0x407fffff, 0x40800000, 0x41200000, 0x41a00000, 0x42aeac4f, 0x42aeac50, 0x42b17217, 0x42b17218, 0x42b17219, 0x42b2d4fc,
    0x42b2d4fd, 0x42cff1b4, 0x42cff1b5, 0x42fc0000, 0x42ffffff, 0x43000000, 0x43150000, 0x43160000, 0x49742400, 0x49742408, 0x4affffff,
    0x4b000000, 0x4b000001, 0x4b7fffff, 0x4b800000, 0x4c000000, 0x4d800000, 0x4f000000, 0x5f000000, 0x61a4c9d9, 0x7e800000, 0x7f000000,
    0x7f7ffffe, 0x7f7fffff, 0x7f800000, 0x7fc00000, 0x7f800001, 0x7fffffff, 0x4223cf1b, 0x6115cb11, 0x7e7fffff, 0x4b7ffffd,
};
const int CORNERS = static_cast<int>(sizeof corner_bits / sizeof corner_bits[0]);

// What fills the other lanes in the second run: values that take slow paths and corners.
const uint32_t noise_bits[] = {0x7f800000, 0x7fc00000, 0x7f000000, 0xff7fffff, 0x00000001, 0x80000000, 0xc2f00000, 0x4e000000};

float in_a[BLOCK], in_b[BLOCK], out[BLOCK], mixed_a[BLOCK], mixed_b[BLOCK], mixed_out[BLOCK];
double wanted[BLOCK];
float nearest[BLOCK];  // wanted, rounded
bool limits[BLOCK];    // tanh(inf) is 1, not nearly

// Argument i of a block, and what is exact.
void ask(int i, float a, float b, double want) {
  const bool noise = (i ^ (i >> 4)) & 1;
  in_a[i] = a, in_b[i] = b;
  mixed_a[i] = noise ? from_pattern(noise_bits[(i >> 1) & 7]) : a;
  mixed_b[i] = noise ? from_pattern(noise_bits[(i >> 4) & 7]) : b;
  wanted[i] = want, nearest[i] = static_cast<float>(want);
  limits[i] = ::fabs(static_cast<double>(a)) == HUGE_VAL && want == ::rint(want);
}

void measure(kernel k, const char* name, double bound, int flags, double absolute, double below, bool twice, worst* w) {
  k(in_a, in_b, out, BLOCK);
  for (int i = 0; i < BLOCK; i++) {
    if ((bound == 0 || w->ulp >= 0.5) && to_bits(out[i]) == to_bits(nearest[i])) continue;
    const double u = ulp_error(out[i], wanted[i], limits[i] ? 0 : bound, flags, static_cast<double>(in_a[i]) < below ? absolute : 0);
    if (u > bound) {
      if (w->bad++ < 3) std::printf("  %s(%a, %a) = %a, exact %a\n", name, in_a[i], in_b[i], out[i], wanted[i]);
    }
    if (u > w->ulp) {
      w->ulp = u;
      w->a = in_a[i];
      w->b = in_b[i];
    }
  }
  if (!twice) return;
  k(mixed_a, mixed_b, mixed_out, BLOCK);
  for (int i = 0; i < BLOCK; i++)
    if (!((i ^ (i >> 4)) & 1) && std::memcmp(&out[i], &mixed_out[i], 4) != 0) w->coupled++;
}

volatile std::sig_atomic_t interrupted = 0;
void interrupt(int) { interrupted = 1; }

bool shows_progress = false;

bool report(const char* name, double bound, const worst* w) {
  bool ok = true;
  if (shows_progress) std::fprintf(stderr, "\r");
  std::printf("%-10s bound %-4g", name, bound);
  for (int k = 0; k < isa_count; k++) {
    std::printf("  %s %.3f (%a)", isas[k].name, w[k].ulp, w[k].a);
    if (w[k].bad) std::printf(" FAIL %ld", w[k].bad);
    if (w[k].coupled) std::printf(" LANES DEPEND ON EACH OTHER %ld", w[k].coupled);
    ok = ok && w[k].bad == 0 && w[k].coupled == 0;
  }
  std::printf("\n");
  return ok;
}

void progress(const char* name, uint64_t at, uint64_t total) {
  static std::time_t last = 0;
  if (!shows_progress || std::time(nullptr) == last) return;
  last = std::time(nullptr);
  std::fprintf(stderr, "\r%-10s %5.1f %%", name, 100.0 * static_cast<double>(at) / static_cast<double>(total));
}

bool test_unary(int row, uint32_t stride) {
  const row1& r = unary_rows[row];
  worst w[3] = {};
  const uint64_t patterns = ((1ull << 32) + stride - 1) / stride, total = patterns + 2 * CORNERS;
  for (uint64_t at = 0; at < total && !interrupted; at += BLOCK) {
    progress(r.name, at, total);
    const bool twice = stride > 1 || at / BLOCK % 16 == 0;
    for (int i = 0; i < BLOCK; i++) {
      uint64_t j = at + static_cast<uint64_t>(i);
      if (j >= total) j = 0;
      const uint64_t c = j - patterns;
      const float a = from_pattern(j < patterns ? static_cast<uint32_t>(j * stride) : corner_bits[c / 2] | (c & 1 ? 0x80000000u : 0u));
      ask(i, a, 0, r.f(static_cast<double>(a)));
    }
    for (int k = 0; k < isa_count; k++) measure(isas[k].table->unary[row], r.name, r.bound, r.flags, r.absolute, r.below, twice, &w[k]);
  }
  return report(r.name, r.bound, w);
}

uint64_t seed = 88172645463325252ull;
uint32_t next_random() {
  seed ^= seed << 13;
  seed ^= seed >> 7;
  seed ^= seed << 17;
  return static_cast<uint32_t>(seed >> 32);
}
// A float with a random sign and an exponent within `spread` of 0.
float moderate(int spread) {
  const uint32_t r = next_random();
  const int e = static_cast<int>(next_random() % static_cast<uint32_t>(2 * spread + 1)) - spread;
  return from_pattern((r & 0x807fffffu) | static_cast<uint32_t>(127 + e) << 23);
}

void binary_pair(uint64_t j, float* a, float* b) {
  const uint64_t pairs = 4ull * CORNERS * CORNERS;
  if (j < pairs) {
    const uint32_t x = static_cast<uint32_t>(j / (2 * CORNERS)), y = static_cast<uint32_t>(j % (2 * CORNERS));
    *a = from_pattern(corner_bits[x / 2] | (x & 1) << 31);
    *b = from_pattern(corner_bits[y / 2] | (y & 1) << 31);
    return;
  }
  switch (j % 8) {
    case 0: *a = from_pattern(next_random()), *b = from_pattern(next_random()); break;
    case 1: *a = moderate(3), *b = moderate(3); break;
    case 2: *a = moderate(12), *b = moderate(12); break;
    case 3: *a = moderate(1), *b = moderate(8); break;
    case 4: *a = ::fabsf(moderate(2)), *b = moderate(7); break;
    case 5: *a = moderate(20), *b = static_cast<float>(static_cast<int>(next_random() % 41) - 20); break;
    case 6: *a = static_cast<float>(static_cast<int>(next_random() >> 8)), *b = static_cast<float>(1 + next_random() % 4096); break;
    default:  // a near 1, b such that a^b spans the range of f32
      *a = from_pattern(0x3f800000u + (next_random() & 0x1ffff) - 0x10000u);
      *b = moderate(2) * 88.0f / ::fabsf(::logf(*a == 1.0f ? 1.5f : *a));
  }
}

bool test_binary(int row, uint64_t count) {
  const row2& r = binary_rows[row];
  worst w[3] = {};
  for (uint64_t at = 0; at < count; at += BLOCK) {
    for (int i = 0; i < BLOCK; i++) {
      float a, b;
      binary_pair(at + static_cast<uint64_t>(i), &a, &b);
      ask(i, a, b, r.f(static_cast<double>(a), static_cast<double>(b)));
    }
    for (int k = 0; k < isa_count; k++) measure(isas[k].table->binary[row], r.name, r.bound, r.flags, 0, 0, true, &w[k]);
  }
  return report(r.name, r.bound, w);
}

// ---- 16-bit formats, by the definition: value = round(x / unit) * unit in double

uint16_t round_half_format(float x, int digits, int low_exp, int exp_bits) {
  const uint16_t sign = std::signbit(x) ? 0x8000 : 0;
  const int frac = digits - 1;
  const uint16_t inf = static_cast<uint16_t>(((1 << exp_bits) - 1) << frac);
  if (x != x) return static_cast<uint16_t>(sign | inf | 1 << (frac - 1));
  const double v = ::fabs(static_cast<double>(x));
  if (v == HUGE_VAL) return sign | inf;
  int e;
  ::frexp(v, &e);
  e = e - 1 < low_exp ? low_exp : e - 1;
  double q = ::rint(::ldexp(v, frac - e));  // in units of the last place; may reach 2^digits
  const int code = v == 0 ? 0 : static_cast<int>(q) + ((e - low_exp) << frac);
  return code >= inf ? sign | inf : static_cast<uint16_t>(sign | code);
}

double half_value(uint16_t h, int frac, int bias, int exp_bits) {
  const int e = (h >> frac) & ((1 << exp_bits) - 1), m = h & ((1 << frac) - 1);
  double v = e == 0 ? ::ldexp(m, 1 - bias - frac) : ::ldexp(m + (1 << frac), e - bias - frac);
  if (e == (1 << exp_bits) - 1) v = m ? NAN : HUGE_VAL;
  return h & 0x8000 ? -v : v;
}

bool same_value(float y, double want) { return want != want ? y != y : y == want && std::signbit(y) == std::signbit(want); }

bool test_halves(const isa& s, uint32_t stride) {
  static uint16_t h[BLOCK], g[BLOCK];
  long bad = 0;
  for (int at = 0; at < 65536; at += BLOCK) {
    for (int i = 0; i < BLOCK; i++) h[i] = static_cast<uint16_t>(at + i);
    s.table->widen(h, out, mixed_out, BLOCK);
    for (int i = 0; i < BLOCK; i++) {
      bad += !same_value(out[i], half_value(h[i], 10, 15, 5));
      bad += !same_value(mixed_out[i], half_value(h[i], 7, 127, 8));
    }
    s.table->narrow(out, h, g, BLOCK);  // f16 to f32 and back
    for (int i = 0; i < BLOCK; i++) bad += out[i] == out[i] && h[i] != static_cast<uint16_t>(at + i);
  }
  const uint64_t total = (1ull << 32) / stride;
  for (uint64_t at = 0; at < total; at += BLOCK) {
    for (int i = 0; i < BLOCK; i++) {
      uint32_t p = static_cast<uint32_t>((at + static_cast<uint64_t>(i)) * stride);
      if (i & 1) p &= 0xfffff000u;  // ties and their neighbours
      if ((i & 7) == 3) p |= 0x8000u;
      in_a[i] = from_pattern(p);
    }
    s.table->narrow(in_a, h, g, BLOCK);
    for (int i = 0; i < BLOCK; i++) {
      bad += h[i] != round_half_format(in_a[i], 11, -14, 5);
      bad += g[i] != round_half_format(in_a[i], 8, -126, 8);
    }
  }
  const int memory = s.table->check_memory();
  std::printf("%s: %d lanes, f16 and bf16: %ld wrong, memory check %d\n", s.name, s.table->lanes, bad, memory);
  return bad == 0 && memory == 0;
}

}  // namespace

int main(int argc, char** argv) {
  const bool all = argc > 1 && std::strcmp(argv[1], "all") == 0;
  const uint32_t stride = all ? 1 : argc > 1 ? static_cast<uint32_t>(std::atoi(argv[1])) : 997;
  shows_progress = all;
  std::signal(SIGINT, interrupt);
  const char* only = argc > 2 ? argv[2] : nullptr;
  find_isas(argc > 3 ? argv[3] : nullptr);
  bool ok = stride != 0;
  for (int i = 0; i < isa_count && !only && !all; i++) ok = test_halves(isas[i], stride * 8) && ok;
  for (int i = 0; i < static_cast<int>(sizeof unary_rows / sizeof unary_rows[0]); i++)
    if (!interrupted && (!only || std::strcmp(only, unary_rows[i].name) == 0)) ok = test_unary(i, stride) && ok;
  for (int i = 0; i < static_cast<int>(sizeof binary_rows / sizeof binary_rows[0]); i++)
    if (!all && (!only || std::strcmp(only, binary_rows[i].name) == 0)) ok = test_binary(i, (1ull << 31) / stride) && ok;
  std::printf(!ok ? "FAILED\n" : interrupted ? "interrupted\n" : "ok\n");
  return ok && !interrupted ? 0 : 1;
}
