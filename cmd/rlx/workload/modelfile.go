package workload

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/rlx-ml/rlx-go/rlx"
)

// EnvModels names the folder that testdata/models/fetch.py filled.
const EnvModels = "RLX_MODELS"

// models lists real models with the inputs they are measured on; ort_models.py reads the same file.
//
//go:embed models.json
var modelList []byte

type modelFile struct {
	Name   string                `json:"name"`
	File   string                `json:"file"` // under EnvModels
	Inputs map[string]modelInput `json:"inputs"`
}

// modelInput is a tensor by a formula. With h = hash32(i, seed), element i is lo + (hi-lo) * (h>>8) / 2^24 of a float32, lo + h mod (hi-lo) of
// an integer; lo where hi is no greater.
type modelInput struct {
	DType string  `json:"dtype"`
	Shape []int   `json:"shape"`
	Lo    float64 `json:"lo"`
	Hi    float64 `json:"hi"`
	Seed  uint32  `json:"seed"`
}

// modelFiles are the models of the folder that EnvModels names. Nobody counted their flop.
func modelFiles() []Workload {
	var list []modelFile
	if err := json.Unmarshal(modelList, &list); err != nil {
		return []Workload{{Name: "model.onnx", open: func() (*Case, error) { return nil, fmt.Errorf("models.json: %w", err) }}}
	}
	l := make([]Workload, len(list))
	for i, m := range list {
		l[i] = Workload{Name: "model.onnx." + m.Name, open: m.open, Note: "max_err: against the f32 interpreter"}
	}
	return l
}

func (m modelFile) open() (*Case, error) {
	dir := os.Getenv(EnvModels)
	if dir == "" {
		return nil, fmt.Errorf("%s is not set: run python3 testdata/models/fetch.py DIR, then set it to DIR", EnvModels)
	}
	feed := rlx.Feed{}
	for name, in := range m.Inputs {
		t, err := in.tensor()
		if err != nil {
			return nil, fmt.Errorf("models.json: %s: input %s: %w", m.Name, name, err)
		}
		feed[name] = t
	}
	model, err := rlx.Open(filepath.Join(dir, filepath.FromSlash(m.File)), rlx.For(feed))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: run python3 testdata/models/fetch.py %s (--with ocrv5 for ocrv5_*)", err, dir)
	}
	if err != nil {
		return nil, err
	}
	for _, name := range model.Bound() {
		delete(feed, name)
	}
	return &Case{Graph: model.Graph(), Feed: feed}, nil
}

func (in modelInput) tensor() (*rlx.Tensor, error) {
	n := count(in.Shape)
	switch in.DType {
	case "float32":
		return rlx.New(fill(n, func(h uint32) float32 { return float32(in.Lo + (in.Hi-in.Lo)*float64(h>>8)/(1<<24)) }, in.Seed), in.Shape...), nil
	case "int32":
		return rlx.New(fill(n, func(h uint32) int32 { return int32(in.whole(h)) }, in.Seed), in.Shape...), nil
	case "int64":
		return rlx.New(fill(n, in.whole, in.Seed), in.Shape...), nil
	}
	return nil, fmt.Errorf("dtype %q, expected float32, int32 or int64", in.DType)
}

func (in modelInput) whole(h uint32) int64 {
	if in.Hi <= in.Lo {
		return int64(in.Lo)
	}
	return int64(in.Lo) + int64(h)%int64(in.Hi-in.Lo)
}

func fill[T any](n int, f func(h uint32) T, seed uint32) []T {
	v := make([]T, n)
	for i := range v {
		v[i] = f(hash32(uint32(i), seed))
	}
	return v
}

// hash32 is element i of the stream that seed names; a bijection of i for each seed.
func hash32(i, seed uint32) uint32 {
	h := i + seed*0x9E3779B9
	h ^= h >> 16
	h *= 0x7FEB352D
	h ^= h >> 15
	h *= 0x846CA68B
	return h ^ h>>16
}
