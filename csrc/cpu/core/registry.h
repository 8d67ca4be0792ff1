// The table of kernels, made from the kernels.h of every family.
#pragma once
#include "kernel.h"

namespace rlx {

typedef int32_t (*Preparer)(Prepare &);

// The kernel for an op and the dtype of its first operand under the selected set, with its split; false if there is none.
bool registry_find(uint32_t op, uint32_t dtype, Kernel *kernel, Splitter *split);

// The PREPARE of an op and dtype, or null.
Preparer registry_prepare(uint32_t op, uint32_t dtype);

// Chooses the best rows for the set (an Isa). Programs keep the kernels of the time they were loaded; not safe beside registry_find.
void registry_select(int isa);

// What the generic rows cover: the same on every machine and under every set.
const rlx_capability *registry_capabilities(uint32_t *count);

}  // namespace rlx
