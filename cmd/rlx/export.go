package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/onnx"
)

func exportCommand() *cobra.Command {
	var out string
	var external bool
	c := &cobra.Command{
		Use:   "export MODEL --out FILE.onnx [--external]",
		Short: "Write a model as ONNX; nodes without an ONNX form are named",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if out == "" {
				return usageError{errors.New("--out is missing: the file to write")}
			}
			model, err := rlx.Open(args[0])
			if err != nil {
				return err
			}
			weights := onnx.WeightBytes(model.Graph())
			err = export(model, out, external || weights >= onnx.MaxModelBytes)
			var lacks *onnx.UnsupportedError
			if errors.As(err, &lacks) {
				for _, u := range lacks.Items {
					fmt.Fprintf(c.OutOrStdout(), "no ONNX form: %s (node %s)\n", u, u.Node)
				}
				return fmt.Errorf("%s: %d nodes have no ONNX form", args[0], len(lacks.Items))
			}
			if err != nil {
				return err
			}
			nodes := 0
			for _, n := range model.Graph().Nodes {
				if !n.Row.Has(ir.Leaf) {
					nodes++
				}
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "%s: %d nodes, %s of weights\n", out, nodes, size(weights))
			return err
		},
	}
	c.Flags().StringVar(&out, "out", "", "the file to write")
	c.Flags().BoolVar(&external, "external", false, "put the weights into FILE.onnx.data; from 2 GB on that happens anyway")
	return c
}

// export writes the model file, and the file of its weights beside it.
func export(model *rlx.Model, path string, external bool) error {
	var opts []onnx.ExportOption
	var data *file
	if external {
		var err error
		if data, err = create(path + ".data"); err != nil {
			return err
		}
		opts = append(opts, onnx.ExternalData(data, filepath.Base(path)+".data"))
	}
	f, err := create(path)
	if err == nil {
		err = f.done(model.ExportONNX(f, opts...))
	}
	if data != nil {
		err = data.done(err)
	}
	return err
}

// file is a file that is being written under another name, so that a failure leaves nothing half written.
type file struct {
	io.Writer
	buffer *bufio.Writer
	f      *os.File
	path   string
}

func create(path string) (*file, error) {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		var p *fs.PathError
		if errors.As(err, &p) {
			p.Path = path // not that of the other name
		}
		return nil, err
	}
	b := bufio.NewWriterSize(f, 1<<20)
	return &file{b, b, f, path}, nil
}

// done gives the file its name, or removes it where writing failed.
func (f *file) done(err error) error {
	if err == nil {
		err = f.buffer.Flush()
	}
	if err == nil {
		err = f.f.Chmod(0o644)
	}
	if e := f.f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(f.f.Name(), f.path)
	}
	if err != nil {
		os.Remove(f.f.Name())
	}
	return err
}
