package exec

import (
	"github.com/rlx-ml/rlx-go/rlx/internal/plan"
	"github.com/rlx-ml/rlx-go/rlx/internal/prog"
)

// briefWork is how much work ends, at 20 ns each, within the 50 ms that a cancelled run has: a run of no more need not be told.
const briefWork = 1 << 21

// isBrief says whether the runs of p are over before a cancelled context could matter. Telling a run of its context takes as long as a hundred
// small commands do.
func (p *Program) isBrief() bool {
	if p.native == nil || p.staged || !p.target.Device.Info().Inline {
		return false
	}
	total := float64(0)
	for i := range p.full.Steps {
		if total += work(&p.full.Steps[i]); total > briefWork {
			return false
		}
	}
	return true
}

// work is no less than the operations of a step: of each element of its results with each element of its operands, once for each command of
// the body that works on single elements. What runs whole programs has no bound.
func work(s *plan.Step) float64 {
	n := float64(1)
	for _, b := range s.Command.Bodies {
		if s.Command.Row.Family != "region" {
			return briefWork + 1
		}
		n += float64(len(b.Commands))
	}
	return n * elements(s.Command.Out) * elements(s.Command.In)
}

func elements(list []prog.Operand) float64 {
	n := float64(1)
	for _, o := range list {
		if !o.Absent {
			n += float64(o.Count())
		}
	}
	return n
}
