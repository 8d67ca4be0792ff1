package conform

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/backend"
)

// counted counts its open devices.
type counted struct {
	backend.Backend
	open *atomic.Int64
}

func (counted) Name() string { return "ref-counted" }

func (b counted) Open(i int, o backend.Options) (backend.Device, error) {
	d, err := b.Backend.Open(i, o)
	b.open.Add(1)
	return countedDevice{d, b.open}, err
}

type countedDevice struct {
	backend.Device
	open *atomic.Int64
}

func (d countedDevice) Close() error { d.open.Add(-1); return d.Device.Close() }

// A device of the backend under test stays open from the first case to the last.
func TestDeviceIsHeld(t *testing.T) {
	ref, err := backend.Lookup("ref")
	if err != nil {
		t.Fatal(err)
	}
	open := new(atomic.Int64)
	backend.Register(counted{ref, open})
	const line = `{"op": "Input", "name": "x", "attrs": {"name": "x", "dtype": "f32", "shape": [1]}, "inputs": [{"dtype": "f32", "shape": [1], "data": [2]}], "outputs": [{"dtype": "f32", "shape": [1], "data": [2]}]}` + "\n"
	var r Report
	between := 0
	err = r.run(t.Context(), "x", strings.NewReader(line+line), func() {
		if open.Load() == 1 {
			between++
		}
	}, []rlx.Option{rlx.On("ref-counted")})
	if err != nil || r.Passed != 2 || between != 2 || open.Load() != 0 {
		t.Errorf("%v, %+v: a device was open after %d of 2 cases, %d are at the end", err, r, between, open.Load())
	}
	Run(Wrap(t), "ref-counted", Short(), Rows("Copy"))
	release := Hold(t.Context(), rlx.On("ref-counted"))
	if open.Load() != 1 {
		t.Errorf("%d devices are held", open.Load())
	}
	if release(); open.Load() != 0 {
		t.Errorf("%d devices are open", open.Load())
	}
	Hold(t.Context(), rlx.On("no such backend"))() // the cases say why
}
