package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/rlx-ml/rlx-go/cmd/rlx/workload"
)

// measurement is a line of --json, of this program or of a peer, or of the probe of the limits.
type measurement struct {
	Workload  string   `json:"workload"`
	Peer      string   `json:"peer"`
	Threads   int      `json:"threads"`
	MinMS     float64  `json:"min_ms"`
	Version   string   `json:"version"`
	GFLOPS    float64  `json:"gflops"`
	GBps      float64  `json:"gbps"`
	CompileMS float64  `json:"compile_ms"`
	PeakBytes int64    `json:"peak_bytes"`
	PlanBytes int64    `json:"plan_bytes"`
	MaxErr    *float64 `json:"max_err"`
	machineLine
}

func (m *measurement) ours() bool { return m.Peer == "rlx" || strings.HasPrefix(m.Peer, "rlx-") }
func (m *measurement) seed() bool { return m.Peer == seed || strings.HasPrefix(m.Peer, seed+"-") }

// sitting is what was measured side by side on one machine: of each workload, peer and number of threads the least time.
type sitting struct {
	name    string
	machine measurement
	limits  map[string]float64 // by "name threads"
	best    map[string]*measurement
	compile map[string]*measurement // of peers, by "workload threads": the least time to compile
}

func key(m *measurement) string { return fmt.Sprintf("%s %d", m.Workload, m.Threads) }

// readSitting reads lines that begin with {; others are remarks.
func readSitting(name string, r io.Reader) (*sitting, error) {
	s := &sitting{name: name, limits: map[string]float64{}, best: map[string]*measurement{}, compile: map[string]*measurement{}}
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		text := bytes.TrimSpace(lines.Bytes())
		if !bytes.HasPrefix(text, []byte("{")) {
			continue
		}
		m := &measurement{}
		if err := json.Unmarshal(text, m); err != nil || m.Workload == "" || m.Peer == "" {
			return nil, fmt.Errorf("%s:%d: not a measurement: %v", name, n, err)
		}
		if err := s.add(m); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, n, err)
		}
	}
	return s, lines.Err()
}

// add takes a line in. A result of ours that is further from its reference than its class of workloads allows is no measurement.
func (s *sitting) add(m *measurement) error {
	limit, isLimit := strings.CutPrefix(m.Workload, "limit.")
	switch {
	case m.Workload == "machine":
		return s.addMachine(m)
	case isLimit:
		m.Workload = limit
		s.limits[key(m)] = max(s.limits[key(m)], m.GFLOPS+m.GBps)
	case m.MinMS > 0:
		if w, ok := workloads()[m.Workload]; ok && m.ours() && m.MaxErr != nil && !(*m.MaxErr <= w.Tolerance()) {
			return fmt.Errorf("%s: max_err is %.2g, expected at most %.2g", m.Workload, *m.MaxErr, w.Tolerance())
		}
		s.addTime(m)
	}
	return nil
}

// addMachine merges what the probes of this program and of the peers say of the same machine.
func (s *sitting) addMachine(m *measurement) error {
	have := &s.machine
	if have.CPU != "" && have.CPU != m.CPU {
		return fmt.Errorf("measured on %s, the lines before on %s: times of several machines do not compare", m.CPU, have.CPU)
	}
	date := max(have.Date, m.Date)
	if have.CPU == "" || m.Date != "" {
		*have = *m
	}
	have.Date = date
	return nil
}

// addTime keeps the least of each figure, and the largest error.
func (s *sitting) addTime(m *measurement) {
	if old := s.compile[key(m)]; !m.ours() && m.CompileMS > 0 && (old == nil || m.CompileMS < old.CompileMS) {
		s.compile[key(m)] = m
	}
	k := m.Peer + " " + key(m)
	old := s.best[k]
	s.best[k] = m
	if old == nil {
		return
	}
	least := func(a, b float64) float64 {
		if a == 0 || b > 0 && b < a {
			return b
		}
		return a
	}
	m.MinMS, m.CompileMS = min(m.MinMS, old.MinMS), least(m.CompileMS, old.CompileMS)
	m.PeakBytes, m.PlanBytes = int64(least(float64(m.PeakBytes), float64(old.PeakBytes))), max(m.PlanBytes, old.PlanBytes)
	if m.MaxErr == nil || old.MaxErr != nil && *old.MaxErr > *m.MaxErr {
		m.MaxErr = old.MaxErr
	}
}

// workloads are those of this program, by name.
var workloads = sync.OnceValue(func() map[string]workload.Workload {
	m := map[string]workload.Workload{}
	for _, w := range workload.All() {
		m[w.Name] = w
	}
	return m
})

// least is the time in ms that the limits allow a workload, and which of them binds; 0 where none is known.
func (s *sitting) least(w workload.Workload, threads int) (ms float64, by string) {
	limit := func(name string) float64 { return s.limits[fmt.Sprintf("%s %d", name, threads)] }
	if peak := limit(w.Unit); w.Unit != "" && peak > 0 {
		ms, by = w.Flop/peak/1e6, w.Unit
	}
	level, bandwidth := "L2", limit("l2")
	switch kb := w.Bytes / 1024; {
	case kb > s.machine.L3KB && w.Reads:
		level, bandwidth = "DRAM", limit("dram")
	case kb > s.machine.L3KB:
		level, bandwidth = "DRAM", max(limit("dram"), limit("copy"), limit("copy_nt"))
	case kb > s.machine.L2KB*float64(threads):
		level, bandwidth = "L3", limit("l3")
	}
	if bandwidth > 0 && w.Bytes/bandwidth/1e6 > ms {
		ms, by = w.Bytes/bandwidth/1e6, level
	}
	return ms, by
}

// fastest is the best of the lines of a workload that are wanted.
func (s *sitting) fastest(name string, threads int, wanted func(*measurement) bool) *measurement {
	var best *measurement
	for _, k := range slices.Sorted(maps.Keys(s.best)) {
		if m := s.best[k]; m.Workload == name && m.Threads == threads && wanted(m) && (best == nil || m.MinMS < best.MinMS) {
			best = m
		}
	}
	return best
}

// benchCompare writes a page of Markdown: for each file, ours beside the best peer and the limit.
func benchCompare(out io.Writer, files []string) error {
	fmt.Fprint(out, pageHead)
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		s, err := readSitting(strings.TrimSuffix(filepath.Base(name), ".jsonl"), f)
		f.Close()
		if err != nil {
			return err
		}
		s.write(out)
	}
	return nil
}
