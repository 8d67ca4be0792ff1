// The kernels of regions. Contract: the bits of the body node by node; each element is computed once, whatever the Range and the threads.
#include "../core/rlx_begin.h"

#include "tile.h"

namespace rlx {
namespace region {
namespace {

Draft elementwise_of(Command &c) {
  Draft d(c, c.num_in);
  d.by_rows = true;
  const rlx_ElementwiseRegionAttrs &a = *static_cast<const rlx_ElementwiseRegionAttrs *>(c.attrs);
  d.box = box_of(c.out[0]);
  if (a.prologue != rlx_Prologue_none) d.doubled = int32_t(a.prologue_input);
  return d;
}

// Slice i of a batch: its operand and the shared ones, with the rows of the results that it makes. A batch is numbered once: the tile is that of
// all slices.
Draft slice_of(Command &c, uint32_t i) {
  const rlx_BatchElementwiseRegionAttrs &a = *static_cast<const rlx_BatchElementwiseRegionAttrs *>(c.attrs);
  const uint32_t n = uint32_t(a.num_batch);
  Draft d(c, c.num_in - n + 1);
  d.item = i, d.shift = n - 1;
  d.box = box_of(c.out[0]);
  if (a.prologue != rlx_Prologue_none) d.doubled = 0;
  d.box.dims[0] = c.in[i].dims[0];
  for (uint32_t k = n; k < c.num_in; k++)
    if (c.in[k].rank == c.out[0].rank && c.in[k].dims[0] != 1) d.box.dims[0] = c.in[k].dims[0];
  d.box.count = 1;
  for (int k = 0; k < d.box.rank; k++) d.box.count *= d.box.dims[k];
  return d;
}

}  // namespace

int32_t elementwise_region_prepare(Prepare &p) {
  Command &c = *p.cmd;
  Draft d = elementwise_of(c);
  int32_t code = d.number();
  if (code != RLX_OK || d.box.count == 0) return code;
  const Layout *l = nullptr;
  if ((code = d.lay_out(p, &l)) != RLX_OK) return code;
  c.keep_prepared(l);
  c.scratch = l->bytes(p.max_threads);
  return RLX_OK;
}

void elementwise_region(const Call &c, Range) {
  if (c.out(0).count == 0) return;
  Region r(*c.cmd->prepared<Layout>());
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
  Draft all = slice_of(c, 0);
  all.box = box_of(c.out[0]);
  int32_t code = all.number();
  if (code != RLX_OK) return code;
  const Layout **slices = static_cast<const Layout **>(p.keep(uint64_t(n) * sizeof(Layout *)));
  if (slices == nullptr) return RLX_NO_MEMORY;
  c.keep_prepared(slices);
  for (uint32_t i = 0; i < uint32_t(n); i++) {
    slices[i] = nullptr;
    Draft d = slice_of(c, i);
    if (d.box.count == 0) continue;
    d.number_as(all);
    if ((code = d.lay_out(p, slices + i)) != RLX_OK) return code;
    if (const int64_t bytes = slices[i]->bytes(p.max_threads); bytes > c.scratch) c.scratch = bytes;
  }
  return RLX_OK;
}

void batch_region(const Call &c, Range) {
  const uint32_t n = uint32_t(c.attrs<rlx_BatchElementwiseRegionAttrs>().num_batch);
  const Layout *const *slices = c.cmd->prepared<const Layout *>();
  void **results = const_cast<void **>(c.out_data);
  int64_t done = 0;
  for (uint32_t i = 0; i < n && !c.stopped(); i++) {
    if (slices[i] == nullptr) continue;  // without elements
    Region r(*slices[i]);
    r.open(c.scratch, [&](uint32_t j) { return c.in_data[j == 0 ? i : j + n - 1]; });
    run_all(c, r, reinterpret_cast<char *const *>(results), done);
    done += slices[i]->count;
  }
}

}  // namespace region
}  // namespace rlx
