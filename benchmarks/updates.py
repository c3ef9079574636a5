"""Compares what atomics of each kind, and stores, take that meet at few or many places, measured and predicted.

    python -m benchmarks.updates --device cuda --predict h100 \
        --store docs/results/updates-nvidia-h100-80gb-hbm3-37441e/measurements.sqlite.xz

Each work-item of a kernel in CUDA updates eight places that a hash chooses, in global memory, or in the local memory of
its work-group of 256. In kernels of rows, work-items that follow each other update one place of local memory, as sums
over sorted data do. In kernels of two places, one work-item of each sub-group adds to one of them; they show which
bytes the parts of the second-level cache have (`perfmodel.counting.contention.parts_of`). The kernel of letters adds to
256 counters as text does, where few letters are most. In kernels of flags, a part of the sub-groups store what they
load to one place, or to that of their work-group, of a few, as programs say that something has changed. In kernels of
gathers, each work-item adds anywhere in one array and loads from anywhere in another, which together exceed the
second-level cache: what is touched more often stays (`perfmodel.features.scattered.rooms`). Times come from the store;
kernels that it lacks are measured if the device is here, and left out if not. All show what
`perfmodel.counting.atomics` says of operations, and `perfmodel.features.contended` of stores; they join no fit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import perfmodel as pm
from benchmarks.kernels_compared import compared
from perfmodel.basics.tables import grid

GROUP, TIMES = 256, 8
ITEMS, ITEMS_OF_LOOPS = 2**18, 2**14
PLACES = {"global": (1, 32, 1024, 2**16, 2**20), "local": (1, 32, 1024)}
LOOP = (
    "{{ {0} seen, old = *(volatile {0} *)p; do {{ seen = old; old = atomicCAS(p, seen, {1}); }} while (old != seen); }}"
)
OPERATIONS = {
    "sum": ("int", "atomicAdd(p, k + 1);"),
    "sum, read": ("int", "s += atomicAdd(p, k + 1);"),
    "largest": ("int", "atomicMax(p, i);"),
    "exchange": ("int", "s += atomicExch(p, i);"),
    "comparison": ("int", "s += atomicCAS(p, i, k);"),
    "sum of 64 bits": ("unsigned long long", "atomicAdd(p, 1ull);"),
    "bits of 64 changed": ("unsigned long long", "atomicXor(p, 1ull << (k & 63));"),
    "sum of floats": ("float", "atomicAdd(p, 1.0f);"),
    "sum of doubles": ("double", "atomicAdd(p, 1.0);"),
    "loop of comparisons": ("int", LOOP.format("int", "__float_as_int(__int_as_float(seen) + 1.0f)")),
}
SOURCE = """
extern "C" __global__ void updates(TYPE *counters, unsigned mask, unsigned m, int *out)
{
    SHARED
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    int s = 0;
    for (unsigned k = 0; k < m; k++) {
        unsigned h = (i * m + k) * 2654435761u;
        TYPE *p = ARRAY + ((h ^ (h >> 15)) & mask);
        UPDATE
    }
    out[i] = s;
    AFTER
}
"""
PLACES_OF_ROWS, ROWS = 256, (1, 4, 30)
"""So many work-items that follow each other have one of the places."""
OF_ROWS = """
extern "C" __global__ void of_rows(TYPE *counters, unsigned row, unsigned m)
{
    SHARED
    for (unsigned k = 0; k < m; k++) {
        TYPE *p = own + (((k * blockDim.x + threadIdx.x) / row * 37u) & mask);
        UPDATE
    }
    AFTER
}
"""
APART = (0, 32, 128, 256, 512, 768, 1024, 4096)
"""Two places lie so many bytes apart."""
OF_TWO = """
extern "C" __global__ void of_two(int *counters, unsigned apart, unsigned m)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    int *p = counters + (i / 32 & 1) * apart;
    if (i % 32 == 0)
        for (unsigned k = 0; k < m; k++) atomicAdd(p, 1);
}
"""
LETTERS = "eeeeeeetttttaaaaaooooonnnniiiisssshhhhrrrddllccuumwfgyp" + 9 * " "
"""Text has these 64 letters about as often as they stand here."""
OF_LETTERS = """
__constant__ char letters[65] = "LETTERS";
extern "C" __global__ void of_letters(int *counters, unsigned m)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    for (unsigned k = 0; k < m; k++) {
        unsigned h = (i * m + k) * 2654435761u;
        atomicAdd(counters + letters[(h ^ (h >> 15)) & 63], 1);
    }
}
""".replace("LETTERS", LETTERS)
ITEMS_OF_FLAGS, PARTS = 2**24, 8
FLAGS = (
    *((1, 0, part) for part in (1, 2, 4, 6, 8)),
    *((*each, part) for each in ((2, 32), (64, 4)) for part in (1, 8)),
)
"""Places, bytes from one to the next, and how many of eight sub-groups store."""
OF_FLAGS = """
extern "C" __global__ void of_flags(const int *words, int *flags, unsigned places, unsigned apart, unsigned part)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned h = (i / 32) * 2654435761u;
    h = (h ^ (h >> 15)) * 2246822519u;
    const int word = words[i];
    if ((h >> 13) % 8 < part) flags[blockIdx.x % places * apart] = word;
}
"""
BESIDE = ((8, 8), (32, 32), (128, 8), (128, 32), (512, 8))
"""Megabytes of the array that is loaded from, and of the one that is added to."""
OF_GATHERS = """
__device__ unsigned hashed(unsigned x)
{
    x = (x ^ (x >> 16)) * 2146121005u;
    x = (x ^ (x >> 15)) * 2221713035u;
    return x ^ (x >> 16);
}
extern "C" __global__ void of_gathers(const float *x, float *y, float *out, unsigned last_x, unsigned last_y, \
unsigned m)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    float s = 0;
    for (unsigned k = 0; k < m; k++) {
        for (unsigned j = 0; j < 4; j++) s += x[hashed(16 * i + j + 77777 * k) & last_x];
        for (unsigned j = 8; j < 12; j++) atomicAdd(y + (hashed(16 * i + j + 77777 * k) & last_y), 1.0f);
    }
    out[i] = s;
}
"""
SHARED = """extern __shared__ TYPE own[];
    for (unsigned j = threadIdx.x; j <= mask; j += blockDim.x) own[j] = 0;
    __syncthreads();"""
AFTER = "__syncthreads(); if (threadIdx.x == 0) counters[blockIdx.x] = own[0];"
BYTES = {"int": 4, "float": 4, "double": 8, "unsigned long long": 8}


@dataclass(frozen=True)
class Row:
    """Holds a kernel of the table: what it does, in which memory, to which places, and how many updates it makes."""

    operation: str
    memory: str
    places: str
    updates: int
    kernel: pm.Kernel


def rows() -> Iterator[Row]:
    """Yields the kernels in the order of the table."""
    for operation, (type_, update) in OPERATIONS.items():
        items = ITEMS_OF_LOOPS if "loop" in operation else ITEMS
        for memory, numbers in PLACES.items():
            is_local = memory == "local"
            text = SOURCE.replace("SHARED", SHARED if is_local else "").replace("AFTER", AFTER if is_local else "")
            text = text.replace("ARRAY", "own" if is_local else "counters")
            text = text.replace("UPDATE", update).replace("TYPE", type_)
            for places in numbers:
                groups = items // GROUP
                kernel = pm.Kernel.from_cuda(
                    text,
                    "updates",
                    groups,
                    GROUP,
                    {"counters": groups if is_local else places, "out": items},
                    shared=BYTES[type_] * places if is_local else 0,
                    mask=places - 1,
                    m=TIMES,
                )
                yield Row(operation=operation, memory=memory, places=str(places), updates=TIMES * items, kernel=kernel)
    groups = ITEMS // GROUP
    for operation in ("sum", "sum of floats", "bits of 64 changed"):
        type_, update = OPERATIONS[operation]
        text = OF_ROWS.replace("SHARED", SHARED).replace("AFTER", AFTER).replace("UPDATE", update)
        text = text.replace("mask", str(PLACES_OF_ROWS - 1)).replace("TYPE", type_)
        for row in ROWS:
            shared = BYTES[type_] * PLACES_OF_ROWS
            kernel = pm.Kernel.from_cuda(
                text, "of_rows", groups, GROUP, {"counters": groups}, shared=shared, row=row, m=TIMES
            )
            title = f"{PLACES_OF_ROWS}, rows of {row}"
            yield Row(operation=operation, memory="local", places=title, updates=TIMES * ITEMS, kernel=kernel)
    for apart in APART:
        kernel = pm.Kernel.from_cuda(
            OF_TWO,
            "of_two",
            groups,
            GROUP,
            {"counters": max(APART) // BYTES["int"] + 1},
            apart=apart // BYTES["int"],
            m=TIMES,
        )
        title, updates = f"2, {apart} bytes apart", TIMES * ITEMS // 32
        yield Row(operation="sum", memory="global", places=title, updates=updates, kernel=kernel)
    kernel = pm.Kernel.from_cuda(OF_LETTERS, "of_letters", groups, GROUP, {"counters": 256}, m=TIMES)
    yield Row(operation="sum", memory="global", places="256, by letters", updates=TIMES * ITEMS, kernel=kernel)
    for from_, to in BESIDE:
        loaded, added = (2**20 * megabytes // BYTES["float"] for megabytes in (from_, to))
        arrays = {"x": loaded, "y": added, "out": 4 * ITEMS}
        kernel = pm.Kernel.from_cuda(
            OF_GATHERS, "of_gathers", 4 * groups, GROUP, arrays, last_x=loaded - 1, last_y=added - 1, m=4
        )
        title = f"{to} MB, loads from {from_} MB"
        yield Row(operation="sum of floats", memory="global", places=title, updates=16 * 4 * ITEMS, kernel=kernel)
    for places, apart, part in FLAGS:
        kernel = pm.Kernel.from_cuda(
            OF_FLAGS,
            "of_flags",
            ITEMS_OF_FLAGS // GROUP,
            GROUP,
            {"words": ITEMS_OF_FLAGS, "flags": places * max(apart // BYTES["int"], 1)},
            places=places,
            apart=apart // BYTES["int"],
            part=part,
        )
        title = f"{places}, {apart} bytes apart" if apart else f"{places}"
        stores = ITEMS_OF_FLAGS // 32 * part // PARTS
        yield Row(
            operation=f"store, by {part} of {PARTS}", memory="global", places=title, updates=stores, kernel=kernel
        )


def main() -> None:
    found = list(rows())
    times = compared([row.kernel for row in found], "what atomics of each kind take, measured and predicted")
    lines = []
    for row, took, said in zip(found, times.measured, times.predicted, strict=True):
        if not math.isnan(took):
            each = [f"{1e12 * time / row.updates:.3g}" for time in (took, said)]
            lines.append([row.operation, row.memory, row.places, *each, f"{said / took:.2f}"])
    print(f"{times.device}, picoseconds for each update\n")
    print(grid(["update", "memory", "places", "measured", "predicted", "ratio"], lines))


if __name__ == "__main__":
    main()
