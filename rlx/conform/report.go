package conform

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sort"

	"github.com/rlx-ml/rlx-go/rlx"
)

// Report counts the outcome of many cases.
type Report struct {
	Passed, Failed, Skipped int
	Gradients               int            // cases whose gradients are not checked yet
	Failures                []string       // file:line kind "name": what
	Skips                   map[string]int // reason: count
}

// RunFile runs every case of a file on the backend that opts choose and adds to the report. each, if not nil, is called after each case.
func (r *Report) RunFile(ctx context.Context, path string, each func(), opts ...rlx.Option) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return r.run(ctx, path, f, each, opts)
}

func (r *Report) run(ctx context.Context, path string, in io.Reader, each func(), opts []rlx.Option) error {
	if r.Skips == nil {
		r.Skips = map[string]int{}
	}
	defer Hold(ctx, opts...)()
	return Read(in, func(line int, c *Case) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := c.Run(ctx, opts...)
		var skip *Skip
		switch {
		case err == nil:
			r.Passed++
			if c.Grads != nil {
				r.Gradients++
			}
		case errors.As(err, &skip):
			r.Skipped++
			r.Skips[skip.Reason]++
		default:
			r.Failed++
			r.Failures = append(r.Failures, fmt.Sprintf("%s:%d %s: %v", path, line, c, err))
		}
		if each != nil {
			each()
		}
		return nil
	})
}

// Write prints failures, skips by reason, and the two closing lines.
func (r *Report) Write(w io.Writer) {
	for _, f := range r.Failures {
		fmt.Fprintln(w, f)
	}
	reasons := make([]string, 0, len(r.Skips))
	for s := range r.Skips {
		reasons = append(reasons, s)
	}
	sort.Strings(reasons)
	for _, s := range reasons {
		fmt.Fprintf(w, "skipped %d: %s\n", r.Skips[s], s)
	}
	fmt.Fprintf(w, "%d gradients not checked\n", r.Gradients)
	fmt.Fprintf(w, "%d passed, %d failed, %d skipped\n", r.Passed, r.Failed, r.Skipped)
}
