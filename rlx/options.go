package rlx

import (
	"log/slog"
	"os"
	"runtime"
)

// Option changes how a graph is compiled.
type Option interface{ apply(*config) }

type option func(*config)

func (f option) apply(c *config) { f(c) }

type config struct {
	backends []string
	threads  int
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

// Threads limits the threads that compute one run, the caller included. The default is GOMAXPROCS, which follows affinity and cgroup quota.
func Threads(n int) Option { return option(func(c *config) { c.threads = n }) }

// Logger receives one record per Compile with the chosen backend, and one per specialisation. The default discards.
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

// Verify checks the graph after every pass.
func Verify() Option { return option(func(c *config) { c.verify = true }) }

func newConfig(opts []Option) *config {
	c := &config{
		backends: []string{"cpu", "ref"},
		threads:  min(runtime.GOMAXPROCS(0), runtime.NumCPU()),
		isa:      os.Getenv("RLX_ISA"),
		logger:   slog.New(slog.DiscardHandler),
		cache:    16,
	}
	c.passes.fromEnv()
	for _, o := range opts {
		if o != nil {
			o.apply(c)
		}
	}
	c.threads, c.cache = max(c.threads, 1), max(c.cache, 1)
	return c
}

// RunOption changes one Run.
type RunOption func(*runConfig)

type runConfig struct {
	seed    uint64
	profile *Profile
}

// Seed is the seed of random nodes that have none of their own; 42 without this option.
func Seed(s uint64) RunOption { return func(c *runConfig) { c.seed = s } }
