// Package ir holds the graph that every other package reads or writes: dtypes, symbolic dims, tensors, nodes, the rows of the op
// table and the typed attributes that rows declare. It knows no op by name but the leaves: a graph's inputs, params, constants
// and states.
package ir
