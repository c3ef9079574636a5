"""Holds hidden Markov models."""

from __future__ import annotations

import numpy as np

from benchmarks.programs.program import Array, Arrays, Group, Launch, Local, Random, Rng, Zeros, up

GROUP = Group("markov", "markov.cl")


def stochastic(rng: Rng, *shape: int) -> Array:
    """Returns positive numbers that sum to one along the last axis."""
    values = rng.random(shape, np.float32) + np.float32(0.05)
    return np.asarray(values / values.sum(-1, keepdims=True), np.float32)


@GROUP.case(cpu={"batch": 40, "states": 37}, gpu={"batch": 20000, "states": 60})
def hmm_forward(rng: Rng, batch: int, states: int) -> Launch:
    symbols = 12
    before, trans, emit = (stochastic(rng, *shape) for shape in ((batch, states), (states, states), (states, symbols)))

    def reference(a: Arrays) -> Arrays:
        after = before.astype(np.float64) @ trans * emit[:, a["observed"]].T
        return {"after": after / after.sum(1, keepdims=True), "scale": after.sum(1)}

    return Launch(
        (64 * batch,),
        (64,),
        {
            "before": before.reshape(-1),
            "after": Zeros("float32", batch * states),
            "trans": trans.reshape(-1),
            "emit": emit.reshape(-1),
            "observed": Random("uint8", batch, 0, symbols),
            "scale": Zeros("float32", batch),
            "states": np.int32(states),
            "symbols": np.int32(symbols),
        },
        reference,
    )


@GROUP.case(cpu={"length": 30, "count": 501}, gpu={"length": 60, "count": 300007})
def hmm_backward(rng: Rng, length: int, count: int) -> Launch:
    alphabet = 6
    trans, emit = stochastic(rng, 4, 4), stochastic(rng, 4, alphabet)

    def reference(a: Arrays) -> Arrays:
        symbols = a["symbols"].reshape(length, count)
        beta = np.ones((length, 4, count))
        for t in range(length - 1, 0, -1):
            following = trans.astype(np.float64) @ (emit[:, symbols[t]] * beta[t])
            beta[t - 1] = following / following.sum(0)
        return {"beta": beta}

    return Launch(
        (up(count, 128),),
        (128,),
        {
            "trans": trans.reshape(-1),
            "emit": emit.reshape(-1),
            "symbols": Random("uint8", length * count, 0, alphabet),
            "beta": Zeros("float32", 4 * length * count),
            "length": np.int32(length),
            "count": np.int32(count),
            "alphabet": np.int32(alphabet),
        },
        reference,
    )


@GROUP.case(cpu={"states": 45, "batch": 70}, gpu={"states": 1001, "batch": 1000})
def hmm_transitions(rng: Rng, states: int, batch: int) -> Launch:
    def reference(a: Arrays) -> Arrays:
        alpha, beta, likelihood = (a[name].reshape(batch, states) for name in ("alpha", "beta", "likelihood"))
        return {"xi": a["xi"].reshape(states, states) + alpha.T @ (likelihood * beta) * a["trans"].reshape(states, -1)}

    n = batch * states
    return Launch(
        (up(states, 16), up(states, 16)),
        (16, 16),
        {
            "alpha": Random("float32", n),
            "beta": Random("float32", n),
            "trans": Random("float32", states * states),
            "likelihood": Random("float32", n),
            "xi": Random("float32", states * states),
            "states": np.int32(states),
            "batch": np.int32(batch),
        },
        reference,
    )


@GROUP.case(cpu={"length": 50, "states": 7, "count": 301}, gpu={"length": 64, "states": 9, "count": 300007})
def viterbi_backtrack(rng: Rng, length: int, states: int, count: int) -> Launch:
    def reference(a: Arrays) -> Arrays:
        back = a["back"].reshape(length, states, count)
        state, path = a["last"], np.zeros((length, count), np.uint8)
        for t in range(length - 1, -1, -1):
            path[t] = state
            state = back[t, state, np.arange(count)]
        return {"path": path}

    return Launch(
        (up(count, 64),),
        (64,),
        {
            "back": Random("uint8", length * states * count, 0, states),
            "last": Random("uint8", count, 0, states),
            "path": Zeros("uint8", length * count),
            "length": np.int32(length),
            "states": np.int32(states),
            "count": np.int32(count),
        },
        reference,
    )


@GROUP.case(cpu={"states": 203}, gpu={"states": 4001})
def hmm_forward_log(rng: Rng, states: int) -> Launch:
    def reference(a: Arrays) -> Arrays:
        ways = a["before"][:, None] + a["log_trans"].reshape(states, states)
        return {"after": np.logaddexp.reduce(ways, 0) + a["log_emit"]}

    return Launch(
        (up(states, 32),),
        (32,),
        {
            "before": Random("float64", states, -60, -20),
            "after": Zeros("float64", states),
            "log_trans": Random("float64", states * states, -9, -1),
            "log_emit": Random("float64", states, -5, -1),
            "states": np.int32(states),
        },
        reference,
        tolerance=1e-10,
    )


@GROUP.case(cpu={"n": 20011, "items": 1024}, gpu={"n": 100000007, "items": 270336})
def emission_counts(rng: Rng, n: int, items: int) -> Launch:
    states, alphabet = 9, 26

    def reference(a: Arrays) -> Arrays:
        cells = a["path"].astype(np.int64) * alphabet + a["symbols"]
        return {"counts": np.bincount(cells, minlength=states * alphabet).astype(np.uint32)}

    return Launch(
        (items,),
        (128,),
        {
            "path": Random("uint8", n, 0, states),
            "symbols": Random("uint8", n, 0, alphabet),
            "counts": Zeros("uint32", states * alphabet),
            "states": np.int32(states),
            "alphabet": np.int32(alphabet),
            "n": np.int32(n),
            "table": Local(4 * states * alphabet),
        },
        reference,
    )
