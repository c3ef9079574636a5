"""Compares what kernels take that compute while they load, store or keep private arrays, measured and predicted.

    python -m benchmarks.overlapped --device cuda --predict h200 \
        --store docs/results/overlapped-nvidia-h200-aa3198/measurements.sqlite.xz

Each work-item of a kernel in CUDA goes through a loop; in each turn it computes with whole numbers, each of which needs
the one before, and accesses memory: it stores four words side by side with its neighbours', or a word of a private
array at a place that no compiler knows, or loads four words, or copies them. Rows of the table differ by how much is
computed in a turn. Times come from the store; kernels that it lacks are measured if the device is here. They join no
fit.
"""

from __future__ import annotations

from collections.abc import Iterator

import perfmodel as pm
from benchmarks.kernels_compared import compared
from perfmodel.basics.tables import grid

GROUP = 256
SOURCE = """
extern "C" __global__ void overlapped(const uint4 *__restrict__ a, uint4 *__restrict__ b, int first)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned x = i, y = i + 1;
    PRIVATE
    for (unsigned turn = 0; turn < TURNS; turn++) {
        #pragma unroll
        for (int j = 0; j < WORK; j++) { const unsigned z = x << 7 | x >> 25; x = y; y ^= z; }
        ACCESS
    }
    AFTER
}
"""
PLACE = "(size_t)turn * ITEMS + i"
KEPT = 64
"""Words of a private array."""
ACCESSES = {
    "nothing": ("", "", "b[i] = make_uint4(x, y, x, y);"),
    "store 16 bytes": ("", f"b[{PLACE}] = make_uint4(x, y, x, y);", ""),
    "store 4 bytes": ("", f"((unsigned *)b)[{PLACE}] = x;", ""),
    "keep a word": (
        f"unsigned kept[{KEPT}];",
        f"kept[(turn + first) % {KEPT}] = x;",
        f"b[i] = make_uint4(x, y, kept[x % {KEPT}], 0);",
    ),
    "load 16 bytes": ("", f"const uint4 v = a[{PLACE}]; x ^= v.x + v.y + v.z + v.w;", "b[i] = make_uint4(x, y, x, y);"),
    "copy 16 bytes": ("", f"uint4 v = a[{PLACE}]; v.x ^= x; v.y ^= y; b[{PLACE}] = v;", ""),
}
"""Accesses of each turn: what is declared for them, what a turn does, and what comes after all."""
SHAPES = {"keep a word": (2**21, 64), "store 4 bytes": (2**20, 64), "nothing": (2**20, 32)}
"""Work-items and turns."""
WORK = {"keep a word": (1, 4, 8, 16, 24, 32, 48), "store 4 bytes": (4, 8, 16, 24, 32, 48)}
"""Steps of a turn, each of which turns the bits of a number around and takes the exclusive or of two."""


def kernels() -> Iterator[tuple[str, int, pm.Kernel]]:
    """Yields what each turn accesses, how many steps are computed beside, and the kernel."""
    for access, (private, each, after) in ACCESSES.items():
        items, turns = SHAPES.get(access, (2**20, 32))
        for work in WORK.get(access, (4, 16, 32, 48, 64, 96, 128)):
            text = SOURCE.replace("PRIVATE", private).replace("ACCESS", each).replace("AFTER", after)
            text = text.replace("ITEMS", str(items)).replace("TURNS", str(turns)).replace("WORK", str(work))
            extents = {"a": items * turns if "a[" in each else 1, "b": items * turns if "b" in each else items}
            yield access, work, pm.Kernel.from_cuda(text, "overlapped", items // GROUP, GROUP, extents, first=3)


def main() -> None:
    found = list(kernels())
    times = compared([kernel for *_, kernel in found], "what computing takes beside accesses, measured and predicted")
    lines = []
    for (access, work, _), took, said in zip(found, times.measured, times.predicted, strict=True):
        lines.append([access, str(work), *(f"{1e6 * time:.4g}" for time in (took, said)), f"{said / took:.2f}"])
    print(f"{times.device}, microseconds\n")
    print(grid(["access", "steps a turn", "measured", "predicted", "ratio"], lines))


if __name__ == "__main__":
    main()
