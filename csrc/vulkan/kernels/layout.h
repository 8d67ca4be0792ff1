// layout.h: what host and shaders agree on. Read by both: preprocessor only.
#ifndef RLX_VULKAN_LAYOUT_H
#define RLX_VULKAN_LAYOUT_H

// Bindings of set 0. Result k is at BIND_TENSORS + k, operand k behind the results; a kernel with dispatch `each` sees its one operand
// there, and its words as those of operand 0. A binding may begin before its tensor: tensor words hold the rest.
#define BIND_PARAMS 0
#define BIND_STOP 1
#define BIND_FAILED 2
#define BIND_TENSORS 3

// Parameters of a dispatch: 32-bit words P[].
#define P_UNITS 0    // units of work
#define P_RESULTS 1  // number of results
#define P_COMMAND 2  // index of the command, from 1
#define P_FLAT 3     // 1: every tensor is contiguous and every operand present has the dims of result 0
#define P_ATTRS 4    // where the attributes start in P
#define P_BEFORE 5   // dispatch each: elements of the operands before that one
#define P_TENSORS 8

// A tensor: results, then operands, T_WORDS each. Counts and offsets are in elements; 32 bits hold them, or the command is refused.
#define T_DTYPE 0  // 0: absent
#define T_RANK 1
#define T_COUNT 2
#define T_OFFSET 3 // of the element with all indices 0, from the start of the binding
#define T_DIMS 4
#define T_STRIDES 12 // signed; 0 where the dim is 1
#define T_WORDS 20

// An attribute: A_WORDS words, in the order of the row.
//   int                      value, clamped to 32 bits; low and high word of it
//   bool, enum, dtype        value
//   float                    bits of an f32
//   optional int             present, value
//   number                   kind (0 absent, 1 i64, 2 u64, 3 f64), low word, high word of its bits
//   list                     count (0xffffffff: absent), where its values start in P: one word each, ints or bits of f32
//   string                   bytes, where they start in P, four to a word
#define A_WORDS 4

// Flags, shared with the host while a dispatch runs. Kernels leave when the stop word is not 0, and write the words failed[] when they see a
// bad value. Two bindings, FLAG_BYTES apart in one buffer: a kernel that cannot fail writes neither.
#define FLAG_BYTES 256
#define F_FAILED 0      // failed[]: 0, or the command (from 1) that saw a bad value first
#define F_VALUE 1       // low and high word of that value
#define F_LIMIT 3       // what it was held against
#define F_CONSTRAINT 4  // number of the constraint that the op's row gives it
#define F_FORM 5        // what is bad about it
#define F_WORDS 6
#define BAD_INDEX 0     // outside [-limit, limit)
#define BAD_POSITION 1  // outside [0, limit]
#define BAD_FRACTION 2  // the bits of an f32 that is no integer
#define BAD_LOOP 3      // the driver left a loop of limit steps at this one

// Specialisation constants.
#define S_LOCAL 0      // invocations of a workgroup
#define S_OUT_DTYPE 1  // dtype of result 0
#define S_IN_DTYPE 2   // + k: dtype of operand k < 8, 0 if absent
#define S_ATTR 16      // + k: attribute k where it is a bool, an enum or a dtype

#define TILE_M 64
#define TILE_N 64

#endif
