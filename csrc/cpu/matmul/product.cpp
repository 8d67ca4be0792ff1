#include "../core/rlx_begin.h"

#include "../core/pool.h"
#include "matmul.h"

namespace rlx {
namespace matmul {
namespace {

int batch_rank(const Operand &o) { return o.rank > 2 ? int(o.rank) - 2 : 0; }

// Strides of the batch dims of o (given as own, one for each) under the batch dims of a result of rank dims.
void spread(const Operand &o, const int64_t *own, int rank, int64_t *strides) {
  const int lead = rank - batch_rank(o);
  for (int d = 0; d < rank; d++) strides[d] = d < lead || o.dims[d - lead] == 1 ? 0 : own[d - lead];
}

// A batch over one b whose rows of a follow each other is more rows.
void fold(Product *p) {
  while (p->rank > 0 && p->m > 0) {
    const int d = p->rank - 1;
    if (p->strides[1][d] != 0 || (p->m > 1 && p->strides[0][d] != p->m * p->a_rs)) return;
    if (p->m == 1) p->a_rs = p->strides[0][d];
    p->m *= p->batch[d];
    p->rank = d;
  }
}

// One constant on its way into panels.
struct Packing {
  const Operand *b;
  Product p;
  const char *src;
  char *dst;
  int64_t panels, panel_bytes;  // of one matrix, of one panel
  int cols, elem_bytes;
  PackPanel pack;
};

void pack_panels(void *ctx, int64_t begin, int64_t end, int) {
  const Packing &k = *static_cast<const Packing *>(ctx);
  for (int64_t u = begin; u < end; u++) {
    const int64_t j = u % k.panels * k.cols, at = matrix_of_b(*k.b, u / k.panels) + j * k.p.b_cs;
    k.pack(k.p, k.dst + u * k.panel_bytes, k.cols, k.src + at * k.elem_bytes, k.p.n - j < k.cols ? k.p.n - j : k.cols);
  }
}

// The inverse of pack_panels; how is the elements of a row of groups of a panel, the bytes of an element, those of a panel, and those of its head with
// the elements of a group: so many of a column lie side by side, the last of them first.
void unpack_panels(const Operand &b, const int64_t *how, const char *packed, char *raw) {
  const int rank = int(b.rank);
  const int64_t group = how[3] & 255, row = how[0], cols = row / group, size = how[1], n = b.dims[rank - 1], k = b.dims[rank - 2], panels = (n + cols - 1) / cols;
  for (int64_t u = 0, count = matrices_of_b(b) * panels; u < count; u++) {
    const int64_t first = u % panels * cols;
    char *to = raw + (matrix_of_b(b, u / panels) + first * b.strides[rank - 1]) * size;
    const char *from = packed + u * how[2] + (how[3] >> 8);
    for (int64_t i = 0; i < k; i++, to += b.strides[rank - 2] * size)
      for (int64_t j = 0; j < cols && first + j < n; j++) std::memcpy(to + j * b.strides[rank - 1] * size, from + (i / group * row + j * group + group - 1 - i % group) * size, size_t(size));
  }
}

}  // namespace

void product_of(const Command &c, int64_t packed_size, Product *p) {
  const Operand &a = c.in[0], &b = c.in[1], &y = c.out[0];
  const int ra = int(a.rank), rb = int(b.rank);
  p->k = a.dims[ra - 1], p->a_cs = a.strides[ra - 1];
  p->m = ra > 1 ? a.dims[ra - 2] : 1, p->a_rs = ra > 1 ? a.strides[ra - 2] : 0;
  p->n = rb > 1 ? b.dims[rb - 1] : 1, p->b_cs = rb > 1 ? b.strides[rb - 1] : 0;
  p->b_rs = b.strides[rb > 1 ? rb - 2 : 0];
  const int rank = int(y.rank) - (ra > 1) - (rb > 1);
  int64_t own[RLX_MAX_RANK] = {};
  const bool packed = packed_size != 0;
  for (int d = batch_rank(b) - 1; d >= 0 && packed; d--) {
    own[d] = b.strides[d] == 0 ? 0 : packed_size;
    if (b.strides[d] != 0) packed_size *= b.dims[d];
  }
  spread(a, a.strides, rank, p->strides[0]);
  spread(b, packed ? own : b.strides, rank, p->strides[1]);
  p->matrices = 1;
  for (int d = rank - 1; d >= 0; d--) {
    p->batch[d] = y.dims[d];
    p->strides[2][d] = p->matrices * p->m * p->n;
    p->matrices *= y.dims[d];
  }
  p->rank = merge_axes(p->batch, rank, p->strides, 3);
  fold(p);
  p->matrices = p->m == 0 ? 0 : 1;
  for (int d = 0; d < p->rank; d++) p->matrices *= p->batch[d];
}

int64_t matrices_of_b(const Operand &b) {
  int64_t n = 1;
  for (int d = 0; d < batch_rank(b); d++) n *= b.strides[d] == 0 && b.dims[d] != 0 ? 1 : b.dims[d];
  return n;
}

int64_t matrix_of_b(const Operand &b, int64_t i) {
  int64_t at = 0;
  for (int d = batch_rank(b) - 1; d >= 0; d--) {
    if (b.strides[d] == 0) continue;
    at += i % b.dims[d] * b.strides[d];
    i /= b.dims[d];
  }
  return at;
}

int32_t pack_constant_b(Prepare &prepare, int cols, int elem_bytes, uint32_t layout, PackPanel pack, int64_t panel_bytes, int64_t head_bytes, int group) {
  const bool constant(prepare.constant_view(prepare, 1));
  Packing k = {};
  k.b = &prepare.cmd->in[1];
  product_of(*prepare.cmd, 0, &k.p);
  const int64_t count = matrices_of_b(*k.b);
  // One column is not a panel, a few would be padded to many times their bytes, and there must be something to multiply.
  if (!constant || k.p.n <= 1 || k.p.n * 8 < cols || k.p.k == 0 || count == 0 || k.p.matrices == 0) return RLX_OK;
  k.panels = (k.p.n + cols - 1) / cols, k.panel_bytes = panel_bytes != 0 ? panel_bytes : k.p.k * cols * elem_bytes;
  if (k.panels > INT64_MAX / 8 / k.panel_bytes / count) return RLX_NO_MEMORY;
  bool fresh = false;
  const uint64_t name = uint64_t(RLX_OP_MatMul) << 32 | uint64_t(layout) << 16 | uint64_t(cols);
  const PackedForm form = {name, count * k.panels * k.panel_bytes, unpack_panels, {cols * group, elem_bytes, k.panel_bytes, head_bytes << 8 | group}};
  void *dst = prepare.cache(prepare, 1, form, &fresh);
  if (dst == nullptr) return RLX_NO_MEMORY;
  prepare.cmd->packed = dst;
  if (!fresh) return RLX_OK;
  k.src = static_cast<const char *>(prepare.source(prepare, 1));
  if (k.src == nullptr) return RLX_NO_MEMORY;
  k.dst = static_cast<char *>(dst);
  k.cols = cols, k.elem_bytes = elem_bytes, k.pack = pack;
  parallel(prepare.pool, prepare.max_threads, count * k.panels, 1 + 65536 / k.panel_bytes, pack_panels, &k, nullptr);
  return RLX_OK;
}

}  // namespace matmul
}  // namespace rlx
