"""Holds Fourier, cosine, wavelet and Hadamard transforms."""

from __future__ import annotations

import numpy as np

from benchmarks.programs.program import Array, Arrays, Group, Launch, Local, Random, Rng, Zeros, up

GROUP = Group("transforms", "transforms.cl")
MODULUS = 998244353


def as_complex(values: Array) -> Array:
    """Returns pairs of real numbers as complex numbers of double precision."""
    pairs = values.reshape(-1, 2)
    return np.asarray(pairs[:, 0].astype(np.complex128) + 1j * pairs[:, 1])


def as_pairs(values: Array) -> Array:
    return np.stack([values.real, values.imag], -1)


@GROUP.case(cpu={"log": 13, "stage": 5}, gpu={"log": 24, "stage": 9})
def fft_radix2_stage(rng: Rng, log: int, stage: int) -> Launch:
    n, half = 1 << log, 1 << stage

    def reference(a: Arrays) -> Arrays:
        z = as_complex(a["data"]).reshape(-1, 2, half)
        v = np.exp(-1j * np.pi * np.arange(half) / half) * z[:, 1]
        return {"data": as_pairs(np.stack([z[:, 0] + v, z[:, 0] - v], 1))}

    return Launch(
        (n // 2,),
        (128,),
        {"data": Random("float32", 2 * n, -1, 1), "n": np.int32(n), "half_size": np.int32(half)},
        reference,
    )


@GROUP.case(cpu={"log": 12, "stage": 2}, gpu={"log": 24, "stage": 3})
def fft_radix4_stockham(rng: Rng, log: int, stage: int) -> Launch:
    n, p = 1 << log, 4**stage

    def reference(a: Arrays) -> Arrays:
        x = as_complex(a["x"]).reshape(4, -1)
        i = np.arange(n // 4)
        k = i % p
        z = x * np.exp(-2j * np.pi * np.arange(4)[:, None] * k / (4 * p))
        y = np.zeros(n, np.complex128)
        for r, line in enumerate(np.fft.fft(z, axis=0)):
            y[(i - k) * 4 + k + r * p] = line
        return {"y": as_pairs(y)}

    return Launch(
        (up(n // 4, 64),),
        (64,),
        {
            "x": Random("float32", 2 * n, -1, 1),
            "y": Zeros("float32", 2 * n),
            "n": np.int32(n),
            "p": np.int32(p),
        },
        reference,
    )


@GROUP.case(cpu={"batch": 37}, gpu={"batch": 60000})
def fft_local_256(rng: Rng, batch: int) -> Launch:
    n = 256 * batch
    return Launch(
        (128 * batch,),
        (128,),
        {
            "re": Random("float32", n, -1, 1),
            "im": Random("float32", n, -1, 1),
            "out": Zeros("float32", 2 * n),
            "batch": np.int32(batch),
        },
        lambda a: {"out": as_pairs(np.fft.fft((a["re"] + 1j * a["im"]).reshape(batch, 256)))},
        tolerance=1e-3,
    )


@GROUP.case(cpu={"log": 13}, gpu={"log": 23})
def bit_reverse(rng: Rng, log: int) -> Launch:
    n = 1 << log

    def reference(a: Arrays) -> Arrays:
        return {"out": a["in"].reshape((2,) * log + (2,)).transpose(*range(log - 1, -1, -1), log)}

    return Launch(
        (n,),
        (256,),
        {"in": Random("float64", 2 * n), "out": Zeros("float64", 2 * n), "log2n": np.uint32(log)},
        reference,
    )


@GROUP.case(cpu={"width": 120, "height": 88}, gpu={"width": 4096, "height": 4000})
def dct_8x8(rng: Rng, width: int, height: int) -> Launch:
    def reference(a: Arrays) -> Arrays:
        k, x = np.mgrid[:8, :8]
        table = np.cos((2 * x + 1) * k * np.pi / 16) * np.where(k == 0, 8**-0.5, 0.5)
        blocks = a["image"].reshape(height // 8, 8, width // 8, 8).transpose(0, 2, 1, 3) - 128.0
        return {"coef": (table @ blocks @ table.T).transpose(0, 2, 1, 3)}

    return Launch(
        (width, height),
        (8, 8),
        {
            "image": Random("uint8", width * height, 0, 256),
            "coef": Zeros("float32", width * height),
            "width": np.int32(width),
        },
        reference,
    )


@GROUP.case(cpu={"length": 20002}, gpu={"length": 60000002})
def haar_level(rng: Rng, length: int) -> Launch:
    def reference(a: Arrays) -> Arrays:
        first, second = a["in"].reshape(-1, 2).T
        return {"out": np.concatenate([first + second, first - second]) * np.float32(0.5**0.5)}

    return Launch(
        (up(length // 2, 256),),
        (256,),
        {"in": Random("float32", length), "out": Zeros("float32", length), "length": np.int32(length)},
        reference,
    )


@GROUP.case(cpu={"width": 133, "height": 60}, gpu={"width": 8191, "height": 4001})
def wavelet_53_rows(rng: Rng, width: int, height: int) -> Launch:
    half = (width + 1) // 2

    def reference(a: Arrays) -> Arrays:
        s = np.pad(a["img"].reshape(height, width).astype(np.int32), ((0, 0), (2, 2)), "reflect")
        high = s[:, 1:-1:2] - ((s[:, :-2:2] + s[:, 2::2]) >> 1)
        low = s[:, 2:-2:2] + ((high[:, :half] + high[:, 1 : half + 1] + 2) >> 2)
        return {"low": low.astype(np.int16), "high": high[:, 1 : width // 2 + 1].astype(np.int16)}

    return Launch(
        (up(half, 32), up(height, 4)),
        (32, 4),
        {
            "img": Random("int16", width * height, -255, 256),
            "low": Zeros("int16", half * height),
            "high": Zeros("int16", width // 2 * height),
            "width": np.int32(width),
            "height": np.int32(height),
        },
        reference,
    )


@GROUP.case(cpu={"count": 21}, gpu={"count": 40000})
def walsh_hadamard(rng: Rng, count: int) -> Launch:
    def reference(a: Arrays) -> Arrays:
        data = a["data"].reshape((count,) + (2,) * 9)
        for axis in range(1, 10):
            one, other = np.moveaxis(data, axis, 0)
            data = np.stack([one + other, one - other], axis)
        return {"data": data}

    return Launch((256 * count,), (256,), {"data": Random("int32", 512 * count, -99, 100), "t": Local(2048)}, reference)


@GROUP.case(cpu={"n": 501}, gpu={"n": 15001})
def dft_naive(rng: Rng, n: int) -> Launch:
    return Launch(
        (up(n // 2 + 1, 64),),
        (64,),
        {"x": Random("float64", n, -1, 1), "spectrum": Zeros("float64", 2 * (n // 2 + 1)), "n": np.int32(n)},
        lambda a: {"spectrum": as_pairs(np.fft.rfft(a["x"]))},
        tolerance=1e-9,
    )


@GROUP.case(cpu={"log": 12, "stage": 7}, gpu={"log": 24, "stage": 12})
def ntt_stage(rng: Rng, log: int, stage: int) -> Launch:
    n, length = 1 << log, 1 << stage
    roots = np.ones(1, np.uint64)
    for level in range(1, log):
        step = np.uint64(pow(3, (MODULUS - 1) >> (level + 1), MODULUS))
        roots = np.stack([roots, roots * step % np.uint64(MODULUS)], 1).reshape(-1)

    def reference(a: Arrays) -> Arrays:
        data = a["a"].reshape(-1, 2, length // 2).astype(np.uint64)
        v = data[:, 1] * roots[:: n // length] % np.uint64(MODULUS)
        both = [data[:, 0] + v, data[:, 0] + np.uint64(MODULUS) - v]
        return {"a": (np.stack(both, 1) % np.uint64(MODULUS)).astype(np.uint32)}

    return Launch(
        (n // 2,),
        (256,),
        {
            "a": Random("uint32", n, 0, MODULUS),
            "roots": roots.astype(np.uint32),
            "n": np.uint32(n),
            "len": np.uint32(length),
        },
        reference,
    )
