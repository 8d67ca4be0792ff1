// Package demo is the digits classifier and its held-out digits, for commands and examples that run without downloads.
package demo

import "embed"

// Files has digits.onnx, and digits_test.bin, whose form README.md tells.
//
//go:embed digits.onnx digits_test.bin
var Files embed.FS
