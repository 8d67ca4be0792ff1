package rlx

import (
	"cmp"
	"slices"

	"github.com/rlx-ml/rlx-go/rlx/internal/exec"
)

// WithProfile fills p with what the run spent in each command and in each transfer. A run without it measures nothing.
func WithProfile(p *Profile) RunOption { return func(c *runConfig) { c.profile = p } }

// Profile is where the time of one run went. Times are nanoseconds of one clock. WriteTrace shows it in a browser, ByOp sums it up.
type Profile struct {
	Program    string // as Program.String gives it
	Start, End uint64 // of the run, once its shapes were compiled
	Steps      []ProfileStep
	Transfers  []ProfileTransfer
}

// ProfileStep is one command: what it is, and from when to when it ran.
type ProfileStep struct {
	Command
	Start, End uint64
	Native     uint32 // times that a native kernel ran
}

// ProfileTransfer is what went between the device and the host before a segment. It lasts from the end of the segment before to the start of
// this one: the copies, and the time that handing over takes.
type ProfileTransfer struct {
	Segment    int   // index in Program.Segments
	Down, Up   int64 // bytes that were copied: to the host, to the device
	Start, End uint64
}

// fill describes a run that began at start and has just ended.
func (pr *Profile) fill(p *Program, e *exec.Program, r *exec.Runner, start uint64) error {
	args := r.Args()
	pr.End = exec.Clock()
	pl, err := e.Plan()
	if err != nil {
		return err
	}
	pr.Program, pr.Start, pr.Steps, pr.Transfers = p.String(), start, pr.Steps[:0], pr.Transfers[:0]
	for i, c := range commands(e, pl) {
		pr.Steps = append(pr.Steps, ProfileStep{Command: c, Start: args.Profile[2*i], End: args.Profile[2*i+1], Native: args.Counters[i]})
	}
	if !r.Carries() {
		return nil
	}
	for i, s := range segments(e, pl, true) {
		if s.Down+s.Up == 0 {
			continue
		}
		first := e.Segments[i].First
		t := ProfileTransfer{Segment: i, Down: s.Down, Up: s.Up, Start: start, End: pr.Steps[first].Start}
		if first > 0 {
			t.Start = min(pr.Steps[first-1].End, t.End)
		}
		pr.Transfers = append(pr.Transfers, t)
	}
	return nil
}

// ProfileOp is what the commands of one op took together.
type ProfileOp struct {
	Op       string // Transfer for what went between device and host
	Commands int
	Nanos    uint64
	Bytes    int64
}

// ByOp sums the steps by the op that ran, and the transfers, the most expensive first.
func (pr *Profile) ByOp() []ProfileOp {
	var list []ProfileOp
	add := func(op string, nanos uint64, bytes int64) {
		i := slices.IndexFunc(list, func(o ProfileOp) bool { return o.Op == op })
		if i < 0 {
			i = len(list)
			list = append(list, ProfileOp{Op: op})
		}
		list[i].Commands++
		list[i].Nanos += nanos
		list[i].Bytes += bytes
	}
	for _, s := range pr.Steps {
		add(s.Op, s.End-s.Start, s.Bytes)
	}
	for _, t := range pr.Transfers {
		add("Transfer", t.End-t.Start, t.Down+t.Up)
	}
	slices.SortStableFunc(list, func(a, b ProfileOp) int { return cmp.Compare(b.Nanos, a.Nanos) })
	return list
}
