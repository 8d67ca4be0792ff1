package main

import (
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
		p.bar = progressbar.NewOptions(total, progressbar.OptionSetWriter(out), progressbar.OptionSetDescription(what),
			progressbar.OptionShowCount(), progressbar.OptionClearOnFinish(), progressbar.OptionThrottle(100*time.Millisecond))
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
