package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A product of 2*1024^3 flop at 100 GFLOP/s takes 21.47 ms at least; 8 * 4096 * 768 bytes, in L3, at 50 GB/s, 0.503 ms.
const sittingLines = `a remark
{"workload":"machine","peer":"limits","threads":2,"cpu":"Some CPU","isa":"avx2","l2_kb":512,"l3_kb":65536}
{"workload":"limit.f32","peer":"limits","threads":1,"min_ms":1,"gflops":90}
{"workload":"limit.f32","peer":"limits","threads":1,"min_ms":1,"gflops":100}
{"workload":"limit.l3","peer":"limits","threads":1,"min_ms":1,"gbps":50}
{"workload":"gemm.f32.1024x1024x1024","peer":"rlx","threads":1,"min_ms":30,"version":"v avx2"}
{"workload":"gemm.f32.1024x1024x1024","peer":"rlx","threads":1,"min_ms":25,"version":"v avx2","max_err":1.5e-6}
{"workload":"gemm.f32.1024x1024x1024","peer":"slow","threads":1,"min_ms":100,"version":"1"}
{"workload":"gemm.f32.1024x1024x1024","peer":"fast","threads":1,"min_ms":50,"version":"2"}
{"workload":"layernorm.f32.4096x768","peer":"rlx","threads":1,"min_ms":1.0066,"version":"v avx2"}
`

func TestBenchCompare(t *testing.T) {
	file := filepath.Join(t.TempDir(), "day.jsonl")
	if err := os.WriteFile(file, []byte(sittingLines), 0o666); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := benchCompare(&out, []string{file}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"## day\n", "Some CPU, avx2, L2 512 KB, L3 65536 KB", "f32/1 100, l3/1 50", "fast 2, rlx v avx2, slow 1",
		"| gemm.f32.1024x1024x1024 | 1 | 25.00 | 50.00 fast | 2.00x | 21.47 f32 | 86 % | 1.5e-06 |\n",
		"| layernorm.f32.4096x768 | 1 | 1.01 | - | - | 0.5033 L3 | 50 % | - |\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if err := os.WriteFile(file, []byte("{\"workload\":\"x\"}"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := benchCompare(&out, []string{file}); err == nil || !strings.Contains(err.Error(), "day:1: not a measurement") {
		t.Errorf("got %v, expected a line that is no measurement", err)
	}
}
