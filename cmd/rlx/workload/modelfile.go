package workload

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/rlx-ml/rlx-go/internal/golden"
	"github.com/rlx-ml/rlx-go/rlx"
)

// models lists real models with the inputs they are measured on (golden.Input.Fill has the formulas); ort_models.py reads the same file.
//
//go:embed models.json
var modelList []byte

type modelFile struct {
	Name   string                  `json:"name"`
	File   string                  `json:"file"` // under golden.EnvModels
	Inputs map[string]golden.Input `json:"inputs"`
}

// modelFiles are the models of the folder that golden.EnvModels names. Nobody counted their flop.
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
	path, why := golden.ModelPath(m.File)
	if why != "" {
		return nil, errors.New(why)
	}
	feed, err := (&golden.Case{Inputs: m.Inputs}).Feed(0)
	if err != nil {
		return nil, fmt.Errorf("models.json: %s: %w", m.Name, err)
	}
	model, err := rlx.Open(path, rlx.For(feed))
	if err != nil {
		return nil, err
	}
	for _, name := range model.Bound() {
		delete(feed, name)
	}
	return &Case{Graph: model.Graph(), Feed: feed}, nil
}
