"""Holds traversals, rankings and colourings of graphs."""

from __future__ import annotations

import numpy as np

from benchmarks.programs.program import Array, Arrays, Group, Launch, Rng, Zeros, up

GROUP = Group("graphs", "graphs.cl")
NODE = np.dtype([("first", "i4"), ("degree", "i4")], align=True)


def graph(rng: Rng, n: int, mean: int) -> tuple[Array, Array]:
    """Returns a graph with some vertices of many neighbours, and others of none."""
    degrees = np.minimum(rng.pareto(2.0, n) * mean, 20 * mean).astype(np.int32)
    first = np.zeros(n + 1, np.int32)
    np.cumsum(degrees, out=first[1:])
    return first, rng.integers(0, n, first[-1], np.int32)


def owners(first: Array) -> Array:
    """Returns the vertex that each edge leaves."""
    return np.repeat(np.arange(len(first) - 1, dtype=np.int32), np.diff(first))


@GROUP.case(cpu={"n": 5003}, gpu={"n": 2000003})
def bfs_masks(rng: Rng, n: int) -> Launch:
    first, adj = graph(rng, n, 6)
    nodes = np.zeros(n, NODE)
    nodes["first"], nodes["degree"] = first[:-1], np.diff(first)
    frontier = (rng.random(n) < 0.2).astype(np.uint8)
    visited = frontier | (rng.random(n) < 0.3).astype(np.uint8)
    level = np.where(frontier, 4, -1).astype(np.int32)

    def reference(a: Arrays) -> Arrays:
        reached = adj[frontier[owners(first)] == 1]
        reached = reached[visited[reached] == 0]
        deeper, following = level.copy(), np.zeros(n, np.uint8)
        deeper[reached], following[reached] = 5, 1
        return {"frontier": np.zeros(n, np.uint8), "level": deeper, "next": following}

    return Launch(
        (up(n, 256),),
        (256,),
        {
            "nodes": nodes,
            "adj": adj,
            "frontier": frontier,
            "next": Zeros("uint8", n),
            "visited": visited,
            "level": level,
            "count": np.int32(n),
        },
        reference,
    )


@GROUP.case(cpu={"n": 5003, "waiting": 400}, gpu={"n": 2000003, "waiting": 300000}, any_order=("next_queue",))
def bfs_queue(rng: Rng, n: int, waiting: int) -> Launch:
    first, adj = graph(rng, n, 6)
    queue = rng.permutation(n)[:waiting].astype(np.int32)
    depth = np.full(n, -1, np.int32)
    depth[queue] = 3

    def invariant(before: Arrays, after: Arrays) -> None:
        reached = np.unique(adj[np.isin(owners(first), queue)])
        reached = reached[depth[reached] == -1]
        expected = depth.copy()
        expected[reached] = 4
        count = int(after["next_count"][0])
        assert np.array_equal(after["depth"], expected), "depths are wrong"
        assert np.array_equal(np.sort(after["next_queue"][:count]), reached), "the next queue is wrong"

    return Launch(
        (up(waiting, 128),),
        (128,),
        {
            "queue": queue,
            "waiting": np.int32(waiting),
            "first": first,
            "adj": adj,
            "depth": depth,
            "next_queue": Zeros("int32", n),
            "next_count": Zeros("int32", 1),
            "current": np.int32(3),
        },
        invariant=invariant,
    )


@GROUP.case(cpu={"n": 4001}, gpu={"n": 1000003})
def sssp_relax(rng: Rng, n: int) -> Launch:
    first, adj = graph(rng, n, 7)
    weight = rng.integers(1, 50, len(adj), np.int32)
    dist = rng.integers(0, 200, n, np.int32)
    far = np.iinfo(np.int32).max
    dist[rng.random(n) < 0.5] = far

    def reference(a: Arrays) -> Arrays:
        new = dist.astype(np.int64)
        sources = owners(first)
        near = dist[sources] < far
        np.minimum.at(new, adj[near], dist[sources[near]].astype(np.int64) + weight[near])
        return {"new_dist": new.astype(np.int32), "changed": np.ones(1, np.int32)}

    return Launch(
        (up(n, 128),),
        (128,),
        {
            "first": first,
            "adj": adj,
            "weight": weight,
            "old_dist": dist,
            "new_dist": dist.copy(),
            "changed": Zeros("int32", 1),
            "n": np.int32(n),
        },
        reference,
    )


@GROUP.case(cpu={"n": 4001}, gpu={"n": 1500001})
def pagerank_pull(rng: Rng, n: int) -> Launch:
    first, sources = graph(rng, n, 6)
    degree = np.maximum(np.bincount(sources, minlength=n), 1).astype(np.int32)
    rank = (rng.random(n, np.float32) * 2 / n).astype(np.float32)

    def reference(a: Arrays) -> Arrays:
        incoming = np.bincount(owners(first), (rank / degree)[sources], n)
        return {"next": 0.15 / n + 0.85 * incoming}

    return Launch(
        (up(n, 64),),
        (64,),
        {
            "first": first,
            "sources": sources,
            "rank": rank,
            "out_degree": degree,
            "next": Zeros("float32", n),
            "damping": np.float32(0.85),
            "n": np.int32(n),
        },
        reference,
    )


@GROUP.case(cpu={"n": 4001}, gpu={"n": 1500001})
def pagerank_push(rng: Rng, n: int) -> Launch:
    first, targets = graph(rng, n, 6)
    rank = rng.integers(0, 100000, n, np.uint32)

    def reference(a: Arrays) -> Arrays:
        shares = rank // np.maximum(np.diff(first), 1).astype(np.uint32)
        following = np.zeros(n, np.uint32)
        np.add.at(following, targets, shares[owners(first)])
        return {"next": following}

    return Launch(
        (up(n, 256),),
        (256,),
        {"first": first, "targets": targets, "rank": rank, "next": Zeros("uint32", n), "n": np.int32(n)},
        reference,
    )


@GROUP.case(cpu={"n": 3001, "nedges": 9001}, gpu={"n": 1000003, "nedges": 5000001}, any_order=("parent",))
def components_hook(rng: Rng, n: int, nedges: int) -> Launch:
    """Parents change while others read them, so that only what must hold of all orders is checked."""
    edges = rng.integers(0, n, (nedges, 2), np.int32)

    def invariant(before: Arrays, after: Arrays) -> None:
        parent = after["parent"]
        assert (parent <= np.arange(n)).all(), "a parent is larger than its child"
        root = parent.copy()
        while (root != parent[root]).any():
            root = parent[root]
        both = np.sort(root[edges], axis=1)
        hooked = root != np.arange(n)
        joined = both[:, 0] != both[:, 1]
        assert hooked[edges.max(1)[~joined & (edges[:, 0] != edges[:, 1])]].any(), "no edge hooked"
        larger = np.unique(edges.max(1)[edges[:, 0] != edges[:, 1]])
        assert (parent[larger] < larger).all(), "an edge's larger end is still its own parent"

    return Launch(
        (up(nedges, 128),),
        (128,),
        {"edges": edges.reshape(-1), "nedges": np.int32(nedges), "parent": np.arange(n, dtype=np.int32)},
        invariant=invariant,
    )


@GROUP.case(cpu={"n": 20011}, gpu={"n": 8000009})
def components_jump(rng: Rng, n: int) -> Launch:
    own = np.arange(n, dtype=np.int32)
    parent = np.where(rng.random(n) < 0.05, own, (rng.random(n) * own).astype(np.int32))

    def reference(a: Arrays) -> Arrays:
        root = parent
        while (root != parent[root]).any():
            root = parent[root]
        return {"root": root}

    return Launch((up(n, 256),), (256,), {"parent": parent, "root": Zeros("int32", n), "n": np.int32(n)}, reference)


@GROUP.case(cpu={"n": 301, "mean": 10}, gpu={"n": 200003, "mean": 14})
def triangle_count(rng: Rng, n: int, mean: int) -> Launch:
    """Neighbours are those of a symmetric graph without double edges."""
    one, other = rng.integers(0, n, (2, n * mean // 2), np.int64)
    one = np.minimum(n - 1, (one * rng.random(len(one))).astype(np.int64))
    keys = np.sort(np.concatenate([one * n + other, other * n + one])[np.tile(one != other, 2)])
    keys = keys[np.diff(keys, prepend=-1) > 0]
    first = np.searchsorted(keys // n, np.arange(n + 1)).astype(np.int32)
    adj = (keys % n).astype(np.int32)

    def reference(a: Arrays) -> Arrays:
        matrix = np.zeros((n, n), np.int32)
        matrix[owners(first), adj] = 1
        above = np.triu(matrix)
        return {"triangles": ((above @ above) * above).sum(1)}

    return Launch(
        (up(n, 64),),
        (64,),
        {"first": first, "adj": adj, "triangles": Zeros("int32", n), "n": np.int32(n)},
        reference,
    )


@GROUP.case(cpu={"n": 2003}, gpu={"n": 1000003})
def colour_step(rng: Rng, n: int) -> Launch:
    first, adj = graph(rng, n, 5)
    priority = rng.integers(0, 1000, n, np.int32)
    colour = np.where(rng.random(n) < 0.6, rng.integers(0, 12, n), -1).astype(np.int32)

    def reference(a: Arrays) -> Arrays:
        new = colour.copy()
        for v in np.flatnonzero(colour < 0):
            near = adj[first[v] : first[v + 1]]
            near = near[near != v]
            waiting = near[colour[near] < 0]
            if all((priority[w], w) < (priority[v], v) for w in waiting):
                used = set(colour[near].tolist())
                new[v] = next(c for c in range(64) if c not in used)
        return {"new_colour": new}

    return Launch(
        (up(n, 128),),
        (128,),
        {
            "first": first,
            "adj": adj,
            "priority": priority,
            "colour": colour,
            "new_colour": colour.copy(),
            "n": np.int32(n),
        },
        reference,
    )


@GROUP.case(cpu={"n": 2003}, gpu={"n": 1000003})
def label_propagation(rng: Rng, n: int) -> Launch:
    first, adj = graph(rng, n, 6)
    label = rng.integers(0, 10, n, np.int32)

    def reference(a: Arrays) -> Arrays:
        out = label.copy()
        for v in range(n):
            counts = np.bincount(label[adj[first[v] : min(first[v + 1], first[v] + 8)]], minlength=1)
            if counts.any():
                out[v] = counts.argmax()
        return {"out": out}

    return Launch(
        (up(n, 256),),
        (256,),
        {"first": first, "adj": adj, "label": label, "out": Zeros("int32", n), "n": np.int32(n)},
        reference,
    )
