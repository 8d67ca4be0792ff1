// tile.h: the body of a region over tiles. A tile is a run of elements, in the order of the results, that is short enough for all inner values
// to stay in the first-level cache: each command of the body runs its own loop (elementwise::work_of) over it. So a region has the bits of its
// body node by node, whatever the tiles and the threads.
//
//   PREPARE   Region r = ...; r.number(c) checks the body and numbers its values; c.scratch = r.bytes(threads)
//   kernel    r.open(call.scratch, ...); then, for each tile, in memory of one slot: r.enter(slot), r.run(...)
#pragma once
#include "../core/rlx_begin.h"
#include "../core/program.h"
#include "../elementwise/elementwise.h"

namespace rlx {
namespace region {

// The elements that every result has.
struct Box {
  int rank = 0;
  int64_t dims[RLX_MAX_RANK] = {}, count = 1;
};
Box box_of(const Operand &o);

// An operand in the order of the results' elements.
enum Form : int32_t { DIRECT, SAME, PIECES, GATHERED };  // it lies in this order; has one value; each tile of it does; is read through strides
struct Source {
  const char *data;
  int32_t size;  // of an element
  Form form;
  bool doubled;  // element i of the last axis is at i / 2
  bool rowed;    // one value for each row, which chains take from where it lies
  int32_t rank;
  int64_t dims[RLX_MAX_RANK], strides[1][RLX_MAX_RANK];
};

// Puts elements [begin, begin + n) of an operand side by side.
void gather(char *to, const Source &s, int64_t begin, int64_t n, elementwise::Repeat repeat);

// A command of the body, or a chain of them: numbers of values in the table of a slot.
struct Step {
  elementwise::Work work;
  elementwise::Chain chain;
  int32_t in[1 + elementwise::MAX_LINKS], out, used;  // the first `used` of in are set
};

struct Region {
  const Command *cmd;
  const rlx_program *body;
  Box box;
  const Operand *first = nullptr;  // operand 0 of the body where it is none of the command's: a product
  uint32_t item = 0, shift = 0;    // operand 0 of the body is operand `item` of the command, operand j > 0 is operand j + shift
  int32_t doubled = -1;            // the operand of the body that the prologue doubles
  uint32_t streamed = 0;           // bit k: result k is written past the caches
  bool by_rows = false;            // runs begin at whole vectors where rows are such, so that what repeats by rows need not be laid out for each

  uint32_t inputs, outputs, inner, constants;  // values of the body, numbered in this order
  uint32_t start[4];                           // the first number of each kind
  int64_t width, tile;                         // bytes of the widest element, elements of a tile

  explicit Region(const Command &c, uint32_t num_inputs);

  const Operand &operand(uint32_t j) const { return j > 0 ? cmd->in[j + shift] : first != nullptr ? *first : cmd->in[item]; }
  // Checks the body, numbers its values, and chooses the tile.
  int32_t number(Command &c);
  int64_t bytes(int threads) const {
    const Places p = places();
    return p.slots + threads * p.slot;
  }
  char *end(int threads) const { return slots + threads * slot; }  // of its memory, once it is open

  // Lays the region out in scratch; data(j) is element 0 of operand j of the body.
  template <class F> void open(void *scratch, F data) {
    enter_scratch(scratch);
    for (uint32_t j = 0; j < inputs; j++) source[j] = source_of(j, data(j));
    build();
  }
  // The memory of a slot, with the pointers that stay the same from tile to tile.
  char **enter(int slot) const;
  char **table_of(int number) const { return reinterpret_cast<char **>(slots + number * slot); }  // of a slot that was entered
  // The body over the elements [begin, begin + n), n <= tile; results[k] is element 0 of result k, where they go from element `to` on.
  void run(char **table, char *const *results, int64_t begin, int64_t n, int64_t to) const;

  Source source_of(uint32_t j, const void *data) const;

 private:
  // Where things lie in the scratch, in bytes.
  struct Places {
    int64_t source, step, call, table, buffer, live, shared, slots, slot;
  };
  Places places() const;
  int64_t in_memory() const;
  uint32_t values() const { return inputs + outputs + inner + constants; }
  void enter_scratch(void *scratch);
  void build();
  char *buffer_of(char **table, uint32_t value) const;
  int32_t value_of(const Command &b, uint32_t k, char *&next);
  void mark_kept();
  uint32_t number_of(int64_t code) const;
  void alone(uint32_t i, Step &s, char *&next);
  uint32_t chained(uint32_t i, Step &s, char *&next);
  bool past(uint32_t i) const;
  bool may_hold(uint32_t i, int64_t code, int links) const;
  void add_link(Step &s, elementwise::Link link, int32_t value);
  void steps_of(char **table, int64_t n, int64_t phase) const;
  void steps_from_commands(char *&next);
  bool rowed(int32_t value) const { return uint32_t(value) < inputs && source[value].rowed; }
  void plain(int32_t value);
  void lay_out(char **table, uint32_t j, int64_t begin, int64_t n) const;
  // What lies in the buffer of an operand: n elements of a block of equal rows; block 0 is none.
  struct Held {
    int64_t block, n;
  };
  Held *held_of(char **table) const;
  int64_t table_bytes() const;  // of a slot: the pointers, and what its buffers hold

  Source *source = nullptr;
  Step *step = nullptr;
  uint32_t steps = 0;
  elementwise::Repeat repeat = nullptr;
  elementwise::Work *call = nullptr;  // of the commands that chains call
  int64_t row = 0;             // elements of the rows of rowed operands
  char **shared = nullptr;     // by value: constants and operands of one value, repeated over a tile
  int32_t *buffer = nullptr;   // by value: its buffer in a slot, -1 for none
  bool *live = nullptr;        // of mark_kept: by value, then by command
  char *slots = nullptr;
  int64_t slot = 0;
};

// Runs all of a region's elements on the threads of the call; element `first` of each result is the first.
void run_all(const Call &c, const Region &r, char *const *results, int64_t first = 0);

}  // namespace region
}  // namespace rlx
