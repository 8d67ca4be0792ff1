package rlx_test

import (
	"os"
	"testing"
)

// Vulkan runs under its validation layers, where they are installed and the environment says nothing else: any message is an error.
func TestMain(m *testing.M) {
	if _, set := os.LookupEnv("RLX_VULKAN_VALIDATE"); !set {
		os.Setenv("RLX_VULKAN_VALIDATE", "auto")
	}
	os.Exit(m.Run())
}
