// words.h: command words decoded and checked, for every native backend.
//
// A loader fills a Decoder, calls decode_words and gets a block of memory that begins with its own program struct, whose first base is
// DecodedProgram; its commands have a first base DecodedCommand. What a backend adds to either is zero bytes until it sets it.
//
// After decode_words every operand lies inside its memory, counts of operands and results, dtypes and attributes are as the row of the op
// says, and results are contiguous. The relations between shapes, dtypes and attributes that the row's Infer states are those of the
// compiler that made the words; they are not checked again.
#pragma once
#include <cstdint>

#include "../../cgo/native/rlx.h"
#include "../../cgo/native/rlx_ops_gen.h"

namespace rlx {

constexpr int kSlots = 5;  // as rlx_slot

// A result or operand of a command, fixed at load.
struct Operand {
  uint32_t dtype = 0, rank = 0, slot = 0, index = 0;
  int64_t offset = 0;                                   // bytes from the start of the slot
  const int64_t *dims = nullptr, *strides = nullptr;    // rank of each, in the program's memory; strides in elements
  int64_t count = 0;                                    // elements
  bool present = false, contiguous = false;
};

// One command. Operands lie behind results in memory.
struct DecodedCommand {
  uint32_t op = 0, index = 0, num_out = 0, num_in = 0;
  Operand *out = nullptr, *in = nullptr;
  const void *attrs = nullptr;
  bool staged = false;  // the host runs it
};

struct DecodedProgram;

// Sub-graph i of a command, in row order, decoded: its constants are those of the program around it, all else is its own.
DecodedProgram *body_of(const DecodedCommand &c, uint32_t i);
uint32_t num_bodies(const DecodedCommand &c);

// Memory that a backend keeps with a program; what it is for follows.
struct Kept {
  Kept *next;
  uint64_t bytes;  // in all
};

struct DecodedProgram {
  uint32_t num_commands;
  uint32_t command_bytes;        // of one command, with what the backend adds
  void *command_block;
  uint32_t slots[kSlots];        // tensors in each slot; the arena counts as one
  int64_t *slot_bytes[kSlots];   // their sizes
  uint64_t block_bytes;          // of the block of memory that starts with this struct
  DecodedProgram *bodies, *next; // the programs of sub-graphs, each in a block of its own
  Kept *kept;

  DecodedCommand &decoded(uint32_t i) const { return *reinterpret_cast<DecodedCommand *>(static_cast<char *>(command_block) + uint64_t(i) * command_bytes); }
  // The bytes of the words' own arena.
  int64_t words_arena() const { return slot_bytes[RLX_ARENA][0]; }
};

// Words on their way to a program. Memory comes from one block whose size the first pass bounds, and one for each sub-graph; the loader frees
// them with free_program, also when decode_words fails.
struct Decoder {
  const uint32_t *words;
  uint64_t count;
  uint32_t program_bytes, command_bytes;  // of the backend's structs
  rlx_error *error;

  char *block;              // null until it exists
  DecodedProgram *program;  // at the start of the block

  uint64_t at, end;  // the next word; reads stop at end, the end of the current command
  uint64_t used, size;
  int32_t command;  // for errors

  const DecodedProgram *around;  // the program whose constants this one reads, if it is that of a sub-graph
  uint32_t depth;                // of sub-graphs around it
};

int32_t decode_words(Decoder &d);

// Memory that lives as long as the program, aligned for any type; null when there is none.
void *keep(DecodedProgram *p, uint64_t bytes);

// Frees a program with what it keeps and the programs of its sub-graphs, or what decode_words left; counts its bytes with theirs.
void free_program(DecodedProgram *p);
void free_decoded(Decoder &d);
uint64_t program_bytes(const DecodedProgram *p);

// Bytes that o touches in its slot, [lo, hi). Operands that passed the decoder do not overflow.
bool operand_extent(const Operand &o, int64_t *lo, int64_t *hi);

// The dtype that chooses the kernel: of the first operand, or of the first result without one.
inline uint32_t key_dtype(const DecodedCommand &c) { return c.num_in != 0 && c.in[0].present ? c.in[0].dtype : c.out[0].dtype; }

// What run checks first: [first, first + count) is a stretch, as rlx_run_args says.
int32_t check_stretch(const DecodedProgram &p, const rlx_run_args *a);

// What arena_write and arena_read check first: every region lies in the words' arena and has memory.
int32_t check_regions(const DecodedProgram &p, const char *name, const rlx_region *regions, uint32_t count, rlx_error *error);

// Constant i of a program has the size that the words say; have is how many there are.
int32_t check_constants(const DecodedProgram &p, const uint64_t *bytes, uint32_t have, rlx_error *error);

// Fills e (which may be null) and returns code.
int32_t set_error(rlx_error *e, int32_t code, int32_t command, const char *format, ...) __attribute__((format(printf, 4, 5)));

}  // namespace rlx
