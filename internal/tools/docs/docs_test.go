package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	root = "../../.."
	page = "docs/backends.md"
)

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

var code = regexp.MustCompile("`([^`]+)`")

// quoted lists what stands between backquotes.
func quoted(text string) (list []string) {
	for _, m := range code.FindAllStringSubmatch(text, -1) {
		list = append(list, m[1])
	}
	return list
}

// defines says whether a file of Go or C++ defines the function name: a line without indentation, or one that begins with func.
func defines(text, name string) bool {
	return regexp.MustCompile(`(?m)^(func |[A-Za-z].*\b)(\([^)]*\) )?` + name + `\(`).MatchString(text)
}

// The table of docs/backends.md that leads from null to Vulkan names functions that exist, and all functions of null that a backend needs.
func TestNullToVulkan(t *testing.T) {
	_, section, found := strings.Cut(read(t, page), "\n## From null to Vulkan\n")
	if !found {
		t.Fatalf("%s has no section about null and Vulkan", page)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	null := read(t, "rlx/internal/null/null.go")
	named := map[string]bool{}
	rows := 0
	for _, line := range strings.Split(section, "\n") {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || !strings.Contains(line, "`") {
			continue
		}
		rows++
		for _, name := range quoted(cells[1]) {
			named[name] = true
			if !defines(null, name) && !defines(read(t, "rlx/backend/backend.go"), name) {
				t.Errorf("%s: neither null nor package backend has a function %s", page, name)
			}
		}
		vulkan := quoted(cells[2])
		text := read(t, vulkan[0])
		for _, name := range vulkan[1:] {
			if !defines(text, name) {
				t.Errorf("%s: %s has no function %s", page, vulkan[0], name)
			}
		}
	}
	if rows < 12 {
		t.Errorf("%s: the table has %d rows", page, rows)
	}
	for _, m := range regexp.MustCompile(`(?m)^func (?:\([^)]*\) )?([A-Z]\w*)\(`).FindAllStringSubmatch(null, -1) {
		if description := []string{"Name", "Info", "ArenaBytes"}; !named[m[1]] && !slices.Contains(description, m[1]) {
			t.Errorf("%s: the table has no row for %s of null", page, m[1])
		}
	}
}

// Every file of the Vulkan library is on the page, and every path on the page exists.
func TestFiles(t *testing.T) {
	paths := map[string]bool{}
	for _, q := range quoted(read(t, page)) {
		if p := strings.Trim(q, "/"); regexp.MustCompile(`^(cgo|csrc|rlx|internal|docs)/[\w./]+$`).MatchString(p) {
			paths[p] = true
		}
	}
	for p := range paths {
		if _, err := os.Stat(filepath.Join(root, p)); err != nil {
			t.Errorf("%s: %v", page, err)
		}
	}
	files, err := filepath.Glob(filepath.Join(root, "csrc/vulkan/*.*"))
	if err != nil || len(files) < 10 {
		t.Fatalf("%d files in csrc/vulkan: %v", len(files), err)
	}
	for _, f := range files {
		if name := "csrc/vulkan/" + filepath.Base(f); !paths[name] {
			t.Errorf("%s does not say what %s is for", page, name)
		}
	}
}
