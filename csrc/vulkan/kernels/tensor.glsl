// tensor.glsl: the first include of every kernel: parameters, flags and tensors of a dispatch.
#ifndef RLX_TENSOR_GLSL
#define RLX_TENSOR_GLSL
#include "layout.h"

layout(local_size_x_id = S_LOCAL) in;
#define LOCAL gl_WorkGroupSize.x

layout(std430, set = 0, binding = BIND_PARAMS) readonly buffer Params { uint P[]; };
layout(std430, set = 0, binding = BIND_STOP) volatile readonly buffer Stop { uint stop_word; };
layout(std430, set = 0, binding = BIND_FAILED) buffer Failed { uint failed[]; };

// The unit of work of a workgroup, or of an invocation. Beyond P[P_UNITS] there is none: leave.
uint group_unit() { return gl_WorkGroupID.x + gl_WorkGroupID.y * gl_NumWorkGroups.x; }
uint thread_unit() { return group_unit() * LOCAL + gl_LocalInvocationID.x; }

// For kernels without barriers: the run is to stop. Cheap, may differ between invocations.
bool stopped() { return stop_word != 0; }

// For kernels with barriers: the same answer in the whole workgroup. Holds a barrier.
shared uint stop_shared;
bool group_stopped() {
  if (gl_LocalInvocationID.x == 0) stop_shared = stop_word;
  barrier();
  return stop_shared != 0;
}

// Records a bad value (an index out of range); the first one makes the run an error. The kernel reads 0 and writes nothing in its place.
// value: low and high word; constraint: its number in the row of the op, 7 for C7; form: one of BAD_.
void fail(ivec2 value, uint limit, uint constraint, uint form) {
  if (atomicCompSwap(failed[F_FAILED], 0u, P[P_COMMAND]) != 0u) return;
  failed[F_VALUE] = uint(value.x);
  failed[F_VALUE + 1] = uint(value.y);
  failed[F_LIMIT] = limit;
  failed[F_CONSTRAINT] = constraint;
  failed[F_FORM] = form;
}

// Tensor k: results first, then operands. operand(k) is the number of operand k.
uint operand(uint k) { return P[P_RESULTS] + k; }
uint tensor_word(uint k, uint w) { return P[P_TENSORS + k * T_WORDS + w]; }
bool has(uint k) { return tensor_word(k, T_DTYPE) != 0; }
uint rank_of(uint k) { return tensor_word(k, T_RANK); }
uint count_of(uint k) { return tensor_word(k, T_COUNT); }
uint offset_of(uint k) { return tensor_word(k, T_OFFSET); }
uint dim(uint k, uint d) { return tensor_word(k, T_DIMS + d); }
int stride(uint k, uint d) { return int(tensor_word(k, T_STRIDES + d)); }
uint last_dim(uint k) { return rank_of(k) == 0 ? 1 : dim(k, rank_of(k) - 1); }

// Where element i (row-major) of tensor k lies in its binding.
uint element_of(uint k, uint i) {
  int at = int(offset_of(k));
  for (int d = int(rank_of(k)) - 1; d > 0; d--) {
    const uint n = dim(k, d);
    at += int(i % n) * stride(k, d);
    i /= n;
  }
  if (rank_of(k) > 0) at += int(i) * stride(k, 0);
  return uint(at);
}

// Where the element of tensor k lies that stands under element i of result 0 when k is broadcast to it.
uint broadcast_of(uint k, uint i) {
  if (P[P_FLAT] != 0) return offset_of(k) + i;
  int at = int(offset_of(k));
  const int lead = int(rank_of(0)) - int(rank_of(k));
  for (int d = int(rank_of(0)) - 1; d >= lead; d--) {
    const uint n = dim(0, d);
    at += int(i % n) * stride(k, d - lead);
    i /= n;
  }
  return uint(at);
}

// Attribute a, numbered by the constants of ops_gen.glsl.
uint attr_word(uint a, uint w) { return P[P[P_ATTRS] + a * A_WORDS + w]; }
int attr_int(uint a) { return int(attr_word(a, 0)); }
float attr_float(uint a) { return uintBitsToFloat(attr_word(a, 0)); }
uint attr_count(uint a) { return attr_word(a, 0); }
int attr_item(uint a, uint i) { return int(P[attr_word(a, 1) + i]); }

#endif
