// reduce.glsl: what reductions share. Include after tensor.glsl, and math.glsl for floats. Units of work are taken in turns, by
// workgroups (`GROUPS` apart) or by invocations, so that any number of workgroups will do.
#ifndef RLX_REDUCE_GLSL
#define RLX_REDUCE_GLSL

#define GROUPS (gl_NumWorkGroups.x * gl_NumWorkGroups.y)

// llvmpipe ends all loops of an invocation after 65535 iterations together. That a long loop ran to its end is therefore checked, in other
// words than the loop's own, which would be known to hold: the run fails rather than give what there is of a result.
void expect_end(uint i, uint n) {
  if (int(n - i) > 0) fail(ivec2(int(i), 0), n, 0u, BAD_LOOP);
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

// Element i, row-major, of the axes of operand 0 whose bits are set: how far from the first one it lies in tensor k, which has not the
// first `lacks` of its axes.
int distance_of(uint k, uint axes, uint lacks, uint i) {
  int at = 0;
  for (int d = int(rank_of(operand(0))) - 1; d >= 0; d--) {
    if ((axes >> d & 1) == 0) continue;
    const uint n = dim(operand(0), d);
    at += int(i % n) * stride(k, d - lacks);
    i /= n;
  }
  return at;
}

// Which elements of runs of elements are an invocation's: of runs run, run + runs ... elements first, first + step_ ...
struct Share { uint run, runs, first, step_; };

#define ALL Share(0, 1, 0, 1)

// The share of each invocation of a workgroup: short runs are done side by side.
Share group_share(uint inner) {
  const uint wide = inner >= LOCAL ? LOCAL : 1u << (findMSB(inner - 1) + 1), me = gl_LocalInvocationID.x;
  return Share(me / wide, LOCAL / wide, me % wide, wide);
}

#ifdef RLX_MATH_GLSL

// A sum and what its roundings lost, or a product alike: their error hardly grows with the number of terms.
struct Total { float value, lost; };

// What is lost by an infinity is not a number, and dropped.
Total total_add(Total t, float x) {
  precise float s = t.value + x, part = s - t.value;
  precise float lost = t.lost + ((t.value - (s - part)) + (x - part));
  if (magnitude(s) >= 0x7f800000u) lost = 0;
  precise float value = s + lost, rest_ = lost - (value - s); // else lost would grow and round itself
  return Total(value, rest_);
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
float total_of(Total t) {
  precise float v = t.value + t.lost;
  return magnitude(t.lost) >= 0x7f800000u ? t.value : v;
}

#endif
#endif
