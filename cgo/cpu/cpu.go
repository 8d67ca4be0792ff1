//go:build cgo && !windows

package cpu

// #include "../native/rlx.h"
// const rlx_backend *rlx_backend_cpu(void);
import "C"

import (
	"unsafe"

	"github.com/rlx-ml/rlx-go/cgo/native"
	"github.com/rlx-ml/rlx-go/rlx/backend"
)

func init() { backend.Register(native.New(unsafe.Pointer(C.rlx_backend_cpu()))) }
