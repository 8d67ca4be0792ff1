package gen

import (
	"bytes"
	"fmt"

	"github.com/rlx-ml/rlx-go/rlx/op"
)

// CodeBooksHeader is the C++ header of the grids of the IQ schemes.
func CodeBooksHeader() []byte {
	var b bytes.Buffer
	b.WriteString(`// Generated from the code books of package op. Do not edit.
//
// Entry e of row r of a grid is levels[codes[r] >> (bits*e) & (1 << bits) - 1].
#pragma once
#include <cstdint>

namespace rlx {
namespace quant {

`)
	for _, g := range op.CodeBooks() {
		fmt.Fprintf(&b, "constexpr int %s_bits = %d;\n", g.Name, g.Bits)
		cList(&b, "int8_t", g.Name+"_levels", g.Levels)
		cList(&b, "uint16_t", g.Name+"_codes", g.Codes)
	}
	cList(&b, "int8_t", "iq4_values", op.IQ4Values[:])
	cList(&b, "int8_t", "fp4_doubled", op.FP4Doubled[:])
	b.WriteString("\n}  // namespace quant\n}  // namespace rlx\n")
	return b.Bytes()
}

func cList[T int8 | uint16](b *bytes.Buffer, ctype, name string, values []T) {
	fmt.Fprintf(b, "constexpr %s %s[%d] = {", ctype, name, len(values))
	for i, v := range values {
		if i%24 == 0 {
			b.WriteString("\n   ")
		}
		fmt.Fprintf(b, " %d,", v)
	}
	b.WriteString("\n};\n")
}
