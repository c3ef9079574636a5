"""Holds the third set: written before the measurement set grew, and measured before any of it was predicted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import loopy as lp

from benchmarks.unseen import line, make, plane

FIT = "n >= 1 and n mod 1024 = 0"
LONG, SIDES = (2**22, 2**25), (2048, 4096)


def programs() -> Iterator[tuple[str, Any, tuple[int, ...]]]:
    """Yields each program's name, the program, and its sizes."""
    yield from images()
    yield from structures()
    yield from matrices()
    yield from sequences()
    yield from particles()
    yield from rows()


def images() -> Iterator[tuple[str, Any, tuple[int, ...]]]:
    box = make(
        "{[i, j, k, l]: 0 <= i, j < n and 0 <= k, l < 3}",
        "o[i, j] = 0.111 * sum((k, l), a[i + k, j + l])",
        {"a": "n + 2, n + 2", "o": "n, n"},
        assume=FIT,
    )
    yield "blur 3 x 3", plane(box), SIDES
    yield "blur 3 x 3, groups of 64 x 4", plane(box, 64, 4), SIDES
    yield (
        "blur 3 x 3, from local memory",
        lp.add_prefetch(
            plane(box, 32, 8),
            "a",
            ["i_inner", "j_inner", "k", "l"],
            fetch_outer_inames="i_outer, j_outer",
            default_tag="l.auto",
        ),
        SIDES,
    )
    bilateral = make(
        "{[i, j, k, l]: 0 <= i, j < n and 0 <= k, l < 5}",
        "for i, j\n<> c = a[i + 2, j + 2] {id=c}\n<float32> s = 0 {id=s0}\n<float32> w = 0 {id=w0}\nfor k, l\n"
        "<> d = a[i + k, j + l] - c {id=d, dep=c}\n<> e = exp(-d * d) {id=e, dep=d}\n"
        "s = s + e * a[i + k, j + l] {id=s1, dep=e:s0}\nw = w + e {id=w1, dep=e:w0}\nend\n"
        "o[i, j] = s / w {dep=s1:w1}\nend",
        {"a": "n + 4, n + 4", "o": "n, n"},
        assume=FIT,
    )
    yield "bilateral filter 5 x 5", lp.prioritize_loops(plane(bilateral, 32, 8), "k,l"), SIDES
    window = make(
        "{[i, j, k, l]: 0 <= i, j < n and 0 <= k, l < 3}",
        "o[i, j] = max((k, l), a[2*i + k, 2*j + l])",
        {"a": "2*n + 1, 2*n + 1", "o": "n, n"},
        assume=FIT,
    )
    yield "largest of 3 x 3 at every second place", plane(window), SIDES
    gradient = make(
        "{[i, j]: 0 <= i, j < n}",
        "for i, j\n<> x = a[i + 1, j + 2] - a[i + 1, j]\n<> y = a[i + 2, j + 1] - a[i, j + 1]\n"
        "o[i, j] = sqrt(x * x + y * y)\nend",
        {"a": "n + 2, n + 2", "o": "n, n"},
        assume=FIT,
    )
    yield "length of the gradient", plane(gradient), SIDES
    taps = make(
        "{[i, k]: 0 <= i < n and 0 <= k < 129}",
        "o[i] = sum(k, a[i + k] * w[k])",
        {"a": "n + 128", "w": "129", "o": "n"},
        assume=FIT,
    )
    yield "filter of 129 taps", line(taps), (2**20, 2**24)
    yield (
        "filter of 129 taps, from local memory",
        lp.add_prefetch(line(taps), "a", ["i_inner", "k"], fetch_outer_inames="i_outer", default_tag="l.auto"),
        (2**20, 2**24),
    )


def structures() -> Iterator[tuple[str, Any, tuple[int, ...]]]:
    gray = make(
        "{[i]: 0 <= i < n}",
        "o[i] = 0.3 * a[i, 0] + 0.6 * a[i, 1] + 0.1 * a[i, 2]",
        {"a": "n, 3", "o": "n"},
        assume=FIT,
    )
    yield "gray of red, green, blue", line(gray), LONG
    complex_product = make(
        "{[i]: 0 <= i < n}",
        "o[i, 0] = a[i, 0] * b[i, 0] - a[i, 1] * b[i, 1]\no[i, 1] = a[i, 0] * b[i, 1] + a[i, 1] * b[i, 0]",
        {"a b o": "n, 2"},
        assume=FIT,
    )
    yield "complex products, parts together", line(complex_product), LONG
    apart = make(
        "{[i]: 0 <= i < n}",
        "o[0, i] = a[0, i] * b[0, i] - a[1, i] * b[1, i]\no[1, i] = a[0, i] * b[1, i] + a[1, i] * b[0, i]",
        {"a b o": "2, n"},
        assume=FIT,
    )
    yield "complex products, parts apart", line(apart), LONG
    determinant = make(
        "{[i]: 0 <= i < n}",
        "o[i] = a[i, 0] * (a[i, 4] * a[i, 8] - a[i, 5] * a[i, 7]) - a[i, 1] * (a[i, 3] * a[i, 8] - a[i, 5] * a[i, 6])"
        " + a[i, 2] * (a[i, 3] * a[i, 7] - a[i, 4] * a[i, 6])",
        {"a": "n, 9", "o": "n"},
        assume=FIT,
    )
    yield "determinants of 3 x 3", line(determinant), (2**20, 2**24)
    split = make("{[i, c]: 0 <= i < n and 0 <= c < 4}", "o[c, i] = a[i, c]", {"a": "n, 4", "o": "4, n"}, assume=FIT)
    yield "structures of four to four arrays", lp.tag_inames(line(split), {"c": "unr"}), LONG
    rotation = make(
        "{[i, k, l]: 0 <= i < n and 0 <= k, l < 3}",
        "o[k, i] = sum(l, r[k, l] * a[l, i])",
        {"a o": "3, n", "r": "3, 3"},
        assume=FIT,
    )
    yield "points rotated", lp.tag_inames(line(rotation), {"k": "unr", "l": "unr"}), LONG


def matrices() -> Iterator[tuple[str, Any, tuple[int, ...]]]:
    gram = make(
        "{[i, j, k]: 0 <= i, j < n and 0 <= k < 64}",
        "o[i, j] = c[i, j] + sum(k, a[i, k] * a[j, k])",
        {"a": "n, 64", "c o": "n, n"},
        assume=FIT,
    )
    yield "update of rank 64", plane(gram), SIDES
    rank_one = make(
        "{[i, j]: 0 <= i, j < n}", "o[i, j] = c[i, j] - a[i] * b[j]", {"a b": "n", "c o": "n, n"}, assume=FIT
    )
    yield "update of rank 1", plane(rank_one), (4096, 8192)
    yield "update of rank 1, groups of 256 x 1", plane(rank_one, 256, 1), (4096, 8192)
    symmetric = make("{[i, j]: 0 <= i, j < n}", "o[i, j] = a[i, j] + a[j, i]", {"a o": "n, n"}, assume=FIT)
    yield "a matrix and its transpose", plane(symmetric), (4096, 8192)
    yield "a matrix and its transpose, groups of 32 x 8", plane(symmetric, 32, 8), (4096, 8192)
    kronecker = make(
        "{[i, j, k, l]: 0 <= i, j < n and 0 <= k, l < 16}",
        "o[i, k, j, l] = a[i, j] * b[k, l]",
        {"a": "n, n", "b": "16, 16", "o": "n, 16, n, 16"},
        assume="n >= 1 and n mod 64 = 0",
    )
    yield "Kronecker products", lp.tag_inames(kronecker, {"j": "g.0", "i": "g.1", "l": "l.0", "k": "l.1"}), (256, 512)
    attention = make(
        "{[h, i, j, k]: 0 <= h < 16 and 0 <= i, j < n and 0 <= k < 64}",
        "o[h, i, j] = 0.125 * sum(k, q[h, i, k] * y[h, k, j])",
        {"q": "16, n, 64", "y": "16, 64, n", "o": "16, n, n"},
        assume=FIT,
    )
    attention = lp.tag_inames(plane(attention), {"h": "g.2"})
    yield "scores of attention", attention, (1024, 2048)
    tiles = lp.split_iname(attention, "k", 16)
    tiles = lp.add_prefetch(
        tiles, "q", ["i_inner", "k_inner"], fetch_outer_inames="h, i_outer, j_outer, k_outer", default_tag="l.auto"
    )
    tiles = lp.add_prefetch(
        tiles, "y", ["k_inner", "j_inner"], fetch_outer_inames="h, i_outer, j_outer, k_outer", default_tag="l.auto"
    )
    yield "scores of attention, from local memory", tiles, (1024, 2048)
    bands = make(
        "{[i, k]: 0 <= i < n and 0 <= k < 11}",
        "o[i] = sum(k, a[k, i] * x[i + k])",
        {"a": "11, n", "x": "n + 10", "o": "n"},
        assume=FIT,
    )
    yield "band matrix times vector", line(bands), LONG
    sparse = make(
        "{[i, k]: 0 <= i < n and 0 <= k < 16}",
        "o[i] = sum(k, a[k, i] * x[p[k, i]])",
        {"a": "16, n", "p": "16, n", "x o": "n"},
        assume=FIT,
    )
    yield "sparse matrix times vector (indices near each other)", line(sparse), (2**20, 2**23)


def sequences() -> Iterator[tuple[str, Any, tuple[int, ...]]]:
    fourier = make(
        "{[i, k]: 0 <= i < n and 0 <= k < 1024}",
        "o[i] = sum(k, a[k] * cos(x[i] * b[k]))",
        {"a b": "1024", "x o": "n"},
        assume=FIT,
    )
    yield "Fourier sums", line(fourier), (2**14, 2**18)
    for steps, lsize, sizes in (500, 256, (2**18, 2**23)), (20000, 64, (2**12, 2**14)):
        logistic = make(
            f"{{[i, k]: 0 <= i < n and 0 <= k < {steps}}}",
            "for i\n<float32> x = 0.5 * a[i] {id=x}\nfor k\nx = 3.7 * x * (1 - x) {id=u, dep=x}\nend\n"
            "o[i] = x {dep=u}\nend",
            {"a o": "n"},
            assume=FIT,
        )
        yield f"{steps} steps of the logistic map", line(logistic, lsize), sizes
    butterfly = make(
        "{[i]: 0 <= i < n}",
        "for i\n<> x = a[i]\n<> y = a[i + n]\n<> w = t[i]\n<> c = cos(w)\n<> s = sin(w)\n"
        "o[i] = x + y\no[i + n] = (x - y) * c + (x + y) * s\nend",
        {"a o": "2 * n", "t": "n"},
        assume=FIT,
    )
    yield "butterflies of a transform", line(butterfly), LONG
    newton = make(
        "{[i, k]: 0 <= i < n and 0 <= k < 10}",
        "for i\n<float32> x = a[i] {id=x}\nfor k\nx = 0.5 * (x + a[i] / x) {id=u, dep=x}\nend\no[i] = x {dep=u}\nend",
        {"a o": "n"},
        assume=FIT,
    )
    yield "ten steps of Newton's method", line(newton), LONG
    generator = make(
        "{[i, k]: 0 <= i < n and 0 <= k < 64}",
        "for i\n<int32> x = p[i] {id=x}\nfor k\nx = x * 1103515 + 12345 {id=u, dep=x}\nx = x ^ (x >> 7) {id=v, dep=u}\n"
        "end\no[i] = x {dep=v}\nend",
        {"p": "n", "o": "n"},
        assume=FIT,
    )
    yield "random numbers, 64 steps", line(generator), LONG
    pairs = make(
        "{[i]: 0 <= i < n}",
        "for i\n<> x = a[2*i]\n<> y = a[2*i + 1]\no[2*i] = fmin(x, y)\no[2*i + 1] = fmax(x, y)\nend",
        {"a o": "2 * n"},
        assume=FIT,
    )
    yield "neighbours in order", line(pairs), LONG
    advection = make(
        "{[i, t]: 0 <= i < n and 1 <= t < 256}",
        "for i\n<float32> u = a[i] {id=u0}\nfor t\nu = u - 0.3 * (u - f[t, i]) {id=u, dep=u0}\no[t, i] = u {dep=u}\n"
        "end\nend",
        {"a": "n", "f o": "256, n"},
        assume=FIT,
    )
    yield "relaxation along time", line(advection), (2**15, 2**18)
    yield "relaxation along time, groups of 64", line(advection, 64), (2**15, 2**18)


def particles() -> Iterator[tuple[str, Any, tuple[int, ...]]]:
    forces = make(
        "{[i, j]: 0 <= i < n and 0 <= j < 512}",
        "for i\n<float32> f = 0 {id=f0}\nfor j\n<> d = x[i] - y[j]\n<float32> r = 1 / (d * d + 0.01) {id=r}\n"
        "<float32> s = r * r * r {id=s, dep=r}\nf = f + s * (s - 0.5) * d {id=f, dep=s:f0}\nend\no[i] = f {dep=f}\nend",
        {"x o": "n", "y": "512"},
        assume=FIT,
    )
    yield "forces of 512 particles", line(forces), (2**17, 2**21)
    yield (
        "forces of 512 particles, from local memory",
        lp.add_prefetch(
            lp.split_iname(line(forces), "j", 256),
            "y",
            ["j_inner"],
            fetch_outer_inames="i_outer, j_outer",
            default_tag="l.auto",
        ),
        (2**17, 2**21),
    )
    double = make(
        "{[i, k]: 0 <= i < n and 0 <= k < 32}",
        "o[i] = sum(k, 1 / (a[i] + k))",
        {"a o": "n"},
        "float64",
        FIT,
    )
    yield "sums of reciprocals, float64", line(double), (2**18, 2**22)


def rows() -> Iterator[tuple[str, Any, tuple[int, ...]]]:
    norm = make(
        "{[i, k]: 0 <= i < n and 0 <= k < 1024}",
        "o[i] = sqrt(sum(k, a[i, k] * a[i, k]))",
        {"a": "n, 1024", "o": "n"},
        assume=FIT,
    )
    norm = lp.split_reduction_outward(lp.split_iname(norm, "k", 256, inner_tag="l.0"), "k_inner")
    yield "lengths of rows, a group each", lp.tag_inames(norm, {"i": "g.0"}), (2**14, 2**17)
    layer = make(
        "{[i, k, l, m]: 0 <= i < n and 0 <= k, l, m < 256}",
        "for i\n<> u = sum(k, a[i, k]) / 256 {id=u}\n<> v = sum(l, (a[i, l] - u) * (a[i, l] - u)) {id=v, dep=u}\n"
        "for m\no[i, m] = (a[i, m] - u) * rsqrt(v) {dep=v}\nend\nend",
        {"a o": "n, 256"},
        assume=FIT,
    )
    layer = lp.tag_inames(layer, {"i": "g.0", "k": "l.0", "l": "l.0", "m": "l.0"})
    yield "rows normalised, a group each", layer, (2**14, 2**18)
    across = make(
        "{[i, k]: 0 <= i < n and 0 <= k < 256}", "o[i] = max(k, a[i, k])", {"a": "n, 256", "o": "n"}, assume=FIT
    )
    yield "largest of rows, a work-item each", line(across), (2**16, 2**19)
    along = make(
        "{[i, k]: 0 <= i < n and 0 <= k < 256}", "o[i] = max(k, a[k, i])", {"a": "256, n", "o": "n"}, assume=FIT
    )
    yield "largest of columns, a work-item each", line(along), (2**16, 2**19)
    repeated = make("{[i, k]: 0 <= i < n and 0 <= k < 16}", "o[k, i] = a[i]", {"a": "n", "o": "16, n"}, assume=FIT)
    yield "a vector repeated", line(repeated), (2**20, 2**23)
