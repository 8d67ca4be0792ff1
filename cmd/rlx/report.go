package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// stats describe the elements of a tensor. Min, mean and max are of the finite ones.
type stats struct {
	min, mean, max  float64
	nan, inf, count int
}

func statsOf(t *rlx.Tensor) stats {
	s := stats{min: math.Inf(1), max: math.Inf(-1)}
	sum := 0.0
	for i := range t.Len() {
		switch v := t.Float(i); {
		case math.IsNaN(v):
			s.nan++
		case math.IsInf(v, 0):
			s.inf++
		default:
			s.count++
			s.min, s.max, sum = min(s.min, v), max(s.max, v), sum+v
		}
	}
	s.mean = sum / float64(s.count)
	return s
}

func (s stats) String() string {
	text := "no finite element"
	if s.count > 0 {
		text = fmt.Sprintf("min %.6g, mean %.6g, max %.6g", s.min, s.mean, s.max)
	}
	return fmt.Sprintf("%s, %d NaN, %d Inf", text, s.nan, s.inf)
}

// report says what ran on what, what came out, and how long it took.
func report(w io.Writer, s *signature, v *values, r *prepared, out rlx.Feed, times []time.Duration) {
	fmt.Fprintln(w, r.prog)
	if err := r.prog.Fallback(); err != nil {
		fmt.Fprintln(w, "fell back:", err)
	}
	reportInputs(w, s, v, r)
	for _, o := range r.model.Graph().Outputs { // that of the program has lengths beside them
		t := out[o.Name]
		fmt.Fprintf(w, "output %s  %s\n", o.Name, typeText(t))
		switch {
		case t.Len() == 0:
			fmt.Fprintln(w, "  no elements")
		case t.DType() == rlx.C64:
			fmt.Fprintf(w, "  first %s\n", firstValues(t))
		default:
			fmt.Fprintf(w, "  %s\n  first %s\n", statsOf(t), firstValues(t))
		}
	}
	fmt.Fprintln(w, latency(times, r.opened))
}

// reportInputs tells of the inputs that no file gives, and of those that became constants.
func reportInputs(w io.Writer, s *signature, v *values, r *prepared) {
	random := false
	for _, in := range s.inputs {
		t, constant := r.feed[in.name], r.bound[in.name]
		if t == nil {
			t = constant
		}
		how := r.how[in.name]
		if how == "" && constant == nil {
			continue
		}
		if random = random || strings.HasPrefix(how, "random"); how == "" {
			how = firstValues(t)
		}
		if constant != nil {
			how += "; the graph depends on it, so it became a constant"
		}
		fmt.Fprintf(w, "input %s  %s: %s\n", in.name, typeText(t), how)
	}
	if random {
		fmt.Fprintf(w, "seed %d\n", v.seed)
	}
	if note := r.sizesNote(s, v); note != "" {
		fmt.Fprintf(w, "sizes %s\n", note)
	}
}

func typeText(t *rlx.Tensor) string { return t.Type().String() }

// firstValues are a few elements, as many as fit a line.
func firstValues(t *rlx.Tensor) string {
	n := min(t.Len(), 8)
	list := make([]string, n)
	for i := range n {
		if list[i] = fmt.Sprint(t.At(i)); ir.Float.Has(t.DType()) {
			list[i] = fmt.Sprintf("%.6g", t.Float(i))
		}
	}
	if t.Len() > n {
		list = append(list, "...")
	}
	return strings.Join(list, " ")
}

// latency sums up the runs: the first of several warmed up.
func latency(times []time.Duration, opened time.Duration) string {
	first := fmt.Sprintf("read and compiled in %v; first run %v", short(opened), short(times[0]))
	if len(times) == 1 {
		return first + " (not warmed up; --repeat measures)"
	}
	timed := slices.Sorted(slices.Values(times[1:]))
	return fmt.Sprintf("%s (warm-up); %d runs: median %v, min %v", first, len(timed), short(median(timed)), short(timed[0]))
}

func median(sorted []time.Duration) time.Duration {
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// short rounds to three digits.
func short(d time.Duration) time.Duration {
	unit := time.Duration(1)
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit)
}

// profileTable prints the ten most expensive ops of a run. Shares are of the whole run, what lies between commands too.
func profileTable(out io.Writer, p *rlx.Profile) {
	total := float64(p.End - p.Start)
	list, busy := p.ByOp(), uint64(0)
	for _, o := range list {
		busy += o.Nanos
	}
	fmt.Fprintf(out, "where the time went, last run: %v in %d commands, %.1f%% between them\n",
		short(time.Duration(p.End-p.Start)), len(p.Steps), 100*(total-float64(busy))/total)
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "op\tcommands\ttime\tshare\t\n")
	for i, o := range list {
		if i == 10 && len(list) > 11 {
			rest := rlx.ProfileOp{}
			for _, x := range list[10:] {
				rest.Commands, rest.Nanos = rest.Commands+x.Commands, rest.Nanos+x.Nanos
			}
			rest.Op = fmt.Sprintf("%d others", len(list)-10)
			o = rest
		}
		fmt.Fprintf(w, "%s\t%d\t%v\t%.1f%%\t\n", o.Op, o.Commands, short(time.Duration(o.Nanos)), 100*float64(o.Nanos)/total)
		if i == 10 {
			break // the eleventh, or all that are left
		}
	}
	w.Flush()
}
