//go:build !cgo

package cgobench

// Call does nothing where there is no cgo.
func Call() {}
