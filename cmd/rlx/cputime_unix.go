//go:build unix

package main

import (
	"syscall"
	"time"
)

// cpuTime is what this process has used so far.
func cpuTime() (time.Duration, bool) {
	var u syscall.Rusage
	err := syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), err == nil
}
