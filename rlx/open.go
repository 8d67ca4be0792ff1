package rlx

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/rlx-ml/rlx-go/rlx/backend"
	"github.com/rlx-ml/rlx-go/rlx/internal/exec"
	"github.com/rlx-ml/rlx-go/rlx/internal/pass"
	"github.com/rlx-ml/rlx-go/rlx/internal/ref"
	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// Lookup finds the backend of a text that On takes, and the index of its device: "cpu", "vulkan:1". It says why the backend cannot be
// used here; whether the device answers shows when it is opened.
func Lookup(device string) (backend.Backend, int, error) {
	name, text, indexed := strings.Cut(device, ":")
	index := 0
	if indexed {
		n, err := strconv.ParseUint(text, 10, 31)
		if err != nil {
			return nil, 0, &OptionError{"backend", device, "NAME or NAME:INDEX with an index from 0"}
		}
		index = int(n)
	}
	b, err := backend.Lookup(name)
	if err == nil {
		err = b.Check()
	}
	return b, index, err
}

// open returns the first device of the list that works here, and why those before it do not. Only a backend or device that this build or
// this machine lacks is passed over; one that is there and broken is an error.
func open(cfg *config) (*exec.Target, []error, error) {
	var why []error
	for _, name := range cfg.backends {
		t, err := openOne(name, cfg)
		if err == nil {
			return t, why, nil
		}
		if _, ok := err.(*OptionError); ok { // says whose it is
			return nil, nil, err
		}
		if !absent(err) {
			return nil, nil, fmt.Errorf("rlx: %w", err)
		}
		why = append(why, err)
	}
	if len(why) == 0 {
		return nil, nil, &OptionError{"Prefer", "", "the name of a backend"}
	}
	return nil, nil, fmt.Errorf("rlx: %w", errors.Join(why...))
}

func openOne(name string, cfg *config) (*exec.Target, error) {
	t, err := openDevice(name, cfg)
	if err != nil {
		return nil, err
	}
	if p, ok := t.Backend.(interface{ PoisonHost() bool }); ok {
		t.Poison = p.PoisonHost()
	}
	if _, ok := t.Backend.(Stager); !ok {
		return t, nil
	}
	host := "cpu"
	if h, ok := t.Backend.(interface{ HostBackend() string }); ok {
		host = h.HostBackend()
	}
	if r, _, err := Lookup("ref"); err == nil {
		t.Support.HostBodies(pass.NewSupport("ref", r.Caps(), nil))
	}
	if host == "ref" {
		return t, nil
	}
	h, err := openDevice(host, cfg)
	switch {
	case err == nil:
		t.Host = exec.NewHost(h.Device, h.Support)
		t.Support.HostBodies(h.Support)
	case !absent(err):
		return nil, errors.Join(fmt.Errorf("%s: its host backend: %w", name, err), t.Close())
	}
	return t, nil
}

func openDevice(name string, cfg *config) (*exec.Target, error) {
	b, index, err := Lookup(name)
	if err != nil {
		return nil, err
	}
	d, err := b.Open(index, backend.Options{Threads: cfg.threads.n, ISA: cfg.isa, Lean: cfg.memory != nil})
	if err != nil {
		return nil, err
	}
	s := pass.NewSupport(b.Name(), d.Caps(), hostRows(b))
	s.MaxBytes = d.Info().MaxTensorBytes
	if c, ok := b.(interface{ ComposeFirst() bool }); ok {
		s.ComposeFirst = c.ComposeFirst()
	}
	t := &exec.Target{Backend: b, Device: d, Support: s, Check: cfg.verify}
	cfg.cap(t)
	return t, nil
}

func absent(err error) bool {
	var be *backend.Error
	return errors.Is(err, backend.ErrNotCompiledIn) || errors.As(err, &be) && be.Code == backend.NoDevice
}

// Stager is implemented by backends that stage rows on the host. Their staged commands run on the cpu backend where it is linked and has
// kernels for them, else in package ref; a method HostBackend() string names another backend than cpu.
type Stager interface{ StageOnHost(*ir.Row) bool }

func hostRows(b backend.Backend) func(*ir.Row) bool {
	s, ok := b.(Stager)
	if !ok {
		return nil
	}
	return func(r *ir.Row) bool { return s.StageOnHost(r) && ref.Has(r) } // the interpreter is the host of last resort
}
