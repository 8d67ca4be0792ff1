package conform

import (
	"slices"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx/backend"
)

// backends are those of this build that run on the CPU.
func backends() []string {
	RegisterMasks()
	names := append([]string{"ref"}, Masks...)
	if b, err := backend.Lookup("cpu"); err == nil && b.Check() == nil {
		names = append(names, "cpu")
	}
	return names
}

// poisonable adds poisoned forms of the backends that have one.
func poisonable(t *testing.T) []string {
	names := backends()
	for _, b := range []string{"ref", "cpu"} {
		if !slices.Contains(names, b) {
			continue
		}
		p, err := Poisoned(b)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, p)
	}
	return names
}

// Every row on every backend, against ref. The cpu backend supports every row.
func TestRows(t *testing.T) {
	for _, b := range backends() {
		t.Run(b, func(t *testing.T) {
			opts := []Option{NoSkips(), Seed(*firstSeed)}
			if testing.Short() {
				opts = append(opts, Short())
			}
			Run(Wrap(t), b, opts...)
		})
	}
}
