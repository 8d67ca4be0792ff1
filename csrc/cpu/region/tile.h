// tile.h: the body of a region over tiles. A tile is a run of elements, in the order of the results, that is short enough for all inner values
// to stay in the first-level cache: each command of the body runs its own loop (elementwise::work_of) over it. So a region has the bits of its
// body node by node, whatever the tiles and the threads.
//
//   PREPARE   Draft d(...); d.number() checks the body and chooses the tile; d.lay_out(prepare, &layout) leaves a Layout in the program;
//             c.scratch = layout->bytes(threads)
//   kernel    Region r(*layout); r.open(call.scratch, ...); then, for each tile, in memory of one slot: r.enter(slot), r.run(...)
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
struct Axes {
  int32_t rank;
  int64_t dims[RLX_MAX_RANK], strides[1][RLX_MAX_RANK];
};
struct Source {
  int32_t size;      // of an element
  Form form;
  bool doubled;      // element i of the last axis is at i / 2
  bool rowed;        // one value for each row, which chains take from where it lies
  int32_t memory;    // PIECES and GATHERED: its buffer in a slot; SAME: where it is repeated over a tile, -1 where only one is read
  const Axes *axes;  // of PIECES and GATHERED
};

// A constant of the body.
struct Constant {
  const char *data;
  int32_t size, memory;  // as of a Source that is SAME
};

// A command of the body, or a chain of them: numbers of values in the table of a slot.
struct Step {
  elementwise::Work work;
  elementwise::Chain chain;  // without links: a command alone
  int32_t in[elementwise::MAX_IN], out;
  int32_t past;  // the result that it writes, which may go past the caches; -1: none
};

// What PREPARE leaves of a region in the program. Values in memory have numbers: operands, results, inner values, constants.
struct Layout {
  int64_t count, tile, width, row;  // elements of the results, of a tile; bytes of the widest element; elements of the rows of rowed operands
  uint32_t inputs, outputs, inner, constants, steps, commands, copies, buffers;
  const Source *source;
  const Constant *constant;
  const Step *step;
  const int32_t *result_size;
  elementwise::Repeat repeat;
  bool by_rows;

  uint32_t values() const { return inputs + outputs + inner + constants; }
  int64_t block() const { return tile * width; }
  // Of the memory of a run: what its slots share, and one of them.
  int64_t shared_bytes() const { return align64(int64_t(inputs) * 8) + copies * block(); }
  int64_t slot_bytes() const;
  int64_t bytes(int threads) const { return shared_bytes() + threads * slot_bytes(); }
};

// A region as PREPARE sees it.
struct Draft {
  Command *cmd;
  const rlx_program *body;
  uint32_t inputs;
  Box box;
  const Operand *first = nullptr;  // operand 0 of the body where it is none of the command's: a product
  uint32_t item = 0, shift = 0;    // operand 0 of the body is operand `item` of the command, operand j > 0 is operand j + shift
  int32_t doubled = -1;            // the operand of the body that the prologue doubles
  bool by_rows = false;            // runs begin at whole vectors where rows are such, so that what repeats by rows need not be laid out for each
  uint32_t inner = 0, constants = 0;
  int64_t width = 1, tile = 0;

  Draft(Command &c, uint32_t num_inputs);
  const Operand &operand(uint32_t j) const { return j > 0 ? cmd->in[j + shift] : first != nullptr ? *first : cmd->in[item]; }
  // Checks the body, numbers its values, and chooses the tile.
  int32_t number();
  void number_as(const Draft &d) { inner = d.inner, constants = d.constants, width = d.width, tile = d.tile; }  // of the same body
  // How operand j lies; a Source that needs no axes has none.
  Source source_of(uint32_t j, Axes *axes) const;
  int32_t lay_out(Prepare &p, const Layout **out) const;

 private:
  int64_t in_memory() const;
};

// A region in a run.
struct Region {
  const Layout &layout;
  uint32_t streamed = 0;  // bit k: result k is written past the caches

  explicit Region(const Layout &l) : layout(l) {}
  // data(j) is element 0 of operand j of the body.
  template <class F> void open(void *scratch, F data) {
    data_ = static_cast<const char **>(scratch);
    for (uint32_t j = 0; j < layout.inputs; j++) data_[j] = static_cast<const char *>(data(j));
    repeat();
  }
  // The memory of a slot, with the pointers that stay the same from tile to tile.
  char **enter(int slot) const;
  char **table_of(int slot) const { return reinterpret_cast<char **>(slots_ + slot * layout.slot_bytes()); }  // of a slot that was entered
  // The body over the elements [begin, begin + n), n <= tile; results[k] is element 0 of result k, where they go from element `to` on.
  void run(char **table, char *const *results, int64_t begin, int64_t n, int64_t to) const;

 private:
  // What lies in a buffer: n elements of a block of equal rows; block 0 is none.
  struct Held {
    int64_t block, n;
  };
  friend struct Layout;

  void repeat();
  char *copy(int32_t memory) const { return copies_ + memory * layout.block(); }
  char *&buffers(char **table) const { return table[layout.values()]; }
  char *buffer(char **table, int32_t i) const;
  Held *held_of(char **table) const { return reinterpret_cast<Held *>(table + layout.values() + 1); }
  void gathered(char **table, uint32_t j, int64_t begin, int64_t n) const;

  const char **data_ = nullptr;
  char *copies_ = nullptr, *slots_ = nullptr;
};

// Runs all of a region's elements on the threads of the call; element `first` of each result is the first.
void run_all(const Call &c, const Region &r, char *const *results, int64_t first = 0);

}  // namespace region
}  // namespace rlx
