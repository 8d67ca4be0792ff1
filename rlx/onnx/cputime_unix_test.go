//go:build unix

package onnx

import (
	"syscall"
	"time"
)

// CPUTime is what the process has computed so far: a clock that a busy machine does not speed up.
func CPUTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
