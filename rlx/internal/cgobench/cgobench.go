//go:build cgo

// Package cgobench is the unit of the overhead benchmarks: an empty cgo call.
package cgobench

// static void empty(void) {}
import "C"

// Call makes one empty cgo call.
func Call() { C.empty() }
