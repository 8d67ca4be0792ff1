package rlx

import (
	"math/bits"
	"runtime"
	"syscall"
	"unsafe"
)

// affinity counts the processors that the calling thread may run on, now: workers of a pool inherit its mask.
func affinity() int {
	var mask [1024]uint64
	size, _, errno := syscall.RawSyscall(syscall.SYS_SCHED_GETAFFINITY, 0, unsafe.Sizeof(mask), uintptr(unsafe.Pointer(&mask)))
	if errno != 0 {
		return runtime.NumCPU()
	}
	n := 0
	for _, word := range mask[:size/8] {
		n += bits.OnesCount64(word)
	}
	return n
}
