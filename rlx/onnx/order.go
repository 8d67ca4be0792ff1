package onnx

// orderNodes puts the nodes of a graph, and of those inside it, behind the nodes that they need. ONNX wants that of a file, but tools that
// add nodes at the end, such as converters to f16, do not keep to it. Nodes that need one another in a circle stay where they are.
func orderNodes(nodes []NodeProto) {
	for i := range nodes {
		for _, g := range nodes[i].graphs() {
			orderNodes(g.Nodes)
		}
	}
	from := map[string]int{} // the node that gives a name
	for i := range nodes {
		for _, name := range nodes[i].Output {
			if _, twice := from[name]; name != "" && !twice {
				from[name] = i
			}
		}
	}
	needs, sorted := make([][]int, len(nodes)), true
	for i := range nodes {
		nodes[i].reads(func(name string) {
			if k, ok := from[name]; ok && k != i {
				needs[i] = append(needs[i], k)
				sorted = sorted && k < i
			}
		})
	}
	if sorted {
		return
	}
	order, ok := depthFirst(needs)
	if !ok {
		return
	}
	old := append([]NodeProto(nil), nodes...)
	for i, k := range order {
		nodes[i] = old[k]
	}
}

// depthFirst lists every number behind those that it needs, otherwise in order; false if there is a circle.
func depthFirst(needs [][]int) (order []int, ok bool) {
	const open, done = 1, 2
	state, next := make([]byte, len(needs)), make([]int, len(needs))
	for i := range needs {
		for stack := []int{i}; len(stack) > 0; {
			k := stack[len(stack)-1]
			if state[k] == done {
				stack = stack[:len(stack)-1]
				continue
			}
			state[k] = open
			if next[k] == len(needs[k]) {
				state[k] = done
				order = append(order, k)
				continue
			}
			d := needs[k][next[k]]
			next[k]++
			switch state[d] {
			case open:
				return nil, false
			case 0:
				stack = append(stack, d)
			}
		}
	}
	return order, true
}

// graphs are the graphs in the attributes of a node.
func (p *NodeProto) graphs() (list []*GraphProto) {
	for i := range p.Attribute {
		if g := p.Attribute[i].G; g != nil {
			list = append(list, g)
		}
	}
	return list
}

// reads names the inputs of a node, and those of the nodes inside it, which see the names around them.
func (p *NodeProto) reads(f func(name string)) {
	for _, name := range p.Input {
		f(name)
	}
	for _, g := range p.graphs() {
		for i := range g.Nodes {
			g.Nodes[i].reads(f)
		}
		for i := range g.Outputs {
			f(g.Outputs[i].Name)
		}
	}
}
