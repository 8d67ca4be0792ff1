#pragma once
#include "../core/rlx_begin.h"
#include "../core/isa.h"

namespace rlx {
namespace matmul {

// Of a table that there is for each instruction set, the one for isa (an Isa): the generic one for a set without its own. The tables are
// template arguments because those of other machines are declared but do not exist, so that nothing may refer to them.
template <auto &Generic, auto &Avx2, auto &Avx512, auto &Neon> RLX_FN auto &of_isa(int isa) {
#if defined(RLX_X86)
  if (isa == ISA_AVX512) return Avx512;
  if (isa == ISA_AVX2) return Avx2;
#elif defined(RLX_NEON)
  if (isa == ISA_NEON) return Neon;
#else
  (void)isa;
#endif
  return Generic;
}

}  // namespace matmul
}  // namespace rlx
