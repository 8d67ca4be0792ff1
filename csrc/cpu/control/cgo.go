//go:build !rlx_static

// Package control holds the CPU kernels of the control family. It has no Go code: cgo compiles the C++ beside it.
package control

// #cgo CXXFLAGS: -std=c++17 -O3 -fvisibility=hidden
import "C"

import _ "github.com/rlx-ml/rlx-go/cgo/native" // its constant changes when a shared header does
