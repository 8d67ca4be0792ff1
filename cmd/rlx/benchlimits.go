package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/rlx-ml/rlx-go/cmd/rlx/workload"
	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/backend"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// probed is a limit of the machine; bytes is the size of a buffer for traffic with memory.
type probed struct {
	name  string
	limit backend.Limit
	bytes uint64
}

var probes = []probed{{"f32", backend.LimitF32, 1}, {"f64", backend.LimitF64, 1}, {"bf16", backend.LimitBF16, 1}, {"i8", backend.LimitI8, 1},
	{"l1", backend.LimitRead, 24 << 10}, {"l2", backend.LimitRead, 256 << 10}, {"l3", backend.LimitRead, 3 << 20}, {"dram", backend.LimitRead, 96 << 20},
	{"copy", backend.LimitCopy, 96 << 20}, {"copy_nt", backend.LimitCopyStreaming, 96 << 20}}

func (p probed) isPeak() bool { return p.limit < backend.LimitRead }

// peakOf is the probe of a unit.
func peakOf(unit string) probed {
	for _, p := range probes {
		if p.isPeak() && p.name == unit {
			return p
		}
	}
	return probes[0]
}

// measure is the limit in 1e9 operations or bytes a second; ok is false where the backend cannot tell.
func (p probed) measure(prog *rlx.Program, threads int, seconds float64) (value float64, ok bool, err error) {
	return prog.Probe(p.limit, threads, p.bytes, seconds)
}

// limits are the best that the probes beside a workload's runs found.
type limits struct{ peak, read float64 }

// probe measures once more: the peak of the workload's unit, and reads of a buffer as large as its traffic.
func (l *limits) probe(prog *rlx.Program, w workload.Workload, threads int) error {
	const seconds = 0.02
	peak, ok, err := peakOf(w.Unit).measure(prog, threads, seconds)
	if err != nil || !ok {
		return err
	}
	read, _, err := probed{"memory", backend.LimitRead, max(uint64(w.Bytes)/uint64(threads), 1<<14)}.measure(prog, threads, seconds)
	l.peak, l.read = max(l.peak, peak), max(l.read, read)
	return err
}

// share says how much of the limit that binds was reached, and which it is.
func (l limits) share(w workload.Workload, seconds float64) string {
	if l.peak <= 0 || l.read <= 0 || w.Bytes == 0 {
		return ""
	}
	memory, arithmetic := w.Bytes/1e9/l.read, 0.0
	if w.Unit != "" {
		arithmetic = w.Flop / 1e9 / l.peak
	}
	if arithmetic > memory {
		return fmt.Sprintf("%.0f %% %s", 100*arithmetic/seconds, w.Unit)
	}
	return fmt.Sprintf("%.0f %% memory", 100*memory/seconds)
}

// machineLine is what the line "machine" says beside the fields of others.
type machineLine struct {
	CPU  string  `json:"cpu"`
	ISA  string  `json:"isa"`
	L2KB float64 `json:"l2_kb"`
	L3KB float64 `json:"l3_kb"`
	Date string  `json:"date"`
}

// benchLimits prints the machine and its limits.
func benchLimits(ctx context.Context, o benchOptions, put func(*benchLine) error) error {
	g := rlx.NewGraph("probe")
	g.Output("y", op.Neg(g.Input("x", rlx.F32, rlx.Shape(1))))
	prog, err := rlx.Compile(ctx, g, rlx.On(o.backend), rlx.Threads(o.threads))
	if err != nil {
		return err
	}
	defer prog.Close()
	isa := prog.Device().ISA
	m := &machineLine{CPU: cpuName(), ISA: isa, L2KB: cacheKB(2), L3KB: cacheKB(3), Date: time.Now().UTC().Format(time.DateOnly)}
	if err := put(&benchLine{Workload: "machine", Peer: "limits", Threads: runtime.NumCPU(), machineLine: m, text: fmt.Sprintf("%s, %s, L2 %g KB, L3 %g KB", m.CPU, m.ISA, m.L2KB, m.L3KB)}); err != nil {
		return err
	}
	for _, p := range probes {
		if err := ctx.Err(); err != nil {
			return err
		}
		value, ok, err := p.measure(prog, o.threads, 0.1)
		if err != nil || !ok {
			return err
		}
		l := &benchLine{Workload: "limit." + p.name, Peer: "limits", Threads: o.threads, Version: isa}
		if p.isPeak() {
			l.GFLOPS = value
		} else {
			l.GBps = value
		}
		if err := put(l); err != nil {
			return err
		}
	}
	return nil
}

// cpuName is the processor's name as Linux tells it, with family and model where the name is a family's; elsewhere the architecture.
func cpuName() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	field := func(name string) string {
		for line := range strings.Lines(string(text)) {
			if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == name {
				return strings.TrimSpace(v)
			}
		}
		return ""
	}
	name := field("model name")
	if name == "" {
		return runtime.GOARCH
	}
	if family, model := field("cpu family"), field("model"); family != "" && model != "" {
		name += " family " + family + " model " + model
	}
	return name
}

// cacheKB is the size of the first processor's cache of a level for data as Linux tells it, 0 where it does not.
func cacheKB(level int) float64 {
	folders, _ := filepath.Glob("/sys/devices/system/cpu/cpu0/cache/index*")
	read := func(folder, name string) string {
		text, _ := os.ReadFile(filepath.Join(folder, name))
		return strings.TrimSpace(string(text))
	}
	for _, f := range folders {
		if read(f, "level") == strconv.Itoa(level) && read(f, "type") != "Instruction" {
			kb, _ := strconv.ParseFloat(strings.TrimSuffix(read(f, "size"), "K"), 64)
			return kb
		}
	}
	return 0
}
