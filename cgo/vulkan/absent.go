//go:build !vulkan || !cgo || windows

package vulkan

import "github.com/rlx-ml/rlx-go/rlx/backend"

func init() { backend.RegisterAbsent("vulkan", "build with cgo and -tags vulkan, after make vulkan") }
