//go:build !rlx_static

// Package fft holds the CPU kernels of the fft family. It has no Go code: cgo compiles the C++ beside it.
package fft

// #cgo CXXFLAGS: -std=c++17 -O3 -fvisibility=hidden
import "C"

import _ "github.com/rlx-ml/rlx-go/cgo/native" // its constant changes when a shared header does
