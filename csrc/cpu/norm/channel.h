// channel.h: what the files of LayerNorm2d, GroupNorm and BatchNormInference share. Operands are contiguous.
#pragma once
#include "norm.h"

namespace rlx {
namespace norm {

// x as [items, channels, points]: points are what lies behind the channel axis, items what lies before it.
struct ChannelPlan {
  int64_t items = 1, channels = 0, points = 1;
  int64_t groups = 1;  // of GroupNorm
  double eps = 0;
};

inline ChannelPlan channel_plan(const Call &c) {
  ChannelPlan p;
  int axis = 1;
  if (c.cmd->op == RLX_OP_BatchNormInference) {
    const rlx_BatchNormAttrs &a = c.attrs<rlx_BatchNormAttrs>();
    axis = axis_of(a.axis, c.in(0)), p.eps = a.eps;
  } else if (c.cmd->op == RLX_OP_GroupNorm) {
    p.groups = c.attrs<rlx_GroupNormAttrs>().num_groups, p.eps = c.attrs<rlx_GroupNormAttrs>().eps;
  } else {
    p.eps = c.attrs<rlx_LayerNorm2dAttrs>().eps;
  }
  for (int d = 0; d < axis; d++) p.items *= c.in(0).dims[d];
  p.channels = c.in(0).dims[axis];
  for (int d = axis + 1; d < int(c.in(0).rank); d++) p.points *= c.in(0).dims[d];
  return p;
}

constexpr int64_t SIDE = 64;  // positions that LayerNorm2d normalises beside each other

inline int64_t sides(const ChannelPlan &p) { return (p.points + SIDE - 1) / SIDE; }

}  // namespace norm
}  // namespace rlx
