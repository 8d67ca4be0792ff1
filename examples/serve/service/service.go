// Package service is an HTTP service around one program: requests of many connections are gathered into batches.
//
//	POST /v1/run   {"inputs": {"NAME": {"dtype": "f32", "shape": [1, 64], "data": [...]}}} -> {"outputs": {...}} of the same form
//	GET  /healthz  200 while the process lives
//	GET  /readyz   200 while it takes requests, 503 when it is about to end
//	GET  /metrics  Prometheus text
package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/rlx-ml/rlx-go/cmd/rlx/demo"
	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/backend"
	"github.com/rlx-ml/rlx-go/rlx/batch"
)

// Config is what flags say. Zero durations and sizes mean none, save for those of Batch, which have defaults of their own.
type Config struct {
	Addr    string
	Model   string // file; the digits classifier if empty
	Threads int
	Timeout time.Duration
	MaxBody int64
	Batch   batch.Options

	Unready, Drain, Shutdown time.Duration // phases of the end: see Run
}

// Service answers requests on one program.
type Service struct {
	cfg      Config
	log      *slog.Logger
	prog     *rlx.Program
	batcher  *batch.Batcher
	metrics  *metrics
	draining atomic.Bool // answers close their connections
	unready  atomic.Bool
}

// New opens and compiles the model; Close gives everything back.
func New(ctx context.Context, cfg Config, log *slog.Logger) (*Service, error) {
	model, err := open(cfg.Model)
	if err != nil {
		return nil, err
	}
	opts := []rlx.Option{rlx.Logger(log)}
	if cfg.Threads > 0 {
		opts = append(opts, rlx.Threads(cfg.Threads))
	}
	prog, err := model.Compile(ctx, opts...)
	if err != nil {
		return nil, err
	}
	cfg.Batch.Isolate = true // the values that a client sends fail its own request only
	b, err := batch.New(prog, cfg.Batch)
	if err != nil {
		return nil, errors.Join(err, prog.Close())
	}
	return &Service{cfg: cfg, log: log, prog: prog, batcher: b, metrics: newMetrics()}, nil
}

func open(file string) (*rlx.Model, error) {
	if file == "" {
		return rlx.OpenFS(demo.Files, "digits.onnx")
	}
	return rlx.Open(file)
}

// Close answers the requests that the batcher has, until ctx ends, and frees the program.
func (s *Service) Close(ctx context.Context) error {
	return errors.Join(s.batcher.Close(ctx), s.prog.Close())
}

// Handler is the service's HTTP interface.
func (s *Service) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/run", s.run)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok\n") })
	mux.HandleFunc("GET /readyz", s.readyz)
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		s.metrics.write(w, s.batcher.Stats())
	})
	return mux
}

func (s *Service) readyz(w http.ResponseWriter, _ *http.Request) {
	if s.unready.Load() {
		http.Error(w, "shutting down", http.StatusServiceUnavailable)
		return
	}
	io.WriteString(w, "ready\n")
}

// run is one inference. The request's context ends when the client goes.
func (s *Service) run(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	s.metrics.begin()
	if s.draining.Load() {
		w.Header().Set("Connection", "close")
	}
	body, err := s.infer(w, r)
	code := http.StatusOK
	if err != nil {
		code = status(err)
		s.log.Debug("refused", "code", code, "error", err)
		body, _ = json.Marshal(map[string]string{"error": err.Error()})
		if code == http.StatusTooManyRequests {
			w.Header().Set("Retry-After", "1")
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	w.Write(append(body, '\n'))
	s.metrics.end(code, time.Since(began))
}

func (s *Service) infer(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body := io.Reader(r.Body)
	if s.cfg.MaxBody > 0 {
		body = http.MaxBytesReader(w, r.Body, s.cfg.MaxBody)
	}
	text, err := io.ReadAll(body)
	if err != nil {
		return nil, err
	}
	feed, err := DecodeFeed(text)
	if err != nil {
		return nil, err
	}
	ctx := r.Context()
	if s.cfg.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.cfg.Timeout)
		defer cancel()
	}
	out, err := s.batcher.Do(ctx, feed)
	if err != nil {
		return nil, err
	}
	return EncodeOutputs(out)
}

// statusClientGone is what nginx calls a request whose client went away; nobody reads it but the metrics.
const statusClientGone = 499

// status is the HTTP status of an error.
func status(err error) int {
	var tooLarge *http.MaxBytesError
	var bad *RequestError
	var feed *rlx.FeedError
	var shape *rlx.ShapeError
	var device *backend.Error
	switch {
	case errors.As(err, &tooLarge):
		return http.StatusRequestEntityTooLarge
	case errors.As(err, &bad), errors.As(err, &feed), errors.As(err, &shape):
		return http.StatusBadRequest
	case errors.As(err, &device) && device.Code == backend.BadValue: // an index out of range, say
		return http.StatusBadRequest
	case errors.Is(err, batch.ErrQueueFull):
		return http.StatusTooManyRequests
	case errors.Is(err, batch.ErrClosed), errors.Is(err, rlx.ErrClosed):
		return http.StatusServiceUnavailable
	case errors.Is(err, context.DeadlineExceeded):
		return http.StatusGatewayTimeout
	case errors.Is(err, context.Canceled):
		return statusClientGone
	case errors.Is(err, io.ErrUnexpectedEOF): // the client went while it sent
		return statusClientGone
	}
	return http.StatusInternalServerError
}

// RequestError says what is wrong with a request's JSON.
type RequestError struct {
	Input string // its name, "" for the whole
	Err   error
}

func (e *RequestError) Error() string {
	if e.Input == "" {
		return fmt.Sprintf("request: %v", e.Err)
	}
	return fmt.Sprintf("request: input %s: %v", e.Input, e.Err)
}

func (e *RequestError) Unwrap() error { return e.Err }
