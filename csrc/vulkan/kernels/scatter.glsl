// scatter.glsl: a workgroup makes a row of result 0 of what stood there and of all updates that go to it, in their order. So the updates of
// an element are those of one invocation, whose order does not depend on the device. The includer defines, for update u of the updates,
//   uint target_of(uint u, uint row)   its column in the row, or WHOLE_ROW, or NOWHERE
//   STORE update_of(uint u, uint row, uint column)
//   STORE base_of(uint row, uint column)
// and calls scatter_row.
#ifndef RLX_SCATTER_GLSL
#define RLX_SCATTER_GLSL
#include "combine.glsl"
#include "reduce.glsl"

#define NOWHERE 0xffffffffu
#define WHOLE_ROW 0xfffffffeu

shared uint targets[LOCAL];
shared uint hits[LOCAL / 32]; // a bit for each of the targets that is in the row

uint target_of(uint u, uint row);
STORE update_of(uint u, uint row, uint column);
STORE base_of(uint row, uint column);

// The targets of LOCAL updates from first on, for the workgroup. Holds barriers, one before it writes.
void load_targets(uint first, uint updates, uint row) {
  const uint me = gl_LocalInvocationID.x, u = first + me;
  barrier();
  if (me < LOCAL / 32) hits[me] = 0;
  barrier();
  targets[me] = u < updates ? target_of(u, row) : NOWHERE;
  if (targets[me] != NOWHERE) atomicOr(hits[me / 32], 1u << (me % 32));
  barrier();
}

void scatter_row(uint how, uint updates) {
  const uint row = group_unit(), columns = last_dim(0);
  if (row >= P[P_UNITS] || group_stopped()) return;
  for (uint start = 0; start < columns; start += LOCAL) {
    const uint column = start + gl_LocalInvocationID.x;
    const bool mine = column < columns;
    Cell cell;
    if (mine) cell = cell_of(base_of(row, column));
    for (uint first = 0; first < updates; first += LOCAL) {
      load_targets(first, updates, row);
      for (uint w = 0; w < LOCAL / 32; w++)
        for (uint rest = mine ? hits[w] : 0; rest != 0; rest &= rest - 1) {
          const uint u = w * 32 + uint(findLSB(rest));
          if (targets[u] == column || targets[u] == WHOLE_ROW) update(cell, how, update_of(first + u, row, column));
        }
    }
    if (mine) y[offset_of(0) + row * columns + column] = cell.bits;
  }
  uint turns = 0; // a loop of two turns that comes last ends early if one before it did
  while (turns <= P[P_RESULTS]) turns++;
  expect_end(turns, P[P_RESULTS] + 1);
}

#endif
