package rlx

import (
	"log/slog"
	"os"
)

// Option changes how a graph is compiled.
type Option interface{ apply(*config) }

type option func(*config)

func (f option) apply(c *config) { f(c) }

type config struct {
	backends []string
	threads  threadCount
	isa      string
	logger   *slog.Logger
	passes   choice
	trace    func(PassStep)
	verify   bool
	cache    int
	memory   *budget // nil for no limit
}

// On compiles for one backend, and fails where it cannot. "vulkan:1" is the second device of a backend, "vulkan" its first.
func On(backend string) Option { return Prefer(backend) }

// Prefer compiles for the first of the backends, named as for On, that can be used here. Without On or Prefer it is Prefer("cpu", "ref").
func Prefer(backends ...string) Option { return option(func(c *config) { c.backends = backends }) }

// Threads is how many threads may compute one run, the caller included; all programs share one pool of them. Without it RLX_NUM_THREADS says, and
// without that it is the least of GOMAXPROCS, the affinity mask, and the CPU quota of the process's control groups rounded down, but at least 1.
// Less than 1, and a malformed RLX_NUM_THREADS, are an *OptionError of Compile. Results do not depend on it.
func Threads(n int) Option { return option(func(c *config) { c.threads.set(n) }) }

// Logger receives the records of a program; the default, and nil, discard them. All have graph, the graph's name.
//
//	Warn  "fallback"     per backend that Prefer passed over: backend (taken instead), reason
//	Info  "compiled"     per Compile: backend, nodes, fallback (all reasons, or nil)
//	Debug "specialised"  per set of shapes: symbols (their values), commands, arena_bytes, took
//	Debug "evicted"      per specialisation that made room for another: symbols
//	Warn  "not closed"   per program that became garbage without Close: backend, error
func Logger(l *slog.Logger) Option { return option(func(c *config) { c.logger = l }) }

// Specialisations is how many sets of shapes a Program keeps compiled; the least recently used one makes room. The default is 16.
func Specialisations(n int) Option { return option(func(c *config) { c.cache = n }) }

// WithoutPasses switches compiler passes off by name, as RLX_PASSES=-fold,-cse does; [Passes] lists them. An unknown name is an
// *OptionError of Compile.
func WithoutPasses(names ...string) Option {
	return option(func(c *config) { c.passes.switchOff(names...) })
}

// OnlyPasses runs these passes and those that every program needs, as RLX_PASSES=fold,cse does; RLX_PASSES=none is OnlyPasses().
func OnlyPasses(names ...string) Option { return option(func(c *config) { c.passes.allow(names...) }) }

// Verify checks the graph after every pass, every plan against its graph, and the command words against the plan.
func Verify() Option { return option(func(c *config) { c.verify = true }) }

func newConfig(opts []Option) *config {
	c := &config{
		backends: []string{"cpu", "ref"},
		isa:      os.Getenv("RLX_ISA"),
		logger:   slog.New(slog.DiscardHandler),
		cache:    16,
	}
	c.passes.fromEnv()
	c.threads.fromEnv()
	for _, o := range opts {
		if o != nil {
			o.apply(c)
		}
	}
	c.cache = max(c.cache, 1)
	if c.logger == nil {
		c.logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// check says which option or environment variable has no legal value.
func (c *config) check() error {
	if c.threads.err != nil {
		return c.threads.err
	}
	return c.passes.check()
}

// RunOption changes one Run.
type RunOption func(*runConfig)

type runConfig struct {
	seed    uint64
	profile *Profile
	finite  bool
}

// Seed is the seed of random nodes that have none of their own; 42 without this option.
func Seed(s uint64) RunOption { return func(c *runConfig) { c.seed = s } }

// CheckFinite stops the run at the first command with a NaN or an infinity among its float results: the error is a *NonFiniteError. Commands run
// one by one and every result is read, on a device through a copy to the host, so such a run is slow; the first one of a set of shapes loads the
// program a second time. What happens inside the body of an If, While or Scan shows in the results of that node. It does not go with WithProfile.
func CheckFinite() RunOption { return func(c *runConfig) { c.finite = true } }

func (c *runConfig) check() error {
	if c.finite && c.profile != nil {
		return &OptionError{Option: "CheckFinite", Got: "WithProfile too", Want: "one of them: a checked run has other commands"}
	}
	return nil
}
