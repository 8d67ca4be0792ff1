// Command rlx is the library with a terminal in front of it: one file per sub-command.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// Exit codes: 0 done, 1 failed, 2 bad usage.
const (
	exitFailed = 1
	exitUsage  = 2
)

// usageError marks an error of the command line itself.
type usageError struct{ error }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := &cobra.Command{
		Use:           "rlx",
		Short:         "rlx compiles and runs machine learning graphs",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(demoCommand(), runCommand(), inspectCommand(), opsCommand(), backendsCommand(), conformCommand(), benchCommand())
	for _, c := range root.Commands() {
		if args := c.Args; args != nil {
			c.Args = func(c *cobra.Command, a []string) error {
				if err := args(c, a); err != nil {
					return usageError{fmt.Errorf("%w\nusage: %s", err, c.UseLine())}
				}
				return nil
			}
		}
	}
	err := root.ExecuteContext(ctx)
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "rlx:", err)
	var usage usageError
	if errors.As(err, &usage) || isUnknownCommand(err) {
		os.Exit(exitUsage)
	}
	os.Exit(exitFailed)
}

// isUnknownCommand recognises cobra's untyped error for a name that is no sub-command.
func isUnknownCommand(err error) bool {
	return len(err.Error()) > 15 && err.Error()[:15] == "unknown command"
}
