#include "program.h"

namespace rlx {
namespace {

uint64_t align_up(uint64_t n) { return (n + kPieceAlign - 1) / kPieceAlign * kPieceAlign; }

void release(rlx_weights *w) {
  Context *c = w->device->context;
  for (uint64_t i = w->first; i < w->pieces.n; i++) heap_free(c, &w->pieces[i]);
  w->pieces.release();
  w->bytes.release();
  memory_free(w);
}

int32_t fill(rlx_weights *w, const rlx_constant *constants, uint32_t count, rlx_error *error) {
  Context *c = w->device->context;
  Array<Copy> copies;
  int32_t code = RLX_OK;
  for (uint32_t i = 0; i < count && code == RLX_OK; i++) {
    Piece piece = {};
    if (constants[i].bytes != 0) code = heap_alloc(c, kOnDevice, constants[i].bytes, &piece, error);
    if (code != RLX_OK) break;
    const bool kept = w->pieces.push(piece);
    if (!kept) heap_free(c, &piece);
    const bool ok = kept && w->bytes.push(constants[i].bytes) && (constants[i].bytes == 0 || copies.push({piece, 0, const_cast<void *>(constants[i].data), constants[i].bytes}));
    if (!ok) code = set_error(error, RLX_NO_MEMORY, -1, "no host memory for constants");
  }
  if (code == RLX_OK) code = copy_through_staging(c, copies.data, copies.n, true, error);
  copies.release();
  return code;
}

// Cuts the program into stretches with their dispatches.
int32_t build(rlx_program *p, rlx_error *error) {
  for (uint32_t i = 0; i < p->num_commands;) {
    if (p->decoded(i).staged) {
      i++;
      continue;
    }
    Stretch s = {i, i, uint32_t(p->dispatches.n), 0};
    for (; s.end < p->num_commands && !p->decoded(s.end).staged; s.end++) {
      const int32_t code = dispatch_command(p, p->decoded(s.end), error);
      if (code != RLX_OK) return code;
    }
    s.end_dispatch = uint32_t(p->dispatches.n);
    if (!p->stretches.push(s)) return set_error(error, RLX_NO_MEMORY, -1, "no host memory");
    i = s.end;
  }
  return RLX_OK;
}

// Lays out the device piece of an arena and decides where each input and output is copied.
int32_t place(rlx_program *p, rlx_error *error) {
  const uint64_t inputs = p->slots[RLX_INPUT], outputs = p->slots[RLX_OUTPUT];
  if (inputs + outputs != 0 && p->bound.grow(inputs + outputs) == nullptr) return set_error(error, RLX_NO_MEMORY, -1, "no host memory");
  for (uint64_t i = 0; i < inputs + outputs; i++) p->bound[i] = {0, kNoBinding, kNoBinding};
  for (uint32_t k = 0; k < p->stretches.n; k++)
    for (uint32_t d = p->stretches[k].first_dispatch; d < p->stretches[k].end_dispatch; d++)
      for (uint32_t j = 0; j < p->dispatches[d].bindings; j++) {
        const Binding &b = p->bindings[p->dispatches[d].first_binding + j];
        if (b.slot != RLX_INPUT && b.slot != RLX_OUTPUT) continue;
        Bound &to = p->bound[b.slot == RLX_INPUT ? b.index : inputs + b.index];
        if (b.written) to.download = k;
        else if (to.upload == kNoBinding && to.download == kNoBinding) to.upload = k;  // of an output: a staged command wrote it
      }
  p->words_bytes = align_up(uint64_t(p->words_arena()));
  uint64_t at = p->words_bytes;
  for (uint64_t i = 0; i < inputs + outputs; i++) {
    Bound &b = p->bound[i];
    b.offset = at;
    if (b.upload == kNoBinding && b.download == kNoBinding) continue;  // staged commands alone touch it
    at += align_up(uint64_t(i < inputs ? p->slot_bytes[RLX_INPUT][i] : p->slot_bytes[RLX_OUTPUT][i - inputs]));
    if (at > uint64_t(INT64_MAX) / 2) return set_error(error, RLX_NO_MEMORY, -1, "inputs and outputs of more than %llu bytes", (unsigned long long)at);
  }
  p->device_bytes = at;
  return RLX_OK;
}

int32_t upload_params(rlx_program *p, rlx_error *error) {
  if (p->params.n == 0) return RLX_OK;
  const uint64_t bytes = 4 * p->params.n;
  int32_t code = heap_alloc(p->device->context, kOnDevice, bytes, &p->params_piece, error);
  const Copy copy = {p->params_piece, 0, p->params.data, bytes};
  if (code == RLX_OK) code = copy_through_staging(p->device->context, &copy, 1, true, error);
  return code;
}

void destroy(rlx_program *p) {
  if (p->device != nullptr) heap_free(p->device->context, &p->params_piece);
  p->dispatches.release();
  p->bindings.release();
  p->params.release();
  p->stretches.release();
  p->bound.release();
  free_program(p);
}

}  // namespace

int32_t weights_open(rlx_device *device, rlx_weights *parent, const rlx_constant *constants, uint32_t count, rlx_weights **out, rlx_error *error) {
  const uint64_t first = parent == nullptr ? 0 : parent->count, total = first + count;
  if (total >= RLX_ABSENT) return set_error(error, RLX_BAD_ARGUMENT, -1, "weights_open: %llu constants", (unsigned long long)total);
  rlx_weights *w = static_cast<rlx_weights *>(memory_alloc(sizeof(rlx_weights)));
  if (w == nullptr) return set_error(error, RLX_NO_MEMORY, -1, "no host memory for weights");
  std::memset(static_cast<void *>(w), 0, sizeof *w);
  w->device = device, w->parent = parent;
  w->first = uint32_t(first), w->count = uint32_t(total);
  bool ok = true;
  for (uint64_t i = 0; i < first && ok; i++) ok = w->pieces.push(parent->pieces[i]) && w->bytes.push(parent->bytes[i]);
  if (!ok) w->first = uint32_t(w->pieces.n);  // none of them is its own
  const int32_t code = ok ? fill(w, constants, count, error) : set_error(error, RLX_NO_MEMORY, -1, "no host memory for weights");
  if (code != RLX_OK) {
    release(w);
    return code;
  }
  device->users.fetch_add(1, std::memory_order_relaxed);
  if (parent != nullptr) parent->users.fetch_add(1, std::memory_order_relaxed);
  *out = w;
  return RLX_OK;
}

void weights_close(rlx_weights *w) {
  w->device->users.fetch_sub(1, std::memory_order_release);
  if (w->parent != nullptr) w->parent->users.fetch_sub(1, std::memory_order_release);
  release(w);
}

int32_t load(rlx_device *device, rlx_weights *weights, const uint32_t *words, uint64_t count, rlx_program **out, rlx_program_info *info, rlx_error *error) {
  Decoder d = {};
  d.words = words, d.count = count, d.error = error;
  d.program_bytes = sizeof(rlx_program), d.command_bytes = sizeof(DecodedCommand);
  int32_t code = decode_words(d);
  if (code != RLX_OK) {
    free_decoded(d);
    return code;
  }
  rlx_program *p = static_cast<rlx_program *>(d.program);
  p->device = device, p->weights = p->slots[RLX_CONST] == 0 ? nullptr : weights;
  code = check_constants(*p, weights == nullptr ? nullptr : weights->bytes.data, weights == nullptr ? 0 : weights->count, error);
  if (code == RLX_OK && p->slots[RLX_STATE] != 0) code = set_error(error, RLX_UNSUPPORTED, -1, "states are not supported");
  if (code == RLX_OK) code = build(p, error);
  if (code == RLX_OK) code = place(p, error);
  if (code == RLX_OK) code = upload_params(p, error);
  if (code != RLX_OK) {
    destroy(p);
    return code;
  }
  device->users.fetch_add(1, std::memory_order_relaxed);
  if (p->weights != nullptr) p->weights->users.fetch_add(1, std::memory_order_relaxed);
  info->arena_bytes = p->device_bytes;
  info->native_bytes = program_bytes(p) + p->params_piece.bytes;
  info->commands = p->num_commands;
  *out = p;
  return RLX_OK;
}

void unload(rlx_program *p) {
  if (p->weights != nullptr) p->weights->users.fetch_sub(1, std::memory_order_release);
  p->device->users.fetch_sub(1, std::memory_order_release);
  destroy(p);
}

}  // namespace rlx
