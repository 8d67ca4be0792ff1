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
		{rlx.On("twin:"), "", nil, `rlx: backend: got "twin:", expected NAME or NAME:INDEX`},
		{rlx.On("twin:-1"), "", nil, `rlx: backend: got "twin:-1", expected NAME or NAME:INDEX`},
		{rlx.On("twin:one"), "", nil, `rlx: backend: got "twin:one", expected NAME or NAME:INDEX`},
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

// becoming is a graph whose nodes become what their names say.
func becoming() *rlx.Graph {
	g := rlx.NewGraph("becoming")
	x, z := g.Input("x", rlx.F32, rlx.Shape(2, 2)), g.Input("z", rlx.F32, rlx.Shape(2, 2))
	same := op.Transpose(op.Transpose(x, 1, 0).Named("input 1"), 1, 0).Named("input 2")
	y := op.MatMul(same, op.Transpose(z, 1, 0).Named("view")).Named("product")
	k := op.Exp(op.Neg(g.Constant(f32s([]int{2, 2}, 1, 2, 3, -88.5))).Named("constant 1")).Named("constant 2")
	op.Exp(y).Named("unused")
	g.Output("y", op.RmsNorm(op.Add(y, k).Named("fused"), rlx.Value{}, rlx.Value{}, -1, 1e-5).Named("whole"))
	return g
}

// Plan says of each node without a command what stands for it; a command says what it stands for.
func TestReplaced(t *testing.T) {
	p := compileGraph(t, becoming(), rlx.On("ref"))
	plan, err := p.Plan(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(plan.Commands) != 2 || plan.Commands[0].Node != "product" || plan.Commands[1].Node != "whole" || !slices.Equal(plan.Commands[1].Fused, []string{"fused"}) {
		t.Errorf("commands %+v", plan.Commands)
	}
	got := map[string]rlx.Replaced{}
	for _, r := range plan.Replaced {
		got[r.Node] = r
	}
	want := map[string]rlx.Replaced{}
	for _, r := range []rlx.Replaced{{"input 1", "x", rlx.BecameInput}, {"input 2", "x", rlx.BecameInput}, {"view", "view", rlx.BecameView}, {"fused", "whole", rlx.BecameFused},
		{"constant 1", "", rlx.BecameConstant}, {"constant 2", "", rlx.BecameConstant}} {
		want[r.Node] = r
	}
	if !reflect.DeepEqual(got, want) || len(plan.Replaced) != len(want) {
		t.Errorf("got %+v, expected %+v", plan.Replaced, want)
	}
}

// Errors of a command name the nodes that it stands for, and not what a pass called it.
func TestErrorsOfFusedNodes(t *testing.T) {
	p := compileGraph(t, becoming(), rlx.On("ref"))
	_, err := p.Run(t.Context(), rlx.Feed{"x": f32s([]int{2, 2}, 1, 2, 3, 3e38), "z": f32s([]int{2, 2}, 1, 0, 0, 1)}, rlx.CheckFinite())
	var nf *rlx.NonFiniteError // 3e38 + e^88.5
	if !errors.As(err, &nf) || nf.Node != "whole" || !slices.Equal(nf.Sources, []string{"fused"}) || !strings.Contains(err.Error(), "(from fused)") {
		t.Errorf("got %v", err)
	}

	g := rlx.NewGraph("g")
	x, i := g.Input("x", rlx.F32, rlx.Shape(3)), g.Input("i", rlx.I64, rlx.Shape(2))
	a, b := op.Gather(x, i, 0).Named("a"), op.Gather(x, i, 0).Named("b")
	g.Output("y", op.Add(a, b).Named("sum"))
	p = compileGraph(t, g, rlx.On("ref"))
	_, err = p.Run(t.Context(), rlx.Feed{"x": f32s([]int{3}, 1, 2, 3), "i": rlx.New([]int64{0, 3}, 2)})
	var e *rlx.ExecError
	if !errors.As(err, &e) || e.Node != "a" || e.Op != "Gather" || !slices.Equal(e.Sources, []string{"b"}) || !strings.Contains(err.Error(), "node a (from b): ") {
		t.Errorf("got %v", err)
	}

	// A part that a rule made belongs to the node that it was made for.
	g = rlx.NewGraph("g")
	codes := op.Cast(g.Constant(rlx.New([]int8{1, 2, 3, 4, 5, 6}, 3, 2)), rlx.F32).Named("cast")
	table := op.Mul(codes, g.Constant(rlx.New([]float32{0.5}, 1))).Named("table")
	g.Output("y", op.Gather(table, g.Input("i", rlx.I64, rlx.Shape("n")), 0).Named("lookup"))
	p = compileGraph(t, g, rlx.On("ref"))
	if _, err = p.Run(t.Context(), rlx.Feed{"i": rlx.New([]int64{0, 3}, 2)}); !errors.As(err, &e) || e.Node != "lookup" || e.Op != "Gather" {
		t.Errorf("got %v", err)
	}
}
