// elementwise.h: what the files of this family share. A kernel chooses a Loop, which sees contiguous arrays only, and run() walks the
// operands: it hands contiguous ones through and gathers or repeats the others into blocks on the stack. So every function has one
// inner loop, whatever the strides, and equal operands give equal bits.
#pragma once
#include "../core/rlx_begin.h"
#include "../core/kernel.h"

namespace rlx {
namespace elementwise {

constexpr int MAX_IN = 3;
constexpr int BLOCK = 4096;       // bytes of one operand's block
constexpr int HALF_BLOCK = 256;   // elements that the f16 and bf16 loops widen at a time

constexpr int MAX_LINKS = 24;     // of a chain

struct Work;

// Functions of f32 that run in chains: v = in[0], then v = fn(v, in[k]), or fn(in[k], v) where turned, for k from 1 on. relu and tanh take v
// alone, as may the function of a call, which is Chain::call[k - 1]. take: v = in[k]; keep: in[k] = v; square: v = v v. One: all elements of in[k]
// are the same, and it has one. hold: a second value w is v; swap: v is w and w is v; held: the other operand is w; chains with these have no tanh
// and no call. Row: all elements of a row are, and in[k] has them `step` apart, from the row of the first element on.
enum Link : int32_t {
  LINK_NONE = -1,
  LINK_ADD, LINK_SUB, LINK_MUL, LINK_CALL,
  LINK_TURNED_ADD, LINK_TURNED_SUB, LINK_TURNED_MUL, LINK_TURNED_CALL,
  LINK_RELU, LINK_TANH, LINK_TAKE, LINK_KEEP, LINK_SQUARE, LINK_HOLD, LINK_SWAP,
  LINK_ONE_ADD = 16, LINK_ONE_SUB, LINK_ONE_MUL,
  LINK_ONE_TURNED_ADD = 20, LINK_ONE_TURNED_SUB, LINK_ONE_TURNED_MUL,
  LINK_ROW_ADD = 32, LINK_ROW_SUB, LINK_ROW_MUL,
  LINK_ROW_TURNED_ADD = 36, LINK_ROW_TURNED_SUB, LINK_ROW_TURNED_MUL,
  LINK_HELD_ADD = 64, LINK_HELD_SUB, LINK_HELD_MUL,
  LINK_HELD_TURNED_ADD = 68, LINK_HELD_TURNED_SUB, LINK_HELD_TURNED_MUL
};
constexpr int LINK_TURNED = 4, LINK_ONE = 16, LINK_ROW = 32, LINK_HELD = 64;
constexpr int ROW_PARTS = 16;  // rows of chains are so many elements, or a multiple
inline bool may_be_one(Link l) { return l <= LINK_TURNED_MUL && l % LINK_TURNED != LINK_CALL; }

// Computes n elements of the result from n elements of each operand. out may be one of the operands.
typedef void (*Loop)(const Work &w, const void *const *in, void *out, int64_t n);

struct ChainLink {
  Link link;
  int32_t value;  // for the caller: which of its values the operand is
  union {
    const Work *call;
    int64_t step;
  };
};

// Where row is set, in[MAX_LINKS + 1] is an int64_t: how many elements of the first row come before the first one.
struct Chain {
  const ChainLink *link;
  int links;
  bool holds;  // some link is hold
  int64_t row;
};

struct Work {
  Loop loop = nullptr;
  int inputs = 1;
  Loop inner = nullptr;         // of loops that wrap another one
  double alpha = 0, beta = 0;   // parameters of the function, or the bounds of Clamp
  int64_t lo = 0, hi = 0;       // bounds of an integer Clamp; dtypes of Cast
  bool saturate = true;         // of Cast
  const Chain *chain = nullptr; // of the loop of chains
  bool stream = false;          // f32 results go past the caches
};

// Results of this size leave the caches before anybody reads them: written past the caches they push out no operand and need not be read before
// they are written. Only where the result is no operand's memory, which lies in the cache already.
constexpr int64_t STREAM_BYTES = 10 << 20;
bool streams(const Call &c, int result);
// Such stores are waited for at the end of a piece of work: pieces are this much longer.
constexpr int64_t STREAM_GRAINS = 16;

// Runs w over the elements of Range.
void run(const Call &c, Range r, const Work &w);

// What a command of this family runs under an instruction set (an Isa). Its loop is null where the family has none for the command.
Work work_of(const Command &c, int isa);

// What a command is in a chain; LINK_NONE if it cannot be in one.
Link link_of(const Command &c);
Loop pick_chain(int isa);

// Writes n elements of rows of which each repeats one f32: those of x, step apart. The first row has `head` elements, the others `row`.
typedef void (*Repeat)(float *to, const float *x, int64_t step, int64_t head, int64_t row, int64_t n);
Repeat pick_repeat(int isa);

// Copies n elements of size bytes from a place that moves by step elements; a step of 0 repeats one.
void copy_run(void *to, const void *from, int size, int64_t step, int64_t n);

// The loops of one instruction set. A function gives null where the table has no such function of floats.
struct Lanes {
  Loop (*unary)(int fn);      // f32; bytes for predicates
  Loop (*backward)(int fn);   // x, dy: f32
  Loop (*binary)(int fn);     // f32
  Loop (*compare)(int fn);    // f32 to bytes
  Loop (*where)(int size);    // condition bytes, then elements of size 1, 2, 4, 8
  Loop (*cast)(int from, int to);  // the fast pairs; null for others
  // Widen f16 or bf16, run Work::inner in f32 and round once: [bf16][operands - 1]; the last two give bytes.
  Loop half[2][2];
  Loop half_bytes[2][2];
  Loop fma, clamp, relu_backward, relu_backward_half, chain;
  Repeat repeat;
};
extern const Lanes lanes_generic;
#if defined(RLX_X86)
extern const Lanes lanes_avx2, lanes_avx512;
#elif defined(RLX_NEON)
extern const Lanes lanes_neon;
#endif

Loop pick_unary_f64(int fn);
Loop pick_backward_f64(int fn);
Loop pick_binary_f64(int fn);
Loop pick_compare_f64(int fn);

// Integers of any dtype, bool and c64; null where the table does not allow fn for the dtype.
Loop pick_unary_int(int fn, int dtype);
Loop pick_binary_int(int fn, int dtype);
Loop pick_compare_int(int fn, int dtype);
Loop pick_unary_other(int fn, int dtype);
Loop pick_binary_other(int fn, int dtype);
Loop pick_compare_other(int fn, int dtype);
Loop pick_fma_int(int dtype);
Loop pick_clamp_int(int dtype);
Loop pick_clamp_f64();
Loop pick_fma(int dtype);    // f16, bf16, f64 and integers
Loop pick_clamp(int dtype);  // f64 and integers
Loop pick_copy(int size);

// Every pair of dtypes that Cast allows, by way of f64 or i64.
Loop pick_cast(int from, int to);

}  // namespace elementwise
}  // namespace rlx
