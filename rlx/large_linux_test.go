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
	"syscall"
	"testing"
	"unsafe"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/op"
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

// sparse maps n bytes of zeros that take no memory until they are written.
func sparse(t *testing.T, n int) []byte {
	m, err := syscall.Mmap(-1, 0, n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE|syscall.MAP_NORESERVE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Munmap(m); err != nil {
			t.Error(err)
		}
	})
	return m
}

// residentKB is what the process has in memory.
func residentKB(t *testing.T) int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(status), "VmRSS:")
	kb, err := strconv.ParseInt(strings.Fields(text)[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kb
}

// Views whose offsets and strides pass 2^31 elements reach the right elements of an int8 tensor. Its memory is a hole but for what is
// written at places worked out by hand; the results are worked out from these.
func TestFarElements(t *testing.T) {
	const rows, columns = 24901, 131072 // 3,263,823,872 elements; row 24900 begins at 3,263,692,800
	const side = 46341                  // side * side = 2,147,488,281 is the first square beyond 2^31
	before := residentKB(t)
	x := sparse(t, rows*columns)
	put := func(at int64, v int8) { x[at] = byte(v) }
	put(24900*columns+0, -7)
	put(24900*columns+131071, 100) // the last element
	put(24900*columns+131070, 99)
	put(3*columns+131071, 5)
	put(1<<31-1, 11)
	put(1<<31, -12)
	put(1<<31+1, 13)
	put((side-1)*side+side-1, 42)  // [46340, 46340] of a square
	put((side-1)*side+side-2, -43) // [46340, 46339]
	put((side-2)*side+side-1, 44)  // [46339, 46340]
	g := rlx.NewGraph("far")
	in := g.Input("x", rlx.I8, rlx.Shape(rows, columns))
	flat := op.ReshapeInts(in, rows*columns)
	square := op.ReshapeInts(op.Narrow(flat, 0, 0, side*side), side, side)
	corner := op.Narrow(op.Narrow(square, 0, side-2, 2), 1, side-2, 2)
	every := func(x rlx.Value, start, step int64) rlx.Value { // to the end
		end := rlx.Shape(math.MaxInt64)
		if step < 0 {
			end = rlx.Shape(math.MinInt64)
		}
		return op.Slice(x, rlx.Shape(start), end, []int{0}, []int64{step})
	}
	last := op.Narrow(in, 0, rows-1, 1)
	edge := op.Narrow(op.Narrow(in, 1, columns-2, 2), 0, 3, rows-3) // the last two columns of rows 3 and on
	want := map[string][]int32{}
	check := func(name string, v rlx.Value, elements ...int32) {
		g.Output(name, op.Cast(v, rlx.I32))
		want[name] = elements
	}
	check("steps of 2^30", every(flat, 0, 1<<30), 0, 0, -12, 0)                                                                         // 0, 2^30, 2^31, 3*2^30
	check("steps of 2^31 + 1", every(flat, 0, 1<<31+1), 0, 13)                                                                          // 0, 2^31 + 1
	check("backwards by 2^31", every(flat, -1, -1<<31), 100, 0)                                                                         // the last element, and 1,116,340,223
	check("around 2^31", op.Narrow(flat, 0, 1<<31-2, 4), 0, 11, -12, 13)                                                                // across the border
	check("corner", corner, 0, 44, -43, 42)                                                                                             // of the square
	check("corner transposed", op.Transpose(corner, 1, 0), 0, -43, 44, 42)                                                              // columns first
	check("sum", op.Add(corner, op.Reverse(corner, 0, 1)), 42, 1, 1, 42)                                                                // 0+42, 44-43, -43+44, 42+0
	check("compared", op.Gt(corner, op.Transpose(corner, 1, 0)), 0, 1, 0, 0)                                                            // 44 > -43 alone
	check("first of the last row", op.Narrow(last, 1, 0, 2), -7, 0)                                                                     // offset 3,263,692,800
	check("rows", op.Narrow(op.Slice(in, rlx.Shape(-1), rlx.Shape(math.MinInt64), []int{0}, []int64{-24897}), 1, columns-1, 1), 100, 5) // rows 24900 and 3
	check("largest", op.ReduceMax(edge, 0), 99, 100)                                                                                    // over 24,898 elements 131,072 apart
	check("gathered", op.Narrow(op.Gather(in, g.Constant(rlx.New([]int64{24900, 3}, 2)), 0), 1, columns-2, 2), 99, 100, 0, 5)
	check("joined", op.Concat(0, op.Narrow(flat, 0, 1<<31, 2), op.Narrow(flat, 0, 0, 1)), -12, 13, 0)
	if err := g.Err(); err != nil {
		t.Fatal(err)
	}
	feed := rlx.Feed{"x": rlx.New(unsafe.Slice((*int8)(unsafe.Pointer(&x[0])), len(x)), rows, columns)}
	for _, b := range backends() {
		if b != "ref" && b != "cpu" {
			continue
		}
		for _, passes := range [][]rlx.Option{nil, {rlx.OnlyPasses()}} {
			p, err := rlx.Compile(t.Context(), g, append(passes, rlx.On(b))...) // without Verify, which follows each byte of the memory
			if err != nil {
				t.Fatal(err)
			}
			out, err := p.Run(t.Context(), feed)
			p.Close()
			if err != nil {
				t.Fatal(err)
			}
			for name, elements := range want {
				if got, err := rlx.Data[int32](out[name]); err != nil || !slices.Equal(got, elements) {
					t.Errorf("%s, with passes %v: %s: got %v, expected %v; %v", b, passes == nil, name, got, elements, err)
				}
			}
		}
	}
	if kb := residentKB(t) - before; kb > 256<<10 {
		t.Errorf("%d MiB more in memory, expected few of the %d", kb>>10, len(x)>>20)
	} else {
		t.Logf("%d MiB more in memory for a tensor of %d", kb>>10, len(x)>>20)
	}
}
