// SplineActivation and its two gradients. f32, f16 and bf16 sum in f32 with the loops of spline.h, f64 in f64. The coefficients are laid
// out by bump first, with the channels repeated past their end, so that any run of elements reads a run of coefficients.
#include "../core/rlx_begin.h"

#include "spline_types.h"

namespace rlx {
namespace elementwise {
namespace {

int64_t line(int64_t bytes) { return (bytes + 63) / 64 * 64; }
int64_t pitch_of(int64_t channels) { return line((channels + SPLINE_LANES) * 4) / 4; }

float f32_at(const void *p, uint32_t dtype, int64_t i) {
  if (dtype == RLX_F32) return static_cast<const float *>(p)[i];
  const uint16_t h = static_cast<const uint16_t *>(p)[i];
  return float(dtype == RLX_F16 ? f64_from_f16(h) : f64_from_bf16(h));
}

Spline spline_of(const Call &c) {
  const rlx_SplineAttrs &a = c.attrs<rlx_SplineAttrs>();
  const Operand &x = c.in(0);
  Spline s;
  s.x = c.in_data[0];
  s.y = c.out_data[0];
  s.channels = x.dims[x.rank - 1];
  s.rows = s.channels == 0 ? 0 : x.count / s.channels;
  s.bumps = a.num_basis;
  s.step = double(a.num_basis - 1) / (a.grid_max - a.grid_min);
  s.low = a.grid_min;
  return s;
}

// Fills the scratch: the centres, then a row of coefficients for each bump.
void lay_out(const Call &c, Spline &s) {
  float *centers = static_cast<float *>(c.scratch), *table = centers + line(s.bumps * 4) / 4;
  s.pitch = pitch_of(s.channels);
  const Operand &coeff = c.in(1);
  for (int64_t g = 0; g < s.bumps; g++) {
    centers[g] = float(s.low + double(g) / s.step);
    for (int64_t k = 0, ch = 0; k < s.pitch; k++) {
      table[g * s.pitch + k] = f32_at(c.in_data[1], coeff.dtype, ch * s.bumps + g);
      if (++ch == s.channels) ch = 0;
    }
  }
  s.centers = centers;
  s.table = table;
}

struct Job {
  const Call *c;
  const Spline *s;
  SplineLoop loop;
};
void piece(void *ctx, int64_t begin, int64_t end, int) {
  const Job &j = *static_cast<const Job *>(ctx);
  if (!j.c->stopped()) j.loop(*j.s, begin, end);
}

int form_of(uint32_t dtype) { return dtype == RLX_F32 ? 0 : dtype == RLX_F16 ? 1 : 2; }

// A piece is a multiple of the widest vector, and about 16000 exponentials.
void run_spline(const Call &c, Spline &s, SplineLoop loop) {
  if (c.out(0).count == 0) return;
  lay_out(c, s);
  Job j = {&c, &s, loop};
  const int64_t grain = 16384 / s.bumps / SPLINE_LANES * SPLINE_LANES;
  c.parallel(c.out(0).count, grain < SPLINE_LANES ? SPLINE_LANES : grain, piece, &j);
}
void forward(const Call &c, const SplineLoops &l) {
  Spline s = spline_of(c);
  run_spline(c, s, l.forward[form_of(c.in(0).dtype)]);
}
void backward_x(const Call &c, const SplineLoops &l) {
  Spline s = spline_of(c);
  s.dy = c.in_data[2];
  run_spline(c, s, l.slope[form_of(c.in(0).dtype)]);
}
void backward_coeff(const Call &c, const SplineLoops &l) {
  Spline s = spline_of(c);
  s.dy = c.in_data[1];
  Job j = {&c, &s, l.coeff[form_of(c.in(0).dtype)]};
  c.parallel((s.channels + s.vector - 1) / s.vector, 1, piece, &j);
}

}  // namespace

int32_t prepare_spline(Prepare &p) {
  const Operand &coeff = p.cmd->in[1];
  p.cmd->scratch = line(coeff.dims[1] * 4) + coeff.dims[1] * pitch_of(coeff.dims[0]) * 4;
  return RLX_OK;
}

#define RLX_ENTRIES(isa)                                                                         \
  void spline_f32_##isa(const Call &c, Range) { forward(c, splines_##isa); }                     \
  void spline_backward_x_f32_##isa(const Call &c, Range) { backward_x(c, splines_##isa); }       \
  void spline_backward_coeff_f32_##isa(const Call &c, Range) { backward_coeff(c, splines_##isa); }
RLX_ENTRIES(generic)
#if defined(RLX_X86)
RLX_ENTRIES(avx2)
RLX_ENTRIES(avx512)
#elif defined(RLX_NEON)
RLX_ENTRIES(neon)
#endif

Split spline_elements(const Call &c) { return {c.out(0).count, 128}; }
Split spline_channels(const Call &c) { return {c.out(0).count == 0 ? 0 : c.out(0).dims[0], 1}; }

void spline_f64(const Call &c, Range r) {
  const Spline s = spline_of(c);
  const double *x = c.in_ptr<double>(0), *coeff = c.in_ptr<double>(1);
  for (int64_t i = r.begin; i < r.end && !c.stopped(); i++) {
    double sum = 0;
    for (int64_t g = 0; g < s.bumps; g++) {
      const double u = (x[i] - (s.low + double(g) / s.step)) * s.step;
      sum += coeff[i % s.channels * s.bumps + g] * ::exp(-u * u);
    }
    c.out_ptr<double>(0)[i] = sum;
  }
}

void spline_backward_x_f64(const Call &c, Range r) {
  const Spline s = spline_of(c);
  const double *x = c.in_ptr<double>(0), *coeff = c.in_ptr<double>(1), *dy = c.in_ptr<double>(2);
  for (int64_t i = r.begin; i < r.end && !c.stopped(); i++) {
    double sum = 0;
    for (int64_t g = 0; g < s.bumps; g++) {
      const double u = (x[i] - (s.low + double(g) / s.step)) * s.step;
      sum += coeff[i % s.channels * s.bumps + g] * (-2 * u * s.step) * ::exp(-u * u);
    }
    c.out_ptr<double>(0)[i] = dy[i] * sum;
  }
}

void spline_backward_coeff_f64(const Call &c, Range r) {
  const Spline s = spline_of(c);
  const double *x = c.in_ptr<double>(0), *dy = c.in_ptr<double>(1);
  for (int64_t ch = r.begin; ch < r.end && !c.stopped(); ch++)
    for (int64_t g = 0; g < s.bumps; g++) {
      double sum = 0;
      for (int64_t row = 0; row < s.rows; row++) {
        const int64_t i = row * s.channels + ch;
        const double u = (x[i] - (s.low + double(g) / s.step)) * s.step;
        sum += dy[i] * ::exp(-u * u);
      }
      c.out_ptr<double>(0)[ch * s.bumps + g] = sum;
    }
}

}  // namespace elementwise
}  // namespace rlx
