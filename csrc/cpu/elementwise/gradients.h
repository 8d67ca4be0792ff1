// gradients.h: the table of gradients of functions of one f32. Text: see loops.h.

#define RLX_VALUE(f) \
  struct backward_##f { static RLX_FN vf of(vf x, vf dy, vf alpha, vf beta) { return bw_##f(x, dy, alpha, beta); } };
RLX_UNARY_DERIV_FNS(RLX_VALUE)
#undef RLX_VALUE

Loop backward_of(int fn) {
  switch (fn) {
#define RLX_CASE(f) case UNARY_##f: return backward_loop<backward_##f>;
    RLX_UNARY_DERIV_FNS(RLX_CASE)
#undef RLX_CASE
    default: return nullptr;
  }
}
