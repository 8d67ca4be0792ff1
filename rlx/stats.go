package rlx

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rlx-ml/rlx-go/rlx/internal/exec"
)

// MemoryStats says what memory outside Go's heap is held, and for what. Go's own part is told by package runtime/metrics: outputs of runs, the
// tensors of models, and the arenas of the ref backend are in it.
type MemoryStats struct {
	Native map[string]int64 // bytes held by the library of each backend that has an open program: the truth, of which the rest is the account

	Programs        int // open ones
	Specialisations int // loaded ones of all programs: sets of shapes, and their twins for CheckFinite
	IdleArenas      int // waiting for a run
	UsedArenas      int // in a run, or held by a Runner

	Weights    int64 // bytes of constants and params of open programs, once per program, wherever they lie
	Copied     int64 // of these: what libraries have copied. The others lie in Go's heap, or in packed forms alone (OtherBytes)
	Loaded     int64 // commands of the specialisations, in libraries
	IdleBytes  int64 // of the idle arenas, in libraries and in Go's heap
	UsedBytes  int64 // of the used ones
	OtherBytes int64 // what libraries hold besides: packed forms of weights above all, tables of devices, what is being compiled
}

// ProgramStats counts what a program did since Compile, and what it holds.
type ProgramStats struct {
	Runs, Cancelled, Failed uint64 // ended calls of Run and RunInto; those that ended with their context's error; with another one
	Hits, Misses            uint64 // runs that found their shapes compiled, or being compiled; that had to compile
	Builds, Evictions       uint64 // specialisations that were built; that made room for others
	Memory                  MemoryStats
}

// tally counts for ProgramStats.
type tally struct {
	runs, cancelled, failed, hits, misses, builds, evictions atomic.Uint64
}

func (t *tally) ran(err error) {
	t.runs.Add(1)
	switch {
	case err == nil:
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		t.cancelled.Add(1)
	default:
		t.failed.Add(1)
	}
}

func (t *tally) looked(found bool) {
	if found {
		t.hits.Add(1)
	} else {
		t.misses.Add(1)
	}
}

// Stats counts the program's runs and its cache, for metrics of a service: it is cheap, and may be called at any time, also after Close. Native in
// Memory is empty: a library counts for all programs together.
func (p *Program) Stats() ProgramStats {
	t := &p.tally
	s := ProgramStats{Runs: t.runs.Load(), Cancelled: t.cancelled.Load(), Failed: t.failed.Load(), Hits: t.hits.Load(), Misses: t.misses.Load(),
		Builds: t.builds.Load(), Evictions: t.evictions.Load()}
	p.addMemory(&s.Memory)
	return s
}

// openCores lists the cores of programs that are not closed.
var openCores struct {
	sync.Mutex
	list map[*core]bool
}

func track(c *core) {
	openCores.Lock()
	defer openCores.Unlock()
	if openCores.list == nil {
		openCores.list = map[*core]bool{}
	}
	openCores.list[c] = true
}

func untrack(c *core) {
	openCores.Lock()
	defer openCores.Unlock()
	delete(openCores.list, c)
}

// Stats reads the memory counters of the native libraries, and sums what the open programs hold of them.
func Stats() MemoryStats {
	openCores.Lock()
	list := slices.Collect(maps.Keys(openCores.list))
	openCores.Unlock()
	s := MemoryStats{Native: map[string]int64{}}
	known := int64(0)
	for _, c := range list {
		known += c.addMemory(&s)
		c.addNative(s.Native)
	}
	for _, n := range s.Native {
		s.OtherBytes += n
	}
	s.OtherBytes = max(0, s.OtherBytes-known) // a program that was opened or closed meanwhile shows in one of them alone
	return s
}

// addNative reads the counters of the libraries that the program uses: each counts the whole library, so that programs of one backend agree.
func (c *core) addNative(to map[string]int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	to[c.target.Backend.Name()] = c.target.Device.NativeBytes()
	if c.target.Host != nil {
		to[c.target.Host.Name()] = c.target.Host.NativeBytes()
	}
}

// logFallbacks says which backends Prefer passed over.
func (p *Program) logFallbacks(ctx context.Context) {
	for _, why := range p.skipped {
		p.cfg.logger.LogAttrs(ctx, slog.LevelWarn, "fallback", slog.String("graph", p.name), slog.String("backend", p.Backend()), slog.Any("reason", why))
	}
}

func (p *Program) logEviction(ctx context.Context, e *entry) {
	p.cfg.logger.LogAttrs(ctx, slog.LevelDebug, "evicted", slog.String("graph", p.name), slog.Any("symbols", e.symbols))
}

// account notes what the program's weights take, once they are open and when that has changed.
func (c *core) account() {
	copied := exec.NativeBytes(c.weights) // may wait for a load: nothing is locked here
	c.mu.Lock()
	defer c.mu.Unlock()
	c.weightBytes, c.copiedBytes = c.kept.bytes, copied
}

// addMemory adds what the program holds, and returns how much of that lies in libraries.
func (c *core) addMemory(s *MemoryStats) (native int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.freed {
		return 0
	}
	s.Programs++
	s.Weights += c.weightBytes
	s.Copied += c.copiedBytes
	native = c.copiedBytes
	for _, e := range c.cache {
		native += e.addMemory(s)
	}
	for e := range c.leaving {
		native += e.addMemory(s)
	}
	return native
}

func (e *entry) addMemory(s *MemoryStats) (native int64) {
	prog := e.loaded()
	if prog == nil {
		return 0
	}
	for _, m := range prog.Memory() {
		s.Specialisations++
		s.IdleArenas += m.Idle
		s.UsedArenas += m.Used
		s.IdleBytes += int64(m.Idle) * m.Arena
		s.UsedBytes += int64(m.Used) * m.Arena
		s.Weights += m.Constants
		s.Copied += m.Copied
		s.Loaded += m.Loaded
		native += m.Copied + m.Loaded + int64(m.Idle+m.Used)*m.NativeArena
	}
	return native
}
