package ir

import (
	"fmt"
	"strconv"
	"strings"
)

// ParseDim reads the text form of a dim: integers, symbol names, + - *, parentheses, floordiv(a, b), ceildiv, min and max.
func ParseDim(s string) (Dim, error) {
	p := dimParser{rest: s}
	d, err := p.sum(0)
	if err == nil && p.peek() != 0 {
		err = fmt.Errorf("unexpected %q", p.rest)
	}
	if err != nil {
		return Dim{}, fmt.Errorf("dim %q: %w", s, err)
	}
	return d, nil
}

// maxDimDepth bounds the recursion of a hostile text.
const maxDimDepth = 100

type dimParser struct{ rest string }

func (p *dimParser) peek() byte {
	p.rest = strings.TrimLeft(p.rest, " ")
	if p.rest == "" {
		return 0
	}
	return p.rest[0]
}

func (p *dimParser) take(c byte) bool {
	if p.peek() != c {
		return false
	}
	p.rest = p.rest[1:]
	return true
}

func (p *dimParser) sum(depth int) (Dim, error) {
	d, err := p.product(depth)
	for err == nil {
		var r Dim
		switch {
		case p.take('+'):
			r, err = p.product(depth)
			d = d.Add(r)
		case p.take('-'):
			r, err = p.product(depth)
			d = d.Sub(r)
		default:
			return d, nil
		}
	}
	return Dim{}, err
}

func (p *dimParser) product(depth int) (Dim, error) {
	d, err := p.atom(depth)
	for err == nil && p.take('*') {
		var r Dim
		r, err = p.atom(depth)
		d = d.Mul(r)
	}
	return d, err
}

func (p *dimParser) atom(depth int) (Dim, error) {
	if depth > maxDimDepth {
		return Dim{}, fmt.Errorf("nested deeper than %d", maxDimDepth)
	}
	c := p.peek()
	switch {
	case c == '(':
		p.take('(')
		d, err := p.sum(depth + 1)
		if err == nil && !p.take(')') {
			err = fmt.Errorf("missing )")
		}
		return d, err
	case c == '-' || c >= '0' && c <= '9':
		n := 1
		for n < len(p.rest) && p.rest[n] >= '0' && p.rest[n] <= '9' {
			n++
		}
		if p.rest[:n] == "-" { // -seq
			p.take('-')
			d, err := p.atom(depth + 1)
			return d.Mul(D(-1)), err
		}
		v, err := strconv.ParseInt(p.rest[:n], 10, 64)
		p.rest = p.rest[n:]
		return D(v), err
	case symbolByte(c):
		n := 1
		for n < len(p.rest) && symbolByte(p.rest[n]) {
			n++
		}
		name := p.rest[:n]
		p.rest = p.rest[n:]
		if p.peek() == '(' {
			return p.call(name, depth+1)
		}
		return Sym(name), nil
	}
	return Dim{}, fmt.Errorf("expected a number or a symbol at %q", p.rest)
}

func (p *dimParser) call(name string, depth int) (Dim, error) {
	p.take('(')
	a, err := p.sum(depth)
	if err != nil {
		return Dim{}, err
	}
	if !p.take(',') {
		return Dim{}, fmt.Errorf("%s: expected two operands", name)
	}
	b, err := p.sum(depth)
	if err != nil {
		return Dim{}, err
	}
	if !p.take(')') {
		return Dim{}, fmt.Errorf("%s: missing )", name)
	}
	switch name {
	case "floordiv":
		return a.FloorDiv(b), nil
	case "ceildiv":
		return a.CeilDiv(b), nil
	case "min":
		return a.Min(b), nil
	case "max":
		return a.Max(b), nil
	}
	return Dim{}, fmt.Errorf("unknown function %s", name)
}

func symbolByte(c byte) bool {
	return c == '_' || c == '.' || c == '$' || c == '?' || c == '#' || c >= 0x80 ||
		c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// SymbolName makes name usable as a symbol: bytes that the text form of dims uses for itself become underscores.
func SymbolName(name string) string {
	b := []byte(name)
	for i, c := range b {
		if !symbolByte(c) {
			b[i] = '_'
		}
	}
	if len(b) == 0 || b[0] >= '0' && b[0] <= '9' {
		return "_" + string(b)
	}
	return string(b)
}
