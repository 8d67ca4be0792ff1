package main

import "github.com/spf13/cobra"

func extraCommands() []*cobra.Command { return []*cobra.Command{demoCommand()} }
