//go:build vulkan && cgo && !windows

package vulkan

/*
#cgo linux LDFLAGS: -L${SRCDIR}/../../build/lib -lrlx_vulkan -ldl -lpthread
#cgo darwin LDFLAGS: -L${SRCDIR}/../../build/lib -lrlx_vulkan
#include "../native/rlx.h"
const rlx_backend *rlx_backend_vulkan(void);
*/
import "C"

import (
	"unsafe"

	"github.com/rlx-ml/rlx-go/cgo/native"
	"github.com/rlx-ml/rlx-go/rlx/backend"
)

// Library is the hash of librlx_vulkan.a. It is exported so that a changed library changes this package for the Go build cache, and
// programs are linked again. `make vulkan` writes it to static_hash_gen.go; undefined here means that the library has not been built.
const Library = run_make_vulkan

func init() {
	backend.Register(native.New(unsafe.Pointer(C.rlx_backend_vulkan()), native.StageOnHost()))
}
