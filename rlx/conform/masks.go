package conform

import (
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
var Masks = []string{"ref-composed", "ref-host", "ref-dense"}

// RegisterMasks makes the test backends known to rlx.On.
func RegisterMasks() {
	backend.Register(ref.New("ref-composed", ref.Mask{Compose: true}))
	backend.Register(ref.New("ref-host", ref.Mask{Keep: func(r *ir.Row) bool { return r == op.CopyRow() }, Stage: true}))
	backend.Register(ref.New("ref-dense", ref.Mask{Dense: true}))
}
