# make demo    compile and run the digits classifier on every backend of this build
# make test    everything; make check: the fast loop
# See README.md for the build modes.

SHELL   := bash
.SHELLFLAGS := -eu -o pipefail -c
GO      ?= go
CMAKE   ?= cmake
PREFIX  ?= /usr/local
BUILD   := build
TAGS    ?= rlx_static
# Models that tests and benchmarks use; their absence is a counted skip.
export RLX_MODELS ?= $(CURDIR)/$(BUILD)/models
TESTREPORT := $(GO) run ./internal/tools/testreport $(if $(ALLOWED_SKIPS),-allowed $(ALLOWED_SKIPS))

.PHONY: demo test check vet bench lib install models fmt generate native-test race nocgo clean

demo: lib
	$(GO) run -tags $(TAGS) ./cmd/rlx demo

# The CPU kernels as build/lib/librlx_cpu.a: what -tags rlx_static links.
lib:
	@$(CMAKE) -S . -B $(BUILD)/cmake -DCMAKE_BUILD_TYPE=Release > /dev/null
	@$(CMAKE) --build $(BUILD)/cmake --parallel

install: lib
	$(CMAKE) --install $(BUILD)/cmake --prefix $(PREFIX)

vet: lib
	$(GO) vet -tags $(TAGS) ./...
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -l $$(git ls-files '*.go'); exit 1; }

# The fast loop: vet, formatting, and the short tests, which hold the generated files too.
check: vet
	$(GO) test -tags $(TAGS) -short -json ./... | $(TESTREPORT)

test: vet
	$(GO) test -tags $(TAGS) -timeout 40m -json ./... | $(TESTREPORT)
	$(MAKE) nocgo race native-test

# Everything again without cgo: the interpreter alone.
nocgo:
	CGO_ENABLED=0 $(GO) test -short -json ./... | $(TESTREPORT)

# Concurrency under the race detector.
race: lib
	$(GO) test -tags $(TAGS) -race -short -json ./rlx ./rlx/internal/abi ./rlx/internal/exec | $(TESTREPORT)

# The tests of the native code that need no Go.
native-test: lib
	@$(CMAKE) --build $(BUILD)/cmake --target native_tests --parallel
	cd $(BUILD)/cmake && ctest --output-on-failure

bench: lib
	$(GO) run -tags $(TAGS) ./cmd/rlx bench

models:
	python3 testdata/models/fetch.py $(RLX_MODELS)

generate:
	$(GO) generate ./...

fmt:
	gofmt -w $$(git ls-files '*.go')

clean:
	rm -rf $(BUILD)
