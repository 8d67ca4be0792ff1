//go:build !cgo && !windows

package cpu

import "github.com/rlx-ml/rlx-go/rlx/backend"

func init() { backend.RegisterAbsent("cpu", "CGO_ENABLED=0") }
