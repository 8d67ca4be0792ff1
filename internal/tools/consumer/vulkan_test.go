package consumer

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// needVulkan builds the Vulkan backend of the repository, and skips with the reason where it cannot be built.
func needVulkan(t *testing.T) {
	t.Helper()
	needCgo(t)
	if off := strings.TrimSpace(run(t, repo(t), nil, "make", "-s", "vulkan-off")); off != "" {
		t.Skipf("vulkan: not executed: %s", off)
	}
	run(t, repo(t), nil, "make", "vulkan")
}

// vulkanProgram tells what a machine makes of a program for Vulkan.
const vulkanProgram = `package main

import (
	"context"
	"encoding/json"
	"os"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

type result struct {
	Values                  []float32
	Backend, Fallback, Err  string
	Native                  int // nodes that run natively on Backend
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func try(o rlx.Option) (r result) {
	g := rlx.NewGraph("consumer")
	x := g.Input("x", rlx.F32, rlx.Shape("batch", 3))
	w := g.Param("w", rlx.New([]float32{1, -1, 0, 2, 1, 0}, 3, 2))
	g.Output("p", op.Softmax(op.MatMul(x, w), -1))
	p, err := rlx.Compile(context.Background(), g, o)
	if err != nil {
		return result{Err: err.Error()}
	}
	defer p.Close()
	r.Backend, r.Fallback = p.Backend(), text(p.Fallback())
	out, err := p.Run(context.Background(), rlx.Feed{"x": rlx.New([]float32{1, 2, 3, 0, 0, 0}, 2, 3)})
	if err == nil {
		r.Values, err = rlx.Data[float32](out["p"])
	}
	placed, err2 := p.Placement()
	for _, n := range placed {
		if n.Place == "native" && n.Backend == p.Backend() {
			r.Native++
		}
	}
	r.Err = text(err) + text(err2)
	return r
}

func main() {
	report := map[string]result{"vulkan": try(rlx.On("vulkan")), "prefer": try(rlx.Prefer("vulkan", "cpu")), "cpu": try(rlx.On("cpu"))}
	for _, b := range rlx.Backends() {
		if b.Name == "vulkan" {
			report["listed"] = result{Err: text(b.Err), Native: len(b.Devices)}
		}
	}
	json.NewEncoder(os.Stdout).Encode(report)
}
`

// told is the report of vulkanProgram: by "vulkan", "prefer" and "cpu" how the backend was chosen; "listed": what the list of backends says.
type told map[string]struct {
	Values                 []float64
	Backend, Fallback, Err string
	Native                 int
}

func tell(t *testing.T, bin string, env ...string) told {
	t.Helper()
	var r told
	if err := json.Unmarshal([]byte(run(t, t.TempDir(), env, bin)), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// ran checks the values of the entry name, and that a node ran natively on the backend.
func (r told) ran(t *testing.T, name, backend string) {
	t.Helper()
	e := r[name]
	if e.Err != "" || e.Backend != backend || e.Native == 0 || len(e.Values) != 4 {
		t.Errorf("%s: %+v, expected four values from %s", name, e, backend)
		return
	}
	for i, want := range []float64{1 / (1 + math.Exp(-1)), 1 / (1 + math.E), 0.5, 0.5} { // see expected
		if math.Abs(e.Values[i]-want) > 1e-6 {
			t.Errorf("%s: value %d is %v, expected %v", name, i, e.Values[i], want)
		}
	}
}

// absent checks that Vulkan is not there because of why, and that the program runs on the CPU and says so.
func (r told) absent(t *testing.T, why string) {
	t.Helper()
	r.ran(t, "cpu", "cpu")
	r.ran(t, "prefer", "cpu")
	for what, text := range map[string]string{"the list of backends": r["listed"].Err, "On": r["vulkan"].Err, "Fallback": r["prefer"].Fallback} {
		if !strings.Contains(text, why) {
			t.Errorf("%s: %q, expected %q", what, text, why)
		}
	}
}

// present checks that Vulkan runs, and skips where the machine has no device.
func (r told) present(t *testing.T) {
	t.Helper()
	if strings.Contains(r["vulkan"].Err, "no device") {
		t.Skipf("vulkan: no device: %s", r["vulkan"].Err)
	}
	for name, backend := range map[string]string{"vulkan": "vulkan", "prefer": "vulkan", "cpu": "cpu"} {
		r.ran(t, name, backend)
	}
	if l := r["listed"]; l.Native == 0 || l.Err != "" || r["prefer"].Fallback != "" {
		t.Errorf("listed as %+v, fallback %q", l, r["prefer"].Fallback)
	}
}

// A program that links the Vulkan backend runs on it where there is a loader, and starts, runs on the CPU and says why where there is none.
func TestVulkanProgram(t *testing.T) {
	if testing.Short() {
		t.Skip("builds programs of another module (-short)")
	}
	needVulkan(t)
	root := repo(t)
	dir := consumer(t, root, vulkanProgram)
	bin := filepath.Join(dir, "app")
	goBuild(t, dir, nil, bin, ".", "-tags", "rlx_static,vulkan")
	t.Run("with a loader", func(t *testing.T) { tell(t, bin).present(t) })
	t.Run("without a loader", func(t *testing.T) {
		tell(t, bin, "RLX_VULKAN_LOADER=/nonexistent/libvulkan.so").absent(t, "no Vulkan loader: /nonexistent/libvulkan.so")
	})
	t.Run("without the tag", func(t *testing.T) {
		plain := filepath.Join(dir, "plain")
		goBuild(t, dir, nil, plain, ".", "-tags", "rlx_static")
		tell(t, plain).absent(t, "vulkan: not compiled in (build with cgo and -tags vulkan, after make vulkan)")
	})
	if runtime.GOOS != "linux" {
		return
	}
	t.Run("libraries", func(t *testing.T) {
		if out := run(t, dir, nil, "ldd", bin); !strings.Contains(out, "libc.so") || strings.Contains(out, "libvulkan") || strings.Contains(out, "libstdc++") {
			t.Errorf("expected neither libvulkan nor libstdc++ among the libraries that the program needs to start:\n%s", out)
		}
	})
	t.Run("installed", func(t *testing.T) {
		prefix, installed := t.TempDir(), filepath.Join(dir, "installed")
		run(t, root, nil, "make", "install", "PREFIX="+prefix)
		linked := filepath.Join(prefix, "map")
		goBuild(t, dir, []string{"CGO_LDFLAGS=-L" + filepath.Join(prefix, "lib") + " -Wl,-Map=" + linked}, installed, ".", "-tags", "rlx_static,vulkan")
		contains(t, linked, filepath.Join(prefix, "lib", "librlx_vulkan.a"), filepath.Join(prefix, "lib", "librlx_cpu.a"))
		tell(t, installed).present(t)
	})
}

// A static library shows one symbol: its table.
func TestOneSymbol(t *testing.T) {
	libraries, err := filepath.Glob(filepath.Join(repo(t), "build", "lib", "librlx_*.a"))
	if err != nil {
		t.Fatal(err)
	}
	if len(libraries) == 0 {
		t.Skip("no library in build/lib: run make lib")
	}
	for _, l := range libraries {
		name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(l), "librlx_"), ".a")
		var symbols []string
		for line := range strings.Lines(run(t, repo(t), nil, "nm", "-g", "--defined-only", l)) {
			if f := strings.Fields(line); len(f) == 3 {
				symbols = append(symbols, strings.TrimPrefix(f[2], "_"))
			}
		}
		if !slices.Equal(symbols, []string{"rlx_backend_" + name}) {
			t.Errorf("%s defines %q, expected rlx_backend_%s alone", filepath.Base(l), symbols, name)
		}
	}
}

// The worked example of CONTRIBUTING.md: a kernel is a row and a shader. Applied to a copy of the repository, the op is native, its rows
// conform, and the values are those of a hand calculation.
func TestVulkanExample(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the shaders and the command line again (-short)")
	}
	needVulkan(t)
	root := copyRepo(t)
	if rows, err := os.ReadFile(filepath.Join(root, "csrc/vulkan/kernels.h")); err != nil || strings.Contains(string(rows), "KERNEL(Tile,") {
		t.Fatalf("Tile has a kernel already, or: %v", err)
	}
	if files := applyExamples(t, root, "Add a Vulkan kernel"); !slices.Equal(files, []string{"csrc/vulkan/kernels.h", "csrc/vulkan/kernels/tile.comp"}) {
		t.Fatalf("the example changes %v, expected the rows and a shader", files)
	}
	run(t, root, nil, "cmake", "-S", ".", "-B", "build/cmake", "-DRLX_VULKAN=ON") // what is copied later is newer than the build files
	reuse(t, root, "build/lib/librlx_cpu.a", "cgo/cpu/static_hash_gen.go", "build/cmake/csrc/vulkan/generated/*.spv.inc")
	run(t, root, nil, "make", "-o", "lib", "vulkan")

	dir := toolbox(t, root)
	bin := filepath.Join(dir, "rlx")
	goBuild(t, dir, nil, bin, module+"/cmd/rlx", "-mod=mod", "-tags", "rlx_static,vulkan")
	if out := run(t, root, nil, bin, "ops", "--backend", "vulkan"); !regexp.MustCompile(`(?m)^Tile +shape +N .*\bf32\b`).MatchString(out) {
		t.Errorf("rlx ops does not show a native Tile:\n%s", out)
	}
	if out := run(t, root, nil, bin, "backends"); regexp.MustCompile(`(?m)^vulkan +(absent|no device)`).MatchString(out) {
		t.Skipf("vulkan: no device:\n%s", out)
	}
	write(t, filepath.Join(dir, "tile.jsonl"), `{"op":"Tile","name":"rows and columns","attrs":{"repeats":[2,3]},"inputs":[{"dtype":"f32","shape":[2,1],"data":[1.5,-2]}],`+
		`"outputs":[{"dtype":"f32","shape":[4,3],"data":[1.5,1.5,1.5,-2,-2,-2,1.5,1.5,1.5,-2,-2,-2]}],"rtol":0,"atol":0,"source":"hand"}
{"op":"Tile","name":"empty","attrs":{"repeats":[0]},"inputs":[{"dtype":"i32","shape":[3],"data":[1,2,3]}],"outputs":[{"dtype":"i32","shape":[0],"data":[]}],"source":"hand"}
`)
	if out := run(t, root, nil, bin, "conform", "--backend", "vulkan", filepath.Join(dir, "tile.jsonl")); !strings.Contains(out, "2 passed, 0 failed, 0 skipped") {
		t.Error(out)
	}
	out := run(t, dir, nil, "go", "test", "-trimpath", "-mod=mod", "-tags", "rlx_static,vulkan", module+"/rlx/conform", "-short", "-v", "-run", "TestRows/vulkan/shape/Tile")
	if !strings.Contains(out, "--- PASS: TestRows/vulkan/shape/Tile") {
		t.Errorf("no row of Tile was tested:\n%s", out)
	}
}

// reuse copies files of the repository that match a pattern, such as built ones, to the same place below root.
func reuse(t *testing.T, root string, patterns ...string) {
	t.Helper()
	for _, p := range patterns {
		files, err := filepath.Glob(filepath.Join(repo(t), p))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: nothing there, or: %v", p, err)
		}
		to := filepath.Join(root, filepath.Dir(p))
		if err := os.MkdirAll(to, 0o777); err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(to, filepath.Base(f)), string(b))
		}
	}
}
