package ir

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// smallAlloc is what is allocated without a look at the machine.
const smallAlloc = 64 << 20

// Alloc is n zero bytes that start at a multiple of eight, or an error where the machine has not that much memory available: a failed
// allocation of Go's heap cannot be recovered, and shapes come from data.
func Alloc(n int64) ([]byte, error) {
	if n > smallAlloc {
		if free, ok := availableMemory(); ok && n > free {
			return nil, fmt.Errorf("%d bytes of memory are needed, %d are available", n, free)
		}
	}
	return Aligned(n), nil
}

// availableMemory asks Linux what it could give without swapping; ok is false where it cannot be asked.
func availableMemory() (int64, bool) {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0, false
	}
	defer f.Close()
	for sc := bufio.NewScanner(f); sc.Scan(); {
		if kb, ok := strings.CutPrefix(sc.Text(), "MemAvailable:"); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(kb), "kB")), 10, 64)
			return n << 10, err == nil
		}
	}
	return 0, false
}
