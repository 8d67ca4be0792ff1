// Constants of a program and their packed forms, shared by every load. A constant that all its readers have a packed form of is not kept beside
// it: the form gives it back when another reader comes.
#pragma once
#include "program.h"

namespace rlx {

int32_t weights_open(rlx_device *, rlx_weights *parent, const rlx_constant *, uint32_t count, rlx_weights **, rlx_error *);
int32_t weights_close(rlx_weights *, rlx_error *);

// As in rlx.h; they take the root's lock. index counts the parent's constants too.
void weights_trim(rlx_weights *, uint8_t *where);
void weights_read(rlx_weights *, uint32_t index, void *to);

// The other functions want the root's lock held.

// The packed form of constant operand o; *fresh says that the caller must fill it.
void *weights_packed(rlx_weights *, const Operand &o, const PackedForm &, bool *fresh);

// Whether there is room for another packed form of constant operand o, or it has one.
bool weights_may_pack(const rlx_weights *, const Operand &o);

// Element 0 of o, to pack it; null when memory runs out. It lives until the next trim.
const void *weights_source(rlx_weights *, const Operand &o);

// The memory of a constant for one more reader, until unuse; null when memory runs out.
void *weights_use(rlx_weights *, uint32_t index);
void weights_unuse(rlx_weights *, uint32_t index);

// The fresh entries are filled now; or, if not ok, they never will be and are dropped.
void weights_settle(rlx_weights *, bool ok);

}  // namespace rlx
