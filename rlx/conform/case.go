// Package conform is the conformance suite that every backend passes: case files with right answers, computed by other programs, and
// cases made from the rows of the op table, whose answers come from the ref backend.
package conform

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/rlx-ml/rlx-go/rlx"
	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// Case is one line of a case file: an op or a graph, its inputs, and its outputs or the words of its error.
type Case struct {
	Op      string                     `json:"op"`
	Name    string                     `json:"name"`
	Attrs   map[string]json.RawMessage `json:"attrs"`
	Graph   *GraphSpec                 `json:"graph"`
	Inputs  []*Tensor                  `json:"inputs"`
	Outputs []*Tensor                  `json:"outputs"`
	Rtol    *float64                   `json:"rtol"`
	Atol    *float64                   `json:"atol"`
	Error   []string                   `json:"error"`
	Grads   []*Tensor                  `json:"grads"`
	Source  string                     `json:"source"`
}

// GraphSpec is a graph of a case: values are named by strings.
type GraphSpec struct {
	Inputs  []string   `json:"inputs"`
	Nodes   []NodeSpec `json:"nodes"`
	Outputs []string   `json:"outputs"`
}

// NodeSpec is a node of a case's graph.
type NodeSpec struct {
	Op    string                     `json:"op"`
	In    []*string                  `json:"in"`
	Out   []string                   `json:"out"`
	Attrs map[string]json.RawMessage `json:"attrs"`
}

// Skip is a case that was not run, and why.
type Skip struct {
	Reason string
	Kind   string // the kind that the op table lacks, "" for other reasons
}

func (s *Skip) Error() string { return s.Reason }

// Read calls f for every case of a case file, with its line number.
func Read(r io.Reader, f func(line int, c *Case) error) error {
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, 1<<28)
	for line := 1; sc.Scan(); line++ {
		if strings.TrimSpace(sc.Text()) == "" {
			continue
		}
		c := new(Case)
		if err := json.Unmarshal(sc.Bytes(), c); err != nil {
			return fmt.Errorf("line %d: %w", line, err)
		}
		if err := f(line, c); err != nil {
			return err
		}
	}
	return sc.Err()
}

// kinds lists the op kinds that the case needs.
func (c *Case) kinds() []string {
	if c.Graph == nil {
		return []string{c.Op}
	}
	var l []string
	for _, n := range c.Graph.Nodes {
		l = append(l, n.Op)
	}
	return l
}

// needs is kinds with those in sub-graphs.
func (c *Case) needs() []string {
	if c.Graph == nil {
		return append([]string{c.Op}, inAttrs(c.Attrs)...)
	}
	return c.Graph.needs()
}

func (s *GraphSpec) needs() []string {
	var l []string
	for _, n := range s.Nodes {
		l = append(append(l, n.Op), inAttrs(n.Attrs)...)
	}
	return l
}

// inAttrs lists the kinds in the sub-graphs among attributes.
func inAttrs(attrs map[string]json.RawMessage) []string {
	var l []string
	for _, raw := range attrs {
		var s GraphSpec
		if strings.Contains(string(raw), `"nodes"`) && json.Unmarshal(raw, &s) == nil {
			l = append(l, s.needs()...)
		}
	}
	return l
}

// String is the kind and name of the case.
func (c *Case) String() string { return fmt.Sprintf("%s %q", strings.Join(c.kinds(), "+"), c.Name) }

// Run builds, compiles and runs the case. nil is a pass, a *Skip says that it needs a kind that the table lacks or that the backend does
// not support, anything else is a failure. opts choose the backend.
func (c *Case) Run(ctx context.Context, opts ...rlx.Option) error {
	for _, k := range c.needs() {
		if _, err := ir.RowByName(k); err != nil {
			return &Skip{Reason: "kind " + k + " is not in the op table", Kind: k}
		}
	}
	out, err := c.execute(ctx, opts)
	if len(c.Error) > 0 {
		return c.checkError(err)
	}
	var u *rlx.UnsupportedError
	if errors.As(err, &u) {
		return &Skip{Reason: unsupportedReason(u)}
	}
	if err != nil {
		return err
	}
	return c.matches(out)
}

// matches holds outputs against the case's.
func (c *Case) matches(out rlx.Feed) error {
	rtol, atol := 1e-5, 1e-6
	if c.Rtol != nil {
		rtol = *c.Rtol
	}
	if c.Atol != nil {
		atol = *c.Atol
	}
	for i, w := range c.Outputs {
		if w == nil {
			continue
		}
		want, err := w.decode(false)
		if err != nil {
			return fmt.Errorf("bad case: output %d: %w", i, err)
		}
		if err := Compare(out[outputName(i)], want, rtol, atol); err != nil {
			return fmt.Errorf("output %d: %w", i, err)
		}
	}
	return nil
}

func (c *Case) checkError(err error) error {
	if err == nil {
		return fmt.Errorf("no error, expected one with the words %v", c.Error)
	}
	words := c.Error
	var failed *rlx.ExecError
	if errors.As(err, &failed) && failed.Part != "" {
		words = words[:1] // a composed op is named, but the constraint and the numbers are those of the part that found the defect
	}
	for _, w := range words {
		if !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(w)) {
			return fmt.Errorf("the error lacks %q: %w", w, err)
		}
	}
	return nil
}

func outputName(i int) string { return fmt.Sprintf("out%d", i) }

// execute returns the outputs by name, out0 and on.
func (c *Case) execute(ctx context.Context, opts []rlx.Option) (rlx.Feed, error) {
	feed := rlx.Feed{}
	g, err := c.build(feed)
	if err != nil {
		return nil, err
	}
	p, err := rlx.Compile(ctx, g, opts...)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	return p.Run(ctx, feed)
}

// build makes the graph of the case and fills feed with its inputs.
func (c *Case) build(feed rlx.Feed) (*ir.Graph, error) {
	g := ir.NewGraph(c.Name)
	var in []ir.Value
	var tensors []*ir.Tensor
	leaf := c.Graph == nil && (c.Op == "Input" || c.Op == "Param")
	for i, t := range c.Inputs {
		if t == nil {
			in, tensors = append(in, ir.Value{}), append(tensors, nil)
			continue
		}
		x, err := t.decode(false)
		if err != nil {
			return nil, fmt.Errorf("bad case: input %d: %w", i, err)
		}
		tensors = append(tensors, x)
		if !leaf {
			name := fmt.Sprintf("in%d", i)
			feed[name] = x
			in = append(in, g.Input(name, x.DType(), x.Type().Shape))
		}
	}
	out, err := c.nodes(g, in)
	if err != nil {
		return nil, err
	}
	if leaf {
		name, _ := out[0].Node().InputName()
		if feed[name] = tensors[0]; c.Op == "Param" {
			delete(feed, name)
			name, _ = out[0].Node().ParamName()
			if err := g.BindParam(name, tensors[0]); err != nil {
				return nil, err
			}
		}
	}
	for i, v := range out {
		g.Output(outputName(i), v)
	}
	return g, g.Err()
}

func (c *Case) nodes(g *ir.Graph, in []ir.Value) ([]ir.Value, error) {
	if c.Graph == nil {
		return addNode(g, c.Op, c.Attrs, in)
	}
	return c.Graph.nodes(g, in)
}

// nodes adds the graph's nodes to g, with in for its inputs, and returns its outputs.
func (s *GraphSpec) nodes(g *ir.Graph, in []ir.Value) ([]ir.Value, error) {
	env := map[string]ir.Value{}
	if len(in) != len(s.Inputs) {
		return nil, fmt.Errorf("graph takes %d inputs, got %d", len(s.Inputs), len(in))
	}
	for i, name := range s.Inputs {
		env[name] = in[i]
	}
	for _, n := range s.Nodes {
		args := make([]ir.Value, len(n.In))
		for i, name := range n.In {
			if name == nil {
				continue
			}
			v, ok := env[*name]
			if !ok {
				return nil, fmt.Errorf("C9: %s reads undefined value %q", n.Op, *name)
			}
			args[i] = v
		}
		out, err := addNode(g, n.Op, n.Attrs, args)
		if err != nil {
			return nil, err
		}
		for i, name := range n.Out {
			env[name] = out[i]
		}
	}
	var out []ir.Value
	for _, name := range s.Outputs {
		v, ok := env[name]
		if !ok {
			return nil, fmt.Errorf("C9: output reads undefined value %q", name)
		}
		out = append(out, v)
	}
	return out, nil
}

func addNode(g *ir.Graph, kind string, attrs map[string]json.RawMessage, in []ir.Value) ([]ir.Value, error) {
	row, err := ir.RowByName(kind)
	if err != nil {
		return nil, err
	}
	given, graphs := map[string]string{}, map[string]*ir.Graph{}
	for name, raw := range attrs {
		if isGraph(row, name) {
			sub, err := subGraph(name, raw)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", kind, err)
			}
			graphs[name] = sub
			continue
		}
		text, err := attrText(row, name, raw)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", kind, err)
		}
		given[name] = text
	}
	a, err := row.NewAttrsWith(given, graphs)
	if err != nil {
		return nil, err
	}
	n, err := g.Add(row, leafName(a), a, in...)
	if err != nil {
		return nil, err
	}
	return n.Results(), nil
}

func isGraph(row *ir.Row, name string) bool {
	return slices.ContainsFunc(row.Schema, func(a ir.Attr) bool { return a.Name == name && a.Kind == ir.AttrGraph })
}

// subGraph is a graph of the case form, for operands of any types.
func subGraph(name string, raw json.RawMessage) (*ir.Graph, error) {
	s := new(GraphSpec)
	if err := json.Unmarshal(raw, s); err != nil {
		return nil, fmt.Errorf("%s: got %.60s, expected a graph", name, raw)
	}
	return ir.Deferred(name, len(s.Inputs), func(g *ir.Graph, types []ir.Type) error {
		in := make([]ir.Value, len(types))
		for i, t := range types {
			in[i] = g.Input(s.Inputs[i], t.DType, t.Shape)
		}
		out, err := s.nodes(g, in)
		for i, v := range out {
			g.Output(outputName(i), v)
		}
		return err
	}), nil
}

// leafName is the name that an Input or Param declares.
func leafName(attrs any) string {
	switch a := attrs.(type) {
	case *ir.InputAttrs:
		return a.Name
	case *ir.ParamAttrs:
		return a.Name
	}
	return ""
}

// attrText turns the JSON of an attribute into its text form. A string where the row wants a number is an error.
func attrText(row *ir.Row, name string, raw json.RawMessage) (string, error) {
	s := strings.TrimSpace(string(raw))
	kind := ir.AttrUnknown
	for _, a := range row.Schema {
		if a.Name == name {
			kind = a.Kind
		}
	}
	isString := strings.HasPrefix(s, `"`)
	switch kind {
	case ir.AttrTensor:
		var t Tensor
		if err := json.Unmarshal(raw, &t); err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		text, err := t.text()
		if err != nil {
			return "", fmt.Errorf("C1: %s: %w", name, err)
		}
		return text, nil
	case ir.AttrDims:
		return strings.ReplaceAll(s, `"`, ""), nil
	case ir.AttrFloats:
		return strings.ReplaceAll(s, `"`, ""), nil
	case ir.AttrString, ir.AttrEnum, ir.AttrDType:
		if !isString {
			return "", fmt.Errorf("%s: got %s, expected a string", name, s)
		}
	case ir.AttrFloat, ir.AttrNumber:
		if isString && s != `"nan"` && s != `"inf"` && s != `"-inf"` {
			return "", fmt.Errorf("%s: got %s, expected a number", name, s)
		}
	default:
		if isString {
			return "", fmt.Errorf("%s: got %s, expected %s", name, s, kind)
		}
	}
	if isString {
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return "", err
		}
		return text, nil
	}
	return s, nil
}
