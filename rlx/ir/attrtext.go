package ir

import (
	"encoding"
	"encoding/base64"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// Attributes have one text form, which the graph text, the op docs and the case files (JSON values, unquoted) share:
// 5, 1e-5, true, gelu_tanh, f32, [1, 2*seq, -1]. A tensor is dtype[shape]:base64.

func (a Attr) format(f reflect.Value) string {
	switch v := f.Interface().(type) {
	case DType:
		return v.String()
	case Number:
		return v.String()
	case *int64:
		if v == nil {
			return "nil"
		}
		return strconv.FormatInt(*v, 10)
	case *Tensor:
		if v == nil {
			return "nil"
		}
		return fmt.Sprintf("%s:%s", typeText(v.Type()), base64.StdEncoding.EncodeToString(v.Bytes()))
	case []Dim:
		if v == nil && !a.Required {
			return "nil"
		}
		return shapeText(v)
	case *Graph:
		switch {
		case v == nil:
			return "nil"
		case v.build != nil:
			return fmt.Sprintf("graph %q of %d inputs, not built yet", v.Name, v.arity)
		}
		return strings.TrimSpace(v.String())
	}
	switch f.Kind() {
	case reflect.Float64:
		return formatFloat(f.Float())
	case reflect.String:
		if a.Kind == AttrString {
			return strconv.Quote(f.String())
		}
		return f.String()
	case reflect.Slice:
		if f.IsNil() && !a.Required {
			return "nil"
		}
		if m, ok := f.Interface().(encoding.TextMarshaler); ok {
			if text, err := m.MarshalText(); err == nil {
				return string(text)
			}
		}
		parts := make([]string, f.Len())
		for i := range parts {
			parts[i] = a.format(f.Index(i))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	return fmt.Sprint(f.Interface())
}

// parse sets f from its text form.
func (a Attr) parse(f reflect.Value, s string) error {
	if !a.Required && (s == "nil" || s == "" && a.Kind == AttrDType) {
		f.SetZero()
		return nil
	}
	bad := func(err error) error {
		if err == nil || errors.Is(err, strconv.ErrSyntax) || errors.Is(err, strconv.ErrRange) {
			err = errors.New("wrong type or value")
		}
		return fmt.Errorf("%s: got %s, expected %s: %w", a.Name, clip(s), a.Kind, err)
	}
	switch a.Kind {
	case AttrInt, AttrOptInt:
		v, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return bad(err)
		}
		if a.Kind == AttrOptInt {
			f.Set(reflect.ValueOf(&v))
		} else {
			f.SetInt(v)
		}
	case AttrUint:
		v, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			return bad(err)
		}
		f.SetUint(v)
	case AttrFloat:
		v, err := strconv.ParseFloat(s, 64)
		if err != nil && !errors.Is(err, strconv.ErrRange) {
			return bad(err)
		}
		f.SetFloat(v)
	case AttrBool:
		switch s {
		case "true":
			f.SetBool(true)
		case "false":
			f.SetBool(false)
		default:
			return bad(nil)
		}
	case AttrEnum:
		f.SetString(s)
	case AttrString:
		if u, err := strconv.Unquote(s); err == nil {
			s = u
		}
		f.SetString(s)
	case AttrDType:
		d, err := ParseDType(s)
		if err != nil {
			if a.Constraint != "" {
				return fmt.Errorf("%s: %w", a.Constraint, err)
			}
			return fmt.Errorf("%s: %w", a.Name, err)
		}
		f.Set(reflect.ValueOf(d))
	case AttrNumber:
		n, err := ParseNumber(s)
		if err != nil {
			return bad(err)
		}
		f.Set(reflect.ValueOf(n))
	case AttrTensor:
		t, err := parseTensorText(s)
		if err != nil {
			return bad(err)
		}
		f.Set(reflect.ValueOf(t))
	case AttrGraph:
		g, err := ParseGraph(strings.NewReader(s))
		if err != nil {
			return fmt.Errorf("%s: %w", a.Name, err)
		}
		f.Set(reflect.ValueOf(g))
	case AttrInts, AttrFloats, AttrDims:
		return a.parseList(f, s, bad)
	default:
		return bad(nil)
	}
	return nil
}

func (a Attr) parseList(f reflect.Value, s string, bad func(error) error) error {
	if p, ok := f.Addr().Interface().(encoding.TextUnmarshaler); ok {
		if err := p.UnmarshalText([]byte(s)); err != nil {
			return fmt.Errorf("%s: %w", a.Name, err)
		}
		return nil
	}
	inner, ok := strings.CutPrefix(strings.TrimSpace(s), "[")
	inner, ok2 := strings.CutSuffix(inner, "]")
	if !ok || !ok2 {
		return bad(nil)
	}
	parts := splitTop(inner)
	list := reflect.MakeSlice(f.Type(), len(parts), len(parts))
	for i, p := range parts {
		switch e := list.Index(i); a.Kind {
		case AttrDims:
			d, err := ParseDim(p)
			if err != nil {
				return bad(err)
			}
			e.Set(reflect.ValueOf(d))
		case AttrFloats:
			v, err := strconv.ParseFloat(p, 64)
			if err != nil {
				return bad(err)
			}
			e.SetFloat(v)
		default:
			v, err := strconv.ParseInt(p, 10, 64)
			if err != nil {
				return bad(err)
			}
			e.SetInt(v)
		}
	}
	f.Set(list)
	return nil
}

// splitTop splits at the commas that stand outside brackets, parentheses, braces and quotes. Only plain space is trimmed: a symbol may
// end in a Unicode one.
func splitTop(s string) []string {
	var parts []string
	depth, start, quoted := 0, 0, false
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
		case c == '(' || c == '[' || c == '{':
			depth++
		case c == ')' || c == ']' || c == '}':
			depth--
		case c == ',' && depth == 0:
			parts = append(parts, strings.Trim(s[start:i], " \t"))
			start = i + 1
		}
	}
	if last := strings.Trim(s[start:], " \t"); last != "" || len(parts) > 0 {
		parts = append(parts, last)
	}
	return parts
}

func parseTensorText(s string) (*Tensor, error) {
	head, data, ok := strings.Cut(s, ":")
	if !ok {
		return nil, errors.New("expected dtype[shape]:base64")
	}
	t, err := parseType(head)
	if err != nil {
		return nil, err
	}
	shape, ok := StaticShape(t.Shape)
	if !ok {
		return nil, errors.New("a tensor has static dims")
	}
	b, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return nil, err
	}
	return FromBytes(t.DType, shape, b)
}

func clip(s string) string {
	if len(s) > 60 {
		return s[:57] + "..."
	}
	return s
}

// formatAttrs writes the attributes that differ from their defaults: {axis=-1, fn=sum}.
func (s Schema) formatAttrs(attrs any) string {
	if len(s) == 0 {
		return ""
	}
	v := reflect.ValueOf(attrs).Elem()
	def := reflect.New(v.Type()).Elem()
	var parts []string
	for _, a := range s {
		text := a.format(v.Field(a.field))
		if !a.Required && a.parse(def.Field(a.field), a.Default) == nil && a.format(def.Field(a.field)) == text {
			continue
		}
		parts = append(parts, a.Name+"="+text)
	}
	if len(parts) == 0 {
		return ""
	}
	return " {" + strings.Join(parts, ", ") + "}"
}

// fill sets the attributes named in given (text forms) and the defaults of the others. An unknown name and a missing required
// attribute are errors. Sub-graphs may come as they are.
func (s Schema) fill(attrs reflect.Value, given map[string]string, graphs map[string]*Graph) error {
	left := len(given)
	for _, a := range s {
		if g := graphs[a.Name]; g != nil && a.Kind == AttrGraph {
			attrs.Field(a.field).Set(reflect.ValueOf(g))
			continue
		}
		text, ok := given[a.Name]
		switch {
		case ok:
			left--
		case a.Required:
			return fmt.Errorf("%s: required attribute is missing, expected %s", a.Name, a.Kind)
		default:
			text = a.Default
		}
		if err := a.parse(attrs.Field(a.field), text); err != nil {
			return err
		}
	}
	if left > 0 {
		for name := range given {
			if !s.has(name) {
				return fmt.Errorf("%s: unknown attribute, expected one of %s", name, s.names())
			}
		}
	}
	return nil
}

func (s Schema) has(name string) bool {
	for _, a := range s {
		if a.Name == name {
			return true
		}
	}
	return false
}

func (s Schema) names() string {
	var l []string
	for _, a := range s {
		l = append(l, a.Name)
	}
	return strings.Join(l, " ")
}
