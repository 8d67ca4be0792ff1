// reduce.glsl: what reductions share. Include after tensor.glsl, and math.glsl for floats. Units of work are taken in turns, by
// workgroups (`GROUPS` apart) or by invocations, so that any number of workgroups will do.
#ifndef RLX_REDUCE_GLSL
#define RLX_REDUCE_GLSL

#define GROUPS (gl_NumWorkGroups.x * gl_NumWorkGroups.y)

// llvmpipe ends all loops of an invocation after 65535 iterations together. That a long loop ran to its end is therefore checked: the run
// fails rather than give what is left of a result. Other compilers know the answer.
void expect_end(uint i, uint n) {
  if (i < n) fail(ivec2(int(i), 0), n, 0u, BAD_LOOP);
}

// Defines T name(T mine): join of the values of all invocations, in all of them. Holds barriers, one before it writes. join is
// associative and commutative; eight invocations join every eighth value, then each joins those eight.
#define GROUP_JOIN(T, name, join) \
  shared T name##_parts[LOCAL]; \
  T name(T mine) { \
    const uint me = gl_LocalInvocationID.x; \
    barrier(); \
    name##_parts[me] = mine; \
    barrier(); \
    if (me < 8) { \
      for (uint i = me + 8; i < LOCAL; i += 8) mine = join(mine, name##_parts[i]); \
      name##_parts[me] = mine; \
    } \
    barrier(); \
    T all = name##_parts[0]; \
    for (uint i = 1; i < 8; i++) all = join(all, name##_parts[i]); \
    return all; \
  }

// Whether the elements of tensor k lie in their order, without gaps.
bool contiguous(uint k) {
  int step_ = 1;
  for (int d = int(rank_of(k)) - 1; d >= 0; d--) {
    if (dim(k, d) != 1 && stride(k, d) != step_) return false;
    step_ *= int(dim(k, d));
  }
  return true;
}

#ifdef RLX_MATH_GLSL

// A sum and what its roundings lost, or a product alike: their error does not grow with the number of terms.
struct Total { float value, lost; };

Total total_add(Total t, float x) {
  precise float s = t.value + x, part = s - t.value;
  precise float lost = t.lost + ((t.value - (s - part)) + (x - part));
  return Total(s, lost);
}
Total total_join(Total a, Total b) {
  Total t = total_add(a, b.value);
  t.lost += b.lost;
  return t;
}
Total total_times(Total t, Total x) {
  precise float p = t.value * x.value;
  precise float lost = mul_error(t.value, x.value, p) + (t.value * x.lost + t.lost * x.value);
  return Total(p, lost);
}
// What was lost of an infinity or a NaN is not a number.
float total_of(Total t) {
  precise float v = t.value + t.lost;
  return magnitude(t.lost) >= 0x7f800000u ? t.value : v;
}

#endif
#endif
