#!/usr/bin/env python3
"""Prints the minimax polynomials of csrc/cpu/core/vec_math_*.h and csrc/vulkan/kernels/math*.glsl.

Each row of FITS gives f, the fixed part and the basis of its correction, the weight of the error and the interval.
The Remez exchange runs in 50 digits; coefficients are rounded one at a time, leading first, and the others refitted, or
in rows that say TOGETHER rounded as they are. The printed error is that of the rounded polynomial. For the rows TOGETHER
the tree has the coefficients that another solver found for the same problem: the leading ones are mostly the same, the
others agree in their first digits, and the errors within half a bit, but for column 0 of gelu_8 with 2^-27. For the
tables of gelu the error of what is in the tree is printed too. Needs mpmath.

Run: python3 fit_poly.py [name ...]
"""

import pathlib
import re
import struct
import sys

import mpmath as mp

mp.mp.dps = 50


def f32(x):
    return mp.mpf(struct.unpack("f", struct.pack("f", float(x)))[0])


def f64(x):
    return mp.mpf(float(x))


def remez(target, basis, weight, a, b, grid=600, rounds=12):
    """Coefficients c with the least max of |weight * (target - sum c_i basis_i)| on [a, b], and that max."""
    n = len(basis)
    mid, half = (a + b) / 2, (b - a) / 2
    xs = [mid + half * mp.cos(mp.pi * k / grid) for k in range(grid, -1, -1)]
    xs = [x for x in xs if abs(x) > half / 100 or a >= 0]  # at 0 a basis without a constant is singular
    grid = len(xs) - 1
    ft = [target(x) for x in xs]
    # The alternation theorem wants a basis that keeps its sign: an odd first power hands its sign to the weight.
    fw = [weight(x) * mp.sign(weight(x) * basis[0](x)) for x in xs]
    fb = [[g(x) for g in basis] for x in xs]
    ref = sorted({min(max(int(grid * k / n), 1), grid - 1) for k in range(n + 1)})
    best = None
    for _ in range(rounds):
        m = mp.matrix(n + 1, n + 1)
        v = mp.matrix(n + 1, 1)
        for i, k in enumerate(ref):
            for j in range(n):
                m[i, j] = fb[k][j] * fw[k]
            m[i, n] = (-1) ** i
            v[i] = ft[k] * fw[k]
        sol = mp.lu_solve(m, v)
        c = [sol[j] for j in range(n)]
        err = [fw[k] * (ft[k] - mp.fsum(c[j] * fb[k][j] for j in range(n))) for k in range(grid + 1)]
        top = max(abs(e) for e in err)
        if best is None or top < best[1]:
            best = (c, top)
        if top <= abs(sol[n]) * mp.mpf("1.001"):
            break
        runs, start = [], 0
        for k in range(1, grid + 2):
            if k == grid + 1 or (err[k] > 0) != (err[start] > 0):
                runs.append(max(range(start, k), key=lambda i: abs(err[i])))
                start = k
        while len(runs) > n + 1:
            runs.pop(0 if abs(err[runs[0]]) < abs(err[runs[-1]]) else -1)
        if len(runs) < n + 1:
            break
        ref = runs
    return best


def worst(c, target, basis, weight, a, b):
    """The max weighted error of the coefficients c."""
    a, b = mp.mpf(a), mp.mpf(b)
    xs = [a + (b - a) * k / 1500 for k in range(1501)]
    return max(abs(weight(x) * (target(x) - mp.fsum(k * g(x) for k, g in zip(c, basis)))) for x in xs)


TOGETHER = "rounded together"


def fit(target, basis, weight, a, b, rnd, together=""):
    """Rounded coefficients and the max weighted error of the polynomial they make."""
    a, b = mp.mpf(a), mp.mpf(b)
    if together:
        done = [rnd(c) for c in remez(target, basis, weight, a, b)[0]]
        return done, worst(done, target, basis, weight, a, b)
    done = []
    for i in range(len(basis)):
        rest = lambda x: target(x) - mp.fsum(c * g(x) for c, g in zip(done, basis))
        c, _ = remez(rest, basis[i:], weight, a, b)
        done.append(rnd(c[0]))
    return done, worst(done, target, basis, weight, a, b)


def powers(lo, n, step=1):
    return [lambda x, k=lo + step * i: x**k for i in range(n)]


LN2 = mp.log(2)
T = mp.mpf(2) ** -60  # stands for 0 where a weight is 0/0


def away(x):
    return x if abs(x) > T else T


def erfcx(x):
    return mp.erfc(x) * mp.exp(x * x)


K = mp.mpf(37) / 16  # makes the constant coefficient of tail nearly an f32


def tail(u):
    """(x + K) erfcx(x) at u = (x - K) / (x + K)."""
    x = 2 * K / (1 - u) - K
    return (x + K) * erfcx(x)


def gelu_tail(a):
    """a Phi(-a)."""
    return a * mp.erfc(a / mp.sqrt(2)) / 2


def gelu_column(width, degree, n):
    """A column of a table of vec_math_gelu.h: the fit about n * width. Small values count by their absolute error too."""
    lo, hi, center = ("0.001" if n == 0 else -width / 2), width / 2, n * width
    weight = (lambda u: 1 / gelu_tail(u)) if n == 0 else (lambda u: 1 / (mp.mpf(2) ** -26 + gelu_tail(center + u) / 4))
    return (lambda u: gelu_tail(center + u), powers(1 if n == 0 else 0, degree + (n > 0)), weight, lo, hi, f32, TOGETHER)


def gelu_in_tree(table, n):
    """Column n of GELU_TAIL_<table> as it is compiled, from the first power that is not 0."""
    header = pathlib.Path(__file__).parent.parent / "core" / "vec_math_gelu.h"
    rows = re.search(rf"GELU_TAIL_{table}\[.*?= {{(.*?)}};", header.read_text(), re.S).group(1)
    column = [f32(row.split(",")[n]) for row in re.findall(r"{(.*?)}", rows, re.S)]
    return column[1:] if n == 0 else column


def tanh_column(n):
    """Column n of TANH_COLUMNS of vec_math_tanh.h: tanh(a) / a for a = b - 23/8 about the middle of the b in [23/8, 23/2) whose bits choose n."""
    exponent = 2 if n >= 16 else 1 if n >= 7 else 3
    lo, width = mp.mpf(2) ** exponent * (1 + mp.mpf(n % 16) / 16), mp.mpf(2) ** exponent / 16
    shift = lo + width / 2 - mp.mpf(23) / 8
    target = lambda u: mp.tanh(shift + u) / (shift + u) if abs(shift + u) > T else mp.mpf(1)
    return (target, powers(0, 5), lambda u: 1 / target(u), -width / 2, width / 2, f32, TOGETHER)


# name: (target, basis, weight, a, b, rounding[, TOGETHER])
FITS = {
    # f32
    "expm1": (lambda r: mp.expm1(r) - r, powers(2, 6), lambda r: 1 / mp.expm1(away(r)), "-0.3468", "0.3468", f32),
    "exp2": (lambda r: mp.expm1(r * LN2), powers(1, 6), lambda r: mp.mpf(2) ** -r, "-0.5005", "0.5005", f32),
    "log": (lambda f: mp.log1p(f) - f + f * f / 2, powers(3, 8), lambda f: 1 / mp.log1p(away(f)), "-0.3334", "0.3334", f32),
    "exp": (lambda r: mp.expm1(r) - r, powers(2, 5), lambda r: mp.exp(-r), "-0.3468", "0.3468", f32, TOGETHER),
    "tanh": (lambda x: mp.tanh(x) - x, powers(3, 5, 2), lambda x: 1 / mp.tanh(x), "0.001", "0.63", f32),  # of the other backend
    "tanh_expm1": (lambda r: mp.expm1(2 * r) - 2 * r, powers(2, 5), lambda r: 1 / mp.expm1(2 * away(r)), "-0.1736", "0.1736", f32, TOGETHER),
    "erf": (lambda x: mp.erf(x) - x, powers(1, 7, 2), lambda x: 1 / mp.erf(x), "0.001", "1.0", f32),
    "erf_tail": (lambda x: -mp.log(mp.erfc(x)), powers(1, 6), lambda x: mp.erfc(x), "0.99", "4", f32),
    "erfc_tail": (tail, powers(0, 9), lambda u: 1 / tail(u), "-0.4804", "0.6305", f32),
    "asin": (lambda x: mp.asin(x) - x, powers(3, 5, 2), lambda x: 1 / mp.asin(x), "0.001", "0.5", f32),
    "atan": (lambda x: mp.atan(x) - x, powers(3, 9, 2), lambda x: 1 / mp.atan(x), "0.001", "1.0", f32),
    # f32, where the other backend has f64
    "sinh": (lambda x: mp.sinh(x) - x, powers(3, 4, 2), lambda x: 1 / mp.sinh(x), "0.001", "1.0", f32),
    "log_pair": (lambda s: mp.log((1 + s) / (1 - s)) - 2 * s - 2 * s**3 / 3, powers(5, 4, 2), lambda s: 1 / s, "0.001", "0.2001", f32),
    "sin": (lambda x: mp.sin(x) - x, powers(3, 4, 2), lambda x: 1 / mp.sin(x), "0.001", "0.7856", f32),
    "cos": (lambda x: mp.cos(x) - 1 + x * x / 2, powers(4, 3, 2), lambda x: 1 / mp.cos(x), "0.01", "0.7856", f32),
    # f64
    "exp_d": (lambda r: mp.exp(r) - 1 - r, powers(2, 8), lambda r: mp.exp(-r), "-0.3467", "0.3467", f64),
    "log_d": (lambda s: mp.log((1 + s) / (1 - s)) - 2 * s, powers(3, 6, 2), lambda s: 1 / s, "0.001", "0.1716", f64),
    "sin_d": (lambda x: mp.sin(x) - x, powers(3, 5, 2), lambda x: 1 / mp.sin(x), "0.001", "0.7856", f64),
    "cos_d": (lambda x: mp.cos(x) - 1, powers(2, 6, 2), lambda x: 1 / mp.cos(x), "0", "0.7856", f64),
}

for table, width, degree in ((8, 0.875, 7), (16, 0.390625, 5)):
    for n in range(table - 1):
        FITS[f"gelu_{table}_{n}"] = gelu_column(width, degree, n)

for n in range(32):
    FITS[f"tanh_{n}"] = tanh_column(n)

if __name__ == "__main__":
    for name in sys.argv[1:] or FITS:
        target, basis, weight, a, b, rnd, *_ = FITS[name]
        coeffs, top = fit(*FITS[name])
        digits = 9 if rnd is f32 else 17
        print(f"{name}: max weighted error 2^{float(mp.log(top, 2)):.1f}")
        for c in coeffs:
            print(f"  {float(c):.{digits}g}")
        if name.startswith("gelu_"):
            tree = gelu_in_tree(*map(int, name.split("_")[1:]))
            print(f"  in the tree: 2^{float(mp.log(worst(tree, target, basis, weight, a, b), 2)):.1f}")
