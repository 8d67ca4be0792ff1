// Constants of a program and their packed forms, shared by every load.
#pragma once
#include "program.h"

namespace rlx {

int32_t weights_open(rlx_device *, rlx_weights *parent, const rlx_constant *, uint32_t count, rlx_weights **, rlx_error *);
int32_t weights_close(rlx_weights *, rlx_error *);

// The packed form of constant operand o in the given layout; *fresh says that the caller must fill it. The root's lock is held.
void *weights_packed(rlx_weights *, const Operand &o, uint64_t layout, int64_t bytes, bool *fresh);

// Whether there is room for another packed form of constant operand o, or it has one. The root's lock is held.
bool weights_may_pack(const rlx_weights *, const Operand &o);

// The fresh entries are filled now; or, if not ok, they never will be and are dropped. The root's lock is held.
void weights_settle(rlx_weights *, bool ok);

}  // namespace rlx
