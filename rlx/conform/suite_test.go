package conform

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx/backend"
	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// recorder is a T that keeps what the suite reports.
type recorder struct{ errors, logs *[]string }

func newRecorder() recorder { return recorder{new([]string), new([]string)} }

func (recorder) Helper() {}
func (r recorder) Logf(f string, a ...any) {
	*r.logs = append(*r.logs, fmt.Sprintf(f, a...))
}
func (r recorder) Errorf(f string, a ...any) {
	*r.errors = append(*r.errors, fmt.Sprintf(f, a...))
}
func (r recorder) Skipf(f string, a ...any) { r.Logf(f, a...) }
func (r recorder) Run(_ string, f func(T)) bool {
	f(r)
	return len(*r.errors) == 0
}

// faulty is ref with a fault.
type faulty struct {
	backend.Backend
	name  string
	fault func(p backend.Program, a *backend.RunArgs) error
}

func (b faulty) Name() string { return b.name }

func (b faulty) Open(i int, o backend.Options) (backend.Device, error) {
	d, err := b.Backend.Open(i, o)
	return faultyDevice{d, b.fault}, err
}

type faultyDevice struct {
	backend.Device
	fault func(p backend.Program, a *backend.RunArgs) error
}

func (d faultyDevice) Load(w backend.Weights, words []uint32) (backend.Program, error) {
	p, err := d.Device.Load(w, words)
	return faultyProgram{p, d.fault}, err
}

type faultyProgram struct {
	backend.Program
	fault func(p backend.Program, a *backend.RunArgs) error
}

func (p faultyProgram) Run(a *backend.RunArgs) error { return p.fault(p.Program, a) }

// The suite finds a backend whose last element is wrong, and one whose kernels do not count, in every row that has kernels; a backend
// without kernels is skipped with its reasons, or fails under NoSkips.
func TestSuiteFindsFaults(t *testing.T) {
	ref, err := backend.Lookup("ref")
	if err != nil {
		t.Fatal(err)
	}
	backend.Register(faulty{ref, "ref-wrong-tail", func(p backend.Program, a *backend.RunArgs) error {
		err := p.Run(a)
		for _, o := range a.Outputs {
			if len(o) > 0 {
				o[len(o)-1] ^= 0x35
			}
		}
		return err
	}})
	backend.Register(faulty{ref, "ref-uncounted", func(p backend.Program, a *backend.RunArgs) error {
		a.Counters = nil
		return p.Run(a)
	}})
	backend.Register(capless{faulty{ref, "ref-capless", func(p backend.Program, a *backend.RunArgs) error { return p.Run(a) }}})
	done := map[string]bool{}
	for _, row := range ir.Rows() {
		if row.Has(ir.Leaf) || testing.Short() && done[row.Family] {
			continue
		}
		done[row.Family] = true
		var cases Cases
		r := newRecorder()
		if Run(r, "ref-uncounted", Short(), Share(&cases), Rows(row.Name)); len(*r.errors) == 0 && !row.Has(ir.View) && slices.ContainsFunc(ref.Caps(), func(c backend.Cap) bool { return c.Op == row.Num() }) {
			t.Errorf("%s: kernels that do not count were not found", row.Name)
		}
		r = newRecorder() // last: its results may lie in the memory of the cases
		if Run(r, "ref-wrong-tail", Short(), Share(&cases), Rows(row.Name)); len(*r.errors) == 0 {
			t.Errorf("%s: a wrong last element was not found", row.Name)
		}
	}
	r := newRecorder()
	Run(r, "ref-capless", Short(), Rows("MatMul"))
	if len(*r.errors) > 0 || !strings.Contains(strings.Join(*r.logs, "\n"), "ref-capless does not support MatMul f32: no kernel") {
		t.Errorf("a backend without kernels: got errors %v and logs %v", *r.errors, *r.logs)
	}
	if Run(r, "ref-capless", Short(), Rows("MatMul"), NoSkips()); len(*r.errors) == 0 {
		t.Error("a backend without kernels passes under NoSkips")
	}
}

// Parts with different seeds are different, and together they are the whole.
func TestPart(t *testing.T) {
	count := func(o ...Option) (n int) {
		r := newRecorder()
		Run(r, "ref", append(o, Short(), Rows("Cast"))...)
		if last := (*r.logs)[len(*r.logs)-1]; len(*r.errors) > 0 {
			t.Errorf("%v", *r.errors)
		} else if _, err := fmt.Sscanf(last, "ref: %d cases", &n); err != nil {
			t.Fatalf("%s: %v", last, err)
		}
		return n
	}
	all, sum := count(), 0
	for seed := range uint64(3) {
		part := count(Part(3), Seed(seed))
		if part < all/5 || part > all/2 {
			t.Errorf("a third of %d cases are %d", all, part)
		}
		sum += part
	}
	if sum < all*9/10 || sum > all*11/10 { // the seed draws shapes too
		t.Errorf("three parts of %d cases have %d", all, sum)
	}
}

// capless is a backend whose device has no kernels.
type capless struct{ faulty }

func (b capless) Open(i int, o backend.Options) (backend.Device, error) {
	d, err := b.faulty.Open(i, o)
	return caplessDevice{d}, err
}

type caplessDevice struct{ backend.Device }

func (caplessDevice) Caps() []backend.Cap { return nil }

// An elementwise row needs no generator of its own; any other row without one fails by name.
func TestGenerators(t *testing.T) {
	if generatorOf(&ir.Row{Name: "Toy", Bits: ir.Elementwise, In: []ir.Operand{ir.In("a", ir.Float), ir.In("b", ir.Float)}}) == nil {
		t.Error("an elementwise row without required attributes has no generator")
	}
	if generatorOf(&ir.Row{Name: "Toy"}) != nil {
		t.Error("a row of unknown form has a generator")
	}
	s, r := &suite{}, newRecorder()
	if s.row(r, &ir.Row{Name: "Toy", Family: "norm"}); len(*r.errors) != 1 || !strings.Contains((*r.errors)[0], "Toy has no generator") {
		t.Errorf("a row without a generator: got %v", *r.errors)
	}
	for name := range generators {
		if _, err := ir.RowByName(name); err != nil {
			t.Errorf("the generator of %s has no row", name)
		}
	}
}
