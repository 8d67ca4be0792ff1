#version 450
#extension GL_GOOGLE_include_directive : enable
#define INDEX_OPERAND 1
#include "types.glsl"
#include "tensor.glsl"
#include "axes.glsl"
#include "index.glsl"

// y = base or zeros; y[.., index[i], ..] += u[.., i, ..] along axis.
layout(constant_id = S_IN_DTYPE + 2) const uint BASE_DTYPE = 0;
layout(std430, set = 0, binding = BIND_TENSORS) buffer Y { STORE y[]; };
layout(std430, set = 0, binding = BIND_TENSORS + 1) readonly buffer U { STORE u[]; };
layout(std430, set = 0, binding = BIND_TENSORS + 3) readonly buffer Base { STORE base[]; };

#define SIZE_AXIS ScatterAdd_axis
#include "segments.glsl"

STORE base_of(uint row, uint column) { return BASE_DTYPE != 0 ? base[element_of(3, row * last_dim(0) + column)] : STORE(0); }

void main() { scatter_row(ScatterReduction_add, count_of(2)); }
