package service_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rlx-ml/rlx-go/examples/serve/loadgen"
	"github.com/rlx-ml/rlx-go/examples/serve/service"
	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/batch"
)

// start is a service on the digits classifier behind a test server.
func start(t *testing.T, cfg service.Config) *httptest.Server {
	t.Helper()
	s, err := service.New(t.Context(), cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s.Handler())
	t.Cleanup(func() {
		server.Close()
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return server
}

// digits is requests and the answers of the program run on each alone.
func digits(t *testing.T) (bodies, want [][]byte) {
	t.Helper()
	feeds, bodies, err := loadgen.Digits(40)
	if err != nil {
		t.Fatal(err)
	}
	m, err := rlx.Open("../../../cmd/rlx/demo/digits.onnx")
	if err != nil {
		t.Fatal(err)
	}
	p, err := m.Compile(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for _, f := range feeds {
		out, err := p.Run(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		text, err := service.EncodeOutputs(out)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, append(text, '\n'))
	}
	return bodies, want
}

// 64 connections get the bits of serial runs, and native memory is what it was.
func TestLoad(t *testing.T) {
	bodies, want := digits(t)
	before := runtime.NumGoroutine()
	t.Run("load", func(t *testing.T) {
		server := start(t, service.Config{Timeout: time.Minute, MaxBody: 1 << 20, Batch: batch.Options{MaxDelay: 200 * time.Microsecond}})
		l := loadgen.Load{URL: server.URL + "/v1/run", Conns: 64, Bodies: bodies, Want: want}
		send := func(d time.Duration) *loadgen.Report {
			ctx, cancel := context.WithTimeout(t.Context(), d)
			defer cancel()
			r := l.Send(ctx)
			t.Log(r)
			if r.Answers == 0 || r.Different > 0 || r.Broken > 0 || r.Status[http.StatusOK] != r.Answers {
				t.Errorf("%v", r)
			}
			return r
		}
		for n := 1; n <= 32; n *= 2 { // every size of batch is compiled before memory is read
			body, err := service.EncodeFeed(rlx.Feed{"pixels": rlx.New(make([]float32, 64*n), n, 64)})
			if err != nil {
				t.Fatal(err)
			}
			if status, text, err := loadgen.Ask(t.Context(), http.DefaultClient, l.URL, body); err != nil || status != http.StatusOK {
				t.Fatalf("%d %s (%v)", status, text, err)
			}
		}
		send(300 * time.Millisecond)
		first, err := loadgen.Metrics(t.Context(), server.URL)
		if err != nil {
			t.Fatal(err)
		}
		sum := send(time.Second).Answers
		last, err := loadgen.Metrics(t.Context(), server.URL)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("RSS %.0f before, %.0f after", first["process_resident_memory_bytes"], last["process_resident_memory_bytes"])
		for name := range last {
			if strings.HasPrefix(name, "rlx_native_bytes") && first[name] != last[name] {
				t.Errorf("%s: %.0f before, %.0f after", name, first[name], last[name])
			}
		}
		if d := last[`http_requests_total{code="200"}`] - first[`http_requests_total{code="200"}`]; d != float64(sum) {
			t.Errorf("the metrics count %.0f answers, the clients %d", d, sum)
		}
		if last["rlx_batch_batches_total"] >= last["rlx_batch_rows_total"] {
			t.Error("no batch has two rows")
		}
		http.DefaultClient.CloseIdleConnections()
	})
	for range 2000 { // connections end after the test server closed
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Errorf("%d goroutines before, %d after", before, runtime.NumGoroutine())
}

func TestStatus(t *testing.T) {
	bodies, want := digits(t)
	server := start(t, service.Config{MaxBody: 1 << 12})
	post := func(body string) (int, string) {
		t.Helper()
		status, answer, err := loadgen.Ask(t.Context(), http.DefaultClient, server.URL+"/v1/run", []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		return status, string(answer)
	}
	for _, c := range []struct {
		body   string
		status int
		text   string
	}{
		{string(bodies[3]), 200, string(want[3])},
		{`{"inputs": {}}`, 400, "pixels: missing"},
		{`{"inputs": {"pixels": {"dtype": "i64", "shape": [1, 1], "data": [1]}}}`, 400, "dtype: got i64[1 1], expected f32[batch, 64]"},
		{`{"inputs": {"pixels": {"dtype": "f32", "shape": [1, 2], "data": [1, 2]}}}`, 400, "dim 1"},
		{`{"inputs": {"pixels": {"dtype": "f32", "shape": [2, 2], "data": [1, 2]}}}`, 400, "pixels"},
		{`{"inputs": {"pixels": {"dtype": "f32", "shape": [-1, -2], "data": [1, 2]}}}`, 400, "pixels"},
		{`{"inputs": {"pixels": {"dtype": "f31", "shape": [1], "data": [1]}}}`, 400, "f31"},
		{`{"inputs": {"pixels": {"dtype": "f32", "shape": [1], "data": ["x"]}}}`, 400, "element 0"},
		{`{"inputs": {"pixels": {"dtype": "u8", "shape": [1], "data": [256]}}}`, 400, "element 0"},
		{`{"inputs": 3}`, 400, "inputs"},
		{`{"input": {}}`, 400, "input"},
		{`{"inputs": {}} x`, 400, "behind"},
		{`no JSON`, 400, "request"},
		{strings.Repeat(" ", 1<<12) + `{}`, 413, "too large"},
	} {
		if status, text := post(c.body); status != c.status || !strings.Contains(text, c.text) {
			t.Errorf("%.80s: got %d %q, expected %d %q", c.body, status, text, c.status, c.text)
		}
	}
	for path, status := range map[string]int{"/healthz": 200, "/readyz": 200, "/metrics": 200, "/v1/run": 405, "/other": 404} {
		resp, err := http.Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != status {
			t.Errorf("%s: got %d, expected %d", path, resp.StatusCode, status)
		}
	}
}

// A full queue is 429, a timeout 504, a client that left leaves the queue, and what waits when the service closes gets its answer.
func TestWaiting(t *testing.T) {
	bodies, want := digits(t)
	cfg := service.Config{Batch: batch.Options{QueueSize: 1, MaxDelay: time.Hour}}
	s, err := service.New(t.Context(), cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s.Handler())
	defer server.Close()
	type result struct {
		status int
		answer []byte
		err    error
	}
	ask := func(ctx context.Context) chan result {
		c := make(chan result, 1)
		go func() {
			status, answer, err := loadgen.Ask(ctx, http.DefaultClient, server.URL+"/v1/run", bodies[0])
			c <- result{status, answer, err}
		}()
		return c
	}
	metric := func(name string, value float64) {
		for {
			m, err := loadgen.Metrics(t.Context(), server.URL)
			if err != nil {
				t.Fatal(err)
			}
			if m[name] == value {
				return
			}
		}
	}
	ctx, leave := context.WithCancel(t.Context())
	gone := ask(ctx)
	metric("rlx_batch_queue_length", 1)
	if r := <-ask(t.Context()); r.status != http.StatusTooManyRequests {
		t.Errorf("a full queue: got %+v", r)
	}
	leave()
	<-gone
	metric(`http_requests_total{code="499"}`, 1)
	metric("rlx_batch_queue_length", 0)
	last := ask(t.Context())
	metric("rlx_batch_queue_length", 1)
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if r := <-last; r.status != 200 || !bytes.Equal(r.answer, want[0]) {
		t.Errorf("accepted before Close: got %+v", r)
	}
	if r := <-ask(t.Context()); r.status != http.StatusServiceUnavailable {
		t.Errorf("after Close: got %+v", r)
	}

	late := start(t, service.Config{Timeout: time.Millisecond, Batch: batch.Options{MaxDelay: time.Hour}})
	if status, text, err := loadgen.Ask(t.Context(), http.DefaultClient, late.URL+"/v1/run", bodies[0]); err != nil || status != http.StatusGatewayTimeout {
		t.Errorf("a timeout: got %d %s (%v)", status, text, err)
	}
}

// Tensors go through JSON without a change.
func TestTensors(t *testing.T) {
	inf := float32(math.Inf(1))
	f := rlx.Feed{
		"f32": rlx.New([]float32{0.1, 16777216, 1e-45, float32(math.Copysign(0, -1)), inf, -inf, math.MaxFloat32}, 7),
		"f64": rlx.New([]float64{0.1, 5e-324, math.Inf(-1), math.MaxFloat64}, 2, 2),
		"f16": rlx.New([]rlx.Float16{0x3c01, 1, 0x7c00, 0x8000}, 4),
		"b16": rlx.New([]rlx.BFloat16{0x3f81, 1, 0xff80}, 3),
		"i64": rlx.New([]int64{math.MinInt64, math.MaxInt64}, 2, 1), "i32": rlx.New([]int32{math.MinInt32}, 1), "i16": rlx.New([]int16{-3}), "i8": rlx.New([]int8{-128}, 1),
		"u64": rlx.New([]uint64{math.MaxUint64}, 1), "u32": rlx.New([]uint32{math.MaxUint32}, 1), "u16": rlx.New([]uint16{65535}, 1), "u8": rlx.New([]uint8{0, 255}, 2),
		"bool": rlx.New([]bool{true, false}, 2), "none": rlx.New([]float32{}, 0, 3),
	}
	text, err := service.EncodeFeed(f)
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(text) {
		t.Errorf("no JSON: %s", text)
	}
	g, err := service.DecodeFeed(text)
	if err != nil {
		t.Fatal(err)
	}
	for name, x := range f {
		y := g[name]
		if y == nil || y.DType() != x.DType() || !reflect.DeepEqual(append([]int64{}, x.Shape()...), append([]int64{}, y.Shape()...)) || !bytes.Equal(x.Bytes(), y.Bytes()) {
			t.Errorf("%s: got %v, expected %v", name, y, x)
		}
	}
	if _, err := service.EncodeOutputs(rlx.Feed{"c": rlx.New([]complex64{1}, 1)}); err == nil {
		t.Error("a complex output has a form")
	}
}

// The text that a scraper reads.
func TestMetrics(t *testing.T) {
	bodies, _ := digits(t)
	server := start(t, service.Config{})
	for range 3 {
		if status, text, err := loadgen.Ask(t.Context(), http.DefaultClient, server.URL+"/v1/run", bodies[0]); err != nil || status != 200 {
			t.Fatalf("%d %s (%v)", status, text, err)
		}
	}
	resp, err := http.Get(server.URL + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		`http_requests_total{code="200"} 3`, `http_request_duration_seconds_bucket{le="+Inf"} 3`, "http_request_duration_seconds_count 3",
		`rlx_batch_requests_total{result="completed"} 3`, "rlx_batch_batches_total 3", "rlx_batch_wait_seconds_count 3", "# TYPE rlx_batch_wait_seconds histogram", "rlx_batch_queue_length 0",
	} {
		if !strings.Contains(string(text), line+"\n") {
			t.Errorf("no line %q in\n%s", line, text)
		}
	}
}
