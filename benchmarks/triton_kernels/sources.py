"""Kernels of Triton beside those of `tests.kernels.triton.sources`: two more for the exam, and those that show what
tensor cores and asynchronous copies cost."""

# mypy: ignore-errors
# ruff: noqa: N803

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def conv1d(x, weight, out, length, R: tl.constexpr, BLOCK: tl.constexpr):
    """Convolves each row with 2 R + 1 weights."""
    row = tl.program_id(1) * length
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for shift in tl.static_range(0, 2 * R + 1):
        near = at + shift - R
        total += tl.load(weight + shift) * tl.load(x + row + near, mask=(near >= 0) & (near < length), other=0.0)
    tl.store(out + row + at, total, mask=at < length)


@triton.jit
def dequantized_matmul(a, b, scales, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Multiplies halves by whole numbers of 8 bits, which have a scale for each column."""
    at_m = tl.program_id(0) * BM + tl.arange(0, BM)
    at_n = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        at_k = k + tl.arange(0, BK)
        left = tl.load(a + at_m[:, None] * K + at_k[None, :])
        right = tl.load(b + at_k[:, None] * N + at_n[None, :]).to(tl.float16)
        total = tl.dot(left, right, total)
    total *= tl.load(scales + at_n)[None, :]
    tl.store(c + at_m[:, None] * N + at_n[None, :], total.to(tl.float16))


@triton.jit
def repeated_dot(a, b, c, turns, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, ACCUMULATOR: tl.constexpr):
    """Multiplies the same tiles again and again: nothing but tensor cores works."""
    at_m, at_n, at_k = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    left = tl.load(a + at_m[:, None] * BK + at_k[None, :])
    right = tl.load(b + at_n[None, :] * BK + at_k[:, None])
    total = tl.zeros((BM, BN), ACCUMULATOR)
    for _ in range(turns):
        total = tl.dot(left, right, total, out_dtype=ACCUMULATOR)
    tl.store(c + (tl.program_id(0) * BM + at_m[:, None]) * BN + at_n[None, :], total)


@triton.jit
def changing_dot(a, b, c, turns, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Multiplies tiles of which one changes from turn to turn, and so goes through shared memory."""
    at_m, at_n, at_k = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    left = tl.load(a + at_m[:, None] * BK + at_k[None, :])
    right = tl.load(b + at_n[None, :] * BK + at_k[:, None])
    total = tl.zeros((BM, BN), tl.float32)
    for _ in range(turns):
        total = tl.dot(left, right, total)
        left = left + 1
    tl.store(c + (tl.program_id(0) * BM + at_m[:, None]) * BN + at_n[None, :], total)


@triton.jit
def gram(x, c, rows, columns, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, STAGES: tl.constexpr):
    """Multiplies a matrix's transpose by the matrix, some tiles ahead."""
    at_m = tl.program_id(0) * BM + tl.arange(0, BM)
    at_n = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for k in tl.range(0, rows, BK, num_stages=STAGES):
        at_k = k + tl.arange(0, BK)
        left = tl.load(x + at_k[None, :] * columns + at_m[:, None])
        right = tl.load(x + at_k[:, None] * columns + at_n[None, :])
        total = tl.dot(left, right, total)
    tl.store(c + at_m[:, None] * columns + at_n[None, :], total)


@triton.jit
def staged_sum(x, out, columns, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    """Adds parts of a row, some parts ahead by asynchronous copies."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for first in tl.range(0, columns, BLOCK, num_stages=STAGES):
        total += tl.load(x + row * columns + first + at)
    tl.store(out + row * BLOCK + at, total)


@triton.jit
def chained_dot(a, b, c, turns, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    """Multiplies what a product gives, which stays in registers, by another tile."""
    at_m, at_n, at_d = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, D)
    left = tl.load(a + at_m[:, None] * D + at_d[None, :])
    right = tl.load(b + at_n[None, :] * D + at_d[:, None])
    other = tl.load(b + at_n[:, None] * D + at_d[None, :])
    total = tl.zeros((BM, D), tl.float32)
    for _ in range(turns):
        product = tl.dot(left, right)
        total = tl.dot(product.to(left.dtype), other, total)
    tl.store(c + (tl.program_id(0) * BM + at_m[:, None]) * D + at_d[None, :], total)


@triton.jit
def repeated_sum(x, out, turns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """Adds the elements of rows again and again, each time after the sums of before."""
    at = tl.program_id(0) * ROWS * BLOCK + tl.arange(0, ROWS)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    value = tl.load(x + at)
    for _ in range(turns):
        value = value * 0.5 + tl.sum(value, 1)[:, None]
    tl.store(out + at, value)


@triton.jit
def repeated_cumsum(x, out, turns, BLOCK: tl.constexpr):
    """Scans a block again and again."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at)
    for _ in range(turns):
        value = tl.cumsum(value * 0.5, 0)
    tl.store(out + at, value)
