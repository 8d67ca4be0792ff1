//go:build !rlx_static

// Package core holds the CPU backend around the kernels: words, dispatch, thread pool. Its Go code is a hash: cgo compiles the C++ beside it.
package core

// #cgo CXXFLAGS: -std=c++17 -O3 -fvisibility=hidden
import "C"

import _ "github.com/rlx-ml/rlx-go/cgo/native" // its constant changes when a shared header does
