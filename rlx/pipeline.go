package rlx

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/rlx-ml/rlx-go/rlx/internal/exec"
	"github.com/rlx-ml/rlx-go/rlx/internal/pass"
	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// foldLimit is the largest constant that folding under bound shapes may make: beyond it computing beats keeping.
const foldLimit = 1 << 20

// shapeFree are the passes that run once, before any size is known. What makes weights stands here, so that they are held once.
func (p *Program) shapeFree(ctx context.Context) []pass.Pass {
	fold := pass.Pass{Name: "fold", Doc: "computes what depends on constants alone",
		Run: pass.Plain(func(g *ir.Graph) (*ir.Graph, error) { return pass.Fold(g, p.target.Support, 0, p.eval(ctx)) })}
	return []pass.Pass{
		passDCE, passInline, passCSE,
		pass.Int8, // before folding makes floats of the codes
		fold,
		passInline, passDCE,
		pass.Views, pass.Algebra, // before patterns: they look for one way of writing
		pass.Lookup, pass.ConvScale, pass.Rotary, pass.Attention, pass.Activations, pass.SwiGLU, pass.Norms, pass.Residual, pass.Sink, pass.Layout, passCSE,
	}
}

// bound are the passes that make a specialisation: sizes are known.
func (p *Program) bound(ctx context.Context, values map[string]int64) []pass.Pass {
	fold := pass.Pass{Name: "fold", Doc: "computes what depends on constants alone",
		Run: pass.Plain(func(g *ir.Graph) (*ir.Graph, error) { return pass.Fold(g, p.target.Support, foldLimit, p.eval(ctx)) })}
	return []pass.Pass{
		{Name: "decide", Doc: "puts the branch of an If in its place where small inputs tell it", Whole: true,
			Run: pass.Plain(func(g *ir.Graph) (*ir.Graph, error) { return p.decide(g, values, p.eval(ctx)) })},
		{Name: "bind", Doc: "makes every size a number", Whole: true, Needed: true,
			Run: pass.Plain(func(g *ir.Graph) (*ir.Graph, error) { return pass.Bind(g, values) })},
		fold, passInline,
		pass.Unroll, pass.Views, pass.Algebra, // again: sizes decide what is a piece, and what stays as it is
		pass.Sink, pass.Layout, pass.Transform,
		{Name: "legalize", Doc: "decomposes what the backend lacks", Whole: true, Needed: true,
			Run: pass.Plain(func(g *ir.Graph) (*ir.Graph, error) { return pass.Legalize(g, p.target.Support) })},
		fold, passCSE, passDCE,
		pass.ConvEpilogue, pass.Columns, pass.Regions(p.target.Support), pass.MatMulEpilogue, // last: nothing looks into regions
	}
}

var (
	passDCE    = pass.Pass{Name: "dce", Doc: "drops what no output needs", Run: pass.Plain(pass.DCE)}
	passInline = pass.Pass{Name: "inline", Doc: "writes branches and loops that are decided without their control flow", Run: pass.Plain(pass.Inline)}
	passCSE    = pass.Pass{Name: "cse", Doc: "computes equal nodes once", Run: pass.Plain(pass.CSE)}
)

// pipeline is the passes as the options want them; sizes are nil for those that run before any is known.
func (p *Program) pipeline(passes []pass.Pass, sizes map[string]int64) pass.Pipeline {
	l := pass.Pipeline{Passes: passes, Support: p.target.Support, Skip: p.cfg.passes.skips, Verify: p.cfg.verify}
	if trace := p.cfg.trace; trace != nil {
		l.Trace = func(s pass.Step) { trace(PassStep{s.Index, s.Pass, sizes, s.Before, s.After, s.Rules, s.Took}) }
	}
	return l
}

// PassStep is what one pass of a compilation did.
type PassStep struct {
	Index         int // in the list of passes that runs
	Pass          string
	Sizes         map[string]int64 // of the dims that a feed binds; nil for passes that run once, before any is known
	Before, After *Graph           // equal where it changed nothing
	Rules         map[string]int   // how often each of its rules applied
	Took          time.Duration
}

// TracePasses calls f after every pass that runs: those that need no sizes once per Compile, the others once per set of shapes. The program keeps
// its constants beside the forms that kernels made of them, for the graphs that f saw.
func TracePasses(f func(PassStep)) Option { return option(func(c *config) { c.trace = f }) }

// PassInfo describes a pass of the compiler.
type PassInfo struct {
	Name, Doc string
	Needed    bool // cannot be switched off
	Rounds    bool // puts an op in place of its formula: inner steps may be rounded otherwise, within the tolerance of the op; all other passes keep every bit
}

// Passes lists the compiler's passes in the order in which they first run.
func Passes() []PassInfo {
	p := &Program{core: &core{target: &exec.Target{}}}
	var list []PassInfo
	for _, x := range append(p.shapeFree(context.Background()), p.bound(context.Background(), nil)...) {
		if !slices.ContainsFunc(list, func(i PassInfo) bool { return i.Name == x.Name }) {
			list = append(list, PassInfo{x.Name, x.Doc, x.Needed, x.Rounds})
		}
	}
	return list
}

// choice says which passes run: all but those that are off, or only those that are listed.
type choice struct {
	off, only map[string]bool
}

func (c choice) skips(name string) bool { return c.off[name] || c.only != nil && !c.only[name] }

func (c *choice) switchOff(names ...string) {
	if c.off == nil {
		c.off = map[string]bool{}
	}
	for _, n := range names {
		c.off[n] = true
	}
}

func (c *choice) allow(names ...string) {
	if c.only == nil {
		c.only = map[string]bool{}
	}
	for _, n := range names {
		c.only[n] = true
	}
}

// fromEnv reads RLX_PASSES: names with a minus are switched off; names without one are the only ones that run, "none" is no name.
func (c *choice) fromEnv() {
	for _, word := range strings.Split(os.Getenv("RLX_PASSES"), ",") {
		word = strings.TrimSpace(word)
		if name, off := strings.CutPrefix(word, "-"); off {
			c.switchOff(name)
		} else if word == "none" {
			c.allow()
		} else if word != "" {
			c.allow(word)
		}
	}
}

// check finds names of no pass, and passes that must run.
func (c choice) check() error {
	if len(c.off)+len(c.only) == 0 {
		return nil
	}
	passes := Passes()
	for _, set := range []map[string]bool{c.off, c.only} {
		for name := range set {
			i := slices.IndexFunc(passes, func(p PassInfo) bool { return p.Name == name })
			if i < 0 {
				return &OptionError{"passes", name, "one of " + passNames(passes)}
			}
		}
	}
	for name := range c.off {
		if slices.ContainsFunc(passes, func(p PassInfo) bool { return p.Name == name && p.Needed }) {
			return &OptionError{"passes", "-" + name, "a pass that can be spared: programs cannot be made without this one"}
		}
	}
	return nil
}

func passNames(passes []PassInfo) string {
	names := make([]string, len(passes))
	for i, p := range passes {
		names[i] = p.Name
	}
	return strings.Join(names, ", ")
}

// OptionError says which option or argument of a call, or which environment variable, has no legal value.
type OptionError struct {
	Option, Got, Want string
}

func (e *OptionError) Error() string {
	return fmt.Sprintf("rlx: %s: got %q, expected %s", e.Option, e.Got, e.Want)
}
