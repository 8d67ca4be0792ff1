package exec

import (
	"errors"
	"fmt"

	"github.com/rlx-ml/rlx-go/rlx/backend"
	"github.com/rlx-ml/rlx-go/rlx/internal/plan"
	"github.com/rlx-ml/rlx-go/rlx/internal/prog"
	"github.com/rlx-ml/rlx-go/rlx/internal/ref"
	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// checkPlan holds a plan against its graph, with package ref for what its views mean.
func checkPlan(p *plan.Plan) ([][]plan.Range, error) {
	return plan.Check(p, func(n *ir.Node, x *ir.Tensor) (*ir.Tensor, error) {
		t := n.Types[0]
		t.DType = x.DType()
		out, err := ref.Apply(n.Row, n.Attrs, []*ir.Tensor{x}, []ir.Type{t})
		if err != nil {
			return nil, err
		}
		return out[0], nil
	})
}

// checkWords holds words against the program that they were made of.
func checkWords(p *prog.Program, words []uint32) error {
	q, err := prog.Decode(words)
	if err != nil {
		return fmt.Errorf("words: %w", err)
	}
	if got, want := q.String(), p.String(); got != want {
		return fmt.Errorf("words: they say\n%sexpected\n%s", got, want)
	}
	return nil
}

// Poisoned runs the legal graph g once on inputs, in the order of g, as the planner's check mode does: the plan is held against the graph,
// then its commands run one by one, in an arena full of 0xFF, NaN in every float dtype, where each value becomes 0xFF again after the last
// command that reads it. A command that reads what is not there, or beyond an operand, shows in the outputs. Staged commands are not told
// apart: the device must have all rows.
func Poisoned(g *ir.Graph, t *Target, inputs [][]byte, seed uint64) (out []*ir.Tensor, err error) {
	consts := plan.NewConstants(g)
	pl, err := plan.Build(g, t.Support, consts)
	if err != nil {
		return nil, err
	}
	freed, err := checkPlan(pl)
	if err != nil {
		return nil, err
	}
	whole := pl.Program
	for _, s := range pl.Steps { // a run is all of the commands between two staged ones
		if s.Command.Staged {
			return nil, fmt.Errorf("%s is staged", s.Node)
		}
		whole.Commands = append(whole.Commands, s.Command, plan.Nothing())
	}
	words, err := prog.Encode(&whole)
	if err != nil {
		return nil, err
	}
	w, err := t.Device.Weights(nil, bytesOf(pl.Consts))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	p, err := t.Device.Load(w, words)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	arena, err := p.NewArena()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, arena.Close()) }()
	args := backend.RunArgs{Count: 1, Inputs: inputs, Arena: arena, Seed: seed}
	for _, typ := range pl.Program.Outputs {
		y, err := ir.Zeros(typ.DType, typ.Dims...)
		if err != nil {
			return nil, err
		}
		out, args.Outputs = append(out, y), append(args.Outputs, y.Bytes())
	}
	return out, runPoisoned(p, &args, freed)
}

func runPoisoned(p backend.Program, args *backend.RunArgs, freed [][]plan.Range) error {
	mem := args.Arena.Bytes()
	for _, m := range append([][]byte{mem}, args.Outputs...) {
		poison(m)
	}
	for i, ranges := range freed {
		args.First = 2 * i
		if err := p.Run(args); err != nil {
			return err
		}
		for _, r := range ranges {
			poison(mem[r.Lo:r.Hi])
		}
	}
	return nil
}

func poison(b []byte) {
	for i := range b {
		b[i] = 0xFF
	}
}
