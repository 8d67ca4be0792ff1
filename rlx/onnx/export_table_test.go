package onnx

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rlx-ml/rlx-go/rlx/ir"
	"github.com/rlx-ml/rlx-go/rlx/op"
)

// TestExportRows wants every kind to have operators, a composition, or the reason why there is neither.
func TestExportRows(t *testing.T) {
	kinds := map[string]bool{}
	for _, k := range ir.Rows() {
		kinds[k.Name] = true
		r, ok := exportTable[k.Name]
		switch {
		case !ok && !k.Composite():
			t.Errorf("%s has neither a row nor a composition", k.Name)
		case r.emit == nil && r.lower == nil && !k.Composite() && r.reason == "":
			t.Errorf("%s has neither operators nor a composition nor a reason", k.Name)
		case r.reason != "" && (r.emit != nil || r.lower != nil):
			t.Errorf("%s has a reason why there is no form, and a form", k.Name)
		}
	}
	for name := range exportTable {
		if !kinds[name] {
			t.Errorf("row %s is for no kind of the op table", name)
		}
	}
}

// TestExportUnsupported wants every node without a form in one error, by the name that the user gave it.
func TestExportUnsupported(t *testing.T) {
	g := ir.NewGraph("g")
	z := g.Input("z", ir.C64, ir.Dims(2))
	x := g.Input("x", ir.F64, ir.Dims(2))
	a := op.ComplexNormSq(z).Named("norm")
	b := op.Fma(x, x, x).Named("fused")
	g.Output("y", op.Add(a, 1.0))
	g.Output("w", op.Exp(b))
	err := Export(g, &bytes.Buffer{})
	var u *UnsupportedError
	if !errors.As(err, &u) || len(u.Items) != 2 {
		t.Fatalf("got %v, expected two nodes", err)
	}
	for i, want := range []Unsupported{{Op: "ComplexNormSq", Node: "norm"}, {Op: "Fma", Node: "fused"}} {
		if u.Items[i].Op != want.Op || u.Items[i].Node != want.Node || u.Items[i].Reason == "" {
			t.Errorf("item %d is %+v, expected %s %s and a reason", i, u.Items[i], want.Op, want.Node)
		}
	}
}

// TestExportNames keeps the names of inputs, weights, nodes and outputs, and writes symbolic dims as dim_params.
func TestExportNames(t *testing.T) {
	g := ir.NewGraph("net")
	x := g.Input("x", ir.F32, []ir.Dim{ir.Sym("batch"), ir.Sym("seq"), ir.D(4)})
	w := g.Param("weight", ir.New(make([]float32, 8), 4, 2))
	h := op.MatMul(x, w).Named("hidden")
	y := op.Reshape(h, ir.Sym("batch").Mul(ir.Sym("seq")), ir.D(2)).Named("flat")
	g.Output("h", h)
	g.Output("flat", y)
	g.Output("again", y)
	g.Output("same", x)
	g.Output("w", w)
	m := encoded(t, g)
	if m.ProducerName != "rlx" || m.Graph.Name != "net" {
		t.Errorf("producer %q, graph %q", m.ProducerName, m.Graph.Name)
	}
	if v := m.Graph.Inputs[0]; v.Name != "x" || v.Shape[0].Param != "batch" || v.Shape[1].Param != "seq" || v.Shape[2].Value != 4 {
		t.Errorf("input is %+v", v)
	}
	if v := m.Graph.Outputs[1]; v.Shape[0].Param != "batch*seq" {
		t.Errorf("output is %+v", v)
	}
	nodes := map[string]string{}
	for _, n := range m.Graph.Nodes {
		nodes[n.Name] = n.OpType + " " + strings.Join(n.Input, ",") + " " + n.Output[0]
	}
	for name, want := range map[string]string{
		"hidden": "MatMul x,weight h", "again": "Identity flat again", "same": "Identity x same", "w": "Identity weight w",
	} {
		if nodes[name] != want {
			t.Errorf("node %s is %q, expected %q", name, nodes[name], want)
		}
	}
}

// TestExternalDataExport writes weights to another file and reads them from there.
func TestExternalDataExport(t *testing.T) {
	g := ir.NewGraph("g")
	big := make([]float32, 3000)
	big[2999] = 7
	g.Output("y", op.Add(g.Param("a", ir.New(big, 3000)), g.Param("b", ir.New(big, 3000))))
	g.Output("small", g.Param("c", ir.New([]float32{1}, 1)))
	dir := t.TempDir()
	var model, data bytes.Buffer
	if err := Export(g, &model, ExternalData(&data, "m.data")); err != nil {
		t.Fatal(err)
	}
	if want := 4096*3 + 12000; data.Len() != want { // the second weight begins on a page of its own
		t.Errorf("%d bytes of data, expected %d", data.Len(), want)
	}
	write(t, dir, "m.data", data.Bytes())
	write(t, dir, "m.onnx", model.Bytes())
	again, err := Import(model.Bytes(), WithFile(dir+"/m.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	if p := again.ParamData("b"); p == nil || p.Float(2999) != 7 {
		t.Errorf("weight b is %v", p)
	}
	if err := Export(g, &model, ExternalData(&data, "../m.data")); err == nil {
		t.Error("a location outside the model's folder is accepted")
	}
}

// encoded is the model that the export of g decodes to.
func encoded(t *testing.T, g *ir.Graph) *ModelProto {
	t.Helper()
	var b bytes.Buffer
	if err := Export(g, &b); err != nil {
		t.Fatal(err)
	}
	m, err := Decode(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func write(t *testing.T, dir, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
		t.Fatal(err)
	}
}
