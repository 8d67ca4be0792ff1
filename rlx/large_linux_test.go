package rlx_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx"
)

// largeModel is set in the process that TestLargeModel starts.
const largeModel = "RLX_TEST_LARGE_MODEL"

const gib = int64(1) << 30

// writeLargeModel makes y = embed[ids] up down, with weights of 1 GiB each of which almost all is a hole in the file.
func writeLargeModel(t *testing.T, dir string) string {
	model := protoModel(protoValue(11, "ids", 7, 1), protoValue(12, "y", 1, 1, 4096),
		protoWeight("embed", 65536, 4096, 0), protoWeight("up", 4096, 65536, gib), protoWeight("down", 65536, 4096, 2*gib),
		protoNode("Gather", "embed", "ids", "x"), protoNode("MatMul", "x", "up", "h"), protoNode("MatMul", "h", "down", "y"))
	f, err := os.Create(filepath.Join(dir, "weights.bin"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(3 * gib); err != nil {
		t.Fatal(err)
	}
	put := func(base, row, column, columns int64, v float32) {
		if _, err := f.WriteAt(binary.LittleEndian.AppendUint32(nil, math.Float32bits(v)), base+4*(row*columns+column)); err != nil {
			t.Fatal(err)
		}
	}
	put(0, 7, 0, 4096, 2) // x = [2, 0, .., 0, 3]
	put(0, 7, 4095, 4096, 3)
	put(gib, 0, 5, 65536, 10) // h[5] = 2*10 + 3*1 = 23
	put(gib, 4095, 5, 65536, 1)
	put(gib, 4095, 65535, 65536, 4) // h[65535] = 3*4 = 12
	put(2*gib, 5, 1, 4096, 1)       // y[1] = 23*1 + 12*2 = 47
	put(2*gib, 65535, 1, 4096, 2)
	put(2*gib, 65535, 4095, 4096, -1) // y[4095] = -12
	path := filepath.Join(dir, "model.onnx")
	if err := os.WriteFile(path, model, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestLargeModel loads and runs a model with 3 GiB of external data in a process of its own, whose memory never exceeds 1.1 times that.
func TestLargeModel(t *testing.T) {
	if path := os.Getenv(largeModel); path != "" {
		runLargeModel(t, path)
		return
	}
	if testing.Short() {
		t.Skip("reads 3 GiB (-short)")
	}
	if !slices.Contains(backends(), "cpu") {
		t.Skip("cpu: not compiled in (CGO_ENABLED=0)")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^TestLargeModel$", "-test.v")
	cmd.Env = append(os.Environ(), largeModel+"="+writeLargeModel(t, t.TempDir()))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	_, text, _ := strings.Cut(string(out), "peak kB:")
	peak, err := strconv.ParseInt(strings.TrimSpace(strings.SplitN(text, "\n", 2)[0]), 10, 64)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("at most %.3f GiB resident with 3 GiB of weights", float64(peak)/(1<<20))
	if peak<<10 > 3*gib*11/10 {
		t.Errorf("%d kB resident, expected at most 1.1 times 3 GiB", peak)
	}
	if peak<<10 < 3*gib {
		t.Errorf("%d kB resident: the weights were not read", peak)
	}
}

func runLargeModel(t *testing.T, path string) {
	m, err := rlx.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	p := compile(t, m, rlx.On("cpu"))
	out, err := p.Run(t.Context(), rlx.Feed{"ids": rlx.New([]int64{7}, 1)})
	if err != nil {
		t.Fatal(err)
	}
	y, err := rlx.Data[float32](out["y"])
	if err != nil {
		t.Fatal(err)
	}
	want := make([]float32, 4096)
	want[1], want[4095] = 47, -12
	if !slices.Equal(y, want) {
		t.Errorf("y[1] is %g and y[4095] %g, expected 47, -12 and zeros elsewhere", y[1], y[4095])
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, peak, _ := strings.Cut(string(status), "VmHWM:")
	fmt.Println("peak kB:", strings.Fields(peak)[0])
}
