package rlx_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/conform"
)

// event is what the Trace Event Format says of an event.
type event struct {
	Name, Cat, Ph string
	Ts, Dur       float64
	Pid, Tid      int
	Args          map[string]any
}

// trace reads back what WriteTrace wrote.
func trace(t *testing.T, p *rlx.Profile) []event {
	t.Helper()
	var b bytes.Buffer
	if err := p.WriteTrace(&b); err != nil {
		t.Fatal(err)
	}
	var file struct{ TraceEvents []event }
	if err := json.Unmarshal(b.Bytes(), &file); err != nil {
		t.Fatalf("%v in %s", err, b.Bytes())
	}
	return file.TraceEvents
}

// A trace has one event for each command, in order and inside the run, on a track for each backend, and one for each transfer.
func TestTrace(t *testing.T) {
	conform.RegisterMasks()
	const bytes = 8 * 8 * 4
	for name, want := range map[string]struct {
		tracks    map[string]int // commands by track
		transfers int
	}{
		"ref-device": {map[string]int{"ref-device": 2, "ref": 1}, 2},
		"ref-host":   {map[string]int{"ref": 3}, 0},
		"ref":        {map[string]int{"ref": 3}, 0},
	} {
		p, err := rlx.Compile(t.Context(), sandwich(), rlx.On(name))
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		var prof rlx.Profile
		for range 2 { // the second run replaces the first
			if _, err := p.Run(t.Context(), rlx.Feed{"x": rlx.New(make([]float32, 64), 8, 8)}, rlx.WithProfile(&prof)); err != nil {
				t.Fatal(err)
			}
		}
		events, tracks := trace(t, &prof), map[int]string{}
		for _, e := range events {
			if e.Ph == "M" && e.Name == "thread_name" {
				tracks[e.Tid] = e.Args["name"].(string)
			}
		}
		run, last, transfers := events[0], 0.0, 0
		commands := map[string]int{}
		var nodes []string
		for _, e := range events[1:] {
			if e.Ph == "X" && (e.Ts < 0 || e.Dur < 0 || e.Ts+e.Dur > run.Dur+1e-3) {
				t.Errorf("%s: %+v is outside the run of %g us", name, e, run.Dur)
			}
			switch e.Cat {
			case "command":
				if e.Ts < last {
					t.Errorf("%s: %s begins at %g, the one before ended at %g", name, e.Name, e.Ts, last)
				}
				last = e.Ts + e.Dur - 1e-3 // times are rounded to nanoseconds
				commands[tracks[e.Tid]]++
				nodes = append(nodes, e.Name)
				if e.Args["outputs"] != "f32[8, 8]" || e.Args["dtype"] != "f32" {
					t.Errorf("%s: %+v", name, e)
				}
			case "transfer":
				transfers++
				if e.Args["to host"].(float64)+e.Args["to device"].(float64) != bytes {
					t.Errorf("%s: %+v, expected %d bytes", name, e, bytes)
				}
			}
		}
		if run.Cat != "run" || !reflect.DeepEqual(commands, want.tracks) || transfers != want.transfers || !reflect.DeepEqual(nodes, []string{"a", "t", "b"}) {
			t.Errorf("%s: got commands %v of %v and %d transfers, expected %+v", name, commands, nodes, transfers, want)
		}
	}
}

func TestProfileByOp(t *testing.T) {
	step := func(op string, bytes int64, start, end uint64) rlx.ProfileStep {
		return rlx.ProfileStep{Command: rlx.Command{Op: op, Bytes: bytes}, Start: start, End: end}
	}
	p := rlx.Profile{Start: 5, End: 100,
		Steps:     []rlx.ProfileStep{step("Add", 8, 10, 12), step("MatMul", 64, 12, 40), step("Add", 16, 60, 65)},
		Transfers: []rlx.ProfileTransfer{{Segment: 1, Down: 3, Up: 4, Start: 40, End: 60}}}
	want := []rlx.ProfileOp{{"MatMul", 1, 28, 64}, {"Transfer", 1, 20, 7}, {"Add", 2, 7, 24}}
	if got := p.ByOp(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, expected %+v", got, want)
	}
}

// A plan says what a graph becomes for the shapes of a feed: three commands, whose operands are counted by hand.
func TestPlan(t *testing.T) {
	p, err := rlx.Compile(t.Context(), sandwich(), rlx.On("ref"))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	plan, err := p.Plan(t.Context(), rlx.Feed{"x": rlx.New(make([]float32, 64), 8, 8)})
	if err != nil {
		t.Fatal(err)
	}
	const matrix = 8 * 8 * 4
	var bytes []int64
	for _, c := range plan.Commands {
		bytes = append(bytes, c.Bytes)
	}
	if want := []int64{3 * matrix, 2 * matrix, 3 * matrix}; !reflect.DeepEqual(bytes, want) {
		t.Errorf("commands touch %v bytes, expected %v", bytes, want)
	}
	// x and y are bound memory; tanh works in place of the first product.
	if m := plan.Memory; m.Inputs != matrix || m.Outputs != matrix || m.Arena != matrix || m.ArenaBound != matrix || m.Weights != 0 || m.Folded != 0 {
		t.Errorf("got %+v", m)
	}
	if _, err := p.Plan(t.Context(), rlx.Feed{}); err == nil {
		t.Error("a feed that lacks x has a plan")
	}
}
