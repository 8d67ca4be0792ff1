package ir_test

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	. "github.com/rlx-ml/rlx-go/rlx/ir"
)

var a, b, c = Sym("a"), Sym("b"), Sym("c")

func TestDimCanonical(t *testing.T) {
	sum := a.Add(b)
	for _, tc := range []struct {
		got  Dim
		want string
	}{
		{Dim{}, "0"},
		{D(-3), "-3"},
		{a.Add(D(0)), "a"},
		{a.Mul(D(1)), "a"},
		{a.Mul(D(0)), "0"},
		{b.Add(a), "a + b"},
		{b.Mul(a), "a*b"},
		{a.Add(a), "2*a"},
		{a.Sub(a), "0"},
		{D(1).Sub(a), "-1*a + 1"},
		{a.Sub(b), "a - 1*b"},
		{a.Sub(D(4)), "a - 4"},
		{sum.Mul(sum), "a*a + 2*a*b + b*b"},
		{sum.Mul(a.Sub(b)), "a*a - 1*b*b"},
		{a.Mul(D(6)).FloorDiv(D(3)), "2*a"},
		{a.Mul(b).Mul(D(6)).FloorDiv(b.Mul(D(4))), "floordiv(6*a*b, 4*b)"},
		{a.Mul(b).Mul(D(6)).FloorDiv(b.Mul(D(3))), "2*a"},
		{a.Mul(D(-6)).CeilDiv(D(4)), "ceildiv(-6*a, 4)"},
		{a.FloorDiv(a), "1"},
		{sum.FloorDiv(sum), "1"},
		{sum.CeilDiv(sum), "1"},
		{sum.FloorDiv(D(2)), "floordiv(a + b, 2)"},
		{sum.FloorDiv(D(0)), "0"},
		{D(0).FloorDiv(sum), "0"},
		{sum.FloorDiv(D(-1)), "-1*a - 1*b"},
		{b.Max(a), "max(a, b)"},
		{a.Max(a), "a"},
		{a.Max(a.Add(D(1))), "a + 1"},
		{a.Min(a.Add(D(1))), "a"},
		{a.Max(b).Max(b), "max(a, b)"},
		{b.Max(a.Max(b)), "max(a, b)"},
		{a.Min(b).Max(b), "b"},
		{a.Max(a.Min(b)), "a"},
		{a.Max(b).Min(a), "a"},
		{c.Max(a.Max(b)).Max(b), "max(c, max(a, b))"},
	} {
		if got := tc.got.String(); got != tc.want {
			t.Errorf("got %s, expected %s", got, tc.want)
		}
	}
	if a.Add(b).Add(c) != c.Add(a.Add(b)) || a.Mul(b).Mul(c) != c.Mul(b).Mul(a) || a.Max(b) != b.Max(a) {
		t.Error("equal expressions compare different")
	}
}

func TestDimStatic(t *testing.T) {
	const least, most = math.MinInt64, math.MaxInt64
	for _, tc := range []struct{ got, want Dim }{
		{D(7).FloorDiv(D(2)), D(3)}, {D(-7).FloorDiv(D(2)), D(-4)}, {D(7).FloorDiv(D(-2)), D(-4)}, {D(-7).FloorDiv(D(-2)), D(3)},
		{D(7).CeilDiv(D(2)), D(4)}, {D(-7).CeilDiv(D(2)), D(-3)}, {D(7).CeilDiv(D(-2)), D(-3)}, {D(-7).CeilDiv(D(-2)), D(4)},
		{D(6).CeilDiv(D(3)), D(2)}, {D(0).CeilDiv(D(3)), D(0)}, {D(5).CeilDiv(D(0)), D(0)}, {D(5).FloorDiv(D(0)), D(0)},
		{D(least).CeilDiv(D(2)), D(least / 2)}, {D(least).FloorDiv(D(2)), D(least / 2)},
		{D(least).CeilDiv(D(3)), D(-3074457345618258602)}, {D(least).FloorDiv(D(3)), D(-3074457345618258603)},
		{D(least).CeilDiv(D(-1)), D(most)}, {D(least).FloorDiv(D(-1)), D(most)},
		{D(most).Add(D(1)), D(most)}, {D(least).Add(D(-1)), D(least)}, {D(most).Add(D(least)), D(-1)},
		{D(1 << 40).Mul(D(1 << 40)), D(most)}, {D(-1 << 40).Mul(D(1 << 40)), D(least)}, {D(least).Mul(D(-1)), D(most)}, {D(least).Mul(D(1)), D(least)},
		{D(most).Sub(D(-1)), D(most)}, {D(3).Min(D(-3)), D(-3)}, {D(3).Max(D(-3)), D(3)}, {D(least).Max(D(most)), D(most)}, {D(least).Min(D(least)), D(least)},
	} {
		if tc.got != tc.want {
			t.Errorf("got %s, expected %s", tc.got, tc.want)
		}
	}
	if D(least).Differs(D(least)) || !D(least).Differs(D(most)) || a.Differs(b) || !a.Differs(a.Add(D(2))) || a.Add(b).Differs(b.Add(a)) {
		t.Error("Differs is wrong")
	}
}

// node is an expression beside its value by plain integer arithmetic on big integers.
type node struct {
	dim  Dim
	eval func(v map[string]int64) *big.Int // nil where a division by zero happens
}

func randomDim(r *rand.Rand, depth int) node {
	if depth == 0 || r.IntN(5) == 0 {
		if r.IntN(2) == 0 {
			n := r.Int64N(13) - 6
			return node{D(n), func(map[string]int64) *big.Int { return big.NewInt(n) }}
		}
		name := string(rune('a' + r.IntN(4)))
		return node{Sym(name), func(v map[string]int64) *big.Int { return big.NewInt(v[name]) }}
	}
	x, y := randomDim(r, depth-1), randomDim(r, depth-1)
	both := func(f func(p, q *big.Int) *big.Int) func(map[string]int64) *big.Int {
		return func(v map[string]int64) *big.Int {
			p, q := x.eval(v), y.eval(v)
			if p == nil || q == nil {
				return nil
			}
			return f(p, q)
		}
	}
	switch r.IntN(7) {
	case 0:
		return node{x.dim.Add(y.dim), both(func(p, q *big.Int) *big.Int { return new(big.Int).Add(p, q) })}
	case 1:
		return node{x.dim.Sub(y.dim), both(func(p, q *big.Int) *big.Int { return new(big.Int).Sub(p, q) })}
	case 2:
		return node{x.dim.Mul(y.dim), both(func(p, q *big.Int) *big.Int { return new(big.Int).Mul(p, q) })}
	case 3:
		return node{x.dim.FloorDiv(y.dim), both(func(p, q *big.Int) *big.Int {
			if q.Sign() == 0 {
				return nil
			}
			f, m := new(big.Int), new(big.Int)
			f.DivMod(p, q, m) // Euclidean: the rest is never negative
			if m.Sign() != 0 && q.Sign() < 0 {
				f.Sub(f, big.NewInt(1))
			}
			return f
		})}
	case 4:
		return node{x.dim.CeilDiv(y.dim), both(func(p, q *big.Int) *big.Int {
			if q.Sign() == 0 {
				return nil
			}
			f, m := new(big.Int), new(big.Int)
			f.DivMod(p, q, m)
			if m.Sign() != 0 && q.Sign() > 0 {
				f.Add(f, big.NewInt(1))
			}
			return f
		})}
	case 5:
		return node{x.dim.Min(y.dim), both(func(p, q *big.Int) *big.Int {
			if p.Cmp(q) < 0 {
				return p
			}
			return q
		})}
	}
	return node{x.dim.Max(y.dim), both(func(p, q *big.Int) *big.Int {
		if p.Cmp(q) > 0 {
			return p
		}
		return q
	})}
}

// Binding an expression gives what evaluating the operations that built it gives, at once and symbol by symbol, and its text reads back
// as the same dim.
func TestDimRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	bound := 0
	for range 3000 {
		n := randomDim(r, 1+r.IntN(4))
		back, err := ParseDim(n.dim.String())
		if err != nil || back != n.dim {
			t.Fatalf("%s reads back as %s (%v)", n.dim, back, err)
		}
		for range 5 {
			values := map[string]int64{}
			for _, s := range []string{"a", "b", "c", "d"} {
				values[s] = r.Int64N(9)
			}
			want := n.eval(values)
			if want == nil || !want.IsInt64() {
				continue
			}
			bound++
			got, ok := n.dim.Bind(values).Static()
			if !ok || got != want.Int64() {
				t.Fatalf("%s with %v is %d, expected %s", n.dim, values, got, want)
			}
			half := n.dim.Bind(map[string]int64{"b": values["b"], "d": values["d"]})
			if got, ok := half.Bind(values).Static(); !ok || got != want.Int64() {
				t.Fatalf("%s with %v in two steps (%s) is %d, expected %s", n.dim, values, half, got, want)
			}
		}
	}
	if bound < 5000 {
		t.Errorf("only %d bindings were compared", bound)
	}
}

func TestDimSymbols(t *testing.T) {
	d := a.Mul(b).Add(Sym("x#0").FloorDiv(D(2)))
	into := map[string]bool{}
	if d.Symbols(into); fmt.Sprint(into) != "map[a:true b:true x#0:true]" {
		t.Errorf("got %v", into)
	}
	if s, ok := a.Symbol(); s != "a" || !ok {
		t.Errorf("got %s %v", s, ok)
	}
	if _, ok := d.Symbol(); ok || D(1).IsStatic() != true || d.IsStatic() {
		t.Error("an expression is no symbol")
	}
	if d.Bind(map[string]int64{"a": 2}).String() != "2*b + floordiv(x#0, 2)" {
		t.Errorf("got %s", d.Bind(map[string]int64{"a": 2}))
	}
	for name, want := range map[string]string{"": "_", "a b": "a_b", "1x": "_1x", "x-1": "x_1", "größe": "größe", "x/y:0": "x_y_0"} {
		got := SymbolName(name)
		if got != want {
			t.Errorf("SymbolName(%q) = %q, expected %q", name, got, want)
		}
		if d, err := ParseDim(got); err != nil || d != Sym(got) {
			t.Errorf("%q reads back as %s (%v)", got, d, err)
		}
	}
}

func TestParseDim(t *testing.T) {
	for s, want := range map[string]Dim{
		"12": D(12), " 3 ": D(3), "-5": D(-5), "-(a)": a.Mul(D(-1)), "--a": a, "2*a + b*3 - 1": a.Mul(D(2)).Add(b.Mul(D(3))).Sub(D(1)),
		"(a+b)*(a-b)": a.Mul(a).Sub(b.Mul(b)), "max(a,min(b,4))": a.Max(b.Min(D(4))), "floordiv(a - 3, 2)": a.Sub(D(3)).FloorDiv(D(2)),
		"9223372036854775807": D(math.MaxInt64), "-9223372036854775808": D(math.MinInt64), "a + -9223372036854775808": a.Add(D(math.MinInt64)),
		"min": Sym("min"), "1 - 2 - 3": D(-4), "a*-2": a.Mul(D(-2)),
	} {
		got, err := ParseDim(s)
		if err != nil || got != want {
			t.Errorf("%q: got %s (%v), expected %s", s, got, err, want)
		}
		if back, err := ParseDim(want.String()); err != nil || back != want {
			t.Errorf("%s reads back as %s (%v)", want, back, err)
		}
	}
	for _, s := range []string{"", "a b", "2a", "a +", "(a", "a)", "9223372036854775808", "max(a)", "max(a, b", "mod(a, b)", "a / 2", "a,b", strings.Repeat("(", 1e5), strings.Repeat("-", 1e5) + "a"} {
		if d, err := ParseDim(s); err == nil {
			t.Errorf("%.20q: got %s, expected an error", s, d)
		} else if !strings.Contains(err.Error(), "dim ") {
			t.Errorf("error %v", err)
		}
	}
}

// Expressions stay bounded: beyond the limit they become symbols that equal computations share, and a text of that size is refused.
func TestDimLimit(t *testing.T) {
	start := time.Now()
	grow := func() Dim {
		d := D(1)
		for i := range 40 {
			d = d.Mul(Sym(fmt.Sprint("x", i)).Add(D(1)))
		}
		return d
	}
	x, y := grow(), grow()
	if x != y || len(x.String()) > 1e5 {
		t.Errorf("a product of 40 sums is %.60s and %.60s", x, y)
	}
	if _, ok := x.Bind(map[string]int64{"x0": 1}).Static(); ok {
		t.Error("what is too large binds")
	}
	nest := a
	for range 5000 {
		nest = nest.FloorDiv(D(2)).Add(D(1)).Max(b)
	}
	var long strings.Builder
	for i := range 20000 {
		fmt.Fprintf(&long, "x%d + ", i)
	}
	long.WriteString("1")
	var product strings.Builder
	for i := range 40 {
		fmt.Fprintf(&product, "(x%d + 1)*", i)
	}
	product.WriteString("1")
	for _, s := range []string{long.String(), product.String(), strings.Repeat("a*", 1e5) + "a", strings.Repeat("max(b*2, 1 + ", 400) + "a" + strings.Repeat(")", 400)} {
		if d, err := ParseDim(s); err == nil {
			t.Errorf("%.30q reads as %.60s, expected an error", s, d)
		}
	}
	if d, err := ParseDim(strings.Repeat("a + ", 1e5) + "a"); err != nil || d != a.Mul(D(1e5+1)) {
		t.Errorf("got %v (%v)", d, err)
	}
	// A symbol of the longest expression that still is one.
	wide := D(0)
	for i := range 240 {
		wide = wide.Add(Sym(fmt.Sprint("w", i)))
	}
	if back, err := ParseDim(wide.String()); err != nil || back != wide || len(wide.String()) < 1000 {
		t.Errorf("a sum of 240 symbols reads back as %.60s (%v)", back, err)
	}
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("took %v", took)
	}
}

func FuzzParseDim(f *testing.F) {
	for _, s := range []string{"12", "2*seq + 1", "floordiv(h - 3, 2)", "max(a, min(b, -4))", "-(a+b)*(a-b)", "ceildiv(-9223372036854775808, -1)", "x#0 - 9223372036854775807", "?large#0*2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, err := ParseDim(s)
		if err != nil {
			return
		}
		back, err := ParseDim(d.String())
		if err != nil || back != d {
			t.Fatalf("%q is %s, which reads back as %s (%v)", s, d, back, err)
		}
		d.Bind(map[string]int64{"a": 3, "b": -1})
	})
}
