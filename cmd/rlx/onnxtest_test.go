package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOnnxTest(t *testing.T) {
	const folder = "../../rlx/onnx/backendtest/testdata/"
	list := filepath.Join(t.TempDir(), "skips.txt")
	if err := os.WriteFile(list, []byte("test_strings\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
		last string
	}{
		{[]string{folder}, exitFailed, "2 passed, 3 failed, 1 skipped"},
		{[]string{folder + "test_add", folder + "test_strings"}, exitDone, "1 passed, 0 failed, 1 skipped"},
		{[]string{"--skips", list, folder + "test_add", folder + "test_strings"}, exitDone, "1 passed, 0 failed, 1 skipped"},
		{[]string{"--skips", os.DevNull, folder + "test_strings"}, exitFailed, "0 passed, 1 failed, 0 skipped"},
		{[]string{"no-such-folder"}, exitFailed, ""},
		{nil, exitUsage, ""},
	} {
		code, out, errOut := rlxRun(t, append([]string{"onnx-test", "--backend", "ref"}, c.args...)...)
		lines := strings.Split(strings.TrimSpace(out), "\n")
		if code != c.code || lines[len(lines)-1] != c.last {
			t.Errorf("%v: exit code %d, expected %d, last line %q in:\n%s%s", c.args, code, c.code, c.last, out, errOut)
		}
	}
}
