package ir

import (
	"errors"
	"fmt"
)

// InputAttrs are the attributes of an Input: the tensor bound to Name at each run has DType and Shape.
type InputAttrs struct {
	Name  string `c:"C1"`
	Dtype DType
	Shape []Dim
}

// ParamAttrs are the attributes of a Param: a weight, bound when the program is compiled.
type ParamAttrs struct {
	Name      string `c:"C1"`
	Dtype     DType
	Shape     []Dim
	Trainable bool `default:"true"`
}

// ConstantAttrs hold the value of a Constant.
type ConstantAttrs struct {
	Value *Tensor `c:"C1"`
}

var (
	inputOp    = Declare[InputAttrs]("elementwise", "Input")
	paramOp    = Declare[ParamAttrs]("elementwise", "Param")
	constantOp = Declare[ConstantAttrs]("elementwise", "Constant")
)

func init() {
	inputOp.Define(Def[InputAttrs]{
		Doc:  "the tensor bound to `name` at each run",
		Bits: Leaf,
		Infer: func(t *Infer, a *InputAttrs) {
			t.Need(a.Name != "", "C1", "name is empty, expected a unique name")
			t.Need(!t.n.g.leaves[a.Name], "C1", "name %q is taken, expected a unique name", a.Name)
			for _, d := range a.Shape {
				n, ok := d.Static()
				t.Need(!ok || n >= 0, "C2", "%s: shape %s has a negative dim, expected dims >= 0", a.Name, shapeText(a.Shape))
			}
			t.Out(Type{a.Dtype, a.Shape})
		},
		NoGrad: "leaf",
	})
	paramOp.Define(Def[ParamAttrs]{
		Doc:  "a weight, bound when the program is compiled",
		Bits: Leaf,
		Infer: func(t *Infer, a *ParamAttrs) {
			t.Need(a.Name != "", "C1", "name is empty, expected a unique name")
			t.Need(!t.n.g.leaves[a.Name], "C1", "name %q is taken, expected a unique name", a.Name)
			shape, ok := StaticShape(a.Shape)
			t.Need(ok, "C3", "%s: shape %s has symbolic dims, expected static ones", a.Name, shapeText(a.Shape))
			if v := t.n.g.params[a.Name]; v != nil && ok {
				t.Need(v.Type().Equal(Type{a.Dtype, a.Shape}), "C2", "%s: got %s%v, expected %s%v", a.Name, v.DType(), v.Shape(), a.Dtype, shape)
			}
			t.Out(Type{a.Dtype, a.Shape})
		},
		NoGrad: "leaf",
	})
	constantOp.Define(Def[ConstantAttrs]{
		Doc:  "a literal tensor",
		Bits: Leaf | Exact,
		Infer: func(t *Infer, a *ConstantAttrs) {
			if err := a.Value.Err(); err != nil {
				t.err = fmt.Errorf("Constant: C1: %w", err)
				return
			}
			t.Out(a.Value.Type())
		},
		NoGrad: "no operands",
	})
}

// Input declares a tensor that is bound at each run. Its shape may name symbols; one symbol has one value over all inputs of a run.
func (g *Graph) Input(name string, dtype DType, shape []Dim) Value {
	return g.leaf(inputOp.row, name, &InputAttrs{name, dtype, shape})
}

// Param declares a weight and binds its tensor.
func (g *Graph) Param(name string, value *Tensor) Value {
	if err := value.Err(); err != nil {
		return g.fail(paramOp.row.Name, name, err)
	}
	if g.params[name] == nil {
		g.params[name] = value
	}
	return g.leaf(paramOp.row, name, &ParamAttrs{name, value.DType(), value.Type().Shape, true})
}

// BindParam binds the tensor of a Param that was declared without one.
func (g *Graph) BindParam(name string, value *Tensor) error {
	for _, n := range g.Nodes {
		a, ok := n.Attrs.(*ParamAttrs)
		if !ok || a.Name != name {
			continue
		}
		if err := value.Err(); err != nil {
			return nodeError(g, n.Name, "Param", nil, err)
		}
		if !value.Type().Equal(n.Types[0]) {
			return nodeError(g, n.Name, "Param", nil, fmt.Errorf("Param: C2: %s: got %s, expected %s", name, value.Type(), n.Types[0]))
		}
		g.params[name] = value
		return nil
	}
	return g.defect("Param", "Param: C1: no param is called %q, expected one that the graph declares", name)
}

// DeclareParam declares a weight whose tensor is bound later.
func (g *Graph) DeclareParam(a ParamAttrs) Value { return g.leaf(paramOp.row, a.Name, &a) }

// Constant is a literal tensor in the graph.
func (g *Graph) Constant(value *Tensor) Value {
	return g.leaf(constantOp.row, "", &ConstantAttrs{value})
}

func (g *Graph) leaf(r *Row, name string, attrs any) Value {
	n, err := g.Add(r, name, attrs)
	if err != nil {
		return g.fail(r.Name, name, bare(err))
	}
	return n.Out(0)
}

// Const returns the literal tensor of a Constant value.
func (v Value) Const() (*Tensor, bool) {
	if v.n == nil {
		return nil, false
	}
	a, ok := v.n.Attrs.(*ConstantAttrs)
	if !ok {
		return nil, false
	}
	return a.Value, true
}

// InputName is the name of an Input node.
func (n *Node) InputName() (string, bool) {
	a, ok := n.Attrs.(*InputAttrs)
	if !ok {
		return "", false
	}
	return a.Name, true
}

// ParamName is the name of a Param node.
func (n *Node) ParamName() (string, bool) {
	a, ok := n.Attrs.(*ParamAttrs)
	if !ok {
		return "", false
	}
	return a.Name, true
}

// leafName is the name that an Input or a Param is bound by.
func (n *Node) leafName() (string, bool) {
	if name, ok := n.InputName(); ok {
		return name, true
	}
	return n.ParamName()
}

// StaticSymbol names the symbol that stands for element i of the integer input called name: such inputs reach shapes and attributes.
func StaticSymbol(name string, i int) string { return fmt.Sprintf("%s#%d", SymbolName(name), i) }

// MaxStaticInput is the most elements that an input may have to be read as dims.
const MaxStaticInput = 64

// InputDims returns the elements of an integer or bool input of rank 0 or 1 and at most MaxStaticInput elements as symbols, so
// that shapes and attributes may depend on the values bound at a run.
func (v Value) InputDims() ([]Dim, error) {
	name, ok := "", false
	if v.n != nil {
		name, ok = v.n.InputName()
	}
	if !ok {
		return nil, errors.New("not an input, expected one or a constant: only inputs and constants can reach a shape")
	}
	n := int64(1)
	if v.Rank() > 0 {
		if n, ok = Count(v.Shape()).Static(); !ok {
			return nil, fmt.Errorf("input %s has shape %s, expected static dims", name, shapeText(v.Shape()))
		}
	}
	if v.Rank() > 1 || n > MaxStaticInput || !(Int | Set(Bool)).Has(v.DType()) {
		return nil, fmt.Errorf("input %s is %s, expected an integer or bool of rank 0 or 1 with at most %d elements", name, v.Type(), MaxStaticInput)
	}
	out := make([]Dim, n)
	for i := range out {
		out[i] = Sym(StaticSymbol(name, i))
	}
	return out, nil
}
