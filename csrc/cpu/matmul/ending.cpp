#include "../core/rlx_begin.h"

#include "ending.h"
#include "of_isa.h"

namespace rlx {
namespace matmul {
namespace {

constexpr int64_t LEAST_ROW = 256;  // elements: shorter rows are ended several at once
constexpr int64_t PRODUCT = 0;      // the number of operand 0 of a body, as Draft::number gives it

bool is(const Operand &o, uint32_t slot, uint32_t index) { return o.slot == slot && o.index == index; }

// Whether a command of the body reads the product after another one wrote result k.
bool reads_late(const rlx_program &body, uint32_t k) {
  bool written = false;
  for (uint32_t i = 0; i < body.num_commands; i++) {
    const Command &b = body.command(i);
    for (uint32_t j = 0; j < b.num_in && written; j++)
      if (is(b.in[j], RLX_INPUT, 0)) return true;
    written |= is(b.out[0], RLX_OUTPUT, k);
  }
  return false;
}

// The commands in front of the first step: the cast of a product of codes.
uint32_t casts_of(const rlx_program &body) { return body.num_commands > 0 && body.command(0).op == RLX_OP_Cast; }

// Which operand of a command the value of the one before is, of the first one the product, if the other may be a step's: -1 if not.
int scaled_operand(const rlx_program &body, uint32_t i) {
  const Command &b = body.command(i);
  if (b.op != RLX_OP_Binary || b.in[0].dtype != RLX_F32 || b.out[0].dtype != RLX_F32) return -1;
  const int64_t fn = static_cast<const rlx_BinaryAttrs *>(b.attrs)->fn, before = i > 0 ? body.command(i - 1).detail[0] : PRODUCT;
  if (fn != rlx_BinaryFn_mul && fn != rlx_BinaryFn_add) return -1;
  for (int k = 0; k < 2; k++)
    if (const uint32_t slot = b.in[1 - k].slot; b.detail[1 + k] == before && b.detail[2 - k] != PRODUCT && (slot == RLX_INPUT || slot == RLX_CONST)) return k;
  return -1;
}

// How an operand lies beside the rows of the product: false if not as a step's must.
bool step_strides(const region::Draft &d, uint32_t j, ScaleStep *step) {
  region::Axes a;
  const region::Source s = d.source_of(j, &a);
  const int64_t n = d.box.dims[d.box.rank - 1];
  step->row = step->column = 0;
  if (s.form == region::SAME) return true;
  step->column = a.strides[0][a.rank - 1], step->row = a.rank == 2 ? a.strides[0][0] : n;
  return s.form == region::DIRECT || (a.rank == 2 && a.dims[1] == n && (step->column == 0 || step->column == 1));
}

// Whether the body is a Scaling, and which.
bool find_scaling(const region::Draft &d, PreparedEnding *e) {
  const rlx_program &body = *d.body;
  const uint32_t last = body.num_commands - 1;
  const uint32_t casts = casts_of(body);
  if (d.cmd->num_out != 1 || body.num_commands == 0 || body.num_commands > casts + MAX_SCALE_STEPS || d.box.rank == 0 || d.box.dims[d.box.rank - 1] < 2) return false;
  if (casts == 0 ? d.first->dtype != RLX_F32 : !is(body.command(0).in[0], RLX_INPUT, 0) || d.first->dtype != RLX_I32 || body.command(0).out[0].dtype != RLX_F32) return false;
  Scaling &s = e->scaling;
  s.steps = int(body.num_commands - casts), s.codes = casts != 0;
  for (uint32_t i = casts; i <= last; i++) {
    const int k = scaled_operand(body, i);
    if (k < 0) return false;
    const Command &b = body.command(i);
    const Operand &o = b.in[1 - k];
    ScaleStep &step = s.step[i - casts];
    step.add = static_cast<const rlx_BinaryAttrs *>(b.attrs)->fn == rlx_BinaryFn_add;
    int32_t &operand = e->operand[i - casts] = -1;
    if (o.slot == RLX_INPUT) {
      operand = int32_t(o.index + d.shift);
      if (!step_strides(d, o.index, &step)) return false;
    } else {
      step.data = reinterpret_cast<const float *>(static_cast<const char *>(body.constants[o.index]) + o.offset);
    }
  }
  s.run = of_isa<scale_row_generic, scale_row_avx2, scale_row_avx512, scale_row_neon>(isa_active());
  return is(body.command(last).out[0], RLX_OUTPUT, 0);
}

void scale_block(const Ending &e, int64_t at, int64_t m, int64_t n, int64_t row) {
  const Scaling &s = *e.scaling;
  float *y = reinterpret_cast<float *>(e.results[0]);
  const float *operands[MAX_SCALE_STEPS];
  for (int64_t end = at + m * row; at < end && !e.call.stopped(); at += row) {
    for (int k = 0; k < s.steps; k++) operands[k] = s.step[k].data + at / row * s.step[k].row + at % row * s.step[k].column;
    s.run(s, operands, s.product + at * 4, y + at, n);
  }
}

}  // namespace

bool scaling_of(const Call &c, const void *product, Scaling *s) {
  const PreparedEnding &e = ending_of(*c.cmd);
  if (!e.scales) return false;
  *s = e.scaling;
  s->product = static_cast<const char *>(product);
  for (int i = 0; i < s->steps; i++)
    if (e.operand[i] >= 0) s->step[i].data = static_cast<const float *>(c.in_data[e.operand[i]]);
  return true;
}

Operand product_operand(const Command &c, uint32_t dtype) {
  Operand o = c.out[0];
  o.dtype = dtype;
  return o;
}

int32_t prepare_ending(Prepare &p, const Operand &product, uint32_t operands) {
  region::Draft d(*p.cmd, p.cmd->num_in - operands + 1);
  d.box = region::box_of(product);
  d.first = &product;
  d.shift = operands - 1;
  const int32_t code = d.number();
  if (code != RLX_OK || product.count == 0) return code;
  const int64_t row = d.box.rank > 0 ? d.box.dims[d.box.rank - 1] : 1;
  // No tile goes beyond its row then: what is repeated in each row is read where it lies.
  if (row >= LEAST_ROW && row < d.tile && row % 16 == 0) d.tile = row;
  PreparedEnding *e = static_cast<PreparedEnding *>(p.keep(sizeof(PreparedEnding)));
  if (e == nullptr) return RLX_NO_MEMORY;
  *e = PreparedEnding{};
  p.cmd->keep_prepared(e);
  e->scales = find_scaling(d, e);
  return d.lay_out(p, &e->layout);
}

int result_for_product(const Command &c, const Operand &product) {
  const rlx_program &body = *static_cast<const rlx_program *>(body_of(c, 0));
  for (uint32_t k = 0; k < c.num_out; k++)
    if (rlx_dtype_sizes[c.out[k].dtype] == rlx_dtype_sizes[product.dtype] && !reads_late(body, k)) return int(k);
  return -1;
}

void end_block(const Ending &e, int64_t at, int64_t m, int64_t n, int64_t row, int slot) {
  if (e.scaling != nullptr) return scale_block(e, at, m, n, row);
  char **table = e.region.enter(slot);
  const int64_t tile = e.region.layout.tile;
  if (n == row) n *= m, m = 1;  // whole rows follow each other
  for (int64_t i = 0; i < m; i++, at += row)
    for (int64_t j = 0; j < n && !e.call.stopped(); j += tile)
      e.region.run(table, e.results, at + j, n - j < tile ? n - j : tile, at + j);
}

void end_gemm_block(void *ctx, int64_t c_offset, int64_t i0, int64_t j0, int64_t m, int64_t n, float *, int64_t c_rs, int slot) {
  end_block(*static_cast<const Ending *>(ctx), c_offset + i0 * c_rs + j0, m, n, c_rs, slot);
}

}  // namespace matmul
}  // namespace rlx
