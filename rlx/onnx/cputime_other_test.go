//go:build !unix

package onnx

import "time"

var start = time.Now()

// CPUTime is the time since the start.
func CPUTime() time.Duration { return time.Since(start) }
