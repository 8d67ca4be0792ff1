#!/usr/bin/env python3
"""ONNX Runtime on the models of `rlx bench model.onnx`: the same files, inputs, names and fields (docs/bench.md). For developers.

    RLX_MODELS=DIR python3 ort_models.py [-t THREADS] [-s SECONDS] [--rlx BINARY] [--peers DIR] [PREFIX...]

One JSON object a line on standard output, a model that cannot run on standard error. compile_ms is the making of the session and the first
run. With --rlx, rlx runs on the same inputs and max_err is the largest difference between both over the largest magnitude. With --peers, a
folder with models.py, the text encoders that are built there are measured too. Needs numpy and onnxruntime.
"""
import argparse
import itertools
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnxruntime as ort

HERE = os.path.dirname(os.path.abspath(__file__))


def tensor(dtype, shape, kind, lo=0, hi=0, seed=0, value=0):
    """The formula of models.json: see Input.Fill in internal/golden."""
    if kind == "const":
        return np.full(shape, value, dtype)
    h = np.arange(int(np.prod(shape)), dtype=np.uint32) + np.uint32(seed * 0x9E3779B9 & 0xFFFFFFFF)
    h ^= h >> np.uint32(16)
    h *= np.uint32(0x7FEB352D)
    h ^= h >> np.uint32(15)
    h *= np.uint32(0x846CA68B)
    h ^= h >> np.uint32(16)
    if kind == "uniform":
        v = lo + (hi - lo) * ((h >> np.uint32(8)).astype(np.float64) / 2**24)
    else:
        v = lo + h.astype(np.int64) % (hi - lo)
    return v.astype(dtype).reshape(shape)


def session(model, threads):
    """Of a path, or of a model's bytes."""
    o = ort.SessionOptions()
    o.intra_op_num_threads, o.inter_op_num_threads, o.log_severity_level = threads, 1, 4
    return ort.InferenceSession(model, o, providers=["CPUExecutionProvider"])


def bound(s, feed):
    """A function that runs the session with inputs in place and outputs in memory that exists."""
    b = s.io_binding()
    for name, v in feed.items():
        b.bind_ortvalue_input(name, ort.OrtValue.ortvalue_from_numpy(v))
    for y, v in zip(s.get_outputs(), s.run(None, feed)):
        b.bind_ortvalue_output(y.name, ort.OrtValue.ortvalue_from_numpy(np.zeros_like(v)))
    r = ort.RunOptions()
    return lambda: s.run_with_iobinding(b, r)


def measure(fn, seconds):
    """Seconds per run: at least 5 runs, those under 20 us in groups."""
    for _ in range(3):
        t = time.perf_counter()
        fn()
        one = time.perf_counter() - t
    group = max(1, int(2e-5 / max(one, 1e-7)))
    times, end = [], time.perf_counter() + seconds
    while len(times) < 5 or time.perf_counter() < end:
        t = time.perf_counter()
        for _ in range(group):
            fn()
        times.append((time.perf_counter() - t) / group)
    return times


def difference(rlx, path, feed, outputs):
    """What rlx makes of the same inputs, against the outputs by name."""
    worst = 0
    with tempfile.TemporaryDirectory() as folder:
        command = [rlx, "run", path, "--backend", "cpu", "--out", folder]
        for i, (name, v) in enumerate(feed.items()):
            file = os.path.join(folder, f"in{i}.npy")
            np.save(file, v)
            command += ["--in", f"{name}={file}"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        for name, want in outputs.items():
            got = np.load(os.path.join(folder, re.sub(r'[/\\:*?"<>|]', "_", name) + ".npy"))
            if got.shape != want.shape:
                raise ValueError(f"output {name} is {got.shape} by rlx, {want.shape} by ONNX Runtime")
            worst = max(worst, float(np.abs(got.astype(np.float64) - want).max() / max(np.abs(want).max(), 1e-300)))
    return worst


def files():
    """(name, path, inputs) of the models of models.json."""
    if "RLX_MODELS" not in os.environ:
        print("model.onnx: left out: RLX_MODELS is not set: run python3 testdata/models/fetch.py DIR, then set it to DIR", file=sys.stderr)
        return
    for m in json.load(open(os.path.join(HERE, "models.json"))):
        yield "model.onnx." + m["name"], os.path.join(os.environ["RLX_MODELS"], m["file"]), lambda m=m: {k: tensor(**v) for k, v in m["inputs"].items()}


def built(folder):
    """(name, bytes, inputs) of the text encoders that the peers' models.py writes."""
    sys.path.insert(0, folder)
    import models
    for name in ("model.minilm.s32", "model.minilm.s128"):
        m = models.build(name)
        yield name, m.SerializeToString(), lambda m=m: models.feeds(m)


def line(name, model, inputs, args):
    t = time.perf_counter()
    s = session(model, args.threads)
    made, feed, more = time.perf_counter() - t, inputs(), {}
    feed = {i.name: feed[i.name] for i in s.get_inputs()}
    t = time.perf_counter()
    outputs = dict(zip([y.name for y in s.get_outputs()], s.run(None, feed)))
    made += time.perf_counter() - t
    if args.rlx and isinstance(model, str):
        more["max_err"] = difference(args.rlx, model, feed, outputs)
    times = measure(bound(s, feed), args.seconds)
    return dict(workload=name, peer="onnxruntime", threads=args.threads, min_ms=round(min(times) * 1e3, 6), median_ms=round(statistics.median(times) * 1e3, 6),
                reps=len(times), version=ort.__version__, compile_ms=round(made * 1e3, 3), **more)


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("-t", "--threads", type=int, default=1)
    a.add_argument("-s", "--seconds", type=float, default=1)
    a.add_argument("--rlx", help="the rlx binary to compare with")
    a.add_argument("--peers", help="a folder with models.py")
    a.add_argument("prefix", nargs="*")
    args = a.parse_args()
    for name, model, inputs in itertools.chain(files(), built(args.peers) if args.peers else ()):
        if args.prefix and not name.startswith(tuple(args.prefix)):
            continue
        try:
            print(json.dumps(line(name, model, inputs, args)), flush=True)
        except Exception as e:
            print(f"{name}: left out: {type(e).__name__}: {e}", file=sys.stderr)


if __name__ == "__main__":
    main()
