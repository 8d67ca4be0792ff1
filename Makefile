# make demo    compile and run the digits classifier on every backend of this build
# make test    everything; make check: the fast loop
# VULKAN=0     leaves the Vulkan backend out. Where glslc or its headers are missing it is left out too, and a line says so
# See README.md for the build modes.

MAKEFLAGS += --no-print-directory
SHELL   := bash
.SHELLFLAGS := -eu -o pipefail -c
GO      ?= go
CMAKE   ?= cmake
PREFIX  ?= /usr/local
BUILD   := build
JOBS    ?= $(shell getconf _NPROCESSORS_ONLN)

# The Debian packages that building the Vulkan backend lacks here, and why this call of make leaves the backend out; empty if nothing.
VULKAN_LACKS := $(shell command -v glslc > /dev/null || echo glslc; echo '\#include <vulkan/vulkan_core.h>' | $(CXX) -E -x c++ - > /dev/null 2>&1 || echo libvulkan-dev)
VULKAN_OFF := $(if $(filter 0,$(VULKAN)),VULKAN=0,$(if $(VULKAN_LACKS),missing $(VULKAN_LACKS)))
NATIVE  := $(if $(VULKAN_OFF),lib,vulkan)
comma   := ,
TAGS    ?= rlx_static$(if $(VULKAN_OFF),,$(comma)vulkan)

# Models that tests and benchmarks use; their absence is a counted skip.
export RLX_MODELS ?= $(CURDIR)/$(BUILD)/models
# Longer than any package takes on a slow and busy machine: Go's own ten minutes are not.
GOTEST := $(GO) test -timeout 60m -json
TESTREPORT := $(GO) run ./internal/tools/testreport $(if $(ALLOWED_SKIPS),-allowed $(ALLOWED_SKIPS))

.PHONY: demo test check vet bench ulp-all lib vulkan vulkan-needs native vulkan-off vulkan-test install models verify-onnx onnx-light fuzz-onnx fuzz-graphs long fmt generate native-test race nocgo clean

demo: native
	$(GO) run -tags $(TAGS) ./cmd/rlx demo

# The CPU kernels as build/lib/librlx_cpu.a: what -tags rlx_static links.
lib:
	@$(CMAKE) -S . -B $(BUILD)/cmake -DCMAKE_BUILD_TYPE=Release $(if $(VULKAN_OFF),-DRLX_VULKAN=OFF) > /dev/null
	@$(CMAKE) --build $(BUILD)/cmake --target rlx_cpu --parallel $(JOBS)

# build/lib/librlx_vulkan.a: what -tags vulkan links beside the CPU kernels.
vulkan: vulkan-needs lib
	@$(CMAKE) -S . -B $(BUILD)/cmake -DRLX_VULKAN=ON > /dev/null
	@$(CMAKE) --build $(BUILD)/cmake --target rlx_vulkan rlx_vulkan_faults --parallel $(JOBS)

vulkan-needs:
	@test -z "$(VULKAN_LACKS)" || { echo "make vulkan: missing $(VULKAN_LACKS): on Debian, apt-get install glslc libvulkan-dev" >&2; exit 1; }

# The libraries that TAGS link.
native: $(NATIVE)
	@$(if $(VULKAN_OFF),$(if $(filter 0,$(MAKELEVEL)),echo "vulkan: not executed: $(VULKAN_OFF)",:),:)

# Why this call of make leaves Vulkan out, for scripts and tests; nothing where it does not.
vulkan-off:
	@echo "$(VULKAN_OFF)"

install: native
	$(CMAKE) --install $(BUILD)/cmake --prefix $(PREFIX)

vet: native
	$(GO) vet -tags $(TAGS) ./...
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -l $$(git ls-files '*.go'); exit 1; }

# The fast loop: vet, formatting, and the short tests, which hold the generated files too.
check: vet
	$(GOTEST) -tags $(TAGS) -short ./... | $(TESTREPORT)

test: vet
	$(GOTEST) -tags $(TAGS) ./... | $(TESTREPORT)
	$(MAKE) nocgo race native-test sanitize $(if $(VULKAN_OFF),,vulkan-test)

# Without cgo. What never reaches a backend (the op table, the passes, the interpreter) is the same code then, and so are the rows of the
# suite on the masks: the step before has tested those.
NOCGO := CGO_ENABLED=0 $(GOTEST) -short
nocgo:
	CGO_ENABLED=0 $(GO) build ./...
	reach=$$(CGO_ENABLED=0 $(GO) list -test -f '{{.ImportPath}} {{.Deps}}' ./... | sed -n 's,^\([^ ]*\)\.test .*rlx-go/cgo/.*,\1,p'); \
	{ $(NOCGO) $$(grep -v /rlx/conform$$ <<< "$$reach") && $(NOCGO) -run '/^ref$$' ./rlx/conform; } | $(TESTREPORT)

# The collector nearly always at work, and pointers checked on their way into C; -race brings -d=checkptr for all packages. By -exec, since the
# compiler need not run so.
HARD_GC := -exec 'env GOGC=1 GODEBUG=cgocheck=1'

# Concurrency under the race detector, which makes interpreting whole models a matter of minutes: one goroutine does that.
race: native
	$(GOTEST) -tags $(TAGS) -race -short -skip 'TestMiniLMShapes|TestGolden/ref' ./rlx ./rlx/internal/abi ./rlx/internal/exec ./rlx/batch ./examples/serve/service $(if $(VULKAN_OFF),,./cgo/vulkan) | $(TESTREPORT)
	RLX_STRESS=1 $(GOTEST) -tags $(TAGS) -race -count 1 -run '^TestStress' ./rlx | $(TESTREPORT)
	$(GOTEST) -tags $(TAGS) -race -short -count 1 $(HARD_GC) -skip 'TestScalarFunctions' ./cgo/native ./cgo/cpu ./rlx/internal/abi | $(TESTREPORT)
	$(GOTEST) -tags $(TAGS) -race -short -count 1 $(HARD_GC) -run '^(TestForgotten.*|TestRunIntoAllocatesNothing|TestCloseDuringRuns|TestOddFeeds)$$' -skip /vulkan ./rlx | $(TESTREPORT)

# The native library under the address and thread sanitizers, in build folders of their own, linked into Go's tests: the stress tests at a tenth of
# their counts, once with the plain C++ kernels too, and the tests of the thread pool. A pool whose jobs end without ordering memory, and a scan
# that writes one element too many, were each planted once, and reported.
.PHONY: sanitize sanitize-address sanitize-thread cancel-latency
sanitize: sanitize-address sanitize-thread
SANITIZED := $(GO) test -timeout 10m -count 1 -tags rlx_static -run '^(TestStress.*|TestBitsAfterCancel|TestCancelInsideALoop)$$' ./rlx
sanitize-address sanitize-thread: sanitize-%: lib
	@$(CMAKE) -S . -B $(BUILD)/sanitize-$* -DCMAKE_BUILD_TYPE=Release -DRLX_SANITIZE=$* > /dev/null
	@$(CMAKE) --build $(BUILD)/sanitize-$* --target rlx_cpu pool_test arena_test --parallel $(JOBS)
	$(BUILD)/sanitize-$*/csrc/cpu/pool_test && $(BUILD)/sanitize-$*/csrc/cpu/arena_test
	export RLX_STRESS=0.1 TSAN_OPTIONS=halt_on_error=1 CGO_LDFLAGS="-L$(CURDIR)/$(BUILD)/sanitize-$*/lib -fsanitize=$*" CGO_CFLAGS="-O1 -g -fsanitize=$*"; \
	  for isa in '' generic; do RLX_ISA=$$isa $(SANITIZED) $(if $(filter address,$*),-asan) || exit 1; done

# How long each kind of kernel goes on after it is cancelled. KERNEL=Sort.one-row for one of them.
cancel-latency: native
	RLX_CANCEL_LATENCY=$(or $(KERNEL),all) $(GO) test -tags $(TAGS) -count 1 -timeout 30m -run '^TestCancelLatency$$' ./rlx -v

# The tests of the native code that need no Go.
native-test: lib
	@$(CMAKE) --build $(BUILD)/cmake --target native_tests --parallel $(JOBS)
	cd $(BUILD)/cmake && ctest --output-on-failure

# Functions of one f32 at all 2^32 values, on every instruction set that the machine has, against f64: hours. FN=tanh for one of them.
ulp-all: lib
	@$(CMAKE) --build $(BUILD)/cmake --target ulp_test --parallel $(JOBS)
	$(BUILD)/cmake/csrc/cpu/ulp_test all $(FN)

# The kernels of 64-bit Arm, by a cross compiler: the tests of the native code in an emulated processor, and with CONFORM=<regular expression> those of
# the conformance suite that it matches, in one that lacks products of bytes too.
ARM64 = GOOS=linux GOARCH=arm64 CGO_ENABLED=1 CC=aarch64-linux-gnu-gcc CXX=aarch64-linux-gnu-g++ CGO_LDFLAGS=-L$(CURDIR)/$(BUILD)/neon/lib
.PHONY: neon neon-native neon-conform
neon:
	@lacks=$$(for tool in aarch64-linux-gnu-g++ qemu-aarch64; do command -v $$tool > /dev/null || echo -n " $$tool"; done); \
	if test -n "$$lacks"; then echo "neon: not executed: missing$$lacks: on Debian, apt-get install g++-aarch64-linux-gnu qemu-user"; \
	else $(MAKE) neon-native $(if $(CONFORM),neon-conform); fi

neon-native:
	@$(CMAKE) -S . -B $(BUILD)/neon -DCMAKE_BUILD_TYPE=Release -DCMAKE_TOOLCHAIN_FILE=$(CURDIR)/csrc/aarch64-linux-gnu.cmake > /dev/null
	@$(CMAKE) --build $(BUILD)/neon --target rlx_cpu native_tests --parallel $(JOBS)
	ctest --test-dir $(BUILD)/neon --output-on-failure

neon-conform: lib neon-native
	rm -f $(BUILD)/neon/conform.test
	$(ARM64) $(GO) test -c -tags rlx_static -o $(BUILD)/neon/conform.test ./rlx/conform
	cd rlx/conform && for cpu in max cortex-a53; do QEMU_CPU=$$cpu qemu-aarch64 -L /usr/aarch64-linux-gnu $(CURDIR)/$(BUILD)/neon/conform.test -test.run '$(CONFORM)' || exit 1; done

# The Vulkan backend at other subgroup sizes than the machine's own: Mesa's software driver has vectors as wide as it is told. Go's test cache
# does not see what a driver reads.
vulkan-test: vulkan
	for width in 128 512; do \
	  echo "vulkan: vectors of $$width bits"; \
	  { LP_NATIVE_VECTOR_WIDTH=$$width $(GOTEST) -tags $(TAGS) -short -count 1 -run /vulkan ./rlx/conform && \
	    LP_NATIVE_VECTOR_WIDTH=$$width $(GOTEST) -tags $(TAGS) -short -count 1 ./cgo/vulkan; } | $(TESTREPORT); \
	done

bench: native
	$(GO) run -tags $(TAGS) ./cmd/rlx bench

# Rounds of rlx and its peers in turns, and docs/performance.md from all that were kept: docs/bench.md. PEERS is the folder of peers.py, PYTHON the
# interpreter that has their packages, MACHINE a short name for this one; THREADS=n, ROUNDS=n, ROWS="PREFIX...".
MEASURED = $(shell date -u +%F)-$(MACHINE)-t$(or $(THREADS),1)
.PHONY: bench-compare
bench-compare: native
	@test -n "$(PEERS)" -a -n "$(PYTHON)" -a -n "$(MACHINE)" || { echo 'make bench-compare: expected PEERS=DIR PYTHON=FILE MACHINE=NAME' >&2; exit 1; }
	$(GO) build -buildvcs=auto -tags $(TAGS) -o $(BUILD)/bench/rlx ./cmd/rlx
	mkdir -p docs/bench
	$(PYTHON) cmd/rlx/workload/rounds.py --rlx $(BUILD)/bench/rlx --peers "$(PEERS)" -t $(or $(THREADS),1) -r $(or $(ROUNDS),3) -o docs/bench/$(MEASURED).jsonl --log $(BUILD)/bench/$(MEASURED).log $(ROWS)
	$(BUILD)/bench/rlx bench --compare docs/bench/*.jsonl > docs/performance.md

models:
	python3 testdata/models/fetch.py $(RLX_MODELS) --with ocrv5,onnx-tests

# The networks of ONNX's tests in the interpreter, which are too long for CI: 9 passed, 0 failed, in 470 s on two busy cores, 373 s of them VGG-19.
onnx-light: native
	$(GO) run -tags $(TAGS) ./cmd/rlx onnx-test --backend ref $(RLX_MODELS)/onnx-light-tests

# 100,000 mutated ONNX models on every backend of the build: docs/fuzzing.md. SEED=n for others.
fuzz-onnx: native
	$(GO) test -tags $(TAGS) -count 1 -timeout 60m -run '^TestMutations$$' -v ./rlx/onnx -args -mutations 100000 -mutation-seed $(or $(SEED),1)

# What the export tests write, under onnx.checker and ONNX Runtime; what they say is kept in testdata/onnx_export/verify.log.
VENV := $(BUILD)/verify-onnx
verify-onnx: native
	test -x $(VENV)/bin/pip || python3 -m venv $(VENV)
	$(VENV)/bin/pip install -q onnx==1.22.0 onnxruntime==1.32.0
	rm -rf $(BUILD)/onnx_export
	RLX_EXPORT_DIR=$(CURDIR)/$(BUILD)/onnx_export $(GO) test -tags $(TAGS) -count 1 -run TestExport ./rlx/onnx ./rlx/conform
	$(VENV)/bin/python testdata/onnx_export/verify.py $(BUILD)/onnx_export $(RLX_MODELS) > testdata/onnx_export/verify.log && rc=0 || rc=$$?; \
	  tail -4 testdata/onnx_export/verify.log; exit $$rc

# Random graphs on every backend of the build: docs/fuzzing.md. GRAPHS=n of them from SEED=n, or go test -fuzz FuzzGraph ./rlx/internal/fuzz.
fuzz-graphs: native
	$(GO) test -tags $(TAGS) -count 1 -timeout 12h -run '^TestGraphs$$' -v ./rlx/internal/fuzz -args -graphs $(or $(GRAPHS),5000) -seed $(or $(SEED),1) $(if $(ON),-on $(ON))

# What is too long for CI; docs/testing.md keeps the results. The pass matrix with every case and each pass alone, and 5,000 random graphs a backend.
long: native
	$(GO) test -tags $(TAGS) -count 1 -timeout 12h -run '^TestPassMatrix$$' ./rlx -args -long
	for b in cpu ref $(if $(VULKAN_OFF),,vulkan); do $(MAKE) fuzz-graphs ON=$$b || exit 1; done

generate:
	$(GO) generate ./...

fmt:
	gofmt -w $$(git ls-files '*.go')

clean:
	rm -rf $(BUILD)
