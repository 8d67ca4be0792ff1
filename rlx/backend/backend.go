// Package backend is the door between the runtime and whatever executes a program: it takes command words, tables and memory,
// nothing internal. A backend is a value of type Backend that a package registers.
package backend

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
)

// Cap says that an op (its number in the op table) runs natively for the dtypes in the bit set, which speak of the first operand, or of
// the first result where there is none.
type Cap struct {
	Op      int
	DTypes  uint32
	Strided bool // operands may have any strides; otherwise the planner makes them contiguous
}

// Backend executes programs on its devices.
type Backend interface {
	// Name is what rlx.On takes: "cpu", "ref", "cuda".
	Name() string
	// Check says why the backend cannot be used here, or nil. It may start a driver; it never blocks long.
	Check() error
	// Caps lists what the backend runs natively at best; a device may have fewer.
	Caps() []Cap
	// Devices describes what answers; an empty list is not an error.
	Devices() ([]DeviceInfo, error)
	// Open returns device i.
	Open(i int, o Options) (Device, error)
}

// Options are read when a device is opened.
type Options struct {
	Threads int    // threads that may compute, the caller included; at least 1
	ISA     string // "" for the best one
	Lean    bool   // no second form of constants, such as one that is faster to multiply with
}

// DeviceInfo describes a device.
type DeviceInfo struct {
	Name    string
	ISA     string // instruction set or architecture
	Threads int
	// MaxTensorBytes is the largest tensor that a command may touch on the device, 0 for no limit. What touches a larger one is composed
	// of smaller parts or staged on the host.
	MaxTensorBytes int64
	Inline         bool // a run computes on its caller's thread and waits for no device
}

// Limit names what a machine can do at most; numbers as in rlx.h.
type Limit int32

// Peaks of arithmetic, in 1e9 operations a second with multiplications and additions counted, and traffic with memory, in 1e9 bytes a second:
// reads of a buffer, and copies of its first half over the second, through the caches or past them, which count both.
const (
	LimitF32 Limit = iota
	LimitF64
	LimitBF16
	LimitI8
	LimitRead
	LimitCopy
	LimitCopyStreaming
)

// Prober is a Device that can measure its limits, for about the given number of seconds, with a buffer of bytes per thread that peaks of
// arithmetic ignore.
type Prober interface {
	Probe(l Limit, threads int, bytes uint64, seconds float64) (rate float64, err error)
}

// Device is an open device; safe for concurrent use.
type Device interface {
	Info() DeviceInfo
	// Caps lists what the device runs natively.
	Caps() []Cap
	// Weights takes the constants of a program. Their bytes must not change until the weights are closed, or a Trim says that they are not
	// needed: a device may use them where they lie. One that ends before the capacity of its slice, and so would keep what lies around it, is
	// used in place until the next Trim at most. With a parent (nil for none) the constants are numbered after the parent's, and the parent
	// outlives them: a specialisation adds its own folded constants to its program's weights.
	Weights(parent Weights, constants [][]byte) (Weights, error)
	// Load validates words and picks kernels. Staged commands are run by the caller between runs of the others.
	Load(w Weights, words []uint32) (Program, error)
	// NativeBytes is the memory outside Go that the device's library holds.
	NativeBytes() int64
	Close() error
}

// Weights are constants on a device, shared by every program loaded with them.
type Weights interface{ Close() error }

// Trimmer is implemented by weights of devices that do not need the caller's memory for good.
type Trimmer interface {
	// Trim lets go of what no loaded program reads as it is, where a form of it that a kernel made for itself gives it back. It says which of the
	// constants, without those of a parent, are no longer read in the caller's memory; nil where the device does not do that.
	Trim() ([]bool, error)
	// Read fills to with the bytes of such a constant.
	Read(i int, to []byte) error
}

// Program is a loaded program; Run may be called concurrently.
type Program interface {
	// ArenaBytes is the size of the memory that each run brings.
	ArenaBytes() int64
	// NewArena allocates such memory where the device wants it.
	NewArena() (Arena, error)
	Run(a *RunArgs) error
	Close() error
}

// Arena is memory that belongs to one run at a time.
type Arena interface {
	// Bytes is the arena of the words where the host can reach it, else nil.
	Bytes() []byte
	// Write and Read copy pieces of an arena that the host cannot reach, from and to host memory.
	Write(regions []Region) error
	Read(regions []Region) error
	// Cancel is the word that stops the run which uses the arena.
	Cancel() Cancel
	Close() error
}

// Region is a piece of an arena and as many bytes of host memory.
type Region struct {
	Offset int64
	Host   []byte
}

// RunArgs is one run of a stretch of commands: all of them, or those between two staged ones. Inputs and Outputs are host memory in the
// order of the words; the backend reads and writes only their extent.
type RunArgs struct {
	First, Count            int
	Inputs, Outputs, States [][]byte
	Arena                   Arena
	Threads                 int      // 0: as opened
	Profile                 []uint64 // nil, or start and end in nanoseconds for each command of the stretch
	Counters                []uint32 // nil, or per command of the stretch: how often a native kernel ran
	Seed                    uint64
}

// Cancel is a word that turns non-zero to stop a run; native backends keep it outside Go memory. Safe for concurrent use.
type Cancel interface {
	Set()
	Reset()
	IsSet() bool
}

// HostArena is an arena in Go memory, for backends and programs that run in Go.
type HostArena struct {
	mem  []byte
	word atomic.Bool
}

// NewHostArena returns an arena over mem.
func NewHostArena(mem []byte) *HostArena { return &HostArena{mem: mem} }

func (a *HostArena) Bytes() []byte        { return a.mem }
func (a *HostArena) Cancel() Cancel       { return a }
func (a *HostArena) Close() error         { return nil }
func (a *HostArena) Write([]Region) error { return errReachable }
func (a *HostArena) Read([]Region) error  { return errReachable }

var errReachable = errors.New("the arena is host memory: use Bytes")

// Set, Reset and IsSet make the arena its own Cancel.
func (a *HostArena) Set()        { a.word.Store(true) }
func (a *HostArena) Reset()      { a.word.Store(false) }
func (a *HostArena) IsSet() bool { return a.word.Load() }

// Code classifies an Error.
type Code int

// The codes; the numbers are those of rlx_status in rlx.h.
const (
	OK          Code = 0
	BadWords    Code = 1
	Unsupported Code = 2
	NoMemory    Code = 3
	NoDevice    Code = 4
	BadValue    Code = 5
	Cancelled   Code = 6
	DeviceLost  Code = 7
	BadArgument Code = 8
	Driver      Code = 9
)

var codeNames = []string{"ok", "bad words", "unsupported", "out of memory", "no device", "bad value", "cancelled", "device lost", "bad argument", "driver failure"}

func (c Code) String() string {
	if c < 0 || int(c) >= len(codeNames) {
		return fmt.Sprintf("code %d", int(c))
	}
	return codeNames[c]
}

// Error is what a backend's functions return.
type Error struct {
	Backend string
	Code    Code
	Command int // index of the command, -1 if none
	Text    string
}

func (e *Error) Error() string {
	s := fmt.Sprintf("%s: %s", e.Backend, e.Code)
	if e.Command >= 0 {
		s += fmt.Sprintf(" at command %d", e.Command)
	}
	return s + ": " + e.Text
}

// ErrNotCompiledIn is wrapped by the error of a backend whose build tag or cgo is off.
var ErrNotCompiledIn = errors.New("not compiled in")

var registry struct {
	sync.Mutex
	backends []Backend
	absent   map[string]string
}

// Register adds b. The packages of backends call it in init with a value that does no work yet; a second backend of the same name is ignored.
func Register(b Backend) {
	registry.Lock()
	defer registry.Unlock()
	if !slices.ContainsFunc(registry.backends, func(o Backend) bool { return o.Name() == b.Name() }) {
		registry.backends = append(registry.backends, b)
	}
}

// RegisterAbsent records why the backend called name is not in this build.
func RegisterAbsent(name, reason string) {
	registry.Lock()
	defer registry.Unlock()
	if registry.absent == nil {
		registry.absent = map[string]string{}
	}
	registry.absent[name] = reason
}

// Lookup returns the backend called name, or why there is none.
func Lookup(name string) (Backend, error) {
	registry.Lock()
	defer registry.Unlock()
	for _, b := range registry.backends {
		if b.Name() == name {
			return b, nil
		}
	}
	if reason, ok := registry.absent[name]; ok {
		return nil, fmt.Errorf("%s: %w (%s)", name, ErrNotCompiledIn, reason)
	}
	return nil, fmt.Errorf("%s: %w (no such backend in this build, expected one of %v)", name, ErrNotCompiledIn, namesLocked())
}

// Names lists the registered backends, sorted.
func Names() []string {
	registry.Lock()
	defer registry.Unlock()
	return namesLocked()
}

func namesLocked() []string {
	var l []string
	for _, b := range registry.backends {
		l = append(l, b.Name())
	}
	slices.Sort(l)
	return l
}

// Absent lists the backends that are known but not in this build, with the reason.
func Absent() map[string]string {
	registry.Lock()
	defer registry.Unlock()
	m := map[string]string{}
	for k, v := range registry.absent {
		m[k] = v
	}
	return m
}
