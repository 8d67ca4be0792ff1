package conform

import (
	"hash/fnv"
	"slices"
	"sync"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/backend"
	"github.com/rlx-ml/rlx-go/rlx/internal/ref"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// Masks are the names of the test backends: ref with capabilities taken away, so that every path of the compiler runs.
//
//	ref-composed  what has a decomposition is decomposed, down to primitives
//	ref-host      nothing is native but Copy: everything is staged on the host
//	ref-dense     kernels take contiguous operands only
//	ref-device    a device with memory of its own that has every second row, for contiguous operands; the others are staged
var Masks = []string{"ref-composed", "ref-host", "ref-dense", "ref-device"}

// RegisterMasks makes the test backends known to rlx.On.
func RegisterMasks() {
	backend.Register(ref.New("ref-composed", ref.Mask{Compose: true}))
	backend.Register(ref.New("ref-host", ref.Mask{Keep: func(r *ir.Row) bool { return r == op.CopyRow() }, Stage: true}))
	backend.Register(ref.New("ref-dense", ref.Mask{Dense: true}))
	backend.Register(ref.New("ref-device", ref.Mask{Keep: everySecond, Stage: true, Dense: true, Private: true}))
}

// everySecond picks about half of the rows, whatever others there are.
func everySecond(r *ir.Row) bool {
	h := fnv.New32a()
	h.Write([]byte(r.Name))
	return h.Sum32()>>4&1 == 0
}

// linked are the backends that packages of this build registered in init; those of tests are registered later, by calls.
var linked = backend.Names()

// Backends lists what tests run on in this build and on this machine: each linked backend of which a device answers.
var Backends = sync.OnceValue(func() []string {
	var l []string
	for _, name := range linked {
		if b, _, err := rlx.Lookup(name); err == nil {
			if devices, err := b.Devices(); err == nil && len(devices) > 0 {
				l = append(l, name)
			}
		}
	}
	return l
})

// Slow says whether compiling and calling cost so much on a backend that tests shall take a part of their cases there: they do on
// accelerators, which are the linked backends that stage rows on the host.
func Slow(name string) bool { return slices.Contains(linked, name) && stages(name) }

// stages says whether a backend has rows run on the host.
func stages(name string) bool {
	b, err := backend.Lookup(name)
	if err != nil {
		return false
	}
	s, ok := b.(rlx.Stager)
	return ok && slices.ContainsFunc(ir.Rows(), s.StageOnHost)
}
