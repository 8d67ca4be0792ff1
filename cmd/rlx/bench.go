package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"runtime/debug"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/rlx-ml/rlx-go/cmd/rlx/workload"
	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// benchLine is one JSON line of the benchmark; docs/bench.md describes the fields.
type benchLine struct {
	Workload  string   `json:"workload"`
	Peer      string   `json:"peer"`
	Threads   int      `json:"threads"`
	MinMS     float64  `json:"min_ms"`
	MedianMS  float64  `json:"median_ms"`
	Reps      int      `json:"reps"`
	Version   string   `json:"version"`
	GFLOPS    float64  `json:"gflops,omitempty"`
	GBps      float64  `json:"gbps,omitempty"`
	CompileMS float64  `json:"compile_ms,omitempty"`
	MaxErr    *float64 `json:"max_err,omitempty"`
	Value     *float64 `json:"value,omitempty"`
	OK        *bool    `json:"ok,omitempty"`
	text      string
	share     float64 // of the limit that binds, probed beside the runs
}

type benchOptions struct {
	json, limits, busy bool
	threads            int
	seconds            float64
	backend            string
}

func benchCommand() *cobra.Command {
	var o benchOptions
	c := &cobra.Command{
		Use:   "bench [--json] [--limits] [--backend B] [-t N] [-s SECONDS] [WORKLOAD-PREFIX...]",
		Short: "Measure workloads beside the limits of the machine, probed in the same run",
		RunE: func(c *cobra.Command, prefixes []string) error {
			if o.busy {
				keepBusy(c.Context())
				return c.Context().Err()
			}
			return bench(c, o, prefixes)
		},
	}
	c.Flags().BoolVar(&o.json, "json", false, "one JSON object a line")
	c.Flags().BoolVar(&o.limits, "limits", false, "print the machine's limits too")
	c.Flags().IntVarP(&o.threads, "threads", "t", 1, "threads that may compute")
	c.Flags().Float64VarP(&o.seconds, "seconds", "s", 1, "time per workload")
	c.Flags().StringVar(&o.backend, "backend", "cpu", "backend to measure")
	c.Flags().BoolVar(&o.busy, "busy", false, "be the busy process of service.busy")
	_ = c.Flags().MarkHidden("busy")
	return c
}

func bench(c *cobra.Command, o benchOptions, prefixes []string) error {
	if o.threads < 1 || !(o.seconds > 0) {
		return usageError{fmt.Errorf("--threads %d and --seconds %v, expected at least 1 thread and more than 0 seconds", o.threads, o.seconds)}
	}
	var chosen []workload.Workload
	for _, w := range workload.All() {
		if len(prefixes) == 0 || slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(w.Name, p) }) {
			chosen = append(chosen, w)
		}
	}
	var services []serviceBench
	for _, b := range serviceBenches {
		if len(prefixes) == 0 || slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(b.name, p) }) {
			services = append(services, b)
		}
	}
	if len(chosen)+len(services) == 0 && len(prefixes) > 0 {
		return usageError{fmt.Errorf("no workload begins with any of %v", prefixes)}
	}
	if err := checkBackend(o.backend); err != nil {
		return err
	}
	out := c.OutOrStdout()
	enc := json.NewEncoder(out)
	table := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	if !o.json {
		fmt.Fprintln(table, "workload\tthreads\tmin ms\tmedian ms\tGFLOP/s\tGB/s\tof limit\tmax err")
	}
	if o.limits {
		if err := benchLimits(c.Context(), o, enc, table); err != nil {
			return err
		}
	}
	bar := newProgress(c.ErrOrStderr(), len(chosen)+len(services), "workloads")
	defer bar.finish()
	for _, w := range chosen {
		l, err := measure(c.Context(), w, o)
		if c.Context().Err() != nil {
			return c.Context().Err()
		}
		bar.step()
		switch {
		case err != nil:
			fmt.Fprintf(c.ErrOrStderr(), "%s: left out: %v\n", w.Name, err)
		case o.json:
			if err := enc.Encode(l); err != nil {
				return err
			}
		default:
			l.row(table)
		}
	}
	for _, b := range services {
		l, err := measureService(c.Context(), b, o)
		if c.Context().Err() != nil {
			return c.Context().Err()
		}
		bar.step()
		switch {
		case err != nil:
			fmt.Fprintf(c.ErrOrStderr(), "%s: left out: %v\n", b.name, err)
		case o.json:
			if err := enc.Encode(l); err != nil {
				return err
			}
		default:
			fmt.Fprintf(table, "%s\t%d\t%s\n", l.Workload, l.Threads, l.text)
		}
	}
	bar.finish()
	return table.Flush()
}

func measureService(ctx context.Context, b serviceBench, o benchOptions) (*benchLine, error) {
	s, err := newService(ctx, o)
	if err != nil {
		return nil, err
	}
	defer s.prog.Close()
	value, text, ok, err := b.run(ctx, s, o)
	if err != nil {
		return nil, err
	}
	if !ok {
		text += " (missed)"
	}
	return &benchLine{Workload: b.name, Peer: "rlx", Threads: o.threads, Version: version() + " " + s.prog.Device().ISA, MaxErr: s.err, Value: &value, OK: &ok, text: text}, nil
}

func (l *benchLine) row(w io.Writer) {
	errText := ""
	if l.MaxErr != nil {
		errText = fmt.Sprintf("%.1e", *l.MaxErr)
	}
	fmt.Fprintf(w, "%s\t%d\t%.4f\t%.4f\t%.1f\t%.1f\t%.0f %%\t%s\n", l.Workload, l.Threads, l.MinMS, l.MedianMS, l.GFLOPS, l.GBps, 100*l.share, errText)
}

// measure compiles a workload, checks its result against the interpreter, and times it. The limits are probed between the rounds.
func measure(ctx context.Context, w workload.Workload, o benchOptions) (*benchLine, error) {
	g, feed := w.Build(workload.NewRandom())
	t0 := time.Now()
	prog, err := rlx.Compile(ctx, g, rlx.On(o.backend), rlx.Threads(o.threads))
	if err != nil {
		return nil, err
	}
	defer prog.Close()
	out, err := prog.Run(ctx, feed)
	if err != nil {
		return nil, err
	}
	l := &benchLine{Workload: w.Name, Peer: "rlx", Threads: o.threads, Version: version() + " " + prog.Device().ISA, CompileMS: time.Since(t0).Seconds() * 1e3}
	if o.backend != "cpu" {
		l.Peer = "rlx-" + o.backend
	}
	if l.MaxErr, err = maxError(ctx, g, feed, out); err != nil {
		return nil, err
	}
	r := prog.Runner()
	defer r.Close()
	var times []float64
	limit := rlx.Limits{}
	const rounds = 5
	for range rounds {
		more, err := timed(ctx, r, feed, out, o.seconds/rounds)
		if err != nil {
			return nil, err
		}
		times = append(times, more...)
		now, ok, err := prog.Probe(o.threads, max(uint64(w.Bytes)/uint64(o.threads), 1<<14), 0.02)
		if err != nil {
			return nil, err
		}
		if ok {
			limit.GFLOPS, limit.GBps = max(limit.GFLOPS, now.GFLOPS), max(limit.GBps, now.GBps)
		}
	}
	slices.Sort(times)
	l.Reps = len(times)
	l.MinMS, l.MedianMS = times[0]*1e3, times[len(times)/2]*1e3
	l.GFLOPS, l.GBps = w.Flop/times[0]/1e9, w.Bytes/times[0]/1e9
	if limit.GFLOPS > 0 {
		l.share = max(l.GFLOPS/limit.GFLOPS, l.GBps/limit.GBps)
	}
	return l, nil
}

// timed runs for the given time and returns seconds per run; runs under 20 us are timed in groups.
func timed(ctx context.Context, r *rlx.Runner, in, out rlx.Feed, seconds float64) ([]float64, error) {
	group := 1
	var times []float64
	for end := time.Now().Add(time.Duration(seconds * 1e9)); len(times) < 2 || time.Now().Before(end); {
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

// maxError is the largest difference from the interpreter over the largest magnitude.
func maxError(ctx context.Context, g *rlx.Graph, feed, got rlx.Feed) (*float64, error) {
	ref, err := rlx.Compile(ctx, g, rlx.On("ref"))
	if err != nil {
		return nil, err
	}
	defer ref.Close()
	want, err := ref.Run(ctx, feed)
	if err != nil {
		return nil, err
	}
	worst, top := 0.0, 0.0
	for name, y := range want {
		for i := range y.Len() {
			worst = max(worst, math.Abs(y.Float(i)-got[name].Float(i)))
			top = max(top, math.Abs(y.Float(i)))
		}
	}
	e := worst / max(top, math.SmallestNonzeroFloat64)
	return &e, nil
}

// benchLimits prints the machine's limits as workloads limit.f32, limit.l1, limit.l2 and limit.dram.
func benchLimits(ctx context.Context, o benchOptions, enc *json.Encoder, w io.Writer) error {
	g := rlx.NewGraph("probe")
	g.Output("y", op.Neg(g.Input("x", rlx.F32, rlx.Shape(1))))
	prog, err := rlx.Compile(ctx, g, rlx.On(o.backend), rlx.Threads(o.threads))
	if err != nil {
		return err
	}
	defer prog.Close()
	for _, level := range []struct {
		name  string
		bytes uint64
	}{{"f32", 0}, {"l1", 24 << 10}, {"l2", 256 << 10}, {"l3", 3 << 20}, {"dram", 96 << 20}} {
		limit, ok, err := prog.Probe(o.threads, max(level.bytes, 1<<14), 0.3)
		if err != nil || !ok {
			return err
		}
		l := benchLine{Workload: "limit." + level.name, Peer: "limits", Threads: o.threads, Version: prog.Device().ISA}
		if level.bytes == 0 {
			l.GFLOPS = limit.GFLOPS
		} else {
			l.GBps = limit.GBps
		}
		if !o.json {
			fmt.Fprintf(w, "%s\t%d\t\t\t%.1f\t%.1f\n", l.Workload, l.Threads, l.GFLOPS, l.GBps)
		} else if err := enc.Encode(l); err != nil {
			return err
		}
	}
	return nil
}

// version is the commit that the binary was built from, or "dev".
func version() string {
	info, ok := debug.ReadBuildInfo()
	if ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && len(s.Value) >= 7 {
				return s.Value[:7]
			}
		}
	}
	return "dev"
}
