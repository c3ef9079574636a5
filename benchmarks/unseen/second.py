"""Holds the second set: written once, after the first terms of unified-plus; its errors have told since where to
look."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import loopy as lp

from benchmarks.unseen import line, make, plane


def programs() -> Iterator[tuple[str, Any, tuple[int, ...]]]:
    """Yields each program's name, the program, and its sizes."""
    fit, sides = "n >= 1 and n mod 1024 = 0", (2048, 4096, 8192)
    heat = make(
        "{[k, i, j]: 1 <= k < n - 1 and 0 <= i, j < n - 2}",
        "o[k, i + 1, j + 1] = u[k, i + 1, j + 1] + u[k - 1, i + 1, j + 1] + u[k + 1, i + 1, j + 1]"
        " + u[k, i, j + 1] + u[k, i + 2, j + 1] + u[k, i + 1, j] + u[k, i + 1, j + 2]",
        {"u o": "n, n, n"},
        assume="n >= 3",
    )
    yield "7-point stencil, loop over planes", plane(heat, 32, 8), (256, 512)
    yield "7-point stencil, planes by groups", lp.tag_inames(plane(heat, 32, 8), {"k": "g.2"}), (256, 512)
    yield (
        "columns scaled to sum one",
        line(
            make(
                "{[i, k, l]: 0 <= i, k, l < n}",
                "for i\n<> s = sum(k, exp(a[k, i])) {id=s}\nfor l\no[l, i] = exp(a[l, i]) / s {dep=s}\nend\nend",
                {"a o": "n, n"},
                assume=fit,
            )
        ),
        sides,
    )
    yield (
        "outer product",
        plane(make("{[i, j]: 0 <= i, j < n}", "o[i, j] = a[i] * b[j]", {"a b": "n", "o": "n, n"}, assume=fit)),
        sides,
    )
    columns = make("{[i, k]: 0 <= i, k < n}", "o[i] = sum(k, a[k, i] * x[k])", {"a": "n, n", "x o": "n"}, assume=fit)
    yield "matrix-vector, by columns", line(columns), sides
    yield "matrix-vector, by columns, groups of 64", line(columns, 64), sides
    batch = make(
        "{[b, i, j, k]: 0 <= b < n and 0 <= i, j, k < 16}",
        "o[b, i, j] = sum(k, x[b, i, k] * y[b, k, j])",
        {"x y o": "n, 16, 16"},
        assume=fit,
    )
    batch = lp.tag_inames(batch, {"b": "g.0", "i": "l.1", "j": "l.0"})
    yield "products of 16 x 16 matrices", batch, (8192, 65536)
    yield (
        "products of 16 x 16 matrices, both in local memory",
        lp.add_prefetch(
            lp.add_prefetch(batch, "x", ["i", "k"], fetch_outer_inames="b", default_tag="l.auto"),
            "y",
            ["k", "j"],
            fetch_outer_inames="b",
            default_tag="l.auto",
        ),
        (8192, 65536),
    )
    taps = make(
        "{[i, k]: 0 <= i < n and 0 <= k < 9}",
        "o[i] = sum(k, a[i + k] * w[k])",
        {"a": "n + 8", "w": "9", "o": "n"},
        assume=fit,
    )
    yield "convolution of 9 taps", line(taps), (2**22, 2**25)
    yield "convolution of 9 taps, unrolled", lp.tag_inames(line(taps), {"k": "unr"}), (2**22, 2**25)
    option = make(
        "{[i]: 0 <= i < n}",
        "for i\n<> q = sqrt(t[i])\n<> d = (log(a[i] / b[i]) + t[i]) / q\n"
        "o[i] = a[i] / (1 + exp(-d)) - b[i] * exp(-t[i]) / (1 + exp(q - d))\nend",
        {"a b t o": "n"},
        assume=fit,
    )
    yield "option prices", line(option), (2**22, 2**25)
    horner = "x"
    for _ in range(16):
        horner = f"({horner}) * x + y"
    poly = make(
        "{[i]: 0 <= i < n}", f"for i\n<> x = a[i]\n<> y = b[i]\no[i] = {horner}\nend", {"a b o": "n"}, assume=fit
    )
    yield "polynomial of degree 17", line(poly), (2**22, 2**25)
    poly64 = make(
        "{[i]: 0 <= i < n}", f"for i\n<> x = a[i]\n<> y = b[i]\no[i] = {horner}\nend", {"a b o": "n"}, "float64", fit
    )
    yield "polynomial of degree 17, float64", line(poly64), (2**22, 2**24)
    iterate = make(
        "{[i, k]: 0 <= i < n and 0 <= k < 64}",
        # Types are given where values go round in a circle: what Loopy infers there differs from process to process.
        "for i\n<> c = a[i] {id=c}\n<float32> x = c {id=x, dep=c}\n<float32> y = c {id=y, dep=c}\nfor k\n"
        "<float32> z = x * x - y * y + c {id=z, dep=x:y}\ny = x * y + c {id=u, dep=z}\n"
        "x = z / (1 + z * z) {id=v, dep=u}\nend\n"
        "o[i] = x + y {dep=v}\nend",
        {"a o": "n"},
        assume=fit,
    )
    yield "64 steps of a map", line(iterate), (2**20, 2**24)
    pool = make(
        "{[i, j]: 0 <= i, j < n}",
        "o[i, j] = a[2*i, 2*j] + a[2*i, 2*j + 1] + a[2*i + 1, 2*j] + a[2*i + 1, 2*j + 1]",
        {"a": "2*n, 2*n", "o": "n, n"},
        assume=fit,
    )
    yield "2 x 2 pooling", plane(pool), (2048, 4096)
    yield "2 x 2 pooling, groups of 32 x 4", plane(pool, 32, 4), (2048, 4096)
    triangle = make(
        "{[i, k]: 0 <= i < n and 0 <= k <= i}", "o[i] = sum(k, a[k, i])", {"a": "n, n", "o": "n"}, assume=fit
    )
    yield "sums of a triangle's columns", line(triangle), sides
    smooth = make(
        "{[i, k]: 0 <= i < n and 0 <= k < 33}", "o[i] = sum(k, a[i + k])", {"a": "n + 32", "o": "n"}, assume=fit
    )
    smooth = line(smooth)
    yield "mean of 33 neighbours", smooth, (2**22, 2**25)
    yield (
        "mean of 33 neighbours, from local memory",
        lp.add_prefetch(smooth, "a", ["i_inner", "k"], fetch_outer_inames="i_outer", default_tag="l.auto"),
        (2**22, 2**25),
    )
    wide = make("{[i, j, k]: 0 <= i, j, k < n}", "o[i, j] = sum(k, a[i, k] * b[k, j])", {"a b o": "n, n"}, assume=fit)
    wide = lp.split_iname(wide, "i", 4, inner_iname="row", inner_tag="unr")
    wide = lp.split_iname(wide, "i_outer", 8, outer_tag="g.1", inner_tag="l.1")
    wide = lp.split_iname(wide, "j", 32, outer_tag="g.0", inner_tag="l.0")
    yield "matrix product, 4 rows a work-item", wide, (1024, 2048)
    yield (
        "axpy, float64",
        line(make("{[i]: 0 <= i < n}", "o[i] = a[i] * 2 + b[i]", {"a b o": "n"}, "float64", fit)),
        (2**22, 2**26),
    )
    gather = make("{[i]: 0 <= i < n}", "o[i] = a[p[i]]", {"a o": "n", "p": "n"}, assume=fit)
    yield "gather (all from one line)", line(gather), (2**22, 2**25)
    rows = make("{[i, k]: 0 <= i, k < n}", "o[i] = sum(k, a[i, k])", {"a": "n, n", "o": "n"}, assume=fit)
    rows = lp.split_iname(rows, "k", 256, inner_tag="l.0")
    rows = lp.split_reduction_outward(rows, "k_inner")
    yield "sums of rows, a group each", lp.tag_inames(rows, {"i": "g.0"}), sides
