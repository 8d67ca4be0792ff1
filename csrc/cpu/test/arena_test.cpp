#include "../core/rlx_begin.h"

// Tests the rules of the ABI that hold before any command runs: whose arena a run brings, how long it lives, what may be copied into it, and
// which commands are a stretch.
#include <stdio.h>

#include "../../common/memory.h"
#include "../core/kernel.h"

extern "C" const rlx_backend *rlx_backend_cpu(void);

namespace {

const rlx_backend *backend;
int failures;

void check(bool ok, const char *what, const char *text = "") {
  if (ok) return;
  failures++;
  fprintf(stderr, "FAIL %s %s\n", what, text);
}

// A program of copies of 8 bytes. Staged commands copy too.
struct Words {
  uint32_t w[256];
  uint32_t n = 0;
  void u32(uint32_t v) { w[n++] = v; }
  void i64(int64_t v) { u32(uint32_t(v)), u32(uint32_t(uint64_t(v) >> 32)); }
  void operand(uint32_t slot, int64_t offset) { u32(RLX_I64 | 1 << 8 | slot << 16), u32(0), i64(offset), i64(1), i64(1); }
  void copy(uint32_t to, int64_t to_offset, uint32_t from, int64_t from_offset, uint32_t flags) {
    u32(RLX_OP_Copy | flags), u32(3 + 2 * 8), u32(1 | 1 << 16);
    operand(to, to_offset), operand(from, from_offset);
  }
  void header(int64_t arena, uint32_t commands) {
    u32(RLX_WORDS_MAGIC), u32(RLX_WORDS_VERSION), i64(int64_t(backend->table_hash)), i64(arena);
    u32(1), u32(1), u32(0), u32(0), u32(commands);
    for (int i = 0; i < 2; i++) u32(RLX_I64 | 1 << 8), i64(1);
  }
};

// input -> arena 0, [arena 0 -> 16], [16 -> 8], arena 8 -> output, with the staged commands in brackets.
Words two_stretches() {
  Words w;
  w.header(24, 4);
  w.copy(RLX_ARENA, 0, RLX_INPUT, 0, 0);
  w.copy(RLX_ARENA, 16, RLX_ARENA, 0, RLX_STAGED);
  w.copy(RLX_ARENA, 8, RLX_ARENA, 16, RLX_STAGED);
  w.copy(RLX_OUTPUT, 0, RLX_ARENA, 8, 0);
  return w;
}

struct Loaded {
  rlx_program *program = nullptr;
  rlx_arena *arena = nullptr;
  char *host = nullptr;
};

Loaded load(rlx_device *device) {
  const Words w = two_stretches();
  Loaded l;
  rlx_error e = {};
  rlx_program_info info = {};
  void *host = nullptr;
  check(backend->load(device, nullptr, w.w, w.n, &l.program, &info, &e) == RLX_OK, "load", e.text);
  check(l.program != nullptr && backend->arena_open(l.program, &l.arena, &host, &e) == RLX_OK, "arena_open", e.text);
  check(info.commands == 4 && info.arena_bytes >= 24 && host != nullptr && (reinterpret_cast<uintptr_t>(host) & 63) == 0, "an aligned arena in host memory");
  l.host = static_cast<char *>(host);
  return l;
}

void stretches(const Loaded &l) {
  int64_t in = 0x0123456789abcdef, out = 0;
  void *inputs[] = {&in}, *outputs[] = {&out};
  rlx_error e = {};
  rlx_run_args args = {};
  args.size = sizeof args, args.inputs = inputs, args.outputs = outputs, args.arena = l.arena, args.error = &e;
  const struct { uint32_t first, count; bool ok; } list[] = {{0, 1, true},  {2, 0, true},  {3, 1, true},  {0, 0, false}, {0, 2, false}, {0, 4, false}, {1, 0, false},
                                                             {1, 1, false}, {2, 1, false}, {2, 2, false}, {3, 0, false}, {3, 2, false}, {4, 0, false}, {5, 0, false},
                                                             {0xffffffff, 2, false}, {3, 0xffffffff, false}};
  for (const auto &c : list) {
    args.first = c.first, args.count = c.count;
    const int32_t code = backend->run(l.program, &args);
    check(code == (c.ok ? RLX_OK : RLX_BAD_ARGUMENT), "a stretch", e.text);
    if (c.first == 0 && c.ok) std::memcpy(l.host + 8, l.host, 8);  // what the host does for the two staged commands
  }
  check(out == in, "a value crosses two stretches");
}

void ownership(rlx_device *device, const Loaded &l) {
  const Loaded other = load(device);
  int64_t in = 1, out = 0;
  void *inputs[] = {&in}, *outputs[] = {&out};
  rlx_error e = {};
  rlx_run_args args = {};
  args.size = sizeof args, args.count = 1, args.inputs = inputs, args.outputs = outputs, args.error = &e;
  check(backend->run(l.program, &args) == RLX_BAD_ARGUMENT, "a run without an arena is refused");
  args.arena = other.arena;
  check(backend->run(l.program, &args) == RLX_BAD_ARGUMENT, "an arena of another program is refused");
  args.arena = l.arena, args.size--;
  check(backend->run(l.program, &args) == RLX_BAD_ARGUMENT, "arguments of another size are refused");
  check(backend->unload(other.program, &e) == RLX_BAD_ARGUMENT, "a program with an open arena is not unloaded");
  check(backend->close(device, &e) == RLX_BAD_ARGUMENT, "a device with a program is not closed");
  check(backend->arena_close(other.arena, &e) == RLX_OK && backend->unload(other.program, &e) == RLX_OK, "close, then unload", e.text);
}

// Regions of `room` bytes of host memory at most: what is refused must not be touched.
void copies(const Loaded &l) {
  char host[24] = {};
  const struct { uint64_t offset, bytes; bool memory, ok; } list[] = {
      {0, 24, true, true},  {8, 16, true, true},   {24, 0, false, true},          {0, 25, true, false},          {8, 17, true, false},
      {25, 0, false, false}, {0, 8, false, false}, {UINT64_MAX - 7, 16, true, false}, {16, UINT64_MAX - 7, true, false}, {UINT64_MAX, 1, true, false}};
  rlx_error e = {};
  for (const auto &c : list) {
    const rlx_region regions[2] = {{0, 0, nullptr}, {c.offset, c.bytes, c.memory ? host : nullptr}};
    const int32_t want = c.ok ? RLX_OK : RLX_BAD_ARGUMENT;
    check(backend->arena_write(l.arena, regions, 2, &e) == want && backend->arena_read(l.arena, regions, 2, &e) == want, "bounds of a region", e.text);
  }
  char from[16] = "fifteen letters", to[16] = {};
  const rlx_region written[2] = {{8, 10, from}, {18, 6, from + 10}}, read = {8, 16, to};
  check(backend->arena_write(l.arena, written, 2, &e) == RLX_OK && std::memcmp(l.host + 8, from, 16) == 0, "arena_write", e.text);
  check(backend->arena_read(l.arena, &read, 1, &e) == RLX_OK && std::memcmp(to, from, 16) == 0, "arena_read", e.text);
  check(backend->arena_read(l.arena, nullptr, 0, &e) == RLX_OK && backend->arena_read(l.arena, nullptr, 1, &e) == RLX_BAD_ARGUMENT, "a list that is missing");
}

}  // namespace

int main() {
  backend = rlx_backend_cpu();
  const rlx_open_options open = {sizeof open, 1, "", 0};
  rlx_device *device = nullptr;
  rlx_error e = {};
  check(backend->open(0, &open, &device, &e) == RLX_OK, "open", e.text);
  const rlx_capability *list = nullptr;
  uint32_t count = 0;
  check(backend->device_capabilities(device, &list, &count, &e) == RLX_OK && list == backend->capabilities && count == backend->num_capabilities && count > 0, "capabilities of a device");
  const uint64_t before = rlx::memory_bytes();
  const Loaded l = load(device);
  if (failures == 0) stretches(l), ownership(device, l), copies(l);
  check(backend->arena_close(l.arena, &e) == RLX_OK && backend->unload(l.program, &e) == RLX_OK, "unload", e.text);
  check(rlx::memory_bytes() == before, "memory comes back");
  check(backend->close(device, &e) == RLX_OK, "close", e.text);
  printf("arena_test: %d failures\n", failures);
  return failures != 0;
}
