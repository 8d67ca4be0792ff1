package rlx

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// traceEvent is one event of the Trace Event Format. Times are microseconds.
type traceEvent struct {
	Name  string         `json:"name"`
	Cat   string         `json:"cat,omitempty"`
	Phase string         `json:"ph"`
	At    float64        `json:"ts"`
	Took  *float64       `json:"dur,omitempty"`
	PID   int            `json:"pid"`
	TID   int            `json:"tid"`
	Args  map[string]any `json:"args,omitempty"`
}

// tracer collects events; tracks get their numbers in the order in which they occur.
type tracer struct {
	zero   uint64
	events []traceEvent
	tracks []string
}

// WriteTrace writes the profile as a Chrome trace, which chrome://tracing and ui.perfetto.dev show: the run and its segments, one track for
// each backend with one event for each command (category "command", named after its node), and one for transfers. Times begin with the run.
func (pr *Profile) WriteTrace(w io.Writer) error {
	t := &tracer{zero: pr.Start}
	t.add("run", "run", pr.Program, pr.Start, pr.End, map[string]any{"commands": len(pr.Steps)})
	pr.traceSegments(t)
	for i := range pr.Steps {
		s := &pr.Steps[i]
		t.add(s.Backend, "command", s.Node, s.Start, s.End, map[string]any{
			"op": s.Op, "part of": s.Kind, "backend": s.Backend, "place": s.Place, "native kernel": s.Native > 0, "dtype": s.dtype(),
			"inputs": typesText(s.In), "outputs": typesText(s.Out), "bytes": s.Bytes, "command": i, "segment": s.Segment,
		})
	}
	for _, x := range pr.Transfers {
		t.add("transfers", "transfer", "transfer", x.Start, x.End, map[string]any{"to host": x.Down, "to device": x.Up, "segment": x.Segment})
	}
	t.meta("process_name", 0, pr.Program)
	for i, name := range t.tracks {
		t.meta("thread_name", i+1, name)
	}
	return json.NewEncoder(w).Encode(map[string]any{"traceEvents": t.events, "displayTimeUnit": "ns"})
}

// traceSegments adds an event for each stretch of commands on one side.
func (pr *Profile) traceSegments(t *tracer) {
	for i := 0; i < len(pr.Steps); {
		first, bytes := &pr.Steps[i], int64(0)
		end := i
		for end < len(pr.Steps) && pr.Steps[end].Segment == first.Segment {
			bytes += pr.Steps[end].Bytes
			end++
		}
		side := "native"
		if first.Place == "host" {
			side = "host"
		}
		t.add("segments", "segment", fmt.Sprintf("segment %d: %s", first.Segment, side), first.Start, pr.Steps[end-1].End,
			map[string]any{"commands": end - i, "bytes": bytes})
		i = end
	}
}

func (t *tracer) add(track, cat, name string, start, end uint64, args map[string]any) {
	tid := 0
	for i, known := range t.tracks {
		if known == track {
			tid = i + 1
		}
	}
	if tid == 0 {
		t.tracks = append(t.tracks, track)
		tid = len(t.tracks)
	}
	took := float64(end-start) / 1e3
	t.events = append(t.events, traceEvent{Name: name, Cat: cat, Phase: "X", At: float64(start-t.zero) / 1e3, Took: &took, PID: 1, TID: tid, Args: args})
}

// meta names the process, or a track.
func (t *tracer) meta(what string, tid int, name string) {
	t.events = append(t.events, traceEvent{Name: what, Phase: "M", PID: 1, TID: tid, Args: map[string]any{"name": name}})
}

func typesText(list []ir.Type) string {
	text := make([]string, len(list))
	for i, t := range list {
		text[i] = t.String()
	}
	return strings.Join(text, ", ")
}
