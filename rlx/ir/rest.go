package ir

import (
	"sync"
	"sync/atomic"
	"unsafe"
	"weak"
)

// A program's own tensors can let go of their memory where its backend has the bytes in another form. Whoever asks for them then gets them read
// back, into memory that is garbage once nobody uses it.

// SmallTensor is the size in bytes below which a copy of a tensor costs less than knowing where its bytes are.
const SmallTensor = 1 << 10

// rest is where the bytes of such a tensor come from.
type rest struct {
	held atomic.Pointer[[]byte] // nil: they are read
	size int

	mu   sync.Mutex
	read func(to []byte) error
	last weak.Pointer[byte] // what was read last, while anybody uses it
	kept bool               // for good
	gone error
}

// Own is a tensor with the bytes of t, for Rest to take away.
func Own(t *Tensor) *Tensor {
	b := t.Within()
	r := &rest{size: len(b)}
	r.held.Store(&b)
	return &Tensor{dtype: t.dtype, shape: t.shape, err: t.Err(), rest: r}
}

// Rest lets go of t's memory, unless Keep was called: read fills in its bytes when they are asked for. A tensor that Own did not make must
// have no other user yet.
func Rest(t *Tensor, read func(to []byte) error) {
	if t.rest == nil {
		t.rest = &rest{size: len(t.data)}
		t.data = nil
	}
	r := t.rest
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.kept {
		return
	}
	r.read = read
	r.held.Store(nil)
}

// AtRest is a tensor that begins without memory, as Rest leaves one.
func AtRest(dtype DType, shape []int64, read func(to []byte) error) (*Tensor, error) {
	n, err := ByteSize(dtype, shape)
	if err != nil {
		return nil, err
	}
	return &Tensor{dtype: dtype, shape: shape, rest: &rest{size: int(n), read: read}}, nil
}

// Owned says whether Own made t.
func Owned(t *Tensor) bool { return t.rest != nil }

// Resting says whether t's bytes would have to be read.
func Resting(t *Tensor) bool { return t.rest != nil && t.rest.held.Load() == nil }

// Keep gives t its memory back for good.
func Keep(t *Tensor) error {
	if t.rest == nil {
		return nil
	}
	b, err := t.rest.bytes()
	if err != nil {
		return err
	}
	t.rest.mu.Lock()
	defer t.rest.mu.Unlock()
	t.rest.kept = true
	t.rest.held.Store(&b)
	return nil
}

// Drop makes the bytes of a resting t unreadable: err says why.
func Drop(t *Tensor, err error) {
	if !Resting(t) {
		return
	}
	t.rest.mu.Lock()
	defer t.rest.mu.Unlock()
	t.rest.read, t.rest.gone = nil, err
	t.rest.last = weak.Pointer[byte]{}
}

func (r *rest) bytes() ([]byte, error) {
	if b := r.held.Load(); b != nil {
		return *b, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if b := r.held.Load(); b != nil {
		return *b, nil
	}
	if p := r.last.Value(); p != nil {
		return unsafe.Slice(p, r.size), nil
	}
	if r.gone != nil {
		return nil, r.gone
	}
	b := Aligned(int64(r.size))
	if err := r.read(b); err != nil {
		return nil, err
	}
	if r.size > 0 {
		r.last = weak.Make(&b[0])
	}
	return b, nil
}

// fail is what is wrong with the bytes of a resting tensor.
func (r *rest) fail() error {
	if r.held.Load() != nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.gone
}
