// axes.glsl: axis attributes, and what lies along an axis. Include after tensor.glsl.
#ifndef RLX_AXES_GLSL
#define RLX_AXES_GLSL

// The axis that attribute value a names among rank axes.
uint axis_of(int a, uint rank) { return uint(a < 0 ? a + int(rank) : a); }

// How many elements axes first ... end - 1 of tensor k have together.
uint extent(uint k, uint first, uint end) {
  uint n = 1;
  for (uint d = first; d < end; d++) n *= dim(k, d);
  return n;
}

// The first element, row-major, of a line along an axis of n, whose neighbours are inner elements apart.
uint line_start(uint line, uint n, uint inner) { return line / inner * n * inner + line % inner; }

// Where element i of result 0 lies in operand 0, which it has the dims of, and in operand 1, which replaces what is from `start` on along
// axis. False: i is not among that.
bool replaced(uint i, uint axis, uint start, out int kept, out int by) {
  bool inside = false;
  kept = int(offset_of(1));
  by = int(offset_of(2));
  for (uint d = rank_of(0); d-- > 0;) {
    const uint n = dim(0, d), c = i % n;
    i /= n;
    kept += int(c) * stride(1, d);
    if (d == axis) inside = c >= start && c - start < dim(2, d);
    by += int(d == axis ? c - start : c) * stride(2, d);
  }
  return inside;
}

#endif
