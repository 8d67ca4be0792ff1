package op

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// Step is one step of a TransformRegion: "resize_nearest_2x", "crop" with Starts and Sizes of every axis, "flip" of Axes, or "transpose" by Perm.
type Step struct {
	Fn     string  `json:"fn"`
	Starts []int64 `json:"starts,omitempty"`
	Sizes  []int64 `json:"sizes,omitempty"`
	Axes   []int64 `json:"axes,omitempty"`
	Perm   []int64 `json:"perm,omitempty"`
}

// Steps are coded as integers, as the command words carry them: for each step its number in [StepNames], how many integers follow, and these: the starts and
// then the sizes of a crop, the axes of a flip, the permutation of a transpose.
type Steps []int64

// StepNames are the steps of a TransformRegion by number.
func StepNames() []string { return []string{"resize_nearest_2x", "crop", "flip", "transpose"} }

// StepsOf codes a list of steps; a step that is not known gets a number that inference refuses.
func StepsOf(list ...Step) Steps {
	s := Steps{}
	for _, x := range list {
		code := int64(-1)
		for k, name := range StepNames() {
			if name == x.Fn {
				code = int64(k)
			}
		}
		args := append(append(append(append([]int64{}, x.Starts...), x.Sizes...), x.Axes...), x.Perm...)
		s = append(append(s, code, int64(len(args))), args...)
	}
	return s
}

// List decodes s; ok is false where the integers are no list of steps.
func (s Steps) List() (list []Step, ok bool) {
	names := StepNames()
	for i := 0; i < len(s); {
		if len(s)-i < 2 || s[i] < 0 || s[i] >= int64(len(names)) || s[i+1] < 0 || s[i+1] > int64(len(s)-i-2) {
			return nil, false
		}
		step, args := Step{Fn: names[s[i]]}, s[i+2:i+2+int(s[i+1])]
		switch step.Fn {
		case "crop":
			step.Starts, step.Sizes = args[:len(args)/2], args[len(args)/2:]
		case "flip":
			step.Axes = args
		case "transpose":
			step.Perm = args
		}
		list = append(list, step)
		i += 2 + len(args)
	}
	return list, true
}

// MarshalText is the JSON list of the steps.
func (s Steps) MarshalText() ([]byte, error) {
	list, ok := s.List()
	if !ok {
		return nil, errors.New("not a list of steps")
	}
	if list == nil {
		list = []Step{}
	}
	return json.Marshal(list)
}

// UnmarshalText reads what MarshalText writes.
func (s *Steps) UnmarshalText(text []byte) error {
	var list []Step
	if err := json.Unmarshal(text, &list); err != nil {
		return fmt.Errorf("expected a JSON list of steps: %w", err)
	}
	for _, x := range list {
		if len(x.Starts) != len(x.Sizes) {
			return fmt.Errorf("C3: a crop has %d starts and %d sizes, expected one of each for every axis", len(x.Starts), len(x.Sizes))
		}
		if StepsOf(x)[0] < 0 {
			return fmt.Errorf("C1: unknown step %q, expected one of %v", x.Fn, StepNames())
		}
	}
	*s = StepsOf(list...)
	return nil
}

// TransformRegionAttrs are the attributes of TransformRegion.
type TransformRegionAttrs struct {
	Steps Steps `c:"C1"`
}

var transformRegion = declareRegion[TransformRegionAttrs]("TransformRegion")

// TransformRegion applies steps in order in one copy: crops, flips, transposes, and doubling of the last two axes, y[.., i, j] = x[.., i/2, j/2]. Bits are
// copied, those of NaNs too. No steps is a copy.
//
// Shapes: by the steps. Any dtype. Errors: C1 unknown step, C2 a resize of another rank than 4, C3 a crop that does not lie in its axis, C4 a flip of an axis
// outside the rank, C5 not a permutation. Source: the steps' own kinds: ResizeNearest2x, Narrow, Reverse, Transpose.
func TransformRegion(x ir.Value, steps ...Step) ir.Value {
	return transformRegion.Apply1(TransformRegionAttrs{StepsOf(steps...)}, x)
}

func init() {
	transformRegion.Define(ir.Def[TransformRegionAttrs]{
		Doc:       "a chain of crops, flips, transposes and 2x resizes in one copy",
		In:        []ir.Operand{ir.In("x", ir.AnyDType)},
		Bits:      ir.Fused | ir.Exact,
		Infer:     inferTransformRegion,
		Decompose: decomposeTransformRegion,
	})
}

func inferTransformRegion(t *ir.Infer, a *TransformRegionAttrs) {
	list, ok := a.Steps.List()
	if !t.Need(ok, "C1", "steps %v, expected steps as StepsOf codes them", []int64(a.Steps)) {
		return
	}
	x := t.Type(0)
	shape := append([]ir.Dim{}, x.Shape...)
	rank := len(shape)
	for i, s := range list {
		switch s.Fn {
		case "resize_nearest_2x":
			if !t.Need(rank == 4, "C2", "step %d resizes rank %d, expected 4", i, rank) {
				return
			}
			shape[2], shape[3] = shape[2].Mul(ir.D(2)), shape[3].Mul(ir.D(2))
		case "crop":
			if !t.Need(len(s.Starts) == rank, "C3", "step %d crops %d axes, expected %d", i, len(s.Starts), rank) {
				return
			}
			for k := range shape {
				n, static := shape[k].Static()
				inside := s.Starts[k] >= 0 && s.Sizes[k] >= 0 && (!static || s.Starts[k] <= n && s.Sizes[k] <= n-s.Starts[k])
				if !t.Need(inside, "C3", "step %d crops axis %d to %d elements from %d, expected a part of %s", i, k, s.Sizes[k], s.Starts[k], shape[k]) {
					return
				}
				shape[k] = ir.D(s.Sizes[k])
			}
		case "flip":
			for _, axis := range s.Axes {
				_, ok := ir.WrapAxis(int(axis), rank)
				t.Need(ok, "C4", "step %d flips axis %d, expected one in [-%d, %d)", i, axis, rank, rank)
			}
		case "transpose":
			next, seen := make([]ir.Dim, rank), make([]bool, rank)
			ok := len(s.Perm) == rank
			for k, from := range s.Perm {
				if ok = ok && from >= 0 && from < int64(rank) && !seen[from]; ok {
					next[k], seen[from] = shape[from], true
				}
			}
			if !t.Need(ok, "C5", "step %d transposes by %v, expected a permutation of %d axes", i, s.Perm, rank) {
				return
			}
			shape = next
		}
	}
	if t.OK() {
		t.Out(ir.Type{DType: x.DType, Shape: shape})
	}
}

func decomposeTransformRegion(n *ir.Node, a *TransformRegionAttrs) []ir.Value {
	list, _ := a.Steps.List()
	y := n.In[0]
	for _, s := range list {
		switch s.Fn {
		case "resize_nearest_2x":
			y = ResizeNearest2x(y)
		case "crop":
			for k := range s.Starts {
				y = Narrow(y, k, s.Starts[k], s.Sizes[k])
			}
		case "flip":
			y = Reverse(y, ints(s.Axes)...)
		case "transpose":
			y = Transpose(y, ints(s.Perm)...)
		}
	}
	if y == n.In[0] {
		y = Copy(y)
	}
	return []ir.Value{y}
}

func ints(list []int64) []int {
	out := make([]int, len(list))
	for i, v := range list {
		out[i] = int(v)
	}
	return out
}
