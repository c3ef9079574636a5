"""Calls of the kernels of `tests.kernels.triton.sources`, and what numpy computes of their arguments."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from math import erf

import numpy as np

from perfmodel.ptx.emulation.narrow_floats import decoded, encoded
from tests.kernels.triton import products  # noqa: F401, which makes cases, too
from tests.kernels.triton.case import (
    CASES,
    RANDOM,
    SHORT,
    Narrow,
    Tiles,
    Values,
    case,
    floats,
    halves,
    narrow,
    normalized,
    softmax,
    zeros,
)

__all__ = ["CASES"]

X, Y = floats(3000), floats(3000)
case("vector_add", (3,), {"x": X, "y": Y, "out": zeros(3000), "n": 3000}, {"BLOCK": 1024}, lambda: {"out": X + Y})
case("axpy", (2,), {"x": X, "y": Y, "n": 3000, "a": 2.5}, {"BLOCK": 512}, lambda: {"y": np.float32(2.5) * X + Y})
ROWS = floats(5, 777)
case(
    "softmax",
    (5,),
    {"x": ROWS, "out": zeros(5, 777), "stride": 777, "columns": 777},
    {"BLOCK": 1024},
    lambda: {"out": softmax(ROWS)},
)
case(
    "long_softmax",
    (5,),
    {"x": ROWS, "out": zeros(5, 777), "columns": 777},
    {"BLOCK": 256},
    lambda: {"out": softmax(ROWS)},
    1e-4,
)
W, B = floats(777), floats(777)
case(
    "layer_norm",
    (5,),
    {"x": ROWS, "weight": W, "bias": B, "out": zeros(5, 777), "columns": 777, "eps": 1e-5},
    {"BLOCK": 1024},
    lambda: {"out": normalized(ROWS) * W + B},
    1e-4,
)
G = floats(5, 777)


def layer_norm_gradient() -> Mapping[str, Values]:
    y, g = normalized(ROWS), G * W
    g = g - (y * (y * g).mean(1, keepdims=True) + g.mean(1, keepdims=True))
    return {"out": g / np.sqrt(ROWS.var(1, keepdims=True) + 1e-5)}


case(
    "layer_norm_backward",
    (5,),
    {"x": ROWS, "gradient": G, "weight": W, "out": zeros(5, 777), "columns": 777, "eps": 1e-5},
    {"BLOCK": 1024},
    layer_norm_gradient,
    1e-4,
)
RB, WB = narrow("bfloat16", 4, 512), narrow("bfloat16", 512)
case(
    "rms_norm",
    (4,),
    {"x": RB, "weight": WB, "out": zeros(4, 512, dtype="uint16"), "columns": 512, "eps": 1e-5},
    {"BLOCK": 512},
    lambda: {"out": RB.values / np.sqrt((RB.values**2).mean(1, keepdims=True) + 1e-5) * WB.values},
    2e-2,
    type="bfloat16",
)

SA, SB = halves(64, 128), halves(128, 64)
case(
    "split_matmul",
    (2, 2, 2),
    {"a": SA, "b": SB, "c": zeros(64, 64), "M": 64, "N": 64, "K": 128},
    {"BM": 32, "BN": 32, "BK": 32, "SPLIT": 2},
    lambda: {"c": SA.astype("float64") @ SB},
    1e-2,
)
BA, BB = halves(2, 64, 64), halves(2, 64, 32)
case(
    "batched_matmul",
    (2, 1, 2),
    {"a": BA, "b": BB, "c": zeros(2, 64, 32, dtype="float16"), "M": 64, "N": 32, "K": 64},
    {"BM": 32, "BN": 32, "BK": 32},
    lambda: {"c": BA.astype("float64") @ BB},
    1e-2,
)
MS, STARTS = np.asarray([40, 17, 32], "int32"), np.asarray([0, 40, 57], "int32")
GA, GB = halves(89, 64), halves(3, 64, 64)


def grouped() -> Mapping[str, Values]:
    parts = [GA[s : s + m].astype("float64") @ GB[g] for g, (s, m) in enumerate(zip(STARTS, MS, strict=True))]
    return {"c": np.concatenate(parts)}


case(
    "grouped_gemm",
    (3,),
    {"a": GA, "b": GB, "c": zeros(89, 64, dtype="float16"), "rows": MS, "starts": STARTS, "N": 64, "K": 64},
    {"GROUPS": 3, "PROGRAMS": 3, "B": 32},
    grouped,
    1e-2,
)

TA, TB = halves(100, 96), halves(72, 96)
case(
    "described_matmul",
    (3,),
    {"a": TA, "b": TB, "c": zeros(100, 72, dtype="float16"), "M": 100, "N": 72, "K": 96},
    {"BM": 64, "BN": 32, "BK": 32, "PROGRAMS": 3},
    lambda: {"c": TA.astype("float64") @ TB.T},
    1e-2,
)
HX = halves(100, 136)
for target in ("sm_90", "sm_80"):
    case(
        "tiles",
        (2, 3),
        {"of_x": Tiles(HX, (64, 64)), "of_out": Tiles(zeros(100, 136, dtype="float16"), (64, 64))},
        {"B": 64},
        lambda: {"of_out": 2 * HX},
        1e-3,
        title=f"tiles {target}",
        target=target,
    )
TS = floats(24, 40)
case(
    "described_add",
    (3, 2),
    {"x": TS, "out": zeros(8, 40), "rows": 24, "columns": 40},
    {"B": 32},
    lambda: {"out": TS.reshape(3, 8, 40).sum(0)},
)
case(
    "locked_sum",
    (4,),
    {"x": TS[:16, :32].copy(), "out": zeros(1), "lock": zeros(1, dtype="int32")},
    {"B": 128},
    lambda: {"out": TS[:16, :32].sum(keepdims=True).ravel()},
    1e-4,
)
TX = floats(2, 12, 40)
case(
    "described_sum",
    (2, 2),
    {"x": TX, "out": zeros(12, 40), "depth": 2, "rows": 12, "columns": 40},
    {"B": 32},
    lambda: {"out": TX.sum(0)},
)

Q, K, V = (halves(2, 128, 64) for _ in range(3))


def attended(is_causal: bool) -> Mapping[str, Values]:
    q, k, v = (each.astype("float64") for each in (Q, K, V))
    score = q @ k.transpose(0, 2, 1) * 0.125
    if is_causal:
        score = np.where(np.tril(np.ones((128, 128), bool)), score, -1e30)
    return {"out": softmax(score) @ v}


for is_causal in (False, True):
    case(
        "attention",
        (2, 2),
        {"q": Q, "k": K, "v": V, "out": zeros(2, 128, 64, dtype="float16"), "length": 128, "scale": 0.125},
        {"D": 64, "BM": 64, "BN": 64, "CAUSAL": is_causal},
        partial(attended, is_causal),
        1e-2,
        title=f"attention{' causal' * is_causal}",
    )
case(
    "attention",
    (2, 2),
    {"q": Q, "k": K, "v": V, "out": zeros(2, 128, 64, dtype="float16"), "length": 128, "scale": 0.125},
    {"D": 64, "BM": 64, "BN": 32, "CAUSAL": True},
    lambda: attended(True),
    1e-2,
    title="attention sm_80",
    target="sm_80",
)


def philox(seed: int, n: int) -> Values:
    """Returns the random numbers from 0 to 1 of Triton's generator (Philox 4×32, ten rounds)."""
    c: list[Values] = [np.arange(n, dtype=np.uint64), *(np.zeros(n, np.uint64) for _ in range(3))]
    low, k0, k1 = np.uint64(2**32 - 1), seed & (2**32 - 1), seed >> 32
    for _ in range(10):
        one, other = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        c = [(other >> 32) ^ c[1] ^ np.uint64(k0), other & low, (one >> 32) ^ c[3] ^ np.uint64(k1), one & low]
        k0, k1 = (k0 + 0x9E3779B9) & (2**32 - 1), (k1 + 0xBB67AE85) & (2**32 - 1)
    whole = c[0].astype(np.uint32).view(np.int32)
    return np.where(whole < 0, -whole.astype(np.int64) - 1, whole) * np.float32(4.6566127342e-10)


case(
    "dropout",
    (3,),
    {"x": X, "out": zeros(3000), "n": 3000, "p": 0.4, "seed": 123},
    {"BLOCK": 1024},
    lambda: {"out": np.where(philox(123, 3000) > 0.4, X / 0.6, 0)},
)
case(
    "total",
    (3,),
    {"x": X, "out": zeros(1), "n": 3000},
    {"BLOCK": 1024},
    lambda: {"out": X.astype("float64").sum(keepdims=True)},
    1e-3,
)
case(
    "argmax",
    (5,),
    {"x": ROWS, "out": zeros(5, dtype="int32"), "columns": 777},
    {"BLOCK": 1024},
    lambda: {"out": ROWS.argmax(1)},
    0,
)
C = floats(4096)
case(
    "cumsum",
    (4,),
    {"x": C, "out": zeros(4096), "n": 4096},
    {"BLOCK": 1024},
    lambda: {"out": C.reshape(4, 1024).cumsum(1)},
    1e-4,
)
RA, RB2 = RANDOM.uniform(0.5, 1, 512).astype("float32"), floats(512)


def recurred() -> Mapping[str, Values]:
    found = np.zeros(512)
    for i in range(512):
        found[i] = RB2[i] if i % 256 == 0 else RA[i] * found[i - 1] + RB2[i]
    return {"out": found}


case("recurrence", (2,), {"a": RA, "b": RB2, "out": zeros(512)}, {"LENGTH": 256}, recurred, 1e-4)
TABLE, AT = floats(50, 40), RANDOM.integers(0, 50, 20).astype("int64")
case(
    "gather",
    (1,),
    {"x": TABLE, "index": AT, "out": zeros(20, 40), "n": 20, "width": 40},
    {"BLOCK": 1024},
    lambda: {"out": TABLE[AT]},
    0,
)
TO = RANDOM.integers(0, 30, 3000).astype("int32")
case(
    "scatter_add",
    (3,),
    {"x": X, "index": TO, "out": zeros(30), "n": 3000},
    {"BLOCK": 1024},
    lambda: {"out": np.bincount(TO, X, 30)},
    1e-3,
)
T = floats(50, 70)
case("transpose", (2, 3), {"x": T, "out": zeros(70, 50), "rows": 50, "columns": 70}, {"B": 32}, lambda: {"out": T.T}, 0)
H = RANDOM.integers(0, 64, 3000).astype("int32")
case(
    "histogram",
    (3,),
    {"x": H, "out": zeros(64, dtype="int32"), "n": 3000},
    {"BINS": 64, "BLOCK": 1024},
    lambda: {"out": np.bincount(H, minlength=64)},
    0,
)


def stenciled() -> Mapping[str, Values]:
    found = zeros(50, 70)
    found[1:-1, 1:-1] = 0.25 * (T[1:-1, :-2] + T[1:-1, 2:] + T[:-2, 1:-1] + T[2:, 1:-1])
    return {"out": found}


case("stencil", (4, 2), {"x": T, "out": zeros(50, 70), "rows": 50, "columns": 70}, {"BM": 16, "BN": 64}, stenciled)
case(
    "gelu",
    (3,),
    {"x": X, "out": zeros(3000), "n": 3000},
    {"BLOCK": 1024},
    lambda: {"out": 0.5 * X * (1 + np.vectorize(erf)(X / np.sqrt(2)))},
)
XH = halves(3000)
case(
    "tanh_gelu",
    (3,),
    {"x": XH, "out": zeros(3000, dtype="float16"), "n": 3000},
    {"BLOCK": 1024},
    lambda: {"out": 0.5 * XH * (1 + np.tanh(0.7978845608 * (XH + 0.044715 * XH.astype("float32") ** 3)))},
    1e-2,
)


def computed() -> Mapping[str, Values]:
    v = X.astype("float64")
    found = np.sin(v) + np.cos(v) + np.tan(v) + (v * v + 1) ** 0.3 + np.log1p(v * v) + np.exp(-v * v)
    found += np.arctan2(v, v * v + 1) + np.sinh(v) + np.cbrt(v) + np.floor(v) + np.ceil(v)
    return {"out": found + v * v + v + v / (v * v + 10)}


case("functions", (3,), {"x": X, "out": zeros(3000), "n": 3000}, {"BLOCK": 1024}, computed, 1e-4)
CHOSEN = RANDOM.random(3000) < 0.5
case(
    "pick",
    (3,),
    {"mask": CHOSEN, "x": X, "out": zeros(3000), "n": 3000, "twice": True},
    {"BLOCK": 1024},
    lambda: {"out": np.where(CHOSEN, 2 * X, 0)},
)
GATE, UP = halves(4, 500), halves(4, 500)
case(
    "swiglu",
    (4,),
    {"gate": GATE, "up": UP, "out": zeros(4, 500, dtype="float16"), "columns": 500},
    {"BLOCK": 512},
    lambda: {"out": GATE / (1 + np.exp(-GATE.astype("float32"))) * UP},
    1e-2,
)
LABELS = np.asarray([3, 700, -100, 5, 5], "int64")


def crossed() -> Mapping[str, Values]:
    loss = -np.log(softmax(ROWS.astype("float64")))[np.arange(5), LABELS]
    return {"loss": np.where(LABELS == -100, 0, loss)}


case(
    "cross_entropy",
    (5,),
    {"logits": ROWS, "labels": LABELS, "loss": zeros(5), "columns": 777, "ignored": -100},
    {"BLOCK": 1024},
    crossed,
    1e-4,
)
RX, ANGLES = floats(6, 4, 64), RANDOM.uniform(0, 3, (6, 32))
COS, SIN = np.cos(ANGLES).astype("float32"), np.sin(ANGLES).astype("float32")


def rotated() -> Mapping[str, Values]:
    one, other, c, s = RX[..., :32], RX[..., 32:], COS[:, None], SIN[:, None]
    return {"x": np.concatenate([one * c - other * s, other * c + one * s], -1)}


case("rotary", (6,), {"x": RX, "cos": COS, "sin": SIN, "heads": 4}, {"D": 64}, rotated)
TOKENS = RANDOM.integers(0, 50, 9).astype("int32")
case(
    "embedding",
    (9,),
    {"table": TABLE, "tokens": TOKENS, "out": zeros(9, 40), "width": 40},
    {"BLOCK": 32},
    lambda: {"out": TABLE[TOKENS]},
    0,
)
SORTED = floats(4, 256)
case("sort_rows", (4,), {"x": SORTED, "out": zeros(4, 256)}, {"LENGTH": 256}, lambda: {"out": -np.sort(-SORTED, 1)}, 0)
case(
    "top_k",
    (4,),
    {"x": SORTED, "out": zeros(4, 8)},
    {"LENGTH": 256, "COUNT": 8},
    lambda: {"out": -np.sort(-SORTED, 1)[:, :8]},
    0,
)


def escaped() -> Mapping[str, Values]:
    i = np.arange(1024)
    cx = ((i % 32) * np.float32(3.0) / np.float32(32) - np.float32(2)).astype("float32")
    cy = ((i // 32) * np.float32(2.0) / np.float32(32) - np.float32(1)).astype("float32")
    x, y, count = np.zeros(1024, "float32"), np.zeros(1024, "float32"), np.zeros(1024, "int32")
    for _ in range(20):
        inside = x * x + y * y <= 4
        x, y = np.where(inside, x * x - y * y + cx, x), np.where(inside, 2 * x * y + cy, y)
        count += inside
    return {"out": count}


case("mandelbrot", (4,), {"out": zeros(1024, dtype="int32"), "width": 32, "limit": 20}, {"BLOCK": 256}, escaped, 0)
case(
    "welford",
    (5,),
    {"x": ROWS, "mean": zeros(5), "variance": zeros(5), "columns": 777},
    {"BLOCK": 1024},
    lambda: {"mean": ROWS.mean(1), "variance": ROWS.var(1)},
    1e-4,
)
VX = floats(777)
case(
    "matvec",
    (1,),
    {"a": ROWS, "x": VX, "y": zeros(5), "rows": 5, "columns": 777},
    {"BM": 8, "BN": 128},
    lambda: {"y": ROWS.astype("float64") @ VX},
    1e-3,
)
AG, AM, AV = floats(1000), floats(1000), np.abs(floats(1000))


def adapted() -> Mapping[str, Values]:
    m, v = 0.9 * AM + 0.1 * AG, 0.99 * AV + 0.01 * AG * AG
    return {"first": m, "second": v, "weights": X[:1000] - 0.01 * m / (np.sqrt(v) + 1e-8)}


case(
    "adam",
    (1,),
    {
        "weights": X[:1000].copy(),
        "gradients": AG,
        "first": AM,
        "second": AV,
        "n": 1000,
        "rate": 0.01,
        "one": 0.9,
        "two": 0.99,
        "eps": 1e-8,
    },
    {"BLOCK": 1024},
    adapted,
    1e-4,
)
SCALES = np.abs(ROWS).max(1) / np.float32(127)
case(
    "quantize",
    (5,),
    {"x": ROWS, "out": zeros(5, 777, dtype="int8"), "scales": zeros(5), "columns": 777},
    {"BLOCK": 1024},
    lambda: {"scales": SCALES, "out": np.rint(ROWS / SCALES[:, None])},
    1e-5,
)


def narrowed(bits: Values, kind: str) -> Mapping[str, Values]:
    return {"out": decoded(bits, SHORT[kind])}


for kind in SHORT:
    wanted_bits = encoded(X.astype("float64"), SHORT[kind])
    case(
        "to_fp8",
        (3,),
        {"x": X, "out": Narrow(kind, np.zeros_like(wanted_bits)), "n": 3000},
        {"BLOCK": 1024},
        partial(narrowed, wanted_bits, kind),
        0,
        title=f"to {kind}",
        type=kind,
    )
DX, DW = floats(2, 6, 40), floats(2, 3, 3)


def convolved() -> Mapping[str, Values]:
    padded = np.pad(DX, ((0, 0), (1, 1), (1, 1)))
    found = sum(DW[:, y, x][:, None, None] * padded[:, y : y + 6, x : x + 40] for y in range(3) for x in range(3))
    return {"out": np.asarray(found)}


case(
    "depthwise",
    (6, 2),
    {"x": DX, "weight": DW, "out": zeros(2, 6, 40), "rows": 6, "columns": 40},
    {"R": 1, "BLOCK": 64},
    convolved,
)
TUPLE = floats(5, 48)
case(
    "mirrored",
    (5,),
    {"x": TUPLE, "shape": (5, 43), "strides": (48, 1), "out": zeros(5, 48)},
    {"BLOCK": 64},
    lambda: {"out": np.pad(TUPLE[:, 42::-1], ((0, 0), (0, 5)))},
)
