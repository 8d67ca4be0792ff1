package rlx

import (
	"sync"

	"github.com/rlx-ml/rlx-go/rlx/backend"
)

// MemoryStats counts memory outside Go's heap.
type MemoryStats struct {
	Native map[string]int64 // bytes held by the library of each backend that has an open program
}

var openDevices struct {
	sync.Mutex
	list map[backend.Device]string
}

func trackDevice(d backend.Device, name string) {
	openDevices.Lock()
	defer openDevices.Unlock()
	if openDevices.list == nil {
		openDevices.list = map[backend.Device]string{}
	}
	openDevices.list[d] = name
}

func untrackDevice(d backend.Device) {
	openDevices.Lock()
	defer openDevices.Unlock()
	delete(openDevices.list, d)
}

// Stats reads the memory counters of the native libraries.
func Stats() MemoryStats {
	openDevices.Lock()
	defer openDevices.Unlock()
	s := MemoryStats{Native: map[string]int64{}}
	for d, name := range openDevices.list {
		s.Native[name] = d.NativeBytes() // counts the whole library, so devices of one backend agree
	}
	return s
}
