// command.cpp: a command of the words becomes parameters, bindings and a dispatch. Generic over the ops: the row of kernels.h says the rest.
#define RLX_OP_TABLE
#include "kernels/layout.h"
#include "program.h"

namespace rlx {
namespace {

// The command on its way.
struct Builder {
  rlx_program *program;
  const DecodedCommand *command;
  rlx_error *error;
  Context *context;
  uint64_t start;  // of the parameters in the program's list

  uint32_t &word(uint64_t i) const { return program->params[start + i]; }
  int32_t fail(int32_t code, const char *what) const {
    return set_error(error, code, int32_t(command->index), "%s: %s", rlx_op_names[command->op], what);
  }
  int32_t no_memory() const { return fail(RLX_NO_MEMORY, "no host memory"); }
};

const char kTooLarge[] = "a tensor beyond the limits of the device or of 32-bit indices";

bool int32_fits(int64_t v) { return v >= INT32_MIN && v <= INT32_MAX; }

uint32_t float_bits(double v) {
  const float f = float(v);
  uint32_t bits;
  std::memcpy(&bits, &f, sizeof bits);
  return bits;
}

// The words of tensor k, whose binding begins `before` bytes ahead of its element 0.
int32_t put_tensor(const Builder &b, uint32_t k, const Operand &o, int64_t before) {
  const uint64_t at = P_TENSORS + uint64_t(k) * T_WORDS;
  if (!o.present) return RLX_OK;  // zeros
  const int64_t offset = before / rlx_dtype_sizes[o.dtype];
  if (o.count > INT32_MAX || offset > INT32_MAX) return b.fail(RLX_UNSUPPORTED, kTooLarge);
  b.word(at + T_DTYPE) = o.dtype;
  b.word(at + T_RANK) = o.rank;
  b.word(at + T_COUNT) = uint32_t(o.count);
  b.word(at + T_OFFSET) = uint32_t(offset);
  for (uint32_t d = 0; d < o.rank; d++) {
    if (o.dims[d] > INT32_MAX || (o.dims[d] > 1 && o.count != 0 && !int32_fits(o.strides[d]))) return b.fail(RLX_UNSUPPORTED, kTooLarge);
    b.word(at + T_DIMS + d) = uint32_t(o.dims[d]);
    b.word(at + T_STRIDES + d) = o.dims[d] <= 1 ? 0 : uint32_t(int32_t(o.strides[d]));
  }
  return RLX_OK;
}

// The buffer of o: from an aligned byte at or before all that it touches.
int32_t bind_tensor(const Builder &b, const Operand &o, bool written, Binding *out, int64_t *before) {
  *out = {kNoBinding, 0, 0, 0, written};
  *before = 0;
  if (!o.present || o.count == 0) return RLX_OK;
  int64_t lo, hi;
  operand_extent(o, &lo, &hi);
  const int64_t align = int64_t(b.context->limits.minStorageBufferOffsetAlignment < 16 ? 16 : b.context->limits.minStorageBufferOffsetAlignment);
  lo = lo / align * align;
  const int64_t range = (hi - lo + 3) & ~int64_t(3);
  if (uint64_t(range) > b.context->limits.maxStorageBufferRange) return b.fail(RLX_UNSUPPORTED, kTooLarge);
  *out = {o.slot, o.index, uint64_t(lo), uint64_t(range), written};
  *before = o.offset - lo;
  return RLX_OK;
}

// A list behind the attributes: its count and place.
template <class T, class F> int32_t put_list(const Builder &b, uint64_t at, int64_t n, const T *v, F word) {
  b.word(at) = n < 0 ? UINT32_MAX : uint32_t(n);
  b.word(at + 1) = uint32_t(b.program->params.n - b.start);
  for (int64_t i = 0; i < n; i++) {
    uint32_t w = 0;
    if (!word(v[i], &w)) return b.fail(RLX_UNSUPPORTED, "an attribute beyond 32 bits");
    if (!b.program->params.push(w)) return b.no_memory();
  }
  return RLX_OK;
}

bool int_word(int64_t v, uint32_t *w) {
  *w = uint32_t(int32_t(v));
  return int32_fits(v);
}

bool float_word(double v, uint32_t *w) {
  *w = float_bits(v);
  return true;
}

// Attribute k of the given kind, whose members begin at v.
int32_t put_attribute(const Builder &b, char kind, uint64_t at, const int64_t *v) {
  double d;
  std::memcpy(&d, v, sizeof d);
  switch (kind) {
    case 'i':
      b.word(at) = uint32_t(v[0] < INT32_MIN ? INT32_MIN : v[0] > INT32_MAX ? INT32_MAX : int32_t(v[0]));
      b.word(at + 1) = uint32_t(v[0]), b.word(at + 2) = uint32_t(uint64_t(v[0]) >> 32);
      return RLX_OK;
    case 'f': b.word(at) = float_bits(d); return RLX_OK;
    case 'b': case 'e': case 'd': b.word(at) = uint32_t(v[0]); return RLX_OK;
    case 'o':
      if (!int32_fits(v[1])) return b.fail(RLX_UNSUPPORTED, "an attribute beyond 32 bits");
      b.word(at) = uint32_t(v[0]), b.word(at + 1) = uint32_t(int32_t(v[1]));
      return RLX_OK;
    case 'n':
      b.word(at) = uint32_t(v[0]), b.word(at + 1) = uint32_t(v[1]), b.word(at + 2) = uint32_t(uint64_t(v[1]) >> 32);
      return RLX_OK;
    case 'I': {
      rlx_ints l;
      std::memcpy(&l, v, sizeof l);
      return put_list(b, at, l.n, l.v, int_word);
    }
    case 'F': {
      rlx_floats l;
      std::memcpy(&l, v, sizeof l);
      return put_list(b, at, l.n, l.v, float_word);
    }
    case 's': {
      rlx_text t;
      std::memcpy(&t, v, sizeof t);
      const uint64_t words = (uint64_t(t.n) + 3) / 4;
      b.word(at) = uint32_t(t.n), b.word(at + 1) = uint32_t(b.program->params.n - b.start);
      uint32_t *to = b.program->params.grow(words);
      if (to == nullptr) return b.no_memory();
      std::memcpy(to, t.v, size_t(t.n));
      return RLX_OK;
    }
    default:
      return v[0] == 0 ? int32_t(RLX_OK) : b.fail(RLX_UNSUPPORTED, "a tensor as attribute");
  }
}

uint32_t members(char kind) {  // 8-byte members of an attribute in its struct
  switch (kind) {
    case 'o': case 'n': case 'I': case 'F': case 's': return 2;
    case 't': return 6;
    default: return 1;
  }
}

int32_t put_attributes(const Builder &b, Specialisation *s) {
  const char *kinds = rlx_op_table[b.command->op].attrs;
  const uint64_t n = std::strlen(kinds), at = b.program->params.n - b.start;
  if (b.program->params.grow(n * A_WORDS) == nullptr) return b.no_memory();
  b.word(P_ATTRS) = uint32_t(at);
  const int64_t *v = static_cast<const int64_t *>(b.command->attrs);
  for (uint64_t k = 0; k < n; v += members(kinds[k]), k++) {
    const int32_t code = put_attribute(b, kinds[k], at + k * A_WORDS, v);
    if (code != RLX_OK) return code;
    if ((kinds[k] == 'b' || kinds[k] == 'e' || kinds[k] == 'd') && S_ATTR + k < sizeof s->value / sizeof s->value[0]) s->value[S_ATTR + k] = uint32_t(v[0]);
  }
  return RLX_OK;
}

bool flat(const DecodedCommand &c) {
  for (uint32_t i = 0; i < c.num_in; i++) {
    const Operand &o = c.in[i];
    if (!o.present) continue;
    if (!o.contiguous || o.rank != c.out[0].rank || std::memcmp(o.dims, c.out[0].dims, sizeof(int64_t) * o.rank) != 0) return false;
  }
  return true;
}

int64_t rows_of(const Operand &o) {
  int64_t n = 1;
  for (int d = 0; d + 1 < int(o.rank); d++) n *= o.dims[d];
  return n;
}

int64_t tiles_of(const Operand &o) {
  if (o.count == 0) return 0;
  const int64_t n = o.rank > 0 ? o.dims[o.rank - 1] : 1, m = o.rank > 1 ? o.dims[o.rank - 2] : 1;
  return (m + TILE_M - 1) / TILE_M * ((n + TILE_N - 1) / TILE_N) * (o.count / (m * n));
}

// Units of work, and whether an invocation does one (else a workgroup).
int64_t units_of(const DecodedCommand &c, Dispatch kind, uint32_t piece, bool *single) {
  *single = kind == DISPATCH_elements || kind == DISPATCH_each;
  if (c.out[0].count == 0 && c.num_out == 1) return 0;  // rows of no length are no work
  switch (kind) {
    case DISPATCH_each: return c.in[piece].count;
    case DISPATCH_rows: return rows_of(c.out[0]);
    case DISPATCH_in_rows: return c.num_in == 0 || !c.in[0].present ? 0 : rows_of(c.in[0]);
    case DISPATCH_tiles: return tiles_of(c.out[0]);
    default: return c.out[0].count;
  }
}

// Groups along x and y for n groups of local invocations; false if the device has no room for them.
bool grid(const Context &c, int64_t n, uint32_t local, uint32_t *groups) {
  const int64_t x = n < int64_t(c.limits.maxComputeWorkGroupCount[0]) ? n : int64_t(c.limits.maxComputeWorkGroupCount[0]);
  const int64_t y = (n + x - 1) / x;
  groups[0] = uint32_t(x), groups[1] = uint32_t(y);
  return y <= int64_t(c.limits.maxComputeWorkGroupCount[1]) && x * y * local <= int64_t(UINT32_MAX);
}

// Parameters and bindings of one dispatch; piece is the operand that it is for, or any where the kind is not each.
int32_t dispatch(Builder b, const KernelRow &row, uint32_t piece) {
  const DecodedCommand &c = *b.command;
  rlx_program *p = b.program;
  bool single;
  const int64_t units = units_of(c, row.dispatch, piece, &single);
  if (units == 0) return RLX_OK;
  if (units > INT32_MAX) return b.fail(RLX_UNSUPPORTED, kTooLarge);
  const uint64_t align = (b.context->limits.minStorageBufferOffsetAlignment + 3) / 4;
  while (align > 1 && p->params.n % align != 0)
    if (!p->params.push(0)) return b.no_memory();
  b.start = p->params.n;
  const rlx_op_info &info = rlx_op_table[c.op];
  const bool trailing = info.max_in != 65535 && c.num_in < info.declared;  // optional operands that were left out: the shader names them
  const bool each = row.dispatch == DISPATCH_each;  // its shader sees one operand
  const uint32_t present = c.num_out + c.num_in, tensors = each ? c.num_out + 1 : trailing ? c.num_out + info.declared : present;
  if (p->params.grow(P_TENSORS + uint64_t(tensors) * T_WORDS) == nullptr) return b.no_memory();
  b.word(P_UNITS) = uint32_t(units), b.word(P_RESULTS) = c.num_out;
  b.word(P_COMMAND) = c.index + 1, b.word(P_FLAT) = !each && flat(c);
  for (uint32_t k = 0; each && k < piece; k++) b.word(P_BEFORE) += uint32_t(c.in[k].count);

  const Operand absent;
  Dispatched d = {};
  d.first_binding = uint32_t(p->bindings.n);
  Specialisation s = {};
  const uint32_t local = single ? b.context->single : b.context->group;
  s.value[S_LOCAL] = local, s.value[S_OUT_DTYPE] = c.out[0].dtype;
  for (uint32_t k = 0; k < tensors; k++) {
    const uint32_t of = each && k >= c.num_out ? k + piece : k;
    const Operand &o = of < present ? c.out[of] : absent;  // operands lie behind results
    Binding bind;
    int64_t before;
    int32_t code = bind_tensor(b, o, k < c.num_out, &bind, &before);
    if (code == RLX_OK) code = put_tensor(b, k, o, before);
    if (code != RLX_OK) return code;
    if (k >= c.num_out && k - c.num_out < 8) s.value[S_IN_DTYPE + k - c.num_out] = o.present ? o.dtype : 0;
    if (!p->bindings.push(bind)) return b.no_memory();
  }
  const int32_t code = put_attributes(b, &s);
  if (code != RLX_OK) return code;
  d.bindings = uint32_t(p->bindings.n) - d.first_binding;
  if (BIND_TENSORS + d.bindings > kMaxBindings || BIND_TENSORS + d.bindings > b.context->limits.maxPerStageDescriptorStorageBuffers)
    return b.fail(RLX_UNSUPPORTED, "more operands than the device binds to one kernel");
  d.command = c.index;
  d.params = uint32_t(b.start), d.param_words = uint32_t(p->params.n - b.start);
  if (!grid(*b.context, single ? (units + local - 1) / local : units, local, d.groups)) return b.fail(RLX_UNSUPPORTED, kTooLarge);
  const int32_t made = pipeline_get(b.context, row.module, s, BIND_TENSORS + d.bindings, c.index, &d.pipeline, b.error);
  if (made != RLX_OK) return made;
  return p->dispatches.push(d) ? int32_t(RLX_OK) : b.no_memory();
}

}  // namespace

int32_t dispatch_command(rlx_program *p, const DecodedCommand &c, rlx_error *error) {
  Builder b = {p, &c, error, p->device->context, 0};
  const KernelRow *row = kernel_find(*b.context, c.op, key_dtype(c));
  if (row == nullptr) return set_error(error, RLX_UNSUPPORTED, int32_t(c.index), "%s: no kernel for %s", rlx_op_names[c.op], rlx_dtype_names[key_dtype(c)]);
  const uint32_t pieces = row->dispatch == DISPATCH_each ? c.num_in : 1;
  for (uint32_t k = 0; k < pieces; k++) {
    const int32_t code = dispatch(b, *row, k);
    if (code != RLX_OK) return code;
  }
  return RLX_OK;
}

}  // namespace rlx
