"""Compares what records take that work-items load or store, side by side or anywhere, measured and predicted.

    python -m benchmarks.records --device cuda --predict h200 \
        --store docs/results/records-nvidia-h200-aa3198/measurements.sqlite.xz

Each work-item of a kernel in CUDA loads or stores one record of an array of 512 MB, or of its first 131,072 records,
which the second-level cache keeps; by as many accesses of words or of vectors as it takes. A hash chooses the record,
or work-items take one after the other. In others, neighbours load or store a row together, 16 bytes each, and a hash
chooses the row; or work-items add to counters of their rows, in the order of the work-groups, or to numbers that a hash
chooses; or each adds 64 numbers to one of its own record in memory, as a compiler must where arrays may overlap; or
stores a row of its own from one end to the other, changes one in place, or copies one; or changes a record anywhere; or
several arrays are copied to places that begin within a sector or not. Times come from the store; kernels that it lacks
are measured if the device is here. They join no fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import perfmodel as pm
from benchmarks.kernels_compared import compared
from perfmodel.basics.tables import grid

GROUP, ITEMS, ARRAY = 256, 2**22, 2**29
SUMS = {"float": "x", "float2": "x.x + x.y", "float4": "x.x + x.y + x.z + x.w"}
PARTS = {"float": 4, "float2": 8, "float4": 16}
RECORDS = {
    4: ("float",),
    8: ("float2", "float"),
    12: ("float",),
    16: ("float4", "float2", "float"),
    20: ("float",),
    24: ("float2", "float"),
    32: ("float4", "float2", "float"),
    40: ("float2",),
    48: ("float4", "float2", "float"),
    64: ("float4", "float2", "float"),
}
FEW = 2**17
PLACES = {
    "side by side": "i",
    "anywhere": "(h ^ (h >> 15)) & (RECORDS - 1)",
    "side by side, cached": f"i & {FEW - 1}",
    "anywhere, cached": f"(h ^ (h >> 15)) & {FEW - 1}",
}
ACCESSES = {
    "load": "float s = 0; for (int j = 0; j < PARTS; j++) s += sum(p[j]); out[i] = s;",
    "store": "for (int j = 0; j < PARTS; j++) { TYPE x = {}; *(float *)&x = i + j; p[j] = x; }",
}
SOURCE = """
__device__ float sum(TYPE x) { return ALL; }
extern "C" __global__ void records(TYPE *a, float *out)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x, h = i * 2654435761u;
    TYPE *p = a + (size_t)(PLACE) * PARTS;
    ACCESS
}
"""
SHARED = """
extern "C" __global__ void records(float4 *a, float *out)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x, h = i / NEIGHBOURS * 2654435761u;
    float4 *p = a + (size_t)((h ^ (h >> 15)) & (RECORDS - 1)) * NEIGHBOURS + i % NEIGHBOURS;
    ACCESS
}
"""
SHARED_ACCESSES = {
    "load": "float4 x = *p; out[i] = x.x + x.y + x.z + x.w;",
    "store": "*p = make_float4(i, i, i, i);",
}
TIMES = 64
ADDED = """
extern "C" __global__ void records(float *a, const float *b)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int k = 0; k < TIMES; k++) a[i * WORDS] += b[k];
}
"""
PARTED = """
extern "C" __global__ void records(float *a, const float *b)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    #pragma unroll
    for (int j = 0; j < PARTS; j++) a[i * PARTS + j] = b[j * ITEMS + i] + j;
}
"""
ALONG = """
extern "C" __global__ void records(TYPE *a, int length)
{
    const size_t i = blockIdx.x * blockDim.x + threadIdx.x;
    float value = i;
    for (int k = 0; k < length; k++) {
        TYPE x = {};
        for (int j = 0; j < 8; j++) value = value * 1.0001f + 0.5f;
        *(float *)&x = value;
        a[i * length + k] = x;
    }
}
"""
CHANGED = """
extern "C" __global__ void records(GIVEN, int length)
{
    const size_t i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int k = 0; k < length; k++) {
        TYPE x = FROM[i * length + k];
        *(float *)&x = *(float *)&x * 1.0001f + 0.5f;
        TO[i * length + k] = x;
    }
}
"""
CHANGED_ANYWHERE = """
extern "C" __global__ void records(TYPE *a)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x, h = i * 2654435761u;
    TYPE x = a[PLACE];
    *(float *)&x = *(float *)&x * 1.0001f + 0.5f;
    a[PLACE] = x;
}
"""
LONG = {2**14: (32, 128), 2**15: (32, 64, 128), 2**17: (64, 128), 2**18: (128, 256)}
"""Megabytes that rows of so many work-items have."""
COPIED = """
extern "C" __global__ void records(const float *__restrict__ a, float *__restrict__ b)
{
    const size_t i = blockIdx.x * blockDim.x + threadIdx.x;
    float value[ARRAYS], sum = 0;
    #pragma unroll
    for (int k = 0; k < ARRAYS; k++) sum += value[k] = a[k * (size_t)PITCH + i];
    #pragma unroll
    for (int k = 0; k < ARRAYS; k++) b[k * (size_t)PITCH + i + FIRST] = value[k] * sum;
}
"""
COUNTED = """
extern "C" __global__ void records(TYPE *a, float *out)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x, h = i * 2654435761u;
    atomicAdd(&a[PLACE], (TYPE)1);
}
"""
COUNTERS = {"float": 4, "double": 8}
"""Types of numbers that work-items add to, with their bytes."""
ROWS = """
extern "C" __global__ void records(float *rows, float *out)
{
    const unsigned row = blockIdx.y * blockDim.y + threadIdx.y;
    atomicAdd(&rows[row], 1.0f);
}
"""
ROW_SHAPES = {1: (32, 8), 10: (32, 8), 64: (32, 2), 16: (256, 1)}


def kernels() -> Iterator[tuple[str, str, pm.Kernel]]:
    """Yields what is accessed, the order, and the kernel."""
    for access, statement in ACCESSES.items():
        for n_bytes, types in RECORDS.items():
            for type_ in types:
                parts = n_bytes // PARTS[type_]
                for order, place in PLACES.items():
                    if "anywhere" in order and ARRAY % n_bytes:
                        continue
                    text = SOURCE.replace("ACCESS", statement).replace("PLACE", place).replace("TYPE", type_)
                    text = text.replace("ALL", SUMS[type_])
                    text = text.replace("RECORDS", f"{ARRAY // n_bytes}u").replace("PARTS", str(parts))
                    extents = {"a": ARRAY // PARTS[type_], "out": ITEMS}
                    kernel = pm.Kernel.from_cuda(text, "records", ITEMS // GROUP, GROUP, extents)
                    yield f"{access} {n_bytes} bytes as {parts} of {type_}", order, kernel
    for access, statement in SHARED_ACCESSES.items():
        for neighbours in (2, 4, 8, 16, 32):
            text = SHARED.replace("ACCESS", statement).replace("NEIGHBOURS", str(neighbours))
            text = text.replace("RECORDS", f"{ARRAY // (16 * neighbours)}u")
            kernel = pm.Kernel.from_cuda(
                text, "records", ITEMS // GROUP, GROUP, {"a": ARRAY // PARTS["float4"], "out": ITEMS}
            )
            yield f"{access} {16 * neighbours} bytes by {neighbours}", "anywhere", kernel
    for words in (1, 2, 4, 8, 16, 32):
        text = ADDED.replace("TIMES", str(TIMES)).replace("WORDS", str(words))
        kernel = pm.Kernel.from_cuda(text, "records", FEW // GROUP, GROUP, {"a": FEW * words, "b": TIMES})
        yield f"add {TIMES} numbers to 4 of {4 * words} bytes", "side by side, cached", kernel
    for parts in (2, 3, 4, 6, 8):
        text = PARTED.replace("PARTS", str(parts)).replace("ITEMS", str(ITEMS))
        kernel = pm.Kernel.from_cuda(text, "records", ITEMS // GROUP, GROUP, {"a": ITEMS * parts, "b": ITEMS * parts})
        yield f"store {4 * parts} bytes as {parts} of float, a load before each", "side by side", kernel
    for type_, n_bytes in PARTS.items():
        for items, megabytes in LONG.items():
            for length in (size * 2**20 // (items * n_bytes) for size in megabytes):
                extents = {"a": items * length * n_bytes // PARTS["float"]}
                text = ALONG.replace("TYPE", type_)
                kernel = pm.Kernel.from_cuda(text, "records", items // GROUP, GROUP, extents, length=length)
                yield f"store rows of {length} of {type_}, {items} of them", "along rows", kernel
    for type_, items, whole in product(("float", "float4"), (2**15, 2**17, 2**18, 2**20), (128, 256)):
        length = whole * 2**20 // (items * PARTS[type_])
        for what, from_, to in (("change rows", "a", "a"), ("copy rows", "a", "b")):
            given = f"{type_} *a" if from_ == to else f"const {type_} *a, {type_} *b"
            text = CHANGED.replace("GIVEN", given).replace("FROM", from_).replace("TO", to).replace("TYPE", type_)
            extents = dict.fromkeys(sorted({from_, to}), items * length)
            kernel = pm.Kernel.from_cuda(text, "records", items // GROUP, GROUP, extents, length=length)
            yield f"{what} of {length} of {type_}, {items} of them", "along rows", kernel
    for type_, n_bytes in PARTS.items():
        for size in (32, 128, 512):
            text = CHANGED_ANYWHERE.replace("TYPE", type_).replace("PLACE", PLACES["anywhere"])
            records = size * 2**20 // n_bytes
            text = text.replace("RECORDS", f"{records}u")
            kernel = pm.Kernel.from_cuda(text, "records", ITEMS // GROUP, GROUP, {"a": records})
            yield f"change {n_bytes} bytes of {size} MB", "anywhere", kernel
    for arrays in (1, 4, 19):
        groups = ARRAY // (PARTS["float"] * arrays * GROUP)
        for first in (0, 1, 8):
            text = COPIED.replace("ARRAYS", str(arrays)).replace("FIRST", str(first))
            pitch = (groups + 1) * GROUP
            text, extents = text.replace("PITCH", str(pitch)), dict.fromkeys("ab", arrays * pitch)
            kernel = pm.Kernel.from_cuda(text, "records", groups, GROUP, extents)
            yield f"copy {arrays} arrays, {4 * first} bytes further", "side by side", kernel
    for type_, word in COUNTERS.items():
        for size in (16, 64, 128, 512):
            numbers = size * 2**20 // word
            text = COUNTED.replace("TYPE", type_).replace("PLACE", PLACES["anywhere"])
            text = text.replace("RECORDS", f"{numbers}u")
            kernel = pm.Kernel.from_cuda(text, "records", ITEMS // GROUP, GROUP, {"a": numbers, "out": 1})
            yield f"add to one of {numbers} of {type_}", "anywhere", kernel
    for groups, block in ROW_SHAPES.items():
        rows = ITEMS // (groups * block[0])
        kernel = pm.Kernel.from_cuda(ROWS, "records", (groups, rows // block[1]), block, {"rows": rows, "out": 1})
        yield f"add {groups * block[0]} times to each of {rows} rows", "in order", kernel


def main() -> None:
    found = list(kernels())
    times = compared([kernel for *_, kernel in found], "what records take, measured and predicted")
    lines = []
    for (access, order, kernel), took, said in zip(found, times.measured, times.predicted, strict=True):
        items = float(pm.feature("f_work_items").eval(kernel))
        each = [f"{1e12 * time / items:.3g}" for time in (took, said)]
        lines.append([access, order, *each, f"{said / took:.2f}"])
    print(f"{times.device}, picoseconds for each work-item\n")
    print(grid(["access", "order", "measured", "predicted", "ratio"], lines))


if __name__ == "__main__":
    main()
