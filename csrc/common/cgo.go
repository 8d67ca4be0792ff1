//go:build !rlx_static

// Package common holds what native backends share: command words and host memory. Its Go code is flags only: cgo compiles the C++ beside it.
package common

// #cgo CXXFLAGS: -std=c++17 -O3 -fvisibility=hidden
import "C"

import _ "github.com/rlx-ml/rlx-go/cgo/native" // its constant changes when a shared header does
