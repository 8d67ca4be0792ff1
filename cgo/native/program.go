//go:build cgo && !windows

package native

/*
#include <stdlib.h>
#include "rlx.h"

// What a run needs outside Go memory: it belongs to an arena, so that a run allocates nothing.
typedef struct rlx_frame {
  rlx_run_args args;
  rlx_error error;
  uint32_t cancel;
  void **slots; // inputs, outputs, states: one array
} rlx_frame;

static rlx_frame *rlx_frame_new(uint32_t inputs, uint32_t outputs, uint32_t states, rlx_arena *arena) {
  const size_t n = (size_t)inputs + outputs + states;
  rlx_frame *f = (rlx_frame *)calloc(1, sizeof(rlx_frame) + n * sizeof(void *));
  if (f == NULL) return NULL;
  f->slots = (void **)(f + 1);
  f->args.size = sizeof f->args;
  f->args.inputs = f->slots;
  f->args.outputs = f->slots + inputs;
  f->args.states = f->slots + inputs + outputs;
  f->args.arena = arena;
  f->args.error = &f->error;
  f->args.cancel = &f->cancel;
  return f;
}

// Up to eight bindings come as arguments, because cgo pins these itself; with more, n is 0 and Go has pinned and stored them.
static int32_t rlx_shim_run(uintptr_t backend, uintptr_t program, uintptr_t frame, uint32_t first, uint32_t count, uint64_t *profile,
                            uint32_t *counters, int32_t threads, uint64_t seed, int32_t n, char *b0, char *b1, char *b2, char *b3, char *b4,
                            char *b5, char *b6, char *b7) {
  rlx_frame *f = (rlx_frame *)frame;
  char *const b[8] = {b0, b1, b2, b3, b4, b5, b6, b7};
  for (int32_t i = 0; i < n; i++) f->slots[i] = b[i];
  f->args.first = first;
  f->args.count = count;
  f->args.profile = profile;
  f->args.counters = counters;
  f->args.max_threads = threads;
  f->args.seed = seed;
  return ((const rlx_backend *)backend)->run((rlx_program *)program, &f->args);
}

static int32_t rlx_shim_load(const rlx_backend *b, rlx_device *d, rlx_weights *w, const uint32_t *words, uint64_t n, rlx_program **p, rlx_program_info *i, rlx_error *e) {
  return b->load(d, w, words, n, p, i, e);
}
static int32_t rlx_shim_unload(const rlx_backend *b, rlx_program *p, rlx_error *e) { return b->unload(p, e); }
static int32_t rlx_shim_arena_open(const rlx_backend *b, rlx_program *p, rlx_arena **a, void **host, rlx_error *e) { return b->arena_open(p, a, host, e); }
static int32_t rlx_shim_arena_close(const rlx_backend *b, rlx_arena *a, rlx_error *e) { return b->arena_close(a, e); }
static int32_t rlx_shim_arena_copy(const rlx_backend *b, rlx_arena *a, int32_t write, const rlx_region *r, uint32_t n, rlx_error *e) {
  return (write ? b->arena_write : b->arena_read)(a, r, n, e);
}

#cgo noescape rlx_shim_run
#cgo nocallback rlx_shim_run
*/
import "C"

import (
	"errors"
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/rlx-ml/rlx-go/rlx/backend"
	"github.com/rlx-ml/rlx-go/rlx/ir"
)

type program struct {
	d          *device
	p          *C.rlx_program
	arenaBytes int64
	wordsArena int64
	loaded     int64 // bytes that the library holds of the commands
	commands   int
	sizes      [3][]int64 // bytes of each input, output and state
}

func (d *device) Load(w backend.Weights, words []uint32) (backend.Program, error) {
	from, err := d.weights(w)
	if err != nil {
		return nil, err
	}
	p := &program{d: d}
	var info C.rlx_program_info
	var e C.rlx_error
	if code := C.rlx_shim_load(d.b.t, d.p, from, (*C.uint32_t)(unsafe.Pointer(unsafe.SliceData(words))), C.uint64_t(len(words)), &p.p, &info, &e); code != C.RLX_OK {
		return nil, d.b.failure(code, &e)
	}
	p.arenaBytes, p.loaded, p.commands = int64(info.arena_bytes), int64(info.native_bytes), int(info.commands)
	p.readSizes(words)
	return p, nil
}

// readSizes takes the sizes of the arena and of the bindings out of words that the library accepted.
func (p *program) readSizes(words []uint32) {
	p.wordsArena = int64(words[4]) | int64(words[5])<<32
	at := 11
	for group, count := range words[6:10] { // inputs, outputs, constants, states
		for range count {
			head := words[at]
			at++
			n := int64(ir.DType(head).Size())
			for range head >> 8 {
				n *= int64(uint64(words[at]) | uint64(words[at+1])<<32)
				at += 2
			}
			if group != 2 {
				k := min(group, 2)
				p.sizes[k] = append(p.sizes[k], n)
			}
		}
	}
}

func (p *program) ArenaBytes() int64 { return p.arenaBytes }

// NativeBytes is what the library holds of the program, without arenas.
func (p *program) NativeBytes() int64 {
	if p.p == nil {
		return 0
	}
	return p.loaded
}

func (p *program) Close() error {
	if p.p == nil {
		return nil
	}
	var e C.rlx_error
	if code := C.rlx_shim_unload(p.d.b.t, p.p, &e); code != C.RLX_OK {
		return p.d.b.failure(code, &e)
	}
	p.p = nil
	return nil
}

// arena is what one run at a time needs, and its own Cancel, whose word lies in C memory.
type arena struct {
	p     *program
	host  []byte           // nil where the host cannot reach it
	frame *C.rlx_frame     // nil when closed
	pins  []runtime.Pinner // for more bindings than go to C as arguments
}

func (p *program) NewArena() (backend.Arena, error) {
	a, err := p.newArena()
	if err != nil {
		return nil, err
	}
	return a, nil
}

func (p *program) newArena() (*arena, error) {
	if p.p == nil {
		return nil, p.d.b.misuse("the program is closed")
	}
	var handle *C.rlx_arena
	var host unsafe.Pointer
	var e C.rlx_error
	if code := C.rlx_shim_arena_open(p.d.b.t, p.p, &handle, &host, &e); code != C.RLX_OK {
		return nil, p.d.b.failure(code, &e)
	}
	a := &arena{p: p}
	a.frame = C.rlx_frame_new(C.uint32_t(len(p.sizes[0])), C.uint32_t(len(p.sizes[1])), C.uint32_t(len(p.sizes[2])), handle)
	if a.frame == nil {
		C.rlx_shim_arena_close(p.d.b.t, handle, &e)
		return nil, p.d.b.noMemory("the pointers of a run")
	}
	if host != nil {
		a.host = unsafe.Slice((*byte)(host), p.hostBytes())
	}
	if n := len(p.sizes[0]) + len(p.sizes[1]) + len(p.sizes[2]); n > direct {
		a.pins = make([]runtime.Pinner, (n+pinRefs-1)/pinRefs)
	}
	return a, nil
}

// hostBytes is how much of an arena lies at its host address.
func (p *program) hostBytes() int64 {
	if p.d.b.stage {
		return p.wordsArena
	}
	return p.arenaBytes
}

func (a *arena) Bytes() []byte { return a.host }

func (a *arena) Close() error {
	if a.frame == nil {
		return nil
	}
	var e C.rlx_error
	if code := C.rlx_shim_arena_close(a.p.d.b.t, a.frame.args.arena, &e); code != C.RLX_OK {
		return a.p.d.b.failure(code, &e)
	}
	C.free(unsafe.Pointer(a.frame))
	a.frame, a.host = nil, nil
	return nil
}

func (a *arena) Write(regions []backend.Region) error { return a.copy(regions, 1) }
func (a *arena) Read(regions []backend.Region) error  { return a.copy(regions, 0) }

// copy pins the host memory of regions and hands the library their list in C memory.
func (a *arena) copy(regions []backend.Region, write C.int32_t) error {
	b := a.p.d.b
	if a.frame == nil {
		return b.misuse("the arena is closed")
	}
	if len(regions) == 0 {
		return nil
	}
	list := (*C.rlx_region)(C.calloc(C.size_t(len(regions)), C.sizeof_rlx_region))
	if list == nil {
		return b.noMemory("the list of regions")
	}
	defer C.free(unsafe.Pointer(list))
	var pin runtime.Pinner
	defer pin.Unpin()
	for i, r := range regions {
		if r.Offset < 0 {
			return b.misuse("region %d begins at byte %d of the arena", i, r.Offset)
		}
		entry := &unsafe.Slice(list, len(regions))[i]
		entry.offset, entry.bytes = C.uint64_t(r.Offset), C.uint64_t(len(r.Host))
		if len(r.Host) > 0 {
			pin.Pin(&r.Host[0])
			entry.host = unsafe.Pointer(&r.Host[0])
		}
	}
	if code := C.rlx_shim_arena_copy(b.t, a.frame.args.arena, write, list, C.uint32_t(len(regions)), &a.frame.error); code != C.RLX_OK {
		return b.failure(code, &a.frame.error)
	}
	return nil
}

// Cancel, Set, Reset and IsSet are used while the arena is open.
func (a *arena) Cancel() backend.Cancel { return a }

func (a *arena) word() *uint32 { return (*uint32)(unsafe.Pointer(&a.frame.cancel)) }
func (a *arena) Set()          { atomic.StoreUint32(a.word(), 1) }
func (a *arena) Reset()        { atomic.StoreUint32(a.word(), 0) }
func (a *arena) IsSet() bool   { return atomic.LoadUint32(a.word()) != 0 }

const (
	direct  = 8 // bindings that go to C as arguments
	pinRefs = 5 // objects that a Pinner holds without an allocation
)

func (p *program) Run(a *backend.RunArgs) error {
	mem, own := a.Arena.(*arena)
	if !own || mem.p != p || mem.frame == nil || p.p == nil {
		return p.runWith(a)
	}
	if err := p.fits(a); err != nil {
		return err
	}
	var b [direct]*C.char
	n := 0
	if len(a.Inputs)+len(a.Outputs)+len(a.States) <= direct {
		for _, group := range [...][][]byte{a.Inputs, a.Outputs, a.States} {
			for _, s := range group {
				b[n] = (*C.char)(unsafe.Pointer(unsafe.SliceData(s)))
				n++
			}
		}
	} else {
		mem.store(a)
	}
	code := C.rlx_shim_run(C.uintptr_t(uintptr(unsafe.Pointer(p.d.b.t))), C.uintptr_t(uintptr(unsafe.Pointer(p.p))), C.uintptr_t(uintptr(unsafe.Pointer(mem.frame))),
		C.uint32_t(a.First), C.uint32_t(a.Count), (*C.uint64_t)(unsafe.Pointer(unsafe.SliceData(a.Profile))), (*C.uint32_t)(unsafe.Pointer(unsafe.SliceData(a.Counters))),
		C.int32_t(min(a.Threads, 1<<20)), C.uint64_t(a.Seed), C.int32_t(n), b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7])
	for i := range mem.pins {
		mem.pins[i].Unpin()
	}
	if code != C.RLX_OK {
		return p.d.b.failure(code, &mem.frame.error)
	}
	return nil
}

// store pins the bindings and writes their addresses to C memory.
func (a *arena) store(args *backend.RunArgs) {
	slots := unsafe.Slice((*uintptr)(unsafe.Pointer(a.frame.slots)), len(args.Inputs)+len(args.Outputs)+len(args.States))
	n := 0
	for _, group := range [...][][]byte{args.Inputs, args.Outputs, args.States} {
		for _, s := range group {
			slots[n] = 0
			if len(s) > 0 {
				a.pins[n/pinRefs].Pin(&s[0])
				slots[n] = uintptr(unsafe.Pointer(&s[0]))
			}
			n++
		}
	}
}

// runWith is Run without an arena of this program: it brings one for this run.
func (p *program) runWith(a *backend.RunArgs) error {
	if p.p == nil {
		return p.d.b.misuse("the program is closed")
	}
	if a.Arena != nil {
		return p.d.b.misuse("the arena is closed or of another program")
	}
	if a.First != 0 || a.Count != p.commands {
		return p.d.b.misuse("commands %d to %d of %d without an arena: only a run of all commands brings its own", a.First, a.First+a.Count, p.commands)
	}
	mem, err := p.newArena()
	if err != nil {
		return err
	}
	with := *a
	with.Arena = mem
	return errors.Join(p.Run(&with), mem.Close())
}

// fits checks that the memory of a run is as large as the words say, and that the stretch lies in the program; where a stretch may begin
// and end is for the library, which knows the staged commands.
func (p *program) fits(a *backend.RunArgs) error {
	for k, group := range [...][][]byte{a.Inputs, a.Outputs, a.States} {
		if len(group) != len(p.sizes[k]) {
			return p.d.b.misuse("got %d %ss, expected %d", len(group), bindings[k], len(p.sizes[k]))
		}
		for i, s := range group {
			if int64(len(s)) < p.sizes[k][i] {
				return p.d.b.misuse("%s %d has %d bytes, expected %d", bindings[k], i, len(s), p.sizes[k][i])
			}
		}
	}
	if a.First < 0 || a.Count < 0 || a.Count > p.commands-a.First {
		return p.d.b.misuse("%d commands from %d on, the program has %d", a.Count, a.First, p.commands)
	}
	if a.Profile != nil && len(a.Profile) < 2*a.Count || a.Counters != nil && len(a.Counters) < a.Count {
		return p.d.b.misuse("profile of %d and counters of %d entries, expected %d and %d", len(a.Profile), len(a.Counters), 2*a.Count, a.Count)
	}
	return nil
}

var bindings = [...]string{"input", "output", "state"}
