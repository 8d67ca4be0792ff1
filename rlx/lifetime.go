package rlx

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/rlx-ml/rlx-go/rlx/backend"
	"github.com/rlx-ml/rlx-go/rlx/internal/exec"
)

// core is what a Program holds. Nothing in it leads back to the Program, so that one that is garbage and was not closed can be.
type core struct {
	name      string
	cfg       *config
	target    *exec.Target
	kept      *kept // the graph after the shape-free passes, and its constants
	ports     func() (in, out []Port)
	inputs    []input
	symbols   []string // that a feed binds, by number
	outputs   []string
	decided   map[string]bool // values of inputs that decide on an If, by the specialisations made for them
	undecided atomic.Bool     // there were too many: each run decides
	stacks    []stack         // outputs whose length only a run tells
	weights   backend.Weights
	skipped   []error // why earlier choices of Prefer were not taken
	tally     tally

	mu                       sync.Mutex
	weightBytes, copiedBytes int64     // of the weights, and of those that the library has copied
	idle                     sync.Cond // signalled when runs reaches 0
	runs                     int
	closed                   bool
	freed                    bool // by Close, completely
	cache                    map[string]*entry
	leaving                  map[*entry]bool // evicted, and still in use
	clock                    uint64
	latest                   *entry          // built last
	leases                   map[*lease]bool // of open runners
}

func newCore(name string, cfg *config, target *exec.Target, skipped []error) *core {
	c := &core{name: name, cfg: cfg, target: target, skipped: skipped, cache: map[string]*entry{}, leaving: map[*entry]bool{}, leases: map[*lease]bool{}}
	c.idle.L = &c.mu
	c.ports = sync.OnceValues(c.findPorts)
	track(c)
	return c
}

// abandoned frees a program that nobody closed and nobody can reach.
func (c *core) abandoned() {
	c.mu.Lock()
	closed := c.closed
	c.mu.Unlock()
	if closed {
		return
	}
	err := c.close()
	c.cfg.logger.LogAttrs(context.Background(), slog.LevelWarn, "not closed", slog.String("graph", c.name),
		slog.String("backend", c.target.Backend.Name()), slog.Any("error", err))
}

// enter counts a use of the program, which Close waits for; leave ends it.
func (p *Program) enter() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return ErrClosed
	}
	p.runs++
	return nil
}

func (p *Program) leave() {
	p.mu.Lock()
	if p.runs--; p.runs == 0 && p.closed {
		p.idle.Broadcast()
	}
	p.mu.Unlock()
}

// leaveRun ends a run with err.
func (p *Program) leaveRun(err error) {
	p.tally.ran(err)
	p.leave()
}

func (c *core) freeLocked(e *entry) {
	if c.latest == e {
		c.latest = nil
	}
	delete(c.leaving, e)
	e.prog.Close()
}

func (c *core) release(e *entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.releaseLocked(e)
}

func (c *core) releaseLocked(e *entry) {
	e.users--
	if e.users > 0 || !e.evicted {
		return
	}
	if e.prog != nil {
		c.freeLocked(e)
	}
	delete(c.leaving, e)
}

// endLease gives back what a runner holds, for good.
func (c *core) endLease(l *lease) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dropLocked(l)
	l.closed = true
	delete(c.leases, l)
}

func (c *core) dropLease(l *lease) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dropLocked(l)
}

func (c *core) dropLocked(l *lease) {
	if l.e != nil {
		l.e.prog.Release(l.r)
		c.releaseLocked(l.e)
		l.e, l.r = nil, nil
	}
}

// Close waits for runs to end and frees the program's memory, that of its runners too. It is idempotent, and every call returns when the
// memory is free. A program that becomes garbage without Close is closed then, at a time of the collector's choice, and logged as "not closed".
func (p *Program) Close() error {
	p.backstop.Stop()
	return p.core.close()
}

func (c *core) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		for !c.freed {
			c.idle.Wait()
		}
		return nil
	}
	c.closed = true
	for c.runs > 0 {
		c.idle.Wait()
	}
	for l := range c.leases {
		c.dropLocked(l)
	}
	for k, e := range c.cache {
		delete(c.cache, k)
		if e.prog != nil {
			c.freeLocked(e)
		}
	}
	var err error
	if c.weights != nil {
		c.kept.part()
		err = c.weights.Close()
	}
	untrack(c)
	if cerr := c.target.Close(); err == nil {
		err = cerr
	}
	c.freed = true
	c.idle.Broadcast()
	return err
}
