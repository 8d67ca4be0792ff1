package rlx_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx"
)

// A build without cgo says so: in the list of backends, in what a program fell back from, and in its placement.
func TestBuildSaysWhatItLacks(t *testing.T) {
	native := slices.Contains(backends(), "cpu")
	list := rlx.Backends()
	if !slices.ContainsFunc(list, func(b rlx.BackendInfo) bool { return b.Name == "cpu" }) {
		t.Errorf("no cpu among the backends %+v", list)
	}
	for _, b := range list {
		if b.Name == "cpu" && !native && (!errors.Is(b.Err, rlx.ErrNotCompiledIn) || !strings.Contains(b.Err.Error(), "CGO_ENABLED=0")) {
			t.Errorf("backend cpu: %v, expected that it is not compiled in for CGO_ENABLED=0", b.Err)
		}
	}
	p := small(t) // the default choice
	want := "cpu"
	if !native {
		want = "ref"
		if err := p.Fallback(); !errors.Is(err, rlx.ErrNotCompiledIn) {
			t.Errorf("fallback %v, expected the reason why cpu was not taken", err)
		}
	} else if err := p.Fallback(); err != nil {
		t.Errorf("fell back: %v", err)
	}
	placed, err := p.Placement()
	if err != nil {
		t.Fatal(err)
	}
	if len(placed) != 1 || placed[0].Backend != want || placed[0].Place != "native" || placed[0].Op != "Binary" {
		t.Errorf("placement %+v, expected one Binary, native on %s", placed, want)
	}
}
