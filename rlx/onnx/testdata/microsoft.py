"""Writes microsoft.json: small cases of com.microsoft operators, computed with NumPy in float64 after ONNX Runtime's operator documents.

One case a line: {op, name, attrs, inputs, outputs}; null is an absent input or an output that is not wanted.
"""
import json
import math
import os

import numpy as np

rng = np.random.default_rng(7)
cases = []
erf = np.vectorize(math.erf)
names = {np.dtype(k): v for k, v in {"float32": "f32", "int32": "i32", "int64": "i64", "uint8": "u8", "int8": "i8"}.items()}


def tensor(x):
    if x is None:
        return None
    x = np.asarray(x)
    if x.dtype == np.float64:
        x = x.astype(np.float32)
    data = [float(str(v)) if x.dtype == np.float32 else v.item() for v in x.reshape(-1)]  # the shortest decimal of a float
    return {"dtype": names[x.dtype], "shape": list(x.shape), "data": data}


def case(op, name, inputs, outputs, **attrs):
    cases.append({"op": op, "name": name, "attrs": attrs, "inputs": [tensor(x) for x in inputs], "outputs": [tensor(y) for y in outputs]})


def floats(*shape):
    return rng.normal(size=shape).astype(np.float32)


def gelu(x):
    return 0.5 * x * (1 + erf(x / math.sqrt(2)))


def fast_gelu(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def layer_norm(x, gamma, beta, eps):
    mean = x.mean(-1, keepdims=True)
    return (x - mean) / np.sqrt(((x - mean) ** 2).mean(-1, keepdims=True) + eps) * gamma + beta


def rms_norm(x, gamma, eps):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * gamma


def softmax(s):
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def wide(x):
    return np.asarray(x, np.float64)


def split(x, heads):  # [B, S, H*D] to [B, H, S, D]
    b, s, w = x.shape
    return x.reshape(b, s, heads, w // heads).transpose(0, 2, 1, 3)


def join(x):
    b, h, s, d = x.shape
    return x.transpose(0, 2, 1, 3).reshape(b, s, h * d)


def rotate(x, cos, sin, positions, interleaved):  # x [B, H, S, D], positions [B, S]
    c, s = wide(cos)[positions][:, None], wide(sin)[positions][:, None]
    r = 2 * c.shape[-1]
    y = np.array(x, np.float64)
    a, b = (slice(0, r, 2), slice(1, r, 2)) if interleaved else (slice(0, r // 2), slice(r // 2, r))
    y[..., a] = x[..., a] * c - x[..., b] * s
    y[..., b] = x[..., b] * c + x[..., a] * s
    return y


x, b = floats(2, 3, 4), floats(4)
case("Gelu", "plain", [x], [gelu(wide(x))])
case("QuickGelu", "default", [x], [x / (1 + np.exp(-1.702 * wide(x)))])
case("QuickGelu", "silu", [x], [x / (1 + np.exp(-wide(x)))], alpha=1.0)
case("FastGelu", "bias", [x, b], [fast_gelu(wide(x) + b)])
case("FastGelu", "plain", [x], [fast_gelu(wide(x))])
case("BiasGelu", "plain", [x, b], [gelu(wide(x) + b)])

a, w = floats(2, 4, 3), floats(2, 5, 4)
case("FusedMatMul", "both turned", [a, w], [0.5 * wide(a).transpose(0, 2, 1) @ wide(w).transpose(0, 2, 1)], alpha=0.5, transA=1, transB=1)
a, w = floats(3, 2, 4), floats(2, 4, 5)
case("FusedMatMul", "batch turned", [a, w], [wide(a).transpose(1, 0, 2) @ wide(w)], transBatchA=1)

x, skip, g, be, bias = floats(2, 3, 8), floats(2, 3, 8), floats(8), floats(8), floats(8)
s = wide(x) + skip + bias
case("SkipLayerNormalization", "bias and sum", [x, skip, g, be, bias], [layer_norm(s, g, be, 1e-6), None, None, s], epsilon=1e-6)
case("SkipLayerNormalization", "skip without batch", [x, skip[:1], g, be], [layer_norm(wide(x) + skip[:1], g, be, 1e-12)])
case("SkipSimplifiedLayerNormalization", "sum", [x, skip, g], [rms_norm(wide(x) + skip, g, 1e-5), None, None, wide(x) + skip], epsilon=1e-5)
case("SimplifiedLayerNormalization", "plain", [x, g], [rms_norm(wide(x), g, 1e-6)], epsilon=1e-6)

angle = rng.uniform(0, 6, size=(16, 2))
cos, sin = np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)
x, pos = floats(2, 3, 8), np.array([[4, 5, 6], [0, 2, 9]])
case("RotaryEmbedding", "positions", [x, pos, cos, sin], [join(rotate(split(wide(x), 2), cos, sin, pos, False))], num_heads=2)
case("RotaryEmbedding", "heads from the table", [x, pos, cos, sin], [join(rotate(split(wide(x), 2), cos, sin, pos, True))], interleaved=1)
x = floats(2, 2, 3, 6)
case("RotaryEmbedding", "offset, part of the head", [x, np.array([5]), cos, sin], [rotate(wide(x), cos, sin, np.array([[5, 6, 7]] * 2), False)],
     num_heads=2, rotary_embedding_dim=4)


def pack(codes, bits):  # the low bits of a byte first
    per = 8 // bits
    out = np.zeros(codes.shape[:-1] + (-(-codes.shape[-1] // per),), np.uint8)
    for i in range(codes.shape[-1]):
        out[..., i // per] |= (codes[..., i] << (bits * (i % per))).astype(np.uint8)
    return out


for bits, k, zeros, bias in [(4, 32, True, False), (4, 40, False, True), (8, 32, True, False), (2, 64, False, False)]:
    n, block = 3, 16
    blocks = -(-k // block)
    codes = rng.integers(0, 2**bits, size=(n, blocks, block))
    scales = rng.uniform(0.1, 0.2, size=(n, blocks)).astype(np.float32)
    zero = rng.integers(0, 2**bits, size=(n, blocks)) if zeros else np.full((n, blocks), 2 ** (bits - 1))
    dense = ((codes - zero[..., None]) * wide(scales)[..., None]).reshape(n, -1)[:, :k]
    x, add = floats(2, k), floats(n)
    y = wide(x) @ dense.T + (add if bias else 0)
    case("MatMulNBits", f"{bits} bits, K {k}", [x, pack(codes, bits), scales.reshape(-1), pack(zero, bits).reshape(-1) if zeros else None, None, add if bias else None],
         [y], K=k, N=n, bits=bits, block_size=block)

x, w = floats(3, 4), rng.integers(-128, 128, size=(4, 5)).astype(np.int8)
scale, zero, bias = rng.uniform(0.01, 0.02, size=5).astype(np.float32), rng.integers(-3, 4, size=5).astype(np.int8), floats(5)
lo, hi = min(x.min(), 0), max(x.max(), 0)
xs = np.float32((hi - lo) / np.float32(255))
xz = np.clip(np.round(-lo / xs), 0, 255)
q = np.clip(np.round(x / xs) + xz, 0, 255)
case("DynamicQuantizeMatMul", "columns", [x, w, scale, zero, bias], [(q - xz) @ (wide(w) - zero) * xs * scale + bias])
u = rng.integers(0, 256, size=(3, 4)).astype(np.uint8)
case("MatMulIntegerToFloat", "columns", [u, w, np.float32(0.02), scale, np.uint8(7), zero, bias],
     [(wide(u) - 7) @ (wide(w) - zero) * wide(np.float32(0.02)) * scale + bias])


def attend(q, k, v, bias=0, scale=None):
    scale = scale or 1 / math.sqrt(q.shape[-1])
    return softmax(q @ k.transpose(0, 1, 3, 2) * scale + bias) @ v


x, w, b = floats(2, 3, 8), floats(8, 24), floats(24)
q, k, v = (split(t, 2) for t in np.split(wide(x) @ w + b, 3, -1))
mask = np.array([[1, 1, 1], [1, 1, 0]], np.int32)
case("Attention", "mask", [x, w, b, mask], [join(attend(q, k, v, np.where(mask, 0, -10000.0)[:, None, None]))], num_heads=2)
case("Attention", "lengths", [x, w, b, np.array([3, 2], np.int32)], [join(attend(q, k, v, np.where(mask, 0, -10000.0)[:, None, None]))], num_heads=2)
causal = np.where(np.tril(np.ones((3, 3))), 0, -np.inf)
case("Attention", "causal, scale", [x, w, b], [join(attend(q, k, v, causal, 0.3))], num_heads=2, unidirectional=1, scale=0.3)
past = floats(2, 2, 2, 4, 4)
pk, pv = np.concatenate([past[0], k], 2), np.concatenate([past[1], v], 2)
causal = np.where(np.tril(np.ones((3, 7)), 4), 0, -np.inf)
case("Attention", "past", [x, w, b, None, past], [join(attend(q, pk, pv, causal)), np.stack([pk, pv])], num_heads=2, unidirectional=1)

q, k, v, b = floats(2, 3, 8), floats(2, 5, 8), floats(2, 5, 8), floats(24)
mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32)
y = attend(split(wide(q) + b[:8], 2), split(wide(k) + b[8:16], 2), split(wide(v) + b[16:], 2), np.where(mask, 0, -10000.0)[:, None, None])
case("MultiHeadAttention", "cross, bias, padding", [q, k, v, b, mask], [join(y)], num_heads=2)


def group_query(name, past, tokens, valid, packed, rotary, window, **attrs):
    batch, heads, kv, d = 2, 4, 2, 4
    q, k, v = floats(batch, tokens, heads * d), floats(batch, tokens, kv * d), floats(batch, tokens, kv * d)
    cache = [floats(batch, kv, past, d) if past else None for _ in range(2)]
    first = np.array([n - tokens if past else 0 for n in valid])
    total = past + tokens
    qh, kh, vh = split(wide(q), heads), split(wide(k), kv), split(wide(v), kv)
    at = first[:, None] + np.arange(tokens)
    if rotary:
        qh, kh = rotate(qh, cos, sin, at, False), rotate(kh, cos, sin, at, False)
    present = []
    for c, new in zip(cache, (kh, vh)):
        p = np.zeros((batch, kv, total, d))
        if past:
            p[:, :, :past] = c
        for i in range(batch):
            p[i, :, at[i]] = new[i].transpose(1, 0, 2)
        present.append(p)
    key = np.arange(total)
    keep = (key <= at[:, :, None]) & (key < np.array(valid)[:, None, None])
    if window > 0:
        keep &= key > at[:, :, None] - window
    pk, pv = (np.repeat(p, heads // kv, 1) for p in present)
    y = join(attend(qh, pk, pv, np.where(keep, 0, -np.inf)[:, None]))
    inputs = [np.concatenate([q, k, v], -1), None, None] if packed else [q, k, v]
    inputs += cache + [np.array([n - 1 for n in valid], np.int32), np.int32(total)] + ([cos, sin] if rotary else [])
    if window > 0:
        attrs["local_window_size"] = window
    case("GroupQueryAttention", name, inputs, [y] + present, num_heads=heads, kv_num_heads=kv, do_rotary=int(rotary), **attrs)


group_query("prompt", 0, 5, [5, 5], False, False, -1)
group_query("packed prompt with rotary", 0, 5, [5, 5], True, True, -1)
group_query("one token behind a cache", 6, 1, [7, 7], False, True, -1)
group_query("two tokens behind caches of different lengths", 6, 2, [8, 5], False, True, -1)
group_query("window", 6, 2, [8, 8], False, False, 3)

# ---- operators that ONNX Runtime has for GPUs alone, or computes less exactly ----

x, bias = floats(2, 2, 3, 4), floats(2, 4)
case("BiasSoftmax", "inner axes broadcast", [x, bias], [softmax(wide(x) + wide(bias)[:, None, None])], axis=3, is_inner_broadcast=1)
bias = floats(3, 4)
case("BiasSoftmax", "outer axes broadcast, of two axes", [x, bias], [softmax((wide(x) + bias).reshape(2, 2, 12)).reshape(x.shape)], axis=2, is_inner_broadcast=0)
x, bias, skip = floats(2, 3, 4), floats(4), floats(2, 3, 4)
case("BiasAdd", "three", [x, bias, skip], [wide(x) + bias + skip])
s = wide(x) + bias
case("BiasSplitGelu", "halves", [x, bias], [s[..., :2] * gelu(s[..., 2:])])


def group_norm(x, gamma, beta, groups, eps):  # channels last
    g = x.reshape(x.shape[0], -1, groups, x.shape[-1] // groups)
    mean, var = g.mean((1, 3), keepdims=True), g.var((1, 3), keepdims=True)
    return ((g - mean) / np.sqrt(var + eps)).reshape(x.shape) * gamma + beta


x, gamma, beta = floats(2, 2, 3, 4), floats(4), floats(4)
y = group_norm(wide(x), gamma, beta, 2, 1e-5)
case("GroupNorm", "silu", [x, gamma, beta], [y / (1 + np.exp(-y))], activation=1, groups=2, epsilon=1e-5)
case("GroupNorm", "channels first", [x.transpose(0, 3, 1, 2), gamma, beta], [y.transpose(0, 3, 1, 2)], activation=0, groups=2, channels_last=0, epsilon=1e-5)
skip, bias = floats(2, 4), floats(4)
s = wide(x) + skip[:, None, None] + bias
case("SkipGroupNorm", "of channels, and a bias", [x, gamma, beta, skip, bias], [group_norm(s, gamma, beta, 2, 1e-5), s], activation=0, groups=2, epsilon=1e-5)

x, w, bias, z = floats(1, 3, 3, 2), floats(3, 2, 2, 2), floats(3), floats(1, 2, 2, 3)
windows = np.lib.stride_tricks.sliding_window_view(wide(x), (2, 2), (1, 2))  # [1, 2, 2, C, 2, 2]
y = np.einsum("nyxchw,ochw->nyxo", windows, w)
case("NhwcConv", "bias", [x, w, bias], [y + bias])
case("NhwcFusedConv", "added", [x, w, bias, z], [y + bias + z])


def lstm(x, w, r, b):  # one direction, gates i, o, f, c along the columns of w and r
    sigmoid = lambda v: 1 / (1 + np.exp(-v))
    h = c = np.zeros((x.shape[1], r.shape[0]))
    out = []
    for t in x:
        i, o, f, g = np.split(t @ w + h @ r + b, 4, -1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        out.append(h)
    return np.stack(out)[:, None], h[None], c[None]


x, w, r, b = floats(3, 2, 3), rng.integers(-128, 128, (1, 3, 16)).astype(np.int8), rng.integers(0, 256, (1, 4, 16)).astype(np.uint8), floats(1, 32)
ws, rs, wz, rz = np.abs(floats(1, 16)) * np.float32(0.01), np.full(1, 0.01, np.float32), np.zeros((1, 16), np.int8), np.full(1, 128, np.uint8)
y = lstm(wide(x), wide(w[0]) * ws[0], (wide(r[0]) - 128) * rs[0], b[0, :16] + wide(b[0, 16:]))
case("DynamicQuantizeLSTM", "weights of columns and of one scale", [x, w, r, b, None, None, None, None, ws, wz, rs, rz], y, hidden_size=4)

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "microsoft.json"), "w") as f:
    f.write("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n")
print(len(cases), "cases")
