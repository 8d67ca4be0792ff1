#!/usr/bin/env python3
"""Make the data of the digits demo: train a small network, write it as ONNX, and write the test rows.

    python3 make_digits.py [--wheel WHEEL] [--out DIR]

Needs NumPy and the onnx package. The data set is a file inside the scikit-learn wheel, which `pip download` fetches into a
temporary folder unless --wheel names it; scikit-learn itself is neither installed nor run.

Written into DIR (by default the folder of this script):
    digits.onnx         MLP 64-128-64-10, opset 17: pixels float32 [batch, 64] -> probabilities float32 [batch, 10]
    digits_test.bin     "RLXD", u32 count, u32 64, count*64 u8 pixels (0..16), count u8 labels; little-endian
    digits_golden.json  accuracy and first rows of a float64 forward pass over digits_test.bin
The network takes pixels divided by 16.
"""
import argparse
import glob
import gzip
import hashlib
import json
import os
import struct
import subprocess
import sys
import tempfile
import zipfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

PACKAGE = "scikit-learn==1.9.1"
MEMBER = "sklearn/datasets/data/digits.csv.gz"
TRAIN_ROWS = 1347  # of 1,797; the rest is held out
SIZES = (64, 128, 64, 10)
SEED, EPOCHS, BATCH, RATE = 7, 150, 32, 2e-3
DECAY, NOISE, BLANK, SMOOTH = 0.1, 0.1, 0.1, 0.1


def load(wheel):
    """The 1,797 rows of the data set: uint8 pixels [n, 64] in 0..16 and uint8 labels [n]."""
    with zipfile.ZipFile(wheel) as z:
        text = gzip.decompress(z.read(MEMBER)).decode()
    rows = np.loadtxt(text.splitlines(), delimiter=",")
    if rows.shape != (1797, 65) or rows[:, :64].min() < 0 or rows[:, :64].max() > 16:
        raise ValueError("digits.csv is not the table expected: shape %s" % (rows.shape,))
    return rows[:, :64].astype(np.uint8), rows[:, 64].astype(np.uint8)


def softmax(z):
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def forward(params, x):
    """All activations, input first and probabilities last, in the dtype of x."""
    acts = [x]
    for i in range(0, len(params), 2):
        z = acts[-1] @ params[i].astype(x.dtype) + params[i + 1].astype(x.dtype)
        acts.append(softmax(z) if i + 2 == len(params) else np.maximum(z, 0))
    return acts


def gradients(params, acts, labels):
    """Gradients of the mean cross-entropy against labels smoothed by SMOOTH."""
    delta = acts[-1] - np.float32(SMOOTH / SIZES[-1])
    delta[np.arange(len(labels)), labels] -= np.float32(1 - SMOOTH)
    delta /= len(labels)
    grads = [None] * len(params)
    for i in range(len(params) - 2, -1, -2):
        grads[i], grads[i + 1] = acts[i // 2].T @ delta, delta.sum(axis=0)
        delta = (delta @ params[i].T) * (acts[i // 2] > 0)
    return grads


def augmented(x, rng):
    """Half of the 8x8 images moved by up to one pixel each way (empty pixels move in), then noise on all pixels and some
    pixels blanked. The held-out rows come from other writers than the training rows: a network that leans on exact
    positions or on single pixels does badly on them."""
    out = x.copy()
    moves = rng.integers(-1, 2, (len(x), 2)) * rng.integers(0, 2, (len(x), 1))
    for row, image, (dy, dx) in zip(out.reshape(-1, 8, 8), x.reshape(-1, 8, 8), moves):
        y0, y1, x0, x1 = max(dy, 0), 8 + min(dy, 0), max(dx, 0), 8 + min(dx, 0)
        row[:] = 0
        row[y0:y1, x0:x1] = image[y0 - dy:y1 - dy, x0 - dx:x1 - dx]
    out += rng.normal(0, NOISE, x.shape).astype(np.float32)
    return out * (rng.random(x.shape) >= BLANK)


def train(x, labels):
    """Adam (b1 0.9, b2 0.999) with decoupled weight decay and a learning rate that falls to 0; float32, fixed seed."""
    rng = np.random.default_rng(SEED)
    params = []
    for a, b in zip(SIZES, SIZES[1:]):
        params += [rng.normal(0, np.sqrt(2 / a), (a, b)).astype(np.float32), np.zeros(b, np.float32)]
    m, v, t = [np.zeros_like(p) for p in params], [np.zeros_like(p) for p in params], 0
    for epoch in range(EPOCHS):
        rate, order = RATE * (1 - epoch / EPOCHS), rng.permutation(len(x))
        for lo in range(0, len(x), BATCH):
            rows, t = order[lo:lo + BATCH], t + 1
            for i, g in enumerate(gradients(params, forward(params, augmented(x[rows], rng)), labels[rows])):
                m[i] = np.float32(0.9) * m[i] + np.float32(0.1) * g
                v[i] = np.float32(0.999) * v[i] + np.float32(0.001) * g * g
                step = (m[i] / np.float32(1 - 0.9 ** t)) / (np.sqrt(v[i] / np.float32(1 - 0.999 ** t)) + np.float32(1e-8))
                params[i] = params[i] - np.float32(rate) * (step + np.float32(DECAY) * params[i])
    return params


def model(params):
    nodes, value, last = [], "pixels", len(params) // 2
    for k in range(1, last + 1):
        nodes += [helper.make_node("MatMul", [value, "w%d" % k], ["product%d" % k], "matmul%d" % k),
                  helper.make_node("Add", ["product%d" % k, "b%d" % k], ["sum%d" % k], "add%d" % k)]
        if k < last:
            nodes.append(helper.make_node("Relu", ["sum%d" % k], ["hidden%d" % k], "relu%d" % k))
        value = "hidden%d" % k
    nodes.append(helper.make_node("Softmax", ["sum%d" % last], ["probabilities"], "softmax", axis=-1))
    weights = [numpy_helper.from_array(p, "%s%d" % ("wb"[i % 2], i // 2 + 1)) for i, p in enumerate(params)]
    graph = helper.make_graph(
        nodes, "digits",
        [helper.make_tensor_value_info("pixels", TensorProto.FLOAT, ["batch", SIZES[0]])],
        [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["batch", SIZES[-1]])], weights)
    m = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], producer_name="rlx-demo")
    m.ir_version = 8  # the IR version that opset 17 came with
    onnx.checker.check_model(m, full_check=True)
    return m.SerializeToString(deterministic=True)


def write(folder, name, data):
    with open(os.path.join(folder, name), "wb") as f:
        f.write(data)
    print("%-20s %7d bytes  sha256 %s" % (name, len(data), hashlib.sha256(data).hexdigest()))


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--wheel", help="a scikit-learn wheel already downloaded")
    ap.add_argument("--out", default=os.path.dirname(os.path.abspath(__file__)))
    a = ap.parse_args()
    if a.wheel:
        pixels, labels = load(a.wheel)
    else:
        with tempfile.TemporaryDirectory() as tmp:
            subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", "-d", tmp, PACKAGE], check=True)
            pixels, labels = load(glob.glob(os.path.join(tmp, "*.whl"))[0])
    params = train(pixels[:TRAIN_ROWS].astype(np.float32) / np.float32(16), labels[:TRAIN_ROWS])
    test, truth = pixels[TRAIN_ROWS:], labels[TRAIN_ROWS:]
    probabilities = forward(params, test.astype(np.float64) / 16)[-1]
    right = int((probabilities.argmax(axis=1) == truth).sum())
    print("held-out accuracy %d of %d = %.4f" % (right, len(truth), right / len(truth)))
    if right < 0.95 * len(truth):
        print("below 95 %: nothing written", file=sys.stderr)
        return 1
    golden = {
        "about": "float64 NumPy forward pass of digits.onnx over digits_test.bin",
        "count": len(truth), "right": right, "accuracy": round(right / len(truth), 6),
        "labels": truth[:3].tolist(), "probabilities": [[float("%.12g" % p) for p in row] for row in probabilities[:3]],
    }
    write(a.out, "digits.onnx", model(params))
    write(a.out, "digits_test.bin", b"RLXD" + struct.pack("<II", len(truth), 64) + test.tobytes() + truth.tobytes())
    write(a.out, "digits_golden.json", (json.dumps(golden, indent=1) + "\n").encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
