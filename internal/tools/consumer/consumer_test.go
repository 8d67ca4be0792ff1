package consumer

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
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
	run(t, dir, env, "go", append(append([]string{"build", "-o", bin}, args...), ".")...)
	if out := strings.TrimSpace(run(t, dir, env, bin)); out != expected {
		t.Errorf("printed %q, expected %q", out, expected)
	}
}

func TestReadmeProgram(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the kernels more than once (-short)")
	}
	root, text := repo(t), program(t)
	t.Run("without cgo", func(t *testing.T) { check(t, consumer(t, root, text), []string{"CGO_ENABLED=0"}) })
	needCgo(t)
	t.Run("plain", func(t *testing.T) { check(t, consumer(t, root, text), nil) })
	t.Run("vendored", func(t *testing.T) {
		dir := consumer(t, root, text)
		run(t, dir, nil, "go", "mod", "vendor")
		check(t, dir, nil, "-mod=vendor")
	})
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

// Edits reach the binary, in the cgo build and in the static one: of a kernel, of a shared header, and those of the worked example of
// CONTRIBUTING.md, whose op then gives the values of a hand calculation, natively on the CPU. All work on one copy of the repository,
// since every round compiles all kernels twice.
func TestEditsReachTheBinary(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the kernels again and again (-short)")
	}
	needCgo(t)
	root := copyRepo(t)
	run(t, root, nil, "cmake", "-S", ".", "-B", "build/cmake", "-DCMAKE_BUILD_TYPE=Release")
	dir := consumer(t, root, program(t))
	static := []string{"CGO_LDFLAGS=-L" + filepath.Join(root, "build", "lib")}
	build := func(marks ...string) {
		t.Helper()
		bin := filepath.Join(dir, "app")
		run(t, dir, nil, "go", "build", "-o", bin, ".")
		contains(t, bin, marks)
		run(t, root, nil, "cmake", "--build", "build/cmake", "--target", "rlx_cpu", "--parallel", strconv.Itoa(runtime.NumCPU()))
		run(t, dir, static, "go", "build", "-tags", "rlx_static", "-o", bin, ".")
		contains(t, bin, marks)
	}
	build()
	edit(t, filepath.Join(root, "csrc/cpu/core/backend.cpp"), func(s string) string {
		return s + "\nextern \"C\" __attribute__((used, visibility(\"hidden\"))) const char rlx_edit_mark[] = \"kernel-edit-mark-1\";\n"
	})
	build("kernel-edit-mark-1")
	edit(t, filepath.Join(root, "csrc/cpu/core/kernel.h"), func(s string) string {
		return s + "\nnamespace { __attribute__((used)) const char rlx_header_mark[] = \"header-edit-mark-2\"; }\n"
	})
	if files := applyExamples(t, root, "Add an op", "Add a kernel"); len(files) != 4 {
		t.Fatalf("the example changes %v, expected a row, a meaning, a kernel row and a kernel", files)
	}
	run(t, root, []string{"CGO_ENABLED=0"}, "go", "run", "./rlx/internal/gen/cmd/rlxgen")
	build("kernel-edit-mark-1", "header-edit-mark-2")
	checkExample(t, root)
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

func checkExample(t *testing.T, root string) {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "example.jsonl"), `{"op":"NormSquared","name":"broadcast","inputs":[{"dtype":"f32","shape":[3],"data":[0,3,-4]},{"dtype":"f32","shape":[2,1],"data":[0.5,1]}],`+
		`"outputs":[{"dtype":"f32","shape":[2,3],"data":[0.25,9.25,16.25,1,10,17]}],"rtol":0,"atol":0,"source":"hand"}
{"op":"NormSquared","name":"f16 is composed","inputs":[{"dtype":"f16","shape":[1],"data":[1]},{"dtype":"f16","shape":[1],"data":[3]}],"outputs":[{"dtype":"f16","shape":[1],"data":[10]}],"source":"hand"}
{"op":"NormSquared","name":"mixed dtypes","inputs":[{"dtype":"f32","shape":[1],"data":[1]},{"dtype":"f64","shape":[1],"data":[3]}],"error":["NormSquared","C1","f64"],"source":"rule"}
`)
	bin := filepath.Join(dir, "rlx")
	run(t, root, nil, "go", "build", "-o", bin, "./cmd/rlx")
	for _, backend := range []string{"ref", "cpu"} {
		out := run(t, root, nil, bin, "conform", "--backend", backend, filepath.Join(dir, "example.jsonl"))
		if !strings.Contains(out, "3 passed, 0 failed, 0 skipped") {
			t.Errorf("%s:\n%s", backend, out)
		}
	}
	if out := run(t, root, nil, bin, "ops", "--backend", "cpu"); !regexp.MustCompile(`NormSquared +elementwise +N `).MatchString(out) {
		t.Errorf("rlx ops does not show a native NormSquared:\n%s", out)
	}
	run(t, root, nil, "go", "test", "./rlx/conform", "-short", "-run", "TestRows/.*/elementwise/NormSquared")
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
		if base := filepath.Base(f); base == "cgo.go" || base == "CMakeLists.txt" {
			b = bytes.ReplaceAll(b, []byte("-O3"), []byte("-O1")) // what counts here is what gets compiled, not how well
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

func contains(t *testing.T, bin string, marks []string) {
	t.Helper()
	b, err := os.ReadFile(bin)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range marks {
		if !strings.Contains(string(b), m) {
			t.Errorf("the binary lacks %q: the edit did not reach it", m)
		}
	}
}
