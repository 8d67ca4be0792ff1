// combine.glsl: what a scatter makes of an element and its updates. Include after types.glsl. An element without an update keeps its bits,
// so do updates that overwrite; the others are combined in COMPUTE, in the order of the calls, and rounded once.
#ifndef RLX_COMBINE_GLSL
#define RLX_COMBINE_GLSL

struct Cell {
  STORE bits;
#ifdef COMPUTE
  COMPUTE sum;
#endif
};

#ifdef COMPUTE

bool not_a_number(COMPUTE v) {
#if defined(VARIANT_f64)
  const uvec2 w = unpackDouble2x32(v);
  return (w.y & 0x7fffffffu) > 0x7ff00000u || ((w.y & 0x7fffffffu) == 0x7ff00000u && w.x != 0u);
#elif defined(IS_FLOAT)
  return (floatBitsToUint(v) & 0x7fffffffu) > 0x7f800000u;
#else
  return false;
#endif
}

COMPUTE combined(uint how, COMPUTE a, COMPUTE b) {
  switch (how) {
    case ScatterReduction_add: return a + b;
    case ScatterReduction_mul: return a * b;
    case ScatterReduction_max: return b > a || not_a_number(b) ? b : a;
    default: return b < a || not_a_number(b) ? b : a;
  }
}

Cell cell_of(STORE bits) { return Cell(bits, load(bits)); }

void update(inout Cell cell, uint how, STORE bits) {
  if (how == ScatterReduction_none) {
    cell.bits = bits;
  } else {
    cell.sum = combined(how, cell.sum, load(bits));
    cell.bits = store(cell.sum);
  }
}

#else

Cell cell_of(STORE bits) { return Cell(bits); }
void update(inout Cell cell, uint how, STORE bits) { cell.bits = bits; }

#endif
#endif
