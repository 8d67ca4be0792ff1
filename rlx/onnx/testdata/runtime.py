"""Writes runtime.json: small models as exporters and quantizers write them, with the results of ONNX Runtime without optimisations.

One model a line: {name, model, sets: [{in, out}]}. model is the file in base64, in and out map names to {dtype, shape, data}.
Needs numpy, onnx and onnxruntime.
"""
import base64
import json
import os

import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper, numpy_helper, parser

rng = np.random.default_rng(11)
names = {"float32": "f32", "float16": "f16", "float64": "f64", "int64": "i64", "int32": "i32", "uint8": "u8", "int8": "i8", "int16": "i16", "bool": "bool"}
lines = []
microsoft = "com.microsoft"


def floats(*shape):
    return rng.normal(size=shape).astype(np.float32)


def codes(*shape, dtype=np.uint8):
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max + 1, shape).astype(dtype)


def f(v):
    return np.array(v, np.float32)


def tensor(x):
    x = np.asarray(x)
    data = [float(str(v)) if x.dtype == np.float32 else float(v) if x.dtype.kind == "f" else int(v) for v in x.reshape(-1)]
    return {"dtype": names[x.dtype.name], "shape": list(x.shape), "data": data}


def save(name, nodes, initializers, *feeds, outputs=None, opset=17, dims=None):
    """Runs nodes on each of the feeds; dims names the dims of an input, which are otherwise those of the feed."""
    dims = dims or {}
    inputs = [
        helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(v.dtype), dims.get(k, list(v.shape))) for k, v in feeds[0].items()
    ]
    outputs = outputs or [o for o in nodes[-1].output if o]
    graph = helper.make_graph(
        nodes, "g", inputs, [onnx.ValueInfoProto(name=o) for o in outputs], [numpy_helper.from_array(np.asarray(v), k) for k, v in initializers.items()]
    )
    domains = sorted({n.domain for n in nodes if n.domain})
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)] + [helper.make_opsetid(d, 1) for d in domains], ir_version=8)
    model.producer_name = ""
    run(name, model, feeds, outputs)


def run(name, model, feeds, outputs):
    o = ort.SessionOptions()
    o.log_severity_level = 3
    o.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    data = model.SerializeToString()
    session = ort.InferenceSession(data, o, providers=["CPUExecutionProvider"])
    sets = []
    for feed in feeds:
        got = session.run(outputs, feed)
        sets.append({"in": {k: tensor(v) for k, v in feed.items()}, "out": {k: tensor(v) for k, v in zip(outputs, got)}})
    lines.append({"name": name, "model": base64.b64encode(data).decode(), "sets": sets})


def text(name, source, feeds, opset=17, **initializers):
    """A model in ONNX's text form, run on each of the feeds."""
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}]>\n' + source)
    model.graph.initializer.extend(numpy_helper.from_array(np.asarray(v), k) for k, v in initializers.items())
    run(name, model, feeds, [o.name for o in model.graph.output])


def one(name, op, inputs, outs=1, domain=microsoft, const=(), version=17, **attrs):
    """One node. inputs may be None; those whose numbers are in const are initializers. outs counts outputs, or lists which there are."""
    args, feed, init = [], {}, {}
    for i, x in enumerate(inputs):
        args.append("" if x is None else f"x{i}")
        if x is not None:
            (init if i in const else feed)[f"x{i}"] = x
    wanted = [True] * outs if isinstance(outs, int) else outs
    results = [f"y{i}" if w else "" for i, w in enumerate(wanted)]
    save(name, [helper.make_node(op, args, results, domain=domain, name="n", **attrs)], init, feed, outputs=[r for r in results if r], opset=version)


def rotations(count, half):
    a = np.arange(count)[:, None] / 100 ** (np.arange(half) / half)
    return np.cos(a).astype(np.float32), np.sin(a).astype(np.float32)


def attention():
    b, s, h, heads = 2, 3, 8, 2
    x = floats(b, s, h)
    mask = np.array([[1, 1, 1], [1, 0, 0]], np.int32)
    table = [floats(5, h), floats(4, h), floats(2, h), floats(h), floats(h)]
    ids, kinds = rng.integers(0, 5, (b, s)).astype(np.int32), rng.integers(0, 2, (b, s)).astype(np.int32)
    one("embed", "EmbedLayerNormalization", [ids, kinds, *table, mask], 3, const=range(2, 7), epsilon=1e-5)
    one("embed without segments", "EmbedLayerNormalization", [ids, None, table[0], table[1], None, *table[3:]], 2, const=range(2, 7))
    places = rng.integers(0, 4, (b, s)).astype(np.int32)
    one("embed with positions", "EmbedLayerNormalization", [ids, kinds, *table, mask, places], 2, const=range(2, 7))
    quantized = [codes(5, h), codes(4, h), codes(2, h), codes(h), codes(h)]
    one("embed of codes", "QEmbedLayerNormalization", [ids, kinds, *quantized, mask] + [f(0.02)] * 5 + [np.array(120, np.uint8)] * 5, 2, const=range(2, 18))
    w, bias = floats(h, 3 * h) * f(0.3), floats(3 * h)
    one("attention, ends and begins", "Attention", [x, w, bias, np.array([3, 2, 1, 0], np.int32)], const=(1, 2), num_heads=heads)
    one(
        "attention of codes", "QAttention", [codes(b, s, h), codes(h, 3 * h), bias, f(0.02), f(0.01), mask, np.array(120, np.uint8), np.array(130, np.uint8)],
        const=range(1, 8), num_heads=heads, unidirectional=1,
    )
    one("residual without batch", "SkipLayerNormalization", [x, floats(1, s, h), floats(h), floats(h)], epsilon=1e-5)
    one("rms, inverse root", "SimplifiedLayerNormalization", [x, floats(h)], 2, domain="", axis=-1, epsilon=1e-5)
    one("layer norm before set 17", "LayerNormalization", [x, floats(h), floats(h)], domain="", version=11, epsilon=1e-5)
    # Positions of one offset, whose length the model does not know.
    save(
        "rotary from an offset", [helper.make_node("RotaryEmbedding", ["x", "p", "cos", "sin"], ["y"], domain=microsoft, num_heads=heads)],
        dict(zip(["cos", "sin"], rotations(8, 2))), {"x": x, "p": np.array([2])}, dims={"x": ["b", "s", h], "p": ["n"]},
    )
    kv = [floats(b, s, 16), floats(b, s, 16), None, None, np.array([2, 2], np.int32), np.array(3, np.int32)]
    one("grouped, smooth", "GroupQueryAttention", [floats(b, s, 32), *kv], 3, num_heads=2, kv_num_heads=1, smooth_softmax=1)
    one("grouped, sinks", "GroupQueryAttention", [floats(b, s, 32), *kv, None, None, None, None, floats(2)], 3, num_heads=2, kv_num_heads=1)
    # Heads whose size is a symbol: the scale is computed in the run.
    q = floats(1, 2, 3, 4)
    save("attention of symbolic heads", [helper.make_node("Attention", ["q", "k", "v"], ["y", "", "", "p"], qk_matmul_output_mode=3)], {},
         {"q": q, "k": floats(1, 2, 5, 4), "v": floats(1, 2, 5, 4)}, opset=23, outputs=["y", "p"],
         dims={"q": ["b", "h", "s", "d"], "k": ["b", "h", "t", "d"], "v": ["b", "h", "t", "d"]})


def quantized():
    z = lambda v: np.array(v, np.uint8)
    one("quantize", "QuantizeLinear", [floats(2, 3), f(0.02), z(7)], const=(1, 2))
    one("dequantize", "DequantizeLinear", [codes(2, 3), f(0.02), z(7)], const=(1, 2))
    for op in ("Add", "Mul"):
        one(op.lower(), "QLinear" + op, [codes(2, 3), f(0.02), z(120), codes(3), f(0.03), z(10), f(0.05), z(100)], const=(1, 2, 4, 5, 6, 7))
    one("sigmoid", "QLinearSigmoid", [codes(2, 5), f(0.05), z(120), f(1 / 256), z(0)], const=range(1, 5))
    one("leaky", "QLinearLeakyRelu", [codes(2, 5), f(0.05), z(120), f(0.04), z(60)], const=range(1, 5), alpha=0.1)
    one("softmax", "QLinearSoftmax", [codes(2, 5), f(0.05), z(120), f(1 / 256), z(0)], const=range(1, 5), axis=-1, opset=13)
    one("global pool", "QLinearGlobalAveragePool", [codes(1, 2, 3, 3), f(0.02), z(120), f(0.015), z(110)], const=range(1, 5))
    one(
        "pool", "QLinearAveragePool", [codes(1, 2, 4, 4), f(0.02), z(120), f(0.015), z(110)],
        const=range(1, 5), kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1],
    )
    one("concat", "QLinearConcat", [f(0.05), z(100), codes(2, 3), f(0.02), z(128), codes(2, 2), f(0.04), z(110)], const=(0, 1, 3, 4, 6, 7), axis=1)
    one("where", "QLinearWhere", [floats(2, 3) > 0, codes(2, 3), f(0.05), z(120), codes(2, 3), f(0.03), z(10), f(0.05), z(100)], const=(2, 3, 5, 6, 7, 8))
    bias = rng.integers(-500, 500, 4).astype(np.int32)
    gemm = [codes(3, 5), f(0.02), z(120), codes(4, 5), f(0.01), z(130), bias]
    one("gemm", "QGemm", gemm + [f(0.05), z(100)], const=range(1, 9), transB=1)
    one("gemm to floats", "QGemm", gemm, const=range(1, 7), transB=1)
    one("rows of blocks", "GatherBlockQuantized", [codes(6, 32), rng.integers(0, 6, 3), floats(6, 2)], const=(0, 2), quantize_axis=1, block_size=16, bits=8)
    one("pool of channels last", "NhwcMaxPool", [codes(1, 4, 4, 3)], kernel_shape=[2, 2])
    one("integers of 16 bits", "MatMulInteger16", [codes(2, 3, dtype=np.int8).astype(np.int16), codes(3, 2, dtype=np.int8).astype(np.int16)])


def fused():
    x, w, bias = floats(1, 2, 4, 4), floats(3, 2, 3, 3), floats(3)
    for name, params in (("Relu", None), ("LeakyRelu", [0.2]), ("Clip", [-1.0, 1.0]), ("HardSigmoid", [0.3, 0.4]), ("Tanh", None), ("Sigmoid", None)):
        one("conv " + name, "FusedConv", [x, w, bias], activation=name, **({"activation_params": params} if params else {}))
    one("conv, added", "FusedConv", [x, w, bias, floats(1, 3, 2, 2)], activation="Relu")
    one("gemm relu", "FusedGemm", [floats(2, 3), floats(3, 4), floats(4)], activation="Relu")
    one("gemm leaky", "FusedGemm", [floats(2, 3), floats(4, 3), floats(4)], activation="LeakyRelu", activation_alpha=0.2, transB=1)
    one("triangle", "Trilu", [floats(3, 4)], upper=0)
    one("pad", "Pad", [floats(2, 3), np.array([0, 1, 0, 2]), f(0.5)], const=(1, 2))
    one("gather", "GatherND", [floats(3, 4), rng.integers(0, 3, (2, 2))])
    one("expand", "ExpandDims", [floats(3, 4), np.array(-2, np.int32)], const=(1,))
    one("grid", "GridSample", [floats(1, 2, 3, 3), floats(1, 2, 2, 2)], align_corners=0, mode="bilinear", padding_mode="zeros")


def shapes():
    """What exporters compute from lengths; every model runs on two sizes."""
    images = [{"x": floats(1, 1, 4, 5)}, {"x": floats(1, 1, 5, 3)}]
    rows = [{"x": floats(2, 3)}, {"x": floats(3, 4)}]
    text("sizes in floats", """g (float[n,c,h,w] x) => (float[a,b,e,d] y) {
        s = Shape(x)
        sp = Slice(s, two, four)
        f = Cast<to=1>(sp)
        d = Mul(f, scale)
        fl = Floor(d)
        i = Cast<to=7>(fl)
        nc = Slice(s, zero, two)
        sizes = Concat<axis=0>(nc, i)
        y = Resize<mode="linear">(x, , , sizes)
    }""", images, zero=[0], two=[2], four=[4], scale=f([1.5, 0.5]))
    text("scales from sizes", """g (float[n,c,h,w] x, float[n2,c2,h2,w2] z) => (float[a,b,e,d] y) {
        s = Shape(x)
        f = Cast<to=1>(s)
        t = Shape(z)
        q = Cast<to=1>(t)
        d = Div(q, f)
        sp = Slice(d, two, four)
        scales = Concat<axis=0>(one, sp)
        y = Resize<mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor">(x, roi, scales)
    }""", [{"x": floats(1, 1, 2, 2), "z": floats(1, 1, 4, 4)}, {"x": floats(1, 1, 2, 3), "z": floats(1, 1, 6, 6)}],
         opset=11, two=[2], four=[4], one=f([1, 1]), roi=f([]))
    for scale in (2.0, 1.5, 0.5):
        text(f"nearest by half pixels, {scale}", """g (float[n,c,h,w] x) => (float[a,b,e,d] y) {
            y = Resize<mode="nearest", coordinate_transformation_mode="tf_half_pixel_for_nn", nearest_mode="floor">(x, roi, scales)
        }""", images, opset=11, scales=f([1, 1, scale, scale]), roi=f([]))
    text("padding to a multiple", """g (float[n,s] x) => (float[a,b] y) {
        s = Shape(x)
        d = Gather(s, one)
        m = Mod(d, four)
        l = Sub(four, m)
        k = Mod(l, four)
        u = Unsqueeze(k, axis)
        p = Concat<axis=0>(zeros, u)
        y = Pad(x, p)
    }""", rows, one=1, four=4, axis=[0], zeros=[0, 0, 0])
    text("minus one in a length", """g (float[n,s] x) => (float[a,b] y) {
        part = Slice(x, one, three, one)
        s = Shape(part)
        e = Equal(s, minus)
        t = Where(e, ones, s)
        y = Expand(v, t)
    }""", rows, one=[1], three=[3], minus=[-1, -1], ones=[1, 1], v=f([[7]]))
    text("counting by NonZero", """g (float[n,s] x) => (int64[a,b] y, int64[c,d] z) {
        s = Shape(x)
        o = ConstantOfShape<value=float[1] {1.0}>(s)
        y = NonZero(o)
        l = Slice(s, one, two)
        p = ConstantOfShape<value=int64[1] {1}>(l)
        z = NonZero(p)
    }""", rows, one=[1], two=[2])
    text("lengths in attributes", """g (float[n,s] x, int64[m] i) => (float[a,b] y, int64[c,d] j, float[e,f] h, float[k,l] o) {
        s = Shape(x)
        d = Slice(s, one, two)
        k = Min(d, three)
        y, j = TopK<axis=1>(x, k)
        h = Hardmax<axis=1>(x)
        o = OneHot(i, d, values)
    }""", [{"x": floats(2, 2), "i": np.array([0, -1])}, {"x": floats(1, 5), "i": np.array([4, 1])}], one=[1], two=[2], three=[3], values=f([-1, 2]))
    text("statistics of a batch", """g (float[n,3,h] x) => (float[a,b,c] y, float[3] m, float[3] v, float[3] sm) {
        y, m, v, sm, sv = BatchNormalization(x, s, bias, mean, var)
    }""", [{"x": floats(2, 3, 4)}], opset=9, s=floats(3), bias=floats(3), mean=floats(3), var=np.abs(floats(3)))
    text("grid of any size", """g (float[n,2,3] t, float[n,c,h,w] x) => (float[a,b,c2,2] y) {
        s = Shape(x)
        y = AffineGrid<align_corners=1>(t, s)
    }""", [{"t": floats(1, 2, 3), "x": floats(1, 1, 2, 3)}, {"t": floats(1, 2, 3), "x": floats(1, 1, 3, 2)}], opset=20)
    text("cubic samples behind a border", """g (float[1,1,3,3] x, float[1,2,3,2] p) => (float[a,b,c,d] y) {
        y = GridSample<mode="bicubic", padding_mode="border">(x, p)
    }""", [{"x": floats(1, 1, 3, 3), "p": floats(1, 2, 3, 2)}], opset=16)


def recurrent():
    x, lens = floats(3, 2, 2), np.array([3, 2], np.int32)
    for op, gates, functions in (("LSTM", 4, ["HardSigmoid", "Tanh", "Softsign"]), ("GRU", 3, ["HardSigmoid", "Relu"]), ("RNN", 1, ["Affine"])):
        states = [floats(2, 2, 3), floats(2, 2, 3)][: 2 if op == "LSTM" else 1]
        peeps = [floats(2, 9)] if op == "LSTM" else []
        other = ["Sigmoid"] + functions[1:] if gates > 1 else ["ScaledTanh"]
        one(f"{op}, other functions", op, [x, floats(2, 3 * gates, 2), floats(2, 3 * gates, 3), floats(2, 6 * gates), lens, *states, *peeps], 1 + len(states),
            domain="", const=range(1, 4), hidden_size=3, direction="bidirectional", activations=functions + other,
            activation_alpha=[0.3, 0.7], activation_beta=[0.4, 0.6], clip=2.0)
    one("GRU, reset first", "GRU", [x, floats(1, 9, 2), floats(1, 9, 3), floats(1, 18)], 2, domain="", const=range(1, 4), hidden_size=3, direction="reverse",
        activations=["Sigmoid", "Relu"], linear_before_reset=1)
    one("LSTM, one gate for two", "LSTM", [x, floats(1, 12, 2), floats(1, 12, 3)], 3, domain="", const=(1, 2), hidden_size=3, input_forget=1)


for group in (attention, quantized, fused, shapes, recurrent):
    group()
with open(os.path.join(os.path.dirname(__file__), "runtime.json"), "w") as out:
    out.write("[\n" + ",\n".join(json.dumps(l) for l in lines) + "\n]\n")
