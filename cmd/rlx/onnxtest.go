package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/conform"
	"github.com/rlx-ml/rlx-go/rlx/onnx/backendtest"
)

func onnxTestCommand() *cobra.Command {
	var name, skips string
	c := &cobra.Command{
		Use:   "onnx-test [--backend B] [--skips FILE] DIR...",
		Short: "Run ONNX backend tests (folders, or folders of folders, with model.onnx); the last line counts passed, failed and skipped",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, dirs []string) error {
			if _, _, err := rlx.Lookup(name); err != nil {
				return err
			}
			tests, err := backendtest.Find(dirs...)
			if err != nil {
				return err
			}
			var r backendtest.Report
			if skips != "" {
				if err := r.Allow(skips); err != nil {
					return err
				}
			}
			defer conform.Hold(c.Context(), rlx.On(name))()
			bar := newProgress(c.ErrOrStderr(), len(tests), "tests")
			defer bar.finish()
			for _, dir := range tests {
				if err := r.Run(c.Context(), dir, rlx.On(name)); err != nil {
					return err
				}
				bar.step()
			}
			bar.finish()
			r.Write(c.OutOrStdout())
			if r.Failed > 0 {
				return fmt.Errorf("%d tests failed on %s", r.Failed, name)
			}
			return nil
		},
	}
	c.Flags().StringVar(&name, "backend", "cpu", "backend to test")
	c.Flags().StringVar(&skips, "skips", "", "file with the names of the tests that may be skipped; another skip fails, and so does one of them that passes")
	return c
}
