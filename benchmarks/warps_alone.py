"""Compares the cycles that few warps take for a trip through a loop, by what its body has, measured and predicted.

    python -m benchmarks.warps_alone --device cuda --predict h200 \
        --store docs/results/warps-alone-nvidia-h200-aa3198/measurements.sqlite.xz

Each kernel in CUDA has one block for each compute unit of an H200, of one warp or of 16, which goes through a loop that
no compiler writes out: chains of operations of several lengths, branches, calls, functions that compilers write, and
loads. Where a warp is alone, what it waits for after each instruction limits it. No data are given, so that places in
global memory are taken to be anywhere, whereas they follow each other. Times come from the store; kernels that it lacks
are measured if the device is here. They join no fit.
"""

from __future__ import annotations

import perfmodel as pm
from benchmarks.kernels_compared import compared
from perfmodel.basics.tables import grid

BLOCKS, TRIPS, CLOCK = 132, 4096, 1.98e9
SIZES = (32, 512)
LAUNCH = "nothing"
SOURCE = """
__device__ __noinline__ float called(float x, float y) {{ return x * x + y; }}
__device__ __noinline__ float called_in_turn(float x, float y) {{ return called(x, y) * y + called(y, x); }}
__constant__ float kept[64] = {{ 0.5f }};
extern "C" __global__ void alone(float *out, int *places, int m, float one, int seed)
{{
    __shared__ float own[512];
    __shared__ int ways[512];
    const int lane = threadIdx.x;
    for (int k = lane; k < 512; k += blockDim.x) {{ own[k] = one; ways[k] = places[k] = (k + 1) & 511; }}
    __syncthreads();
    float x = lane, y = one, z = one + lane, w = one;
    double d = lane + 1.5;
    long long l = lane + 12345678901LL;
    int i = lane + 77;
    unsigned t = seed;
    #pragma unroll 1
    for (int k = 0; k < m; k++) {{
        {body}
    }}
    out[blockIdx.x * blockDim.x + lane] = x + y + z + w + (float) d + (float) l + i + t;
}}
"""
NEXT = "t = t * 1664525u + 1013904223u;"
APART = "t = (t + threadIdx.x) * 1664525u + 1013904223u;"
EITHER = "{" + 8 * " y = y * x + one; y = y * y + x;" + " }"
OTHER = "{" + 8 * " x = x * y + one; x = x * x + y;" + " }"


def steps(count: int, chains: int) -> str:
    """Returns so many multiply-adds in so many chains."""
    names = "xyzw"[:chains]
    return " ".join(f"{name} = {name} * one + 0.5f;" for _ in range(count // chains) for name in names)


BODIES = {
    LAUNCH: (0, ""),
    "16 in a chain": (1, steps(16, 1)),
    "64 in a chain": (1, steps(64, 1)),
    "64 in four chains": (1, steps(64, 4)),
    "512 in a chain": (4, steps(512, 1)),
    "1,024 in four chains": (4, steps(1024, 4)),
    "2,048 in four chains": (8, steps(2048, 4)),
    "4,096 in a chain": (16, steps(4096, 1)),
    "4,096 in four chains": (16, steps(4096, 4)),
    "8,192 in four chains": (32, steps(8192, 4)),
    "one of two ways": (1, f"{NEXT} if (t >> 31) {EITHER} else {OTHER}"),
    "both of two ways": (1, f"{APART} if (t >> 31) {EITHER} else {OTHER}"),
    "four branches, not taken": (1, " ".join(f"if (x == {number}.25f) {EITHER}" for number in range(4)) + " x += one;"),
    "four conditions on a chain": (1, 4 * "if (y > x) y -= one; else y += x; "),
    "a call": (1, "x = called(x, y);"),
    "calls in turn": (1, "x = called_in_turn(x, y);"),
    "an inner loop": (1, "for (int s = i & 3; s < 8; s++) y = y * one + x; i = k;"),
    "ways that lanes choose": (1, "if (t >> 31) x += one; else if (t >> 30) x = sinf(x); t += seed * lane;"),
    "int / int": (1, "i = 1000003 / (i | 1) + k;"),
    "int % int": (1, "i = (i * 1000003) % m + 7;"),
    "long % int": (1, "l = (l * 1000003) % m + 7777777777LL;"),
    "long / long": (1, "l = 1234567890123456789LL / (l | 1) + k;"),
    "float / float": (1, "x = one / (x + 1.5f);"),
    "sqrtf": (1, "x = sqrtf(x + 1.5f);"),
    "expf": (1, "x = expf(-x);"),
    "logf": (1, "x = logf(x + 2.5f);"),
    "powf": (1, "x = powf(x + 1.5f, one);"),
    "sinf, small": (1, "x = sinf(x) + 0.5f;"),
    "sinf, large": (4, "x = sinf(x * 1e7f + 1e6f) + 1.5f;"),
    "double / double": (1, "d = 1.0 / (d + 1.5);"),
    "sqrt of doubles": (1, "d = sqrt(d + 1.5);"),
    "exp of doubles": (1, "d = exp(-d);"),
    "log of doubles": (1, "d = log(d + 2.5);"),
    "sin of doubles": (1, "d = sin(d) + 0.5;"),
    "sin and cos of doubles": (1, "d = sin(d + 1.0) + cos(d);"),
    "pow of doubles": (4, "d = pow(d + 1.5, (double) one);"),
    "madd of doubles": (1, 16 * "d = d * one + 0.5; "),
    "minimum and absolute": (1, 8 * "x = fminf(fabsf(x) + one, y); "),
    "whole numbers": (1, 8 * "i = (i << 3 ^ i >> 2) + k; "),
    "products of whole numbers": (1, 16 * "i = i * seed + k; "),
    "products of 64 bits": (1, 8 * "l = l * seed + 7; "),
    "conversions": (1, 4 * "i = (int) (float) i + k; "),
    "counts of bits": (1, 4 * "i = __popc(i) + k; "),
    "shared memory": (1, 4 * "i = ways[i & 511]; "),
    "constant memory": (1, 4 * "i = (int) kept[i & 63] + k; "),
    "global memory": (1, 4 * "i = places[i & 511]; "),
    "sum in shared memory": (1, "i += atomicAdd(ways + (i & 511), 1); "),
    "shuffles": (1, 4 * "x += __shfl_xor_sync(-1, x, 1); "),
    "votes": (1, 4 * "i += __ballot_sync(-1, i & 1); "),
    "barriers": (1, "__syncthreads(); x += one; __syncthreads();"),
    "a tree in shared memory": (
        4,
        "own[lane] = x; __syncthreads(); for (int s = 16; s; s >>= 1) { if (lane < s) own[lane] += own[lane + s]; "
        "__syncthreads(); } x = own[0]; __syncthreads();",
    ),
}
"""The loops by what they do: each with a number that divides its trips, and its body."""


def kernel_of(name: str, size: int) -> tuple[int, pm.Kernel]:
    """Returns the trips of a loop, and the kernel that goes through it, with blocks of so many threads."""
    shorter, body = BODIES[name]
    trips = TRIPS // shorter if shorter else 0
    arrays = {"out": BLOCKS * size, "places": 1024}
    return trips, pm.Kernel.from_cuda(
        SOURCE.format(body=body), "alone", BLOCKS, size, arrays, m=trips, one=0.75, seed=77
    )


def main() -> None:
    found = [(name, size, *kernel_of(name, size)) for name in BODIES for size in SIZES]
    times = compared([kernel for *_, kernel in found], "what few warps take for a trip through a loop")
    begun = dict.fromkeys(SIZES, (0.0, 0.0))
    lines = []
    for (name, size, trips, _), took, said in zip(found, times.measured, times.predicted, strict=True):
        if name == LAUNCH:
            begun[size] = took, said
            continue
        cycles = [(time - start) * CLOCK / trips for time, start in zip((took, said), begun[size], strict=True)]
        lines.append([name, f"{size // 32}", *(f"{each:.0f}" for each in cycles), f"{cycles[1] / cycles[0]:.2f}"])
    print(f"{times.device}, cycles of a trip at {CLOCK / 1e9:g} GHz\n")
    print(grid(["the loop's body", "warps", "measured", "predicted", "predicted / measured"], lines))


if __name__ == "__main__":
    main()
