// The kernels of regions. Contract: the bits of the body node by node; each element is computed once, whatever the Range and the threads.
#include "../core/rlx_begin.h"

#include "tile.h"

namespace rlx {
namespace region {
namespace {

Region elementwise_of(const Command &c) {
  Region r(c, c.num_in);
  r.by_rows = true;
  const rlx_ElementwiseRegionAttrs &a = *static_cast<const rlx_ElementwiseRegionAttrs *>(c.attrs);
  r.box = box_of(c.out[0]);
  if (a.prologue != rlx_Prologue_none) r.doubled = int32_t(a.prologue_input);
  return r;
}

// Slice i of a batch: its operand and the shared ones, with the rows of the results that it makes. A batch is numbered once: the tile is that of
// all slices.
Region slice_of(const Command &c, uint32_t i) {
  const rlx_BatchElementwiseRegionAttrs &a = *static_cast<const rlx_BatchElementwiseRegionAttrs *>(c.attrs);
  const uint32_t n = uint32_t(a.num_batch);
  Region r(c, c.num_in - n + 1);
  r.item = i, r.shift = n - 1;
  r.box = box_of(c.out[0]);
  const bool doubled = a.prologue != rlx_Prologue_none;
  if (doubled) r.doubled = 0;
  r.box.dims[0] = c.in[i].dims[0];
  for (uint32_t k = n; k < c.num_in; k++)
    if (c.in[k].rank == c.out[0].rank && c.in[k].dims[0] != 1) r.box.dims[0] = c.in[k].dims[0];
  r.box.count = 1;
  for (int d = 0; d < r.box.rank; d++) r.box.count *= r.box.dims[d];
  return r;
}

}  // namespace

int32_t elementwise_region_prepare(Prepare &p) {
  Region r = elementwise_of(*p.cmd);
  const int32_t code = r.number(*p.cmd);
  if (code == RLX_OK && r.box.count > 0) p.cmd->scratch = r.bytes(p.max_threads);
  return code;
}

void elementwise_region(const Call &c, Range) {
  if (c.out(0).count == 0) return;
  Region r = elementwise_of(*c.cmd);
  for (uint32_t k = 0; k < c.cmd->num_out && k < 32; k++) r.streamed |= uint32_t(elementwise::streams(c, int(k))) << k;
  r.open(c.scratch, [&](uint32_t j) { return c.in_data[j]; });
  run_all(c, r, reinterpret_cast<char *const *>(c.out_data));
}

int32_t batch_region_prepare(Prepare &p) {
  Command &c = *p.cmd;
  const int64_t n = static_cast<const rlx_BatchElementwiseRegionAttrs *>(c.attrs)->num_batch;
  if (n < 1 || n > int64_t(c.num_in)) return RLX_BAD_WORDS;
  for (uint32_t i = 0; i < uint32_t(n); i++)
    if (c.in[i].rank != c.out[0].rank || c.in[i].rank == 0 || c.in[i].dtype != c.in[0].dtype) return RLX_BAD_WORDS;
  Region all = slice_of(c, 0);
  all.box = box_of(c.out[0]);
  const int32_t code = all.number(c);
  for (uint32_t i = 0; i < uint32_t(n) && code == RLX_OK; i++) {
    const Region r = slice_of(c, i);
    if (r.box.count > 0 && r.bytes(p.max_threads) > c.scratch) c.scratch = r.bytes(p.max_threads);
  }
  return code;
}

void batch_region(const Call &c, Range) {
  const uint32_t n = uint32_t(c.attrs<rlx_BatchElementwiseRegionAttrs>().num_batch);
  void **results = const_cast<void **>(c.out_data);
  int64_t done = 0;
  for (uint32_t i = 0; i < n && !c.stopped(); i++) {
    Region r = slice_of(*c.cmd, i);
    if (r.box.count == 0) continue;
    r.open(c.scratch, [&](uint32_t j) { return c.in_data[j == 0 ? i : j + r.shift]; });
    run_all(c, r, reinterpret_cast<char *const *>(results), done);
    done += r.box.count;
  }
}

}  // namespace region
}  // namespace rlx
