package onnx

// MutationCorpus are small models written by hand for TestMutations: each part of the format that the importer reads, and the operators
// whose attributes decide sizes.
func MutationCorpus() [][]byte {
	x := inputOf("x", DataFloat, "n", 4)
	image := inputOf("x", DataFloat, 1, 2, 6, 6)
	y := outputOf("y")
	shapes := []byte{}
	for _, n := range [][]byte{
		nodeOf("Shape", "x", "s"), nodeOf("Gather", "s i", "n", intAttr("axis", 0)), nodeOf("Mul", "n f", "m"), nodeOf("Reshape", "x m", "y"),
	} {
		shapes = append(shapes, n...)
	}
	branch := func(name, op string) []byte {
		return body(5, text(1, name), body(6, text(2, name), nodeOf(op, "x", "out"), outputOf("out")), varint(20, 5))
	}
	loop := body(5, text(1, "body"), body(6, text(2, "body"),
		inputOf("i", DataInt64), inputOf("c", DataBool), inputOf("v", DataFloat, 4), intsOf("two", 2),
		nodeOf("Identity", "c", "again"), nodeOf("Add", "v v", "w"), nodeOf("Identity", "w", "seen"),
		outputOf("again"), outputOf("w"), outputOf("seen")), varint(20, 5))
	return [][]byte{
		smallModel(),
		inGraph(x, y, floatsOf("w", []uint64{4, 3}, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12), floatsOf("b", []uint64{3}, 1, 2, 3),
			nodeOf("Gemm", "x w b", "h", floatAttr("alpha", 2), intAttr("transB", 0)), nodeOf("Relu", "h", "y")),
		inGraph(image, y, floatsOf("w", []uint64{2, 2, 1, 1}, 1, 2, 3, 4),
			nodeOf("Conv", "x w", "y", intsAttr("strides", 2, 1), intsAttr("pads", 1, 1, 1, 1), intsAttr("dilations", 1, 1), intAttr("group", 1))),
		inGraph(image, y, nodeOf("MaxPool", "x", "p i", intsAttr("kernel_shape", 2, 2), intsAttr("strides", 2, 2)),
			nodeOf("MaxUnpool", "p i", "y", intsAttr("kernel_shape", 2, 2), intsAttr("strides", 2, 2))),
		inGraph(image, y, nodeOf("LpPool", "x", "y", intsAttr("kernel_shape", 3, 3), intAttr("p", 2), intsAttr("pads", 1, 1, 1, 1))),
		inGraph(image, y, floatsOf("s", []uint64{4}, 1, 1, 2, 0.5), nodeOf("Resize", "x _ s", "y", stringAttr("mode", "linear"), intAttr("antialias", 1))),
		inGraph(x, y, intsOf("i", 0), intsOf("f", 4), shapes),
		inGraph(x, y, intsOf("a", 1), intsOf("b", 3), intsOf("k", 1), nodeOf("Slice", "x a b k", "y")),
		inGraph(x, y, intsOf("p", 1, 0, 0, 2), nodeOf("Pad", "x p", "y", stringAttr("mode", "constant"))),
		inGraph(x, y, nodeOf("ReduceSum", "x", "y", intAttr("keepdims", 0)), intsOf("e", 3, 1, 1), nodeOf("Expand", "y e", "z"), outputOf("z")),
		inGraph(x, y, intsOf("t", 2, 2), nodeOf("Tile", "x t", "y")),
		inGraph(x, y, scalarOf("a", 0), scalarOf("b", 10), scalarOf("d", 2), nodeOf("Range", "a b d", "r"), nodeOf("Cast", "r", "y", intAttr("to", 1))),
		inGraph(y, intsOf("s", 2, 3), nodeOf("ConstantOfShape", "s", "c"), nodeOf("Neg", "c", "y")),
		inGraph(y, scalarOf("s", 16), nodeOf("HannWindow", "s", "y"), nodeOf("BlackmanWindow", "s", "z"), outputOf("z")),
		inGraph(y, scalarOf("a", 8), scalarOf("b", 16), scalarOf("c", 8000), floatsOf("d", nil, 0), floatsOf("e", nil, 4000),
			nodeOf("MelWeightMatrix", "a b c d e", "y")),
		inGraph(inputOf("x", DataFloat, 1, 16, 1), y, scalarOf("l", 16), nodeOf("DFT", "x l", "y", intAttr("axis", 1), intAttr("onesided", 1))),
		inGraph(x, y, intsOf("one", 1), nodeOf("Equal", "one one", "q"), nodeOf("Squeeze", "q", "c"),
			nodeOf("If", "c", "y", branch("then_branch", "Neg"), branch("else_branch", "Abs"))),
		inGraph(inputOf("x", DataFloat, 4), y, scalarOf("m", 3), nodeOf("Loop", "m _ x", "y z", loop), outputOf("z")),
		inGraph(x, y, scalarOf("k", 2), nodeOf("SplitToSequence", "x", "q", intAttr("axis", 1)), nodeOf("SequenceAt", "q k", "y")),
		inGraph(x, y, intsOf("k", 2), nodeOf("TopK", "x k", "y z", intAttr("axis", -1)), outputOf("z")),
		inGraph(x, y, nodeOf("Einsum", "x x", "y", stringAttr("equation", "ij,kj->ik"))),
		inGraph(x, y, floatsOf("s", nil, 0.5), body(5, varint(2, uint64(DataUint8)), text(8, "z"), varints(5, 7)),
			nodeOf("QuantizeLinear", "x s z", "q"), nodeOf("DequantizeLinear", "q s z", "y")),
		inGraph(inputOf("x", DataFloat, 3, 1, 2), y, floatsOf("w", []uint64{1, 8, 2}, make([]float32, 16)...), floatsOf("r", []uint64{1, 8, 2}, make([]float32, 16)...),
			nodeOf("LSTM", "x w r", "y h", intAttr("hidden_size", 2), stringAttr("direction", "forward"))),
		join(varint(1, 8), body(8, varint(2, 17)), body(8, text(1, "d"), varint(2, 1)),
			body(7, x, y, body(1, text(4, "F"), text(7, "d"), text(1, "x"), text(2, "y"), floatAttr("a", 2))),
			body(25, text(1, "F"), text(10, "d"), text(4, "u"), text(5, "v"), text(6, "a"), body(9, varint(2, 17)),
				nodeOf("LeakyRelu", "u", "v", body(5, text(1, "alpha"), text(21, "a"), varint(20, 1))))),
		inGraph(x, y, outside4("w.bin"), nodeOf("Add", "x w", "y")),
	}
}

// outside4 is f32[4] in another file.
func outside4(location string) []byte {
	return body(5, varints(1, 4), varint(2, uint64(DataFloat)), text(8, "w"), varint(14, 1), body(13, text(1, "location"), text(2, location)))
}
