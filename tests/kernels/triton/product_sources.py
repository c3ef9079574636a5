"""Kernels of Triton that multiply matrices; `tests.kernels.triton.sources` has them with all others."""

# mypy: ignore-errors
# ruff: noqa: N803

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def leaky(x):
    return tl.where(x >= 0, x, 0.01 * x)


@triton.jit
def matmul(
    a, b, c, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, PRECISION: tl.constexpr,
    ACTIVATION: tl.constexpr, ACCUMULATOR: tl.constexpr,
):  # fmt: skip
    number = tl.program_id(0)
    rows, columns = tl.cdiv(M, BM), tl.cdiv(N, BN)
    of_group = GROUP * columns
    first = number // of_group * GROUP
    size = min(rows - first, GROUP)
    row = first + (number % of_group) % size
    column = (number % of_group) // size
    at_m = (row * BM + tl.arange(0, BM)) % M
    at_n = (column * BN + tl.arange(0, BN)) % N
    at_k = tl.arange(0, BK)
    from_a = a + at_m[:, None] * stride_am + at_k[None, :] * stride_ak
    from_b = b + at_k[:, None] * stride_bk + at_n[None, :] * stride_bn
    total = tl.zeros((BM, BN), dtype=ACCUMULATOR)
    for k in range(tl.cdiv(K, BK)):
        left = tl.load(from_a, mask=at_k[None, :] < K - k * BK, other=0.0)
        right = tl.load(from_b, mask=at_k[:, None] < K - k * BK, other=0.0)
        total = tl.dot(left, right, total, input_precision=PRECISION, out_dtype=ACCUMULATOR)
        from_a += BK * stride_ak
        from_b += BK * stride_bk
    if ACTIVATION is not None:
        total = ACTIVATION(total)
    at_m = row * BM + tl.arange(0, BM)
    at_n = column * BN + tl.arange(0, BN)
    to = c + at_m[:, None] * stride_cm + at_n[None, :] * stride_cn
    tl.store(to, total.to(c.dtype.element_ty), mask=(at_m[:, None] < M) & (at_n[None, :] < N))


@triton.jit
def split_matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPLIT: tl.constexpr):
    at_m = tl.program_id(0) * BM + tl.arange(0, BM)
    at_n = tl.program_id(1) * BN + tl.arange(0, BN)
    part = tl.program_id(2)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(part * BK, K, BK * SPLIT):
        at_k = k + tl.arange(0, BK)
        left = tl.load(a + at_m[:, None] * K + at_k[None, :])
        right = tl.load(b + at_k[:, None] * N + at_n[None, :])
        total += tl.dot(left, right)
    tl.atomic_add(c + at_m[:, None] * N + at_n[None, :], total)


@triton.jit
def batched_matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    batch = tl.program_id(2)
    at_m = tl.program_id(0) * BM + tl.arange(0, BM)
    at_n = tl.program_id(1) * BN + tl.arange(0, BN)
    at_k = tl.arange(0, BK)
    a += batch * M * K
    b += batch * K * N
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        left = tl.load(a + at_m[:, None] * K + (k + at_k)[None, :], mask=at_m[:, None] < M, other=0.0)
        right = tl.load(b + (k + at_k)[:, None] * N + at_n[None, :], mask=at_n[None, :] < N, other=0.0)
        total += tl.dot(left, right)
    mask = (at_m[:, None] < M) & (at_n[None, :] < N)
    tl.store(c + batch * M * N + at_m[:, None] * N + at_n[None, :], total.to(tl.float16), mask=mask)


@triton.jit
def described_matmul(
    a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PROGRAMS: tl.constexpr
):  # fmt: skip
    of_a = tl.make_tensor_descriptor(a, shape=[M, K], strides=[K, 1], block_shape=[BM, BK])
    of_b = tl.make_tensor_descriptor(b, shape=[N, K], strides=[K, 1], block_shape=[BN, BK])
    of_c = tl.make_tensor_descriptor(c, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    across = tl.cdiv(N, BN)
    for tile in range(tl.program_id(0), tl.cdiv(M, BM) * across, PROGRAMS):
        row, column = tile // across * BM, tile % across * BN
        total = tl.zeros((BM, BN), tl.float32)
        for k in range(0, K, BK):
            total = tl.dot(of_a.load([row, k]), of_b.load([column, k]).T, total)
        of_c.store([row, column], total.to(tl.float16))
