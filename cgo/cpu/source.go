//go:build cgo && !windows && !rlx_static

package cpu

// #cgo LDFLAGS: -lm -lpthread
import "C"

// The kernels, compiled by cgo: one package per folder.
import (
	_ "github.com/rlx-ml/rlx-go/csrc/common"
	_ "github.com/rlx-ml/rlx-go/csrc/cpu/attention"
	_ "github.com/rlx-ml/rlx-go/csrc/cpu/complex"
	_ "github.com/rlx-ml/rlx-go/csrc/cpu/control"
	_ "github.com/rlx-ml/rlx-go/csrc/cpu/conv"
	_ "github.com/rlx-ml/rlx-go/csrc/cpu/core"
	_ "github.com/rlx-ml/rlx-go/csrc/cpu/elementwise"
	_ "github.com/rlx-ml/rlx-go/csrc/cpu/fft"
	_ "github.com/rlx-ml/rlx-go/csrc/cpu/index"
	_ "github.com/rlx-ml/rlx-go/csrc/cpu/matmul"
	_ "github.com/rlx-ml/rlx-go/csrc/cpu/norm"
	_ "github.com/rlx-ml/rlx-go/csrc/cpu/pool"
	_ "github.com/rlx-ml/rlx-go/csrc/cpu/quant"
	_ "github.com/rlx-ml/rlx-go/csrc/cpu/reduce"
	_ "github.com/rlx-ml/rlx-go/csrc/cpu/region"
	_ "github.com/rlx-ml/rlx-go/csrc/cpu/rng"
	_ "github.com/rlx-ml/rlx-go/csrc/cpu/sequence"
	_ "github.com/rlx-ml/rlx-go/csrc/cpu/shape"
	_ "github.com/rlx-ml/rlx-go/csrc/cpu/sort"
)
