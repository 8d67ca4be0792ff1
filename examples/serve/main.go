// Command serve answers inference requests over HTTP: see docs/serving.md.
package main

import (
	"context"
	"flag"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/rlx-ml/rlx-go/examples/serve/service"
)

func main() {
	var c service.Config
	flag.StringVar(&c.Addr, "addr", "127.0.0.1:8080", "address to listen on")
	flag.StringVar(&c.Model, "model", "", "ONNX file; the built-in digits classifier if empty")
	flag.IntVar(&c.Batch.MaxBatch, "max-batch", 32, "rows of a batch")
	flag.DurationVar(&c.Batch.MaxDelay, "max-delay", time.Millisecond, "how long a request waits for others while a worker is idle")
	flag.IntVar(&c.Batch.QueueSize, "queue", 1024, "requests that wait; more get status 429")
	flag.DurationVar(&c.Timeout, "timeout", 10*time.Second, "of a request, its wait included")
	flag.IntVar(&c.Threads, "threads", 0, "threads of a run; 0: as many as Go uses")
	flag.Int64Var(&c.MaxBody, "max-body", 8<<20, "bytes of a request's body")
	flag.DurationVar(&c.Unready, "unready", 0, "at the end: how long /readyz refuses before connections do, for load balancers to notice")
	flag.DurationVar(&c.Drain, "drain", time.Second, "at the end: how long idle connections may still bring a request")
	flag.DurationVar(&c.Shutdown, "shutdown", 30*time.Second, "at the end: how long requests may take before they are given up")
	flag.Parse()

	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := service.Run(ctx, c, log)
	stop()
	if err != nil {
		log.Error("failed", "error", err)
		os.Exit(1)
	}
}
