//go:build !rlx_static

// Package region holds the CPU kernels of the region family. It has no Go code: cgo compiles the C++ beside it.
package region

// #cgo CXXFLAGS: -std=c++17 -O3 -fvisibility=hidden
import "C"

import _ "github.com/rlx-ml/rlx-go/cgo/native" // its constant changes when a shared header does
