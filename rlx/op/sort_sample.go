package op

import (
	"math"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// SampleAttrs are the attributes of Sample. An absent Seed is that of the run.
type SampleAttrs struct {
	Temperature float64   `default:"1"`
	TopK        int64     `default:"0"`
	TopP        float64   `default:"1"`
	Seed        ir.Number `default:"nil"`
	Key         uint64    `default:"0"`
	IndexDtype  ir.DType  `default:"i64" c:"C8"`
}

var sample = ir.Declare[SampleAttrs]("sort", "Sample")

// Sample draws an id, of i64, for each row of logits [.., V]: with p = softmax(logits / temperature) of the topK greatest logits, cut to the
// first ids of descending p whose sum reaches topP, the least i with p_0 + .. + p_i > u. topK <= 0 and topP >= 1 keep all; of equal logits the
// lower id comes first. Temperature 0 takes the greatest logit.
//
// The number u of row r is element r of an RngUniform of [0, 1) with the seed of the run and this node's key; see [RngUniform].
//
// Shapes: [..], rank of logits >= 1. Dtypes: floats, computed in f64. Errors: C2 a temperature that is negative or not finite, C4 rows without
// logits, C6 rank 0, C7 dtype; of a run: C1 a row with NaN, +inf, or nothing above -inf. Source: torch.multinomial after temperature, top-k and
// top-p of Holtzman et al. 2020.
func Sample(logits ir.Value, temperature float64, topK int64, topP float64) ir.Value {
	a := SampleAttrs{Temperature: temperature, TopK: topK, TopP: topP, IndexDtype: ir.I64}
	if g := logits.Graph(); g != nil {
		a.Key = nextKey(g)
	}
	return SampleWith(logits, a, ir.Value{}, ir.Value{}, ir.Value{})
}

// SampleWith is Sample with all its attributes as they are, and with operands that may be absent: u [..] are the draws, floats of [0, 1);
// temperature, one or one per row, takes the place of the attribute; step, one i64, counts the draws of a node that draws itself.
//
// Errors: as Sample, and C3 u has another shape or leaves [0, 1), C5 both u and step, C8 an IndexDtype that cannot count the logits.
func SampleWith(logits ir.Value, a SampleAttrs, u, temperature, step ir.Value) ir.Value {
	return sample.Apply1(a, logits, u, temperature, step)
}

func init() {
	sample.Define(ir.Def[SampleAttrs]{
		Doc: "an id per row of logits, drawn after temperature, top-k and top-p",
		In: []ir.Operand{
			ir.In("logits", ir.Float).Cite("C7"), ir.Opt("u", ir.Float).Cite("C3"), ir.Opt("temperature", ir.Float).Cite("C2"), ir.Opt("step", ir.Set(ir.I64)),
		},
		Bits:   ir.Random, // bits are those of the row: with u, a node only looks random
		Infer:  inferSample,
		NoGrad: "random integer",
	})
}

func inferSample(t *ir.Infer, a *SampleAttrs) {
	x := t.Type(0).Shape
	if !t.Need(len(x) > 0, "C6", "logits of rank 0, expected [.., V]") {
		return
	}
	lead, ids := x[:len(x)-1], x[len(x)-1]
	if t.Has(2) {
		s := t.Type(2).Shape
		t.Need(len(s) == 0 || same(s, lead), "C2", "temperature has shape %v, expected [] or %v", s, lead)
	} else {
		t.Need(a.Temperature >= 0 && !math.IsInf(a.Temperature, 0), "C2", "temperature %g, expected a finite number >= 0", a.Temperature)
	}
	t.Need(!t.Has(1) || !t.Has(3), "C5", "both u and step are given, expected one of them")
	if t.Has(1) {
		t.Need(same(t.Type(1).Shape, lead), "C3", "u has shape %v, expected %v", t.Type(1).Shape, lead)
	}
	if t.Has(3) {
		s := t.Type(3).Shape
		t.Need(!ir.Count(s).Differs(ir.D(1)), "", "step has shape %v, expected one element (C4 of RngUniform)", s)
	}
	needSeed(t, a.Seed)
	countsAxis(t, a.IndexDtype, ids)
	rows, known := ir.Count(lead).Static()
	t.Need(!known || rows == 0 || !ids.Is(0), "C4", "%d rows of 0 logits, expected one or more (C1: nothing is above -inf)", rows)
	t.Out(ir.Type{DType: a.IndexDtype, Shape: append([]ir.Dim{}, lead...)})
}
