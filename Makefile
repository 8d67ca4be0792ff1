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
TESTREPORT := $(GO) run ./internal/tools/testreport $(if $(ALLOWED_SKIPS),-allowed $(ALLOWED_SKIPS))

.PHONY: demo test check vet bench lib vulkan vulkan-needs native vulkan-off vulkan-test install models fmt generate native-test race nocgo clean

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
	$(GO) test -tags $(TAGS) -short -json ./... | $(TESTREPORT)

test: vet
	$(GO) test -tags $(TAGS) -timeout 40m -json ./... | $(TESTREPORT)
	$(MAKE) nocgo race native-test $(if $(VULKAN_OFF),,vulkan-test)

# Everything again without cgo: the interpreter alone.
nocgo:
	CGO_ENABLED=0 $(GO) test -short -json ./... | $(TESTREPORT)

# Concurrency under the race detector.
race: native
	$(GO) test -tags $(TAGS) -race -short -json ./rlx ./rlx/internal/abi ./rlx/internal/exec $(if $(VULKAN_OFF),,./cgo/vulkan) | $(TESTREPORT)

# The tests of the native code that need no Go.
native-test: lib
	@$(CMAKE) --build $(BUILD)/cmake --target native_tests --parallel $(JOBS)
	cd $(BUILD)/cmake && ctest --output-on-failure

# The Vulkan backend at other subgroup sizes than the machine's own: Mesa's software driver has vectors as wide as it is told. Go's test cache
# does not see what a driver reads.
vulkan-test: vulkan
	for width in 128 512; do \
	  echo "vulkan: vectors of $$width bits"; \
	  { LP_NATIVE_VECTOR_WIDTH=$$width $(GO) test -tags $(TAGS) -short -count 1 -timeout 20m -json -run /vulkan ./rlx/conform && \
	    LP_NATIVE_VECTOR_WIDTH=$$width $(GO) test -tags $(TAGS) -short -count 1 -timeout 20m -json ./cgo/vulkan; } | $(TESTREPORT); \
	done

bench: native
	$(GO) run -tags $(TAGS) ./cmd/rlx bench

models:
	python3 testdata/models/fetch.py $(RLX_MODELS) --with onnx-tests

generate:
	$(GO) generate ./...

fmt:
	gofmt -w $$(git ls-files '*.go')

clean:
	rm -rf $(BUILD)
