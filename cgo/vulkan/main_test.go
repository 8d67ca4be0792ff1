//go:build vulkan && cgo && !windows

package vulkan_test

import (
	"os"
	"testing"
)

// Every test runs under the validation layers, where they are installed and the environment says nothing else.
func TestMain(m *testing.M) {
	if _, set := os.LookupEnv("RLX_VULKAN_VALIDATE"); !set {
		os.Setenv("RLX_VULKAN_VALIDATE", "auto")
	}
	os.Exit(m.Run())
}
