#version 450
#extension GL_GOOGLE_include_directive : enable
#define INDEX_OPERAND 1
#include "types.glsl"
#include "tensor.glsl"
#include "axes.glsl"
#include "index.glsl"

// dx = zeros; dx[a.., index[i..], b..] += dy[a.., i.., b..].
layout(std430, set = 0, binding = BIND_TENSORS) buffer Y { STORE y[]; };
layout(std430, set = 0, binding = BIND_TENSORS + 1) readonly buffer U { STORE u[]; };

#define SIZE_AXIS GatherBackward_axis
#include "segments.glsl"

STORE base_of(uint row, uint column) { return STORE(0); }

void main() { scatter_row(ScatterReduction_add, count_of(2)); }
