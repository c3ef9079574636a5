"""Holds dynamic programming: alignment, shortest paths, knapsacks and hidden states."""

from __future__ import annotations

import numpy as np

from benchmarks.programs.program import Arrays, Group, Launch, Local, Random, Rng, Zeros, up

GROUP = Group("dynamic", "dynamic.cl")


@GROUP.case(cpu={"pairs": 7, "m": 70, "n": 61, "diagonal": 80}, gpu={"pairs": 16000, "m": 63, "n": 59, "diagonal": 60})
def smith_waterman_diagonal(rng: Rng, pairs: int, m: int, n: int, diagonal: int) -> Launch:
    first, last = max(1, diagonal - n), min(m, diagonal - 1)

    def reference(a: Arrays) -> Arrays:
        h = a["scores"].reshape(pairs, m + 1, n + 1).copy()
        i = np.arange(first, last + 1)
        j = diagonal - i
        same = a["firsts"].reshape(pairs, m)[:, i - 1] == a["seconds"].reshape(pairs, n)[:, j - 1]
        matched = h[:, i - 1, j - 1] + np.where(same, 2, -1)
        h[:, i, j] = np.max([matched, h[:, i - 1, j] - 1, h[:, i, j - 1] - 1, 0 * matched], 0)
        return {"scores": h}

    return Launch(
        (up(last - first + 1, 64), pairs),
        (64, 1),
        {
            "firsts": Random("int8", pairs * m, 65, 69),
            "seconds": Random("int8", pairs * n, 65, 69),
            "scores": Random("int32", pairs * (m + 1) * (n + 1), 0, 60),
            "m": np.int32(m),
            "n": np.int32(n),
            "diagonal": np.int32(diagonal),
        },
        reference,
    )


@GROUP.case(cpu={"words": 100, "count": 801}, gpu={"words": 50000, "count": 1000003})
def edit_distance(rng: Rng, words: int, count: int) -> Launch:
    lengths = rng.integers(1, 21, words)
    start = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    letters = rng.integers(97, 101, start[-1], np.uint8)
    pairs = rng.integers(0, words, (count, 2), np.int32)

    def reference(a: Arrays) -> Arrays:
        distances = []
        for first, second in pairs:
            s, t = letters[start[first] : start[first + 1]], letters[start[second] : start[second + 1]]
            row = np.arange(len(t) + 1)
            for i, letter in enumerate(s, 1):
                new = np.concatenate([[i], np.minimum(row[1:] + 1, row[:-1] + (t != letter))])
                # A deletion costs one for each place: a running minimum of what remains after that cost.
                row = np.minimum.accumulate(new - np.arange(len(new))) + np.arange(len(new))
            distances.append(row[-1])
        return {"distance": np.array(distances, np.int32)}

    return Launch(
        (up(count, 128),),
        (128,),
        {
            "words": letters,
            "start": start,
            "pairs": pairs.reshape(-1),
            "distance": Zeros("int32", count),
            "count": np.int32(count),
        },
        reference,
    )


@GROUP.case(cpu={"pairs": 5, "m": 70, "n": 91}, gpu={"pairs": 1000, "m": 300, "n": 411})
def lcs_group(rng: Rng, pairs: int, m: int, n: int) -> Launch:
    def reference(a: Arrays) -> Arrays:
        s, t = a["s"].reshape(pairs, m), a["t"].reshape(pairs, n)
        table = np.zeros((pairs, m + 1, n + 1), np.int32)
        for i in range(1, m + 1):
            for j in range(1, n + 1):
                longer = np.maximum(table[:, i - 1, j], table[:, i, j - 1])
                table[:, i, j] = np.where(s[:, i - 1] == t[:, j - 1], table[:, i - 1, j - 1] + 1, longer)
        return {"lengths": table[:, m, n]}

    return Launch(
        (pairs * 64,),
        (64,),
        {
            "s": Random("uint8", pairs * m, 0, 4),
            "t": Random("uint8", pairs * n, 0, 4),
            "lengths": Zeros("int32", pairs),
            "m": np.int32(m),
            "n": np.int32(n),
            "diagonals": Local(3 * 2 * (m + 1)),
        },
        reference,
    )


@GROUP.case(cpu={"capacity": 20000}, gpu={"capacity": 16000000})
def knapsack_item(rng: Rng, capacity: int) -> Launch:
    before = np.cumsum(rng.integers(0, 100, capacity + 1, np.int32), dtype=np.int32)
    weight, value = 3701, 3701 * 50

    def reference(a: Arrays) -> Arrays:
        taking = np.full(capacity + 1, -1, np.int32)
        taking[weight:] = before[:-weight] + value
        return {"after": np.maximum(before, taking), "taken": (taking > before).astype(np.uint8)}

    return Launch(
        (up(capacity + 1, 256),),
        (256,),
        {
            "before": before,
            "after": Zeros("int32", capacity + 1),
            "taken": Zeros("uint8", capacity + 1),
            "capacity": np.int32(capacity),
            "weight": np.int32(weight),
            "value": np.int32(value),
        },
        reference,
    )


@GROUP.case(cpu={"n": 211, "k": 40}, gpu={"n": 4000, "k": 1234})
def floyd_warshall_step(rng: Rng, n: int, k: int) -> Launch:
    dist = rng.integers(1, 1000, (n, n), np.int32)
    dist[np.arange(n), np.arange(n)] = 0

    def reference(a: Arrays) -> Arrays:
        through = dist[:, k : k + 1] + dist[k : k + 1]
        return {"dist": np.minimum(dist, through), "next": np.where(through < dist, k, 0).astype(np.int32)}

    return Launch(
        (up(n, 32), up(n, 8)),
        (32, 8),
        {"dist": dist.reshape(-1), "next": Zeros("int32", n * n), "n": np.int32(n), "k": np.int32(k)},
        reference,
    )


@GROUP.case(cpu={"cols": 3001, "rows": 20}, gpu={"cols": 1000003, "rows": 60})
def grid_path(rng: Rng, cols: int, rows: int) -> Launch:
    def reference(a: Arrays) -> Arrays:
        way = a["from"]
        for line in a["cost"].reshape(rows + 1, cols)[1:]:
            sides = np.pad(way, 1, constant_values=np.iinfo(np.int32).max)
            way = np.min([sides[:-2], sides[1:-1], sides[2:]], 0) + line
        return {"to": way}

    return Launch(
        (-(-cols // (256 - 2 * rows)) * 256,),
        (256,),
        {
            "cost": Random("int32", (rows + 1) * cols, 0, 10),
            "from": Random("int32", cols, 0, 10),
            "to": Zeros("int32", cols),
            "cols": np.int32(cols),
            "first_row": np.int32(1),
            "rows": np.int32(rows),
        },
        reference,
    )


@GROUP.case(cpu={"states": 203}, gpu={"states": 5001})
def viterbi_step(rng: Rng, states: int) -> Launch:
    symbols, observed = 7, 3

    def reference(a: Arrays) -> Arrays:
        ways = a["score"][:, None] + a["log_trans"].reshape(states, states)
        emitted = a["log_emit"].reshape(states, symbols)[:, observed]
        return {"new_score": ways.max(0) + emitted, "back": ways.argmax(0).astype(np.int32)}

    return Launch(
        (up(states, 32),),
        (32,),
        {
            "score": Random("float32", states, -50, -10),
            "new_score": Zeros("float32", states),
            "back": Zeros("int32", states),
            "log_trans": Random("float32", states * states, -9, -1),
            "log_emit": Random("float32", states * symbols, -4, -1),
            "states": np.int32(states),
            "symbols": np.int32(symbols),
            "observed": np.int32(observed),
        },
        reference,
    )


@GROUP.case(cpu={"n": 150, "length": 70}, gpu={"n": 4000, "length": 1500})
def matrix_chain(rng: Rng, n: int, length: int) -> Launch:
    dims = rng.integers(1, 100, n + 1, np.int32)

    def reference(a: Arrays) -> Arrays:
        cost = a["cost"].reshape(n, n)
        new, split = cost.copy(), np.zeros((n, n), np.int16)
        for i in range(n - length):
            j = i + length
            k = np.arange(i, j)
            ways = cost[i, i:j] + cost[i + 1 : j + 1, j] + dims[i].astype(np.int64) * dims[k + 1] * dims[j + 1]
            new[i, j], split[i, j] = ways.min(), i + ways.argmin()
        return {"cost": new, "split": split}

    return Launch(
        (up(n - length, 32),),
        (32,),
        {
            "dims": dims,
            "cost": Random("int64", n * n, 0, 1000000),
            "split": Zeros("int16", n * n),
            "n": np.int32(n),
            "length": np.int32(length),
        },
        reference,
    )


@GROUP.case(cpu={"count": 500, "len": 50, "band": 7}, gpu={"count": 300007, "len": 64, "band": 9})
def dtw_band(rng: Rng, count: int, len: int, band: int) -> Launch:  # noqa: A002 the kernel's own name
    def reference(a: Arrays) -> Arrays:
        series = a["series"].reshape(len, count).astype(np.float64)
        table = np.full((len + 1, len + 1, count), np.inf)
        table[0, 0] = 0
        for i in range(len):
            for j in range(max(0, i - band), min(len, i + band + 1)):
                best = np.min([table[i, j], table[i, j + 1], table[i + 1, j]], 0)
                table[i + 1, j + 1] = (a["query"][i] - series[j]) ** 2 + best
        return {"out": table[len, len]}

    return Launch(
        (up(count, 64),),
        (64,),
        {
            "series": Random("float32", len * count),
            "query": Random("float32", len),
            "out": Zeros("float32", count),
            "count": np.int32(count),
            "len": np.int32(len),
            "band": np.int32(band),
        },
        reference,
    )
