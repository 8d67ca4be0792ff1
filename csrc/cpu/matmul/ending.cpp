#include "../core/rlx_begin.h"

#include "ending.h"

namespace rlx {
namespace matmul {
namespace {

constexpr int64_t LEAST_ROW = 256;  // elements: shorter rows are ended several at once

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

}  // namespace

Operand product_operand(const Command &c, uint32_t dtype) {
  Operand o = c.out[0];
  o.dtype = dtype;
  return o;
}

region::Region ending_of(const Command &c, const Operand &product) {
  region::Region r(c, c.num_in - 1);
  r.box = region::box_of(product);
  r.first = &product;
  r.shift = 1;
  return r;
}

int32_t number_ending(region::Region *r, Command *c) {
  const int32_t code = r->number(*c);
  const int64_t row = r->box.rank > 0 ? r->box.dims[r->box.rank - 1] : 1;
  // No tile goes beyond its row then: what is repeated in each row is read where it lies.
  if (code == RLX_OK && row >= LEAST_ROW && row < r->tile && row % 16 == 0) c->detail[3] = r->tile = row;
  return code;
}

int result_for_product(const Command &c, const Operand &product) {
  const rlx_program &body = *static_cast<const rlx_program *>(body_of(c, 0));
  for (uint32_t k = 0; k < c.num_out; k++)
    if (rlx_dtype_sizes[c.out[k].dtype] == rlx_dtype_sizes[product.dtype] && !reads_late(body, k)) return int(k);
  return -1;
}

void end_block(const Ending &e, int64_t at, int64_t m, int64_t n, int64_t row, int slot) {
  char **table = e.region.enter(slot);
  if (n == row) n *= m, m = 1;  // whole rows follow each other
  for (int64_t i = 0; i < m; i++, at += row)
    for (int64_t j = 0; j < n && !e.call.stopped(); j += e.region.tile)
      e.region.run(table, e.results, at + j, n - j < e.region.tile ? n - j : e.region.tile, at + j);
}

}  // namespace matmul
}  // namespace rlx
