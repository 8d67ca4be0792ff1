package op

// intType is an integer dtype. Its values travel as int64: sign-extended if signed, zero-extended if not, and the bits of a u64
// as they are.
type intType struct {
	bits   uint
	signed bool
}

// wrap keeps the low bits of v.
func (t intType) wrap(v int64) int64 {
	s := 64 - t.bits
	if t.signed {
		return v << s >> s
	}
	return int64(uint64(v) << s >> s)
}

func fromBool(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func intLess(a, b int64, t intType) bool {
	if t.signed {
		return a < b
	}
	return uint64(a) < uint64(b)
}

func intIdentity(a, _ int64, t intType) int64 { return a }
func intNeg(a, _ int64, t intType) int64      { return t.wrap(-a) }
func intNot(a, _ int64, t intType) int64      { return t.wrap(^a) }
func intSquare(a, _ int64, t intType) int64   { return t.wrap(a * a) }
func intRelu(a, _ int64, t intType) int64     { return intMax(a, 0, t) }
func intRelu6(a, _ int64, t intType) int64    { return intMin(intMax(a, 0, t), 6, t) }
func intAdd(a, b int64, t intType) int64      { return t.wrap(a + b) }
func intSub(a, b int64, t intType) int64      { return t.wrap(a - b) }
func intMul(a, b int64, t intType) int64      { return t.wrap(a * b) }
func intAnd(a, b int64, t intType) int64      { return a & b }
func intOr(a, b int64, t intType) int64       { return a | b }
func intXor(a, b int64, t intType) int64      { return a ^ b }

func intAbs(a, _ int64, t intType) int64 {
	if t.signed && a < 0 {
		return t.wrap(-a)
	}
	return a
}

func intSign(a, _ int64, t intType) int64 {
	return fromBool(intLess(0, a, t)) - fromBool(intLess(a, 0, t))
}

func intMax(a, b int64, t intType) int64 {
	if intLess(a, b, t) {
		return b
	}
	return a
}

func intMin(a, b int64, t intType) int64 {
	if intLess(b, a, t) {
		return b
	}
	return a
}

// intDiv is the quotient toward zero; 0 for b = 0. Go defines MIN / -1 as MIN.
func intDiv(a, b int64, t intType) int64 {
	switch {
	case b == 0:
		return 0
	case t.signed:
		return t.wrap(a / b)
	}
	return int64(uint64(a) / uint64(b))
}

// intMod is the rest of intDiv, so that q*b + r == a for every pair.
func intMod(a, b int64, t intType) int64 { return t.wrap(a - intDiv(a, b, t)*b) }

func intFloorDiv(a, b int64, t intType) int64 {
	q, r := intDiv(a, b, t), intMod(a, b, t)
	if t.signed && b != 0 && r != 0 && (r < 0) != (b < 0) {
		q--
	}
	return q
}

func intFloorMod(a, b int64, t intType) int64 { return t.wrap(a - intFloorDiv(a, b, t)*b) }

func intPow(a, b int64, t intType) int64 {
	if t.signed && b < 0 {
		switch {
		case a == 1, a == -1 && b&1 == 0:
			return 1
		case a == -1:
			return -1
		}
		return 0
	}
	r := int64(1)
	for n := uint64(b); n != 0; n >>= 1 {
		if n&1 != 0 {
			r *= a
		}
		a *= a
	}
	return t.wrap(r)
}

func intShl(a, b int64, t intType) int64 {
	if uint64(b) >= uint64(t.bits) {
		return 0
	}
	return t.wrap(a << uint(b))
}

func intShr(a, b int64, t intType) int64 {
	switch {
	case uint64(b) < uint64(t.bits) && t.signed:
		return a >> uint(b)
	case uint64(b) < uint64(t.bits):
		return int64(uint64(a) >> uint(b))
	case t.signed:
		return a >> 63
	}
	return 0
}
