//go:build cgo && !windows

package native

import (
	"errors"
	"strings"
	"testing"
	"unsafe"

	"github.com/rlx-ml/rlx-go/rlx/backend"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	_ "github.com/rlx-ml/rlx-go/rlx/op"
)

// zero is a table without functions: a test file cannot name the types of C.
func zero[T any](*T) *T { return new(T) }

func TestStageOnHost(t *testing.T) {
	table := unsafe.Pointer(zero(new(library).t))
	type stager interface{ StageOnHost(*ir.Row) bool }
	if _, ok := New(table).(stager); ok {
		t.Error("a backend without the option says what it stages on the host")
	}
	s, ok := New(table, StageOnHost()).(stager)
	if !ok {
		t.Fatal("a backend with the option does not say what it stages on the host")
	}
	if err := ir.Freeze(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"Binary": true, "TopK": true, "Input": false, "Constant": false} {
		r, err := ir.RowByName(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.StageOnHost(r); got != want {
			t.Errorf("%s: %v, expected %v", name, got, want)
		}
	}
}

func TestOtherABI(t *testing.T) {
	table := zero(new(library).t)
	table.abi = 1
	b := New(unsafe.Pointer(table))
	if err := b.Check(); err == nil || !strings.Contains(err.Error(), "the library has ABI 1, this program 5") {
		t.Error(err)
	}
	if caps := b.Caps(); caps != nil {
		t.Errorf("capabilities %v", caps)
	}
	if _, err := b.Open(0, backend.Options{Threads: 1}); err == nil {
		t.Error("a library of another ABI was opened")
	}
}

func TestNoProbe(t *testing.T) {
	d := &device{b: &library{}}
	d.b.t = zero(d.b.t)
	var handle uint64
	*(*unsafe.Pointer)(unsafe.Pointer(&d.p)) = unsafe.Pointer(&handle)
	var e *backend.Error
	if _, err := d.Probe(backend.LimitF32, 1, 1<<20, 0.01); !errors.As(err, &e) || e.Code != backend.Unsupported {
		t.Error(err)
	}
}
