package rlx

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rlx-ml/rlx-go/rlx/backend"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

func needCPU(t *testing.T) {
	t.Helper()
	if !slices.Contains(backend.Names(), "cpu") {
		t.Skip("cpu: not compiled in (CGO_ENABLED=0)")
	}
}

// ticks is the CPU time of every thread of this process, in the kernel's ticks of 10 ms.
func ticks(t *testing.T) map[string]int {
	t.Helper()
	files, err := filepath.Glob("/proc/self/task/*/stat")
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]int{}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			continue // the thread has ended
		}
		f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:])) // state is the first of these, utime the 12th, stime the 13th
		user, err1 := strconv.Atoi(f[11])
		system, err2 := strconv.Atoi(f[12])
		if err1 != nil || err2 != nil {
			t.Fatalf("%s: %q", name, b)
		}
		used[name] = user + system
	}
	return used
}

func processTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// multiplyFor multiplies matrices on this thread and the pool's until the process has used that much CPU time, and counts the threads
// that had a tenth of it each.
func multiplyFor(t *testing.T, p *Program, used time.Duration) int {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	x := New(slices.Repeat([]float32{0.5}, 512*512), 512, 512)
	in, r := Feed{"x": x}, p.Runner()
	out, err := p.Run(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	before, start := ticks(t), processTime(t)
	for processTime(t)-start < used { // without garbage, whose collectors are threads too
		if err := r.RunInto(t.Context(), in, out); err != nil {
			t.Fatal(err)
		}
	}
	total, busy := 0, 0
	after := ticks(t)
	for name, n := range after {
		total += n - before[name]
	}
	for name, n := range after {
		if 10*(n-before[name]) >= total {
			busy++
		}
	}
	return busy
}

func product(t *testing.T, opts ...Option) *Program {
	t.Helper()
	g := NewGraph("product")
	x := g.Input("x", F32, Shape(512, 512))
	g.Output("y", op.MatMul(x, x))
	p, err := Compile(t.Context(), g, append(opts, On("cpu"))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// Under taskset with one processor a program computes on one thread. The test runs itself there.
func TestOneBusyThreadUnderTaskset(t *testing.T) {
	needCPU(t)
	t.Setenv("RLX_NUM_THREADS", "")
	const inside = "RLX_TEST_UNDER_TASKSET"
	if os.Getenv(inside) != "" {
		p := product(t)
		start, began := processTime(t), time.Now()
		busy := multiplyFor(t, p, 500*time.Millisecond)
		fmt.Printf("threads %d busy %d: %v of CPU time in %v\n", p.Device().Threads, busy, processTime(t)-start, time.Since(began))
		return
	}
	tool, err := exec.LookPath("taskset")
	if err != nil {
		t.Skip("taskset: not installed")
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	cpu := regexp.MustCompile(`Cpus_allowed_list:\s*(\d+)`).FindSubmatch(status)
	if cpu == nil {
		t.Fatalf("no affinity in %s", status)
	}
	c := exec.CommandContext(t.Context(), tool, "-c", string(cpu[1]), os.Args[0], "-test.run=^TestOneBusyThreadUnderTaskset$")
	// More goroutines' threads than processors, so that the mask alone decides.
	c.Env = append(os.Environ(), inside+"=1", "GOMAXPROCS=4")
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
	if !strings.Contains(string(out), "threads 1 busy 1:") {
		t.Errorf("expected one thread, and one that is busy:\n%s", out)
	}
	// The same work where two may compute: the count sees the second.
	if n := multiplyFor(t, product(t, Threads(2)), time.Second); n < 2 {
		t.Errorf("%d busy threads with Threads(2), expected 2", n)
	}
}

// A program that does nothing uses no CPU time, though its workers live.
func TestIdleProgramUsesNoCPU(t *testing.T) {
	needCPU(t)
	p := product(t, Threads(4))
	multiplyFor(t, p, 50*time.Millisecond)
	// The bound leaves room for the runtime and for what other tests left; workers that spin would use 3 times the wall time, on idle processors.
	least := time.Duration(math.MaxInt64)
	const wall = 300 * time.Millisecond
	for range 3 {
		start := processTime(t)
		time.Sleep(wall)
		least = min(least, processTime(t)-start)
	}
	t.Logf("%v of CPU time in %v", least, wall)
	if least > wall/4 {
		t.Errorf("an idle program used %v of CPU time in %v", least, wall)
	}
}
