package ir_test

import (
	"bytes"
	"errors"
	"runtime"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// A tensor that rests has its bytes whenever they are asked for, reads them once for all who use them at a time, and has none when it was dropped.
func TestRest(t *testing.T) {
	from := ir.New([]float32{1, 2, 3, 4, 5, 6, 7, 8}, 2, 4)
	reads := 0
	read := func(to []byte) error { reads++; copy(to, from.Bytes()); return nil }
	x := ir.Own(from)
	if ir.Resting(x) || !ir.Owned(x) || ir.Owned(from) || &x.Bytes()[0] != &from.Bytes()[0] {
		t.Fatal("expected a tensor over the same memory")
	}
	ir.Rest(x, read)
	if !ir.Resting(x) || x.Len() != 8 || x.Size() != 32 || x.Err() != nil || reads != 0 {
		t.Fatalf("%d reads, %d elements, %d bytes, %v: expected a tensor at rest, unread", reads, x.Len(), x.Size(), x.Err())
	}
	b := x.Bytes()
	if !bytes.Equal(b, from.Bytes()) || x.Float(7) != 8 || &x.Bytes()[0] != &b[0] || reads != 1 {
		t.Fatalf("%v after %d reads, expected %v after one", x, reads, from)
	}
	runtime.KeepAlive(b)
	own := ir.New([]int64{1, 2}, 2) // of a specialisation: nobody else has it
	ir.Rest(own, func(to []byte) error { to[8] = 7; return nil })
	if own.Int(1) != 7 {
		t.Errorf("got %v, expected what read gave", own)
	}
	kept := ir.Own(from)
	ir.Rest(kept, read)
	if err := ir.Keep(kept); err != nil || ir.Resting(kept) {
		t.Error(err)
	}
	gone := errors.New("gone")
	ir.Rest(kept, read)
	for _, y := range []*ir.Tensor{kept, x, from} {
		ir.Drop(y, gone)
	}
	if ir.Resting(kept) || kept.Err() != nil || kept.Float(0) != 1 || from.Float(0) != 1 {
		t.Error("a tensor that was kept, or is nobody's, lost its memory")
	}
	if _, err := ir.Data[float32](x); !errors.Is(err, gone) || !errors.Is(x.Err(), gone) {
		t.Errorf("got %v, expected why there are no bytes", err)
	}
	if err := ir.Keep(x); !errors.Is(err, gone) {
		t.Errorf("got %v, expected why there are no bytes", err)
	}
	bad := ir.Own(from)
	ir.Rest(bad, func([]byte) error { return gone })
	if bad.Bytes() != nil {
		t.Error("bytes that could not be read")
	}
}
