package abi

import (
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"
)

const root = "../../../"

// TestFamilies: the folders of kernels, what families.h reads and what cgo/cpu imports are the same.
func TestFamilies(t *testing.T) {
	files, err := filepath.Glob(root + "csrc/cpu/*/cgo.go")
	if err != nil || len(files) == 0 {
		t.Fatal("no folders of kernels", err)
	}
	var folders []string
	for _, f := range files {
		if name := filepath.Base(filepath.Dir(f)); name != "core" {
			folders = append(folders, name)
		}
	}
	text, err := os.ReadFile(root + "csrc/cpu/core/families.h")
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, m := range regexp.MustCompile(`(?m)^#include "\.\./(\w+)/kernels\.h"`).FindAllSubmatch(text, -1) {
		listed = append(listed, string(m[1]))
	}
	source, err := parser.ParseFile(token.NewFileSet(), root+"cgo/cpu/source.go", nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	var imported []string
	for _, i := range source.Imports {
		if p, _ := strconv.Unquote(i.Path.Value); path.Dir(p) == "github.com/rlx-ml/rlx-go/csrc/cpu" && path.Base(p) != "core" {
			imported = append(imported, path.Base(p))
		}
	}
	slices.Sort(folders)
	slices.Sort(listed)
	slices.Sort(imported)
	if !slices.Equal(folders, listed) || !slices.Equal(folders, imported) {
		t.Errorf("folders with a cgo.go: %v\nfamilies.h: %v\ncgo/cpu/source.go: %v", folders, listed, imported)
	}
}
