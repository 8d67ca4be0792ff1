package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/rlx-ml/rlx-go/cmd/rlx/workload"
	"github.com/rlx-ml/rlx-go/rlx"
)

// serviceBench is one row of what a service sees beside single runs: a figure and its goal.
type serviceBench struct {
	name string
	run  func(context.Context, *service, benchOptions) (value float64, text string, ok bool, err error)
}

var serviceBenches = []serviceBench{
	{"service.concurrent8", concurrentCallers},
	{"service.busy", besideBusyProcess},
	{"service.idle", idleProgram},
}

// service is a program of a few milliseconds a run, its feed, and the result that every run must have, which the interpreter has confirmed.
type service struct {
	prog *rlx.Program
	feed rlx.Feed
	want rlx.Feed
	err  *float64 // against the interpreter
}

func newService(ctx context.Context, o benchOptions) (*service, error) {
	w := workload.Service()
	c, err := w.Case()
	if err != nil {
		return nil, err
	}
	prog, err := rlx.Compile(ctx, c.Graph, rlx.On(o.backend), rlx.Threads(o.threads))
	if err != nil {
		return nil, err
	}
	s := &service{prog: prog, feed: c.Feed}
	if s.want, err = prog.Run(ctx, c.Feed); err == nil {
		s.err, err = check(ctx, w, c, s.want, o)
	}
	if err != nil {
		prog.Close()
		return nil, err
	}
	return s, nil
}

func measureService(ctx context.Context, b serviceBench, o benchOptions) (*benchLine, error) {
	s, err := newService(ctx, o)
	if err != nil {
		return nil, err
	}
	defer s.prog.Close()
	value, text, ok, err := b.run(ctx, s, o)
	if err != nil {
		return nil, err
	}
	if !ok {
		text += " (missed)"
	}
	return &benchLine{Workload: b.name, Peer: "rlx", Threads: o.threads, Version: version() + " " + s.prog.Device().ISA, MaxErr: s.err, Value: &value, OK: &ok, text: text}, nil
}

// call runs until the time is over, from one caller, and returns how often; every result is compared.
func (s *service) call(ctx context.Context, d time.Duration) (int, error) {
	n := 0
	for end := time.Now().Add(d); n == 0 || time.Now().Before(end); n++ {
		out, err := s.prog.Run(ctx, s.feed)
		if err != nil {
			return n, err
		}
		for name, want := range s.want {
			if string(out[name].Bytes()) != string(want.Bytes()) {
				return n, fmt.Errorf("output %s has other bits than the first run", name)
			}
		}
	}
	return n, nil
}

// rate is the runs per second of some callers at once.
func (s *service) rate(ctx context.Context, callers int, d time.Duration) (float64, error) {
	var wg sync.WaitGroup
	counts, errs := make([]int, callers), make([]error, callers)
	t0 := time.Now()
	for i := range callers {
		wg.Go(func() { counts[i], errs[i] = s.call(ctx, d) })
	}
	wg.Wait()
	total := 0
	for i, n := range counts {
		if errs[i] != nil {
			return 0, errs[i]
		}
		total += n
	}
	return float64(total) / time.Since(t0).Seconds(), nil
}

const serviceRounds = 5

// concurrentCallers compares the throughput of 8 callers with that of one, in turns; the goal is that it is no less.
func concurrentCallers(ctx context.Context, s *service, o benchOptions) (float64, string, bool, error) {
	d := time.Duration(o.seconds * 1e9 / serviceRounds / 2)
	var one, eight float64
	for range serviceRounds {
		a, err := s.rate(ctx, 1, d)
		if err != nil {
			return 0, "", false, err
		}
		b, err := s.rate(ctx, 8, d)
		if err != nil {
			return 0, "", false, err
		}
		one, eight = max(one, a), max(eight, b)
	}
	return eight / one, fmt.Sprintf("8 callers %.1f runs/s, one %.1f: %.2f times, expected at least 1", eight, one, eight/one), eight >= one, nil
}

// besideBusyProcess compares a run with one beside a process that keeps one processor busy; the goal is 2.2 times.
func besideBusyProcess(ctx context.Context, s *service, o benchOptions) (float64, string, bool, error) {
	d := time.Duration(o.seconds * 1e9 / serviceRounds / 2)
	var alone, beside float64
	for range serviceRounds {
		a, err := s.rate(ctx, 1, d)
		if err != nil {
			return 0, "", false, err
		}
		busy := exec.CommandContext(ctx, os.Args[0], "bench", "--busy")
		if err := busy.Start(); err != nil {
			return 0, "", false, err
		}
		b, err := s.rate(ctx, 1, d)
		_ = busy.Process.Kill()
		_ = busy.Wait()
		if err != nil {
			return 0, "", false, err
		}
		alone, beside = max(alone, a), max(beside, b)
	}
	ratio := alone / beside
	return ratio, fmt.Sprintf("a run takes %.3f ms, beside a busy process %.3f: %.2f times, expected at most 2.2", 1e3/alone, 1e3/beside, ratio), ratio <= 2.2, nil
}

// keepBusy is the busy process: a processor's worth of additions until it is killed, or its parent is gone.
func keepBusy(ctx context.Context) {
	parent, x := os.Getppid(), 1
	for ctx.Err() == nil && os.Getppid() == parent {
		for range 1 << 24 {
			x = x*3 + 1
		}
	}
	_ = x
}

// idleProgram is the share of a processor that the process uses after runs; the goal is nothing but what the Go runtime does.
func idleProgram(ctx context.Context, s *service, _ benchOptions) (float64, string, bool, error) {
	if _, err := s.call(ctx, 100*time.Millisecond); err != nil {
		return 0, "", false, err
	}
	const wall = time.Second
	before, ok := cpuTime()
	if !ok {
		return 0, "", false, fmt.Errorf("this system does not tell the CPU time of a process")
	}
	time.Sleep(wall)
	after, _ := cpuTime()
	share := float64(after-before) / float64(wall)
	return share, fmt.Sprintf("%v of CPU time in %v, expected less than 1 %%", after-before, wall), share < 0.01, nil
}
