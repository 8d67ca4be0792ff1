package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
)

// TestExport writes the demo's model with its weights beside it, and inspects what came out.
func TestExport(t *testing.T) {
	path := filepath.Join(t.TempDir(), "digits.onnx")
	var out, errOut bytes.Buffer
	if code := execute(t.Context(), []string{"export", "demo/digits.onnx", "--out", path, "--external"}, &out, &errOut); code != exitDone {
		t.Fatalf("exit %d: %s%s", code, &out, &errOut)
	}
	out.Reset()
	if code := execute(t.Context(), []string{"inspect", path}, &out, &errOut); code != exitDone || !strings.Contains(out.String(), "input") {
		t.Errorf("exit %d: %s%s", code, &out, &errOut)
	}
	if code := execute(t.Context(), []string{"export", "demo/digits.onnx"}, &out, &errOut); code != exitUsage {
		t.Errorf("without --out: exit %d, expected %d", code, exitUsage)
	}
}
