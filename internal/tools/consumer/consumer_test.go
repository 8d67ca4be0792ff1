package consumer

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	module = "github.com/rlx-ml/rlx-go"
	// By hand: the first row of x times w is [4 3], and softmax([4 3]) = [1/(1+e^-1) 1/(1+e)]; the second is [0 0].
	expected = "[0.7310586 0.26894143 0.5 0.5] <nil>"
)

// repo is the root of this repository.
func repo(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// program is the README's first complete Go program.
func program(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(repo(t), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile("(?s)```go\n(package main\n.*?)```").FindSubmatch(b)
	if m == nil {
		t.Fatal("README.md has no complete Go program")
	}
	return string(m[1])
}

// consumer is a module outside the repository that uses root by a replace directive; text is its program.
func consumer(t *testing.T, root, text string) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "main.go"), text)
	write(t, filepath.Join(dir, "go.mod"), "module example.com/consumer\n\ngo 1.26.0\n\nrequire "+module+" v0.0.0\n\nreplace "+module+" => "+root+"\n")
	run(t, dir, []string{"GOFLAGS=-mod=mod"}, "go", "mod", "tidy")
	return dir
}

// toolbox is a consumer of root that can also build and test what its program does not import.
func toolbox(t *testing.T, root string) string {
	t.Helper()
	dir := consumer(t, root, program(t))
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "go.sum"), string(sums))
	return dir
}

// goBuild builds package pkg for a consumer as bin. With -trimpath Go's build cache knows a package by its content and not by its folder,
// so what one copy of the repository has compiled serves all: the kernels above all.
func goBuild(t *testing.T, dir string, env []string, bin, pkg string, args ...string) {
	t.Helper()
	run(t, dir, env, "go", append(append([]string{"build", "-trimpath", "-o", bin}, args...), pkg)...)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

func run(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	c := exec.Command(name, args...)
	c.Dir = dir
	c.Env = append(os.Environ(), env...)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// needCgo skips what compiles the kernels where cgo is off.
func needCgo(t *testing.T) {
	t.Helper()
	if strings.TrimSpace(run(t, repo(t), nil, "go", "env", "CGO_ENABLED")) == "0" {
		t.Skip("cpu: not compiled in (CGO_ENABLED=0)")
	}
}

func check(t *testing.T, dir string, env []string, args ...string) {
	t.Helper()
	bin := filepath.Join(dir, "app")
	goBuild(t, dir, env, bin, ".", args...)
	if out := strings.TrimSpace(run(t, dir, env, bin)); out != expected {
		t.Errorf("printed %q, expected %q", out, expected)
	}
}

func TestReadmeProgram(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles the kernels (-short)")
	}
	root, text := repo(t), program(t)
	t.Run("without cgo", func(t *testing.T) { check(t, consumer(t, root, text), []string{"CGO_ENABLED=0"}) })
	needCgo(t)
	// The vendored tree has the fewest files, so it is the one to be compiled; the plain build then finds its kernels in the build cache.
	t.Run("vendored", func(t *testing.T) {
		dir := consumer(t, root, text)
		run(t, dir, nil, "go", "mod", "vendor")
		check(t, dir, nil, "-mod=vendor")
	})
	t.Run("plain", func(t *testing.T) { check(t, consumer(t, root, text), nil) })
	t.Run("static", func(t *testing.T) {
		prefix := t.TempDir()
		run(t, root, nil, "make", "install", "PREFIX="+prefix)
		check(t, consumer(t, root, text), []string{"CGO_LDFLAGS=-L" + filepath.Join(prefix, "lib")}, "-tags", "rlx_static")
	})
}

func TestCrossCompiles(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles the standard library for three systems (-short)")
	}
	dir := consumer(t, repo(t), program(t))
	for _, target := range []string{"linux/arm64", "darwin/arm64", "windows/amd64"} {
		goos, goarch, _ := strings.Cut(target, "/")
		run(t, dir, []string{"CGO_ENABLED=0", "GOOS=" + goos, "GOARCH=" + goarch}, "go", "build", "-o", os.DevNull, ".")
	}
}

// Edits reach a binary built by cgo: Go's build cache sees that of a kernel, and in every package with kernels that of a shared header.
func TestEditsReachTheBinary(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles the kernels (-short)")
	}
	needCgo(t)
	root := copyRepo(t)
	dir := consumer(t, root, program(t))
	bin := filepath.Join(dir, "app")
	goBuild(t, dir, nil, bin, ".")
	if stale := kernels(t, dir, "{{if .Stale}}{{.ImportPath}}{{end}}"); len(stale) > 0 {
		t.Fatalf("a second build would compile %v again", stale)
	}

	editKernel(t, root)
	goBuild(t, dir, nil, bin, ".")
	contains(t, bin, kernelMark)

	regenerate := func() { run(t, root, []string{"CGO_ENABLED=0"}, "go", "run", "./rlx/internal/gen/cmd/rlxgen") }
	edit(t, filepath.Join(root, "csrc/cpu/complex/kernels.h"), func(s string) string { return s + "// Edited.\n" })
	regenerate()
	if stale := kernels(t, dir, "{{if .Stale}}{{.ImportPath}}{{end}}"); !slices.Equal(stale, []string{module + "/csrc/cpu/complex", module + "/csrc/cpu/core"}) {
		t.Errorf("with an edited row Go compiles %v, expected its family and the core, which has the rows of all", stale)
	}
	edit(t, filepath.Join(root, "csrc/cpu/core/kernel.h"), func(s string) string { return s + mark("header", headerMark) })
	regenerate()
	all, stale := kernels(t, dir, "{{.ImportPath}}"), kernels(t, dir, "{{if .Stale}}{{.ImportPath}}{{end}}")
	if len(all) < 10 || !slices.Equal(all, stale) {
		t.Errorf("with an edited header Go compiles %v, expected every package with kernels: %v", stale, all)
	}
	archive := run(t, dir, nil, "go", "list", "-trimpath", "-export", "-f", "{{.Export}}", module+"/csrc/cpu/complex") // any one: the others take long
	contains(t, strings.TrimSpace(archive), headerMark)
}

const kernelMark = "kernel-edit-mark-1"

// headerMark differs from run to run: what an earlier one compiled may still be in Go's build cache.
var headerMark = fmt.Sprint("header-edit-mark-", time.Now().UnixNano())

// mark is C++ that puts text into an object.
func mark(name, text string) string {
	return "\nnamespace { __attribute__((used)) const char rlx_" + name + "_mark[] = \"" + text + "\"; }\n"
}

func editKernel(t *testing.T, root string) {
	t.Helper()
	edit(t, filepath.Join(root, "csrc/cpu/core/backend.cpp"), func(s string) string { return s + mark("kernel", kernelMark) })
}

// kernels is what a template of `go list` says of the packages with kernels that a consumer builds.
func kernels(t *testing.T, dir, template string) (list []string) {
	t.Helper()
	for _, line := range strings.Fields(run(t, dir, nil, "go", "list", "-trimpath", "-deps", "-f", template, ".")) {
		if strings.HasPrefix(line, module+"/csrc/") {
			list = append(list, line)
		}
	}
	return list
}

// Edits reach a binary that links what CMake builds: those of the worked example of CONTRIBUTING.md, whose op then gives the values of a
// hand calculation, natively on the CPU, and later ones of a kernel and of a header.
func TestEditsReachTheLibrary(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles the kernels (-short)")
	}
	needCgo(t)
	root := copyRepo(t)
	if files := applyExamples(t, root, "Add an op", "Add a kernel"); len(files) != 4 {
		t.Fatalf("the example changes %v, expected a row, a meaning, a kernel row and a kernel", files)
	}
	run(t, root, []string{"CGO_ENABLED=0"}, "go", "run", "./rlx/internal/gen/cmd/rlxgen")
	// What counts here is what gets compiled, not how well.
	run(t, root, nil, "cmake", "-S", ".", "-B", "build/cmake", "-DCMAKE_BUILD_TYPE=None", "-DCMAKE_CXX_FLAGS=-O0 -fno-exceptions")
	dir := toolbox(t, root)
	bin := filepath.Join(dir, "app")
	build := func() {
		t.Helper()
		run(t, root, nil, "cmake", "--build", "build/cmake", "--target", "rlx_cpu", "--parallel", strconv.Itoa(runtime.NumCPU()))
		goBuild(t, dir, []string{"CGO_LDFLAGS=-L" + filepath.Join(root, "build", "lib")}, bin, ".", "-tags", "rlx_static")
	}
	build()
	checkExample(t, dir)

	editKernel(t, root)
	edit(t, filepath.Join(root, "csrc/cpu/pool/pool.h"), func(s string) string { return s + mark("header", headerMark) })
	build()
	contains(t, bin, kernelMark, headerMark)
}

// applyExamples writes the blocks of sections of CONTRIBUTING.md that name a file, and returns the names.
func applyExamples(t *testing.T, root string, sections ...string) (files []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```[a-z]+\n// (file|append): (\\S+)\n(.*?)```")
	for _, section := range sections {
		_, body, found := strings.Cut(string(text), "\n## "+section+"\n")
		if !found {
			t.Fatalf("CONTRIBUTING.md has no section %q", section)
		}
		body, _, _ = strings.Cut(body, "\n## ")
		for _, b := range block.FindAllStringSubmatch(body, -1) {
			path := filepath.Join(root, b[2])
			if b[1] == "append" {
				edit(t, path, func(s string) string { return s + b[3] })
			} else {
				write(t, path, b[3])
			}
			files = append(files, b[2])
		}
	}
	return files
}

func checkExample(t *testing.T, dir string) {
	t.Helper()
	write(t, filepath.Join(dir, "example.jsonl"), `{"op":"NormSquared","name":"broadcast","inputs":[{"dtype":"f32","shape":[3],"data":[0,3,-4]},{"dtype":"f32","shape":[2,1],"data":[0.5,1]}],`+
		`"outputs":[{"dtype":"f32","shape":[2,3],"data":[0.25,9.25,16.25,1,10,17]}],"rtol":0,"atol":0,"source":"hand"}
{"op":"NormSquared","name":"f16 is composed","inputs":[{"dtype":"f16","shape":[1],"data":[1]},{"dtype":"f16","shape":[1],"data":[3]}],"outputs":[{"dtype":"f16","shape":[1],"data":[10]}],"source":"hand"}
{"op":"NormSquared","name":"mixed dtypes","inputs":[{"dtype":"f32","shape":[1],"data":[1]},{"dtype":"f64","shape":[1],"data":[3]}],"error":["NormSquared","C1","f64"],"source":"rule"}
`)
	bin := filepath.Join(dir, "rlx")
	goBuild(t, dir, nil, bin, module+"/cmd/rlx", "-mod=mod", "-tags", "rlx_static")
	for _, backend := range []string{"ref", "cpu"} {
		out := run(t, dir, nil, bin, "conform", "--backend", backend, "example.jsonl")
		if !strings.Contains(out, "3 passed, 0 failed, 0 skipped") {
			t.Errorf("%s:\n%s", backend, out)
		}
	}
	if out := run(t, dir, nil, bin, "ops", "--backend", "cpu"); !regexp.MustCompile(`NormSquared +elementwise +N `).MatchString(out) {
		t.Errorf("rlx ops does not show a native NormSquared:\n%s", out)
	}
	out := run(t, dir, nil, "go", "test", "-trimpath", "-mod=mod", "-tags", "rlx_static", module+"/rlx/conform", "-short", "-v", "-run", "TestRows/.*/elementwise/NormSquared")
	if !strings.Contains(out, "--- PASS: TestRows/cpu/elementwise/NormSquared") {
		t.Errorf("no row of NormSquared was tested:\n%s", out)
	}
}

// copyRepo copies the files that git tracks or would track, without the large test data.
func copyRepo(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	files := run(t, repo(t), nil, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	for _, f := range strings.Split(strings.Trim(files, "\x00"), "\x00") {
		if strings.HasPrefix(f, "testdata/") || strings.HasPrefix(f, "docs/spec/") {
			continue
		}
		b, err := os.ReadFile(filepath.Join(repo(t), f))
		if err != nil {
			continue // deleted, not committed yet
		}
		if err := os.MkdirAll(filepath.Join(root, filepath.Dir(f)), 0o777); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(root, f), string(b))
	}
	return root
}

func edit(t *testing.T, path string, f func(string) string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, f(string(b)))
}

func contains(t *testing.T, bin string, marks ...string) {
	t.Helper()
	b, err := os.ReadFile(bin)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range marks {
		if !strings.Contains(string(b), m) {
			t.Errorf("%s lacks %q", bin, m)
		}
	}
}
