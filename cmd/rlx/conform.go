package main

import (
	"bufio"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/conform"
)

func conformCommand() *cobra.Command {
	var name string
	c := &cobra.Command{
		Use:   "conform [--backend B] CASES.jsonl...",
		Short: "Run case files on a backend; the last line counts passed, failed and skipped",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, files []string) error {
			conform.RegisterMasks()
			if _, _, err := rlx.Lookup(name); err != nil {
				return err
			}
			defer conform.Hold(c.Context(), rlx.On(name))()
			total := 0
			for _, f := range files {
				n, err := countLines(f)
				if err != nil {
					return err
				}
				total += n
			}
			bar := newProgress(c.ErrOrStderr(), total, "cases")
			defer bar.finish()
			var r conform.Report
			for _, f := range files {
				if err := r.RunFile(c.Context(), f, bar.step, rlx.On(name)); err != nil {
					return fmt.Errorf("%s: %w", f, err)
				}
			}
			bar.finish()
			r.Write(c.OutOrStdout())
			if r.Failed > 0 {
				return fmt.Errorf("%d cases failed on %s", r.Failed, name)
			}
			return nil
		},
	}
	c.Flags().StringVar(&name, "backend", "cpu", "backend to test")
	return c
}

func countLines(path string) (int, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<28)
	n := 0
	for sc.Scan() {
		if len(sc.Bytes()) > 0 {
			n++
		}
	}
	return n, sc.Err()
}
