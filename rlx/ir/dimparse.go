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

// maxDimDepth bounds the recursion of a hostile text, and the factors of a product; an expression of maxDimSize parts stays below it.
const maxDimDepth = maxDimSize

// fits is out, the result of d and o, or an error where it is too large for an expression.
func fits(out, d, o Dim) (Dim, error) {
	if name, ok := out.Symbol(); ok && strings.HasPrefix(name, largeSymbol) && out != d && out != o {
		return Dim{}, fmt.Errorf("expression has more than %d parts", maxDimSize)
	}
	return out, nil
}

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
	ts := d.terms() // summed once at the end, or a long text takes quadratic time
	for err == nil {
		negative := false
		switch {
		case p.take('+'):
		case p.take('-'):
			negative = true
		default:
			if out := sum(ts); out.size() <= maxDimSize {
				return out, nil
			}
			return Dim{}, fmt.Errorf("expression has more than %d parts", maxDimSize)
		}
		if d, err = p.product(depth); negative {
			d = d.Mul(D(-1))
		}
		ts = d.appendTerms(ts)
	}
	return Dim{}, err
}

func (p *dimParser) product(depth int) (Dim, error) {
	d, err := p.atom(depth)
	for n := 1; err == nil && p.take('*'); n++ {
		if n > maxDimDepth {
			return Dim{}, fmt.Errorf("product of more than %d factors", maxDimDepth)
		}
		var r Dim
		if r, err = p.atom(depth); err == nil {
			d, err = fits(d.Mul(r), d, r)
		}
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
			p.rest = p.rest[1:]
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
		return fits(a.FloorDiv(b), a, b)
	case "ceildiv":
		return fits(a.CeilDiv(b), a, b)
	case "min":
		return fits(a.Min(b), a, b)
	case "max":
		return fits(a.Max(b), a, b)
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
