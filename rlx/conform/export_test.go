package conform

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/onnx"
)

// TestExportCases exports the graph of every case that ONNX has a form for, reads the export and runs that. RLX_EXPORT_DIR names a folder
// that gets the models: make verify-onnx runs them elsewhere.
func TestExportCases(t *testing.T) {
	files, err := filepath.Glob("../../testdata/cases/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatalf("no case files: %v", err)
	}
	defer Hold(t.Context(), rlx.On("ref"))()
	passed, noForm := 0, map[string]int{}
	for _, path := range files {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(path), ".jsonl")
		err = Read(f, func(line int, c *Case) error {
			err := runExport(t, c, filepath.Join("case", name, fmt.Sprint(line)))
			var lacks *onnx.UnsupportedError
			var skip *Skip
			switch {
			case errors.As(err, &lacks):
				for _, u := range lacks.Items {
					noForm[u.String()]++
				}
			case errors.As(err, &skip):
			case err != nil:
				t.Errorf("%s:%d: %s: %v", filepath.Base(path), line, c, err)
			default:
				passed++
			}
			return nil
		})
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d exports pass", passed)
	for why, n := range noForm {
		t.Logf("no ONNX form: %d: %s", n, why)
	}
}

// runExport is Run of what the importer reads of the export. Cases of errors, of random numbers and of kinds that the table lacks are
// skipped.
func runExport(t *testing.T, c *Case, dir string) error {
	for _, k := range c.needs() {
		row, err := ir.RowByName(k)
		if err != nil || len(c.Error) > 0 {
			return &Skip{Reason: "no result", Kind: k}
		}
		if row.Has(ir.Random) {
			return &Skip{Reason: "random numbers", Kind: k}
		}
	}
	feed := rlx.Feed{}
	g, err := c.build(feed)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := rlx.ExportONNX(g, &b); err != nil {
		return err
	}
	if root := os.Getenv("RLX_EXPORT_DIR"); root != "" {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(root, dir, "model.onnx"), b.Bytes(), 0o644); err != nil {
			return err
		}
	}
	m, err := rlx.OpenReader("export", bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		return fmt.Errorf("the export cannot be read: %w", err)
	}
	p, err := m.Compile(t.Context(), rlx.On("ref"))
	if err != nil {
		return err
	}
	defer p.Close()
	out, err := p.Run(t.Context(), feed)
	if err != nil {
		return err
	}
	return c.matches(out)
}
