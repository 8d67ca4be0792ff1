#include "../core/rlx_begin.h"

#include "../core/isa.h"
#include "tile.h"

namespace rlx {
namespace region {
namespace {

constexpr int64_t TILE_BYTES = 32768;  // of all values of a tile
constexpr int64_t LEAST = 256, MOST = 2048;  // elements of a tile
// The processor compares the lowest 12 bits of addresses first, and a load waits for an earlier store to what may be its place: the buffers of
// a slot begin half a page from where the operands do, and each this far from the one before.
constexpr int64_t PAGE = 4096, APART = 640;

// The values of a body by kind, as PREPARE leaves them with each command of the body: the result in detail[0], operand k in detail[1 + k].
enum Kind : int64_t { INPUT, OUTPUT, INNER, CONSTANT };
int64_t code_of(Kind kind, int64_t i) { return int64_t(kind) << 32 | i; }

const Operand *operand_like(const Operand &o, const Command &c) {
  for (uint32_t k = 0; k < c.num_in; k++)
    if (c.in[k].slot == o.slot && c.in[k].index == o.index && c.in[k].offset == o.offset) return c.in + k;
  return nullptr;
}

// Where the elements [begin, begin + n) of an operand begin.
int64_t first_of(const Source &s, int64_t begin, int64_t n) {
  Walk<1> w(s.dims, s.rank, s.strides, begin, begin + n);
  return w.next() ? w.at[0] : 0;
}

// Whether the value is read after command i, before another one takes its place.
bool read_after(const rlx_program &body, uint32_t i, int64_t code) {
  for (i++; i < body.num_commands; i++) {
    for (uint32_t k = 0; k < body.command(i).num_in; k++)
      if (body.command(i).detail[1 + k] == code) return true;
    if (body.command(i).detail[0] == code) return false;
  }
  return false;
}

// Whether the value of command i is read by the next one alone, both of which may be in a chain, and so needs no memory.
bool passed_on(const rlx_program &body, uint32_t i) {
  const int64_t code = body.command(i).detail[0];
  if (i + 1 >= body.num_commands || elementwise::link_of(body.command(i)) == elementwise::LINK_NONE) return false;
  const Command &next = body.command(i + 1);
  if (elementwise::link_of(next) == elementwise::LINK_NONE || read_after(body, i + 1, code)) return false;
  return next.detail[1] == code || (next.num_in > 1 && next.detail[2] == code);
}

bool single(const Operand &o) { return o.present && o.count == 1; }

template <class T> void gather_doubled(char *to, const Source &s, int64_t begin, int64_t n) {
  T *y = reinterpret_cast<T *>(to);
  const T *x = reinterpret_cast<const T *>(s.data);
  // The walk gives rows; where in its row a run begins is counted here.
  const int last = s.rank - 1;
  const int64_t step = s.strides[0][last];
  int64_t strides[1][RLX_MAX_RANK], i = begin % s.dims[last];
  for (int d = 0; d < last; d++) strides[0][d] = s.strides[0][d];
  strides[0][last] = 0;
  for (Walk<1> w(s.dims, s.rank, strides, begin, begin + n); w.next(); y += w.n, i = 0)
    for (int64_t k = 0; k < w.n; k++) y[k] = x[w.at[0] + ((i + k) >> 1) * step];
}

// The strides of an operand of rank 4 that is read as if its last two axes were doubled: axis 2 becomes two, of which the second stands still.
void double_axes(const Operand &o, const Box &box, Source *s) {
  const int lead = box.rank - 4;
  s->rank = 6;
  s->dims[0] = 1, s->strides[0][0] = 0;
  for (int d = 0; d < lead; d++) s->dims[0] *= box.dims[d];
  for (int d = 0; d < 2; d++) {
    s->dims[1 + d] = box.dims[lead + d];
    s->strides[0][1 + d] = o.dims[d] == 1 ? 0 : o.strides[d];
  }
  s->dims[3] = o.dims[2], s->strides[0][3] = o.strides[2];
  s->dims[4] = 2, s->strides[0][4] = 0;
  s->dims[5] = box.dims[lead + 3], s->strides[0][5] = o.strides[3];
}

}  // namespace

Box box_of(const Operand &o) {
  Box b;
  b.rank = int(o.rank);
  for (int d = 0; d < b.rank; d++) b.dims[d] = o.dims[d];
  b.count = o.count;
  return b;
}

void gather(char *to, const Source &s, int64_t begin, int64_t n, elementwise::Repeat repeat) {
  if (s.form == DIRECT) {
    std::memcpy(to, s.data + begin * s.size, size_t(n * s.size));
    return;
  }
  if (!s.doubled && s.rank == 2 && s.strides[0][1] == 0 && s.size == 4) {  // one value for each row
    const int64_t row = s.dims[1], step = s.strides[0][0];
    const float *x = reinterpret_cast<const float *>(s.data) + begin / row * step;
    return repeat(reinterpret_cast<float *>(to), x, step, row - begin % row, row, n);
  }
  if (!s.doubled) {
    for (Walk<1> w(s.dims, s.rank, s.strides, begin, begin + n); w.next(); to += w.n * s.size)
      elementwise::copy_run(to, s.data + w.at[0] * s.size, int(s.size), w.step[0], w.n);
    return;
  }
  switch (s.size) {
    case 1: return gather_doubled<uint8_t>(to, s, begin, n);
    case 2: return gather_doubled<uint16_t>(to, s, begin, n);
    case 4: return gather_doubled<uint32_t>(to, s, begin, n);
    default: return gather_doubled<uint64_t>(to, s, begin, n);
  }
}

Region::Region(const Command &c, uint32_t num_inputs)
    : cmd(&c), body(static_cast<const rlx_program *>(body_of(c, 0))), inputs(num_inputs), outputs(c.num_out), inner(uint32_t(c.detail[0])),
      constants(uint32_t(c.detail[1])), width(c.detail[2]), tile(c.detail[3]) {}

int32_t Region::number(Command &c) {
  if (num_bodies(c) != 1 || body->slots[RLX_INPUT] != inputs || body->slots[RLX_OUTPUT] != outputs) return RLX_BAD_WORDS;
  inner = constants = 0, width = 1;
  for (uint32_t j = 0; j < inputs; j++)  // also those that no command reads
    if (rlx_dtype_sizes[operand(j).dtype] > width) width = rlx_dtype_sizes[operand(j).dtype];
  for (uint32_t i = 0; i < body->num_commands; i++) {
    Command &b = body->command(i);
    if (b.num_out != 1 || b.num_in == 0 || b.num_in > uint32_t(elementwise::MAX_IN) || !single(b.out[0])) return RLX_BAD_WORDS;
    if (rlx_dtype_sizes[b.out[0].dtype] > width) width = rlx_dtype_sizes[b.out[0].dtype];
    for (uint32_t k = 0; k < b.num_in; k++) {
      const Operand &o = b.in[k];
      if (!single(o)) return RLX_BAD_WORDS;
      if (rlx_dtype_sizes[o.dtype] > width) width = rlx_dtype_sizes[o.dtype];
      int64_t *code = &b.detail[1 + k];
      *code = -1;
      switch (o.slot) {
        case RLX_INPUT:
          if (o.dtype == operand(o.index).dtype) *code = code_of(INPUT, o.index);
          break;
        case RLX_OUTPUT:
          if (o.dtype == c.out[o.index].dtype) *code = code_of(OUTPUT, o.index);
          break;
        case RLX_CONST:
          for (uint32_t e = 0; e <= i && *code < 0; e++) {
            const Command &earlier = body->command(e);
            const Operand *like = operand_like(o, earlier);
            if (like != nullptr && like < earlier.in + (e == i ? k : earlier.num_in)) *code = earlier.detail[1 + (like - earlier.in)];
          }
          if (*code < 0) *code = code_of(CONSTANT, constants++);
          break;
        default:
          for (uint32_t e = i; e > 0 && *code < 0; e--)
            if (const Command &earlier = body->command(e - 1); earlier.out[0].slot == RLX_ARENA && earlier.out[0].offset == o.offset) *code = earlier.detail[0];
      }
      if (*code < 0) return RLX_BAD_WORDS;
    }
    const Operand &y = b.out[0];
    b.detail[0] = -1;
    if (y.slot == RLX_OUTPUT) {
      if (y.dtype == c.out[y.index].dtype) b.detail[0] = code_of(OUTPUT, y.index);
    } else {
      for (uint32_t e = i; e > 0 && b.detail[0] < 0; e--)
        if (const Command &earlier = body->command(e - 1); earlier.out[0].slot == RLX_ARENA && earlier.out[0].offset == y.offset) b.detail[0] = earlier.detail[0];
      if (b.detail[0] < 0) b.detail[0] = code_of(INNER, inner++);
    }
    if (b.detail[0] < 0) return RLX_BAD_WORDS;
    if (b.op != RLX_OP_Copy) {
      const elementwise::Work w = elementwise::work_of(b, isa_active());
      if (w.loop == nullptr || w.inputs != int(b.num_in)) return RLX_BAD_WORDS;
    }
  }
  tile = TILE_BYTES / (width * in_memory()) / 64 * 64;
  tile = tile < LEAST ? LEAST : tile > MOST ? MOST : tile;
  if (box.count < tile) tile = (box.count + 63) / 64 * 64;
  const int64_t row = box.rank > 0 ? box.dims[box.rank - 1] : 1;
  int64_t rows = row;  // whole rows of whole vectors
  while (by_rows && rows % 64 != 0 && rows < tile) rows += row;
  if (by_rows && rows <= tile && box.count > tile) tile = tile / rows * rows;
  for (int64_t part = tile; part >= LEAST && part > tile / 2; part -= 64)  // whole parts of a row: what is repeated in each row is read in place
    if (row % part == 0) {
      tile = part;
      break;
    }
  c.detail[0] = inner, c.detail[1] = constants, c.detail[2] = width, c.detail[3] = tile;
  return RLX_OK;
}

// How many values of a tile lie in memory.
int64_t Region::in_memory() const {
  int64_t n = int64_t(values()) - inner;
  for (uint32_t k = 0; k < inner; k++) {
    bool passed = true;
    for (uint32_t i = 0; i < body->num_commands; i++) passed &= body->command(i).detail[0] != code_of(INNER, k) || passed_on(*body, i);
    n += !passed;
  }
  return n;
}

Region::Places Region::places() const {
  const int64_t block = tile * width;
  Places p;
  p.source = 0;
  p.step = p.source + align64(int64_t(inputs) * int64_t(sizeof(Source)));
  p.call = p.step + align64(int64_t(body->num_commands) * int64_t(sizeof(Step)));
  p.table = p.call + align64(int64_t(body->num_commands) * int64_t(sizeof(elementwise::Work)));
  p.buffer = p.table + align64(int64_t(values()) * 8);
  p.live = p.buffer + align64(int64_t(values()) * 4);
  p.shared = p.live + align64(int64_t(values()) + body->num_commands);
  int64_t same = constants, own = inner;
  for (uint32_t j = 0; j < inputs; j++) {
    const Form form = source_of(j, nullptr).form;
    same += form == SAME;
    own += form == GATHERED || form == PIECES;
  }
  p.slots = p.shared + same * block;
  p.slot = table_bytes() + PAGE + own * (block + APART);
  return p;
}

Source Region::source_of(uint32_t j, const void *data) const {
  const Operand &o = operand(j);
  Source s;
  s.data = static_cast<const char *>(data);
  s.size = rlx_dtype_sizes[o.dtype];
  s.doubled = int32_t(j) == doubled;
  if (s.doubled) {
    double_axes(o, box, &s);
  } else {
    const int lead = box.rank - int(o.rank);
    s.rank = box.rank;
    for (int d = 0; d < box.rank; d++) {
      s.dims[d] = box.dims[d];
      s.strides[0][d] = d < lead || o.dims[d - lead] == 1 ? 0 : o.strides[d - lead];
    }
  }
  s.rank = merge_axes(s.dims, s.rank, s.strides, 1);
  bool contiguous = !s.doubled, same = true;
  int64_t want = 1;
  for (int d = s.rank - 1; d >= 0; d--) {
    contiguous &= s.strides[0][d] == want;
    same &= s.strides[0][d] == 0;
    want *= s.dims[d];
  }
  const bool pieces = !s.doubled && s.rank > 0 && s.strides[0][s.rank - 1] == 1 && tile > 0 && s.dims[s.rank - 1] % tile == 0;
  s.form = contiguous ? DIRECT : same ? SAME : pieces ? PIECES : GATHERED;
  const bool vectors = box.rank > 0 && box.dims[box.rank - 1] % elementwise::ROW_PARTS == 0;
  s.rowed = by_rows && vectors && !s.doubled && s.form == GATHERED && o.dtype == RLX_F32 && s.rank == 2 && s.strides[0][1] == 0;
  return s;
}

void Region::enter_scratch(void *scratch) {
  const Places p = places();
  start[0] = 0, start[1] = inputs, start[2] = inputs + outputs, start[3] = inputs + outputs + inner;
  char *base = static_cast<char *>(scratch);
  source = reinterpret_cast<Source *>(base + p.source);
  step = reinterpret_cast<Step *>(base + p.step);
  call = reinterpret_cast<elementwise::Work *>(base + p.call);
  shared = reinterpret_cast<char **>(base + p.table);
  buffer = reinterpret_cast<int32_t *>(base + p.buffer);
  live = reinterpret_cast<bool *>(base + p.live);
  slots = base + p.slots;
  slot = p.slot;
}

void Region::build() {
  const int64_t block = tile * width;
  char *next = slots;
  int32_t own = 0;
  repeat = elementwise::pick_repeat(isa_active());
  for (uint32_t v = 0; v < values(); v++) shared[v] = nullptr, buffer[v] = -1;
  for (uint32_t j = inputs; j-- > 0;) {
    const Source &s = source[j];
    if (s.form == SAME) {
      shared[j] = next -= block;
      elementwise::copy_run(next, s.data, int(s.size), 0, tile);
    } else if (s.form != DIRECT) {
      buffer[j] = own++;
    }
  }
  for (uint32_t k = 0; k < inner; k++) buffer[start[INNER] + k] = own++;
  mark_kept();
  row = 0;
  for (uint32_t j = 0; j < inputs; j++) {
    Source &s = source[j];
    if (s.rowed && row == 0) row = s.dims[1];
    s.rowed = s.rowed && s.dims[1] == row;
  }
  steps_from_commands(next);
}

// The steps of the body. Where one needs the elements of a rowed operand side by side, all do.
void Region::steps_from_commands(char *&next) {
  bool again = true;
  while (again) {
    uint32_t rowed = 0, left = 0;
    for (uint32_t j = 0; j < inputs; j++) rowed += source[j].rowed;
    steps = 0;
    for (uint32_t i = 0, length; i < body->num_commands; i += length, steps++)
      if (length = chained(i, step[steps], next); length == 0) alone(i, step[steps], next), length = 1;
    for (uint32_t j = 0; j < inputs; j++) left += source[j].rowed;
    again = left < rowed;
  }
}

// Says that a step reads the value as it is.
void Region::plain(int32_t value) {
  if (uint32_t(value) < inputs) source[value].rowed = false;
}

// Whether the value before a command is read after it, of all commands.
void Region::mark_kept() {
  bool *kept = live + values();
  std::memset(live, 0, values());
  for (uint32_t i = body->num_commands; i-- > 0;) {
    const Command &c = body->command(i);
    const int64_t out = c.detail[0], before = i > 0 ? body->command(i - 1).detail[0] : out;
    kept[i] = before != out && live[number_of(before)];
    live[number_of(out)] = false;
    for (uint32_t k = 0; k < c.num_in; k++) live[number_of(c.detail[1 + k])] = true;
  }
}

uint32_t Region::number_of(int64_t code) const {
  return start[code >> 32] + uint32_t(code);
}

// The number of operand k of a command. A constant is repeated when it is met first.
int32_t Region::value_of(const Command &b, uint32_t k, char *&next) {
  const int64_t code = b.detail[1 + k];
  const uint32_t v = number_of(code);
  if (code >> 32 != CONSTANT || shared[v] != nullptr) return int32_t(v);
  const Operand &o = b.in[k];
  shared[v] = next -= tile * width;
  elementwise::copy_run(next, static_cast<const char *>(body->constants[o.index]) + o.offset, int(rlx_dtype_sizes[o.dtype]), 0, tile);
  return int32_t(v);
}

void Region::alone(uint32_t i, Step &s, char *&next) {
  const Command &b = body->command(i);
  s.work = elementwise::Work();
  if (b.op == RLX_OP_Copy) s.work.loop = elementwise::pick_copy(rlx_dtype_sizes[b.out[0].dtype]);
  else s.work = elementwise::work_of(b, isa_active());
  s.used = elementwise::MAX_IN;
  for (uint32_t k = 0; k < uint32_t(s.used); k++) plain(s.in[k] = value_of(b, k < b.num_in ? k : 0, next));
  s.out = int32_t(number_of(b.detail[0]));
  s.work.stream = past(i);
}

void Region::add_link(Step &s, elementwise::Link link, int32_t value) {
  s.chain.link[s.chain.links++] = link;
  s.in[s.chain.links] = value;
}

// Whether the value before command i can wait in a register of the chain, which has so many links: one command reads it behind i, soon, and takes it in.
bool Region::may_hold(uint32_t i, int64_t code, int links) const {
  if (code >> 32 != INNER) return false;
  for (uint32_t e = 0; e < body->num_commands; e++)  // functions need the registers
    if (const elementwise::Link l = elementwise::link_of(body->command(e)); l == elementwise::LINK_CALL || l == elementwise::LINK_TANH) return false;
  uint32_t reader = 0;
  for (uint32_t e = i; e < body->num_commands; e++) {
    const Command &c = body->command(e);
    int reads = 0;
    for (uint32_t k = 0; k < c.num_in; k++) reads += c.detail[1 + k] == code;
    if (e == i) continue;
    if (reads > 1 || (reads == 1 && reader != 0)) return false;
    if (reads == 1) reader = e;
    if (c.detail[0] == code) break;
  }
  if (reader == 0 || links + 3 * int(reader - i + 1) > elementwise::MAX_LINKS) return false;
  for (uint32_t e = i; e <= reader; e++)
    if (elementwise::link_of(body->command(e)) == elementwise::LINK_NONE) return false;
  return elementwise::may_be_one(elementwise::link_of(body->command(reader)));
}

// Makes s the chain of the commands from i on whose values are f32, as far as there is room for their links, and returns how many they are; 0 if
// a chain gains nothing: one command, or calls alone.
uint32_t Region::chained(uint32_t i, Step &s, char *&next) {
  const int isa = isa_active();
  s.work = elementwise::Work();
  s.work.loop = elementwise::pick_chain(isa), s.work.chain = &s.chain, s.chain.links = 0, s.chain.row = 0, s.chain.holds = false;
  for (int32_t &v : s.in) v = 0;
  uint32_t e = i, calls = 0;
  int32_t held = -1;  // the value that waits
  for (; e < body->num_commands; e++) {
    const Command &c = body->command(e);
    elementwise::Link link = elementwise::link_of(c);
    if (link == elementwise::LINK_NONE) break;
    // How it follows the command before: the value of that is written to its place too, it starts with another, it has that as its second operand.
    bool keep = false, take = e == i, turned = false, square = false, twice = false;
    if (e > i) {
      const int64_t before = body->command(e - 1).detail[0];
      const bool is_first = c.detail[1] == before, is_second = c.num_in > 1 && c.detail[2] == before;
      square = is_first && is_second && link == elementwise::LINK_MUL;
      twice = is_first && is_second && !square;
      keep = before >> 32 == OUTPUT || twice || live[values() + e];
      take = !is_first && !is_second, turned = is_second && !is_first;
    }
    if (s.chain.links + 1 + int(keep) + int(take && e > i) > elementwise::MAX_LINKS) break;
    int32_t first = value_of(c, 0, next), second = c.num_in > 1 ? value_of(c, 1, next) : first;
    if (take && row > 0 && rowed(first) && !rowed(second)) std::swap(first, second), turned = true;  // a row's value is the other operand
    const bool swap = take && held >= 0 && first == held;
    bool hold = false;
    if (keep) {
      hold = !twice && (held < 0 || swap) && may_hold(e, body->command(e - 1).detail[0], s.chain.links);
      if (!hold) add_link(s, elementwise::LINK_KEEP, s.out);
      else if (!swap) add_link(s, elementwise::LINK_HOLD, s.out);
      s.chain.holds |= hold;
    }
    if (take) plain(first);
    if (e == i) s.in[0] = first;
    else if (take) add_link(s, swap ? elementwise::LINK_SWAP : elementwise::LINK_TAKE, first);
    const int32_t other = turned && !take ? first : second;
    const bool with_held = !swap && held >= 0 && other == held;
    if (swap || with_held) held = -1;
    if (hold) held = s.out;
    if (square) link = elementwise::LINK_SQUARE;
    if (turned) link = elementwise::Link(link + elementwise::LINK_TURNED);
    if (with_held) {
      link = elementwise::Link(link + elementwise::LINK_HELD);
    } else if (elementwise::may_be_one(link) && shared[other] != nullptr) {
      link = elementwise::Link(link + elementwise::LINK_ONE);
    } else if (row > 0 && elementwise::may_be_one(link) && rowed(other)) {
      link = elementwise::Link(link + elementwise::LINK_ROW);
      s.chain.row = row, s.chain.step[s.chain.links] = source[other].strides[0][0];
    } else if (row > 0 && c.num_in > 1 && !square) {
      plain(other);
    }
    add_link(s, link, other);
    if (link == elementwise::LINK_CALL || link == elementwise::LINK_TURNED_CALL) {
      calls++;
      call[e] = elementwise::work_of(c, isa);
      s.chain.call[s.chain.links - 1] = call + e;
    }
    s.out = int32_t(number_of(c.detail[0]));
  }
  if ((e - i < 2 && !by_rows) || e - i == calls) return 0;
  s.used = 1 + s.chain.links;
  s.work.stream = past(e - 1);
  return e - i;
}

// Whether command i writes a result past the caches.
bool Region::past(uint32_t i) const {
  const int64_t code = body->command(i).detail[0];
  return code >> 32 == OUTPUT && (streamed >> uint32_t(code) & 1) != 0 && !read_after(*body, i, code);
}

char *Region::buffer_of(char **table, uint32_t value) const {
  char *first = reinterpret_cast<char *>(table) + table_bytes();
  const uint64_t operands = inputs > 0 ? reinterpret_cast<uintptr_t>(source[0].data) : 0;
  first += (operands + PAGE / 2 - reinterpret_cast<uintptr_t>(first)) % PAGE / 64 * 64;
  return first + buffer[value] * (tile * width + APART);
}

char **Region::enter(int number) const {
  char **table = table_of(number);
  for (uint32_t v = 0; v < values(); v++) table[v] = buffer[v] >= 0 ? buffer_of(table, v) : shared[v];
  for (uint32_t j = 0; j < inputs; j++) held_of(table)[j] = Held{0, 0};
  return table;
}

int64_t Region::table_bytes() const { return align64(int64_t(values()) * 8 + int64_t(inputs) * int64_t(sizeof(Held))); }

Region::Held *Region::held_of(char **table) const { return reinterpret_cast<Held *>(table + values()); }

// Makes elements [begin, begin + n) of an operand lie side by side. What has the same rows as the run before is there already.
void Region::lay_out(char **table, uint32_t j, int64_t begin, int64_t n) const {
  const Source &s = source[j];
  table[j] = buffer_of(table, j);
  Held &held = held_of(table)[j];
  const bool repeats = by_rows && !s.doubled && s.rank > 1 && s.strides[0][s.rank - 2] == 0 && begin % s.dims[s.rank - 1] == 0;
  const int64_t rows = repeats ? s.dims[s.rank - 1] * s.dims[s.rank - 2] : 1;
  const int64_t block = repeats && begin % rows + n <= rows ? 1 + begin / rows : 0;
  if (block != 0 && held.block == block && n <= held.n) return;
  held = Held{block, n};
  gather(table[j], s, begin, n, repeat);
}

void Region::steps_of(char **table, int64_t n, int64_t phase) const {
  const void *in[2 + elementwise::MAX_LINKS];
  in[1 + elementwise::MAX_LINKS] = &phase;
  for (uint32_t i = 0; i < steps; i++) {
    const Step &s = step[i];
    for (int k = 0; k < s.used; k++) in[k] = table[s.in[k]];
    s.work.loop(s.work, in, table[s.out], n);
  }
}

void Region::run(char **table, char *const *results, int64_t begin, int64_t n, int64_t to) const {
  for (uint32_t j = 0; j < inputs; j++) {
    const Source &s = source[j];
    if (s.form == DIRECT) table[j] = const_cast<char *>(s.data) + begin * s.size;
    else if (s.form == PIECES && begin % s.dims[s.rank - 1] + n <= s.dims[s.rank - 1]) table[j] = const_cast<char *>(s.data) + first_of(s, begin, n) * s.size;
    else if (s.rowed) table[j] = const_cast<char *>(s.data) + begin / row * s.strides[0][0] * s.size;
    else if (s.form != SAME) lay_out(table, j, begin, n);
  }
  for (uint32_t k = 0; k < outputs; k++) table[inputs + k] = results[k] + to * rlx_dtype_sizes[cmd->out[k].dtype];
  steps_of(table, n, row > 0 ? begin % row : 0);
}

namespace {

struct Job {
  const Call &call;
  const Region &region;
  char *const *results;
  int64_t first;
};

void tiles(void *ctx, int64_t begin, int64_t end, int slot) {
  const Job &j = *static_cast<const Job *>(ctx);
  const Region &r = j.region;
  char **table = r.enter(slot);
  for (int64_t at = begin * r.tile; at < end * r.tile && at < r.box.count && !j.call.stopped(); at += r.tile) {
    const int64_t n = r.box.count - at < r.tile ? r.box.count - at : r.tile;
    r.run(table, j.results, at, n, j.first + at);
  }
  if (r.streamed != 0) std::atomic_thread_fence(std::memory_order_seq_cst);
}

}  // namespace

void run_all(const Call &c, const Region &r, char *const *results, int64_t first) {
  constexpr int64_t kWork = 16384;  // elements times commands of a piece of work
  int64_t grain = kWork / (r.tile * (1 + int64_t(r.body->num_commands)));
  if (r.streamed != 0) grain = (grain > 0 ? grain : 1) * elementwise::STREAM_GRAINS;
  Job j = {c, r, results, first};
  c.parallel((r.box.count + r.tile - 1) / r.tile, grain > 0 ? grain : 1, tiles, &j);
}

}  // namespace region
}  // namespace rlx
