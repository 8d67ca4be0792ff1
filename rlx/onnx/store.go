package onnx

import (
	"fmt"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// MemoryError is returned where the tensors of a model would need more memory than the limit that was set.
type MemoryError struct {
	What        string // what did not fit
	Need, Limit int64  // bytes: with what was there before
}

func (e *MemoryError) Error() string {
	return fmt.Sprintf("%s: %d bytes of memory are needed in all, the limit is %d", e.What, e.Need, e.Limit)
}

// store is the memory of one import: weights of other files, which are read once however often the model is gone through.
type store struct {
	files      opener
	kept       map[*TensorProto]*ir.Tensor // tensors read from other files
	capped     bool
	limitBytes int64
	read, made int64 // bytes: of kept, and of what this pass over the model computed
}

// begin starts another pass over the model, which computes afresh.
func (s *store) begin() { s.made = 0 }

// take counts memory for data of another file, before it is allocated.
func (s *store) take(what string, bytes int64) error {
	if err := s.fits(what, bytes); err != nil {
		return err
	}
	s.read = saturated(s.read, bytes)
	return nil
}

// compute counts memory for a tensor that the importer computes, before it is allocated. All of them may take maxFolded.
func (s *store) compute(what string, bytes int64) error {
	if bytes > maxFolded-s.made {
		return &MemoryError{What: what, Need: saturated(s.made, bytes), Limit: maxFolded}
	}
	if err := s.fits(what, bytes); err != nil {
		return err
	}
	s.made += bytes
	return nil
}

func (s *store) fits(what string, bytes int64) error {
	if used := saturated(s.read, s.made); s.capped && bytes > s.limitBytes-used {
		return &MemoryError{What: what, Need: saturated(used, bytes), Limit: s.limitBytes}
	}
	return nil
}

// zeros is a tensor of zeros to compute a constant in; nil after an error, which the node has.
func (n *node) zeros(d ir.DType, shape ...int64) *ir.Tensor {
	bytes, err := ir.ByteSize(d, shape)
	if err == nil {
		err = n.im.store.compute(n.p.OpType, bytes)
	}
	var t *ir.Tensor
	if err == nil {
		t, err = ir.Zeros(d, shape...)
	}
	if err != nil {
		n.fail("%w", err)
		return nil
	}
	return t
}

// saturated is a + b of numbers that are not negative.
func saturated(a, b int64) int64 { return a + min(b, 1<<63-1-a) }
