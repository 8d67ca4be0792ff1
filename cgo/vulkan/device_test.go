//go:build vulkan && cgo && !windows

package vulkan_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/backend"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// device keeps one device open for the test, so that programs share it; without one the test is skipped.
func device(t *testing.T) backend.Device {
	t.Helper()
	b, err := backend.Lookup("vulkan")
	if err != nil {
		t.Fatal(err)
	}
	d, err := b.Open(0, backend.Options{Threads: 1})
	var be *backend.Error
	if errors.As(err, &be) && be.Code == backend.NoDevice {
		t.Skipf("vulkan: not executed: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// The suite runs under the validation layers: any message of theirs is an error of the call that caused it.
func TestValidationIsOn(t *testing.T) {
	if d := device(t); !strings.Contains(d.Info().ISA, "validated") {
		t.Skip("vulkan: not validated: the validation layers are not installed")
	}
}

func floats(rng *rand.Rand, shape ...int64) *ir.Tensor {
	n := int64(1)
	for _, d := range shape {
		n *= d
	}
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(rng.NormFloat64())
	}
	dims := make([]int, len(shape))
	for i, d := range shape {
		dims[i] = int(d)
	}
	return rlx.New(v, dims...)
}

// network is softmax(relu(x w1) w2) for rows of 48, with its weights.
func network(rng *rand.Rand) *rlx.Graph {
	g := rlx.NewGraph("net")
	x := g.Input("x", rlx.F32, rlx.Shape("n", 48))
	h := op.Relu(op.MatMul(x, g.Param("w1", floats(rng, 48, 96))))
	g.Output("y", op.Softmax(op.MatMul(h, g.Param("w2", floats(rng, 96, 10))), -1))
	return g
}

func compile(t *testing.T, g *rlx.Graph, on string) *rlx.Program {
	t.Helper()
	p, err := rlx.Compile(t.Context(), g, rlx.On(on))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func values(t *testing.T, p *rlx.Program, feed rlx.Feed) []float32 {
	t.Helper()
	out, err := p.Run(t.Context(), feed)
	if err != nil {
		t.Fatal(err)
	}
	v, err := rlx.Data[float32](out["y"])
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func near(t *testing.T, label string, got, want []float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", label, len(got), len(want))
	}
	for i := range got {
		if math.Abs(float64(got[i]-want[i])) > 1e-5*(1+math.Abs(float64(want[i]))) {
			t.Fatalf("%s: element %d: got %v, want %v", label, i, got[i], want[i])
		}
	}
}

// Many runs of one program at once, over several shapes, give the bits of the run alone, which are near ref.
func TestConcurrentRuns(t *testing.T) {
	device(t)
	rng := rand.New(rand.NewSource(1))
	g := network(rng)
	p, ref := compile(t, g, "vulkan"), compile(t, g, "ref")
	feeds, want := map[int64]rlx.Feed{}, map[int64][]float32{}
	for _, n := range []int64{1, 7, 65} {
		feeds[n] = rlx.Feed{"x": floats(rng, n, 48)}
		want[n] = values(t, p, feeds[n])
		near(t, fmt.Sprint(n, " rows"), want[n], values(t, ref, feeds[n]))
	}
	var wg sync.WaitGroup
	for k := range 8 {
		wg.Go(func() {
			for i := range 12 {
				n := []int64{1, 7, 65}[(i+k)%3]
				out, err := p.Run(t.Context(), feeds[n])
				if err != nil {
					t.Error(err)
					return
				}
				got, _ := rlx.Data[float32](out["y"])
				for j := range got {
					if math.Float32bits(got[j]) != math.Float32bits(want[n][j]) {
						t.Errorf("%d rows: element %d: got %v, alone %v", n, j, got[j], want[n][j])
						return
					}
				}
			}
		})
	}
	wg.Wait()
}

// Weights are on the device once, whatever the number of specialisations.
func TestWeightsOnce(t *testing.T) {
	d := device(t)
	const side = 1024 // 4 MiB
	rng := rand.New(rand.NewSource(2))
	g := rlx.NewGraph("weights")
	x := g.Input("x", rlx.F32, rlx.Shape("n", side))
	g.Output("y", op.Sum(op.Mul(x, op.Slice(g.Param("w", floats(rng, side, side)), ir.Dims(3), ir.Dims(4), []int{0}, []int64{1})), 1))
	p := compile(t, g, "vulkan")
	before := d.NativeBytes()
	for n := int64(1); n <= 9; n++ {
		values(t, p, rlx.Feed{"x": floats(rng, n, side)})
	}
	if grown := d.NativeBytes() - before; grown > 4*side*side {
		t.Errorf("9 specialisations take %d bytes beside the weights of %d", grown, 4*side*side)
	}
}

// A cancelled run ends with the context's error, and the next one is whole.
func TestCancel(t *testing.T) {
	device(t)
	rng := rand.New(rand.NewSource(3))
	g := rlx.NewGraph("long")
	x := g.Input("x", rlx.F32, rlx.Shape("n", 384))
	y := x
	w := g.Param("w", floats(rng, 384, 384))
	for range 24 {
		y = op.Tanh(op.MatMul(y, w))
	}
	g.Output("y", y)
	p := compile(t, g, "vulkan")
	small := rlx.Feed{"x": floats(rng, 3, 384)}
	want := values(t, p, small)
	large := rlx.Feed{"x": floats(rng, 768, 384)}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	for ctx.Err() == nil { // the first run compiles
		if _, err := p.Run(ctx, large); err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	if _, err := p.Run(ctx, large); !errors.Is(err, context.Canceled) {
		t.Errorf("a run with a cancelled context: %v", err)
	}
	for i, v := range values(t, p, small) {
		if math.Float32bits(v) != math.Float32bits(want[i]) {
			t.Fatalf("after a cancelled run: element %d: got %v, before %v", i, v, want[i])
		}
	}
}

// What touches a tensor too large for the device is staged on the host, and Placement says so; the rest stays on the device.
func TestLargeTensors(t *testing.T) {
	limit := device(t).Info().MaxTensorBytes
	if limit <= 0 {
		t.Fatalf("the device states no limit: %d", limit)
	}
	if testing.Short() {
		t.Skip("tensors of hundreds of megabytes (-short)")
	}
	if limit > 256<<20 {
		t.Skipf("vulkan: the device takes tensors of %d bytes: larger ones are not tried", limit)
	}
	g := rlx.NewGraph("large")
	n := int(limit/8) + 100 // f32: two of them together are too large, one is not
	x := g.Input("x", rlx.F32, rlx.Shape(n))
	c := op.Concat(0, op.Neg(x), x)
	g.Output("y", op.Add(op.Slice(c, ir.Dims(int64(n)-2), ir.Dims(int64(n)+2), []int{0}, []int64{1}), 1))
	p := compile(t, g, "vulkan")
	placed, err := p.Placement()
	if err != nil {
		t.Fatal(err)
	}
	where := map[string]string{}
	for _, s := range placed {
		where[s.Op] = s.Place
	}
	if where["Concat"] != "host" || where["Activation"] != "native" {
		t.Errorf("Concat of %d bytes runs on %s, Neg of the half on %s", 8*n, where["Concat"], where["Activation"])
	}
	v := make([]float32, n)
	v[0], v[1], v[n-2], v[n-1] = 5, 6, 7, 8
	if got := values(t, p, rlx.Feed{"x": rlx.New(v, n)}); fmt.Sprint(got) != "[-6 -7 6 7]" {
		t.Errorf("got %v", got)
	}
}

// An index that is out of range reads nothing: the run is an error that names the node, and the next run is right.
func TestIndexOutOfRange(t *testing.T) {
	device(t)
	g := rlx.NewGraph("table")
	table := g.Param("table", rlx.New([]float32{10, 20, 30}, 3))
	g.Output("y", op.Gather(table, g.Input("i", rlx.I64, rlx.Shape("n")), 0))
	p := compile(t, g, "vulkan")
	_, err := p.Run(t.Context(), rlx.Feed{"i": rlx.New([]int64{1, 3, 0}, 3)})
	var be *backend.Error
	if !errors.As(err, &be) || be.Code != backend.BadValue || !strings.Contains(err.Error(), "index 3 out of range") {
		t.Errorf("index 3 of 3: %v", err)
	}
	if got := values(t, p, rlx.Feed{"i": rlx.New([]int64{2, -1, 0}, 3)}); fmt.Sprint(got) != "[30 30 10]" {
		t.Errorf("got %v", got)
	}
}

// Indices are checked where there is no element to fetch, too.
func TestIndexOfNothing(t *testing.T) {
	device(t)
	g := rlx.NewGraph("nothing")
	x := g.Input("x", rlx.F32, rlx.Shape(3, 0))
	g.Output("y", op.Gather(x, g.Input("i", rlx.I64, rlx.Shape("n")), 0))
	p := compile(t, g, "vulkan")
	empty := rlx.New([]float32{}, 3, 0)
	if _, err := p.Run(t.Context(), rlx.Feed{"x": empty, "i": rlx.New([]int64{0, 99}, 2)}); err == nil || !strings.Contains(err.Error(), "C7: index 99") {
		t.Errorf("index 99 of 3 rows of nothing: %v", err)
	}
	if _, err := p.Run(t.Context(), rlx.Feed{"x": empty, "i": rlx.New([]int64{0, 2}, 2)}); err != nil {
		t.Error(err)
	}
}

// A Concat of many operands takes memory for each of them once.
func TestConcatOfMany(t *testing.T) {
	d := device(t)
	g := rlx.NewGraph("many")
	parts, feed, want := make([]rlx.Value, 1500), rlx.Feed{}, make([]float32, 1500)
	for i := range parts {
		name := fmt.Sprint("x", i)
		want[i] = float32(i)
		parts[i], feed[name] = g.Input(name, rlx.F32, rlx.Shape(1)), rlx.New(want[i:i+1], 1)
	}
	g.Output("y", op.Concat(0, parts...))
	before := d.NativeBytes()
	p := compile(t, g, "vulkan")
	near(t, "concat", values(t, p, feed), want)
	if grown := d.NativeBytes() - before; grown > 16<<20 {
		t.Errorf("1500 operands of one element take %d bytes", grown)
	}
}

// A device that is not there is an error of its own code, which Prefer passes over.
func TestDeviceIndex(t *testing.T) {
	device(t)
	g := network(rand.New(rand.NewSource(4)))
	if _, err := rlx.Compile(t.Context(), g, rlx.On("vulkan:99")); err == nil || !strings.Contains(err.Error(), "device 99") {
		t.Errorf("device 99: %v", err)
	}
	p, err := rlx.Compile(t.Context(), g, rlx.Prefer("vulkan:99", "ref"))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if p.Backend() != "ref" || p.Fallback() == nil || !strings.Contains(p.Fallback().Error(), "device 99") {
		t.Errorf("Prefer runs on %s, fallback %v", p.Backend(), p.Fallback())
	}
}

// A profile has times of every command, in order.
func TestProfile(t *testing.T) {
	device(t)
	rng := rand.New(rand.NewSource(5))
	p := compile(t, network(rng), "vulkan")
	var prof rlx.Profile
	if _, err := p.Run(t.Context(), rlx.Feed{"x": floats(rng, 5, 48)}, rlx.WithProfile(&prof)); err != nil {
		t.Fatal(err)
	}
	if len(prof.Steps) == 0 {
		t.Fatal("the profile is empty")
	}
	for i, s := range prof.Steps {
		if s.End < s.Start || s.Native != 1 || i > 0 && s.Start < prof.Steps[i-1].Start {
			t.Errorf("step %d: %+v", i, s)
		}
	}
}
