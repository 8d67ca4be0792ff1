package rlx

import (
	"slices"
	"sync"

	"github.com/rlx-ml/rlx-go/rlx/internal/exec"
)

// MemoryStats counts memory outside Go's heap.
type MemoryStats struct {
	Native map[string]int64 // bytes held by the library of each backend that has an open program
}

var openDevices struct {
	sync.Mutex
	list []*exec.Target
}

func trackDevice(t *exec.Target) {
	openDevices.Lock()
	defer openDevices.Unlock()
	openDevices.list = append(openDevices.list, t)
}

func untrackDevice(t *exec.Target) {
	openDevices.Lock()
	defer openDevices.Unlock()
	openDevices.list = slices.DeleteFunc(openDevices.list, func(o *exec.Target) bool { return o == t })
}

// Stats reads the memory counters of the native libraries.
func Stats() MemoryStats {
	openDevices.Lock()
	defer openDevices.Unlock()
	s := MemoryStats{Native: map[string]int64{}}
	for _, t := range openDevices.list {
		s.Native[t.Backend.Name()] = t.Device.NativeBytes() // counts the whole library, so devices of one backend agree
		if t.Host != nil {
			s.Native[t.Host.Name()] = t.Host.NativeBytes()
		}
	}
	return s
}
