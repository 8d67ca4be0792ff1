package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rlx-ml/rlx-go/rlx"
)

func runCommand() *cobra.Command {
	var inputs []string
	var out, backend string
	var repeat, threads int
	c := &cobra.Command{
		Use:   "run MODEL --in NAME=FILE.npy --out DIR [--backend B] [--repeat N]",
		Short: "Run one inference, .npy files in and out",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			feed, err := readFeed(inputs)
			if err != nil {
				return err
			}
			if repeat < 1 {
				return usageError{fmt.Errorf("--repeat %d, expected at least 1", repeat)}
			}
			model, err := openFor(args[0], feed)
			if err != nil {
				return err
			}
			prog, err := model.Compile(c.Context(), backendOptions(backend, threads)...)
			if err != nil {
				return err
			}
			defer prog.Close()
			times := make([]time.Duration, repeat)
			var result rlx.Feed
			for i := range times {
				t0 := time.Now()
				if result, err = prog.Run(c.Context(), feed); err != nil {
					return err
				}
				times[i] = time.Since(t0)
			}
			report(c, prog, result, times)
			return writeFeed(out, result)
		},
	}
	c.Flags().StringArrayVar(&inputs, "in", nil, "NAME=FILE.npy, once for each input")
	c.Flags().StringVar(&out, "out", "", "folder for NAME.npy of each output; empty writes none")
	c.Flags().StringVar(&backend, "backend", "", "backend to run on; empty chooses")
	c.Flags().IntVar(&repeat, "repeat", 1, "number of runs")
	c.Flags().IntVar(&threads, "threads", 0, "threads that may compute; 0 for all")
	return c
}

// openFor reads a model for any inputs, or else for those of feed, from which it takes out the ones that became constants.
func openFor(path string, feed rlx.Feed) (*rlx.Model, error) {
	model, err := rlx.Open(path)
	var lacks *rlx.ModelError
	if errors.As(err, &lacks) {
		model, err = rlx.Open(path, rlx.For(feed))
	}
	if err != nil {
		return nil, err
	}
	for _, name := range model.Bound() {
		delete(feed, name)
	}
	return model, nil
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

func readFeed(inputs []string) (rlx.Feed, error) {
	feed := rlx.Feed{}
	for _, in := range inputs {
		name, path, ok := strings.Cut(in, "=")
		if !ok {
			return nil, usageError{fmt.Errorf("--in %s, expected NAME=FILE.npy", in)}
		}
		t, err := readNPY(path)
		if err != nil {
			return nil, err
		}
		feed[name] = t
	}
	return feed, nil
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

func report(c *cobra.Command, prog *rlx.Program, out rlx.Feed, times []time.Duration) {
	w := c.OutOrStdout()
	fmt.Fprintln(w, prog)
	if err := prog.Fallback(); err != nil {
		fmt.Fprintln(w, "fell back:", err)
	}
	names := make([]string, 0, len(out))
	for name := range out {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(w, "%s %v\n", name, out[name])
	}
	first := times[0]
	slices.Sort(times)
	fmt.Fprintf(w, "first run %v", first)
	if len(times) > 1 {
		fmt.Fprintf(w, ", fastest of %d %v, median %v", len(times), times[0], times[len(times)/2])
	}
	fmt.Fprintln(w)
}
