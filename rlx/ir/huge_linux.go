package ir

import (
	"syscall"
	"unsafe"
)

// hugePage is the size of a page that the system may give for many small ones, hugeAlloc that of the least memory it is asked for, as NumPy does.
const hugePage, hugeAlloc = 2 << 20, 4 << 20

// adviseHuge asks for huge pages under new memory: a kernel that passes over some MiB misses the TLB at every small page, which took up to half
// of its time. A system that has none says no, and nothing changes.
func adviseHuge(data []byte) {
	if len(data) < hugeAlloc {
		return
	}
	at := uintptr(unsafe.Pointer(unsafe.SliceData(data)))
	first := int(-at & (hugePage - 1))
	if n := (len(data) - first) &^ (hugePage - 1); n > 0 {
		_ = syscall.Madvise(data[first:first+n], syscall.MADV_HUGEPAGE)
	}
}
