package imports

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/rlx-ml/rlx-go"

// protowire reads ONNX and MIL without generated code.
const protowire = "google.golang.org/protobuf/encoding/protowire"

// rule is one row of the table: what the packages that match from may import beside the standard library. Patterns are folders of this
// module, with * for one element and ... for anything below, or import paths of other modules.
type rule struct {
	from    string
	to      []string
	library bool // users link it: no dependency but those in the table
}

// allowed is the import direction of the design, from the bottom up. A package needs a row; an edge outside its row fails.
var allowed = []rule{
	{"rlx/ir", nil, true},
	{"rlx/backend", nil, true},
	{"rlx/op", []string{"rlx/ir"}, true},
	{"rlx/grad", []string{"rlx/ir", "rlx/op"}, true},
	{"rlx/nn", []string{"rlx/ir", "rlx/op"}, true},
	{"rlx/optim", []string{"rlx/ir", "rlx/op"}, true},
	{"rlx/onnx", []string{"rlx/ir", "rlx/op", protowire}, true},
	{"rlx/gguf", []string{"rlx/ir", "rlx/op"}, true},
	{"rlx/safetensors", []string{"rlx/ir", "rlx/op"}, true},
	{"rlx/internal/prog", []string{"rlx/ir"}, true},
	{"rlx/internal/ref", []string{"rlx/ir", "rlx/op", "rlx/backend", "rlx/internal/prog"}, true},
	{"rlx/internal/null", []string{"rlx/ir", "rlx/backend", "rlx/internal/prog"}, true},
	{"rlx/internal/pass", []string{"rlx/ir", "rlx/op", "rlx/backend"}, true},
	{"rlx/internal/plan", []string{"rlx/ir", "rlx/op", "rlx/internal/prog", "rlx/internal/pass"}, true},
	{"rlx/internal/exec", []string{"rlx/ir", "rlx/backend", "rlx/internal/prog", "rlx/internal/pass", "rlx/internal/plan", "rlx/internal/ref"}, true},
	{"csrc/common", []string{"cgo/native"}, true},
	{"csrc/cpu/*", []string{"cgo/native"}, true},
	{"cgo/native", []string{"rlx/ir", "rlx/backend"}, true},
	{"cgo/*", []string{"cgo/native", "rlx/backend", "csrc/..."}, true},
	{"rlx", []string{"rlx/ir", "rlx/op", "rlx/backend", "rlx/onnx", "rlx/gguf", "rlx/safetensors", "rlx/internal/pass", "rlx/internal/plan", "rlx/internal/prog", "rlx/internal/exec", "rlx/internal/ref", "cgo/cpu", "cgo/vulkan"}, true},
	{"rlx/batch", []string{"rlx", "rlx/ir"}, true},
	{"rlx/conform", []string{"rlx", "rlx/ir", "rlx/op", "rlx/backend", "rlx/internal/ref"}, true},
	// Tools and test helpers, which no program links.
	{"rlx/internal/gen", []string{"rlx/ir", "rlx/op"}, false},
	{"rlx/internal/gen/cmd/*", []string{"rlx/internal/gen"}, false},
	{"internal/golden", []string{"rlx/ir"}, false},
	{"rlx/internal/fuzz", []string{"rlx", "rlx/ir", "rlx/op", "rlx/backend", "rlx/conform", "rlx/internal/pass", "rlx/internal/exec", "rlx/internal/ref"}, false},
	{"rlx/onnx/backendtest", []string{"rlx", "rlx/ir", "rlx/onnx"}, false},
	{"rlx/internal/abi", nil, false},
	{"rlx/internal/cgobench", nil, false},
	{"internal/tools/...", nil, false},
	{"cmd/...", []string{"rlx", "rlx/ir", "rlx/op", "rlx/grad", "rlx/nn", "rlx/optim", "rlx/backend", "rlx/conform", "rlx/onnx/...", "cgo/*", "internal/golden", "cmd/...", "*"}, false},
	{"examples/serve/...", []string{"rlx", "rlx/ir", "rlx/backend", "rlx/batch", "cmd/rlx/demo", "examples/serve/..."}, false},
	{"examples/...", []string{"rlx", "rlx/ir", "rlx/op", "rlx/grad", "rlx/nn", "rlx/optim", "*"}, false},
}

// edge is one import of a package.
type edge struct{ from, to, file string }

// match says whether folder or import path name fits a pattern. The pattern * alone stands for every other module.
func match(pattern, name string) bool {
	if pattern == "*" {
		return strings.Contains(strings.SplitN(name, "/", 2)[0], ".")
	}
	if below, ok := strings.CutSuffix(pattern, "/..."); ok {
		return name == below || strings.HasPrefix(name, below+"/")
	}
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}

// ruleOf is the first row that fits the package.
func ruleOf(rules []rule, pkg string) *rule {
	for i := range rules {
		if match(rules[i].from, pkg) {
			return &rules[i]
		}
	}
	return nil
}

// judge says what is wrong with an edge, or nothing.
func judge(rules []rule, e edge) string {
	r := ruleOf(rules, e.from)
	switch {
	case r == nil:
		return "package " + e.from + " has no row in the table"
	case slices.ContainsFunc(r.to, func(p string) bool { return match(p, e.to) }):
		return ""
	}
	return e.from + " imports " + e.to
}

// edges reads the imports of every Go file outside tests, whatever its build tags, so that a cgo or tagged file counts too. The standard
// library is left out, and module paths are shortened to folders.
func edges(t *testing.T, root string) (list []edge, packages map[string]bool) {
	t.Helper()
	packages = map[string]bool{}
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			_, notHere := os.Stat(filepath.Join(p, "go.mod"))
			if name := d.Name(); p != root && (name == "testdata" || name == "build" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || notHere == nil) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(p, ".go") || strings.HasSuffix(p, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), p, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, filepath.Dir(p))
		if err != nil {
			return err
		}
		from := filepath.ToSlash(rel)
		packages[from] = true
		for _, i := range f.Imports {
			to, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return err
			}
			if own, ok := strings.CutPrefix(to, module+"/"); ok {
				to = own
			} else if !strings.Contains(strings.SplitN(to, "/", 2)[0], ".") {
				continue
			}
			list = append(list, edge{from, to, p})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list, packages
}

func TestImportDirection(t *testing.T) {
	list, packages := edges(t, filepath.Join("..", "..", ".."))
	if len(list) < 40 || !packages["rlx"] || !packages["cgo/native"] || !packages["rlx/ir"] {
		t.Fatalf("only %d imports in %d packages were found", len(list), len(packages))
	}
	for _, e := range list {
		if wrong := judge(allowed, e); wrong != "" {
			t.Errorf("%s: %s", e.file, wrong)
		}
	}
	for p := range packages {
		if ruleOf(allowed, p) == nil {
			t.Errorf("package %s has no row in the table", p)
		}
	}
}

// The table itself has no cycle, and no library row allows a module beside protowire or a row that users do not link.
func TestTable(t *testing.T) {
	state := map[string]int{}
	var visit func(name string, trail []string)
	visit = func(name string, trail []string) {
		switch state[name] {
		case 1:
			t.Errorf("cycle: %v", append(trail, name))
			return
		case 2:
			return
		}
		state[name] = 1
		if r := ruleOf(allowed, name); r != nil {
			for _, to := range r.to {
				if r.library && to != protowire {
					if o := ruleOf(allowed, strings.TrimSuffix(to, "/...")+map[bool]string{true: "/cpu/core"}[strings.HasSuffix(to, "/...")]); to == "*" || o == nil || !o.library {
						t.Errorf("library %s may import %s", name, to)
					}
				}
				if !strings.ContainsAny(to, "*") && !strings.HasSuffix(to, "...") {
					visit(to, append(trail, name))
				}
			}
		}
		state[name] = 2
	}
	for _, r := range allowed {
		visit(r.from, nil)
	}
}

// Edges that the design forbids are found.
func TestJudge(t *testing.T) {
	for _, e := range []edge{
		{from: "rlx/ir", to: "rlx/op"}, {from: "rlx/backend", to: "rlx/ir"}, {from: "rlx/op", to: "rlx"}, {from: "rlx/internal/plan", to: "rlx/internal/exec"},
		{from: "rlx/internal/prog", to: "rlx/op"}, {from: "rlx/internal/pass", to: "rlx/internal/plan"}, {from: "cgo/native", to: "rlx"}, {from: "csrc/cpu/norm", to: "csrc/cpu/core"},
		{from: "rlx", to: "github.com/stretchr/testify/require"}, {from: "rlx/onnx", to: "google.golang.org/protobuf/proto"}, {from: "rlx/conform", to: "github.com/spf13/cobra"},
		{from: "rlx/brandnew", to: "rlx/ir"}, {from: "rlx", to: "rlx/conform"}, {from: "rlx", to: "cmd/rlx"},
	} {
		if judge(allowed, e) == "" {
			t.Errorf("%s may import %s", e.from, e.to)
		}
	}
	for _, e := range []edge{
		{from: "rlx/op", to: "rlx/ir"}, {from: "rlx/onnx", to: protowire}, {from: "cgo/cpu", to: "csrc/cpu/norm"}, {from: "cgo/cpu", to: "csrc/common"}, {from: "rlx", to: "cgo/vulkan"}, {from: "cgo/cuda", to: "cgo/native"}, {from: "cmd/rlx", to: "github.com/spf13/cobra"},
		{from: "cmd/rlx", to: "cmd/rlx/workload"}, {from: "examples/mnist", to: "rlx/op"}, {from: "csrc/cpu/norm", to: "cgo/native"},
	} {
		if wrong := judge(allowed, e); wrong != "" {
			t.Error(wrong)
		}
	}
}
