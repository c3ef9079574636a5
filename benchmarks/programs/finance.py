"""Holds prices of options, and Monte Carlo methods with their random numbers."""

from __future__ import annotations

import numpy as np

from benchmarks.programs.program import Array, Arrays, Group, Launch, Random, Rng, Zeros, up

GROUP = Group("finance", "finance.cl")
OPTION = np.dtype(
    [*((name, "f4") for name in ("spot", "strike", "years", "rate", "vol")), ("is_put", "i1"), ("american", "i1")],
    align=True,
)
ASIAN = np.dtype([*((name, "f8") for name in ("s0", "strike", "rate", "vol", "dt")), ("steps", "i4")], align=True)
BOND = np.dtype([("coupon", "f4"), ("first", "u2"), ("count", "u2")], align=True)


def cumulative(d: Array) -> Array:
    """Returns the normal distribution by the polynomial that the kernel has."""
    k = 1 / (1 + 0.2316419 * np.abs(d))
    series = np.polyval([1.330274429, -1.821255978, 1.781477937, -0.356563782, 0.31938153, 0], k)
    tail = 0.39894228 * np.exp(-0.5 * d * d) * series
    return np.where(d > 0, 1 - tail, tail)


@GROUP.case(cpu={"n": 10007, "items": 1024}, gpu={"n": 20000003, "items": 540672})
def black_scholes(rng: Rng, n: int, items: int) -> Launch:
    def reference(a: Arrays) -> Arrays:
        s, x, t = (a[name].astype(np.float64) for name in ("price", "strike", "years"))
        d1 = (np.log(s / x) + (0.02 + 0.045) * t) / (0.3 * np.sqrt(t))
        c1, c2 = cumulative(d1), cumulative(d1 - 0.3 * np.sqrt(t))
        x = x * np.exp(-0.02 * t)
        return {"call": s * c1 - x * c2, "put": x * (1 - c2) - s * (1 - c1)}

    return Launch(
        (items,),
        (128,),
        {
            "price": Random("float32", n, 5, 30),
            "strike": Random("float32", n, 1, 100),
            "years": Random("float32", n, 0.25, 10),
            "call": Zeros("float32", n),
            "put": Zeros("float32", n),
            "rate": np.float32(0.02),
            "vol": np.float32(0.3),
            "n": np.int32(n),
        },
        reference,
        tolerance=1e-3,
    )


@GROUP.case(cpu={"count": 13, "steps": 100}, gpu={"count": 6000, "steps": 250})
def binomial_tree(rng: Rng, count: int, steps: int) -> Launch:
    options = np.zeros(count, OPTION)
    for name, low, high in (("spot", 20, 40), ("strike", 20, 40), ("years", 0.5, 2), ("rate", 0.01, 0.05)):
        options[name] = rng.uniform(low, high, count)
    options["vol"] = rng.uniform(0.2, 0.5, count)
    options["is_put"], options["american"] = rng.integers(0, 2, (2, count))

    def reference(a: Arrays) -> Arrays:
        o = {name: options[name].astype(np.float64)[:, None] for name in options.dtype.names or ()}
        dt = o["years"] / steps
        u = np.exp(o["vol"] * np.sqrt(dt))
        p = (np.exp(o["rate"] * dt) - 1 / u) / (u - 1 / u)

        def gain(level: int) -> Array:
            s = o["spot"] * u ** (2 * np.arange(level + 1) - level)
            return np.asarray(np.where(o["is_put"], o["strike"] - s, s - o["strike"]))

        value = np.maximum(gain(steps), 0)
        for level in range(steps - 1, -1, -1):
            value = np.exp(-o["rate"] * dt) * (p * value[:, 1:] + (1 - p) * value[:, :-1])
            value = np.where(o["american"], np.maximum(value, gain(level)), value)
        return {"value": value[:, 0]}

    return Launch(
        (64 * count,),
        (64,),
        {"options": options, "value": Zeros("float32", count), "steps": np.int32(steps)},
        reference,
        tolerance=1e-3,
    )


def xorshift(state: Array) -> Array:
    state = state ^ (state << np.uint32(13))
    state = state ^ (state >> np.uint32(17))
    return np.asarray(state ^ (state << np.uint32(5)))


@GROUP.case(cpu={"n": 1003, "rounds": 100}, gpu={"n": 500009, "rounds": 500})
def pi_xorshift(rng: Rng, n: int, rounds: int) -> Launch:
    def reference(a: Arrays) -> Arrays:
        state, hits = a["seeds"], np.zeros(n, np.uint32)
        for _ in range(rounds):
            x = xorshift(state)
            state = xorshift(x)
            u, v = (((s >> np.uint32(8)) * np.float32(2**-24)).astype(np.float64) for s in (x, state))
            hits += u * u + v * v <= 1
        return {"hits": hits}

    return Launch(
        (up(n, 128),),
        (128,),
        {
            "seeds": Random("uint32", n, 1, 2**32),
            "hits": Zeros("uint32", n),
            "rounds": np.int32(rounds),
            "n": np.int32(n),
        },
        reference,
        outliers=1e-3,
    )


@GROUP.case(cpu={"n": 10007}, gpu={"n": 20000003})
def lcg_sequence(rng: Rng, n: int) -> Launch:
    seed, multiplier, increment = 12345, 6364136223846793005, 1442695040888963407

    def reference(a: Arrays) -> Arrays:
        state, out = seed, np.zeros(n, np.uint64)
        for i in range(n):
            state = (state * multiplier + increment) % 2**64
            out[i] = state
        return {"out": out}

    return Launch(
        (up(n, 256),),
        (256,),
        {
            "out": Zeros("uint64", n),
            "seed": np.uint64(seed),
            "multiplier": np.uint64(multiplier),
            "increment": np.uint64(increment),
            "n": np.uint32(n),
        },
        reference,
    )


@GROUP.case(cpu={"n": 5003}, gpu={"n": 30000001})
def philox_fill(rng: Rng, n: int) -> Launch:
    def reference(a: Arrays) -> Arrays:
        mask, half = np.uint64(2**32 - 1), np.uint64(32)
        c = [np.arange(n, dtype=np.uint64), *np.broadcast_to(np.array([[0], [0], [7]], np.uint64), (3, n))]
        k0, k1 = 1234, 99
        for _ in range(10):
            one, other = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
            c = [other >> half ^ c[1] ^ np.uint64(k0), other & mask, one >> half ^ c[3] ^ np.uint64(k1), one & mask]
            k0, k1 = (k0 + 0x9E3779B9) % 2**32, (k1 + 0xBB67AE85) % 2**32
        return {"out": np.stack(c, 1).astype(np.uint32)}

    return Launch(
        (up(n, 128),),
        (128,),
        {"out": Zeros("uint32", 4 * n), "key0": np.uint32(1234), "key1": np.uint32(99), "n": np.uint32(n)},
        reference,
    )


@GROUP.case(cpu={"n": 5003}, gpu={"n": 20000003})
def box_muller(rng: Rng, n: int) -> Launch:
    def reference(a: Arrays) -> Arrays:
        bits = a["bits"].reshape(n, 2).astype(np.int64)
        radius = np.sqrt(-2 * np.log(((bits[:, 0] >> 9) + 0.5) * 2.0**-23))
        angle = 2 * np.pi * (bits[:, 1] >> 8) * 2.0**-24
        return {"normals": np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1)}

    return Launch(
        (up(n, 256),),
        (256,),
        {"bits": Random("uint32", 2 * n, 0, 2**32), "normals": Zeros("float32", 2 * n), "n": np.int32(n)},
        reference,
    )


@GROUP.case(cpu={"paths": 1001, "steps": 30}, gpu={"paths": 500009, "steps": 100})
def asian_paths(rng: Rng, paths: int, steps: int) -> Launch:
    def reference(a: Arrays) -> Arrays:
        normals = a["normals"].reshape(steps, paths).astype(np.float64)
        s = 100 * np.exp(np.cumsum((0.03 - 0.02) * 0.02 + 0.2 * 0.02**0.5 * normals, 0))
        return {"payoff": np.maximum(s.mean(0) - 98, 0) * np.exp(-0.03 * 0.02 * steps)}

    return Launch(
        (up(paths, 64),),
        (64,),
        {
            "normals": Random("float32", paths * steps, -2, 2),
            "payoff": Zeros("float64", paths),
            "deal": np.array((100, 98, 0.03, 0.2, 0.02, steps), ASIAN)[()],
            "paths": np.int32(paths),
        },
        reference,
        tolerance=1e-9,
    )


@GROUP.case(cpu={"n": 2003, "steps": 100}, gpu={"n": 1000003, "steps": 365})
def barrier_option(rng: Rng, n: int, steps: int) -> Launch:
    def reference(a: Arrays) -> Arrays:
        state, s, alive = a["seeds"], np.full(n, 100, np.float32), np.full(n, steps, np.int32)
        running = np.ones(n, bool)
        for t in range(steps):
            state = xorshift(state)
            factor = np.where(state & np.uint32(0x10000), np.float32(1.02), np.float32(0.981))
            s = np.where(running, s * factor, s)
            out = running & (s >= np.float32(120))
            alive[out], running = t, running & ~out
        return {"payoff": np.where(running & (s > 90), s - np.float32(90), 0), "alive": alive}

    return Launch(
        (up(n, 128),),
        (128,),
        {
            "seeds": Random("uint32", n, 1, 2**32),
            "payoff": Zeros("float32", n),
            "alive": Zeros("int32", n),
            "s0": np.float32(100),
            "strike": np.float32(90),
            "knock": np.float32(120),
            "up": np.float32(1.02),
            "down": np.float32(0.981),
            "steps": np.int32(steps),
            "n": np.int32(n),
        },
        reference,
        outliers=1e-3,
    )


@GROUP.case(cpu={"n": 2003}, gpu={"n": 4000037})
def bond_values(rng: Rng, n: int) -> Launch:
    bonds = np.zeros(n, BOND)
    bonds["coupon"] = 1 + 4 * rng.random(n)
    bonds["first"], bonds["count"] = rng.integers(0, 20, n), rng.integers(1, 61, n)
    discount = (0.99 ** np.arange(1, 81)).astype(np.float32)

    def reference(a: Arrays) -> Arrays:
        k = np.arange(80)
        first, count = bonds["first"][:, None].astype(int), bonds["count"][:, None].astype(int)
        paid = (k >= first) & (k < first + count)
        cash = paid * (bonds["coupon"][:, None].astype(np.float64) + 100 * (k == first + count - 1)) * discount
        return {"value": np.stack([cash.sum(1), (cash * (k + 1)).sum(1) / cash.sum(1)], 1)}

    return Launch(
        (up(n, 256),),
        (256,),
        {"bonds": bonds, "discount": discount, "value": Zeros("float32", 2 * n), "n": np.int32(n)},
        reference,
    )
