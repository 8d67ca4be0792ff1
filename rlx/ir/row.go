package ir

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// Bits classify a row. Passes ask bits, never names.
type Bits uint32

// The class bits; see the op docs.
const (
	Elementwise Bits = 1 << iota // element i of the result depends on element i of the broadcast operands
	Reduction                    // sums or selects over axes
	View                         // the result may share the operand's buffer under other dims, strides and offset
	InPlace                      // the result may take over the buffer of operand 1
	Random                       // draws numbers: never folded
	Control                      // holds sub-graphs
	Fused                        // one node for a chain of others
	Backward                     // emitted by autodiff
	Host                         // runs on the host where no native kernel exists
	Exact                        // moves or selects elements, or computes integers only: the same bits on every backend
	Leaf                         // has no operands: input, param, constant, state
	Light                        // takes an instruction or two for an element: about as much as reading an operand
)

var bitNames = []string{"Elementwise", "Reduction", "View", "InPlace(I1)", "Random", "Control", "Fused", "Backward", "Host", "Exact", "Leaf", "Light"}

func (b Bits) String() string {
	var l []string
	for i, n := range bitNames {
		if b>>i&1 != 0 {
			l = append(l, n)
		}
	}
	return strings.Join(l, ", ")
}

// Operand declares one operand of a row: its name and the dtypes that are legal for it.
type Operand struct {
	Name     string
	DTypes   DTypeSet
	Optional bool
	Variadic bool   // one or more, or with Optional any number, none of them absent; the last operand only
	DTypeC   string // constraint cited for a dtype outside the set, where it is not the row's
}

// In is a required operand, Opt an optional one, Many one or more.
func In(name string, dtypes DTypeSet) Operand { return Operand{Name: name, DTypes: dtypes} }
func Opt(name string, dtypes DTypeSet) Operand {
	return Operand{Name: name, DTypes: dtypes, Optional: true}
}
func Many(name string, dtypes DTypeSet) Operand {
	return Operand{Name: name, DTypes: dtypes, Variadic: true}
}

// Any is any number of operands, none included.
func Any(name string, dtypes DTypeSet) Operand {
	return Operand{Name: name, DTypes: dtypes, Variadic: true, Optional: true}
}

// Cite is the operand with a constraint of its own for illegal dtypes.
func (o Operand) Cite(constraint string) Operand {
	o.DTypeC = constraint
	return o
}

// Tolerance is the class by which results of a row are compared between backends:
// |got - want| <= Ulp * eps(dtype) * |want| + Abs, and for reductions Ulp * eps * sum|terms|.
type Tolerance struct {
	Ulp float64
	Abs float64
}

// Row is everything that is known about one op kind. The typed face is Op.
type Row struct {
	Name, Family, Doc string
	In                []Operand
	Results           []string // names of the results, "y" if one; a last one that ends in ... stands for any number
	Bits              Bits
	DTypeC            string // constraint cited when an operand has a dtype outside its set
	SameC             string // constraint cited when operands that the row declares with one set differ in dtype
	Schema            Schema
	Tol               Tolerance
	NoGrad            string

	attrs     reflect.Type
	infer     func(*Infer, any)
	decompose func(*Node, any) []Value
	inline    func(*Node, any) []Value
	vjp       func(*Grad, any) []Value
	num       int
}

// Def is what Define takes: the typed face of a Row with attributes A.
type Def[A any] struct {
	Doc       string
	In        []Operand
	Results   []string // result names; nil means one, called y
	Bits      Bits
	DTypeC    string                      // constraint cited for an illegal operand dtype
	SameC     string                      // constraint cited when the operands do not share one dtype; empty: they need not
	Infer     func(t *Infer, a *A)        // result types; errors cite the spec's constraints
	Decompose func(n *Node, a *A) []Value // the same function out of more primitive rows; nil for a primitive
	Inline    func(n *Node, a *A) []Value // a control node without its control flow, where the operands decide that; nil where they do not
	VJP       func(g *Grad, a *A) []Value // one cotangent per operand, zero Value for none
	NoGrad    string                      // why there is no VJP
	Tol       Tolerance
}

// Op is the typed handle of a row with attributes A.
type Op[A any] struct{ row *Row }

// Grad is what a VJP sees: the node, its operands, and the cotangents of its results.
type Grad struct {
	Node *Node
	Dy   []Value
}

// In is operand i of the node.
func (g *Grad) In(i int) Value { return g.Node.In[i] }

var table = struct {
	sync.Mutex
	rows   map[string]*Row
	frozen bool
	sorted []*Row
	hash   uint64
	err    error
}{rows: map[string]*Row{}}

// Declare reserves the row called name, so that rows can name each other's builders; Define fills it.
func Declare[A any](family, name string) *Op[A] {
	r := &Row{Name: name, Family: family, attrs: reflect.TypeFor[A]()}
	table.Lock()
	defer table.Unlock()
	switch schema, err := schemaOf(r.attrs); {
	case err != nil:
		tableError(fmt.Errorf("%s: %w", name, err))
	case table.frozen:
		tableError(fmt.Errorf("%s: declared after the op table froze", name))
	case table.rows[name] != nil:
		tableError(fmt.Errorf("%s: declared twice", name))
	default:
		r.Schema = schema
		table.rows[name] = r
	}
	return &Op[A]{r}
}

// tableError keeps the first defect of the table; Freeze returns it.
func tableError(err error) {
	if table.err == nil {
		table.err = fmt.Errorf("op table: %w", err)
	}
}

// Define fills the row.
func (o *Op[A]) Define(d Def[A]) {
	r := o.row
	r.Doc, r.In, r.Results, r.Bits, r.DTypeC, r.SameC, r.Tol, r.NoGrad = d.Doc, d.In, d.Results, d.Bits, d.DTypeC, d.SameC, d.Tol, d.NoGrad
	if r.Results == nil {
		r.Results = []string{"y"}
	}
	if d.Infer != nil {
		r.infer = func(t *Infer, a any) { d.Infer(t, a.(*A)) }
	}
	if d.Decompose != nil {
		r.decompose = func(n *Node, a any) []Value { return d.Decompose(n, a.(*A)) }
	}
	if d.Inline != nil {
		r.inline = func(n *Node, a any) []Value { return d.Inline(n, a.(*A)) }
	}
	if d.VJP != nil {
		r.vjp = func(g *Grad, a any) []Value { return d.VJP(g, a.(*A)) }
	}
}

// Row is the untyped row.
func (o *Op[A]) Row() *Row { return o.row }

// Freeze ends declaration, numbers the rows by sorted name (from 1) and returns what is wrong with the table.
func Freeze() error {
	table.Lock()
	defer table.Unlock()
	if table.frozen {
		return table.err
	}
	table.frozen = true
	for _, r := range table.rows {
		table.sorted = append(table.sorted, r)
	}
	slices.SortFunc(table.sorted, func(a, b *Row) int { return strings.Compare(a.Name, b.Name) })
	h := sha256.New()
	for i, r := range table.sorted {
		r.num = i + 1
		if r.infer == nil {
			tableError(fmt.Errorf("%s: declared but not defined", r.Name))
		}
		fmt.Fprintf(h, "%s(%d,%d)", r.Name, len(r.In), len(r.Results))
		for _, a := range r.Schema {
			fmt.Fprintf(h, " %s:%s%v", a.Name, a.Kind, a.Enum)
		}
	}
	table.hash = binary.LittleEndian.Uint64(h.Sum(nil))
	return table.err
}

// TableHash identifies the op table: names, operands and attributes of every row. A native library built for another table is refused.
func TableHash() uint64 {
	Freeze()
	return table.hash
}

// Rows lists all rows, sorted by name; Rows()[i].Num() is i+1.
func Rows() []*Row {
	Freeze()
	return table.sorted
}

// RowByName returns the row called name.
func RowByName(name string) (*Row, error) {
	table.Lock()
	defer table.Unlock()
	if r := table.rows[name]; r != nil {
		return r, nil
	}
	return nil, &NodeError{Op: name, Violation: Violation{"", name, "a kind of the op table"}, Err: fmt.Errorf("unknown op %q, expected a kind of the op table", name)}
}

// RowByNum returns the row with number n.
func RowByNum(n int) (*Row, bool) {
	rows := Rows()
	if n < 1 || n > len(rows) {
		return nil, false
	}
	return rows[n-1], true
}

// Num is the row's number in the command words: unstable, valid within one build.
func (r *Row) Num() int {
	Freeze()
	return r.num
}

// AttrsType is the Go name of the attribute struct, which the C header uses too. Rows may share a struct.
func (r *Row) AttrsType() string { return r.attrs.Name() }

// Has says whether all bits of b are set.
func (r *Row) Has(b Bits) bool { return r.Bits&b == b }

// Differentiable says whether the row has a VJP.
func (r *Row) Differentiable() bool { return r.vjp != nil }

// VJP returns the cotangents of the operands, or nil where the row has none.
func (r *Row) VJP(g *Grad) []Value {
	if r.vjp == nil {
		return nil
	}
	return r.vjp(g, g.Node.Attrs)
}

// Composite says whether the row has a decomposition.
func (r *Row) Composite() bool { return r.decompose != nil }

// Decompose builds the same function out of more primitive rows, in the graph of n's operands; nil where the row is primitive or
// where these operands have no decomposition.
func (r *Row) Decompose(n *Node) []Value {
	if r.decompose == nil {
		return nil
	}
	return r.decompose(n, n.Attrs)
}

// Inline is the node without its control flow, in the graph of n's operands; nil where that is not decided yet.
func (r *Row) Inline(n *Node) []Value {
	if r.inline == nil {
		return nil
	}
	return r.inline(n, n.Attrs)
}

// AnyResults says whether a node's attributes decide how many results it has.
func (r *Row) AnyResults() bool {
	return len(r.Results) > 0 && strings.HasSuffix(r.Results[len(r.Results)-1], "...")
}

// numResults is how many results a node has, -1 where its attributes decide.
func (r *Row) numResults() int {
	if r.AnyResults() {
		return -1
	}
	return max(1, len(r.Results))
}

// NewAttrs fills an attribute struct (returned as a pointer) from text forms: see Attr.
func (r *Row) NewAttrs(given map[string]string) (any, error) { return r.NewAttrsWith(given, nil) }

// NewAttrsWith is NewAttrs with sub-graphs that have no text form.
func (r *Row) NewAttrsWith(given map[string]string, graphs map[string]*Graph) (any, error) {
	v := reflect.New(r.attrs)
	if err := r.Schema.fill(v.Elem(), given, graphs); err != nil {
		return nil, fmt.Errorf("%s: %w", r.Name, err)
	}
	return v.Interface(), nil
}

// operand returns the declaration of operand i.
func (r *Row) operand(i int) Operand {
	if i >= len(r.In) {
		return r.In[len(r.In)-1]
	}
	return r.In[i]
}

// Zero is the row's attribute struct with every field zero, as a pointer.
func (r *Row) Zero() any { return reflect.New(r.attrs).Interface() }
