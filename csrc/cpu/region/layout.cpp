// What PREPARE does with a region: numbers the values of its body, chooses the tile, joins commands to chains and leaves all of it in a Layout.
#include "../core/rlx_begin.h"

#include "../../common/memory.h"
#include "../core/isa.h"
#include "tile.h"

namespace rlx {
namespace region {
namespace {

constexpr int64_t TILE_BYTES = 32768;  // of all values of a tile
constexpr int64_t LEAST = 256, MOST = 2048;  // elements of a tile
constexpr int64_t BLOCK = 128;  // a chain runs over so many at a time, or a divisor of it

// The values of a body by kind, as they stand with each command of the body: the result in detail[0], operand k in detail[1 + k].
enum Kind : int64_t { INPUT, OUTPUT, INNER, CONSTANT };
int64_t code_of(Kind kind, int64_t i) { return int64_t(kind) << 32 | i; }

const Operand *operand_like(const Operand &o, const Command &c) {
  for (uint32_t k = 0; k < c.num_in; k++)
    if (c.in[k].slot == o.slot && c.in[k].index == o.index && c.in[k].offset == o.offset) return c.in + k;
  return nullptr;
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

// The strides of an operand of rank 4 that is read as if its last two axes were doubled: axis 2 becomes two, of which the second stands still.
void double_axes(const Operand &o, const Box &box, Axes *s) {
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

Draft::Draft(Command &c, uint32_t num_inputs) : cmd(&c), body(static_cast<const rlx_program *>(body_of(c, 0))), inputs(num_inputs) {}

int32_t Draft::number() {
  Command &c = *cmd;
  if (num_bodies(c) != 1 || body->slots[RLX_INPUT] != inputs || body->slots[RLX_OUTPUT] != c.num_out) return RLX_BAD_WORDS;
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
  tile = TILE_BYTES / (width * in_memory()) / BLOCK * BLOCK;
  tile = tile < LEAST ? LEAST : tile > MOST ? MOST : tile;
  if (box.count < tile) tile = (box.count + 63) / 64 * 64;
  const int64_t row = box.rank > 0 ? box.dims[box.rank - 1] : 1;
  int64_t rows = row;  // whole rows of whole vectors
  while (by_rows && rows % BLOCK != 0 && rows < tile) rows += row;
  if (by_rows && rows <= tile && box.count > tile) tile = tile / rows * rows;
  for (int64_t part = tile; part >= LEAST && part > tile / 2; part -= 64)  // whole parts of a row: what is repeated in each row is read in place
    if (row % part == 0) {
      tile = part;
      break;
    }
  return RLX_OK;
}

// How many values of a tile lie in memory.
int64_t Draft::in_memory() const {
  int64_t n = int64_t(inputs) + cmd->num_out + constants;
  for (uint32_t k = 0; k < inner; k++) {
    bool passed = true;
    for (uint32_t i = 0; i < body->num_commands; i++) passed &= body->command(i).detail[0] != code_of(INNER, k) || passed_on(*body, i);
    n += !passed;
  }
  return n;
}

Source Draft::source_of(uint32_t j, Axes *axes) const {
  const Operand &o = operand(j);
  Axes &a = *axes;
  Source s = {};
  s.size = rlx_dtype_sizes[o.dtype];
  s.doubled = int32_t(j) == doubled;
  s.memory = -1;
  s.axes = axes;
  if (s.doubled) {
    double_axes(o, box, axes);
  } else {
    const int lead = box.rank - int(o.rank);
    a.rank = box.rank;
    for (int d = 0; d < box.rank; d++) {
      a.dims[d] = box.dims[d];
      a.strides[0][d] = d < lead || o.dims[d - lead] == 1 ? 0 : o.strides[d - lead];
    }
  }
  a.rank = merge_axes(a.dims, a.rank, a.strides, 1);
  bool contiguous = !s.doubled, same = true;
  int64_t want = 1;
  for (int d = a.rank - 1; d >= 0; d--) {
    contiguous &= a.strides[0][d] == want;
    same &= a.strides[0][d] == 0;
    want *= a.dims[d];
  }
  const bool pieces = !s.doubled && a.rank > 0 && a.strides[0][a.rank - 1] == 1 && tile > 0 && a.dims[a.rank - 1] % tile == 0;
  s.form = contiguous ? DIRECT : same ? SAME : pieces ? PIECES : GATHERED;
  const bool vectors = box.rank > 0 && box.dims[box.rank - 1] % elementwise::ROW_PARTS == 0;
  s.rowed = by_rows && vectors && !s.doubled && s.form == GATHERED && o.dtype == RLX_F32 && a.rank == 2 && a.strides[0][1] == 0;
  return s;
}

namespace {

// Joins the commands of a body to steps: first it counts what they need, then it writes them. Values are numbered by kind here; in a Layout those
// that no step finds in memory have no number.
class Maker {
 public:
  explicit Maker(const Draft &draft) : d(draft), body(*draft.body), outputs(draft.cmd->num_out), isa(isa_active()) {
    start[INPUT] = 0, start[OUTPUT] = d.inputs, start[INNER] = d.inputs + outputs, start[CONSTANT] = start[INNER] + d.inner;
    values = start[CONSTANT] + d.constants;
  }
  Maker(const Maker &) = delete;
  Maker &operator=(const Maker &) = delete;

  int32_t make(Prepare &p, const Layout **out) {
    const int32_t code = open() ? lay_out(p, out) : RLX_NO_MEMORY;
    memory_free(memory);
    return code;
  }

 private:
  enum Use : uint8_t { READ = 1, WIDE = 2 };  // in memory; its elements beside each other

  bool open();
  int32_t lay_out(Prepare &p, const Layout **out);
  void mark_kept();
  void all_steps();
  void count();
  void number();
  void write(char *at, Layout *l);
  uint32_t number_of(int64_t code) const { return start[code >> 32] + uint32_t(code); }
  int32_t value_of(const Command &b, uint32_t k) const { return int32_t(number_of(b.detail[1 + k])); }
  bool rowed(int32_t value) const { return uint32_t(value) < d.inputs && source[value].rowed; }
  bool same(int32_t value) const { return uint32_t(value) < d.inputs ? source[value].form == SAME : uint32_t(value) >= start[CONSTANT]; }
  void plain(int32_t value);
  bool may_hold(uint32_t i, int64_t code, int links) const;
  void alone(uint32_t i);
  uint32_t chained(uint32_t i);
  int32_t past(uint32_t i) const;
  int32_t placed(int32_t value, uint8_t how);
  bool reads(const elementwise::ChainLink &l) const;
  void emit(Step s, const elementwise::ChainLink *link);

  const Draft &d;
  const rlx_program &body;
  uint32_t outputs, start[4], values;
  int isa;
  void *memory = nullptr;
  Source *source = nullptr;
  Axes *axes = nullptr;
  int32_t *numbers = nullptr;  // in the layout, by value
  uint8_t *use = nullptr;      // by value
  bool *live = nullptr;        // of mark_kept: by value
  bool *kept = nullptr;        // by command
  bool functions = false;      // some command calls one
  int64_t row = 0;
  uint32_t steps = 0, links = 0, works = 0, inner = 0, constants = 0, copies = 0, buffers = 0, strided = 0;
  Step *step = nullptr;  // null while counting
  elementwise::ChainLink *chain_link = nullptr;
  elementwise::Work *work = nullptr;
};

bool Maker::open() {
  const uint64_t bytes = uint64_t(d.inputs) * (sizeof(Source) + sizeof(Axes)) + uint64_t(values) * (sizeof(int32_t) + 2) + body.num_commands;
  char *at = static_cast<char *>(memory = memory_alloc(bytes));
  if (at == nullptr) return false;
  std::memset(at, 0, bytes);
  axes = reinterpret_cast<Axes *>(at), at += d.inputs * sizeof(Axes);
  source = reinterpret_cast<Source *>(at), at += d.inputs * sizeof(Source);
  numbers = reinterpret_cast<int32_t *>(at), at += values * sizeof(int32_t);
  use = reinterpret_cast<uint8_t *>(at), at += values;
  live = reinterpret_cast<bool *>(at), at += values;
  kept = reinterpret_cast<bool *>(at);
  return true;
}

// Whether the value before a command is read after it, of all commands.
void Maker::mark_kept() {
  for (uint32_t i = body.num_commands; i-- > 0;) {
    const Command &c = body.command(i);
    const int64_t out = c.detail[0], before = i > 0 ? body.command(i - 1).detail[0] : out;
    kept[i] = before != out && live[number_of(before)];
    live[number_of(out)] = false;
    for (uint32_t k = 0; k < c.num_in; k++) live[number_of(c.detail[1 + k])] = true;
    const elementwise::Link l = elementwise::link_of(c);
    functions |= l == elementwise::LINK_CALL || l == elementwise::LINK_TANH;
  }
}

void Maker::all_steps() {
  steps = links = works = 0;
  for (uint32_t i = 0, length; i < body.num_commands; i += length)
    if (length = chained(i); length == 0) alone(i), length = 1;
}

// Where a step needs the elements of a rowed operand side by side, all do.
void Maker::count() {
  for (bool again = true; again;) {
    uint32_t rowed = 0, left = 0;
    for (uint32_t j = 0; j < d.inputs; j++) rowed += source[j].rowed;
    std::memset(use, 0, values);
    all_steps();
    for (uint32_t j = 0; j < d.inputs; j++) left += source[j].rowed;
    again = left < rowed;
  }
}

// Says that a step reads the value as it is.
void Maker::plain(int32_t value) {
  if (uint32_t(value) < d.inputs) source[value].rowed = false;
}

// Whether the value before command i can wait in a register of the chain, which has so many links: one command reads it behind i, soon, and takes it in.
bool Maker::may_hold(uint32_t i, int64_t code, int links) const {
  if (code >> 32 != INNER || functions) return false;  // functions need the registers
  uint32_t reader = 0;
  for (uint32_t e = i; e < body.num_commands; e++) {
    const Command &c = body.command(e);
    int reads = 0;
    for (uint32_t k = 0; k < c.num_in; k++) reads += c.detail[1 + k] == code;
    if (e == i) continue;
    if (reads > 1 || (reads == 1 && reader != 0)) return false;
    if (reads == 1) reader = e;
    if (c.detail[0] == code) break;
  }
  if (reader == 0 || links + 3 * int(reader - i + 1) > elementwise::MAX_LINKS) return false;
  for (uint32_t e = i; e <= reader; e++)
    if (elementwise::link_of(body.command(e)) == elementwise::LINK_NONE) return false;
  return elementwise::may_be_one(elementwise::link_of(body.command(reader)));
}

// Whether a command reads the operand of a link in memory, or writes it.
bool Maker::reads(const elementwise::ChainLink &l) const {
  if (l.link >= elementwise::LINK_HELD) return false;
  switch (l.link) {
    case elementwise::LINK_RELU:
    case elementwise::LINK_TANH:
    case elementwise::LINK_SQUARE:
    case elementwise::LINK_HOLD:
    case elementwise::LINK_SWAP: return false;
    case elementwise::LINK_CALL: return body.command(uint32_t(l.step)).num_in > 1;
    default: return true;
  }
}

// Says that a step finds the value in memory, and gives its number.
int32_t Maker::placed(int32_t value, uint8_t how) {
  use[value] |= how;
  return numbers[value];
}

// Adds a step, which numbers values as this does; a call has the number of its command in place of its step.
void Maker::emit(Step s, const elementwise::ChainLink *link) {
  for (int32_t &v : s.in) v = placed(v, READ | WIDE);
  s.out = placed(s.out, READ);
  for (int k = 0; k < s.chain.links; k++) {
    elementwise::ChainLink l = link[k];
    const bool one = l.link >= elementwise::LINK_ONE && l.link < elementwise::LINK_HELD;
    l.value = reads(l) ? placed(l.value, one ? READ : READ | WIDE) : 0;
    if (l.link == elementwise::LINK_CALL || l.link == elementwise::LINK_TURNED_CALL) {
      if (step != nullptr) work[works] = elementwise::work_of(body.command(uint32_t(l.step)), isa), l.call = work + works;
      works++;
    }
    if (step != nullptr) chain_link[links + uint32_t(k)] = l;
  }
  if (step != nullptr) {
    Step &to = step[steps];
    to = s;
    to.chain.link = chain_link + links;
    if (s.chain.links > 0) to.work.chain = &to.chain;
  }
  links += uint32_t(s.chain.links);
  steps++;
}

void Maker::alone(uint32_t i) {
  const Command &b = body.command(i);
  Step s = {};
  if (b.op == RLX_OP_Copy) s.work.loop = elementwise::pick_copy(rlx_dtype_sizes[b.out[0].dtype]);
  else s.work = elementwise::work_of(b, isa);
  for (uint32_t k = 0; k < uint32_t(elementwise::MAX_IN); k++) plain(s.in[k] = value_of(b, k < b.num_in ? k : 0));
  s.out = int32_t(number_of(b.detail[0]));
  s.past = past(i);
  emit(s, nullptr);
}

// Adds the chain of the commands from i on whose values are f32, as far as there is room for their links, and returns how many they are; 0 if
// a chain gains nothing: one command, or calls alone.
uint32_t Maker::chained(uint32_t i) {
  elementwise::ChainLink link_at[elementwise::MAX_LINKS];
  Step s = {};
  s.work.loop = elementwise::pick_chain(isa);
  const auto add_link = [&](elementwise::Link link, int32_t value, int64_t step = 0) {
    elementwise::ChainLink &l = link_at[s.chain.links++];
    l.link = link, l.value = value, l.step = step;
  };
  uint32_t e = i, calls = 0;
  int32_t held = -1;  // the value that waits
  for (; e < body.num_commands; e++) {
    const Command &c = body.command(e);
    elementwise::Link link = elementwise::link_of(c);
    if (link == elementwise::LINK_NONE) break;
    // How it follows the command before: the value of that is written to its place too, it starts with another, it has that as its second operand.
    bool keep = false, take = e == i, turned = false, square = false, twice = false;
    if (e > i) {
      const int64_t before = body.command(e - 1).detail[0];
      const bool is_first = c.detail[1] == before, is_second = c.num_in > 1 && c.detail[2] == before;
      square = is_first && is_second && link == elementwise::LINK_MUL;
      twice = is_first && is_second && !square;
      keep = before >> 32 == OUTPUT || twice || kept[e];
      take = !is_first && !is_second, turned = is_second && !is_first;
    }
    if (s.chain.links + 1 + int(keep) + int(take && e > i) > elementwise::MAX_LINKS) break;
    int32_t first = value_of(c, 0), second = c.num_in > 1 ? value_of(c, 1) : first;
    if (take && row > 0 && rowed(first) && !rowed(second)) std::swap(first, second), turned = true;  // a row's value is the other operand
    const bool swap = take && held >= 0 && first == held;
    bool hold = false;
    if (keep) {
      hold = !twice && (held < 0 || swap) && may_hold(e, body.command(e - 1).detail[0], s.chain.links);
      if (!hold) add_link(elementwise::LINK_KEEP, s.out);
      else if (!swap) add_link(elementwise::LINK_HOLD, s.out);
      s.chain.holds |= hold;
    }
    if (take) plain(first);
    if (e == i) {
      for (int32_t &v : s.in) v = first;
    } else if (take) {
      add_link(swap ? elementwise::LINK_SWAP : elementwise::LINK_TAKE, first);
    }
    int64_t step_of = 0;
    const int32_t other = turned && !take ? first : second;
    const bool with_held = !swap && held >= 0 && other == held;
    if (swap || with_held) held = -1;
    if (hold) held = s.out;
    if (square) link = elementwise::LINK_SQUARE;
    if (turned) link = elementwise::Link(link + elementwise::LINK_TURNED);
    if (with_held) {
      link = elementwise::Link(link + elementwise::LINK_HELD);
    } else if (elementwise::may_be_one(link) && same(other)) {
      link = elementwise::Link(link + elementwise::LINK_ONE);
    } else if (row > 0 && elementwise::may_be_one(link) && rowed(other)) {
      link = elementwise::Link(link + elementwise::LINK_ROW);
      s.chain.row = row, step_of = axes[other].strides[0][0];
    } else if (row > 0 && c.num_in > 1 && !square) {
      plain(other);
    }
    if (link == elementwise::LINK_CALL || link == elementwise::LINK_TURNED_CALL) calls++, step_of = e;
    add_link(link, other, step_of);
    s.out = int32_t(number_of(c.detail[0]));
  }
  if ((e - i < 2 && !d.by_rows) || e - i == calls) return 0;
  s.past = past(e - 1);
  emit(s, link_at);
  return e - i;
}

// The result that command i writes and nobody reads after it; -1: none, or one that is never written past the caches.
int32_t Maker::past(uint32_t i) const {
  const int64_t code = body.command(i).detail[0];
  return code >> 32 == OUTPUT && uint32_t(code) < 32 && !read_after(body, i, code) ? int32_t(code) : -1;
}

// Numbers what steps find in memory, and the memory that a run gives to it.
void Maker::number() {
  for (uint32_t v = 0; v < start[INNER]; v++) numbers[v] = int32_t(v);
  for (uint32_t v = start[INNER]; v < start[CONSTANT]; v++)
    if (use[v] != 0) numbers[v] = int32_t(start[INNER] + inner++);
  for (uint32_t v = start[CONSTANT]; v < values; v++)
    if (use[v] != 0) numbers[v] = int32_t(start[INNER] + inner + constants++);
  for (uint32_t v = start[CONSTANT]; v < values; v++) copies += (use[v] & WIDE) != 0;
  for (uint32_t j = 0; j < d.inputs; j++) {
    Source &s = source[j];
    if (use[j] == 0) s.form = SAME, s.rowed = false;  // nobody reads it
    if (s.form == SAME && (use[j] & WIDE) != 0) s.memory = int32_t(copies++);
    if (s.form == DIRECT || s.form == SAME) continue;
    strided++;
    if (!s.rowed) s.memory = int32_t(buffers++);
  }
}

void Maker::write(char *at, Layout *l) {
  Source *sources = reinterpret_cast<Source *>(at);
  at += d.inputs * sizeof(Source);
  for (uint32_t j = 0; j < d.inputs; j++) {
    Source &s = sources[j] = source[j];
    if (s.form == DIRECT || s.form == SAME) {
      s.axes = nullptr;
      continue;
    }
    std::memcpy(at, axes + j, sizeof(Axes));
    s.axes = reinterpret_cast<const Axes *>(at);
    at += sizeof(Axes);
  }
  Constant *constant = reinterpret_cast<Constant *>(at);
  at += constants * sizeof(Constant);
  int32_t copy = 0;
  for (uint32_t i = 0; i < body.num_commands; i++)
    for (uint32_t k = 0; k < body.command(i).num_in; k++) {
      const Operand &o = body.command(i).in[k];
      const uint32_t v = uint32_t(value_of(body.command(i), k));
      if (v < start[CONSTANT] || use[v] == 0) continue;
      Constant &to = constant[uint32_t(numbers[v]) - start[INNER] - inner];
      if (to.data != nullptr) continue;
      to = Constant{static_cast<const char *>(body.constants[o.index]) + o.offset, rlx_dtype_sizes[o.dtype], (use[v] & WIDE) != 0 ? copy++ : -1};
    }
  step = reinterpret_cast<Step *>(at), at += steps * sizeof(Step);
  work = reinterpret_cast<elementwise::Work *>(at), at += works * sizeof(elementwise::Work);
  chain_link = reinterpret_cast<elementwise::ChainLink *>(at), at += links * sizeof(elementwise::ChainLink);
  all_steps();
  int32_t *sizes = reinterpret_cast<int32_t *>(at);
  for (uint32_t k = 0; k < outputs; k++) sizes[k] = rlx_dtype_sizes[d.cmd->out[k].dtype];
  l->source = sources, l->constant = constant, l->step = step, l->result_size = sizes;
}

int32_t Maker::lay_out(Prepare &p, const Layout **out) {
  mark_kept();
  for (uint32_t j = 0; j < d.inputs; j++) {
    Source &s = source[j] = d.source_of(j, axes + j);
    if (s.rowed && row == 0) row = axes[j].dims[1];
    s.rowed = s.rowed && axes[j].dims[1] == row;
  }
  count();
  number();
  const uint64_t bytes = sizeof(Layout) + d.inputs * sizeof(Source) + strided * sizeof(Axes) + constants * sizeof(Constant) + steps * sizeof(Step) +
                         works * sizeof(elementwise::Work) + links * sizeof(elementwise::ChainLink) + outputs * sizeof(int32_t);
  Layout *l = static_cast<Layout *>(p.keep(bytes));
  if (l == nullptr) return RLX_NO_MEMORY;
  std::memset(static_cast<void *>(l), 0, bytes);
  l->count = d.box.count, l->tile = d.tile, l->width = d.width, l->row = row;
  l->inputs = d.inputs, l->outputs = outputs, l->inner = inner, l->constants = constants;
  l->commands = body.num_commands, l->copies = copies, l->buffers = buffers;
  l->repeat = elementwise::pick_repeat(isa), l->by_rows = d.by_rows;
  write(reinterpret_cast<char *>(l + 1), l);
  l->steps = steps;
  *out = l;
  return RLX_OK;
}

}  // namespace

int32_t Draft::lay_out(Prepare &p, const Layout **out) const { return Maker(*this).make(p, out); }

}  // namespace region
}  // namespace rlx
