package backendtest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rlx-ml/rlx-go/rlx"
)

// Report counts tests and keeps why some did not pass.
type Report struct {
	Passed, Failed, Skipped int

	failures []string
	skips    map[string][]string // tests by operators, or by reason where there are none
	allowed  map[string]bool     // nil: all
	differ   map[string]bool     // tests whose stored values are themselves wrong by more than the tolerance
}

// Failures says what failed, a line each.
func (r *Report) Failures() []string { return r.failures }

// Allow makes every skip of a test that is not listed a failure, and every pass of one that is: the list can only become shorter. A line of
// the file is the name of a test; # starts a comment. A line "differs NAME" is for a test whose stored values are off by more than the
// tolerance: it runs, and a difference counts as a skip.
func (r *Report) Allow(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	r.allowed, r.differ = map[string]bool{}, map[string]bool{}
	sc := bufio.NewScanner(f)
	for sc.Scan() {
		name, _, _ := strings.Cut(sc.Text(), "#")
		switch word := strings.Fields(name); {
		case len(word) == 1:
			r.allowed[word[0]] = true
		case len(word) == 2 && word[0] == "differs":
			r.differ[word[1]] = true
		case len(word) > 0:
			return fmt.Errorf("%s: line %q, expected a name, or differs and a name", path, sc.Text())
		}
	}
	return sc.Err()
}

// Run runs one test and counts it. The error is that of ctx alone.
func (r *Report) Run(ctx context.Context, dir string, opts ...rlx.Option) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r.Count(filepath.Base(dir), Run(ctx, dir, opts...))
	return ctx.Err()
}

// Count counts the result of a test and returns it, or the failure that the list of skips makes of it.
func (r *Report) Count(name string, err error) error {
	var skip *Skip
	switch listed := r.allowed[name]; {
	case errors.As(err, &skip) && r.allowed != nil && !listed:
		err = fmt.Errorf("is not in the list of skips: %v", skip)
	case r.differ[name] && err != nil && skip == nil:
		err = &Skip{Reason: "the stored values are off: " + err.Error()}
	case err == nil && listed:
		err = errors.New("passed, and has to leave the list of skips")
	}
	switch {
	case err == nil:
		r.Passed++
	case errors.As(err, &skip):
		r.Skipped++
		key := strings.Join(skip.Operators, " ")
		if key == "" {
			key = skip.Reason
		}
		if r.skips == nil {
			r.skips = map[string][]string{}
		}
		r.skips[key] = append(r.skips[key], name)
	default:
		r.Failed++
		r.failures = append(r.failures, fmt.Sprintf("%s: %v", name, err))
	}
	return err
}

// Write prints the failures, the skips by operators, the most frequent first, and the counts.
func (r *Report) Write(w io.Writer) {
	for _, f := range r.failures {
		fmt.Fprintln(w, f)
	}
	keys := make([]string, 0, len(r.skips))
	for k := range r.skips {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b string) int {
		if d := len(r.skips[b]) - len(r.skips[a]); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	for _, k := range keys {
		fmt.Fprintf(w, "skipped %d: %s (%s)\n", len(r.skips[k]), k, shortened(r.skips[k]))
	}
	fmt.Fprintf(w, "%d passed, %d failed, %d skipped\n", r.Passed, r.Failed, r.Skipped)
}

// shortened names the first few tests.
func shortened(names []string) string {
	const few = 4
	if len(names) <= few {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:few], ", ") + ", ..."
}
