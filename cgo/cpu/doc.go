// Package cpu links the CPU backend: importing it registers the backend "cpu". A plain build compiles csrc/cpu through cgo; with the build
// tag rlx_static it links build/lib/librlx_cpu.a, which `make lib` makes, or one that CGO_LDFLAGS=-L<folder> names.
package cpu
