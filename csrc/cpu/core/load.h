// From words to a program that runs, and its runs.
#pragma once
#include "program.h"

namespace rlx {

int32_t load(rlx_device *, rlx_weights *, const uint32_t *words, uint64_t count, rlx_program **, rlx_program_info *, rlx_error *);
int32_t unload(rlx_program *, rlx_error *);
int32_t arena_open(rlx_program *, rlx_arena **, void **host, rlx_error *);
void arena_close(rlx_arena *);
int32_t run(rlx_program *, const rlx_run_args *);

}  // namespace rlx
