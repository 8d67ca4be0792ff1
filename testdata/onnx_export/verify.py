"""Checks the models that rlx exported: onnx.checker accepts each, and ONNX Runtime gives the stored outputs.

    verify.py EXPORTS MODELS > verify.log

EXPORTS is the folder that the export tests wrote (make verify-onnx): node/TEST/SET, model/CASE, case/FILE/LINE, graph/NAME, each with a
model.onnx.
MODELS holds onnx-node-tests, whose inputs and outputs are read. A line of the log is one model that did not pass, with the reason:

    FAIL     the checker refuses it, or the numbers differ
    runtime  ONNX Runtime lacks a type or an operator of it, in its own words, or differs on the test's own model; the checker accepts it
    differs  a case of differs.txt, where ONNX leaves the answer open or the runtime is off

Exit status 1 says that there is a FAIL.
"""
import base64
import json
import multiprocessing
import pathlib
import re
import sys

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

HERE = pathlib.Path(__file__).parent.parent  # testdata
RTOL, ATOL = 1e-3, 1e-7  # of ONNX's own runner
BFLOAT_RTOL = 1 / 64

# Reasons of ONNX Runtime that are no defect of a model: types and operators without a kernel.
LACKS = re.compile(
    r"NOT_IMPLEMENTED|Could not find an implementation|is not a registered function/op|Type Error: Type 'tensor|"
    r"only supports|crashed")

DTYPES = {
    "bool": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "u8": np.uint8, "u16": np.uint16,
    "u32": np.uint32, "u64": np.uint64, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64,
    "c64": np.complex64, "f8e4m3": ml_dtypes.float8_e4m3fn, "f8e5m2": ml_dtypes.float8_e5m2, "f4e2m1": ml_dtypes.float4_e2m1fn,
    "e8m0": ml_dtypes.float8_e8m0fnu,
}
SMALL_FLOATS = {"bfloat16", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn", "float8_e8m0fnu"}  # which NumPy lacks
CODES = {"f8e4m3", "f8e5m2", "f4e2m1", "e8m0"}


def read_tensor(path):
    t = onnx.TensorProto()
    t.ParseFromString(path.read_bytes())
    return numpy_helper.to_array(t)


def ort_value(a, elem):
    """An array as a value of ONNX Runtime, which takes the small floats by their bits."""
    if a.dtype.name in SMALL_FLOATS:
        bits = np.array(a, order="C").view(np.uint16 if a.dtype.itemsize == 2 else np.uint8)
        return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, elem)
    return onnxruntime.OrtValue.ortvalue_from_numpy(np.array(a, order="C"))


def fed_as(a, elem):
    """The array in the type that the exported model declares: integers of 2 and 4 bits travel in 8."""
    want = onnx.helper.tensor_dtype_to_np_dtype(elem)
    return a if a.dtype == want else a.astype(want)


def readable(model):
    """The model with small floats among its outputs cast to f32, as which they can be taken out of ONNX Runtime."""
    for o in model.graph.output:
        t = o.type.tensor_type
        if onnx.helper.tensor_dtype_to_np_dtype(t.elem_type).name in SMALL_FLOATS:
            wide = o.name + "/f32"
            model.graph.node.append(onnx.helper.make_node("Cast", [o.name], [wide], to=onnx.TensorProto.FLOAT))
            o.name, t.elem_type = wide, onnx.TensorProto.FLOAT
    return model


def run_ort(path, feed):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 2
    model = readable(onnx.load(path))
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    has = {t.name for t in model.graph.initializer}
    elems = {i.name: i.type.tensor_type.elem_type for i in model.graph.input if i.name not in has}
    values = {n: ort_value(fed_as(feed[n], e), e) for n, e in elems.items()}
    names = [o.name for o in model.graph.output]
    out = session.run_with_ort_values(names, values)
    return {n.removesuffix("/f32"): v.numpy() for n, v in zip(names, out)}


def difference(got, want, rtol, atol):
    """What is wrong with a result, None for nothing."""
    if got is None:
        return "is missing"
    if got.shape != want.shape:
        return f"has shape {got.shape}, expected {want.shape}"
    if want.dtype.kind in "iub":
        bad = got.astype(np.int64) != want.astype(np.int64) if want.dtype != np.uint64 else got != want
    else:
        wide = np.complex128 if want.dtype.kind == "c" else np.float64
        g, w = got.astype(wide), want.astype(wide)
        with np.errstate(invalid="ignore", over="ignore"):
            near = (g == w) | (np.isnan(g) & np.isnan(w)) | ((np.abs(g - w) <= atol + rtol * np.abs(w)) & ~np.isinf(w))
        bad = ~near
    if not bad.any():
        return None
    k = int(np.argmax(bad.ravel()))
    return f"element {k} of {list(want.shape)} is {got.ravel()[k]}, expected {want.ravel()[k]} ({int(bad.sum())} differ)"


def node_test(path, models):
    """A model of node/TEST/SET: inputs and outputs stand in the folder of the test."""
    test, data = path.parts[-3], path.parts[-2]
    folder = models / "onnx-node-tests" / test
    graph = onnx.load(folder / "model.onnx").graph
    has = {t.name for t in graph.initializer}
    names = [i.name for i in graph.input if i.name not in has]
    feed = {n: read_tensor(folder / data / f"input_{i}.pb") for i, n in enumerate(names)}
    tol = json.loads((folder / "data.json").read_text()) if (folder / "data.json").exists() else {}
    want = {}
    for i, o in enumerate(graph.output):
        want[o.name] = read_tensor(folder / data / f"output_{i}.pb")
    return feed, want, tol.get("rtol", RTOL), tol.get("atol", ATOL)


def filled(spec):
    """A tensor of a case file."""
    dtype = DTYPES[spec["dtype"]]
    if spec.get("gen"):
        n = int(np.prod(spec["shape"], dtype=np.int64))
        data = spec.get("scale", 0) * np.sin(spec.get("phase", 0) + spec.get("step", 0) * np.arange(n))
        return data.astype(dtype).reshape(spec["shape"])
    data = spec["data"]
    if spec["dtype"] in CODES:
        return np.array(data, np.uint8).view(dtype).reshape(spec["shape"])
    if np.dtype(dtype).kind in "iub":
        return np.array([int(v) for v in data], object).astype(dtype).reshape(spec["shape"])
    flat = np.array([float(v) for v in data], np.float64)
    if dtype is np.complex64:
        flat = flat[0::2] + 1j * flat[1::2]
    with np.errstate(over="ignore"):
        return flat.astype(dtype).reshape(spec["shape"])


def op_case(path):
    """A model of case/FILE/LINE: the line of that case file."""
    lines = (HERE / "cases" / (path.parts[-3] + ".jsonl")).read_text().splitlines()
    c = json.loads(lines[int(path.parts[-2]) - 1])
    feed = {f"in{i}": filled(t) for i, t in enumerate(c["inputs"]) if t}
    if c.get("op") == "Input":
        feed = {c["attrs"]["name"]: filled(c["inputs"][0])}
    want = {f"out{i}": filled(t) for i, t in enumerate(c["outputs"]) if t}
    return feed, want, c.get("rtol", 1e-5), c.get("atol", 1e-6)


def stored(tensors):
    """Tensors that a test of the exporter wrote."""
    return {n: np.frombuffer(base64.b64decode(t["data"] or ""), DTYPES[t["dtype"]]).reshape(t["shape"] or []) for n, t in tensors.items()}


def graph(path):
    """A model of graph/NAME: run.json holds its inputs, and the outputs of the interpreter."""
    run = json.loads((path.parent / "run.json").read_text())
    return stored(run["feed"]), stored(run["want"]), 1e-6, 1e-7


def golden(path):
    """A model of model/CASE: feeds.json holds its inputs, golden.json samples of its outputs."""
    info = json.loads((path.parent / "feeds.json").read_text())
    cases = json.loads((HERE / "models" / "golden.json").read_text())["cases"]
    case = next(c for c in cases if c["name"] == info["case"])
    out = {}
    for feed in info["feeds"]:
        arrays = stored(feed)
        arrays.update({i: out[o] for i, o in (info["feedback"] or {}).items() if o in out})
        out = run_ort(path, arrays)
    for name, want in case["outputs"].items():
        if name == "trace":
            continue
        got = out[name]
        if list(got.shape) != want["shape"]:
            return f"{name} has shape {got.shape}, expected {want['shape']}"
        flat = got.ravel().astype(np.float64)
        for k, v in [*enumerate(want["first"]), *zip(want["at"], want["values_at"])]:
            if not abs(flat[k] - v) <= case["tol"][name]:
                return f"element {k} of {name} is {flat[k]}, expected {v} within {case['tol'][name]}"
    return None


def verify(path, models):
    """One model: (verdict, reason)."""
    try:
        onnx.checker.check_model(str(path), full_check=True)
    except Exception as e:  # whatever the checker says
        return "FAIL", "checker: " + first_line(e)
    try:
        kind = "graph" if path.parts[-3] == "graph" else path.parts[-4]
        if kind == "model":
            reason = golden(path)
            return ("FAIL", reason) if reason else ("ok", "")
        read = {"node": lambda p: node_test(p, models), "case": op_case, "graph": graph}[kind]
        feed, want, rtol, atol = read(path)
        if any(n.op_type.startswith("Random") for n in onnx.load(path).graph.node):
            want = {}
        reason = differing(run_ort(path, feed), want, rtol, atol)
        if reason and kind == "node":
            its_own = models / "onnx-node-tests" / path.parts[-3] / "model.onnx"
            theirs = differing(run_ort(its_own, feed), want, rtol, atol)
            if theirs:
                return "runtime", f"the test's own model differs too: {theirs}"
        return ("FAIL", reason) if reason else ("ok", "")
    except Exception as e:
        text = first_line(e)
        return ("runtime" if LACKS.search(text) else "FAIL"), text


def differing(got, want, rtol, atol):
    for name, w in want.items():
        r = max(rtol, BFLOAT_RTOL) if rtol == RTOL and w.dtype == ml_dtypes.bfloat16 else rtol
        reason = difference(got.get(name), w, r, atol)
        if reason:
            return f"output {name} {reason}"
    return None


def first_line(e):
    text = " ".join(str(e).split())
    return re.sub(r"/\S*onnxruntime\S*", "", text)[:300]


def worker(pipe, models):
    while True:
        pipe.send(verify(pathlib.Path(pipe.recv()), models))


class Runner:
    """Runs models in a process of its own: what a runtime does with an integer divided by zero takes that process down."""

    def __init__(self, models):
        self.models = models
        self.start()

    def start(self):
        self.pipe, theirs = multiprocessing.Pipe()
        self.process = multiprocessing.Process(target=worker, args=(theirs, self.models), daemon=True)
        self.process.start()
        theirs.close()

    def __call__(self, path):
        self.pipe.send(str(path))
        try:
            return self.pipe.recv()
        except EOFError:
            self.process.join()
            code = self.process.exitcode
            self.start()
            return "runtime", f"ONNX Runtime crashed with signal {-code}"


def listed():
    """The cases of differs.txt: (file, kind, name)."""
    lines = (pathlib.Path(__file__).parent / "differs.txt").read_text().splitlines()
    return {tuple(line.split(" ", 2)) for line in lines if line and not line.startswith("#")}


def case_name(path):
    lines = (HERE / "cases" / (path.parts[-3] + ".jsonl")).read_text().splitlines()
    c = json.loads(lines[int(path.parts[-2]) - 1])
    return path.parts[-3], c.get("op"), c["name"]


def main():
    exports, models = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    print(f"onnx {onnx.__version__}, onnxruntime {onnxruntime.__version__}")
    run, differs = Runner(models), listed()
    paths = sorted(exports.rglob("model.onnx"))
    counts = {}
    for i, path in enumerate(paths):
        name = path.parent.relative_to(exports)
        verdict, reason = run(path)
        if name.parts[0] == "case":
            case = case_name(path)
            reason = f"{case[2]}: {reason}"
            if case in differs and verdict == "FAIL":
                verdict = "differs"
            elif case in differs:
                verdict, reason = "FAIL", f"{case[2]}: {verdict}, and has to leave differs.txt"
        counts.setdefault(name.parts[0], {}).setdefault(verdict, 0)
        counts[name.parts[0]][verdict] += 1
        if verdict != "ok":
            print(f"{verdict} {name}: {reason}", flush=True)
        if sys.stderr.isatty():
            print(f"\r{i + 1}/{len(paths)}", end="", file=sys.stderr, flush=True)
    for kind, c in counts.items():
        print(f"{kind}: {c.get('ok', 0)} passed, {c.get('FAIL', 0)} failed, {c.get('runtime', 0)} that ONNX Runtime does not run, "
              f"{c.get('differs', 0)} listed")
    sys.exit(any(c.get("FAIL") for c in counts.values()) or not paths)


if __name__ == "__main__":
    multiprocessing.set_start_method("fork")
    main()
