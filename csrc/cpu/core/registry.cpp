#include "../core/rlx_begin.h"

#include "registry.h"
#include "isa.h"

namespace rlx {

// 1. Declarations.
#define RLX_FAMILY_BEGIN(family) namespace family {
#define RLX_FAMILY_END }
#define KERNEL(op, dtypes, isa, flags, split, function) void function(const Call &, Range);
#define SPLIT(function) Split function(const Call &);
#define PREPARE(op, dtypes, function) int32_t function(Prepare &);
#include "families.h"
#undef KERNEL
#undef SPLIT
#undef PREPARE
#undef RLX_FAMILY_BEGIN
#undef RLX_FAMILY_END

namespace {

struct KernelRow {
  uint32_t op, dtypes;
  int isa;
  bool strided;
  Splitter split;
  Kernel kernel;
};

struct PrepareRow {
  uint32_t op, dtypes;
  Preparer prepare;
};

struct Family {
  const KernelRow *kernels;
  const PrepareRow *prepares;
};

// Twins of sets that this architecture never runs are not compiled, so their rows drop out here.
#define RLX_ROW_generic(...) __VA_ARGS__
#if defined(__x86_64__)
#define RLX_ROW_avx2(...) __VA_ARGS__
#define RLX_ROW_avx512(...) __VA_ARGS__
#else
#define RLX_ROW_avx2(...)
#define RLX_ROW_avx512(...)
#endif
#if defined(__aarch64__)
#define RLX_ROW_neon(...) __VA_ARGS__
#else
#define RLX_ROW_neon(...)
#endif
#define RLX_ISA_generic ISA_GENERIC
#define RLX_ISA_avx2 ISA_AVX2
#define RLX_ISA_avx512 ISA_AVX512
#define RLX_ISA_neon ISA_NEON
#define RLX_FLAG_strided true
#define RLX_FLAG_dense false

}  // namespace

// 2. One table a family; op 0 ends it.
#define RLX_FAMILY_BEGIN(family) namespace family { namespace { const KernelRow kernel_rows[] = {
#define RLX_FAMILY_END {}}; } }
#define KERNEL(op, dtypes, isa, flags, split, function) RLX_ROW_##isa({RLX_OP_##op, RLX_DTYPES_##dtypes, RLX_ISA_##isa, RLX_FLAG_##flags, split, function},)
#define SPLIT(function)
#define PREPARE(op, dtypes, function)
#include "families.h"
#undef KERNEL
#undef PREPARE
#undef RLX_FAMILY_BEGIN

#define RLX_FAMILY_BEGIN(family) namespace family { namespace { const PrepareRow prepare_rows[] = {
#define KERNEL(op, dtypes, isa, flags, split, function)
#define PREPARE(op, dtypes, function) {RLX_OP_##op, RLX_DTYPES_##dtypes, function},
#include "families.h"
#undef PREPARE
#undef RLX_FAMILY_BEGIN
#undef RLX_FAMILY_END

namespace {

// 3. The list of tables.
#define RLX_FAMILY_BEGIN(family) {family::kernel_rows, family::prepare_rows},
#define RLX_FAMILY_END
#define PREPARE(op, dtypes, function)
const Family families[] = {
#include "families.h"
    {nullptr, nullptr}};

const KernelRow *chosen[RLX_NUM_OPS + 1][RLX_NUM_DTYPES];
rlx_capability capabilities[2 * RLX_NUM_OPS];
uint32_t num_capabilities;

bool usable(int row, int active) { return row == ISA_GENERIC || row == active || (row == ISA_AVX2 && active == ISA_AVX512); }

void make_capabilities() {
  static uint32_t generic[RLX_NUM_OPS + 1], dense[RLX_NUM_OPS + 1];
  for (const Family *f = families; f->kernels != nullptr; f++)
    for (const KernelRow *r = f->kernels; r->op != 0; r++) {
      if (r->isa == ISA_GENERIC) generic[r->op] |= r->dtypes;
      if (!r->strided) dense[r->op] |= r->dtypes;
    }
  for (uint32_t op = 1; op <= RLX_NUM_OPS; op++) {
    const uint32_t strided = generic[op] & ~dense[op], contiguous = generic[op] & dense[op];
    if (strided != 0) capabilities[num_capabilities++] = {op, strided, RLX_CAP_STRIDED};
    if (contiguous != 0) capabilities[num_capabilities++] = {op, contiguous, 0};
  }
}

pthread_once_t once = PTHREAD_ONCE_INIT;

}  // namespace

const rlx_capability *registry_capabilities(uint32_t *count) {
  pthread_once(&once, make_capabilities);
  *count = num_capabilities;
  return capabilities;
}

void registry_select(int isa) {
  std::memset(chosen, 0, sizeof chosen);
  for (const Family *f = families; f->kernels != nullptr; f++)
    for (const KernelRow *r = f->kernels; r->op != 0; r++) {
      if (!usable(r->isa, isa)) continue;
      for (uint32_t d = 1; d < RLX_NUM_DTYPES; d++) {
        const KernelRow *&slot = chosen[r->op][d];
        if ((r->dtypes >> d & 1) != 0 && (slot == nullptr || r->isa > slot->isa)) slot = r;
      }
    }
}

bool registry_find(uint32_t op, uint32_t dtype, Kernel *kernel, Splitter *split) {
  const KernelRow *r = chosen[op][dtype];
  if (r == nullptr) return false;
  *kernel = r->kernel;
  *split = r->split;
  return true;
}

Preparer registry_prepare(uint32_t op, uint32_t dtype) {
  for (const Family *f = families; f->kernels != nullptr; f++)
    for (const PrepareRow *r = f->prepares; r->op != 0; r++)
      if (r->op == op && (r->dtypes >> dtype & 1) != 0) return r->prepare;
  return nullptr;
}

}  // namespace rlx
