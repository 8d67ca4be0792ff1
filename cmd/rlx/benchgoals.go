package main

import (
	"math"
	"strings"

	"github.com/rlx-ml/rlx-go/cmd/rlx/workload"
)

// goal is what rows of a name should reach: the best peer's time over ours, and the share of the limit. 0 is no goal.
type goal struct {
	prefix string
	faster float64
	share  float64
}

// goals are tried in this order.
var goals = []goal{
	{"gemm.f32.1x", 1, 0.80},
	{"gemm.f32", 1, 0.92},
	{"gemm.i8dyn.1x", 1.3, 0.90},
	{"gemm.i8dyn", 1, 0.90},
	{"layernorm", 1.8, 0.70},
	{"rmsnorm", 1.8, 0.70},
	{"softmax", 2, 0},
	{"gelu", 2, 0},
	{"exp", 1.5, 0},
	{"chain8", 2, 0},
	{"cumsum", 1.5, 0},
	{"attn.prefill_causal", 1.8, 0.70},
	{"attn.prefill", 1.1, 0.75},
	{"attn.decode", 3, 0.50},
	{"dw", 2.5, 0.50},
	{"conv", 1, 0.88}, // 3x3 and the first layer; 1x1: see goalOf
	{"lstm", 1.2, 0.65},
	{"model.resnet50", 1.03, 0.88},
	{"model.mobilenetv2", 1.2, 0.85},
	{"model.minilm.s32", 1.2, 0.85},
	{"model.minilm.s128", 1.1, 0.90},
	{"model.onnx", 1.2, 0},
}

// goalOf is the goal of a row. dots says that the machine has a dot product of bytes, whose peak is harder to reach.
func goalOf(name string, dots bool) goal {
	for _, g := range goals {
		if !strings.HasPrefix(name, g.prefix) {
			continue
		}
		switch {
		case g.prefix == "conv" && strings.Contains(name, "r1s"):
			g.faster, g.share = 1.15, 0.80
		case strings.HasPrefix(name, "gemm.i8dyn") && dots:
			g.share = 0.80
		}
		return g
	}
	return goal{}
}

// The goals that are no row's own.
const (
	seed         = "rust-rlx" // the system that this one follows; a variant of it adds a dash
	seedShare    = 0.80       // of the limit, instead of being faster than the seed
	memoryGoal   = 1.10       // held memory over weights and arena, of programs of 1 MiB and more
	productsMean = 1.05       // geometric mean of gemm.f32
)

// seedGoal is how much faster than the seed a row should be.
func seedGoal(name string) float64 {
	switch {
	case strings.HasPrefix(name, "overhead."):
		return 1 / 0.85
	case strings.HasPrefix(name, "gemm."):
		return 1.05
	}
	return 2
}

// dots says whether the probed peak of bytes is that of a dot product: four times that of f32, where sums of pairs reach twice at most.
func (s *sitting) dots() bool {
	f32, i8 := s.limits["f32 1"], s.limits["i8 1"]
	return f32 > 0 && i8 > 3*f32
}

// result is what a sitting says of a workload.
type result struct {
	w        workload.Workload
	ours     *measurement
	peer     *measurement // the best but the seed; nil without one
	seed     *measurement // nil without it
	session  *measurement // of the peer that was the fastest to make one; nil without one
	limit    float64      // ms, 0 where none is known
	by       string       // which limit
	goal     goal
	faster   float64 // than the peer, 0 without one
	overSeed float64 // 0 without it
	share    float64 // of the limit, 0 where none is known
	memory   float64 // held over planned, 0 where it is no matter
}

func (s *sitting) resultOf(w workload.Workload, threads int) *result {
	ours := s.fastest(w.Name, threads, func(m *measurement) bool { return m.ours() })
	if ours == nil {
		return nil
	}
	r := &result{w: w, ours: ours, goal: goalOf(w.Name, s.dots())}
	r.peer = s.fastest(w.Name, threads, func(m *measurement) bool { return !m.ours() && !m.seed() })
	r.seed = s.fastest(w.Name, threads, func(m *measurement) bool { return m.seed() })
	if r.peer != nil {
		r.faster = r.peer.MinMS / ours.MinMS
	}
	if r.seed != nil {
		r.overSeed = r.seed.MinMS / ours.MinMS
	}
	if r.limit, r.by = s.least(w, threads); r.limit > 0 {
		r.share = r.limit / ours.MinMS
	}
	if ours.PlanBytes >= 1<<20 && ours.PeakBytes > 0 {
		r.memory = float64(ours.PeakBytes) / float64(ours.PlanBytes)
	}
	r.session = s.compile[key(ours)]
	return r
}

// short lists what falls short of its goal, and by which factor.
func (r *result) short() (list []string, least float64) {
	least = 1
	need := func(what string, value, goal float64) {
		if value > 0 && goal > 0 && value < goal {
			list, least = append(list, what), min(least, value/goal)
		}
	}
	need("peer", r.faster, r.goal.faster)
	need("limit", r.share, r.goal.share)
	if r.share < seedShare {
		need(seed, r.overSeed, seedGoal(r.w.Name))
	}
	if r.memory > memoryGoal {
		list = append(list, "memory")
	}
	if strings.Contains(r.w.Name, "minilm") && r.session != nil && r.ours.CompileMS > r.session.CompileMS {
		list = append(list, "compile")
	}
	return list, least
}

// geometricMean is that of how much faster the rows of a prefix are than their best peers, 0 without any.
func geometricMean(results []*result, prefix string) float64 {
	sum, n := 0.0, 0
	for _, r := range results {
		if strings.HasPrefix(r.w.Name, prefix) && r.faster > 0 {
			sum, n = sum+math.Log(r.faster), n+1
		}
	}
	if n == 0 {
		return 0
	}
	return math.Exp(sum / float64(n))
}
