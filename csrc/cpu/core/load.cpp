#include "../core/rlx_begin.h"

#include "../../common/memory.h"
#include "isa.h"
#include "load.h"
#include "registry.h"
#include "weights.h"

namespace rlx {
namespace {

rlx_weights *weights_of(Prepare &p) { return static_cast<rlx_program *>(p.impl)->weights; }

const Operand *constant_operand(Prepare &p, int i) {
  const Command *c = p.cmd;
  if (i < 0 || uint32_t(i) >= c->num_in || !c->in[i].present || c->in[i].slot != RLX_CONST) return nullptr;
  return weights_may_pack(weights_of(p), c->in[i]) ? c->in + i : nullptr;
}

bool is_constant(Prepare &p, int i, bool whole) {
  const Operand *o = constant_operand(p, i);
  return o != nullptr && (!whole || (o->contiguous && uint64_t(o->count) * rlx_dtype_sizes[o->dtype] == weights_of(p)->bytes[o->index]));
}

void *packed(Prepare &p, int i, const PackedForm &form, bool *fresh) {
  const Operand *o = constant_operand(p, i);
  void *data = o == nullptr ? nullptr : weights_packed(weights_of(p), *o, form, fresh);
  if (data != nullptr && i < 32) p.cmd->replaced |= uint32_t(1) << i;
  return data;
}

const void *source(Prepare &p, int i) { return weights_source(weights_of(p), p.cmd->in[i]); }

// Notes the constants that a command reads as they are.
bool note_constants(const rlx_program *p, const Command &c) {
  for (uint32_t k = 0; k < c.num_in; k++) {
    const Operand &o = c.in[k];
    if (!o.present || o.slot != RLX_CONST || p->constants[o.index] != nullptr || (k < 32 && (c.replaced >> k & 1) != 0)) continue;
    if ((p->constants[o.index] = weights_use(p->weights, o.index)) == nullptr) return false;
  }
  return true;
}

// Memory for the constants of a program.
bool open_constants(rlx_program *p) {
  const uint64_t n = p->slots[RLX_CONST];
  if (n == 0) return true;
  p->constants = static_cast<void **>(memory_alloc(n * sizeof(void *)));
  if (p->constants != nullptr) std::memset(p->constants, 0, n * sizeof(void *));
  return p->constants != nullptr;
}

// The lock of the weights' root is held.
void close_constants(rlx_program *p) {
  for (uint32_t i = 0; p->constants != nullptr && i < p->slots[RLX_CONST]; i++)
    if (p->constants[i] != nullptr) weights_unuse(p->weights, i);
  memory_free(p->constants);
}

// Where things lie in the memory of a run, without the kernels' scratch.
void layout(rlx_program *p) {
  uint32_t pointers = 0;
  p->first_update = p->num_commands;
  for (uint32_t i = p->num_commands; i-- > 0;) {
    const Command &c = p->command(i);
    if (c.num_in + c.num_out > pointers) pointers = c.num_in + c.num_out;
    for (uint32_t k = 0; k < c.num_out; k++)
      if (c.out[k].slot == RLX_STATE) p->first_update = i;
  }
  p->pointers_at = align64(p->words_arena());
  p->scratch_at = p->pointers_at + (pointers > kStackPointers ? align64(8 * int64_t(pointers)) : 0);
}

// Picks kernels and lets them prepare; the lock of the weights' root is held.
int32_t bind(rlx_program *p, rlx_error *error);

// Makes the programs of a command's sub-graphs ready; the command's PREPARE may read their sizes then.
int32_t bind_bodies(const rlx_program *p, const Command &c, rlx_error *error) {
  for (uint32_t k = 0; k < num_bodies(c); k++) {
    rlx_program *body = static_cast<rlx_program *>(body_of(c, k));
    layout(body);
    body->device = p->device, body->weights = p->weights, body->constants = p->constants;
    const int32_t code = bind(body, error);
    if (code != RLX_OK) {
      if (error != nullptr) error->command = int32_t(c.index);
      return code;
    }
  }
  return RLX_OK;
}

int32_t bind(rlx_program *p, rlx_error *error) {
  Prepare prep = {nullptr, p->device->threads, isa_active(), p->device->pool, is_constant, packed, source, p};
  int64_t scratch = 0;
  for (uint32_t i = 0; i < p->num_commands; i++) {
    Command &c = p->command(i);
    if (c.staged) continue;
    const int32_t inner = bind_bodies(p, c, error);
    if (inner != RLX_OK) return inner;
    const uint32_t dtype = key_dtype(c);
    if (!registry_find(c.op, dtype, &c.kernel, &c.split))
      return set_error(error, RLX_UNSUPPORTED, int32_t(i), "%s: no kernel for %s", rlx_op_names[c.op], rlx_dtype_names[dtype]);
    const Preparer preparer = registry_prepare(c.op, dtype);
    if (preparer != nullptr) {
      prep.cmd = &c;
      const int32_t code = preparer(prep);
      weights_settle(p->weights, code == RLX_OK);
      if (code != RLX_OK)
        return set_error(error, code, int32_t(i), code == RLX_NO_MEMORY ? "%s: no memory to prepare the kernel" : "%s: the kernel could not be prepared", rlx_op_names[c.op]);
    }
    if (!note_constants(p, c)) return set_error(error, RLX_NO_MEMORY, int32_t(i), "%s: no memory for a constant", rlx_op_names[c.op]);
    if (c.scratch < 0 || c.scratch > INT64_MAX / 4) return set_error(error, RLX_NO_MEMORY, int32_t(i), "%s: scratch of %lld bytes", rlx_op_names[c.op], (long long)c.scratch);
    if (c.scratch > scratch) scratch = c.scratch;
  }
  p->arena_bytes = p->scratch_at + align64(scratch);
  return RLX_OK;
}

}  // namespace

void *Prepare::keep(uint64_t bytes) { return rlx::keep(static_cast<rlx_program *>(impl), bytes); }

int32_t load(rlx_device *device, rlx_weights *weights, const uint32_t *words, uint64_t count, rlx_program **out, rlx_program_info *info, rlx_error *error) {
  Decoder d = {};
  d.words = words, d.count = count, d.error = error;
  d.program_bytes = sizeof(rlx_program), d.command_bytes = sizeof(Command);
  int32_t code = decode_words(d);
  rlx_program *p = static_cast<rlx_program *>(d.program);
  if (code == RLX_OK) code = check_constants(*p, weights == nullptr ? nullptr : weights->bytes, weights == nullptr ? 0 : weights->count, error);
  if (code == RLX_OK) {
    layout(p);
    p->device = device, p->weights = p->slots[RLX_CONST] == 0 ? nullptr : weights;
    if (p->weights != nullptr) pthread_mutex_lock(&p->weights->root->lock);
    code = open_constants(p) ? bind(p, error) : set_error(error, RLX_NO_MEMORY, -1, "no memory for the list of constants");
    if (code != RLX_OK) close_constants(p);
    if (p->weights != nullptr) pthread_mutex_unlock(&p->weights->root->lock);
  }
  if (code != RLX_OK) {
    free_decoded(d);
    return code;
  }
  device->users.fetch_add(1, std::memory_order_relaxed);
  if (p->weights != nullptr) p->weights->users.fetch_add(1, std::memory_order_relaxed);
  info->arena_bytes = uint64_t(p->arena_bytes);
  info->native_bytes = program_bytes(p) + p->slots[RLX_CONST] * sizeof(void *);
  info->commands = p->num_commands;
  *out = p;
  return RLX_OK;
}

int32_t unload(rlx_program *p, rlx_error *error) {
  const int32_t arenas = p->arenas.load(std::memory_order_acquire);
  if (arenas != 0) return set_error(error, RLX_BAD_ARGUMENT, -1, "unload: %d arenas are still open", arenas);
  if (p->weights != nullptr) {
    pthread_mutex_lock(&p->weights->root->lock);
    close_constants(p);
    pthread_mutex_unlock(&p->weights->root->lock);
    p->weights->users.fetch_sub(1, std::memory_order_release);
  }
  p->device->users.fetch_sub(1, std::memory_order_release);
  free_program(p);
  return RLX_OK;
}

int32_t arena_open(rlx_program *p, rlx_arena **out, void **host, rlx_error *error) {
  rlx_arena *a = static_cast<rlx_arena *>(memory_alloc(sizeof(rlx_arena)));
  char *memory = a == nullptr ? nullptr : static_cast<char *>(memory_alloc(uint64_t(p->arena_bytes)));
  if (memory == nullptr) {
    memory_free(a);
    return set_error(error, RLX_NO_MEMORY, -1, "arena_open: no memory for %lld bytes", (long long)p->arena_bytes);
  }
  a->program = p, a->memory = memory;
  p->arenas.fetch_add(1, std::memory_order_relaxed);
  *out = a, *host = memory;
  return RLX_OK;
}

void arena_close(rlx_arena *a) {
  a->program->arenas.fetch_sub(1, std::memory_order_release);
  memory_free(a->memory);
  memory_free(a);
}

}  // namespace rlx
