package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// progress is a bar on a terminal and a plain line every few seconds elsewhere.
type progress struct {
	out         io.Writer
	what        string
	done, total int
	bar         *progressbar.ProgressBar
	last        time.Time
	finished    bool
}

func newProgress(out io.Writer, total int, what string) *progress {
	p := &progress{out: out, what: what, total: total, last: time.Now()}
	if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		options := []progressbar.Option{progressbar.OptionSetWriter(out), progressbar.OptionSetDescription(what)}
		if total > 0 {
			options = append(options, progressbar.OptionShowCount())
		}
		p.bar = progressbar.NewOptions(total, append(options, progressbar.OptionClearOnFinish(), progressbar.OptionThrottle(100*time.Millisecond))...)
	}
	return p
}

func (p *progress) step() {
	p.done++
	switch {
	case p.bar != nil:
		p.bar.Add(1)
	case time.Since(p.last) > 5*time.Second:
		p.last = time.Now()
		fmt.Fprintf(p.out, "%d of %d %s\n", p.done, p.total, p.what)
	}
}

// finish removes the bar; it may be called twice.
func (p *progress) finish() {
	if p.bar != nil && !p.finished {
		p.bar.Finish()
	}
	p.finished = true
}

// stoppable runs f, which does not listen to the context itself, and leaves it behind when the context is cancelled. From a second on it
// shows that something goes on.
func stoppable[T any](ctx context.Context, out io.Writer, what string, f func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		v, err := f()
		done <- result{v, err}
	}()
	var spinner *progress
	began := time.Now()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case r := <-done:
			if spinner != nil {
				spinner.finish()
			}
			return r.value, r.err
		case <-ctx.Done():
			var none T
			return none, ctx.Err()
		case <-tick.C:
			if spinner == nil {
				spinner = newProgress(out, -1, what)
			}
			spinner.wait(time.Since(began))
		}
	}
}

// wait moves the spinner of a terminal, and says elsewhere now and then for how long it has been.
func (p *progress) wait(so time.Duration) {
	switch {
	case p.bar != nil:
		p.bar.Add(1)
	case time.Since(p.last) > 5*time.Second:
		p.last = time.Now()
		fmt.Fprintf(p.out, "%s for %v\n", p.what, so.Round(time.Second))
	}
}
