// norm.glsl: LayerNorm and RmsNorm. The includer defines MEAN, whether the mean is subtracted, and AXIS and EPS, attributes. A workgroup
// does a row: the elements of the axes from AXIS on. Deviations are taken from the mean as f32 has it, then from the mean of those.
#include "types.glsl"
#include "tensor.glsl"
#include "axes.glsl"
#include "math.glsl"
#include "reduce.glsl"

layout(std430, set = 0, binding = BIND_TENSORS) writeonly buffer Y { STORE y[]; };
layout(std430, set = 0, binding = BIND_TENSORS + 1) readonly buffer X { STORE x[]; };
layout(std430, set = 0, binding = BIND_TENSORS + 2) readonly buffer Gamma { STORE gamma[]; };
layout(std430, set = 0, binding = BIND_TENSORS + 3) readonly buffer Beta { STORE beta[]; };

GROUP_JOIN(Total, group_total, total_join)
GROUP_JOIN(float, group_max, rlx_max)

uint n;                // elements of a row
bool dense;            // x is contiguous
float mean, rest;      // of the row: their sum is the mean

float at(uint row, uint i) { return load(x[dense ? offset_of(1) + row * n + i : element_of(1, row * n + i)]); }
float off(uint row, uint i) {
  precise float d = MEAN ? (at(row, i) - mean) - rest : at(row, i);
  return d;
}

// The mean of the deviations from mean and rest over the row.
float mean_off(uint row) {
  Total t = Total(0, 0);
  for (uint i = gl_LocalInvocationID.x; i < n; i += LOCAL) t = total_add(t, off(row, i));
  return total_of(group_total(t)) / float(n);
}

float square_sum(uint row, float scale) {
  Total t = Total(0, 0);
  for (uint i = gl_LocalInvocationID.x; i < n; i += LOCAL) {
    precise float d = off(row, i) * scale, square = d * d;
    t = total_add(t, square);
  }
  return total_of(group_total(t));
}

float greatest(uint row) {
  float top = 0;
  for (uint i = gl_LocalInvocationID.x; i < n; i += LOCAL) top = rlx_max(top, rlx_abs(off(row, i)));
  return group_max(top);
}

// 1 / sqrt(mean of squares + eps). Squares that f32 does not hold are taken of numbers scaled by a power of 2.
float inverse_root(uint row) {
  float scale = 1, sum = square_sum(row, scale);
  if (!(sum > 1e-24 && sum < 1e36)) {
    const float top = greatest(row);
    if (magnitude(top) < 0x7f800000u && magnitude(top) >= 0x00800000u) {
      scale = pow2i(-min(exponent_of(top), 126));
      sum = square_sum(row, scale);
    }
  }
  precise float eps = attr_float(EPS) * scale * scale;
  return rlx_mul(rlx_rsqrt(rlx_add(sum / float(n), eps)), scale);
}

void put(uint row, float inverse) {
  for (uint i = gl_LocalInvocationID.x; i < n; i += LOCAL) {
    float v = rlx_mul(off(row, i), inverse);
    if (has(2)) v = rlx_mul(v, load(gamma[element_of(2, i)]));
    if (has(3)) v = rlx_add(v, load(beta[element_of(3, i)]));
    y[offset_of(0) + row * n + i] = store(v);
  }
}

void main() {
  n = 1;
  for (uint d = axis_of(attr_int(AXIS), rank_of(1)); d < rank_of(1); d++) n *= dim(1, d);
  dense = contiguous(1);
  for (uint row = group_unit(); row < count_of(0) / n; row += GROUPS) {
    if (group_stopped()) return;
    mean = at(row, 0);
    rest = 0;
    if (MEAN) {
      mean += mean_off(row);
      rest = mean_off(row);
    }
    put(row, inverse_root(row));
  }
}
