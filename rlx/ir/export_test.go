package ir

import "strings"

// ParseAttrText reads what Row.AttrText wrote.
func ParseAttrText(s string) (map[string]string, error) {
	given, _, err := attrsAndTypes(strings.TrimSpace(s) + " : f32[]")
	return given, err
}

// Bytes is about what the packed graph takes in memory.
func (p *Packed) Bytes() int { return cap(p.code) + 16*cap(p.dims) }
