"""Kernels of Triton, as people write them; `tests.kernels.triton.cases` says what each is called with and computes."""

# mypy: ignore-errors
# ruff: noqa: N803

from __future__ import annotations

import triton
import triton.language as tl
from triton.language.extra import libdevice

from tests.kernels.triton.product_sources import (  # noqa: F401, which are found here by their names
    batched_matmul,
    described_matmul,
    leaky,
    matmul,
    split_matmul,
)


@triton.jit
def vector_add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out + i, tl.load(x + i, mask=mask) + tl.load(y + i, mask=mask), mask=mask)


@triton.jit
def axpy(x, y, n, a, BLOCK: tl.constexpr):
    start = tl.program_id(0) * BLOCK
    step = tl.num_programs(0) * BLOCK
    for first in range(start, n, step):
        i = first + tl.arange(0, BLOCK)
        mask = i < n
        tl.store(y + i, a * tl.load(x + i, mask=mask) + tl.load(y + i, mask=mask), mask=mask)


@triton.jit
def softmax(x, out, stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < columns
    value = tl.load(x + row * stride + at, mask=mask, other=-float("inf"))
    e = tl.exp(value - tl.max(value, axis=0))
    tl.store(out + row * stride + at, e / tl.sum(e, axis=0), mask=mask)


@triton.jit
def long_softmax(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    most = tl.full((), -float("inf"), tl.float32)
    total = tl.full((), 0.0, tl.float32)
    for first in range(0, columns, BLOCK):
        at = first + tl.arange(0, BLOCK)
        value = tl.load(x + row * columns + at, mask=at < columns, other=-float("inf"))
        new = tl.maximum(most, tl.max(value, axis=0))
        total = total * tl.exp(most - new) + tl.sum(tl.exp(value - new), axis=0)
        most = new
    for first in range(0, columns, BLOCK):
        at = first + tl.arange(0, BLOCK)
        value = tl.load(x + row * columns + at, mask=at < columns)
        tl.store(out + row * columns + at, tl.exp(value - most) / total, mask=at < columns)


@triton.jit
def layer_norm(x, weight, bias, out, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < columns
    value = tl.load(x + row * columns + at, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(value, axis=0) / columns
    away = tl.where(mask, value - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(away * away, axis=0) / columns + eps)
    found = away * scale * tl.load(weight + at, mask=mask) + tl.load(bias + at, mask=mask)
    tl.store(out + row * columns + at, found, mask=mask)


@triton.jit
def layer_norm_backward(x, gradient, weight, out, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < columns
    value = tl.load(x + row * columns + at, mask=mask, other=0.0)
    mean = tl.sum(value, axis=0) / columns
    away = tl.where(mask, value - mean, 0.0)
    scale = tl.rsqrt(tl.sum(away * away, axis=0) / columns + eps)
    y = away * scale
    g = tl.load(gradient + row * columns + at, mask=mask, other=0.0) * tl.load(weight + at, mask=mask, other=0.0)
    g -= y * (tl.sum(y * g, axis=0) / columns) + tl.sum(g, axis=0) / columns
    tl.store(out + row * columns + at, g * scale, mask=mask)


@triton.jit
def rms_norm(x, weight, out, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < columns
    value = tl.load(x + row * columns + at, mask=mask, other=0.0).to(tl.float32)
    scale = tl.math.rsqrt(tl.sum(value * value, axis=0) / columns + eps)
    found = value * scale * tl.load(weight + at, mask=mask, other=0.0).to(tl.float32)
    tl.store(out + row * columns + at, found.to(out.dtype.element_ty), mask=mask)


@triton.jit
def tiles(of_x, of_out, B: tl.constexpr):
    at = [tl.program_id(0) * B, tl.program_id(1) * B]
    of_out.store(at, of_x.load(at) * 2)


@triton.jit
def described_add(x, out, rows, columns, B: tl.constexpr):
    of_x = tl.make_tensor_descriptor(x, [rows, columns], [columns, 1], [8, B])
    of_out = tl.make_tensor_descriptor(out, [8, columns], [columns, 1], [8, B])
    of_out.atomic_add([0, tl.program_id(1) * B], of_x.load([tl.program_id(0) * 8, tl.program_id(1) * B]))


@triton.jit
def locked_sum(x, out, lock, B: tl.constexpr):
    found = tl.sum(tl.load(x + tl.program_id(0) * B + tl.arange(0, B)))
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(out, tl.load(out) + found)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@triton.jit
def functions(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    found = libdevice.sin(v) + libdevice.cos(v) + libdevice.tan(v) + libdevice.pow(v * v + 1, 0.3)
    found += libdevice.log1p(v * v) + libdevice.exp(-v * v) + libdevice.atan2(v, v * v + 1) + libdevice.sinh(v)
    found += libdevice.cbrt(v) + tl.floor(v) + tl.ceil(v) + tl.fma(v, v, v) + tl.div_rn(v, v * v + 10)
    tl.store(out + i, found, mask=i < n)


@triton.jit
def described_sum(x, out, depth, rows, columns, B: tl.constexpr):
    of_x = tl.make_tensor_descriptor(x, [depth, rows, columns], [rows * columns, columns, 1], [2, 8, B])
    tile = of_x.load([0, tl.program_id(0) * 8, tl.program_id(1) * B])
    of_out = tl.make_tensor_descriptor(out, [rows, columns], [columns, 1], [8, B])
    of_out.store([tl.program_id(0) * 8, tl.program_id(1) * B], tl.sum(tile, 0))


@triton.jit
def grouped_gemm(a, b, c, rows, starts, N, K, GROUPS: tl.constexpr, PROGRAMS: tl.constexpr, B: tl.constexpr):
    tile = tl.program_id(0)
    before = 0
    for group in range(GROUPS):
        m = tl.load(rows + group)
        start = tl.load(starts + group)
        across = tl.cdiv(N, B)
        tiles = tl.cdiv(m, B) * across
        while tile >= before and tile < before + tiles:
            own = tile - before
            at_m = own // across * B + tl.arange(0, B)
            at_n = own % across * B + tl.arange(0, B)
            total = tl.zeros((B, B), dtype=tl.float32)
            for k in range(0, K, B):
                at_k = k + tl.arange(0, B)
                left = tl.load(a + (start + at_m[:, None]) * K + at_k[None, :], mask=at_m[:, None] < m, other=0.0)
                right = tl.load(b + (group * K + at_k[:, None]) * N + at_n[None, :])
                total += tl.dot(left, right)
            to = c + (start + at_m[:, None]) * N + at_n[None, :]
            tl.store(to, total.to(tl.float16), mask=at_m[:, None] < m)
            tile += PROGRAMS
        before += tiles


@triton.jit
def attention(q, k, v, out, length, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr):
    head = tl.program_id(1) * length * D
    at_m = tl.program_id(0) * BM + tl.arange(0, BM)
    at_d = tl.arange(0, D)
    own = tl.load(q + head + at_m[:, None] * D + at_d[None, :])
    most = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    found = tl.zeros((BM, D), tl.float32)
    end = (tl.program_id(0) + 1) * BM if CAUSAL else length
    for first in range(0, end, BN):
        at_n = first + tl.arange(0, BN)
        keys = tl.load(k + head + at_n[None, :] * D + at_d[:, None])
        score = tl.dot(own, keys) * (scale * 1.44269504)
        if CAUSAL:
            score = tl.where(at_m[:, None] >= at_n[None, :], score, -1e30)
        new = tl.maximum(most, tl.max(score, 1))
        p = tl.math.exp2(score - new[:, None])
        shrunk = tl.math.exp2(most - new)
        total = total * shrunk + tl.sum(p, 1)
        values = tl.load(v + head + at_n[:, None] * D + at_d[None, :])
        found = tl.dot(p.to(values.dtype), values, found * shrunk[:, None])
        most = new
    found = found / total[:, None]
    tl.store(out + head + at_m[:, None] * D + at_d[None, :], found.to(out.dtype.element_ty))


@triton.jit
def dropout(x, out, n, p, seed, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    kept = tl.rand(seed, i) > p
    tl.store(out + i, tl.where(kept, tl.load(x + i, mask=i < n) / (1 - p), 0.0), mask=i < n)


@triton.jit
def total(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out, tl.sum(tl.load(x + i, mask=i < n, other=0.0), axis=0))


@triton.jit
def argmax(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    value = tl.load(x + row * columns + at, mask=at < columns, other=-float("inf"))
    tl.store(out + row, tl.argmax(value, axis=0))


@triton.jit
def cumsum(x, out, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = row * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.cumsum(tl.load(x + i, mask=i < n), axis=0), mask=i < n)


@triton.jit
def step(a0, b0, a1, b1):
    return a1 * a0, a1 * b0 + b1


@triton.jit
def recurrence(a, b, out, LENGTH: tl.constexpr):
    at = tl.program_id(0) * LENGTH + tl.arange(0, LENGTH)
    _, found = tl.associative_scan((tl.load(a + at), tl.load(b + at)), 0, step)
    tl.store(out + at, found)


@triton.jit
def gather(x, index, out, n, width, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n * width
    at = tl.load(index + i // width, mask=mask)
    tl.store(out + i, tl.load(x + at * width + i % width, mask=mask), mask=mask)


@triton.jit
def scatter_add(x, index, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at = tl.load(index + i, mask=i < n)
    tl.atomic_add(out + at, tl.load(x + i, mask=i < n), mask=i < n)


@triton.jit
def transpose(x, out, rows, columns, B: tl.constexpr):
    at_m = tl.program_id(0) * B + tl.arange(0, B)
    at_n = tl.program_id(1) * B + tl.arange(0, B)
    mask = (at_m[:, None] < rows) & (at_n[None, :] < columns)
    tile = tl.load(x + at_m[:, None] * columns + at_n[None, :], mask=mask)
    tl.store(out + at_n[:, None] * rows + at_m[None, :], tl.trans(tile), mask=tl.trans(mask))


@triton.jit
def histogram(x, out, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    counts = tl.histogram(tl.load(x + i, mask=i < n, other=0), BINS, mask=i < n)
    tl.atomic_add(out + tl.arange(0, BINS), counts)


@triton.jit
def stencil(x, out, rows, columns, BM: tl.constexpr, BN: tl.constexpr):
    i = tl.program_id(0) * BM + tl.arange(0, BM)[:, None]
    j = tl.program_id(1) * BN + tl.arange(0, BN)[None, :]
    inside = (i > 0) & (i < rows - 1) & (j > 0) & (j < columns - 1)
    at = x + i * columns + j
    near = tl.load(at - 1, mask=inside) + tl.load(at + 1, mask=inside)
    near += tl.load(at - columns, mask=inside) + tl.load(at + columns, mask=inside)
    tl.store(out + i * columns + j, 0.25 * near, mask=inside)


@triton.jit
def pick(mask, x, out, n, twice, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    chosen = tl.load(mask + i, mask=i < n, other=0)
    value = tl.load(x + i, mask=i < n)
    if twice:
        value = 2 * value
    tl.store(out + i, tl.where(chosen, value, 0), mask=i < n)


@triton.jit
def gelu(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i, mask=i < n)
    tl.store(out + i, 0.5 * value * (1 + tl.erf(value * 0.70710678)), mask=i < n)


@triton.jit
def tanh_gelu(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i, mask=i < n).to(tl.float32)
    inner = 0.7978845608 * (value + 0.044715 * value * value * value)
    tl.store(out + i, (0.5 * value * (1 + libdevice.tanh(inner))).to(out.dtype.element_ty), mask=i < n)


@triton.jit
def swiglu(gate, up, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0) * columns
    at = tl.arange(0, BLOCK)
    g = tl.load(gate + row + at, mask=at < columns).to(tl.float32)
    u = tl.load(up + row + at, mask=at < columns)
    tl.store(out + row + at, (g * tl.sigmoid(g)).to(u.dtype) * u, mask=at < columns)


@triton.jit
def cross_entropy(logits, labels, loss, columns, ignored, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    label = tl.load(labels + row)
    value = tl.load(logits + row * columns + at, mask=at < columns, other=-float("inf"))
    most = tl.max(value, 0)
    whole = most + tl.log(tl.sum(tl.exp(value - most), 0))
    if label != ignored:
        tl.store(loss + row, whole - tl.load(logits + row * columns + label))
    else:
        tl.store(loss + row, 0.0)


@triton.jit
def rotary(x, cos, sin, heads, D: tl.constexpr):
    row = tl.program_id(0)
    half: tl.constexpr = D // 2
    at = tl.arange(0, half)
    c, s = tl.load(cos + row * half + at), tl.load(sin + row * half + at)
    for head in range(heads):
        first = x + (row * heads + head) * D + at
        one, other = tl.load(first), tl.load(first + half)
        tl.store(first, one * c - other * s)
        tl.store(first + half, other * c + one * s)


@triton.jit
def embedding(table, tokens, out, width, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    token = tl.load(tokens + row).to(tl.int64)
    for first in tl.static_range(0, 2):
        at = first * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + row * width + at, tl.load(table + token * width + at, mask=at < width), mask=at < width)


@triton.jit
def sort_rows(x, out, LENGTH: tl.constexpr):
    at = tl.program_id(0) * LENGTH + tl.arange(0, LENGTH)
    tl.store(out + at, tl.sort(tl.load(x + at), descending=True))


@triton.jit
def top_k(x, out, LENGTH: tl.constexpr, COUNT: tl.constexpr):
    row = tl.program_id(0)
    value = tl.load(x + row * LENGTH + tl.arange(0, LENGTH))
    tl.store(out + row * COUNT + tl.arange(0, COUNT), tl.topk(value, COUNT))


@triton.jit
def mandelbrot(out, width, limit, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    cx, cy = (i % width) * 3.0 / width - 2.0, (i // width) * 2.0 / width - 1.0
    x, y = tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32)
    count = tl.zeros((BLOCK,), tl.int32)
    turn = 0
    going = tl.max((x == 0).to(tl.int32), 0)
    while (turn < limit) & (going > 0):
        inside = x * x + y * y <= 4.0
        x, y = tl.where(inside, x * x - y * y + cx, x), tl.where(inside, 2 * x * y + cy, y)
        count += inside.to(tl.int32)
        going = tl.max(inside.to(tl.int32), 0)
        turn += 1
    tl.store(out + i, count)


@triton.jit
def merged(count0, mean0, square0, count1, mean1, square1):
    away = mean1 - mean0
    count = count0 + count1
    part = tl.where(count == 0, 0.0, count1 / count)
    return count, mean0 + away * part, square0 + square1 + away * away * count0 * part


@triton.jit
def welford(x, mean, variance, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < columns
    value = tl.load(x + row * columns + at, mask=mask, other=0.0)
    count, found, square = tl.reduce((mask.to(tl.float32), value, tl.zeros_like(value)), 0, merged)
    tl.store(mean + row, found)
    tl.store(variance + row, square / count)


@triton.jit
def matvec(a, x, y, rows, columns, BM: tl.constexpr, BN: tl.constexpr):
    at_m = tl.program_id(0) * BM + tl.arange(0, BM)
    total = tl.zeros((BM,), tl.float32)
    for first in range(0, columns, BN):
        at_n = first + tl.arange(0, BN)
        mask = (at_m[:, None] < rows) & (at_n[None, :] < columns)
        left = tl.load(a + at_m[:, None] * columns + at_n[None, :], mask=mask, other=0.0)
        total += tl.sum(left * tl.load(x + at_n, mask=at_n < columns, other=0.0)[None, :], axis=1)
    tl.store(y + at_m, total, mask=at_m < rows)


@triton.jit
def adam(weights, gradients, first, second, n, rate, one, two, eps, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    g = tl.load(gradients + i, mask=mask)
    m = one * tl.load(first + i, mask=mask) + (1 - one) * g
    v = two * tl.load(second + i, mask=mask) + (1 - two) * g * g
    tl.store(first + i, m, mask=mask)
    tl.store(second + i, v, mask=mask)
    tl.store(weights + i, tl.load(weights + i, mask=mask) - rate * m / (tl.sqrt(v) + eps), mask=mask)


@triton.jit
def quantize(x, out, scales, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < columns
    value = tl.load(x + row * columns + at, mask=mask, other=0.0)
    scale = tl.max(tl.abs(value), 0) / 127.0
    tl.store(scales + row, scale)
    tl.store(out + row * columns + at, libdevice.rint(value / scale).to(tl.int8), mask=mask)


@triton.jit
def to_fp8(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n).to(out.dtype.element_ty), mask=i < n)


@triton.jit
def depthwise(x, weight, out, rows, columns, R: tl.constexpr, BLOCK: tl.constexpr):
    row, channel = tl.program_id(0), tl.program_id(1)
    at = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for dy in range(-R, R + 1):
        for dx in tl.static_range(-R, R + 1):
            y, c = row + dy, at + dx
            mask = (y >= 0) & (y < rows) & (c >= 0) & (c < columns)
            pixel = tl.load(x + (channel * rows + y) * columns + c, mask=mask, other=0.0)
            total += pixel * tl.load(weight + (channel * (2 * R + 1) + dy + R) * (2 * R + 1) + dx + R)
    tl.store(out + (channel * rows + row) * columns + at, total, mask=at < columns)


@triton.jit
def mirrored(x, shape, strides, out, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    value = tl.load(x + row * strides[0] + at * strides[1], mask=at < shape[1])
    tl.store(out + row * strides[0] + (shape[1] - 1 - at) * strides[1], value, mask=at < shape[1])
