package main

import (
	"context"
	"fmt"
	"math"
	"math/cmplx"
	"runtime"
	"slices"
	"time"

	"github.com/rlx-ml/rlx-go/cmd/rlx/workload"
	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// measure compiles a workload, checks its result, and times it. The limits are probed between the rounds.
func measure(ctx context.Context, w workload.Workload, o benchOptions) (*benchLine, error) {
	memory, t0 := heldMemory(), time.Now()
	c, err := w.Case()
	if err != nil {
		return nil, err
	}
	if !w.IsFile() {
		t0 = time.Now() // a graph that is written here is no part of what is measured
	}
	prog, err := rlx.Compile(ctx, c.Graph, rlx.On(o.backend), rlx.Threads(o.threads))
	if err != nil {
		return nil, err
	}
	defer prog.Close()
	out, err := prog.Run(ctx, c.Feed)
	if err != nil {
		return nil, err
	}
	l := &benchLine{Workload: w.Name, Peer: "rlx", Threads: o.threads, Version: version() + " " + prog.Device().ISA, Note: w.Note, CompileMS: time.Since(t0).Seconds() * 1e3}
	if o.backend != "cpu" {
		l.Peer = "rlx-" + o.backend
	}
	if l.MaxErr, err = check(ctx, w, c, out, o); err != nil {
		return nil, err
	}
	times, best, err := rounds(ctx, prog, c.Feed, out, w, o)
	if err != nil {
		return nil, err
	}
	plan, err := prog.Plan(ctx, c.Feed)
	if err != nil {
		return nil, err
	}
	l.PlanBytes = plan.Memory.Weights + plan.Memory.Folded + plan.Memory.Device
	c.Graph, plan = nil, nil // a service opens its model, compiles it, and keeps the program
	l.PeakBytes = heldMemory() - memory - bytesOf(c.Feed) - bytesOf(out)
	runtime.KeepAlive(c)
	slices.Sort(times)
	l.Reps = len(times)
	l.MinMS, l.MedianMS = times[0]*1e3, times[len(times)/2]*1e3
	l.GFLOPS, l.GBps = w.Flop/times[0]/1e9, w.Bytes/times[0]/1e9
	l.share = best.share(w, times[0])
	return l, nil
}

// heldMemory is what Go's heap and the native libraries hold, garbage apart.
func heldMemory() int64 {
	runtime.GC()
	runtime.GC() // what finalizers and pools let go of
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	n := int64(m.HeapAlloc)
	for _, bytes := range rlx.Stats().Native {
		n += bytes
	}
	return n
}

func bytesOf(feed rlx.Feed) (n int64) {
	for _, t := range feed {
		n += int64(len(t.Bytes()))
	}
	return n
}

// rounds times runs for o.seconds with probes between them, and returns seconds per run and the best limits.
func rounds(ctx context.Context, prog *rlx.Program, in, out rlx.Feed, w workload.Workload, o benchOptions) (times []float64, best limits, err error) {
	runtime.GC() // the reference's memory, before the clock runs
	r := prog.Runner()
	defer r.Close()
	const count = 5
	for range count {
		more, err := timed(ctx, r, in, out, o.seconds/count)
		if err != nil {
			return nil, best, err
		}
		times = append(times, more...)
		if err := best.probe(prog, w, o.threads); err != nil {
			return nil, best, err
		}
	}
	return times, best, nil
}

// timed runs for the given time, once at least, and returns seconds per run; runs under 20 us are timed in groups.
func timed(ctx context.Context, r *rlx.Runner, in, out rlx.Feed, seconds float64) ([]float64, error) {
	group := 1
	var times []float64
	for end := time.Now().Add(time.Duration(seconds * 1e9)); len(times) < 1 || time.Now().Before(end); {
		t0 := time.Now()
		for range group {
			if err := r.RunInto(ctx, in, out); err != nil {
				return nil, err
			}
		}
		d := time.Since(t0)
		if d < 20*time.Microsecond {
			group *= 2
			continue
		}
		times = append(times, d.Seconds()/float64(group))
	}
	return times, nil
}

// check holds the outputs of a run against the interpreter, and against the bits that another number of threads gives.
func check(ctx context.Context, w workload.Workload, c *workload.Case, out rlx.Feed, o benchOptions) (*float64, error) {
	if o.backend == "cpu" {
		if err := sameBits(ctx, c, out, 3-min(o.threads, 2)); err != nil {
			return nil, err
		}
	}
	ref, err := w.Reference()
	if err != nil {
		return nil, err
	}
	want, err := interpreted(ctx, ref)
	if err != nil {
		return nil, err
	}
	e, err := maxError(want, out, ref.Rows)
	if most := w.Tolerance(); err == nil && !(e <= most) {
		err = fmt.Errorf("the result is wrong: its largest error is %.2g of the largest magnitude, expected at most %.2g", e, most)
	}
	return &e, err
}

// sameBits runs with other threads and demands equal outputs.
func sameBits(ctx context.Context, c *workload.Case, want rlx.Feed, threads int) error {
	prog, err := rlx.Compile(ctx, c.Graph, rlx.On("cpu"), rlx.Threads(threads))
	if err != nil {
		return err
	}
	defer prog.Close()
	got, err := prog.Run(ctx, c.Feed)
	if err != nil {
		return err
	}
	for name, y := range want {
		if string(y.Bytes()) != string(got[name].Bytes()) {
			return fmt.Errorf("output %s has other bits with %d threads", name, threads)
		}
	}
	return nil
}

// interpreted runs a reference as it is written, without what the compiler would make of it.
func interpreted(ctx context.Context, c *workload.Case) (rlx.Feed, error) {
	prog, err := rlx.Compile(ctx, c.Graph, rlx.On("ref"), rlx.OnlyPasses())
	if err != nil {
		return nil, err
	}
	defer prog.Close()
	return prog.Run(ctx, c.Feed)
}

// maxError is the largest difference from the reference over the largest magnitude, of all outputs. rows are those that the reference has.
func maxError(want, got rlx.Feed, rows []int) (float64, error) {
	worst := 0.0
	for name, y := range want {
		row := y.Len()
		if rows != nil {
			row = y.Len() / len(rows)
		}
		diff, top := 0.0, 0.0
		for i := range y.Len() {
			at := i
			if rows != nil {
				at = rows[i/row]*row + i%row
			}
			a, b := element(y, i), element(got[name], at)
			diff, top = max(diff, cmplx.Abs(a-b)), max(top, cmplx.Abs(a))
		}
		if math.IsNaN(diff) || math.IsInf(top, 0) {
			return 0, fmt.Errorf("output %s has NaN or infinity", name)
		}
		if diff > 0 {
			worst = max(worst, diff/max(top, math.SmallestNonzeroFloat64))
		}
	}
	return worst, nil
}

func element(t *rlx.Tensor, i int) complex128 {
	switch d := t.DType(); {
	case d == rlx.C64:
		return complex128(t.At(i).(complex64))
	case ir.Int.Has(d) || d == rlx.Bool:
		return complex(float64(t.Int(i)), 0)
	}
	return complex(t.Float(i), 0)
}
