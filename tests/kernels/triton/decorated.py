"""Kernels of Triton under its decorators: heuristics that ask for arguments and set options, and autotuners."""

# mypy: ignore-errors
# ruff: noqa: N803

from __future__ import annotations

import triton
import triton.language as tl


def _warps(known):
    return 8 if known["n"] > 2048 else 2


@triton.heuristics({"BLOCK": lambda known: triton.next_power_of_2(known["n"]), "num_warps": _warps})
@triton.jit
def doubled(x, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y + i, 2 * tl.load(x + i, mask=i < n), mask=i < n)


@triton.heuristics({"IS_WIDE": lambda known: known["x"].element_size() == 4})
@triton.jit
def asked(x, y, IS_WIDE: tl.constexpr, num_warps: tl.constexpr):
    i = tl.arange(0, 32 * num_warps)
    tl.store(y + i, tl.load(x + i) + (1 if IS_WIDE else 2))


@triton.autotune([triton.Config({"BLOCK": 512}, num_warps=2)], key=["n"])
@triton.jit
def tuned_once(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)


@triton.autotune([triton.Config({"BLOCK": size}, num_warps=4) for size in (256, 1024)], key=["n"])
@triton.jit
def tuned(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)


@triton.jit
def _wrong(x):
    return tl.dot(x, x, nothing=True)


@triton.jit
def calls_wrong(x):
    tl.store(x, _wrong(tl.load(x)))
