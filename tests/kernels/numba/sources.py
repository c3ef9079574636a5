"""Kernels of Numba, as people write them; `tests.kernels.numba.cases` says what each is called with."""

# mypy: ignore-errors

from __future__ import annotations

import math

import numba
from numba import cuda

TILE = 16


@cuda.jit
def axpy(a, x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = a * x[i] + y[i]


@cuda.jit
def matmul(a, b, c):
    left = cuda.shared.array((TILE, TILE), numba.float32)
    right = cuda.shared.array((TILE, TILE), numba.float32)
    column, row = cuda.grid(2)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    total = numba.float32(0)
    for first in range(0, a.shape[1], TILE):
        left[y, x] = a[row, first + x] if row < a.shape[0] and first + x < a.shape[1] else 0
        right[y, x] = b[first + y, column] if first + y < b.shape[0] and column < b.shape[1] else 0
        cuda.syncthreads()
        for k in range(TILE):
            total += left[y, k] * right[k, x]
        cuda.syncthreads()
    if row < c.shape[0] and column < c.shape[1]:
        c[row, column] = total


@cuda.jit
def block_sums(x, out):
    own = cuda.shared.array(0, numba.float64)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    own[t] = x[i] if i < x.shape[0] else 0.0
    cuda.syncthreads()
    width = cuda.blockDim.x // 2
    while width > 0:
        if t < width:
            own[t] += own[t + width]
        cuda.syncthreads()
        width //= 2
    if t == 0:
        cuda.atomic.add(out, 0, own[0])


@cuda.jit
def histogram(x, counts):
    start, step = cuda.grid(1), cuda.gridsize(1)
    for i in range(start, x.shape[0], step):
        cuda.atomic.add(counts, x[i], 1)


@cuda.jit(device=True)
def black(value):
    return 0.5 * (1.0 + math.erf(value / math.sqrt(2.0)))


@cuda.jit
def options(price, strike, years, out, rate, volatility):
    i = cuda.grid(1)
    if i < price.size:
        root = volatility * math.sqrt(years[i])
        d = (math.log(price[i] / strike[i]) + (rate + 0.5 * volatility**2) * years[i]) / root
        out[i] = price[i] * black(d) - strike[i] * math.exp(-rate * years[i]) * black(d - root)


@cuda.jit
def blur(image, out):
    x, y = cuda.grid(2)
    if 0 < x < image.shape[1] - 1 and 0 < y < image.shape[0] - 1:
        total = 0
        for dy in range(-1, 2):
            for dx in range(-1, 2):
                total += image[y + dy, x + dx]
        out[y, x] = total // 9


@cuda.jit
def warp_sums(x, out):
    i = cuda.grid(1)
    value = x[i]
    for width in (16, 8, 4, 2, 1):
        value += cuda.shfl_down_sync(0xFFFFFFFF, value, width)
    if cuda.laneid == 0:
        out[i // 32] = value


@cuda.jit
def escapes(out, limit):
    x, y = cuda.grid(2)
    if x < out.shape[1] and y < out.shape[0]:
        c = complex(x * 3.0 / out.shape[1] - 2.0, y * 2.0 / out.shape[0] - 1.0)
        z = 0j
        count = 0
        while count < limit and z.real * z.real + z.imag * z.imag <= 4:
            z = z * z + c
            count += 1
        out[y, x] = count


@cuda.jit
def strided(x, out):
    i, j, k = cuda.grid(3)
    if i < x.shape[0] and j < x.shape[1] and k < x.shape[2]:
        out[k, j, i] = 2 * x[i, j, -1 - k]
