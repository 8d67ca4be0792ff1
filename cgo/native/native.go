//go:build cgo && !windows

package native

/*
#include <stdlib.h>
#include "rlx.h"

static int32_t rlx_shim_count(const rlx_backend *b, int32_t *n, rlx_error *e) { return b->device_count(n, e); }
static int32_t rlx_shim_open(const rlx_backend *b, int32_t i, int32_t threads, const char *isa, uint32_t lean, rlx_device **d, rlx_error *e) {
  const rlx_open_options o = {sizeof o, threads, isa, lean};
  return b->open(i, &o, d, e);
}
static int32_t rlx_shim_close(const rlx_backend *b, rlx_device *d, rlx_error *e) { return b->close(d, e); }
static int32_t rlx_shim_info(const rlx_backend *b, rlx_device *d, rlx_device_info *i, rlx_error *e) { return b->info(d, i, e); }
static int32_t rlx_shim_device_capabilities(const rlx_backend *b, rlx_device *d, const rlx_capability **list, uint32_t *n, rlx_error *e) {
  return b->device_capabilities(d, list, n, e);
}
static int32_t rlx_shim_weights_open(const rlx_backend *b, rlx_device *d, rlx_weights *parent, const rlx_constant *c, uint32_t n, rlx_weights **w, rlx_error *e) {
  return b->weights_open(d, parent, c, n, w, e);
}
static int32_t rlx_shim_weights_close(const rlx_backend *b, rlx_weights *w, rlx_error *e) { return b->weights_close(w, e); }
static int32_t rlx_shim_weights_trim(const rlx_backend *b, rlx_weights *w, uint8_t *where, rlx_error *e) { return b->weights_trim(w, where, e); }
static int32_t rlx_shim_weights_read(const rlx_backend *b, rlx_weights *w, uint32_t i, void *to, uint64_t bytes, rlx_error *e) {
  return b->weights_read(w, i, to, bytes, e);
}
static int32_t rlx_shim_probe(const rlx_backend *b, rlx_device *d, int32_t what, int32_t threads, uint64_t bytes, double seconds, double *rate, rlx_error *e) {
  return b->probe(d, what, threads, bytes, seconds, rate, e);
}
*/
import "C"

import (
	"fmt"
	"math"
	"runtime"
	"sync"
	"unsafe"

	"github.com/rlx-ml/rlx-go/rlx/backend"
	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// Option is a property of a backend that its table does not tell.
type Option func(*options)

type options struct{ stage bool }

// StageOnHost is for accelerators: what a device has no kernel for runs on the host, between the commands that the device runs. The
// backend implements rlx.Stager and stages every row that words can hold.
func StageOnHost() Option { return func(o *options) { o.stage = true } }

// New returns the backend behind table, a const rlx_backend *. It only keeps the pointer: what the library must match is checked by Check,
// when the op table is complete. Without StageOnHost an arena is host memory, arena_bytes long: the words' arena and the kernels' scratch
// behind it.
func New(table unsafe.Pointer, opts ...Option) backend.Backend {
	b := &library{t: (*C.rlx_backend)(table)}
	for _, o := range opts {
		o(&b.options)
	}
	b.check = sync.OnceValue(b.mismatch)
	if b.stage {
		return stager{b}
	}
	return b
}

type library struct {
	options
	t     *C.rlx_backend
	check func() error
}

// stager is a library whose missing rows run on the host.
type stager struct{ *library }

func (stager) StageOnHost(r *ir.Row) bool { return !r.Has(ir.Leaf) }

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
	return capsOf(b.t.capabilities, b.t.num_capabilities)
}

func capsOf(list *C.rlx_capability, n C.uint32_t) []backend.Cap {
	var caps []backend.Cap
	for _, c := range unsafe.Slice(list, n) {
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
	var lean C.uint32_t
	if o.Lean {
		lean = 1
	}
	var e C.rlx_error
	if code := C.rlx_shim_open(b.t, C.int32_t(i), C.int32_t(min(o.Threads, 1<<20)), isa, lean, &d.p, &e); code != C.RLX_OK {
		return nil, b.failure(code, &e)
	}
	if err := d.describe(); err != nil {
		C.rlx_shim_close(b.t, d.p, &e)
		return nil, err
	}
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

func (b *library) noMemory(what string) error {
	return &backend.Error{Backend: b.Name(), Code: backend.NoMemory, Command: -1, Text: "no memory for " + what}
}

type device struct {
	b    *library
	p    *C.rlx_device
	info backend.DeviceInfo
	caps []backend.Cap
}

// describe reads what the device is and can do.
func (d *device) describe() error {
	var info C.rlx_device_info
	var list *C.rlx_capability
	var n C.uint32_t
	var e C.rlx_error
	code := C.rlx_shim_info(d.b.t, d.p, &info, &e)
	if code == C.RLX_OK {
		code = C.rlx_shim_device_capabilities(d.b.t, d.p, &list, &n, &e)
	}
	if code != C.RLX_OK {
		return d.b.failure(code, &e)
	}
	d.info = backend.DeviceInfo{Name: C.GoString(&info.name[0]), ISA: C.GoString(&info.isa[0]), Threads: int(info.threads),
		MaxTensorBytes: int64(min(info.max_tensor_bytes, math.MaxInt64)), Inline: info.runs_inline != 0}
	d.caps = capsOf(list, n)
	return nil
}

func (d *device) Info() backend.DeviceInfo { return d.info }
func (d *device) Caps() []backend.Cap      { return d.caps }

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

// Probe measures a limit of the machine, with a buffer of the given bytes per thread.
func (d *device) Probe(l backend.Limit, threads int, bytes uint64, seconds float64) (rate float64, err error) {
	if d.p == nil {
		return 0, d.b.misuse("the device is closed")
	}
	if d.b.t.probe == nil {
		return 0, &backend.Error{Backend: d.b.Name(), Code: backend.Unsupported, Command: -1, Text: "the library does not probe the machine's limits"}
	}
	var r C.double
	var e C.rlx_error
	if code := C.rlx_shim_probe(d.b.t, d.p, C.int32_t(l), C.int32_t(min(threads, 1<<20)), C.uint64_t(bytes), C.double(seconds), &r, &e); code != C.RLX_OK {
		return 0, d.b.failure(code, &e)
	}
	return float64(r), nil
}

type weights struct {
	d    *device
	p    *C.rlx_weights
	pins *pins

	mu    sync.Mutex
	sizes []int64
	in    []place
}

// place says where the bytes of a constant are.
type place uint8

const (
	outside place = iota // in the caller's memory
	copied
	repacked // in forms that kernels made of it, alone
)

// pins are those of constants that the library may read where they lie, by number.
type pins struct{ of []*runtime.Pinner }

func (p *pins) drop(i int) {
	if p.of[i] != nil {
		p.of[i].Unpin()
		p.of[i] = nil
	}
}

func (p *pins) dropAll() {
	for i := range p.of {
		p.drop(i)
	}
}

// NativeBytes is what the library holds of the constants, without packed forms.
func (w *weights) NativeBytes() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.p == nil {
		return 0
	}
	n := int64(0)
	for i, where := range w.in {
		if where == copied {
			n += w.sizes[i]
		}
	}
	return n
}

// borrowed is the size from which constants stay where they are: a second copy of small ones costs little.
const borrowed = 1 << 20

// small is the size below which a constant is copied at once: it never pays to do without the copy.
const small = 1 << 10

// pinners keeps the pins of weights that nobody closed: the library refers to that memory.
var pinners sync.Map

// stays is what rlx_constant says of a constant.
func (d *device) stays(c []byte) C.uint32_t {
	switch trims := d.b.t.weights_trim != nil; {
	case len(c) >= borrowed && (!trims || cap(c) == len(c)):
		return 1
	case trims && len(c) >= small:
		return 2
	}
	return 0
}

func (d *device) Weights(parent backend.Weights, constants [][]byte) (backend.Weights, error) {
	from, err := d.weights(parent)
	if err != nil {
		return nil, err
	}
	list := (*C.rlx_constant)(C.calloc(C.size_t(len(constants)+1), C.sizeof_rlx_constant))
	if list == nil {
		return nil, d.b.noMemory("the list of constants")
	}
	defer C.free(unsafe.Pointer(list))
	w := &weights{d: d, pins: &pins{make([]*runtime.Pinner, len(constants))}, sizes: make([]int64, len(constants)), in: make([]place, len(constants))}
	for i, c := range constants {
		if w.sizes[i] = int64(len(c)); len(c) == 0 {
			continue
		}
		w.pins.of[i] = new(runtime.Pinner)
		w.pins.of[i].Pin(&c[0])
		entry := &unsafe.Slice(list, len(constants))[i]
		entry.data, entry.bytes, entry.stays = unsafe.Pointer(&c[0]), C.uint64_t(len(c)), d.stays(c)
		if d.b.stage || entry.stays == 0 {
			w.in[i] = copied
		}
	}
	var e C.rlx_error
	code := C.rlx_shim_weights_open(d.b.t, d.p, from, list, C.uint32_t(len(constants)), &w.p, &e)
	for i := range constants {
		if code != C.RLX_OK || unsafe.Slice(list, len(constants)+1)[i].stays == 0 {
			w.pins.drop(i)
		}
	}
	if code != C.RLX_OK {
		return nil, d.b.failure(code, &e)
	}
	pinners.Store(w.pins, true)
	return w, nil
}

// Trim and Read make weights a [backend.Trimmer].
func (w *weights) Trim() ([]bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.p == nil {
		return nil, w.d.b.misuse("the weights are closed")
	}
	if w.d.b.t.weights_trim == nil || len(w.in) == 0 {
		return nil, nil
	}
	var e C.rlx_error
	code := C.rlx_shim_weights_trim(w.d.b.t, w.p, (*C.uint8_t)(unsafe.Pointer(&w.in[0])), &e)
	if code != C.RLX_OK {
		return nil, w.d.b.failure(code, &e)
	}
	done := make([]bool, len(w.in))
	for i, where := range w.in {
		if done[i] = where != outside; done[i] {
			w.pins.drop(i)
		}
	}
	return done, nil
}

func (w *weights) Read(i int, to []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.p == nil || w.d.b.t.weights_read == nil {
		return w.d.b.misuse("the weights are closed, or cannot be read")
	}
	var e C.rlx_error
	code := C.rlx_shim_weights_read(w.d.b.t, w.p, C.uint32_t(i), unsafe.Pointer(unsafe.SliceData(to)), C.uint64_t(len(to)), &e)
	if code != C.RLX_OK {
		return w.d.b.failure(code, &e)
	}
	return nil
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
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.p == nil {
		return nil
	}
	var e C.rlx_error
	if code := C.rlx_shim_weights_close(w.d.b.t, w.p, &e); code != C.RLX_OK {
		return w.d.b.failure(code, &e)
	}
	w.p = nil
	w.pins.dropAll()
	pinners.Delete(w.pins)
	return nil
}
