// Command rlx is the library with a terminal in front of it: one file per sub-command.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// Exit codes.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

// usageError marks an error of the command line itself.
type usageError struct{ error }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := execute(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// execute runs one command line and returns the exit code.
func execute(ctx context.Context, args []string, out, errOut io.Writer) int {
	root := &cobra.Command{
		Use:           "rlx",
		Short:         "rlx compiles and runs machine learning graphs",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.AddCommand(demoCommand(), runCommand(), inspectCommand(), opsCommand(), backendsCommand(), conformCommand(), onnxTestCommand(), benchCommand(), exportCommand())
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w\nusage: %s", err, c.UseLine())}
	})
	for _, c := range root.Commands() {
		if check := c.Args; check != nil {
			c.Args = func(c *cobra.Command, a []string) error {
				if err := check(c, a); err != nil {
					return usageError{fmt.Errorf("%w\nusage: %s", err, c.UseLine())}
				}
				return nil
			}
		}
	}
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(errOut)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitDone
	}
	var usage usageError
	if !errors.As(err, &usage) && strings.HasPrefix(err.Error(), "unknown command") { // cobra's own error has no type
		usage = usageError{fmt.Errorf("%w\nrlx --help lists the commands", err)}
		err = usage
	}
	fmt.Fprintln(errOut, "rlx:", err)
	if usage.error != nil {
		return exitUsage
	}
	return exitFailed
}
