package ir

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// The text form of a graph, one node a line:
//
//	graph "classifier" {
//	  %x = Input() {name="x", dtype=f32, shape=[batch, 64]} : f32[batch, 64]
//	  %y = MatMul(%x, %w) : f32[batch, 10]
//	  %t = TopK(%y) {k=2} : f32[batch, 2], i64[batch, 2]
//	  output "best" = %t#1
//	}
//
// A sub-graph is an attribute of the same form, over several lines: {body=graph "step" {, its nodes, and }}.
// Params are written without their data. ParseGraph reads it back.

func (g *Graph) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "graph %q {\n", g.Name)
	for _, n := range g.Nodes {
		types := make([]string, len(n.Types))
		for i, t := range n.Types {
			types[i] = t.String()
		}
		attrs := strings.ReplaceAll(n.Row.Schema.formatAttrs(n.Attrs), "\n", "\n  ") // sub-graphs have lines of their own
		fmt.Fprintf(&b, "  %s = %s(%s)%s : %s\n", nodeRef(n), n.Row.Name, operandText(n.In), attrs, strings.Join(types, ", "))
	}
	for _, o := range g.Outputs {
		fmt.Fprintf(&b, "  output %q = %s\n", o.Name, o.Value)
	}
	b.WriteString("}\n")
	return b.String()
}

// AttrText is the node's attributes that differ from their defaults: {axis=-1, fn=sum}.
func (n *Node) AttrText() string { return strings.TrimSpace(n.Row.Schema.formatAttrs(n.Attrs)) }

func operandText(in []Value) string {
	for len(in) > 0 && in[len(in)-1].IsZero() {
		in = in[:len(in)-1]
	}
	parts := make([]string, len(in))
	for i, v := range in {
		parts[i] = v.String()
	}
	return strings.Join(parts, ", ")
}

// String names the value: %x, %t#1, none.
func (v Value) String() string {
	if v.n == nil {
		return "none"
	}
	if v.i == 0 {
		return nodeRef(v.n)
	}
	return fmt.Sprintf("%s#%d", nodeRef(v.n), v.i)
}

func nodeRef(n *Node) string {
	for i := range len(n.Name) {
		if c := n.Name[i]; !(c == '_' || c == '.' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9') {
			return "%" + strconv.Quote(n.Name)
		}
	}
	return "%" + n.Name
}

func typeText(t Type) string { return t.DType.String() + shapeText(t.Shape) }

func shapeText(s []Dim) string {
	parts := make([]string, len(s))
	for i, d := range s {
		parts[i] = d.String()
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// ShapeText is a shape as text: [batch, 64].
func ShapeText(s []Dim) string { return shapeText(s) }

func parseType(s string) (Type, error) {
	name, rest, ok := strings.Cut(s, "[")
	rest, ok2 := strings.CutSuffix(rest, "]")
	if !ok || !ok2 {
		return Type{}, fmt.Errorf("type %q: expected dtype[dims]", s)
	}
	d, err := ParseDType(name)
	if err != nil {
		return Type{}, err
	}
	t := Type{DType: d, Shape: []Dim{}}
	for _, p := range splitTop(rest) {
		dim, err := ParseDim(p)
		if err != nil {
			return Type{}, err
		}
		t.Shape = append(t.Shape, dim)
	}
	return t, nil
}

// ParseGraph reads the text form of a graph. Types are inferred and must be the written ones.
func ParseGraph(r io.Reader) (*Graph, error) {
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, 1<<28)
	p := graphParser{values: map[string]*Node{}}
	for line := 1; sc.Scan(); line++ {
		text := strings.TrimSpace(sc.Text())
		if text == "" || strings.HasPrefix(text, "//") {
			continue
		}
		first := line
		for depth := braces(text); strings.HasPrefix(text, "%") && depth > 0 && sc.Scan(); line++ { // of a sub-graph
			next := strings.TrimSpace(sc.Text())
			text, depth = text+"\n"+next, depth+braces(next)
		}
		if err := p.line(text); err != nil {
			return nil, fmt.Errorf("line %d: %w", first, err)
		}
	}
	if err := sc.Err(); err != nil {
		return nil, err
	}
	if p.g == nil || !p.closed {
		return nil, fmt.Errorf("truncated: expected graph \"name\" { ... }")
	}
	return p.g, p.g.Err()
}

// braces is how many braces s opens and does not close, outside quotes.
func braces(s string) int {
	depth, quoted := 0, false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{':
			depth++
		case c == '}':
			depth--
		}
	}
	return depth
}

type graphParser struct {
	g      *Graph
	values map[string]*Node
	closed bool
}

func (p *graphParser) line(s string) error {
	switch {
	case p.closed:
		return fmt.Errorf("unexpected text after }: %s", clip(s))
	case p.g == nil:
		name, ok := strings.CutPrefix(s, "graph ")
		name, ok2 := strings.CutSuffix(name, " {")
		name, err := strconv.Unquote(name)
		if !ok || !ok2 || err != nil {
			return fmt.Errorf("expected graph \"name\" {, got %s", clip(s))
		}
		p.g = NewGraph(name)
		return nil
	case s == "}":
		p.closed = true
		return nil
	}
	if rest, ok := strings.CutPrefix(s, "output "); ok {
		quoted, err := strconv.QuotedPrefix(rest)
		if err != nil {
			return fmt.Errorf("output: expected a quoted name, got %s", clip(rest))
		}
		name, _ := strconv.Unquote(quoted)
		ref, ok := strings.CutPrefix(rest[len(quoted):], " = ")
		if !ok {
			return fmt.Errorf("output %q: expected =", name)
		}
		v, err := p.value(ref)
		if err != nil {
			return err
		}
		p.g.Output(name, v)
		return p.g.Err()
	}
	return p.node(s)
}

func (p *graphParser) node(s string) error {
	name, rest, err := p.ref(s)
	if err != nil {
		return err
	}
	rest, ok := strings.CutPrefix(rest, " = ")
	kind, rest, ok2 := strings.Cut(rest, "(")
	end := closing(rest)
	if !ok || !ok2 || end < 0 {
		return fmt.Errorf("expected %%name = Kind(operands), got %s", clip(s))
	}
	row, err := RowByName(kind)
	if err != nil {
		return err
	}
	var in []Value
	for _, o := range splitTop(rest[:end]) {
		v, err := p.value(o)
		if err != nil {
			return err
		}
		in = append(in, v)
	}
	given, types, err := attrsAndTypes(strings.TrimSpace(rest[end+1:]))
	if err != nil {
		return fmt.Errorf("%s: %w", kind, err)
	}
	attrs, err := row.NewAttrs(given)
	if err != nil {
		return err
	}
	if p.values[name] != nil {
		return fmt.Errorf("value %%%s is defined twice", name)
	}
	n, err := p.g.Add(row, name, attrs, in...)
	if err != nil {
		return err
	}
	p.values[name] = n
	if !slices.EqualFunc(n.Types, types, Type.Equal) {
		return fmt.Errorf("%s: inferred types %v, the text says %v", n, n.Types, types)
	}
	return nil
}

// closing is the index of the parenthesis that closes an already opened one.
func closing(s string) int {
	depth, quoted := 1, false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quoted:
			if c == '\\' {
				i++
			} else if c == '"' {
				quoted = false
			}
		case c == '"':
			quoted = true
		case c == '(':
			depth++
		case c == ')':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// attrsAndTypes reads {a=1, b=[2, 3]} : f32[4], i64[4].
func attrsAndTypes(s string) (map[string]string, []Type, error) {
	given := map[string]string{}
	if strings.HasPrefix(s, "{") {
		end := strings.LastIndex(s, "} :")
		if end < 0 {
			return nil, nil, fmt.Errorf("attributes: missing }")
		}
		for _, a := range splitTop(s[1:end]) {
			name, text, ok := strings.Cut(a, "=")
			if !ok {
				return nil, nil, fmt.Errorf("attribute %s: expected name=value", clip(a))
			}
			if _, twice := given[name]; twice {
				return nil, nil, fmt.Errorf("attribute %s is given twice", clip(name))
			}
			given[name] = text
		}
		s = s[end+2:]
	}
	s, ok := strings.CutPrefix(s, ":")
	if !ok {
		return nil, nil, fmt.Errorf("expected : types, got %s", clip(s))
	}
	var types []Type
	for _, t := range splitTop(s) {
		typ, err := parseType(t)
		if err != nil {
			return nil, nil, err
		}
		types = append(types, typ)
	}
	return given, types, nil
}

// ref reads %name or %"quoted name".
func (p *graphParser) ref(s string) (name, rest string, err error) {
	s, ok := strings.CutPrefix(s, "%")
	if !ok {
		return "", "", fmt.Errorf("expected %%name, got %s", clip(s))
	}
	if strings.HasPrefix(s, `"`) {
		quoted, err := strconv.QuotedPrefix(s)
		if err != nil {
			return "", "", err
		}
		name, _ = strconv.Unquote(quoted)
		return name, s[len(quoted):], nil
	}
	end := strings.IndexAny(s, " #,)")
	if end < 0 {
		end = len(s)
	}
	return s[:end], s[end:], nil
}

func (p *graphParser) value(s string) (Value, error) {
	if s == "none" {
		return Value{}, nil
	}
	name, rest, err := p.ref(s)
	if err != nil {
		return Value{}, err
	}
	n := p.values[name]
	if n == nil {
		return Value{}, fmt.Errorf("value %%%s is undefined", name)
	}
	i := 0
	if num, ok := strings.CutPrefix(rest, "#"); ok {
		if i, err = strconv.Atoi(num); err != nil {
			return Value{}, err
		}
	} else if rest != "" {
		return Value{}, fmt.Errorf("unexpected %s", clip(rest))
	}
	if i < 0 || i >= len(n.Types) {
		return Value{}, fmt.Errorf("%s has %d results, asked for %d", n, len(n.Types), i)
	}
	return n.Out(i), nil
}

// AttrText is attrs, a pointer to the row's struct, as text: " {axis=-1}", empty when all are defaults.
func (r *Row) AttrText(attrs any) string { return r.Schema.formatAttrs(attrs) }
