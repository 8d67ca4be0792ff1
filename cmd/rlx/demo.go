package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	files "github.com/rlx-ml/rlx-go/cmd/rlx/demo"
	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/backend"
)

func demoCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "Compile a digits classifier and run it over held-out digits on every backend of this build",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return demo(c.Context(), c.OutOrStdout()) },
	}
}

// digits is the held-out part of the UCI digits: 8x8 pixels of 0 to 16, and labels.
type digits struct {
	pixels []float32 // scaled to [0, 1]
	labels []byte
}

const digitSize = 64

func loadDigits() (*digits, error) {
	b, err := files.Files.ReadFile("digits_test.bin")
	if err != nil {
		return nil, err
	}
	if len(b) < 12 || string(b[:4]) != "RLXD" {
		return nil, errors.New("demo data: bad magic")
	}
	n := int(binary.LittleEndian.Uint32(b[4:]))
	if size := binary.LittleEndian.Uint32(b[8:]); size != digitSize || len(b) != 12+n*(digitSize+1) {
		return nil, fmt.Errorf("demo data: %d digits of %d pixels in %d bytes", n, size, len(b))
	}
	d := &digits{labels: b[12+n*digitSize:]}
	for _, p := range b[12 : 12+n*digitSize] {
		d.pixels = append(d.pixels, float32(p)/16)
	}
	return d, nil
}

func demo(ctx context.Context, w io.Writer) error {
	d, err := loadDigits()
	if err != nil {
		return err
	}
	model, err := rlx.OpenFS(files.Files, "digits.onnx")
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "digits classifier: %d nodes, %d held-out digits\n\n", len(model.Graph().Nodes), len(d.labels))
	results := map[string]*demoResult{}
	for _, b := range rlx.Backends() {
		if b.Err != nil { // not in this build, or no device on this machine
			fmt.Fprintf(w, "%v\n", b.Err)
			continue
		}
		if len(b.Devices) == 0 {
			fmt.Fprintf(w, "%s: no device\n", b.Name)
			continue
		}
		r, err := demoOn(ctx, model, d, b.Name)
		if err != nil {
			return err
		}
		results[b.Name] = r
		r.write(w)
	}
	ref := results["ref"]
	for _, name := range slices.Sorted(maps.Keys(results)) {
		if ref != nil && name != "ref" {
			agreement(w, name, results[name], ref)
		}
	}
	return nil
}

// agreement compares the answers of a backend with those of ref.
func agreement(w io.Writer, name string, r, ref *demoResult) {
	same, worst := 0, 0.0
	for i := range r.best {
		if r.best[i] == ref.best[i] {
			same++
		}
	}
	for i := range r.probabilities {
		worst = max(worst, math.Abs(float64(r.probabilities[i])-float64(ref.probabilities[i])))
	}
	fmt.Fprintf(w, "agreement: %s and ref choose the same digit for %d of %d; probabilities differ by at most %.1e\n", name, same, len(r.best), worst)
}

type demoResult struct {
	program       string
	placed        []rlx.Placed
	right         int
	best          []int
	probabilities []float32
	compile       time.Duration
	one, all      time.Duration // fastest run of one digit, and of all
	flop          float64       // of all digits
	limit         float64       // GFLOP/s of f32
	hasLimit      bool
}

func demoOn(ctx context.Context, model *rlx.Model, d *digits, on string) (*demoResult, error) {
	t0 := time.Now()
	prog, err := model.Compile(ctx, rlx.On(on))
	if err != nil {
		return nil, err
	}
	defer prog.Close()
	n := len(d.labels)
	all := rlx.Feed{"pixels": rlx.New(d.pixels, n, digitSize)}
	out, err := prog.Run(ctx, all)
	if err != nil {
		return nil, err
	}
	r := &demoResult{program: prog.String(), compile: time.Since(t0), flop: demoFlop(model) * float64(n)}
	if r.placed, err = prog.Placement(); err != nil {
		return nil, err
	}
	if r.probabilities, err = rlx.Data[float32](out["probabilities"]); err != nil {
		return nil, err
	}
	for i := range n {
		row := r.probabilities[10*i : 10*i+10]
		r.best = append(r.best, slices.Index(row, slices.Max(row)))
		if r.best[i] == int(d.labels[i]) {
			r.right++
		}
	}
	r.all = math.MaxInt64
	for range 5 { // the probe stands between the runs that it is compared with
		t, err := fastest(ctx, prog, all, 50*time.Millisecond)
		if err != nil {
			return nil, err
		}
		r.all = min(r.all, t)
		var peak float64
		if peak, r.hasLimit, err = prog.Probe(backend.LimitF32, prog.Device().Threads, 1, 0.025); err != nil {
			return nil, err
		}
		r.limit = max(r.limit, peak)
	}
	r.one, err = fastest(ctx, prog, rlx.Feed{"pixels": rlx.New(d.pixels[:digitSize], 1, digitSize)}, 100*time.Millisecond)
	return r, err
}

// fastest is the least time of the runs that fit into the given time, at least three.
func fastest(ctx context.Context, prog *rlx.Program, in rlx.Feed, budget time.Duration) (time.Duration, error) {
	r := prog.Runner()
	defer r.Close()
	out, err := prog.Run(ctx, in)
	if err != nil {
		return 0, err
	}
	best := time.Duration(math.MaxInt64)
	for i, end := 0, time.Now().Add(budget); i < 3 || time.Now().Before(end); i++ {
		t0 := time.Now()
		if err := r.RunInto(ctx, in, out); err != nil {
			return 0, err
		}
		best = min(best, time.Since(t0))
	}
	return best, nil
}

// demoFlop counts the multiply-adds of the model's weight matrices for one digit.
func demoFlop(model *rlx.Model) float64 {
	g, flop := model.Graph(), 0.0
	for _, n := range g.Nodes {
		if name, ok := n.ParamName(); ok {
			if t := g.ParamData(name); t != nil && t.Rank() == 2 {
				flop += 2 * float64(t.Len())
			}
		}
	}
	return flop
}

func (r *demoResult) write(w io.Writer) {
	fmt.Fprintln(w, r.program)
	t := tabwriter.NewWriter(w, 2, 8, 2, ' ', 0)
	for _, p := range r.placed {
		fmt.Fprintf(t, "  %s\t%s\t%s on %s\n", p.Node, p.Op, p.Place, p.Backend)
	}
	n := len(r.best)
	fmt.Fprintf(t, "  accuracy\t%d of %d\t%.1f %%\n", r.right, n, 100*float64(r.right)/float64(n))
	fmt.Fprintf(t, "  compile and first run\t%v\n", r.compile.Round(10*time.Microsecond))
	fmt.Fprintf(t, "  latency\t%v\tfor one digit\n", r.one)
	gflops := r.flop / r.all.Seconds() / 1e9
	fmt.Fprintf(t, "  throughput\t%.0f digits/s\t%v for %d digits, %.1f GFLOP/s\n", float64(n)/r.all.Seconds(), r.all, n, gflops)
	if r.hasLimit {
		fmt.Fprintf(t, "  machine's limit\t%.0f GFLOP/s\t%.0f %% of it reached\n", r.limit, 100*gflops/r.limit)
	}
	t.Flush()
	fmt.Fprintln(w)
}
