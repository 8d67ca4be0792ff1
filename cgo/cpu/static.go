//go:build cgo && !windows && rlx_static

package cpu

// #cgo LDFLAGS: -L${SRCDIR}/../../build/lib -lrlx_cpu -lm -lpthread
import "C"

// Library is the hash of librlx_cpu.a. It is exported so that a changed library changes this package for the Go build cache, and programs are
// linked again. `make lib` writes it to static_hash_gen.go; undefined here means that the library has not been built.
const Library = run_make_lib
