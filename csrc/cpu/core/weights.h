// Constants of a program and their packed forms, shared by every load.
#pragma once
#include "program.h"

namespace rlx {

int32_t weights_open(rlx_device *, const rlx_constant *, uint32_t count, rlx_weights **, rlx_error *);
int32_t weights_close(rlx_weights *, rlx_error *);

// The packed form of constant operand o in the given layout; *fresh says that the caller must fill it. The lock is held.
void *weights_packed(rlx_weights *, const Operand &o, uint64_t layout, int64_t bytes, bool *fresh);

// Drops the entries that were added since first was the head of the list: a preparation failed before it filled them. The lock is held.
void weights_drop_until(rlx_weights *, Packed *first);

}  // namespace rlx
