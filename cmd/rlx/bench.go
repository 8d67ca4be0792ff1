package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/rlx-ml/rlx-go/cmd/rlx/workload"
)

// benchLine is one JSON line of the benchmark; docs/bench.md describes the fields.
type benchLine struct {
	Workload  string   `json:"workload"`
	Peer      string   `json:"peer"`
	Threads   int      `json:"threads"`
	MinMS     float64  `json:"min_ms,omitempty"`
	MedianMS  float64  `json:"median_ms,omitempty"`
	Reps      int      `json:"reps,omitempty"`
	Version   string   `json:"version,omitempty"`
	GFLOPS    float64  `json:"gflops,omitempty"`
	GBps      float64  `json:"gbps,omitempty"`
	CompileMS float64  `json:"compile_ms,omitempty"`
	PeakBytes int64    `json:"peak_bytes,omitempty"`
	PlanBytes int64    `json:"plan_bytes,omitempty"`
	MaxErr    *float64 `json:"max_err,omitempty"`
	Note      string   `json:"note,omitempty"`
	Value     *float64 `json:"value,omitempty"`
	OK        *bool    `json:"ok,omitempty"`
	*machineLine
	text  string // of a service row
	share string // of the limit that binds, probed beside the runs
}

type benchOptions struct {
	json, limits, busy, compare bool
	threads                     int
	seconds                     float64
	backend                     string
}

func benchCommand() *cobra.Command {
	var o benchOptions
	c := &cobra.Command{
		Use:   "bench [--json] [--limits] [--backend B] [-t N] [-s SECONDS] [WORKLOAD-PREFIX...] | bench --compare FILE...",
		Short: "Measure workloads beside the limits of the machine, probed in the same run",
		RunE: func(c *cobra.Command, prefixes []string) error {
			if o.busy {
				keepBusy(c.Context())
				return c.Context().Err()
			}
			if o.compare {
				return benchCompare(c.OutOrStdout(), prefixes)
			}
			return bench(c, o, prefixes)
		},
	}
	c.Flags().BoolVar(&o.json, "json", false, "one JSON object a line")
	c.Flags().BoolVar(&o.limits, "limits", false, "print the machine's limits too")
	c.Flags().BoolVar(&o.compare, "compare", false, "instead, a page from files of such JSON lines, with the peers' among them")
	c.Flags().IntVarP(&o.threads, "threads", "t", 1, "threads that may compute")
	c.Flags().Float64VarP(&o.seconds, "seconds", "s", 1, "time per workload")
	c.Flags().StringVar(&o.backend, "backend", "cpu", "backend to measure")
	c.Flags().BoolVar(&o.busy, "busy", false, "be the busy process of service.busy")
	_ = c.Flags().MarkHidden("busy")
	return c
}

// benchJob is a row to measure.
type benchJob struct {
	name string
	run  func(context.Context, benchOptions) (*benchLine, error)
}

// benchJobs lists the rows whose names begin with one of the prefixes, all without prefixes.
func benchJobs(prefixes []string) (jobs []benchJob) {
	wanted := func(name string) bool {
		return len(prefixes) == 0 || slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
	}
	for _, w := range workload.All() {
		if wanted(w.Name) {
			jobs = append(jobs, benchJob{w.Name, func(ctx context.Context, o benchOptions) (*benchLine, error) { return measure(ctx, w, o) }})
		}
	}
	for _, b := range serviceBenches {
		if wanted(b.name) {
			jobs = append(jobs, benchJob{b.name, func(ctx context.Context, o benchOptions) (*benchLine, error) { return measureService(ctx, b, o) }})
		}
	}
	return jobs
}

func bench(c *cobra.Command, o benchOptions, prefixes []string) error {
	if o.threads < 1 || !(o.seconds > 0) {
		return usageError{fmt.Errorf("--threads %d and --seconds %v, expected at least 1 thread and more than 0 seconds", o.threads, o.seconds)}
	}
	jobs := benchJobs(prefixes)
	if len(jobs) == 0 && !(o.limits && slices.Equal(prefixes, []string{"limit"})) {
		return usageError{fmt.Errorf("no workload begins with any of %v", prefixes)}
	}
	if err := checkBackend(o.backend); err != nil {
		return err
	}
	enc := json.NewEncoder(c.OutOrStdout())
	table := tabwriter.NewWriter(c.OutOrStdout(), 0, 8, 2, ' ', 0)
	put := func(l *benchLine) error {
		if o.json {
			return enc.Encode(l)
		}
		l.row(table)
		return nil
	}
	if !o.json {
		fmt.Fprintln(table, "workload\tthreads\tmin ms\tmedian ms\tGFLOP/s\tGB/s\tof limit\tmax err\tnote")
	}
	if o.limits {
		if err := benchLimits(c.Context(), o, put); err != nil {
			return err
		}
	}
	bar := newProgress(c.ErrOrStderr(), len(jobs), "workloads")
	defer bar.finish()
	for _, job := range jobs {
		l, err := job.run(c.Context(), o)
		if c.Context().Err() != nil {
			return c.Context().Err()
		}
		bar.step()
		if err != nil {
			fmt.Fprintf(c.ErrOrStderr(), "%s: left out: %v\n", job.name, err)
		} else if err := put(l); err != nil {
			return err
		}
	}
	bar.finish()
	return table.Flush()
}

// row writes a line of the table; figures that a row does not have stay blank.
func (l *benchLine) row(w io.Writer) {
	if l.text != "" {
		fmt.Fprintf(w, "%s\t%d\t%s\n", l.Workload, l.Threads, l.text)
		return
	}
	number := func(format string, v float64) string {
		if v == 0 {
			return ""
		}
		return fmt.Sprintf(format, v)
	}
	errText := ""
	if l.MaxErr != nil {
		errText = fmt.Sprintf("%.1e", *l.MaxErr)
	}
	fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", l.Workload, l.Threads, number("%.4f", l.MinMS), number("%.4f", l.MedianMS), number("%.1f", l.GFLOPS),
		number("%.1f", l.GBps), l.share, errText, l.Note)
}

// version is the commit that the binary was built from, with a + where files had changed since, or "dev".
func version() string {
	commit, changed := "dev", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision" && len(s.Value) >= 7:
				commit = s.Value[:7]
			case s.Key == "vcs.modified" && s.Value == "true":
				changed = "+"
			}
		}
	}
	return commit + changed
}
