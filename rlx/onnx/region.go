package onnx

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// region is a sub-graph that stays one: the body of a loop or a branch that only a run decides on. It is read into a graph of its own. What it
// reads of the graph around it becomes an input: a capture.
type region struct {
	im       *importer
	outer    *ir.Graph
	g        *ir.Graph
	proxies  map[*value]*value
	captures []ir.Value // values of the graph around it
	inputs   []*ir.Node // what stands for them
	results  []ir.Value
}

// captured is what stands for a value of the graph around the region. It becomes an input when something needs it as data; constants are
// written into the region.
func (r *region) captured(v *value) *value {
	if v == nil {
		return nil
	}
	if p := r.proxies[v]; p != nil {
		return p
	}
	p := &value{typ: v.typ, dims: v.dims, broken: v.broken, konst: v.konst, folded: v.folded, deps: v.deps, elem: v.elem, absent: v.absent, missing: v.missing}
	if v.seq != nil {
		p.seq = &sequence{}
		for _, item := range v.seq.items {
			p.seq.items = append(p.seq.items, r.captured(item))
		}
	}
	p.make = func() (ir.Value, error) { return r.capture(v) }
	r.proxies[v] = p
	return p
}

func (r *region) capture(v *value) (ir.Value, error) {
	t := v.konst
	if t == nil {
		t = v.folded
	}
	if t != nil {
		return r.g.Constant(t), r.g.Err()
	}
	inner := r.im.g
	r.im.g = r.outer
	x, err := v.get()
	r.im.g = inner
	if err != nil {
		return ir.Value{}, err
	}
	if i := slices.Index(r.captures, x); i >= 0 {
		return r.inputs[i].Out(0), nil
	}
	in := r.g.Input(fmt.Sprintf("capture%d", len(r.captures)), x.DType(), x.Shape())
	if err := r.g.Err(); err != nil {
		return ir.Value{}, err
	}
	r.captures, r.inputs = append(r.captures, x), append(r.inputs, in.Node())
	return in, nil
}

// argument is an input of the region that is no capture.
func (r *region) argument(name string, t ir.Type, d *deps) *value {
	x := r.g.Input(fmt.Sprint(name, len(r.g.Inputs)), t.DType, t.Shape)
	return &value{typ: t, node: x, deps: d}
}

var errNotPlain = errors.New("it gives a sequence, or an optional without a value")

// region reads sub-graph g into a region; args makes what stands for its inputs. The error says why that cannot be: then nothing has
// changed, and the model may still be read in another way.
func (n *node) region(g *GraphProto, args func(r *region) []*value) (*region, error) {
	im := n.im
	r := &region{im: im, outer: im.g, g: ir.NewGraph(g.Name), proxies: map[*value]*value{}}
	old := *im
	im.listed, im.bodies, im.g = maps.Clone(im.listed), map[*GraphProto]map[string]*value{}, r.g
	trial := &node{im: im, p: n.p, row: n.row, opset: n.opset, prefix: n.prefix, in: n.in, out: make([]*value, len(n.out))}
	trial.readRegion(g, r, args)
	err := trial.err
	switch {
	case r.g.Err() != nil:
		err = cause(r.g.Err())
	case err != nil:
	case im.err != nil && old.err == nil:
		err = im.err
	case len(im.unsupported) > len(old.unsupported):
		err = &UnsupportedError{im.unsupported[len(old.unsupported):]}
	case trial.refused:
		err = errRefused
	}
	im.g, im.bodies, im.err, im.unsupported, im.listed = old.g, old.bodies, old.err, old.unsupported, old.listed
	return r, err
}

// readRegion reads the sub-graph and makes its outputs.
func (n *node) readRegion(g *GraphProto, r *region, args func(r *region) []*value) {
	for _, v := range n.bodyIn(g, args(r), r) {
		if !v.isTensor() {
			n.fail("%w", errNotPlain)
		}
		if !n.ok() {
			return
		}
		r.results = append(r.results, n.get(v))
	}
}

// capturesOf is what any of the regions reads of the graph around them, each once.
func capturesOf(regions ...*region) []ir.Value {
	var list []ir.Value
	for _, r := range regions {
		for _, v := range r.captures {
			if !slices.Contains(list, v) {
				list = append(list, v)
			}
		}
	}
	return list
}

// give is what a sub-graph gives, made of its inputs and of what the region gives.
type give func(g *ir.Graph, in, out []ir.Value) []ir.Value

// graph is the region as a sub-graph of so many inputs: the captures, which are those of the node, stand from at on, and the inputs that the
// region declared at the places of arguments.
func (r *region) graph(inputs int, arguments []int, captures []ir.Value, at int, results give) *ir.Graph {
	for i, v := range r.results {
		r.g.Outputs = append(r.g.Outputs[:i:i], ir.Output{Name: fmt.Sprint(i), Value: v})
	}
	return ir.SubGraph(r.g.Name, inputs, func(g *ir.Graph, in []ir.Value) []ir.Value {
		own := make([]ir.Value, len(r.g.Inputs))
		next := 0
		for i, x := range r.g.Inputs {
			if k := slices.Index(r.inputs, x); k >= 0 {
				own[i] = in[at+slices.Index(captures, r.captures[k])]
				continue
			}
			own[i] = in[arguments[next]]
			next++
		}
		out, err := g.Splice(r.g, own)
		if err != nil {
			g.Fail("body", err)
			return nil
		}
		return results(g, in, out)
	})
}

// places are count numbers from first on.
func places(first, count int) []int {
	list := make([]int, count)
	for i := range list {
		list[i] = first + i
	}
	return list
}

// asIs gives what the region gives.
func asIs(_ *ir.Graph, _, out []ir.Value) []ir.Value { return out }

// depsOf is what the results of a node with these regions depend on.
func depsOf(n *node, regions ...*region) *deps {
	list := slices.Clone(n.in)
	for _, r := range regions {
		for v := range r.proxies {
			list = append(list, v)
		}
	}
	return union(list)
}
