package conform

import (
	"github.com/rlx-ml/rlx-go/rlx/backend"
)

// Poisoned registers a backend that is the one called name, but for what memory holds before each run: every byte of the arena and of the
// outputs is 0xFF, which is NaN in every float dtype. A command that reads what none has written, or that leaves a part of its result
// unwritten, shows in the results. It returns the new backend's name, under which nothing is staged on the host: values would have to live
// in the arena from one stretch of a run to the next.
func Poisoned(name string) (string, error) {
	b, err := backend.Lookup(name)
	if err != nil {
		return "", err
	}
	p := poisoned{b, name + "-poisoned"}
	backend.Register(p)
	return p.name, nil
}

type poisoned struct {
	backend.Backend
	name string
}

func (b poisoned) Name() string { return b.name }

func (b poisoned) Open(i int, o backend.Options) (backend.Device, error) {
	d, err := b.Backend.Open(i, o)
	if err != nil {
		return nil, err
	}
	return poisonedDevice{d}, nil
}

type poisonedDevice struct{ backend.Device }

func (d poisonedDevice) Load(w backend.Weights, words []uint32) (backend.Program, error) {
	p, err := d.Device.Load(w, words)
	if err != nil {
		return nil, err
	}
	return poisonedProgram{p}, nil
}

type poisonedProgram struct{ backend.Program }

func (p poisonedProgram) Run(a *backend.RunArgs) error {
	memory := a.Outputs
	if a.Arena != nil {
		memory = append(memory[:len(memory):len(memory)], a.Arena.Bytes())
	}
	for _, m := range memory {
		for i := range m {
			m[i] = 0xFF
		}
	}
	return p.Program.Run(a)
}
