#include "../core/rlx_begin.h"

#include "ending.h"

namespace rlx {
namespace conv {
namespace {

// The functions of floats are the first of the unary table, in its order, behind "none".
static_assert(int(rlx_ConvActivation_identity) == int(rlx_UnaryFn_identity) + 1, "order of ConvActivation");
static_assert(int(rlx_ConvActivation_hard_swish) == int(rlx_UnaryFn_hard_swish) + 1, "order of ConvActivation");

const elementwise::Lanes &lanes_of(int isa) {
#if defined(RLX_X86)
  if (isa == ISA_AVX512) return elementwise::lanes_avx512;
  if (isa == ISA_AVX2) return elementwise::lanes_avx2;
#elif defined(RLX_NEON)
  if (isa == ISA_NEON) return elementwise::lanes_neon;
#else
  (void)isa;
#endif
  return elementwise::lanes_generic;
}

int32_t finish_fn(int64_t activation) {
  switch (activation) {
    case rlx_ConvActivation_relu: return kFinishRelu;
    case rlx_ConvActivation_relu6: return kFinishRelu6;
    case rlx_ConvActivation_hard_swish: return kFinishHardSwish;
    default: return kFinishNone;
  }
}

constexpr int64_t CHUNK = 256;  // residuals widened together

}  // namespace

Ending ending_of(const Call &c, int isa) {
  Ending e = {};
  if (c.cmd->op != RLX_OP_FusedConvBiasAct) return e;
  const rlx_FusedConvAttrs &a = c.attrs<rlx_FusedConvAttrs>();
  e.dtype = c.out(0).dtype;
  if (c.has(2)) e.bias = c.in_ptr<char>(2);
  if (c.has(3)) e.residual = c.in_ptr<char>(3);
  if (a.activation != rlx_ConvActivation_none) {
    const int fn = int(a.activation) - 1;
    e.act = e.dtype == RLX_F64 ? elementwise::pick_unary_f64(fn) : lanes_of(isa).unary(fn);
    e.work.alpha = a.alpha, e.work.beta = a.beta;
    e.fn = finish_fn(a.activation);
    e.swept = e.fn == kFinishNone;
  }
  e.present = e.bias != nullptr || e.residual != nullptr || e.act != nullptr;
  return e;
}

void end_sums(const Ending &e, const Form &form, float *sums, int64_t n, int64_t o, int64_t at) {
  if (e.bias != nullptr) {
    float bias;
    if (e.dtype == RLX_F32) bias = reinterpret_cast<const float *>(e.bias)[o];
    else form.spread(&bias, 1, e.bias + o * form.bytes, 1, 1);
    for (int64_t i = 0; i < n; i++) sums[i] += bias;
  }
  if (e.residual != nullptr) {
    float wide[CHUNK];
    for (int64_t i = 0; i < n; i += CHUNK) {
      const int64_t m = n - i < CHUNK ? n - i : CHUNK;
      const float *r = reinterpret_cast<const float *>(e.residual) + at + i;
      if (e.dtype != RLX_F32) form.spread(wide, 1, e.residual + (at + i) * form.bytes, 1, m), r = wide;
      for (int64_t k = 0; k < m; k++) sums[i + k] += r[k];
    }
  }
  const void *in[1] = {sums};
  if (e.act != nullptr) e.act(e.work, in, sums, n);
}

void end_row_f64(const Ending &e, double *sums, int64_t n, int64_t o, int64_t at) {
  const double bias = e.bias != nullptr ? reinterpret_cast<const double *>(e.bias)[o] : 0;
  const double *r = reinterpret_cast<const double *>(e.residual);
  for (int64_t i = 0; i < n; i++) {
    if (e.bias != nullptr) sums[i] += bias;
    if (r != nullptr) sums[i] += r[at + i];
  }
  const void *in[1] = {sums};
  if (e.act != nullptr) e.act(e.work, in, sums, n);
}

}  // namespace conv
}  // namespace rlx
