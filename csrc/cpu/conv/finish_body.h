// finish.h over the vector types. Text for the anonymous namespace of an instruction set, after vec_<isa>.h.
//
// The functions of the scalar table, in fewer instructions. raw_max and raw_min give their second operand where one is a NaN and where both are zeros,
// so relu takes no -0: bias_of sees to it.

// What is added to the sums of a channel: never -0 in front of a relu. A sum of it and anything is no -0 then, and 0 is all that relu makes of -0.
RLX_FN vf bias_of(const Finish &f, int i) {
  const vf b = splat<vf>(f.bias != nullptr ? f.bias[i] : 0);
  return f.fn == kFinishRelu || f.fn == kFinishRelu6 ? b + splat<vf>(0.0) : b;
}
RLX_FN bool has_bias(const Finish &f) { return f.bias != nullptr || f.fn == kFinishRelu || f.fn == kFinishRelu6; }

RLX_FN vf finish_relu(vf x) { return raw_max(splat<vf>(0.0), x); }
RLX_FN vf finish_relu6(vf x) { return raw_min(splat<vf>(6.0), raw_max(splat<vf>(0.0), x)); }
RLX_FN vf finish_hard_swish(vf x) {
  const vf y = (x * (x + splat<vf>(3.0))) * splat<vf>(0.16666666666666666);
  return select(le(x, splat<vf>(-3.0)), splat<vf>(0.0), select(ge(x, splat<vf>(3.0)), x, y));
}

// fn of N vectors: one test serves them all.
template <int N> RLX_FN void finish_all(int32_t fn, vf *s) {
  switch (fn) {
    case kFinishRelu:
#pragma GCC unroll 32
      for (int i = 0; i < N; i++) s[i] = finish_relu(s[i]);
      return;
    case kFinishRelu6:
#pragma GCC unroll 32
      for (int i = 0; i < N; i++) s[i] = finish_relu6(s[i]);
      return;
    case kFinishHardSwish:
#pragma GCC unroll 32
      for (int i = 0; i < N; i++) s[i] = finish_hard_swish(s[i]);
      return;
    default: return;
  }
}
