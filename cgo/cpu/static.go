//go:build cgo && !windows && rlx_static

package cpu

// #cgo LDFLAGS: -L${SRCDIR}/../../build/lib -lrlx_cpu -lm -lpthread
import "C"

// The hash of librlx_cpu.a, so that the Go build cache sees a changed library. `make lib` writes it to library_gen.go; undefined here means
// that the library has not been built.
const _ = run_make_lib
