//go:build cgo && !windows && vulkan

package vulkan_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	_ "github.com/rlx-ml/rlx-go/cgo/vulkan"
	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/backend"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// Failures of the driver. The tests run in processes of their own, whose loader is librlx_vulkan_faults: it fails calls on command and counts
// the objects that are alive (csrc/vulkan/test/faults.cpp).

const (
	childVariable  = "RLX_TEST_VULKAN_CHILD"
	faultsVariable = "RLX_VULKAN_FAULTS"
	liveVariable   = "RLX_VULKAN_LIVE"
)

// inChild runs the calling test again in a process with the given environment, and reports whether this is that process.
func inChild(t *testing.T, env ...string) bool {
	t.Helper()
	if os.Getenv(childVariable) != "" {
		return true
	}
	c := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", fmt.Sprintf("-test.short=%v", testing.Short()))
	c.Env = append(append(os.Environ(), childVariable+"=1"), env...)
	out, err := c.CombinedOutput()
	switch {
	case err != nil:
		t.Errorf("%v\n%s", err, out)
	case bytes.Contains(out, []byte("no tests to run")):
		t.Errorf("the process ran no test:\n%s", out)
	}
	return false
}

// withFaults is inChild with the failing loader; without a device the test is skipped.
func withFaults(t *testing.T) bool {
	t.Helper()
	if os.Getenv(childVariable) != "" {
		return true
	}
	device(t)
	library, err := filepath.Abs("../../build/lib/librlx_vulkan_faults.so")
	if err == nil {
		_, err = os.Stat(library)
	}
	if err != nil {
		t.Fatalf("%v: run make vulkan", err)
	}
	dir := t.TempDir()
	return inChild(t, "RLX_VULKAN_LOADER="+library, faultsVariable+"="+filepath.Join(dir, "faults"), liveVariable+"="+filepath.Join(dir, "live"))
}

var commands int // makes every text of the faults file another one

// command makes calls fail from now on, one rule a line.
func command(t *testing.T, rules ...string) {
	t.Helper()
	commands++
	text := fmt.Sprintf("# %d\n%s\n", commands, strings.Join(rules, "\n"))
	if err := os.WriteFile(os.Getenv(faultsVariable), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// live is the number of objects by kind, and how many calls have failed on command.
func live(t *testing.T) (objects map[string]int, injected int) {
	t.Helper()
	text, err := os.ReadFile(os.Getenv(liveVariable))
	if err != nil {
		t.Fatal(err)
	}
	objects = map[string]int{}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		n, err := strconv.Atoi(f[1])
		if err != nil {
			t.Fatal(err)
		}
		objects[f[0]] = n
	}
	injected = objects["injected"]
	delete(objects, "injected")
	return objects, injected
}

// noObjects says which objects are still alive.
func noObjects(t *testing.T) error {
	t.Helper()
	objects, _ := live(t)
	maps.DeleteFunc(objects, func(_ string, n int) bool { return n == 0 })
	if len(objects) > 0 {
		return fmt.Errorf("still alive: %v", objects)
	}
	return nil
}

// joined looks up rows of a table, appends the input, and appends one-hot rows, which the host computes: indices encoded as f32.
func joined() *rlx.Graph {
	g := rlx.NewGraph("joined")
	w := make([]float32, 15)
	for i := range w {
		w[i] = float32(i)
	}
	i, x, j := g.Input("i", rlx.I32, rlx.Shape(2)), g.Input("x", rlx.F32, rlx.Shape(1, 3)), g.Input("j", rlx.F32, rlx.Shape(2))
	rows := op.Concat(0, op.Gather(g.Param("w", rlx.New(w, 5, 3)), i, 0), x)
	g.Output("y", op.Concat(0, rows, op.OneHot(j, op.OneHotAttrs{Depth: 3, Axis: -1})))
	return g
}

// step runs p and checks the numbers.
func step(ctx context.Context, p *rlx.Program, opts ...rlx.RunOption) error {
	out, err := p.Run(ctx, rlx.Feed{"i": rlx.New([]int32{4, -5}, 2), "x": rlx.New([]float32{20, 21, 22}, 1, 3), "j": rlx.New([]float32{2, -3}, 2)}, opts...)
	if err != nil {
		return err
	}
	got, err := rlx.Data[float32](out["y"])
	if want := []float32{12, 13, 14, 0, 1, 2, 20, 21, 22, 0, 0, 1, 1, 0, 0}; err == nil && !slices.Equal(got, want) {
		err = fmt.Errorf("got %v, expected %v", got, want)
	}
	return err
}

// session compiles, runs twice, the second time with a profile, and closes.
func session(t *testing.T) (err error) {
	p, err := rlx.Compile(t.Context(), joined(), rlx.On("vulkan"))
	if err != nil {
		return err
	}
	defer func() {
		if e := p.Close(); e != nil {
			t.Errorf("Close after %v: %v", err, e)
		}
	}()
	if err := step(t.Context(), p); err != nil {
		return err
	}
	var prof rlx.Profile
	if err := step(t.Context(), p, rlx.WithProfile(&prof)); err != nil {
		return err
	}
	native, host := 0, 0
	for _, s := range prof.Steps {
		if s.Place == "host" {
			host++
		} else {
			native++
		}
	}
	if native == 0 || host == 0 {
		return fmt.Errorf("%d native commands and %d of the host, expected both", native, host)
	}
	return nil
}

// fault is a call that fails, and what becomes of it. starts: the call belongs to the start of a device, which open programs share.
type fault struct {
	call   string
	result int
	code   backend.Code
	starts bool
}

var faults = []fault{
	{"vkCreateInstance", -9, backend.NoDevice, true},
	{"vkCreateInstance", -1, backend.NoMemory, true},
	{"vkEnumeratePhysicalDevices", -3, backend.NoDevice, true},
	{"vkEnumeratePhysicalDevices", -1, backend.NoMemory, true},
	{"vkCreateDevice", -3, backend.Driver, true},
	{"vkCreateDevice", -4, backend.DeviceLost, true},
	{"vkAllocateMemory", -1, backend.NoMemory, false},
	{"vkAllocateMemory", -2, backend.NoMemory, false},
	{"vkCreateBuffer", -2, backend.NoMemory, false},
	{"vkMapMemory", -5, backend.NoMemory, false},
	{"vkCreateShaderModule", -1, backend.NoMemory, true},
	{"vkCreateDescriptorSetLayout", -1, backend.NoMemory, true},
	{"vkCreatePipelineLayout", -2, backend.NoMemory, true},
	{"vkCreateComputePipelines", -2, backend.NoMemory, true},
	{"vkCreateComputePipelines", -1000012000, backend.Driver, true}, // VK_ERROR_INVALID_SHADER_NV
	{"vkCreateDescriptorPool", -2, backend.NoMemory, false},
	{"vkAllocateDescriptorSets", -1000069000, backend.NoMemory, false}, // VK_ERROR_OUT_OF_POOL_MEMORY
	{"vkCreateCommandPool", -2, backend.NoMemory, false},
	{"vkAllocateCommandBuffers", -2, backend.NoMemory, false},
	{"vkBeginCommandBuffer", -1, backend.NoMemory, false},
	{"vkEndCommandBuffer", -2, backend.NoMemory, false},
	{"vkCreateQueryPool", -2, backend.NoMemory, false},
	{"vkGetQueryPoolResults", -4, backend.DeviceLost, false},
	{"vkCreateSemaphore", -2, backend.NoMemory, false},
	{"vkQueueSubmit", -2, backend.NoMemory, false},
	{"vkQueueSubmit", -4, backend.DeviceLost, false},
	{"vkWaitSemaphores", -1, backend.NoMemory, false},
	{"vkWaitSemaphores", -4, backend.DeviceLost, false},
}

// check says what is wrong with the error of a session in which f happened.
func (f fault) check(err error) error {
	var e *backend.Error
	switch {
	case err == nil:
		return errors.New("no error")
	case !errors.As(err, &e):
		return fmt.Errorf("got %T: %w, expected a *backend.Error", err, err)
	case e.Backend != "vulkan" || e.Code != f.code:
		return fmt.Errorf("got code %v of %s: %w, expected %v", e.Code, e.Backend, err, f.code)
	case !strings.Contains(e.Text, f.call) || !strings.Contains(e.Text, "VK_ERROR_"):
		return fmt.Errorf("the error does not name call and result: %w", err)
	}
	return nil
}

// each makes every call of f in a session fail in turn: attempt runs the session. It returns how many calls failed.
func (f fault) each(t *testing.T, attempt func(label string) error) int {
	t.Helper()
	for k := 1; ; k++ {
		_, before := live(t)
		command(t, fmt.Sprintf("%s %d %d", f.call, k, f.result))
		label := fmt.Sprintf("call %d of %s fails with %d", k, f.call, f.result)
		err := attempt(label)
		if _, after := live(t); after == before {
			if err != nil {
				t.Errorf("%s: it did not happen, but: %v", label, err)
			}
			return k - 1
		}
		if err := f.check(err); err != nil {
			t.Errorf("%s: %v", label, err)
		}
		if k == 3 && testing.Short() {
			return k
		}
	}
}

// Whatever call fails: a typed error, nothing left behind, and the next program works.
func TestEveryCallMayFail(t *testing.T) {
	if !withFaults(t) {
		return
	}
	held := func() int64 {
		b, err := backend.Lookup("vulkan")
		if err != nil {
			t.Fatal(err)
		}
		d, err := b.Open(0, backend.Options{Threads: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		return d.NativeBytes()
	}
	before := held()
	for _, f := range faults {
		n := f.each(t, func(label string) error {
			err := session(t)
			if e := noObjects(t); e != nil {
				t.Errorf("%s: %v", label, e)
			}
			command(t)
			if e := session(t); e != nil {
				t.Errorf("%s: the next session: %v", label, e)
			}
			if e := noObjects(t); e != nil {
				t.Errorf("%s: after the next session: %v", label, e)
			}
			return err
		})
		if n == 0 {
			t.Errorf("%s is never called", f.call)
		}
	}
	if after := held(); after != before {
		t.Errorf("the library holds %d bytes, %d before", after, before)
	}
}

// A failure in one program leaves the others as they are, and the memory of the device too. A lost device is lost for all of them; a new
// program gets a new one.
func TestFailureBesideOpenProgram(t *testing.T) {
	if !withFaults(t) {
		return
	}
	open := func() *rlx.Program {
		p, err := rlx.Compile(t.Context(), joined(), rlx.On("vulkan"))
		if err == nil {
			err = session(t) // fills the caches of the device
		}
		if err == nil {
			err = step(t.Context(), p)
		}
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	p := open()
	for _, f := range faults {
		if f.starts {
			continue
		}
		f.each(t, func(label string) error {
			objects, _ := live(t)
			held := rlx.Stats().Native["vulkan"]
			err := session(t)
			command(t)
			after, _ := live(t)
			if !maps.Equal(after, objects) {
				t.Errorf("%s: alive %v, before %v", label, after, objects)
			}
			if b := rlx.Stats().Native["vulkan"]; b != held {
				t.Errorf("%s: the library holds %d bytes, %d before", label, b, held)
			}
			beside := step(t.Context(), p)
			if f.code != backend.DeviceLost || err == nil {
				if beside != nil {
					t.Errorf("%s: the program beside it: %v", label, beside)
				}
				return err
			}
			var e *backend.Error
			if !errors.As(beside, &e) || e.Code != backend.DeviceLost {
				t.Errorf("%s: the program beside it got %v, expected that the device is lost", label, beside)
			}
			fresh := open()
			if e := p.Close(); e != nil {
				t.Errorf("%s: Close: %v", label, e)
			}
			p = fresh
			return err
		})
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if err := noObjects(t); err != nil {
		t.Error(err)
	}
}

// After a wait that failed the device may still be at work: the next run on the same arena waits for it first.
func TestRunAfterFailedWait(t *testing.T) {
	if !withFaults(t) {
		return
	}
	rng := rand.New(rand.NewSource(6))
	g := rlx.NewGraph("long")
	y := g.Input("x", rlx.F32, rlx.Shape("n", 192))
	w := g.Param("w", floats(rng, 192, 192))
	for range 8 {
		y = op.Tanh(op.MatMul(y, w))
	}
	g.Output("y", y)
	p := compile(t, g, "vulkan")
	feeds := []rlx.Feed{{"x": floats(rng, 320, 192)}, {"x": floats(rng, 320, 192)}}
	want := [][]float32{values(t, p, feeds[0]), values(t, p, feeds[1])}
	for k := range 4 {
		command(t, "vkWaitSemaphores 1 -1")
		_, err := p.Run(t.Context(), feeds[0])
		var be *backend.Error
		if !errors.As(err, &be) || be.Code != backend.NoMemory {
			t.Fatalf("a wait that fails: %v", err)
		}
		command(t)
		if got := values(t, p, feeds[k%2]); !slices.Equal(got, want[k%2]) {
			t.Errorf("the run after a failed wait gives other numbers")
		}
	}
}

// A machine without a device says so, and Prefer takes the next backend.
func TestNoDevice(t *testing.T) {
	if !withFaults(t) {
		return
	}
	command(t, "vkEnumeratePhysicalDevices 1+ 0")
	unavailable(t, "no device")
	if err := noObjects(t); err != nil {
		t.Error(err)
	}
	command(t)
	if err := session(t); err != nil {
		t.Error(err)
	}
}

// A machine without the loader too.
func TestNoLoader(t *testing.T) {
	if inChild(t, "RLX_VULKAN_LOADER=/nonexistent/libvulkan.so") {
		unavailable(t, "/nonexistent/libvulkan.so")
	}
}

func unavailable(t *testing.T, text string) {
	t.Helper()
	_, err := rlx.Compile(t.Context(), joined(), rlx.On("vulkan"))
	var e *backend.Error
	if !errors.As(err, &e) || e.Code != backend.NoDevice || !strings.Contains(err.Error(), text) {
		t.Errorf("got error %v, expected no device and %q", err, text)
	}
	p, err := rlx.Compile(t.Context(), joined(), rlx.Prefer("vulkan", "ref"))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if p.Backend() != "ref" || p.Fallback() == nil || !strings.Contains(p.Fallback().Error(), text) {
		t.Errorf("took %s because of %v, expected ref because of %q", p.Backend(), p.Fallback(), text)
	}
	if err := step(t.Context(), p); err != nil {
		t.Error(err)
	}
}

// spy is the vulkan backend, and keeps the words that are loaded.
type spy struct {
	backend.Backend
	words *[]uint32
}

type spiedDevice struct {
	backend.Device
	words *[]uint32
}

func (s spy) Name() string { return "spy" }

func (s spy) Open(i int, o backend.Options) (backend.Device, error) {
	d, err := s.Backend.Open(i, o)
	return spiedDevice{d, s.words}, err
}

func (d spiedDevice) Load(w backend.Weights, words []uint32) (backend.Program, error) {
	*d.words = slices.Clone(words)
	return d.Device.Load(w, words)
}

// Words that break a rule are refused by Load, which leaves nothing behind.
func TestBadWords(t *testing.T) {
	if !withFaults(t) {
		return
	}
	b, err := backend.Lookup("vulkan")
	if err != nil {
		t.Fatal(err)
	}
	s := spy{b, new([]uint32)}
	backend.Register(s)
	g := rlx.NewGraph("words")
	g.Output("y", op.Concat(0, op.Gather(g.Input("x", rlx.F32, rlx.Shape(5, 3)), g.Input("i", rlx.I32, rlx.Shape(2)), 0), g.Input("z", rlx.F32, rlx.Shape(1, 3))))
	p, err := rlx.Compile(t.Context(), g, rlx.On("spy"))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	d, err := b.Open(0, backend.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	load := func(words []uint32) error {
		p, err := d.Load(nil, words)
		if err != nil {
			return err
		}
		return p.Close()
	}
	words := *s.words
	if err := load(words); err != nil {
		t.Fatal(err)
	}
	before, accepted := d.NativeBytes(), 0
	refused := func(what string, bad []uint32, text string) {
		var e *backend.Error
		if err := load(bad); !errors.As(err, &e) || e.Code != backend.BadWords || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: got error %v, expected bad words and %q", what, err, text)
		}
	}
	for n := range words {
		refused(fmt.Sprintf("%d of %d words", n, len(words)), words[:n], "")
	}
	for i := range words {
		for _, flip := range []uint32{1, 1 << 7, 1 << 16, 1 << 31, ^uint32(0)} {
			bad := slices.Clone(words)
			bad[i] ^= flip
			var e *backend.Error
			if err := load(bad); err != nil && (!errors.As(err, &e) || e.Code != backend.BadWords && e.Code != backend.Unsupported && e.Code != backend.NoMemory) {
				t.Errorf("word %d ^ %#x: got error %v, expected none, bad words, unsupported or out of memory", i, flip, err)
			} else if err == nil {
				accepted++
			}
		}
	}
	for _, i := range []int{2, 3} {
		bad := slices.Clone(words)
		bad[i] ^= 0x10
		refused("another op table", bad, "table")
	}
	if accepted == 5*len(words) {
		t.Error("no altered word was refused")
	}
	if after := d.NativeBytes(); after != before {
		t.Errorf("the library holds %d bytes, %d before", after, before)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if err := noObjects(t); err != nil {
		t.Error(err)
	}
}
