//go:build cgo && !windows

package native

/*
#include <stdlib.h>
#include <string.h>
#include "rlx.h"
#include "rlx_ops_gen.h"

// What a run needs outside Go memory: it belongs to an arena, so that a run allocates nothing.
typedef struct rlx_frame {
  rlx_run_args args;
  rlx_error error;
  uint32_t cancel;
  void **slots; // inputs, outputs, states: one array
} rlx_frame;

static rlx_frame *rlx_frame_new(uint32_t inputs, uint32_t outputs, uint32_t states, void *arena) {
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
static int32_t rlx_shim_run(uintptr_t backend, uintptr_t program, uintptr_t frame, uint64_t *profile, uint32_t *counters,
                            int32_t threads, uint64_t seed, int32_t n, char *b0, char *b1, char *b2, char *b3, char *b4, char *b5, char *b6, char *b7) {
  rlx_frame *f = (rlx_frame *)frame;
  char *const b[8] = {b0, b1, b2, b3, b4, b5, b6, b7};
  for (int32_t i = 0; i < n; i++) f->slots[i] = b[i];
  f->args.profile = profile;
  f->args.counters = counters;
  f->args.max_threads = threads;
  f->args.seed = seed;
  return ((const rlx_backend *)backend)->run((rlx_program *)program, &f->args);
}

static int32_t rlx_shim_count(const rlx_backend *b, int32_t *n, rlx_error *e) { return b->device_count(n, e); }
static int32_t rlx_shim_open(const rlx_backend *b, int32_t i, int32_t threads, const char *isa, rlx_device **d, rlx_error *e) {
  const rlx_open_options o = {sizeof o, threads, isa};
  return b->open(i, &o, d, e);
}
static int32_t rlx_shim_close(const rlx_backend *b, rlx_device *d, rlx_error *e) { return b->close(d, e); }
static int32_t rlx_shim_info(const rlx_backend *b, rlx_device *d, rlx_device_info *i, rlx_error *e) { return b->info(d, i, e); }
static int32_t rlx_shim_alloc(const rlx_backend *b, rlx_device *d, uint64_t bytes, void **p, rlx_error *e) { return b->alloc(d, bytes, p, e); }
static int32_t rlx_shim_free(const rlx_backend *b, rlx_device *d, void *p, rlx_error *e) { return b->free(d, p, e); }
static int32_t rlx_shim_weights_open(const rlx_backend *b, rlx_device *d, rlx_weights *parent, const rlx_constant *c, uint32_t n, rlx_weights **w, rlx_error *e) {
  return b->weights_open(d, parent, c, n, w, e);
}
static int32_t rlx_shim_weights_close(const rlx_backend *b, rlx_weights *w, rlx_error *e) { return b->weights_close(w, e); }
static int32_t rlx_shim_load(const rlx_backend *b, rlx_device *d, rlx_weights *w, const uint32_t *words, uint64_t n, rlx_program **p, rlx_program_info *i, rlx_error *e) {
  return b->load(d, w, words, n, p, i, e);
}
static int32_t rlx_shim_unload(const rlx_backend *b, rlx_program *p, rlx_error *e) { return b->unload(p, e); }
static int32_t rlx_shim_probe(const rlx_backend *b, rlx_device *d, int32_t threads, uint64_t bytes, double seconds, double *gflops, double *gbps, rlx_error *e) {
  return b->probe(d, threads, bytes, seconds, gflops, gbps, e);
}

#cgo noescape rlx_shim_run
#cgo nocallback rlx_shim_run
*/
import "C"

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/rlx-ml/rlx-go/rlx/backend"
	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// New returns the backend behind table, a const rlx_backend *. It only keeps the pointer: what the library must match is checked by Check,
// when the op table is complete. The library's alloc must give host memory.
func New(table unsafe.Pointer) backend.Backend {
	b := &library{t: (*C.rlx_backend)(table)}
	b.check = sync.OnceValue(b.mismatch)
	return b
}

type library struct {
	t     *C.rlx_backend
	check func() error
}

// Name is readable whatever the ABI of the library is: the first fields of the table never change.
func (b *library) Name() string { return C.GoString(b.t.name) }

func (b *library) Check() error { return b.check() }

// mismatch says in what the library differs from this program.
func (b *library) mismatch() error {
	if b.t.abi != C.RLX_ABI {
		return fmt.Errorf("%s: the library has ABI %d, this program %d: build both from one source", b.Name(), b.t.abi, C.RLX_ABI)
	}
	if b.t.size != C.sizeof_rlx_backend {
		return fmt.Errorf("%s: the library's table has %d bytes, this program's %d: build both from one source", b.Name(), b.t.size, C.sizeof_rlx_backend)
	}
	if err := ir.Freeze(); err != nil {
		return fmt.Errorf("%s: %w", b.Name(), err)
	}
	if have, want := uint64(b.t.table_hash), ir.TableHash(); have != want {
		return fmt.Errorf("%s: the library has op table %#016x, this program %#016x: run make generate and build both from one source", b.Name(), have, want)
	}
	one := uint16(1)
	if unsafe.Sizeof(uintptr(0)) != 8 || *(*byte)(unsafe.Pointer(&one)) != 1 {
		return fmt.Errorf("%s: needs a 64-bit little-endian host", b.Name())
	}
	return nil
}

func (b *library) Caps() []backend.Cap {
	if b.Check() != nil {
		return nil
	}
	var caps []backend.Cap
	for _, c := range unsafe.Slice(b.t.capabilities, b.t.num_capabilities) {
		caps = append(caps, backend.Cap{Op: int(c.op), DTypes: uint32(c.dtypes), Strided: c.flags&C.RLX_CAP_STRIDED != 0})
	}
	return caps
}

func (b *library) Devices() ([]backend.DeviceInfo, error) {
	if err := b.Check(); err != nil {
		return nil, err
	}
	var n C.int32_t
	var e C.rlx_error
	if code := C.rlx_shim_count(b.t, &n, &e); code != C.RLX_OK {
		return nil, b.failure(code, &e)
	}
	var infos []backend.DeviceInfo
	for i := range int(n) {
		d, err := b.Open(i, backend.Options{Threads: runtime.GOMAXPROCS(0)})
		if err != nil {
			return infos, err
		}
		infos = append(infos, d.Info())
		if err := d.Close(); err != nil {
			return infos, err
		}
	}
	return infos, nil
}

func (b *library) Open(i int, o backend.Options) (backend.Device, error) {
	if err := b.Check(); err != nil {
		return nil, err
	}
	isa := C.CString(o.ISA)
	defer C.free(unsafe.Pointer(isa))
	d := &device{b: b}
	var e C.rlx_error
	if code := C.rlx_shim_open(b.t, C.int32_t(i), C.int32_t(min(o.Threads, 1<<20)), isa, &d.p, &e); code != C.RLX_OK {
		return nil, b.failure(code, &e)
	}
	var info C.rlx_device_info
	if code := C.rlx_shim_info(b.t, d.p, &info, &e); code != C.RLX_OK {
		C.rlx_shim_close(b.t, d.p, &e)
		return nil, b.failure(code, &e)
	}
	d.info = backend.DeviceInfo{Name: C.GoString(&info.name[0]), ISA: C.GoString(&info.isa[0]), Threads: int(info.threads)}
	return d, nil
}

// failure is the Go error of a status and what the library says about it.
func (b *library) failure(code C.int32_t, e *C.rlx_error) error {
	return &backend.Error{Backend: b.Name(), Code: backend.Code(code), Command: int(e.command), Text: C.GoString(&e.text[0])}
}

// misuse is the error of a call that never reaches the library.
func (b *library) misuse(format string, args ...any) error {
	return &backend.Error{Backend: b.Name(), Code: backend.BadArgument, Command: -1, Text: fmt.Sprintf(format, args...)}
}

type device struct {
	b    *library
	p    *C.rlx_device
	info backend.DeviceInfo
}

func (d *device) Info() backend.DeviceInfo { return d.info }

func (d *device) NativeBytes() int64 {
	var info C.rlx_device_info
	var e C.rlx_error
	if d.p == nil || C.rlx_shim_info(d.b.t, d.p, &info, &e) != C.RLX_OK {
		return 0
	}
	return int64(info.native_bytes)
}

func (d *device) Close() error {
	if d.p == nil {
		return nil
	}
	var e C.rlx_error
	if code := C.rlx_shim_close(d.b.t, d.p, &e); code != C.RLX_OK {
		return d.b.failure(code, &e)
	}
	d.p = nil
	return nil
}

// Probe measures the machine: peak f32 FMA rate in GFLOP/s, and read bandwidth in GB/s of a buffer of the given bytes per thread.
func (d *device) Probe(threads int, bytes uint64, seconds float64) (gflops, gbps float64, err error) {
	if d.p == nil {
		return 0, 0, d.b.misuse("the device is closed")
	}
	var f, g C.double
	var e C.rlx_error
	if code := C.rlx_shim_probe(d.b.t, d.p, C.int32_t(min(threads, 1<<20)), C.uint64_t(bytes), C.double(seconds), &f, &g, &e); code != C.RLX_OK {
		return 0, 0, d.b.failure(code, &e)
	}
	return float64(f), float64(g), nil
}

type weights struct {
	d *device
	p *C.rlx_weights
}

func (d *device) Weights(parent backend.Weights, constants [][]byte) (backend.Weights, error) {
	from, err := d.weights(parent)
	if err != nil {
		return nil, err
	}
	var pin runtime.Pinner
	defer pin.Unpin()
	list := (*C.rlx_constant)(C.calloc(C.size_t(len(constants)+1), C.sizeof_rlx_constant))
	if list == nil {
		return nil, &backend.Error{Backend: d.b.Name(), Code: backend.NoMemory, Command: -1, Text: "no memory for the list of constants"}
	}
	defer C.free(unsafe.Pointer(list))
	for i, c := range constants {
		if len(c) == 0 {
			continue
		}
		pin.Pin(&c[0])
		entry := &unsafe.Slice(list, len(constants))[i]
		entry.data, entry.bytes = unsafe.Pointer(&c[0]), C.uint64_t(len(c))
	}
	w := &weights{d: d}
	var e C.rlx_error
	if code := C.rlx_shim_weights_open(d.b.t, d.p, from, list, C.uint32_t(len(constants)), &w.p, &e); code != C.RLX_OK {
		return nil, d.b.failure(code, &e)
	}
	return w, nil
}

// weights is the library's handle of w, which may be nil.
func (d *device) weights(w backend.Weights) (*C.rlx_weights, error) {
	if d.p == nil {
		return nil, d.b.misuse("the device is closed")
	}
	if w == nil {
		return nil, nil
	}
	own, ok := w.(*weights)
	if !ok || own.d != d || own.p == nil {
		return nil, d.b.misuse("the weights are closed or of another device")
	}
	return own.p, nil
}

func (w *weights) Close() error {
	if w.p == nil {
		return nil
	}
	var e C.rlx_error
	if code := C.rlx_shim_weights_close(w.d.b.t, w.p, &e); code != C.RLX_OK {
		return w.d.b.failure(code, &e)
	}
	w.p = nil
	return nil
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
	p.arenaBytes, p.commands = int64(info.arena_bytes), int(info.commands)
	p.readSizes(words)
	return p, nil
}

type program struct {
	d          *device
	p          *C.rlx_program
	arenaBytes int64
	commands   int
	sizes      [3][]int64 // bytes of each input, output and state
}

// readSizes takes the sizes of the bindings out of words that the library accepted.
func (p *program) readSizes(words []uint32) {
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

// arena is the memory of one run at a time, and its own Cancel, whose word lies in C memory.
type arena struct {
	p     *program
	mem   unsafe.Pointer
	frame *C.rlx_frame
	pins  []runtime.Pinner // for more bindings than go to C as arguments
}

func (p *program) NewArena() (backend.Arena, error) { return p.newArena() }

func (p *program) newArena() (*arena, error) {
	if p.p == nil {
		return nil, p.d.b.misuse("the program is closed")
	}
	a := &arena{p: p}
	var e C.rlx_error
	if code := C.rlx_shim_alloc(p.d.b.t, p.d.p, C.uint64_t(p.arenaBytes), &a.mem, &e); code != C.RLX_OK {
		return nil, p.d.b.failure(code, &e)
	}
	a.frame = C.rlx_frame_new(C.uint32_t(len(p.sizes[0])), C.uint32_t(len(p.sizes[1])), C.uint32_t(len(p.sizes[2])), a.mem)
	if a.frame == nil {
		C.rlx_shim_free(p.d.b.t, p.d.p, a.mem, &e)
		return nil, &backend.Error{Backend: p.d.b.Name(), Code: backend.NoMemory, Command: -1, Text: "no memory for the pointers of a run"}
	}
	if n := len(p.sizes[0]) + len(p.sizes[1]) + len(p.sizes[2]); n > direct {
		a.pins = make([]runtime.Pinner, (n+pinRefs-1)/pinRefs)
	}
	return a, nil
}

func (a *arena) Bytes() []byte { return unsafe.Slice((*byte)(a.mem), a.p.arenaBytes) }

func (a *arena) Close() error {
	if a.frame == nil {
		return nil
	}
	C.free(unsafe.Pointer(a.frame))
	a.frame = nil
	var e C.rlx_error
	if code := C.rlx_shim_free(a.p.d.b.t, a.p.d.p, a.mem, &e); code != C.RLX_OK {
		return a.p.d.b.failure(code, &e)
	}
	a.mem = nil
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
		(*C.uint64_t)(unsafe.Pointer(unsafe.SliceData(a.Profile))), (*C.uint32_t)(unsafe.Pointer(unsafe.SliceData(a.Counters))),
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
	mem, err := p.newArena()
	if err != nil {
		return err
	}
	with := *a
	with.Arena = mem
	return errors.Join(p.Run(&with), mem.Close())
}

// fits checks that the memory of a run is as large as the words say.
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
	if a.Profile != nil && len(a.Profile) < 2*p.commands || a.Counters != nil && len(a.Counters) < p.commands {
		return p.d.b.misuse("profile of %d and counters of %d entries, expected %d and %d", len(a.Profile), len(a.Counters), 2*p.commands, p.commands)
	}
	return nil
}

var bindings = [...]string{"input", "output", "state"}
