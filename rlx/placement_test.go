package rlx_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/backend"
	"github.com/rlx-ml/rlx-go/rlx/conform"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// sandwich is matmul, tanh, matmul: ref-device runs the products, and has the tanh staged.
func sandwich() *rlx.Graph {
	g := rlx.NewGraph("sandwich")
	x := g.Input("x", rlx.F32, rlx.Shape(8, 8))
	a := op.MatMul(x, x).Named("a")
	g.Output("y", op.MatMul(op.Tanh(a).Named("t"), x).Named("b"))
	return g
}

// What crosses between a device and the host is charged to the node that reads it, and segments count it before they run.
func TestPlacementOfStagedNodes(t *testing.T) {
	conform.RegisterMasks()
	const bytes = 8 * 8 * 4
	type T = rlx.Placed
	type S = rlx.Segment
	for name, want := range map[string]struct {
		placed   []rlx.Placed
		segments []rlx.Segment
	}{
		"ref-device": {[]T{{"a", "MatMul", "ref-device", "native", 1, 0, 0}, {"t", "Activation", "ref", "host", 1, 1, bytes}, {"b", "MatMul", "ref-device", "native", 1, 1, bytes}},
			[]S{{"ref-device", "native", []string{"a"}, 0, 0}, {"ref", "host", []string{"t"}, bytes, 0}, {"ref-device", "native", []string{"b"}, 0, bytes}}},
		"ref-host": {[]T{{"a", "MatMul", "ref", "host", 1, 0, 0}, {"t", "Activation", "ref", "host", 1, 0, 0}, {"b", "MatMul", "ref", "host", 1, 0, 0}},
			[]S{{"ref", "host", []string{"a", "t", "b"}, 0, 0}}},
		"ref": {[]T{{"a", "MatMul", "ref", "native", 1, 0, 0}, {"t", "Activation", "ref", "native", 1, 0, 0}, {"b", "MatMul", "ref", "native", 1, 0, 0}},
			[]S{{"ref", "native", []string{"a", "t", "b"}, 0, 0}}},
	} {
		p, err := rlx.Compile(t.Context(), sandwich(), rlx.On(name))
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		placed, err := p.Placement()
		if err != nil || !reflect.DeepEqual(placed, want.placed) {
			t.Errorf("%s: placed %+v (%v), expected %+v", name, placed, err, want.placed)
		}
		segments, err := p.Segments()
		if err != nil || !reflect.DeepEqual(segments, want.segments) {
			t.Errorf("%s: segments %+v (%v), expected %+v", name, segments, err, want.segments)
		}
		var prof rlx.Profile
		if _, err := p.Run(t.Context(), rlx.Feed{"x": rlx.New(make([]float32, 64), 8, 8)}, rlx.WithProfile(&prof)); err != nil {
			t.Fatal(err)
		}
		for i, s := range prof.Steps { // in the order of Placement, on one clock
			if s.Node != placed[i].Node || (s.Native > 0) != (s.Place == "native") || i > 0 && s.Start < prof.Steps[i-1].End {
				t.Errorf("%s: step %d: %+v after %+v", name, i, s, prof.Steps[max(i-1, 0)])
			}
		}
	}
}

// twin is ref with two devices, or with none.
type twin struct {
	backend.Backend
	name    string
	devices int
	why     error // of Devices
	opened  *[]int
}

func (b twin) Name() string { return b.name }

func (b twin) Devices() ([]backend.DeviceInfo, error) {
	return make([]backend.DeviceInfo, b.devices), b.why
}

func (b twin) Open(i int, o backend.Options) (backend.Device, error) {
	*b.opened = append(*b.opened, i)
	if i >= b.devices {
		return nil, &backend.Error{Backend: b.name, Code: backend.NoDevice, Command: -1, Text: fmt.Sprintf("device %d, there are %d", i, b.devices)}
	}
	return b.Backend.Open(0, o)
}

func registerTwin(t *testing.T, name string, devices int, why error) *[]int {
	t.Helper()
	ref, err := backend.Lookup("ref")
	if err != nil {
		t.Fatal(err)
	}
	opened := new([]int)
	backend.Register(twin{ref, name, devices, why, opened})
	return opened
}

// NAME:INDEX chooses a device; a text that is none is an error of its own, and a device that is not there is passed over by Prefer.
func TestDeviceIndex(t *testing.T) {
	opened := registerTwin(t, "twin", 2, nil)
	for _, tc := range []struct {
		option  rlx.Option
		backend string
		opened  []int
		err     string
	}{
		{rlx.On("twin"), "twin", []int{0}, ""},
		{rlx.On("twin:0"), "twin", []int{0}, ""},
		{rlx.On("twin:1"), "twin", []int{1}, ""},
		{rlx.On("twin:2"), "", []int{2}, "twin: no device: device 2, there are 2"},
		{rlx.Prefer("twin:5", "twin:1", "ref"), "twin", []int{5, 1}, ""},
		{rlx.Prefer("twin:9", "ref"), "ref", []int{9}, ""},
		{rlx.On("twin:"), "", nil, `"twin:": expected NAME or NAME:INDEX`},
		{rlx.On("twin:-1"), "", nil, `"twin:-1": expected NAME or NAME:INDEX`},
		{rlx.On("twin:one"), "", nil, `"twin:one": expected NAME or NAME:INDEX`},
		{rlx.On("twin:99999999999"), "", nil, "expected NAME or NAME:INDEX"},
		{rlx.Prefer("twin:x", "ref"), "", nil, "expected NAME or NAME:INDEX"}, // a mistake, not an absence
		{rlx.On("twins:1"), "", nil, "not compiled in"},
		{rlx.On(""), "", nil, "not compiled in"},
	} {
		*opened = nil
		p, err := rlx.Compile(t.Context(), sandwich(), tc.option)
		if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) || !slices.Equal(*opened, tc.opened) {
			t.Errorf("%+v: got error %v, opened %v", tc, err, *opened)
		}
		if err == nil {
			if p.Backend() != tc.backend {
				t.Errorf("%+v: runs on %s", tc, p.Backend())
			}
			p.Close()
		}
	}
}

// A backend without a device says why, where there is a reason, and Prefer passes over it.
func TestNoDevice(t *testing.T) {
	registerTwin(t, "no-device", 0, nil)
	registerTwin(t, "no-loader", 0, &backend.Error{Backend: "no-loader", Code: backend.NoDevice, Command: -1, Text: "libloader.so: not found"})
	listed := 0
	for _, b := range rlx.Backends() {
		if !strings.HasPrefix(b.Name, "no-") {
			continue
		}
		listed++
		var be *backend.Error
		switch b.Name {
		case "no-device":
			if b.Err != nil || len(b.Devices) != 0 {
				t.Errorf("got %+v, expected no error and no device", b)
			}
		case "no-loader":
			if !errors.As(b.Err, &be) || be.Code != backend.NoDevice || !strings.Contains(b.Err.Error(), "libloader.so") {
				t.Errorf("got %+v, expected the reason", b)
			}
		}
	}
	if listed != 2 {
		t.Errorf("%d of 2 backends without a device are listed", listed)
	}
	p, err := rlx.Compile(t.Context(), sandwich(), rlx.Prefer("no-loader", "no-device", "ref"))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if f := p.Fallback(); p.Backend() != "ref" || f == nil || !strings.Contains(f.Error(), "no-loader") || !strings.Contains(f.Error(), "no-device") {
		t.Errorf("on %s, fallback %v", p.Backend(), f)
	}
}
