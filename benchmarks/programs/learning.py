"""Holds clustering, nearest neighbours, mixtures of Gaussians, decision trees and regression."""

from __future__ import annotations

import numpy as np

from benchmarks.programs.program import Array, Arrays, Group, Launch, Local, Random, Rng, Zeros, up

GROUP = Group("learning", "learning.cl")
SAMPLE = np.dtype(
    {
        "names": ["position", "label", "weight"],
        "formats": [("f4", 4), "i4", "f4"],
        "offsets": [0, 16, 20],
        "itemsize": 32,
    }
)
PLACE = np.dtype([("lat", "f4"), ("lng", "f4")], align=True)
NODE = np.dtype([("feature", "i2"), ("left", "i2"), ("threshold", "f4")], align=True)


def squares(points: Array, centres: Array) -> Array:
    """Returns the squared distance of each point to each centre."""
    return np.stack([((points - centre) ** 2).sum(1) for centre in centres], 1)


@GROUP.case(cpu={"n": 3001, "dims": 5, "k": 7}, gpu={"n": 2000003, "dims": 16, "k": 20})
def kmeans_assign(rng: Rng, n: int, dims: int, k: int) -> Launch:
    return Launch(
        (up(n, 256),),
        (256,),
        {
            "points": Random("float32", n * dims),
            "centres": Random("float32", k * dims),
            "member": Zeros("int32", n),
            "n": np.int32(n),
            "dims": np.int32(dims),
            "k": np.int32(k),
        },
        lambda a: {
            "member": squares(a["points"].reshape(dims, n).T, a["centres"].reshape(k, dims)).argmin(1).astype(np.int32)
        },
        outliers=1e-3,
    )


@GROUP.case(cpu={"n": 2003, "k": 37}, gpu={"n": 3000001, "k": 100})
def kmeans_assign_structs(rng: Rng, n: int, k: int) -> Launch:
    samples = np.zeros(n, SAMPLE)
    samples["position"] = rng.random((n, 4), np.float32)

    def reference(a: Arrays) -> Arrays:
        distances = squares(samples["position"], a["centres"].reshape(k, 4))
        out = samples.copy()
        out["label"], out["weight"] = distances.argmin(1), 1 / (1 + distances.min(1))
        return {"samples": out}

    return Launch(
        (up(n, 128),),
        (128,),
        {
            "samples": samples,
            "centres": Random("float32", 4 * k),
            "n": np.int32(n),
            "k": np.int32(k),
            "cache": Local(16 * k),
        },
        reference,
        outliers=1e-3,
    )


@GROUP.case(cpu={"n": 10007, "items": 1024}, gpu={"n": 20000003, "items": 135168})
def kmeans_accumulate(rng: Rng, n: int, items: int) -> Launch:
    k = 13

    def reference(a: Arrays) -> Arrays:
        sums = np.zeros((k, 4), np.int32)
        np.add.at(sums, a["member"], a["points"].reshape(n, 4))
        return {"sums": sums, "counts": np.bincount(a["member"], minlength=k).astype(np.int32)}

    return Launch(
        (items,),
        (128,),
        {
            "points": Random("int16", 4 * n, -100, 101),
            "member": Random("uint8", n, 0, k),
            "sums": Zeros("int32", 4 * k),
            "counts": Zeros("int32", k),
            "n": np.int32(n),
            "k": np.int32(k),
        },
        reference,
    )


@GROUP.case(cpu={"refs": 500, "queries": 300}, gpu={"refs": 5003, "queries": 40001})
def knn_insertion(rng: Rng, refs: int, queries: int) -> Launch:
    def reference(a: Arrays) -> Arrays:
        distances = squares(a["queries"].reshape(-1, 3), a["refs"].reshape(-1, 3))
        nearest = np.argsort(distances, 1, kind="stable")[:, :8].astype(np.int32)
        return {"dist": np.take_along_axis(distances, nearest, 1), "index": nearest}

    return Launch(
        (up(queries, 64),),
        (64,),
        {
            "refs": Random("float32", 3 * refs),
            "queries": Random("float32", 3 * queries),
            "dist": Zeros("float32", 8 * queries),
            "index": Zeros("int32", 8 * queries),
            "nrefs": np.int32(refs),
            "nqueries": np.int32(queries),
        },
        reference,
        outliers=1e-3,
    )


@GROUP.case(cpu={"n": 10007}, gpu={"n": 12000007})
def nearest_place(rng: Rng, n: int) -> Launch:
    places = rng.random((n, 2), np.float32).view(PLACE).reshape(-1)

    def reference(a: Arrays) -> Arrays:
        return {"distances": np.hypot(0.3 - places["lat"], 0.6 - places["lng"])}

    return Launch(
        (up(n, 256),),
        (256,),
        {
            "places": places,
            "distances": Zeros("float32", n),
            "n": np.int32(n),
            "lat": np.float32(0.3),
            "lng": np.float32(0.6),
        },
        reference,
    )


@GROUP.case(cpu={"n": 701}, gpu={"n": 30011})
def mean_shift(rng: Rng, n: int) -> Launch:
    def reference(a: Arrays) -> Arrays:
        points = a["points"].reshape(n, 2).astype(np.float64)
        r2 = squares(points, points)
        weights = np.where(r2 > 0.01, 0, np.exp(-0.5 * r2 / 0.0025))
        return {"shifted": weights.T @ points / weights.sum(0)[:, None]}

    return Launch(
        (up(n, 128),),
        (128,),
        {
            "points": Random("float32", 2 * n),
            "shifted": Zeros("float32", 2 * n),
            "n": np.int32(n),
            "radius": np.float32(0.05),
        },
        reference,
        outliers=0.02,
    )


@GROUP.case(cpu={"n": 1001, "d": 6, "k": 5}, gpu={"n": 300001, "d": 12, "k": 8})
def gmm_estep(rng: Rng, n: int, d: int, k: int) -> Launch:
    def reference(a: Arrays) -> Arrays:
        x, mean, inverse = a["x"].reshape(n, d), a["mean"].reshape(k, d), a["inv_var"].reshape(k, d)
        logs = np.stack([a["log_coef"][c] - 0.5 * ((x - mean[c]) ** 2 * inverse[c]).sum(1) for c in range(k)], 1)
        whole = np.logaddexp.reduce(logs, 1)
        return {"resp": np.exp(logs - whole[:, None]), "loglik": whole}

    return Launch(
        (up(n, 64),),
        (64,),
        {
            "x": Random("float64", n * d, -1, 1),
            "mean": Random("float64", k * d, -1, 1),
            "inv_var": Random("float64", k * d, 1, 4),
            "log_coef": Random("float64", k, -3, -1),
            "resp": Zeros("float64", n * k),
            "loglik": Zeros("float64", n),
            "n": np.int32(n),
            "d": np.int32(d),
            "k": np.int32(k),
        },
        reference,
        tolerance=1e-9,
    )


def trees(rng: Rng, count: int, depth: int, features: int, classes: int) -> tuple[Array, Array]:
    """Returns trees in which a third of the inner nodes became leaves, and where each begins."""
    nodes: list[tuple[int, int, float]] = []
    roots = []
    for _ in range(count):
        roots.append(len(nodes))
        tree: list[tuple[int, int, float]] = [(0, 0, 0.0)]
        waiting = [(0, 0)]
        while waiting:
            at, level = waiting.pop(0)
            if level == depth or (level > 2 and rng.random() < 0.33):
                tree[at] = (-1, 0, float(rng.integers(0, classes)))
            else:
                tree[at] = (int(rng.integers(0, features)), len(tree), 0.2 + 0.6 * float(rng.random()))
                waiting += [(len(tree), level + 1), (len(tree) + 1, level + 1)]
                tree += [(0, 0, 0.0), (0, 0, 0.0)]
        nodes += tree
    return np.array(nodes, NODE), np.array(roots, np.int32)


def leaves(tree: Array, rows: Array) -> Array:
    """Returns the value of the leaf that each row reaches."""
    at = np.zeros(len(rows), np.int64)
    while (inner := tree["feature"][at] >= 0).any():
        right = rows[np.arange(len(rows)), tree["feature"][at]] > tree["threshold"][at]
        at = np.where(inner, tree["left"][at] + right, at)
    return np.asarray(tree["threshold"][at])


@GROUP.case(cpu={"n": 5003, "features": 9, "depth": 8}, gpu={"n": 2000003, "features": 16, "depth": 11})
def decision_tree(rng: Rng, n: int, features: int, depth: int) -> Launch:
    tree, _ = trees(rng, 1, depth, features, 100)
    return Launch(
        (up(n, 128),),
        (128,),
        {
            "tree": tree,
            "rows": Random("float32", n * features),
            "out": Zeros("float32", n),
            "n": np.int32(n),
            "features": np.int32(features),
        },
        lambda a: {"out": leaves(tree, a["rows"].reshape(n, features))},
    )


@GROUP.case(
    cpu={"n": 1001, "features": 9, "count": 11, "depth": 7}, gpu={"n": 300007, "features": 30, "count": 64, "depth": 9}
)
def forest_vote(rng: Rng, n: int, features: int, count: int, depth: int) -> Launch:
    nodes, roots = trees(rng, count, depth, features, 4)

    def reference(a: Arrays) -> Arrays:
        rows = a["rows"].reshape(features, n).T
        votes = np.zeros((n, 4), np.int32)
        for root in roots:
            votes[np.arange(n), leaves(nodes[root:], rows).astype(np.int32)] += 1
        return {"winner": votes.argmax(1).astype(np.uint8)}

    return Launch(
        (up(n, 256),),
        (256,),
        {
            "nodes": nodes,
            "roots": roots,
            "trees": np.int32(count),
            "rows": Random("float32", n * features),
            "features": np.int32(features),
            "winner": Zeros("uint8", n),
            "n": np.int32(n),
        },
        reference,
    )


@GROUP.case(cpu={"n": 1003}, gpu={"n": 50021})
def dbscan_core(rng: Rng, n: int) -> Launch:
    def reference(a: Arrays) -> Arrays:
        points = np.stack([a["xs"], a["ys"]], 1)
        found = (squares(points, points) <= a["eps2"]).sum(0).astype(np.int32)
        return {"neighbours": found, "core": (found >= 8).astype(np.int8)}

    return Launch(
        (up(n, 64),),
        (64,),
        {
            "xs": Random("float32", n),
            "ys": Random("float32", n),
            "neighbours": Zeros("int32", n),
            "core": Zeros("int8", n),
            "eps2": np.float32(0.0025),
            "min_points": np.int32(8),
            "n": np.int32(n),
        },
        reference,
        outliers=0.01,
    )


@GROUP.case(cpu={"samples": 400, "features": 301}, gpu={"samples": 2003, "features": 30011})
def logistic_gradient(rng: Rng, samples: int, features: int) -> Launch:
    def reference(a: Arrays) -> Arrays:
        off = 1 / (1 + np.exp(-a["margin"])) - (a["label"] > 0)
        gradient = off @ a["x"].reshape(samples, features)
        return {"w": a["w"] - 0.1 * (gradient / samples + 0.01 * a["w"])}

    return Launch(
        (up(features, 64),),
        (64,),
        {
            "x": Random("float32", samples * features, -1, 1),
            "label": Random("int8", samples, 0, 2),
            "margin": Random("float32", samples, -3, 3),
            "w": Random("float32", features, -1, 1),
            "samples": np.int32(samples),
            "features": np.int32(features),
            "rate": np.float32(0.1),
            "decay": np.float32(0.01),
        },
        reference,
    )
