#define RLX_OP_TABLE
#include <stdarg.h>
#include <stdio.h>

#include <cstddef>
#include <cstring>

#include "memory.h"
#include "words.h"

// Checks and decodes command words. Nothing in them is trusted: every count is compared with the words that are left before it is used, and
// every size is computed with overflow checks.
namespace rlx {
namespace {

#define BAD(d, ...) set_error((d).error, RLX_BAD_WORDS, (d).command, __VA_ARGS__)

const char *op_name(const DecodedCommand &c) { return rlx_op_names[c.op]; }

bool left(const Decoder &d, uint64_t n) { return d.end - d.at >= n; }

uint32_t u32(Decoder &d) { return d.words[d.at++]; }

int64_t i64(Decoder &d) {
  const uint64_t lo = d.words[d.at], hi = d.words[d.at + 1];
  d.at += 2;
  return static_cast<int64_t>(lo | hi << 32);
}

// Memory of the program, 8-byte aligned; null when the bound of the first pass was wrong.
void *take(Decoder &d, uint64_t bytes) {
  bytes = (bytes + 7) & ~uint64_t(7);
  if (d.size - d.used < bytes) return nullptr;
  void *p = d.block + d.used;
  d.used += bytes;
  return p;
}

int32_t out_of_block(Decoder &d) { return set_error(d.error, RLX_NO_MEMORY, d.command, "the program's memory is too small"); }

// Elements and bytes of dims; false when a dim is negative or a number does not fit. A zero dim does not excuse the others.
bool sizes(uint32_t dtype, uint32_t rank, const int64_t *dims, int64_t *count, int64_t *bytes) {
  int64_t n = 1;
  bool zero = false;
  for (uint32_t i = 0; i < rank; i++) {
    if (dims[i] < 0) return false;
    if (dims[i] == 0) zero = true;
    else if (__builtin_mul_overflow(n, dims[i], &n) || n == INT64_MAX) return false;
  }
  *count = zero ? 0 : n;
  return !__builtin_mul_overflow(*count, int64_t(rlx_dtype_sizes[dtype]), bytes);
}

bool contiguous(const Operand &o) {
  int64_t n = 1;
  for (int i = int(o.rank) - 1; i >= 0; i--) {
    if (o.dims[i] == 0) return true;
    if (o.dims[i] != 1 && o.strides[i] != n) return false;
    n *= o.dims[i];
  }
  return true;
}

}  // namespace

bool operand_extent(const Operand &o, int64_t *lo, int64_t *hi) {
  const int64_t size = rlx_dtype_sizes[o.dtype];
  *lo = o.offset;
  if (__builtin_add_overflow(o.offset, size, hi)) return false;
  for (uint32_t i = 0; i < o.rank; i++) {
    if (o.dims[i] == 0) {
      *lo = *hi = o.offset;
      return true;
    }
    int64_t step;
    if (__builtin_mul_overflow(o.dims[i] - 1, o.strides[i], &step) || __builtin_mul_overflow(step, size, &step)) return false;
    if (__builtin_add_overflow(step < 0 ? *lo : *hi, step, step < 0 ? lo : hi)) return false;
  }
  return true;
}

namespace {

// Stretches of words that were met last: what they say is decoded once, and shared. The two passes over the words find the same ones, so that
// the bound of the first is what the second takes.
struct Met {
  static constexpr uint32_t kMost = 32;
  struct {
    uint64_t at, words;
    uint32_t op;
    const void *memory;
  } of[kMost];
  uint32_t count = 0;

  // The place of the words from d.at on; *known says that they have been met, else they take the place of the oldest.
  uint32_t find(const Decoder &d, uint64_t words, uint32_t op, bool *known) {
    const uint32_t have = count < kMost ? count : kMost;
    for (uint32_t i = 0; i < have; i++)
      if (of[i].words == words && of[i].op == op && std::memcmp(d.words + of[i].at, d.words + d.at, 4 * words) == 0) {
        *known = true;
        return i;
      }
    *known = false;
    of[count % kMost] = {d.at, words, op, nullptr};
    return count++ % kMost;
  }
};

struct Shared {
  Met shapes;      // dims and strides of operands
  Met attributes;  // of commands without sub-graphs
};

int32_t operand(Decoder &d, Met &shapes, const char *what, uint32_t i, Operand *o) {
  *o = Operand();
  if (!left(d, 1)) return BAD(d, "%s %u: words are truncated", what, i);
  const uint32_t head = u32(d);
  if (head == RLX_ABSENT) return RLX_OK;
  o->dtype = head & 0xff, o->rank = head >> 8 & 0xff, o->slot = head >> 16 & 0xff;
  if (o->dtype == 0 || o->dtype >= RLX_NUM_DTYPES) return BAD(d, "%s %u: dtype %u", what, i, o->dtype);
  if (o->rank > uint32_t(RLX_MAX_RANK)) return BAD(d, "%s %u: rank %u, expected at most %d", what, i, o->rank, RLX_MAX_RANK);
  if (o->slot >= uint32_t(kSlots) || head >> 24 != 0) return BAD(d, "%s %u: slot %u", what, i, head >> 16);
  if (!left(d, 3 + 4 * uint64_t(o->rank))) return BAD(d, "%s %u: words are truncated", what, i);
  o->index = u32(d);
  o->offset = i64(d);
  bool known;
  const uint32_t place = shapes.find(d, 4 * uint64_t(o->rank), 0, &known);
  if (known) {
    d.at += 4 * uint64_t(o->rank);
  } else {
    int64_t *shape = static_cast<int64_t *>(take(d, 16 * uint64_t(o->rank)));
    if (shape == nullptr) return out_of_block(d);
    for (uint32_t k = 0; k < 2 * o->rank; k++) shape[k] = i64(d);
    shapes.of[place].memory = shape;
  }
  o->dims = static_cast<const int64_t *>(shapes.of[place].memory), o->strides = o->dims + o->rank;

  if (o->slot == RLX_ARENA) o->index = 0;
  if (o->index >= d.program->slots[o->slot]) return BAD(d, "%s %u: tensor %u of slot %u, which has %u", what, i, o->index, o->slot, d.program->slots[o->slot]);
  int64_t bytes, lo, hi;
  if (!sizes(o->dtype, o->rank, o->dims, &o->count, &bytes)) return BAD(d, "%s %u: dims are negative or too large", what, i);
  const int64_t have = d.program->slot_bytes[o->slot][o->index];
  if (!operand_extent(*o, &lo, &hi) || lo < 0 || hi > have)
    return BAD(d, "%s %u: reaches outside the %lld bytes of tensor %u of slot %u", what, i, (long long)have, o->index, o->slot);
  if (o->offset % rlx_dtype_sizes[o->dtype] != 0) return BAD(d, "%s %u: offset %lld is no multiple of %d", what, i, (long long)o->offset, rlx_dtype_sizes[o->dtype]);
  o->present = true;
  o->contiguous = contiguous(*o);
  return RLX_OK;
}

// Attributes. Each reader is given the 8-byte members of the struct where the value goes.

int32_t list(Decoder &d, int64_t *to, const char *what) {
  rlx_ints l = {-1, nullptr};
  if (!left(d, 1)) return BAD(d, "%s: words are truncated", what);
  const uint32_t n = u32(d);
  if (n != RLX_ABSENT) {
    if (!left(d, 2 * uint64_t(n))) return BAD(d, "%s: a list of %u entries, but %llu words are left", what, n, (unsigned long long)(d.end - d.at));
    int64_t *v = static_cast<int64_t *>(take(d, 8 * uint64_t(n)));
    if (v == nullptr) return out_of_block(d);
    for (uint32_t k = 0; k < n; k++) v[k] = i64(d);
    l.n = n, l.v = v;
  }
  std::memcpy(to, &l, sizeof l);
  return RLX_OK;
}

int32_t bytes(Decoder &d, int64_t *n, const void **data, const char *what) {
  if (!left(d, 1)) return BAD(d, "%s: words are truncated", what);
  const uint64_t len = u32(d), words = (len + 3) / 4;
  if (!left(d, words)) return BAD(d, "%s: %llu bytes, but %llu words are left", what, (unsigned long long)len, (unsigned long long)(d.end - d.at));
  char *v = static_cast<char *>(take(d, len + 1));
  if (v == nullptr) return out_of_block(d);
  std::memcpy(v, d.words + d.at, len);
  v[len] = 0;
  d.at += words;
  *n = int64_t(len), *data = v;
  return RLX_OK;
}

int32_t tensor(Decoder &d, int64_t *to, const char *what) {
  rlx_tensor t = {};
  if (!left(d, 1)) return BAD(d, "%s: words are truncated", what);
  if (u32(d) != 0) {
    if (!left(d, 2)) return BAD(d, "%s: words are truncated", what);
    const uint32_t dtype = u32(d), rank = u32(d);
    if (dtype == 0 || dtype >= RLX_NUM_DTYPES || rank > RLX_MAX_RANK) return BAD(d, "%s: a tensor of dtype %u and rank %u", what, dtype, rank);
    if (!left(d, 2 * uint64_t(rank))) return BAD(d, "%s: words are truncated", what);
    int64_t *dims = static_cast<int64_t *>(take(d, 8 * uint64_t(rank))), count, size;
    if (dims == nullptr) return out_of_block(d);
    for (uint32_t k = 0; k < rank; k++) dims[k] = i64(d);
    t.present = 1, t.dtype = dtype, t.rank = rank, t.dims = dims;
    const int32_t code = bytes(d, &t.bytes, &t.data, what);
    if (code != RLX_OK) return code;
    if (!sizes(dtype, rank, dims, &count, &size) || size != t.bytes) return BAD(d, "%s: a tensor with %lld bytes, which its dims do not have", what, (long long)t.bytes);
  }
  std::memcpy(to, &t, sizeof t);
  return RLX_OK;
}

constexpr uint32_t kMaxDepth = 32;  // of sub-graphs

// A sub-graph: the words of a program, which becomes one of its own.
int32_t graph(Decoder &d, int64_t *to, const char *what) {
  rlx_graph g = {-1, nullptr, nullptr};
  const uint32_t n = u32(d);
  if (n != RLX_ABSENT) {
    if (!left(d, n)) return BAD(d, "%s: a sub-graph of %u words, but %llu are left", what, n, (unsigned long long)(d.end - d.at));
    if (d.depth >= kMaxDepth) return BAD(d, "%s: sub-graphs nest deeper than %u", what, kMaxDepth);
    Decoder inner = {};
    inner.words = d.words + d.at, inner.count = n, inner.error = d.error;
    inner.program_bytes = d.program_bytes, inner.command_bytes = d.command_bytes;
    inner.around = d.around == nullptr ? d.program : d.around, inner.depth = d.depth + 1, inner.command = d.command;
    const int32_t code = decode_words(inner);
    if (inner.program != nullptr) inner.program->next = d.program->bodies, d.program->bodies = inner.program;
    if (code != RLX_OK) return code;
    g.n = n, g.words = inner.words, g.program = inner.program;
    d.at += n;
  }
  std::memcpy(to, &g, sizeof g);
  return RLX_OK;
}

int32_t attributes(Decoder &d, DecodedCommand *c, const rlx_op_info &info) {
  int64_t *to = static_cast<int64_t *>(take(d, info.attr_bytes));
  if (to == nullptr) return out_of_block(d);
  std::memset(to, 0, info.attr_bytes);
  c->attrs = to;
  const uint16_t *limit = info.enums;
  for (const char *kind = info.attrs; *kind != 0; kind++) {
    char what[64];
    snprintf(what, sizeof what, "%s: attribute %d", op_name(*c), int(kind - info.attrs) + 1);
    int32_t code = RLX_OK;
    const uint64_t fixed = *kind == 'n' || *kind == 'o' ? 3 : *kind == 'i' || *kind == 'f' ? 2 : 1;
    if (!left(d, fixed)) return BAD(d, "%s: words are truncated", what);
    switch (*kind) {
      case 'i': case 'f': *to++ = i64(d); break;
      case 'b': *to++ = u32(d) != 0; break;
      case 'e':
        if ((*to = u32(d)) >= *limit) return BAD(d, "%s: enum value %lld, expected less than %d", what, (long long)*to, *limit);
        limit++, to++;
        break;
      case 'd':
        if ((*to = u32(d)) >= RLX_NUM_DTYPES) return BAD(d, "%s: dtype %lld", what, (long long)*to);
        to++;
        break;
      case 'o':
        to[0] = u32(d) != 0, to[1] = i64(d);
        to += 2;
        break;
      case 'n':
        if ((to[0] = u32(d)) > 3) return BAD(d, "%s: number kind %lld", what, (long long)to[0]);
        to[1] = i64(d);
        to += 2;
        break;
      case 'I': case 'F': code = list(d, to, what), to += 2; break;
      case 's': {
        rlx_text t = {};
        const void *v = nullptr;
        code = bytes(d, &t.n, &v, what);
        t.v = static_cast<const char *>(v);
        std::memcpy(to, &t, sizeof t);
        to += 2;
        break;
      }
      case 't': code = tensor(d, to, what), to += 6; break;
      default: code = graph(d, to, what), to += 3; break;
    }
    if (code != RLX_OK) return code;
  }
  return RLX_OK;
}

// Presence, dtypes and the shared dtype of the operands, and what results must be.
int32_t check_command(Decoder &d, const DecodedCommand &c, const rlx_op_info &info) {
  const char *name = op_name(c);
  uint32_t shared = 0;
  for (uint32_t i = 0; i < c.num_in; i++) {
    const uint32_t k = i < info.declared ? i : info.declared - 1u;
    const Operand &o = c.in[i];
    if (!o.present) {
      if ((info.optional >> k & 1) == 0) return BAD(d, "%s: operand %u is missing", name, i);
      continue;
    }
    if ((info.operands[k] >> o.dtype & 1) == 0) return BAD(d, "%s: operand %u has dtype %s", name, i, rlx_dtype_names[o.dtype]);
    if ((info.same >> k & 1) == 0) continue;
    if (shared != 0 && shared != o.dtype) return BAD(d, "%s: operands have dtypes %s and %s, expected one dtype", name, rlx_dtype_names[shared], rlx_dtype_names[o.dtype]);
    shared = o.dtype;
  }
  for (uint32_t i = 0; i < c.num_out; i++) {
    const Operand &o = c.out[i];
    if (!o.present || !o.contiguous) return BAD(d, "%s: result %u: expected contiguous", name, i);
    if (o.slot == RLX_INPUT || o.slot == RLX_CONST) return BAD(d, "%s: result %u: writes to slot %u, which is read only", name, i, o.slot);
  }
  return RLX_OK;
}

// The header of a command: op, words, results | operands << 16. Leaves at behind it and end at the end of the command.
int32_t command_header(Decoder &d, DecodedCommand *c) {
  if (d.count - d.at < 3) return BAD(d, "words are truncated");
  const uint64_t start = d.at;
  const uint32_t op = d.words[start] & ~RLX_STAGED, words = d.words[start + 1], nums = d.words[start + 2];
  if (op == 0 || op > RLX_NUM_OPS) return BAD(d, "op number %u is unknown", op);
  const rlx_op_info &info = rlx_op_table[op];
  const char *name = rlx_op_names[op];
  if (words < 3 || words > d.count - start) return BAD(d, "%s: %u words, but %llu are left", name, words, (unsigned long long)(d.count - start));
  if (info.flags & RLX_OP_LEAF) return BAD(d, "%s: a leaf is not a command", name);
  c->staged = (d.words[start] & RLX_STAGED) != 0;
  c->op = op, c->index = uint32_t(d.command < 0 ? 0 : d.command), c->num_out = nums & 0xffff, c->num_in = nums >> 16;
  if (info.num_out == 255 ? c->num_out == 0 : c->num_out != info.num_out) return BAD(d, "%s: %u results, expected %u", name, c->num_out, unsigned(info.num_out));
  if (c->num_in < info.min_in || c->num_in > info.max_in) return BAD(d, "%s: %u operands, expected %u to %u", name, c->num_in, unsigned(info.min_in), unsigned(info.max_in));
  if (c->num_in + c->num_out > words - 3) return BAD(d, "%s: %u operands and results in %u words", name, c->num_in + c->num_out, words);
  d.at = start + 3, d.end = start + words;
  return RLX_OK;
}

// Whether commands of an op with equal attributes may share them: programs of sub-graphs are each command's own.
bool shares(uint32_t op) { return std::strchr(rlx_op_table[op].attrs, 'g') == nullptr; }

int32_t shared_attributes(Decoder &d, Met &met, DecodedCommand *c, const rlx_op_info &info) {
  if (!shares(c->op)) return attributes(d, c, info);
  bool known;
  const uint32_t place = met.find(d, d.end - d.at, c->op, &known);
  if (known) {
    c->attrs = met.of[place].memory, d.at = d.end;
    return RLX_OK;
  }
  const int32_t code = attributes(d, c, info);
  met.of[place].memory = c->attrs;
  return code;
}

int32_t command(Decoder &d, Shared &shared, DecodedCommand *c) {
  int32_t code = command_header(d, c);
  if (code != RLX_OK) return code;
  const rlx_op_info &info = rlx_op_table[c->op];
  Operand *all = static_cast<Operand *>(take(d, sizeof(Operand) * (uint64_t(c->num_out) + c->num_in)));
  if (all == nullptr) return out_of_block(d);
  c->out = all, c->in = all + c->num_out;
  for (uint32_t i = 0; i < c->num_out; i++)
    if ((code = operand(d, shared.shapes, "result", i, c->out + i)) != RLX_OK) return code;
  for (uint32_t i = 0; i < c->num_in; i++)
    if ((code = operand(d, shared.shapes, "operand", i, c->in + i)) != RLX_OK) return code;
  if ((code = shared_attributes(d, shared.attributes, c, info)) != RLX_OK) return code;
  if (d.at != d.end) return BAD(d, "%s: %llu words follow the attributes", op_name(*c), (unsigned long long)(d.end - d.at));
  d.end = d.count;
  return check_command(d, *c, info);
}

// Types of inputs, outputs, constants and states: only their sizes are kept.
int32_t types(Decoder &d) {
  static const int order[] = {RLX_INPUT, RLX_OUTPUT, RLX_CONST, RLX_STATE};
  for (int s : order) {
    if (d.around != nullptr && (s == RLX_CONST || s == RLX_STATE)) continue;
    int64_t *to = d.program->slot_bytes[s];
    for (uint32_t i = 0; i < d.program->slots[s]; i++) {
      if (!left(d, 1)) return BAD(d, "words are truncated");
      const uint32_t head = u32(d), dtype = head & 0xff, rank = head >> 8;
      if (dtype == 0 || dtype >= RLX_NUM_DTYPES || rank > RLX_MAX_RANK) return BAD(d, "tensor %u of slot %d: type %#x", i, s, head);
      if (!left(d, 2 * uint64_t(rank))) return BAD(d, "words are truncated");
      int64_t dims[RLX_MAX_RANK], n;
      for (uint32_t k = 0; k < rank; k++) dims[k] = i64(d);
      if (!sizes(dtype, rank, dims, &n, &to[i])) return BAD(d, "tensor %u of slot %d: dims are negative or too large", i, s);
    }
  }
  return RLX_OK;
}

struct Header {
  int64_t arena;
  uint32_t counts[4], commands;
};

int32_t header(Decoder &d, Header *h) {
  if (d.count < 11) return BAD(d, "%llu words, expected a header of 11", (unsigned long long)d.count);
  const uint32_t magic = u32(d), version = u32(d);
  if (magic != RLX_WORDS_MAGIC || version != RLX_WORDS_VERSION)
    return BAD(d, "magic %#x version %u, expected %#x version %u", magic, version, RLX_WORDS_MAGIC, RLX_WORDS_VERSION);
  const uint64_t hash = uint64_t(i64(d));
  if (hash != RLX_TABLE_HASH) return BAD(d, "op table hash %#llx, expected %#llx", (unsigned long long)hash, (unsigned long long)RLX_TABLE_HASH);
  h->arena = i64(d);
  if (h->arena < 0 || h->arena > INT64_MAX / 4) return BAD(d, "arena of %lld bytes", (long long)h->arena);
  uint64_t least = 0;  // words that so many types and commands take
  for (int i = 0; i < 4; i++) least += h->counts[i] = u32(d);
  least += 3 * uint64_t(h->commands = u32(d));
  if (least > d.count - d.at) return BAD(d, "%llu words, too few for the counts in the header", (unsigned long long)d.count);
  if (d.around != nullptr && (h->counts[2] != 0 || h->counts[3] != 0)) return BAD(d, "a sub-graph with %u constants and %u states of its own", h->counts[2], h->counts[3]);
  return RLX_OK;
}

// What follows finds the memory that the readers of operands and attributes take, as long as the words hold what they announce. Where they do
// not, it stops, as the readers will.

bool skip(Decoder &d, uint64_t n) {
  if (!left(d, n)) return false;
  d.at += n;
  return true;
}

bool skip_bytes(Decoder &d, uint64_t *n) {
  if (!left(d, 1)) return false;
  const uint64_t len = u32(d);
  if (!skip(d, (len + 3) / 4)) return false;
  *n += (len + 8) & ~uint64_t(7);
  return true;
}

bool skip_tensor(Decoder &d, uint64_t *n) {
  if (!left(d, 1)) return false;
  if (u32(d) == 0) return true;
  if (!left(d, 2)) return false;
  const uint64_t rank = d.words[d.at + 1];
  if (!skip(d, 2 + 2 * rank)) return false;
  *n += 8 * rank;
  return skip_bytes(d, n);
}

bool skip_list(Decoder &d, uint64_t *n) {
  if (!left(d, 1)) return false;
  const uint64_t len = u32(d);
  if (len == RLX_ABSENT) return true;
  if (!skip(d, 2 * len)) return false;
  *n += 8 * len;
  return true;
}

// A sub-graph has a block of its own.
bool skip_graph(Decoder &d) {
  if (!left(d, 1)) return false;
  const uint64_t len = u32(d);
  return len == RLX_ABSENT || skip(d, len);
}

bool skip_attribute(Decoder &d, char kind, uint64_t *n) {
  switch (kind) {
    case 'i': case 'f': return skip(d, 2);
    case 'b': case 'e': case 'd': return skip(d, 1);
    case 'o': case 'n': return skip(d, 3);
    case 'I': case 'F': return skip_list(d, n);
    case 's': return skip_bytes(d, n);
    case 't': return skip_tensor(d, n);
    default: return skip_graph(d);
  }
}

// Adds what the operands of a command take beside their structs, and what its attributes take.
void variable(Decoder &d, Shared &shared, const DecodedCommand &c, uint64_t *n) {
  for (uint32_t k = 0; k < c.num_in + c.num_out; k++) {
    if (!left(d, 1)) return;
    const uint32_t head = u32(d);
    if (head == RLX_ABSENT) continue;
    const uint32_t rank = head >> 8 & 0xff;
    if (!left(d, 3 + 4 * uint64_t(rank))) return;
    d.at += 3;
    bool known;
    shared.shapes.find(d, 4 * uint64_t(rank), 0, &known);
    d.at += 4 * uint64_t(rank);
    if (!known) *n += 16 * uint64_t(rank);
  }
  bool known = false;
  if (shares(c.op)) shared.attributes.find(d, d.end - d.at, c.op, &known);
  if (known) return;
  *n += rlx_op_table[c.op].attr_bytes;
  for (const char *kind = rlx_op_table[c.op].attrs; *kind != 0; kind++)
    if (!skip_attribute(d, *kind, n)) return;
}

// Bounds the memory of the program: walks the headers of the commands, behind the types.
int32_t bound(Decoder &d, const Header &h, uint64_t *size) {
  uint64_t n = uint64_t(d.program_bytes) + 64, at = d.at, tensors = 1;
  for (int i = 0; i < 4; i++) tensors += h.counts[i];
  for (uint64_t i = 0; i < tensors - 1; i++) {
    if (d.at >= d.count) return BAD(d, "words are truncated");
    const uint64_t words = 1 + 2 * uint64_t(d.words[d.at] >> 8);
    if (words > d.count - d.at) return BAD(d, "words are truncated");
    d.at += words;
  }
  n += 8 * tensors + uint64_t(d.command_bytes) * h.commands;
  Shared shared;
  for (uint32_t i = 0; i < h.commands; i++) {
    DecodedCommand c;
    if (d.around == nullptr) d.command = int32_t(i);
    const int32_t code = command_header(d, &c);
    if (code != RLX_OK) return code;
    n += sizeof(Operand) * (uint64_t(c.num_in) + c.num_out);
    variable(d, shared, c, &n);
    d.at = d.end;
  }
  if (d.around == nullptr) d.command = -1;
  d.at = at;
  *size = n;
  return RLX_OK;
}

}  // namespace

// Bodies lie behind one another among the attributes.
const rlx_graph *graph_of(const DecodedCommand &c, uint32_t i) {
  const char *at = static_cast<const char *>(c.attrs);
  for (const char *kind = rlx_op_table[c.op].attrs; *kind != 0; kind++) {
    if (*kind == 'g' && reinterpret_cast<const rlx_graph *>(at)->n >= 0 && i-- == 0) return reinterpret_cast<const rlx_graph *>(at);
    at += *kind == 'g' ? 24 : *kind == 't' ? 48 : std::strchr("onIFs", *kind) != nullptr ? 16 : 8;
  }
  return nullptr;
}

DecodedProgram *body_of(const DecodedCommand &c, uint32_t i) {
  const rlx_graph *g = graph_of(c, i);
  return g == nullptr ? nullptr : static_cast<DecodedProgram *>(g->program);
}

uint32_t num_bodies(const DecodedCommand &c) {
  uint32_t n = 0;
  while (graph_of(c, n) != nullptr) n++;
  return n;
}

void *keep(DecodedProgram *p, uint64_t bytes) {
  static_assert(sizeof(Kept) % alignof(max_align_t) == 0, "what follows is aligned");
  const uint64_t all = sizeof(Kept) + bytes;
  Kept *k = static_cast<Kept *>(memory_alloc(all));
  if (k == nullptr) return nullptr;
  *k = Kept{p->kept, all};
  p->kept = k;
  return k + 1;
}

void free_program(DecodedProgram *p) {
  for (DecodedProgram *b = p->bodies; b != nullptr;) {
    DecodedProgram *next = b->next;
    free_program(b);
    b = next;
  }
  for (Kept *k = p->kept; k != nullptr;) {
    Kept *next = k->next;
    memory_free(k);
    k = next;
  }
  memory_free(p);
}

void free_decoded(Decoder &d) {
  if (d.program != nullptr) free_program(d.program);
}

uint64_t program_bytes(const DecodedProgram *p) {
  uint64_t n = p->block_bytes;
  for (const Kept *k = p->kept; k != nullptr; k = k->next) n += k->bytes;
  for (const DecodedProgram *b = p->bodies; b != nullptr; b = b->next) n += program_bytes(b);
  return n;
}

int32_t decode_words(Decoder &d) {
  Header h = {};
  uint64_t size = 0;
  d.at = 0, d.end = d.count;
  if (d.around == nullptr) d.command = -1;
  int32_t code = header(d, &h);
  if (code == RLX_OK) code = bound(d, h, &size);
  if (code != RLX_OK) return code;
  d.end = d.count;
  d.block = static_cast<char *>(memory_alloc(size));
  if (d.block == nullptr) return set_error(d.error, RLX_NO_MEMORY, d.command, "no memory for a program of %llu bytes", (unsigned long long)size);
  d.size = size;
  DecodedProgram *p = d.program = static_cast<DecodedProgram *>(take(d, d.program_bytes));
  std::memset(static_cast<void *>(p), 0, d.program_bytes);
  p->block_bytes = size;
  p->slots[RLX_ARENA] = 1;
  p->slot_bytes[RLX_ARENA] = static_cast<int64_t *>(take(d, 8));
  p->slot_bytes[RLX_ARENA][0] = h.arena;
  for (int i = 0; i < 4; i++) {
    p->slots[1 + i] = h.counts[i];
    p->slot_bytes[1 + i] = static_cast<int64_t *>(take(d, 8 * uint64_t(h.counts[i])));
  }
  if (d.around != nullptr) p->slots[RLX_CONST] = d.around->slots[RLX_CONST], p->slot_bytes[RLX_CONST] = d.around->slot_bytes[RLX_CONST];
  if ((code = types(d)) != RLX_OK) return code;
  p->num_commands = h.commands, p->command_bytes = d.command_bytes;
  p->command_block = take(d, uint64_t(d.command_bytes) * h.commands);
  std::memset(p->command_block, 0, uint64_t(d.command_bytes) * h.commands);
  Shared shared;
  for (uint32_t i = 0; i < h.commands; i++) {
    if (d.around == nullptr) d.command = int32_t(i);
    DecodedCommand &c = p->decoded(i);
    if ((code = command(d, shared, &c)) != RLX_OK) return code;
    if (d.around != nullptr && c.staged) return BAD(d, "%s: staged, in a sub-graph", op_name(c));
  }
  if (d.around == nullptr) d.command = -1;
  if (d.at != d.count) return BAD(d, "%llu words follow the last command", (unsigned long long)(d.count - d.at));
  return RLX_OK;
}

int32_t check_stretch(const DecodedProgram &p, const rlx_run_args *a) {
  const uint64_t end = uint64_t(a->first) + a->count;
  if (end > p.num_commands) return set_error(a->error, RLX_BAD_ARGUMENT, -1, "run: commands %u to %llu, the program has %u", a->first, (unsigned long long)end, p.num_commands);
  bool whole = (a->first == 0 || p.decoded(a->first - 1).staged) && (end == p.num_commands || p.decoded(uint32_t(end)).staged);
  for (uint32_t i = a->first; i < end; i++) whole = whole && !p.decoded(i).staged;
  if (!whole) return set_error(a->error, RLX_BAD_ARGUMENT, -1, "run: commands %u to %llu are not all of those between two staged ones", a->first, (unsigned long long)end);
  return RLX_OK;
}

int32_t check_regions(const DecodedProgram &p, const char *name, const rlx_region *regions, uint32_t count, rlx_error *error) {
  const uint64_t have = uint64_t(p.words_arena());
  for (uint32_t i = 0; i < count; i++) {
    const rlx_region &r = regions[i];
    if (r.offset > have || r.bytes > have - r.offset || (r.host == nullptr && r.bytes != 0))
      return set_error(error, RLX_BAD_ARGUMENT, -1, "%s: region %u of %llu bytes at %llu lies outside the arena of %llu or has no memory", name, i, (unsigned long long)r.bytes, (unsigned long long)r.offset, (unsigned long long)have);
  }
  return RLX_OK;
}

int32_t check_constants(const DecodedProgram &p, const uint64_t *bytes, uint32_t have, rlx_error *error) {
  const uint32_t need = p.slots[RLX_CONST];
  if (have < need) return set_error(error, RLX_BAD_WORDS, -1, "got %u constants, the words read %u", have, need);
  for (uint32_t i = 0; i < need; i++)
    if (bytes[i] != uint64_t(p.slot_bytes[RLX_CONST][i]))
      return set_error(error, RLX_BAD_WORDS, -1, "constant %u has %llu bytes, the words read %lld", i, (unsigned long long)bytes[i], (long long)p.slot_bytes[RLX_CONST][i]);
  return RLX_OK;
}

int32_t set_error(rlx_error *e, int32_t code, int32_t command, const char *format, ...) {
  if (e == nullptr) return code;
  e->code = code, e->command = command;
  va_list list;
  va_start(list, format);
  vsnprintf(e->text, sizeof e->text, format, list);
  va_end(list);
  return code;
}

}  // namespace rlx
