// axes.glsl: axis attributes.
#ifndef RLX_AXES_GLSL
#define RLX_AXES_GLSL

// The axis that attribute value a names among rank axes.
uint axis_of(int a, uint rank) { return uint(a < 0 ? a + int(rank) : a); }

#endif
