package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/onnx"
)

// preparation opens and compiles a model for inputs that may leave the sizes of dims open.
type preparation struct {
	sig     *signature
	values  *values
	options []rlx.Option
	errOut  io.Writer // of the progress bar

	model *rlx.Model         // where it can be read for any inputs
	needs []onnx.Unsupported // why not, where it cannot
	prog  *rlx.Program
}

// prepared is a model that is compiled for a feed.
type prepared struct {
	model  *rlx.Model
	prog   *rlx.Program
	plan   *rlx.Plan
	feed   rlx.Feed          // what a run takes
	bound  rlx.Feed          // the inputs that became constants
	how    map[string]string // how inputs were made that no file gives
	dims   map[string]int64
	grown  []string // dims that could not be 1
	why    error    // what the compiler said of 1
	needs  []onnx.Unsupported
	opened time.Duration // to read and compile
}

// triedSizes are those that are tried where 1 does not compile, the smallest first.
var triedSizes = []int64{2, 3, 4, 8, 16, 32, 48, 64, 96, 128, 192, 224, 256, 320, 384, 512, 640, 768, 1024}

// prepare compiles for the smallest sizes that compile. Compiling does not listen to the context, so that a cancelled one leaves it behind.
func (p *preparation) prepare(ctx context.Context) (*prepared, error) {
	return stoppable(ctx, p.errOut, "compiling", func() (*prepared, error) { return p.settle(ctx) })
}

func (p *preparation) settle(ctx context.Context) (*prepared, error) {
	var free []string
	for _, s := range p.sig.symbols() {
		if _, ok := p.values.dims[s]; !ok {
			free = append(free, s)
		}
	}
	try := func(c map[string]int64) (*prepared, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		dims := maps.Clone(p.values.dims)
		maps.Copy(dims, c)
		return p.try(ctx, dims)
	}
	r, first := try(sizeChoice(free, 1, 0))
	if first == nil || !aboutSizes(first) || len(free) == 0 {
		return p.done(r, nil, first)
	}
	r, err := search(free, try)
	if err != nil {
		return p.done(nil, nil, err)
	}
	if r == nil {
		err = fmt.Errorf("%w\nno size from 1 to %d of %s compiles%s; say what the model wants: --dim %s=N", first, triedSizes[len(triedSizes)-1],
			strings.Join(free, ", "), p.values.givenSizes(), strings.Join(free, "=N --dim "))
		return p.done(nil, nil, err)
	}
	for _, s := range free {
		if r.dims[s] != 1 {
			r.grown = append(r.grown, s)
		}
	}
	return p.done(r, first, nil)
}

// givenSizes is " with batch=2", "" where none is given.
func (v *values) givenSizes() string {
	text := ""
	for _, s := range slices.Sorted(maps.Keys(v.dims)) {
		text += fmt.Sprintf(" with %s=%d", s, v.dims[s])
	}
	return text
}

// done closes a program that nobody will use.
func (p *preparation) done(r *prepared, why, err error) (*prepared, error) {
	if r != nil {
		r.why = why
		return r, nil
	}
	if p.prog != nil {
		p.prog.Close()
	}
	if names := p.madeUp(); len(names) > 0 {
		err = fmt.Errorf("%w\nthe graph depends on the values of inputs that were made up: give --in %s=VALUE", err, strings.Join(names, "=VALUE --in "))
	}
	return nil, err
}

// madeUp names the inputs that decide what the graph is, and that the command line does not give.
func (p *preparation) madeUp() []string {
	var names []string
	for _, u := range p.needs {
		for _, name := range u.Needs {
			if p.values.feed[name] == nil && p.values.fill[name] == "" && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// search finds the smallest size that compiles for all free symbols, and then as few of them as need it: the others are 1. Where no size
// does for all, it is tried for some. It is nil where nothing compiles.
func search(free []string, try func(map[string]int64) (*prepared, error)) (*prepared, error) {
	subsets := subsetsOf(len(free))
	for _, sets := range [][]uint{{1<<len(free) - 1}, subsets} {
		for _, size := range triedSizes {
			for _, set := range sets {
				r, err := try(sizeChoice(free, size, set))
				if err == nil && len(sets) == 1 {
					return fewest(free, size, subsets, r, try), nil
				}
				if err == nil || !aboutSizes(err) {
					return r, err
				}
			}
		}
	}
	return nil, nil
}

// fewest is r, or a result that gives the size to fewer symbols.
func fewest(free []string, size int64, subsets []uint, r *prepared, try func(map[string]int64) (*prepared, error)) *prepared {
	for _, set := range subsets {
		if less, err := try(sizeChoice(free, size, set)); err == nil {
			r.close(less)
			return less
		}
	}
	return r
}

// close frees the program, unless other has it too.
func (r *prepared) close(other *prepared) {
	if r.prog != other.prog {
		r.prog.Close()
	}
}

// sizeChoice gives a size to the symbols of a set, and 1 to the others.
func sizeChoice(free []string, size int64, set uint) map[string]int64 {
	m := map[string]int64{}
	for i, s := range free {
		if m[s] = 1; set>>i&1 != 0 {
			m[s] = size
		}
	}
	return m
}

// subsetsOf lists the proper subsets of up to four symbols, the smallest first; of more, none.
func subsetsOf(n int) []uint {
	if n > 4 {
		return nil
	}
	var list []uint
	for s := uint(1); s < 1<<n-1; s++ {
		list = append(list, s)
	}
	slices.SortStableFunc(list, func(a, b uint) int { return bits.OnesCount(a) - bits.OnesCount(b) })
	return list
}

// aboutSizes says whether other sizes of inputs may mend an error.
func aboutSizes(err error) bool {
	var shape *rlx.ShapeError
	var imported *onnx.ImportError
	return errors.As(err, &shape) || errors.As(err, &imported)
}

func (p *preparation) try(ctx context.Context, dims map[string]int64) (*prepared, error) {
	began := time.Now()
	if p.model == nil && p.needs == nil {
		var refused *rlx.ModelError
		m, err := rlx.Open(p.sig.path)
		if errors.As(err, &refused) {
			p.needs = refused.Items
		} else if err != nil {
			return nil, err
		}
		p.model = m
	}
	r := &prepared{model: p.model, dims: dims, needs: p.needs, bound: rlx.Feed{}}
	if r.model == nil {
		feed, _, err := p.feed(dims, nil)
		if err != nil {
			return nil, err
		}
		if r.model, err = rlx.Open(p.sig.path, rlx.For(feed)); err != nil {
			return nil, err
		}
	}
	var err error
	if r.feed, r.how, err = p.feed(dims, tableRows(r.model.Graph())); err != nil {
		return nil, err
	}
	for _, name := range r.model.Bound() {
		r.bound[name] = r.feed[name]
		delete(r.feed, name)
	}
	if err := p.compile(ctx, r); err != nil {
		return nil, err
	}
	r.opened = time.Since(began)
	return r, nil
}

// compile makes the program, which stays for other sizes where the model is read for any.
func (p *preparation) compile(ctx context.Context, r *prepared) error {
	prog := p.prog
	if prog == nil {
		var err error
		if prog, err = r.model.Compile(ctx, p.options...); err != nil {
			return err
		}
	}
	var err error
	if r.plan, err = prog.Plan(ctx, r.feed); err != nil {
		if p.model == nil {
			prog.Close()
		}
		return err
	}
	if p.model != nil {
		p.prog = prog
	}
	r.prog = prog
	return nil
}

// feed is a tensor for every input.
func (p *preparation) feed(dims, rows map[string]int64) (rlx.Feed, map[string]string, error) {
	feed, how := maps.Clone(p.values.feed), map[string]string{}
	for i := range p.sig.inputs {
		in := &p.sig.inputs[i]
		if feed[in.name] != nil {
			continue
		}
		shape := make([]int64, len(in.typ.Shape))
		for k, d := range in.typ.Shape {
			shape[k], _ = d.Bind(dims).Static()
		}
		t, text, err := p.values.make(p.sig, in, shape, rows)
		if err != nil {
			return nil, nil, err
		}
		feed[in.name], how[in.name] = t, text
	}
	return feed, how, nil
}

// sizesNote says which dims were not given, and why some are not 1.
func (r *prepared) sizesNote(s *signature, v *values) string {
	var chosen []string
	for _, name := range s.symbols() {
		if _, given := v.dims[name]; !given {
			chosen = append(chosen, fmt.Sprintf("%s=%d", name, r.dims[name]))
		}
	}
	if len(chosen) == 0 {
		return ""
	}
	note := strings.Join(chosen, " ") + " (choose with --dim)"
	if len(r.grown) > 0 {
		note += fmt.Sprintf("; 1 is too small for %s: %s", strings.Join(r.grown, ", "), shortError(r.why))
	}
	return note
}

// shortError is the first line of an error, without the model's name.
func shortError(err error) string {
	var shape *rlx.ShapeError
	var imported *onnx.ImportError
	switch {
	case errors.As(err, &imported):
		err = fmt.Errorf("%w (node %s)", imported.Err, imported.Node)
	case errors.As(err, &shape):
		err = shape
	}
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}
