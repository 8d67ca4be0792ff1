package service

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// Run serves until ctx ends, and then shuts down so that every request that reached the service is answered:
//
//  1. /readyz says 503, and everything is served as before, for Unready;
//  2. no new connections; every answer closes its connection; idle ones have Drain to bring a last request;
//  3. connections that are still idle are closed; requests have Shutdown to end;
//  4. the batcher and the program are closed.
//
// It returns nil when all of that went well. The address that it listens on is logged as "serving".
func Run(ctx context.Context, cfg Config, log *slog.Logger) error {
	s, err := New(ctx, cfg, log)
	if err != nil {
		return err
	}
	closing := context.WithoutCancel(ctx)
	ln, err := net.Listen("tcp", cfg.Addr)
	if err != nil {
		return errors.Join(err, s.Close(closing))
	}
	conns := newConnections()
	server := &http.Server{Handler: s.Handler(), ConnState: conns.note, ReadHeaderTimeout: 10 * time.Second,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn)}
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()
	log.Info("serving", "addr", ln.Addr().String(), "program", s.prog.String())
	select {
	case err = <-served:
	case <-ctx.Done():
		log.Info("stopping")
		err = s.drain(closing, server, ln, served, conns)
	}
	limit, cancel := context.WithTimeout(closing, cfg.Shutdown)
	defer cancel()
	err = errors.Join(err, s.Close(limit))
	begun, answered := s.metrics.totals()
	log.Info("stopped", "requests", begun, "answered", answered, "error", err)
	return err
}

// drain is phases 1 to 3.
func (s *Service) drain(ctx context.Context, server *http.Server, ln net.Listener, served chan error, conns *connections) error {
	s.unready.Store(true)
	time.Sleep(s.cfg.Unready)
	s.draining.Store(true)
	ln.Close() // Serve ends; connections go on
	if err := <-served; err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	// A Shutdown that meets a connection just as its request arrives closes it unanswered, so they get the time to end by themselves.
	select {
	case <-conns.none():
	case <-time.After(s.cfg.Drain):
	}
	limit, cancel := context.WithTimeout(ctx, s.cfg.Shutdown)
	defer cancel()
	if err := server.Shutdown(limit); err != nil {
		return errors.Join(err, server.Close()) // ends the contexts of requests, and their runs
	}
	return nil
}

// connections counts the open connections of a server.
type connections struct {
	mu    sync.Mutex
	open  int
	empty chan struct{} // once somebody asked, closed when open is 0
}

func newConnections() *connections { return &connections{} }

func (c *connections) note(_ net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew:
		c.open++
	case http.StateClosed, http.StateHijacked:
		if c.open--; c.open == 0 && c.empty != nil {
			close(c.empty)
			c.empty = nil
		}
	}
}

// none is closed when no connection is open. No connection may come any more.
func (c *connections) none() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	ch := make(chan struct{})
	if c.open == 0 {
		close(ch)
	} else {
		c.empty = ch
	}
	return ch
}
