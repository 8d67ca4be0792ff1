/* rlx.h: the C ABI between the Go runtime and a native backend.
 *
 * A library exports one symbol, `const rlx_backend *rlx_backend_<name>(void)`. Every function returns an rlx_status and fills the
 * caller's rlx_error where it is not RLX_OK. Nothing exits, aborts, throws, keeps thread-local errors or changes the FP environment.
 *
 * Command words (little-endian uint32_t, made by rlx/internal/prog):
 *
 *   header   magic, version, table hash (2), arena bytes (2), inputs, outputs, constants, states, commands
 *   types    one for each input, output, constant and state, in this order: dtype | rank << 8, dims (2 each)
 *   command  op (RLX_STAGED set: the host runs it), word count of the whole command, results | operands << 16, then results, operands,
 *            attributes
 *   operand  dtype | rank << 8 | slot << 16, index in the slot, byte offset (2), dims (2 each), strides in elements (2 each)
 *            0xffffffff alone for an absent operand
 *
 * Results are contiguous. Operand strides are signed; the offset is that of the element with all indices 0.
 *
 * An attribute that is a sub-graph is a word count (0xffffffff: absent) and the words of its program, header and all. That program has no constants
 * and states of its own: it reads the constants of the program around it. Its inputs and outputs are those of the sub-graph, its arena is
 * memory of the command. It holds no staged commands. */
#ifndef RLX_H
#define RLX_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RLX_ABI 5u
#define RLX_WORDS_MAGIC 0x50584c52u /* "RLXP" */
#define RLX_WORDS_VERSION 1u
#define RLX_ABSENT 0xffffffffu
#define RLX_MAX_RANK 8
/* In the op word of a command: the host runs it between runs of the others. Load checks its words and needs no kernel for it. */
#define RLX_STAGED 0x80000000u

typedef enum rlx_status {
  RLX_OK = 0,
  RLX_BAD_WORDS = 1,   /* load: the words break a rule */
  RLX_UNSUPPORTED = 2, /* load: no kernel for an op and dtype */
  RLX_NO_MEMORY = 3,
  RLX_NO_DEVICE = 4,
  RLX_BAD_VALUE = 5, /* run: data violate a constraint of an op, such as an index out of range */
  RLX_CANCELLED = 6,
  RLX_DEVICE_LOST = 7,
  RLX_BAD_ARGUMENT = 8, /* a call breaks the rules of this header */
  RLX_DRIVER = 9 /* a driver's call failed in a way of its own, or its validation found a defect of the backend */
} rlx_status;

/* What probe measures. Peaks of arithmetic, in 1e9 operations a second: of the dot products of the instruction set in use where it has them;
 * without one, bf16 is held against f32, and i8 against sums of pairs of bytes. Traffic with memory, in 1e9 bytes a second: reads of a buffer,
 * and copies of its first half over the second, through the caches or past them, which count both. */
typedef enum rlx_probe {
  RLX_PROBE_F32 = 0,
  RLX_PROBE_F64 = 1,
  RLX_PROBE_BF16 = 2,
  RLX_PROBE_I8 = 3,
  RLX_PROBE_READ = 4,
  RLX_PROBE_COPY = 5,
  RLX_PROBE_COPY_STREAMING = 6
} rlx_probe;

typedef enum rlx_slot { RLX_ARENA = 0, RLX_INPUT = 1, RLX_OUTPUT = 2, RLX_CONST = 3, RLX_STATE = 4 } rlx_slot;

typedef struct rlx_error {
  int32_t code;    /* rlx_status */
  int32_t command; /* index of the command, -1 if none */
  char text[240];  /* NUL-terminated; "C7: index 9 out of range ..." for RLX_BAD_VALUE */
} rlx_error;

/* An op that runs natively, for each dtype in the bit set (1 << rlx_dtype, of the first operand, or of the first result without one). */
typedef struct rlx_capability {
  uint32_t op;
  uint32_t dtypes;
  uint32_t flags;
} rlx_capability;

enum { RLX_CAP_STRIDED = 1u }; /* operands may have any strides; without it they must be contiguous */

typedef struct rlx_device rlx_device;
typedef struct rlx_weights rlx_weights;
typedef struct rlx_program rlx_program;
typedef struct rlx_arena rlx_arena; /* what one run at a time needs beside the program: its arena and whatever hangs on it */

typedef struct rlx_open_options {
  uint32_t size;       /* sizeof(rlx_open_options) of the caller */
  int32_t max_threads; /* threads that may compute, the caller included; at least 1 */
  const char *isa;     /* CPU: "" or NULL: the best one; else the name of a lower one. Other backends ignore it */
  uint32_t lean;       /* 1: no second form of constants, such as one packed for a kernel */
} rlx_open_options;

typedef struct rlx_device_info {
  char name[64];
  char isa[48]; /* instruction set, or version of the driver's interface */
  int32_t threads;
  uint64_t native_bytes;     /* memory that the library holds now, all devices together */
  uint64_t max_tensor_bytes; /* the largest tensor that a command may touch; 0: no limit of the device. Larger ones are staged */
  uint32_t runs_inline;      /* 1: a run computes on its caller's thread and waits for no device */
} rlx_device_info;

typedef struct rlx_constant {
  const void *data; /* host memory, contiguous; read during weights_open only, unless it stays */
  uint64_t bytes;
  /* 1: the memory stays as it is until weights_close returns, or weights_trim says that it is not needed: a backend may use it in place.
   * 2: as 1, but the caller means to free it: a backend copies what it would use in place. A backend without weights_trim copies at once */
  uint32_t stays;
} rlx_constant;

typedef struct rlx_program_info {
  uint64_t arena_bytes; /* what an rlx_arena takes: the words' arena, the kernels' scratch, copies of bindings on the device */
  uint64_t native_bytes;
  uint32_t commands;
} rlx_program_info;

/* A piece of the words' arena and host memory to copy from or to. */
typedef struct rlx_region {
  uint64_t offset, bytes; /* in the arena */
  void *host;
} rlx_region;

/* One run of a stretch of commands. Where a program has staged commands, a step is several runs on one arena, in order: each begins at
 * command 0 or behind a staged one, ends before a staged one or at the end, and holds no staged command. */
typedef struct rlx_run_args {
  uint32_t size;
  int32_t max_threads;             /* 0: as opened */
  uint32_t first, count;           /* the commands to run */
  void *const *inputs;             /* one pointer for each input, host memory. A device with memory of its own copies an input in the
                                    * first stretch that reads it */
  void *const *outputs;            /* host memory, complete after the stretch that writes the output; one that a staged command wrote
                                    * is copied to the device in the first stretch that reads it */
  void *const *states;
  rlx_arena *arena;                /* of this program; one run at a time */
  const volatile uint32_t *cancel; /* NULL, or a word that turns non-zero to stop the run */
  uint64_t *profile;               /* NULL, or two entries for each command of the stretch: start and end in nanoseconds */
  uint32_t *counters;              /* NULL, or one entry for each command of the stretch: incremented when a native kernel ran */
  uint64_t seed;
  rlx_error *error;
} rlx_run_args;

typedef struct rlx_backend {
  uint32_t abi;  /* RLX_ABI */
  uint32_t size; /* sizeof(rlx_backend) */
  uint64_t table_hash;
  const char *name;
  const rlx_capability *capabilities; /* at best; a device may have fewer, see device_capabilities */
  uint32_t num_capabilities;

  int32_t (*device_count)(int32_t *count, rlx_error *);
  int32_t (*open)(int32_t index, const rlx_open_options *, rlx_device **, rlx_error *);
  int32_t (*close)(rlx_device *, rlx_error *);
  int32_t (*info)(rlx_device *, rlx_device_info *, rlx_error *);
  /* What this device runs natively; the list lives as long as the device. */
  int32_t (*device_capabilities)(rlx_device *, const rlx_capability **, uint32_t *count, rlx_error *);
  /* Constants are numbered from 0; those of a child follow its parent's. A Program opens its weights once; a specialisation with folded
   * constants of its own opens a child, which must be closed before the parent. Packed copies of a constant are cached where it lives. */
  int32_t (*weights_open)(rlx_device *, rlx_weights *parent, const rlx_constant *, uint32_t count, rlx_weights **, rlx_error *);
  int32_t (*weights_close)(rlx_weights *, rlx_error *);
  /* Lets go of what no loaded program reads as it is and a packed copy can give back. where gets one byte for each constant that the weights do
   * not have from a parent: 0: the caller's memory is still needed; else it is not needed any more, and the library has 1: a copy, 2: packed
   * forms alone. Programs may load and run meanwhile. Both functions are NULL where a backend has neither. */
  int32_t (*weights_trim)(rlx_weights *, uint8_t *where, rlx_error *);
  /* The bytes of such a constant, index counted from the first of them. */
  int32_t (*weights_read)(rlx_weights *, uint32_t index, void *to, uint64_t bytes, rlx_error *);
  int32_t (*load)(rlx_device *, rlx_weights *, const uint32_t *words, uint64_t count, rlx_program **, rlx_program_info *, rlx_error *);
  int32_t (*unload)(rlx_program *, rlx_error *);
  /* *host becomes the words' arena, 64-byte aligned, where the host can reach it, else NULL: then staged commands work on memory of the
   * host, and arena_write and arena_read carry what crosses. An arena is closed before its program. */
  int32_t (*arena_open)(rlx_program *, rlx_arena **, void **host, rlx_error *);
  int32_t (*arena_close)(rlx_arena *, rlx_error *);
  int32_t (*arena_write)(rlx_arena *, const rlx_region *, uint32_t count, rlx_error *); /* host to device */
  int32_t (*arena_read)(rlx_arena *, const rlx_region *, uint32_t count, rlx_error *);  /* device to host */
  /* Returns when the work is done. */
  int32_t (*run)(rlx_program *, const rlx_run_args *);
  /* One of the machine's limits (rlx_probe), measured now for about `seconds` with `threads` threads, each with a buffer of `bytes` that peaks
   * of arithmetic ignore. NULL where a backend cannot tell. */
  int32_t (*probe)(rlx_device *, int32_t what, int32_t threads, uint64_t bytes, double seconds, double *rate, rlx_error *);
} rlx_backend;

#ifdef __cplusplus
}
#endif
#endif
