package service

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/batch"
)

// metrics counts HTTP requests.
type metrics struct {
	mu       sync.Mutex
	begun    uint64
	answered map[int]uint64 // by status
	took     batch.Histogram
}

func newMetrics() *metrics {
	return &metrics{answered: map[int]uint64{}, took: batch.NewHistogram()}
}

func (m *metrics) begin() {
	m.mu.Lock()
	m.begun++
	m.mu.Unlock()
}

func (m *metrics) end(code int, took time.Duration) {
	m.mu.Lock()
	m.answered[code]++
	m.took.Observe(took)
	m.mu.Unlock()
}

// totals are the requests that came and those that were answered.
func (m *metrics) totals() (begun, answered uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.begun, m.took.Count
}

// write prints the metrics in Prometheus' text format.
func (m *metrics) write(to io.Writer, s batch.Stats) {
	w := bufio.NewWriter(to)
	defer w.Flush()
	m.mu.Lock()
	head(w, "http_requests_total", "counter", "Answers by status.")
	for _, code := range slices.Sorted(maps.Keys(m.answered)) {
		fmt.Fprintf(w, "http_requests_total{code=\"%d\"} %d\n", code, m.answered[code])
	}
	histogram(w, "http_request_duration_seconds", "Time from a request to its answer.", m.took)
	m.mu.Unlock()

	head(w, "rlx_batch_requests_total", "counter", "Requests of the batcher by what became of them.")
	for _, c := range []struct {
		result string
		n      uint64
	}{{"completed", s.Completed}, {"failed", s.Failed}, {"cancelled", s.Cancelled}, {"rejected", s.Rejected}, {"invalid", s.Invalid}} {
		fmt.Fprintf(w, "rlx_batch_requests_total{result=\"%s\"} %d\n", c.result, c.n)
	}
	single(w, "rlx_batch_batches_total", "counter", "Batches that ran.", float64(s.Batches))
	single(w, "rlx_batch_rows_total", "counter", "Rows of all batches, without those that fill up.", float64(s.Rows))
	single(w, "rlx_batch_filled_rows_total", "counter", "Rows that filled batches up.", float64(s.FilledRows))
	single(w, "rlx_batch_queue_length", "gauge", "Requests that wait.", float64(s.Waiting))
	single(w, "rlx_batch_running", "gauge", "Batches that run.", float64(s.Running))
	histogram(w, "rlx_batch_wait_seconds", "Time from a request to the start of its batch.", s.Wait)

	native := rlx.Stats().Native
	head(w, "rlx_native_bytes", "gauge", "Memory outside Go's heap by backend.")
	for _, name := range slices.Sorted(maps.Keys(native)) {
		fmt.Fprintf(w, "rlx_native_bytes{backend=\"%s\"} %d\n", name, native[name])
	}
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	single(w, "go_goroutines", "gauge", "Goroutines.", float64(runtime.NumGoroutine()))
	single(w, "go_memstats_heap_alloc_bytes", "gauge", "Live and not yet swept bytes of Go's heap.", float64(mem.HeapAlloc))
	single(w, "go_memstats_sys_bytes", "gauge", "Bytes that Go has from the system.", float64(mem.Sys))
	single(w, "go_gc_cycles_total", "counter", "Collections.", float64(mem.NumGC))
	if rss, ok := RSS(); ok {
		single(w, "process_resident_memory_bytes", "gauge", "Resident memory of the process.", float64(rss))
	}
}

func head(w io.Writer, name, kind, help string) {
	fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

func single(w io.Writer, name, kind, help string, v float64) {
	head(w, name, kind, help)
	fmt.Fprintf(w, "%s %s\n", name, strconv.FormatFloat(v, 'g', -1, 64))
}

func histogram(w io.Writer, name, help string, h batch.Histogram) {
	head(w, name, "histogram", help)
	n := uint64(0)
	for i, b := range h.Bounds {
		n += h.Counts[i]
		fmt.Fprintf(w, "%s_bucket{le=\"%s\"} %d\n", name, strconv.FormatFloat(b.Seconds(), 'g', -1, 64), n)
	}
	fmt.Fprintf(w, "%s_bucket{le=\"+Inf\"} %d\n%s_sum %g\n%s_count %d\n", name, h.Count, name, h.Sum.Seconds(), name, h.Count)
}

// RSS is the resident memory of this process, where /proc tells it.
func RSS() (bytes int64, ok bool) {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, false
	}
	if f := strings.Fields(string(text)); len(f) > 1 {
		pages, err := strconv.ParseInt(f[1], 10, 64)
		return pages * int64(os.Getpagesize()), err == nil
	}
	return 0, false
}
