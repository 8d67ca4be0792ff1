package onnx

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// looksLikeModel reports whether what lies before a decoding error is evidence enough that the file was meant to be a
// model: an IR version and one more field of ModelProto, if only the tag of the field that failed.
func (d *decoder) looksLikeModel(failedAt int64) bool {
	hasVersion, others := false, 0
	for pos := 0; pos < len(d.data); {
		f, after, err := d.next(pos, len(d.data))
		if !modelSchema.known(f.num) || check(modelSchema.fields[f.num].kind, f.typ) != nil {
			// Models have no other fields of their own; one that is damaged by now has shown its two.
			return hasVersion && others > 0
		}
		if f.num == 1 {
			hasVersion = hasVersion || err == nil && f.v > 0 && f.v < 1000
		} else {
			others++
		}
		if err != nil || int64(after) > failedAt {
			break
		}
		pos = after
	}
	return hasVersion && others > 0
}

// notONNX makes the error for bytes that are no model.
func notONNX(data []byte, irVersion int64, hasGraph bool, cause *DecodeError) *DecodeError {
	found := describe(data)
	switch {
	case found != "" || cause != nil:
	case hasGraph:
		found = "a message with a graph but no ir_version"
	case irVersion > 0:
		found = fmt.Sprintf("ir_version %d but no graph", irVersion)
	}
	if found == "" {
		found = fmt.Sprintf("bytes that begin % x", data[:min(len(data), 8)])
	}
	at := int64(0)
	if cause != nil {
		at = cause.Offset
	}
	return &DecodeError{Offset: at, Field: modelSchema.name, Err: fmt.Errorf("%w: found %s", ErrNotONNX, found)}
}

// describe names a well-known kind of file by its first bytes; "" when it knows none.
func describe(data []byte) string {
	if len(data) == 0 {
		return "an empty file"
	}
	for _, m := range [...]struct {
		at    int
		magic string
		what  string
	}{
		{0, "GGUF", "a GGUF file"},
		{0, "PK\x03\x04", "a ZIP archive (.pt, .npz and .mlpackage.zip files are ZIP archives)"},
		{0, "\x1f\x8b", "gzip-compressed data"},
		{0, "\x28\xb5\x2f\xfd", "zstd-compressed data"},
		{0, "\x89HDF\r\n\x1a\n", "an HDF5 file"},
		{0, "\x93NUMPY", "a NumPy .npy file"},
		{0, "\x80\x02", "a Python pickle"},
		{0, "\x7fELF", "an ELF binary"},
		{0, "version https://git-lfs", "a Git LFS pointer; the model itself has not been downloaded"},
		{4, "TFL3", "a TensorFlow Lite model"},
		{4, "ORTM", "an ONNX Runtime .ort model"},
		{8, "{\"", "a safetensors file"},
	} {
		if len(data) >= m.at && bytes.HasPrefix(data[m.at:], []byte(m.magic)) {
			return m.what
		}
	}
	if head := data[:min(len(data), 64)]; isText(head) {
		return fmt.Sprintf("text that begins %q", head[:min(len(head), 24)])
	}
	return ""
}

// isText accepts UTF-8 without control characters; a rune cut off at the end is forgiven.
func isText(b []byte) bool {
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n == 1 {
			return len(b) < utf8.UTFMax && !utf8.FullRune(b)
		}
		if r < ' ' && r != '\n' && r != '\r' && r != '\t' {
			return false
		}
		b = b[n:]
	}
	return true
}
