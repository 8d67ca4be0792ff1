//go:build !linux

package rlx

import "runtime"

// affinity counts the processors that the process may run on.
func affinity() int { return runtime.NumCPU() }
