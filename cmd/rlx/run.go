package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rlx-ml/rlx-go/rlx"
)

// runFlags are the flags of rlx run beside those of the inputs.
type runFlags struct {
	inputFlags
	random          bool
	out, backend    string
	repeat, threads int
	profile         string
}

func runCommand() *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "run MODEL [--in NAME=FILE.npy]... [--random [--seed N]] [--dim NAME=N]... [--out DIR] [--backend B] [--repeat N] [--profile FILE.json]",
		Short: "Run one inference: .npy files, numbers or random values in, statistics and .npy files out",
		Example: `  rlx run model.onnx --random
  rlx run model.onnx --random --dim batch=4 --repeat 20 --profile trace.json
  rlx run model.onnx --in x=x.npy --in sr=16000 --out results`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return runModel(c, args[0], &f) },
	}
	f.add(c)
	c.Flags().BoolVar(&f.random, "random", false, "fill inputs that are not given with random values: floats normal(0, 1), integers rows of the table that they index, "+
		"all values of 8 bits, or 0 and 1; an integer that the model compares with a constant is that constant")
	c.Flags().StringVar(&f.out, "out", "", "folder for NAME.npy of each output; empty writes none")
	c.Flags().StringVar(&f.backend, "backend", "", "backend to run on; empty chooses")
	c.Flags().IntVar(&f.repeat, "repeat", 1, "number of timed runs; from 2 on, one more run warms up")
	c.Flags().IntVar(&f.threads, "threads", 0, "threads that may compute; 0 for all")
	c.Flags().StringVar(&f.profile, "profile", "", "write a Chrome trace of the last run to this file, and print what took the time")
	return c
}

func runModel(c *cobra.Command, path string, f *runFlags) error {
	if f.repeat < 1 {
		return usageError{fmt.Errorf("--repeat %d, expected at least 1", f.repeat)}
	}
	if f.threads < 0 {
		return usageError{fmt.Errorf("--threads %d, expected at least 1, or 0 for all", f.threads)}
	}
	if err := checkBackend(f.backend); err != nil {
		return err
	}
	sig, err := readSignature(path)
	if err != nil {
		return err
	}
	v, err := f.values(sig)
	if err == nil && !f.random {
		err = v.needAll(sig)
	}
	if err != nil {
		return err
	}
	p := &preparation{sig: sig, values: v, options: backendOptions(f.backend, f.threads), errOut: c.ErrOrStderr()}
	r, err := p.prepare(c.Context())
	if err != nil {
		return err
	}
	defer r.prog.Close()
	result, times, profile, err := timedRuns(c, r, f)
	if err != nil {
		return err
	}
	report(c.OutOrStdout(), sig, v, r, result, times)
	if err := writeFeed(f.out, result); err != nil {
		return err
	}
	return writeProfile(c, f.profile, profile)
}

// checkBackend says early that a backend is not there, and which are.
func checkBackend(name string) error {
	if name == "" {
		return nil
	}
	_, _, err := rlx.Lookup(name)
	return err
}

func backendOptions(backend string, threads int) []rlx.Option {
	var opts []rlx.Option
	if backend != "" {
		opts = append(opts, rlx.On(backend))
	}
	if threads > 0 {
		opts = append(opts, rlx.Threads(threads))
	}
	return opts
}

// timedRuns runs a warm-up where there is more than one run, and then the runs; the last has a profile where one is asked for.
func timedRuns(c *cobra.Command, r *prepared, f *runFlags) (result rlx.Feed, times []time.Duration, profile *rlx.Profile, err error) {
	runs := f.repeat
	if runs > 1 {
		runs++
	}
	bar := newProgress(c.ErrOrStderr(), runs, "runs")
	defer bar.finish()
	for i := range runs {
		opts := []rlx.RunOption{rlx.Seed(f.seed)}
		if i == runs-1 && f.profile != "" {
			profile = new(rlx.Profile)
			opts = append(opts, rlx.WithProfile(profile))
		}
		t0 := time.Now()
		if result, err = r.prog.Run(c.Context(), r.feed, opts...); err != nil {
			return nil, nil, nil, err
		}
		times = append(times, time.Since(t0))
		bar.step()
	}
	return result, times, profile, nil
}

// writeFeed writes each tensor to dir/NAME.npy; characters that file names cannot hold become underscores.
func writeFeed(dir string, feed rlx.Feed) error {
	if dir == "" {
		return nil
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	for name, t := range feed {
		file := strings.Map(func(r rune) rune {
			if strings.ContainsRune(`/\:*?"<>|`, r) {
				return '_'
			}
			return r
		}, name)
		if err := writeNPY(filepath.Join(dir, file+".npy"), t); err != nil {
			return err
		}
	}
	return nil
}

// writeProfile writes the trace and prints the table.
func writeProfile(c *cobra.Command, path string, p *rlx.Profile) error {
	if p == nil {
		return nil
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(file)
	if err := errors.Join(p.WriteTrace(w), w.Flush(), file.Close()); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	profileTable(c.OutOrStdout(), p)
	_, err = fmt.Fprintf(c.OutOrStdout(), "trace in %s: open it in ui.perfetto.dev or chrome://tracing\n", path)
	return err
}
