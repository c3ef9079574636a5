"""Holds histograms, scans, reductions, sorts and compactions."""

from __future__ import annotations

import numpy as np

from benchmarks.programs.program import Array, Arrays, Group, Launch, Local, Random, Rng, Zeros, up

GROUP = Group("sorting", "sorting.cl")
SUMMARY = np.dtype([("lowest", "f4"), ("highest", "f4"), ("sum", "f8")], align=True)


def padded(values: Array, size: int) -> Array:
    """Returns rows of `size` elements, the last of which is filled with zeros."""
    return np.pad(values, (0, -len(values) % size)).reshape(-1, size)


@GROUP.case(cpu={"n": 100003, "items": 1024}, gpu={"n": 200000003, "items": 270336})
def histogram_256(rng: Rng, n: int, items: int) -> Launch:
    return Launch(
        (items,),
        (256,),
        {"data": Random("uint8", n, 0, 256), "hist": Zeros("uint32", 256), "n": np.uint32(n)},
        lambda a: {"hist": np.bincount(a["data"], minlength=256).astype(np.uint32)},
    )


@GROUP.case(cpu={"n": 20011, "bins": 100}, gpu={"n": 10000019, "bins": 5000})
def histogram_bisect(rng: Rng, n: int, bins: int) -> Launch:
    edges = np.sort(rng.random(bins + 1, np.float32))

    def reference(a: Arrays) -> Arrays:
        within = a["x"][(a["x"] >= edges[0]) & (a["x"] < edges[-1])]
        return {"counts": np.bincount(np.searchsorted(edges, within, "right") - 1, minlength=bins).astype(np.int32)}

    return Launch(
        (up(n, 128),),
        (128,),
        {
            "x": Random("float32", n),
            "edges": edges,
            "counts": Zeros("int32", bins),
            "nbins": np.int32(bins),
            "n": np.int32(n),
        },
        reference,
    )


@GROUP.case(cpu={"n": 10001}, gpu={"n": 30000001})
def scan_blelloch(rng: Rng, n: int) -> Launch:
    groups = -(-n // 256)

    def reference(a: Arrays) -> Arrays:
        rows = padded(a["in"], 256)
        sums = np.cumsum(rows, 1, dtype=np.int32)
        return {"out": (sums - rows).reshape(-1)[:n], "block_sums": sums[:, -1]}

    return Launch(
        (groups * 128,),
        (128,),
        {
            "in": Random("int32", n, -50, 50),
            "out": Zeros("int32", n),
            "block_sums": Zeros("int32", groups),
            "t": Local(1024),
            "n": np.int32(n),
        },
        reference,
    )


@GROUP.case(cpu={"n": 10001}, gpu={"n": 20000003})
def scan_hillis_steele(rng: Rng, n: int) -> Launch:
    return Launch(
        (up(n, 256),),
        (256,),
        {"in": Random("uint32", n, 0, 1000), "out": Zeros("uint32", n), "n": np.uint32(n)},
        lambda a: {"out": np.cumsum(padded(a["in"], 256), 1, dtype=np.uint32).reshape(-1)[:n]},
    )


@GROUP.case(cpu={"n": 5003}, gpu={"n": 20000003})
def scan_segmented(rng: Rng, n: int) -> Launch:
    flags = (rng.random(n, np.float32) < 0.1).astype(np.uint8)

    def reference(a: Arrays) -> Arrays:
        starts = flags.astype(bool) | (np.arange(n) % 128 == 0)
        sums = np.cumsum(a["values"], dtype=np.float64)
        before = (sums - a["values"])[starts]
        return {"out": sums - before[np.cumsum(starts) - 1]}

    return Launch(
        (up(n, 128),),
        (128,),
        {"values": Random("float32", n), "flags": flags, "out": Zeros("float32", n), "n": np.int32(n)},
        reference,
    )


@GROUP.case(cpu={"n": 100003, "groups": 20}, gpu={"n": 100000007, "groups": 1056})
def reduce_tree(rng: Rng, n: int, groups: int) -> Launch:
    items = groups * 256

    def reference(a: Arrays) -> Arrays:
        by_item = padded(a["in"].astype(np.float64), items).sum(0)
        return {"partial": by_item.reshape(groups, 256).sum(1)}

    return Launch(
        (items,),
        (256,),
        {
            "in": Random("float32", n),
            "partial": Zeros("float32", groups),
            "scratch": Local(1024),
            "n": np.int32(n),
        },
        reference,
    )


@GROUP.case(cpu={"n": 20011}, gpu={"n": 50000017})
def reduce_modulo(rng: Rng, n: int) -> Launch:
    return Launch(
        (up(n, 256),),
        (256,),
        {"in": Random("int32", n, -9, 10), "out": Zeros("int32", -(-n // 256)), "n": np.int32(n)},
        lambda a: {"out": padded(a["in"], 256).sum(1, dtype=np.int32)},
    )


@GROUP.case(cpu={"n4": 10007, "groups": 8}, gpu={"n4": 20000003, "groups": 2112})
def reduce_summary(rng: Rng, n4: int, groups: int) -> Launch:
    def reference(a: Arrays) -> Arrays:
        group = np.arange(n4) % (64 * groups) // 64
        values = a["in"].reshape(n4, 4)
        out = np.zeros(groups, SUMMARY)
        for g in range(groups):
            mine = values[group == g]
            out[g] = mine.min(), mine.max(), mine.sum(dtype=np.float64)
        return {"out": out}

    return Launch(
        (64 * groups,),
        (64,),
        {"in": Random("float32", 4 * n4, -3, 5), "out": Zeros(SUMMARY, groups), "n4": np.int32(n4)},
        reference,
    )


@GROUP.case(cpu={"log": 15, "span": 10, "distance": 6}, gpu={"log": 25, "span": 20, "distance": 13})
def bitonic_step(rng: Rng, log: int, span: int, distance: int) -> Launch:
    n, d = 1 << log, 1 << distance

    def reference(a: Arrays) -> Arrays:
        pairs = a["keys"].reshape(-1, 2, d)
        falling = (np.arange(n).reshape(-1, 2, d)[:, :1] & (1 << span)) != 0
        low, high = pairs.min(1, keepdims=True), pairs.max(1, keepdims=True)
        return {"keys": np.concatenate([np.where(falling, high, low), np.where(falling, low, high)], 1)}

    return Launch(
        (n,),
        (256,),
        {"keys": Random("uint32", n, 0, 2**32), "stage_span": np.int32(1 << span), "distance": np.int32(d)},
        reference,
    )


@GROUP.case(cpu={"n": 5000}, gpu={"n": 8000001})
def bitonic_local(rng: Rng, n: int) -> Launch:
    values = np.arange(n, dtype=np.int32)

    def reference(a: Arrays) -> Arrays:
        order = np.lexsort((a["keys"], values // 256))
        return {"keys": a["keys"][order], "values": values[order]}

    keys = rng.permutation(n).astype(np.float32)
    return Launch((up(n, 256),), (256,), {"keys": keys, "values": values, "n": np.int32(n)}, reference)


def digits(keys: Array, chunk: int, threads: int, shift: int) -> tuple[Array, Array]:
    """Returns each key's digit and thread, as one number in the order of counts, and these counts."""
    bins = ((keys >> np.uint32(shift)) & np.uint32(15)).astype(np.int64) * threads + np.arange(len(keys)) // chunk
    return bins, np.bincount(bins, minlength=16 * threads).astype(np.int32)


@GROUP.case(cpu={"n": 20011, "threads": 512}, gpu={"n": 30000001, "threads": 262144})
def radix_count(rng: Rng, n: int, threads: int) -> Launch:
    chunk = -(-n // threads)
    return Launch(
        (threads,),
        (64,),
        {
            "keys": Random("uint32", n, 0, 2**32),
            "counts": Zeros("int32", 16 * threads),
            "n": np.int32(n),
            "chunk": np.int32(chunk),
            "shift": np.int32(8),
        },
        lambda a: {"counts": digits(a["keys"], chunk, threads, 8)[1]},
    )


@GROUP.case(cpu={"n": 20011, "threads": 512}, gpu={"n": 10000019, "threads": 131072})
def radix_scatter(rng: Rng, n: int, threads: int) -> Launch:
    chunk = -(-n // threads)
    keys = rng.integers(0, 2**32, n, np.uint32)
    bins, counts = digits(keys, chunk, threads, 4)
    return Launch(
        (threads,),
        (64,),
        {
            "keys": keys,
            "sorted": Zeros("uint32", n),
            "offsets": (np.cumsum(counts) - counts).astype(np.int32),
            "n": np.int32(n),
            "chunk": np.int32(chunk),
            "shift": np.int32(4),
        },
        lambda a: {"sorted": keys[np.argsort(bins, kind="stable")]},
    )


@GROUP.case(cpu={"n": 5000, "p": 256, "k": 32}, gpu={"n": 40000000, "p": 65536, "k": 1024})
def odd_even_merge_step(rng: Rng, n: int, p: int, k: int) -> Launch:
    def reference(a: Arrays) -> Arrays:
        i = np.arange(up(n // 2, 128))
        j = k % p + i // k * 2 * k + i % k
        j = j[(j + k < n)]
        j = j[j // (2 * p) == (j + k) // (2 * p)]
        out = a["a"].copy()
        out[j], out[j + k] = np.minimum(out[j], out[j + k]), np.maximum(out[j], out[j + k])
        return {"a": out}

    return Launch(
        (up(n // 2, 128),),
        (128,),
        {"a": Random("int32", n, -1000000, 1000000), "n": np.int32(n), "p": np.int32(p), "k": np.int32(k)},
        reference,
    )


@GROUP.case(cpu={"n": 10007}, gpu={"n": 30000001}, any_order=("out",))
def compact_atomic(rng: Rng, n: int) -> Launch:
    def invariant(before: Arrays, after: Arrays) -> None:
        expected = before["in"][before["in"] % 3 == 0]
        count = int(after["count"][0])
        assert count == len(expected), f"{count} elements are kept instead of {len(expected)}"
        assert np.array_equal(np.sort(after["out"][:count]), np.sort(expected)), "other elements are kept"

    return Launch(
        (up(n, 256),),
        (256,),
        {
            "in": Random("int32", n, -1000000, 1000000),
            "out": Zeros("int32", n),
            "count": Zeros("int32", 1),
            "n": np.int32(n),
            "divisor": np.int32(3),
        },
        invariant=invariant,
    )


@GROUP.case(cpu={"n": 10007}, gpu={"n": 20000003})
def compact_scatter(rng: Rng, n: int) -> Launch:
    keep = (rng.random(n, np.float32) < 0.3).astype(np.uint8)
    kept = int(keep.sum())
    return Launch(
        (up(n, 128),),
        (128,),
        {
            "in": Random("float32", 2 * n),
            "keep": keep,
            "position": (np.cumsum(keep, dtype=np.int32) - keep).astype(np.int32),
            "out": Zeros("float32", 2 * kept),
            "n": np.int32(n),
        },
        lambda a: {"out": a["in"].reshape(n, 2)[keep == 1]},
    )
