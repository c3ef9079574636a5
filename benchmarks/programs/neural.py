"""Holds layers of neural networks."""

from __future__ import annotations

import math

import numpy as np

from benchmarks.programs.program import Array, Arrays, Group, Launch, Local, Random, Rng, Zeros, up

GROUP = Group("neural", "neural.cl")
SHAPE = np.dtype(
    [
        (name, "i4")
        for name in ("channels", "height", "width", "filters", "size", "stride", "pad", "out_height", "out_width")
    ],
    align=True,
)
BLOCK8 = np.dtype([("scale", "f4"), ("q", "i1", 32)], align=True)
BLOCK4 = np.dtype([("scale", "f4"), ("q", "u1", 16)], align=True)
MOMENTS = np.dtype([("m", "f4"), ("v", "f4")], align=True)


@GROUP.case(
    cpu={"channels": 3, "side": 31, "filters": 5, "size": 3},
    gpu={"channels": 64, "side": 113, "filters": 96, "size": 5},
)
def conv2d_direct(rng: Rng, channels: int, side: int, filters: int, size: int) -> Launch:
    pad, stride = size // 2, 2
    out = (side + 2 * pad - size) // stride + 1

    def reference(a: Arrays) -> Arrays:
        image = np.pad(a["in"].reshape(channels, side, side), ((0, 0), (pad, pad), (pad, pad)))
        weight = a["weight"].reshape(filters, channels, size, size)
        total = np.broadcast_to(a["bias"][:, None, None], (filters, out, out)).astype(np.float64)
        for i, j in np.ndindex(size, size):
            seen = image[:, i : i + 2 * out - 1 : stride, j : j + 2 * out - 1 : stride]
            total += np.tensordot(weight[:, :, i, j], seen, 1)
        return {"out": np.where(total > 0, total, 0.01 * total)}

    return Launch(
        (up(out, 16), up(out, 4), filters),
        (16, 4, 1),
        {
            "in": Random("float32", channels * side * side, -1, 1),
            "weight": Random("float32", filters * channels * size * size, -1, 1),
            "bias": Random("float32", filters),
            "out": Zeros("float32", filters * out * out),
            "s": np.array((channels, side, side, filters, size, stride, pad, out, out), SHAPE)[()],
        },
        reference,
    )


@GROUP.case(cpu={"channels": 7, "size": 29}, gpu={"channels": 1024, "size": 112})
def depthwise_3x3(rng: Rng, channels: int, size: int) -> Launch:
    n = channels * size * size

    def reference(a: Arrays) -> Arrays:
        wide = np.pad(a["in"].reshape(channels, size, size), ((0, 0), (1, 1), (1, 1)))
        w = a["w"].reshape(channels, 3, 3, 1, 1)
        total = sum(w[:, i, j] * wide[:, i : i + size, j : j + size] for i, j in np.ndindex(3, 3))
        return {"out": np.clip(np.asarray(total), 0, 6)}

    return Launch(
        (up(n, 128),),
        (128,),
        {
            "in": Random("float32", n, -3, 3),
            "w": Random("float32", 9 * channels, -1, 1),
            "out": Zeros("float32", n),
            "channels": np.int32(channels),
            "size": np.int32(size),
        },
        reference,
    )


@GROUP.case(cpu={"channels": 3, "side": 27, "k": 3}, gpu={"channels": 64, "side": 149, "k": 5})
def im2col(rng: Rng, channels: int, side: int, k: int) -> Launch:
    n = channels * k * k * side * side

    def reference(a: Arrays) -> Arrays:
        wide = np.pad(a["image"].reshape(channels, side, side), ((0, 0), (k // 2,) * 2, (k // 2,) * 2))
        return {"columns": np.stack([wide[:, i : i + side, j : j + side] for i, j in np.ndindex(k, k)], 1)}

    return Launch(
        (up(n, 256),),
        (256,),
        {
            "image": Random("float32", channels * side * side),
            "columns": Zeros("float32", n),
            "channels": np.int32(channels),
            "height": np.int32(side),
            "width": np.int32(side),
            "k": np.int32(k),
            "pad": np.int32(k // 2),
        },
        reference,
    )


@GROUP.case(cpu={"planes": 5, "h": 33, "w": 41}, gpu={"planes": 256, "h": 225, "w": 223})
def max_pool_2x2(rng: Rng, planes: int, h: int, w: int) -> Launch:
    oh, ow = h // 2, w // 2

    def reference(a: Arrays) -> Arrays:
        cut = a["in"].reshape(planes, h, w)[:, : 2 * oh, : 2 * ow].reshape(planes, oh, 2, ow, 2)
        four = cut.transpose(0, 1, 3, 2, 4).reshape(planes, oh, ow, 4)
        return {"out": four.max(3), "argmax": four.argmax(3).astype(np.uint8)}

    return Launch(
        (up(ow, 16), up(oh, 8), planes),
        (16, 8, 1),
        {
            "in": Random("float32", planes * h * w, -1, 1),
            "out": Zeros("float32", planes * oh * ow),
            "argmax": Zeros("uint8", planes * oh * ow),
            "planes": np.int32(planes),
            "h": np.int32(h),
            "w": np.int32(w),
        },
        reference,
    )


@GROUP.case(cpu={"planes": 20, "area": 301}, gpu={"planes": 16384, "area": 3137})
def global_average_pool(rng: Rng, planes: int, area: int) -> Launch:
    return Launch(
        (64 * planes,),
        (64,),
        {"in": Random("float32", planes * area), "out": Zeros("float32", planes), "area": np.int32(area)},
        lambda a: {"out": a["in"].reshape(planes, area).mean(1, dtype=np.float64)},
    )


@GROUP.case(cpu={"batch": 2, "channels": 13, "area": 203}, gpu={"batch": 16, "channels": 256, "area": 6400})
def batch_norm(rng: Rng, batch: int, channels: int, area: int) -> Launch:
    def reference(a: Arrays) -> Arrays:
        mean, var, gamma, beta = (a[name][:, None] for name in ("mean", "var", "gamma", "beta"))
        return {"x": (a["x"].reshape(batch, channels, area) - mean) / np.sqrt(var + 1e-5) * gamma + beta}

    n = batch * channels * area
    return Launch(
        (up(n, 256),),
        (256,),
        {
            "x": Random("float32", n, -2, 2),
            "mean": Random("float32", channels, -1, 1),
            "var": Random("float32", channels, 0.5, 1.5),
            "gamma": Random("float32", channels),
            "beta": Random("float32", channels),
            "eps": np.float32(1e-5),
            "channels": np.int32(channels),
            "area": np.int32(area),
            "n": np.int32(n),
        },
        reference,
    )


@GROUP.case(cpu={"rows": 30, "width": 301}, gpu={"rows": 16000, "width": 1536})
def layer_norm(rng: Rng, rows: int, width: int) -> Launch:
    def reference(a: Arrays) -> Arrays:
        x = a["in"].reshape(rows, width).astype(np.float64)
        normal = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
        return {"out": normal * a["gamma"] + a["beta"]}

    return Launch(
        (128 * rows,),
        (128,),
        {
            "in": Random("float32", rows * width, -2, 2),
            "out": Zeros("float32", rows * width),
            "gamma": Random("float32", width),
            "beta": Random("float32", width),
            "width": np.int32(width),
            "eps": np.float32(1e-5),
            "t": Local(2 * 4 * 128),
        },
        reference,
    )


@GROUP.case(cpu={"rows": 301, "cols": 101}, gpu={"rows": 40000, "cols": 501})
def softmax_rows(rng: Rng, rows: int, cols: int) -> Launch:
    def reference(a: Arrays) -> Arrays:
        x = a["x"].reshape(rows, cols)
        e = np.exp(x - x.max(1, keepdims=True))
        return {"y": e / e.sum(1, keepdims=True)}

    return Launch(
        (up(rows, 64),),
        (64,),
        {
            "x": Random("float32", rows * cols, -5, 5),
            "y": Zeros("float32", rows * cols),
            "rows": np.int32(rows),
            "cols": np.int32(cols),
        },
        reference,
    )


@GROUP.case(cpu={"n4": 3001}, gpu={"n4": 8000001})
def gelu(rng: Rng, n4: int) -> Launch:
    return Launch(
        (up(n4, 128),),
        (128,),
        {
            "x": Random("float32", 4 * n4, -4, 4),
            "y": Zeros("float32", 4 * n4),
            "n4": np.int32(n4),
            "exact": np.int32(1),
        },
        lambda a: {"y": 0.5 * a["x"] * (1 + np.array([math.erf(v) for v in a["x"] * 0.5**0.5]))},
    )


@GROUP.case(cpu={"heads": 2, "tokens": 61, "dim": 24}, gpu={"heads": 16, "tokens": 1500, "dim": 80})
def attention_scores(rng: Rng, heads: int, tokens: int, dim: int) -> Launch:
    def reference(a: Arrays) -> Arrays:
        q, k = (a[name].reshape(heads, tokens, dim) for name in ("q", "k"))
        scores = q @ k.transpose(0, 2, 1) / math.sqrt(dim)
        return {"scores": np.where(np.tri(tokens, dtype=bool), scores, -np.inf)}

    n = heads * tokens * dim
    return Launch(
        (up(tokens, 16), up(tokens, 16), heads),
        (16, 16, 1),
        {
            "q": Random("float32", n, -1, 1),
            "k": Random("float32", n, -1, 1),
            "scores": Zeros("float32", heads * tokens * tokens),
            "tokens": np.int32(tokens),
            "dim": np.int32(dim),
        },
        reference,
    )


def quantised(rng: Rng, count: int, dtype: np.dtype[np.void]) -> Array:
    """Returns blocks of random weights."""
    data = np.frombuffer(rng.bytes(count * dtype.itemsize), dtype).copy()
    data["scale"] = rng.random(count, np.float32)
    return data


@GROUP.case(cpu={"rows": 61, "blocks": 20}, gpu={"rows": 14336, "blocks": 128})
def matvec_int8(rng: Rng, rows: int, blocks: int) -> Launch:
    w = quantised(rng, rows * blocks, BLOCK8)

    def reference(a: Arrays) -> Arrays:
        sums = np.einsum("rbk,bk->rb", w["q"].reshape(rows, blocks, 32), a["x"].reshape(blocks, 32).astype(np.float64))
        return {"y": (sums * w["scale"].reshape(rows, blocks)).sum(1)}

    return Launch(
        (32 * rows,),
        (32,),
        {"w": w, "x": Random("float32", 32 * blocks, -1, 1), "y": Zeros("float32", rows), "blocks": np.int32(blocks)},
        reference,
    )


@GROUP.case(cpu={"rows": 61, "blocks": 20}, gpu={"rows": 11008, "blocks": 128})
def matvec_int4(rng: Rng, rows: int, blocks: int) -> Launch:
    w = quantised(rng, rows * blocks, BLOCK4)

    def reference(a: Arrays) -> Arrays:
        q = w["q"].reshape(rows, blocks, 16).astype(np.int32)
        halves = np.concatenate([q & 15, q >> 4], 2) - 8
        sums = np.einsum("rbk,bk->rb", halves, a["x"].reshape(blocks, 32).astype(np.float64))
        return {"y": (sums * w["scale"].reshape(rows, blocks)).sum(1)}

    return Launch(
        (up(rows, 64),),
        (64,),
        {
            "w": w,
            "x": Random("float32", 32 * blocks, -1, 1),
            "y": Zeros("float32", rows),
            "blocks": np.int32(blocks),
            "rows": np.int32(rows),
        },
        reference,
    )


@GROUP.case(cpu={"tokens": 50, "dim": 70, "vocabulary": 300}, gpu={"tokens": 16384, "dim": 1000, "vocabulary": 50000})
def embedding_gather(rng: Rng, tokens: int, dim: int, vocabulary: int) -> Launch:
    length = 16

    def reference(a: Arrays) -> Arrays:
        ids = a["tokens"]
        known = ((ids >= 0) & (ids < vocabulary))[:, None]
        rows = np.where(known, a["table"].reshape(-1, dim)[np.clip(ids, 0, vocabulary - 1)], 0)
        return {"out": rows + a["position"].reshape(length, dim)[np.arange(tokens) % length]}

    return Launch(
        (up(dim, 128), tokens),
        (128, 1),
        {
            "tokens": Random("int32", tokens, -1, vocabulary),
            "table": Random("float32", vocabulary * dim),
            "position": Random("float32", length * dim),
            "out": Zeros("float32", tokens * dim),
            "dim": np.int32(dim),
            "length": np.int32(length),
            "vocabulary": np.int32(vocabulary),
        },
        reference,
    )


@GROUP.case(cpu={"hidden": 70, "batch": 9}, gpu={"hidden": 1000, "batch": 8192})
def lstm_cell(rng: Rng, hidden: int, batch: int) -> Launch:
    def reference(a: Arrays) -> Arrays:
        gates = (a["gates"] + np.tile(a["bias"], batch)).astype(np.float64).reshape(batch, 4, hidden)
        gates[:, 1] += 1
        i, f, _, o = (1 / (1 + np.exp(-gates))).transpose(1, 0, 2)
        c = f * a["c"].reshape(batch, hidden) + i * np.tanh(gates[:, 2])
        return {"c": c, "h": o * np.tanh(c)}

    n = hidden * batch
    return Launch(
        (up(hidden, 64), up(batch, 2)),
        (64, 2),
        {
            "gates": Random("float32", 4 * n, -2, 2),
            "bias": Random("float32", 4 * hidden, -1, 1),
            "c": Random("float32", n, -1, 1),
            "h": Zeros("float32", n),
            "hidden": np.int32(hidden),
            "batch": np.int32(batch),
        },
        reference,
    )


@GROUP.case(cpu={"n": 5003}, gpu={"n": 20000003})
def adam_step(rng: Rng, n: int) -> Launch:
    moments = rng.random((n, 2), np.float32).view(MOMENTS).reshape(-1)

    def reference(a: Arrays) -> Arrays:
        g = a["grad"]
        out = moments.copy()
        out["m"], out["v"] = 0.9 * moments["m"] + 0.1 * g, 0.999 * moments["v"] + 0.001 * g * g
        return {"moments": out, "w": a["w"] - 0.01 * out["m"] * 1.2 / (np.sqrt(out["v"] * 1.1) + 1e-8)}

    return Launch(
        (up(n, 256),),
        (256,),
        {
            "w": Random("float32", n, -1, 1),
            "grad": Random("float32", n, -1, 1),
            "moments": moments,
            "rate": np.float32(0.01),
            "b1": np.float32(0.9),
            "b2": np.float32(0.999),
            "c1": np.float32(1.2),
            "c2": np.float32(1.1),
            "n": np.int32(n),
        },
        reference,
    )
