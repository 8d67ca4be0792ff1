package rlx_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// exactGraph computes only what IEEE 754 or integer rules fix to the bit.
func exactGraph() *rlx.Graph {
	g := rlx.NewGraph("exact")
	x, y := g.Input("x", rlx.F32, rlx.Shape("m", "n")), g.Input("y", rlx.F32, rlx.Shape("m", "n"))
	i := g.Input("i", rlx.I32, rlx.Shape("m", "n"))
	out := func(name string, v rlx.Value) { g.Output(name, v) }
	out("add", op.Add(x, y))
	out("sub", op.Sub(x, op.Transpose(op.Transpose(y, 1, 0), 1, 0)))
	out("mul", op.Mul(x, y))
	out("div", op.Div(x, y))
	out("sqrt", op.Sqrt(op.Abs(x)))
	out("max", op.Max(x, y))
	out("floor", op.Floor(op.Mul(x, 3)))
	out("round", op.Round(op.Mul(y, 2)))
	out("where", op.Where(op.Lt(x, y), x, op.Neg(y)))
	out("f16", op.Cast(op.Cast(x, rlx.F16), rlx.F32))
	out("int", op.Cast(op.Mul(x, 100), rlx.I32))
	out("intdiv", op.Div(i, op.BitOr(op.Shr(i, 3), 1)))
	out("top", op.ReduceMax(x, 1))
	out("argmax", op.ArgMax(y, 1))
	out("transposed", op.Transpose(x, 1, 0))
	out("cat", op.Concat(1, x, y, x))
	return g
}

func exactDigest(t *testing.T, backend string) string {
	p, err := rlx.Compile(t.Context(), exactGraph(), rlx.On(backend))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	h := sha256.New()
	r := rand.New(rand.NewPCG(5, 6))
	for _, s := range [][2]int{{1, 1}, {3, 7}, {8, 16}, {5, 33}, {64, 100}} {
		n := s[0] * s[1]
		x, y, i := make([]float32, n), make([]float32, n), make([]int32, n)
		for k := range n {
			x[k], y[k], i[k] = float32(r.NormFloat64()), float32(r.NormFloat64()), int32(r.Uint32())
		}
		out, err := p.Run(t.Context(), rlx.Feed{"x": rlx.New(x, s[0], s[1]), "y": rlx.New(y, s[0], s[1]), "i": rlx.New(i, s[0], s[1])})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range p.Graph().Outputs {
			h.Write(out[o.Name].Bytes())
		}
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

// onEveryISA runs the test again in a process of its own for each instruction set, with the variable set to 1 and further arguments, and gives
// check what it printed.
func onEveryISA(t *testing.T, variable string, check func(t *testing.T, out []byte), args ...string) {
	for _, isa := range []string{"generic", "avx2", "avx512"} {
		t.Run(isa, func(t *testing.T) {
			name, _, _ := strings.Cut(t.Name(), "/")
			c := exec.Command(os.Args[0], append([]string{"-test.run=^" + name + "$"}, args...)...)
			c.Env = append(os.Environ(), variable+"=1", "RLX_ISA="+isa)
			out, err := c.CombinedOutput()
			if err != nil && bytes.Contains(out, []byte(isa)) && bytes.Contains(out, []byte("supported")) {
				t.Skipf("%s: not executed: this machine lacks it", isa)
			}
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			check(t, out)
		})
	}
}

// The plain C++ twins and every vector twin give the interpreter's bits where the op is exact. The instruction set is chosen once for a
// process, so each has a process of its own.
func TestExactBitsOnEveryISA(t *testing.T) {
	if os.Getenv("RLX_TEST_DIGEST") != "" {
		fmt.Println("digest", exactDigest(t, "cpu"))
		return
	}
	if !slices.Contains(backends(), "cpu") {
		t.Skip("cpu: not compiled in (CGO_ENABLED=0)")
	}
	want := exactDigest(t, "ref")
	onEveryISA(t, "RLX_TEST_DIGEST", func(t *testing.T, out []byte) {
		if !strings.Contains(string(out), "digest "+want) {
			t.Errorf("other bits than the interpreter:\n%s", out)
		}
	})
}

// Every node of MiniLM runs natively or composed on the CPU, and the counters show that its kernels ran.
func TestMiniLMRunsNatively(t *testing.T) {
	if !slices.Contains(backends(), "cpu") {
		t.Skip("cpu: not compiled in (CGO_ENABLED=0)")
	}
	p := compile(t, open(t, minilm), rlx.On("cpu"))
	var prof rlx.Profile
	if _, err := p.Run(t.Context(), tokens(2, 12), rlx.WithProfile(&prof)); err != nil {
		t.Fatal(err)
	}
	if len(prof.Steps) < 6*12 {
		t.Fatalf("%d commands, expected twelve at least of each of six layers", len(prof.Steps))
	}
	for _, s := range prof.Steps {
		if s.Place == "host" || s.Native != 1 || s.End < s.Start {
			t.Errorf("%s (%s): place %s, %d native kernels ran", s.Node, s.Op, s.Place, s.Native)
		}
	}
	placed, err := p.Placement()
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range placed {
		if n.Place == "host" {
			t.Errorf("%s (%s) is staged on the host", n.Node, n.Op)
		}
	}
}
