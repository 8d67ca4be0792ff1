package conform

import (
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/backend"
	"github.com/rlx-ml/rlx-go/rlx/internal/ref"
	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// backends are those of this build and this machine, and the masks.
func backends() []string {
	RegisterMasks()
	names := append(Masks[:len(Masks):len(Masks)], Backends()...)
	if slices.Contains(names, "cpu") { // a device with memory of its own whose staged commands go to the cpu backend
		backend.Register(ref.New("ref-with-cpu", ref.Mask{Keep: func(r *ir.Row) bool { return !everySecond(r) }, Stage: true, Private: true, Host: "cpu"}))
		names = append(names, "ref-with-cpu")
	}
	return names
}

// poisonable adds poisoned forms of the backends that have one: those that stage nothing.
func poisonable(t *testing.T) []string {
	names := backends()
	for _, b := range Backends() {
		if stages(b) {
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
			runRows(t, b)
		})
	}
}

// A Vulkan device is watched by its validation layers in all of these tests: any message of theirs is an error of the call behind it.
func TestVulkanIsValidated(t *testing.T) {
	if !slices.Contains(Backends(), "vulkan") {
		return
	}
	x := ir.NewGraph("")
	x.Output("y", x.Constant(ir.Scalar(float32(1))))
	p, err := rlx.Compile(t.Context(), x, rlx.On("vulkan"))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if !strings.Contains(p.Device().ISA, "validated") {
		t.Skip("vulkan: not validated: the validation layers are not installed")
	}
}

// shared are the cases of rows: the same on every backend.
var shared Cases

func runRows(t *testing.T, b string) {
	opts := []Option{NoSkips(), Seed(*firstSeed)}
	if testing.Short() || !Slow(b) { // else no other backend runs these
		opts = append(opts, Share(&shared))
	}
	if testing.Short() || Slow(b) {
		opts = append(opts, Short())
	}
	if testing.Short() && Slow(b) {
		opts = append(opts, Part(5))
	}
	Run(Wrap(t), b, opts...)
}

// The twins of the cpu kernels for instruction sets below the best one of this machine.
func TestRowsOnInstructionSets(t *testing.T) {
	if !slices.Contains(backends(), "cpu") || testing.Short() {
		return
	}
	x := ir.NewGraph("")
	x.Output("y", x.Constant(ir.Scalar(float32(1))))
	p, err := rlx.Compile(t.Context(), x, rlx.On("cpu"))
	if err != nil {
		t.Fatal(err)
	}
	best := p.Device().ISA
	p.Close()
	for _, isa := range map[string][]string{"amd64": {"generic", "avx2", "avx512"}, "arm64": {"generic", "neon"}}[runtime.GOARCH] {
		t.Run(isa, func(t *testing.T) {
			t.Setenv("RLX_ISA", isa)
			p, err := rlx.Compile(t.Context(), x, rlx.On("cpu"))
			if err != nil {
				t.Skipf("%s: not executed: %v", isa, err)
			}
			defer p.Close()
			switch got := p.Device().ISA; {
			case !strings.HasPrefix(got, isa):
				t.Fatalf("RLX_ISA=%s gives %q", isa, got)
			case got != best: // TestRows runs the best one
				runRows(t, "cpu")
			}
		})
	}
}
