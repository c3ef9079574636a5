"""Compares what accesses take that keep an order beyond their work-group, measured and predicted.

    python -m benchmarks.fences --device cuda --predict h200 \
        --store docs/results/fences-nvidia-h200-aa3198/measurements.sqlite.xz

Each work-item of a kernel in CUDA accesses one word after another, side by side with its neighbours' in 16 MB, in some
order: as it comes (relaxed), with a fence behind each access, or by an access that releases or acquires itself. Rows of
the table differ by how many work-items a compute unit of an H200 has. Times come from the store; kernels that it lacks
are measured if the device is here. They join no fit; the prices of fences (`p_fence`, `p_wait_fence`) were read off
them.
"""

from __future__ import annotations

from collections.abc import Iterator

import perfmodel as pm
from benchmarks.kernels_compared import compared
from perfmodel.basics.tables import grid

UNITS = 132
WORDS, TURNS = 2**22, 200
SOURCE = """
extern "C" __global__ void ordered(float *x)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x, all = gridDim.x * blockDim.x;
    float sum = 0;
    for (unsigned turn = 0; turn < TURNS; turn++) {
        float *p = x + ((i + turn * all) & (WORDS - 1)), v = 0;
        ACCESS
        sum += v;
    }
    if (sum == -1) x[0] = sum;
}
"""
ATOMIC = 'asm volatile("atom.{}.gpu.global.add.f32 %0, [%1], %2;" : "=f"(v) : "l"(p), "f"(1.0f) : "memory");'
LOAD = 'asm volatile("ld.{}.gpu.global.f32 %0, [%1];" : "=f"(v) : "l"(p) : "memory");'
ACCESSES = {
    "store": "*(volatile float *)p = turn;",
    "store, fence of the block": "*(volatile float *)p = turn; __threadfence_block();",
    "store, fence": "*(volatile float *)p = turn; __threadfence();",
    "fence": "__threadfence();",
    **{f"atomic, {order}": ATOMIC.format(order) for order in ("relaxed", "acquire", "release", "acq_rel")},
    **{f"load, {order}": LOAD.format(order) for order in ("relaxed", "acquire")},
}
"""The statements of each turn."""
SHAPES = ((1, 32), (UNITS, 32), (4 * UNITS, 128), (16 * UNITS, 128))
"""Work-groups, and work-items of each."""


def kernels() -> Iterator[tuple[str, int, int, pm.Kernel]]:
    """Yields what each turn does, work-groups and work-items of each, and the kernel."""
    for name, access in ACCESSES.items():
        text = SOURCE.replace("ACCESS", access).replace("WORDS", str(WORDS)).replace("TURNS", str(TURNS))
        for groups, items in SHAPES:
            yield name, groups, items, pm.Kernel.from_cuda(text, "ordered", groups, items, {"x": WORDS})


def main() -> None:
    found = list(kernels())
    times = compared([kernel for *_, kernel in found], "what an order beyond the work-group takes")
    lines = []
    for (name, groups, items, _), took, said in zip(found, times.measured, times.predicted, strict=True):
        by_turn = [f"{1e9 * time / TURNS:.4g}" for time in (took, said)]
        lines.append([name, str(groups), str(items), *by_turn, f"{said / took:.2f}"])
    print(f"{times.device}, nanoseconds of a turn\n")
    print(grid(["a turn", "work-groups", "of work-items", "measured", "predicted", "ratio"], lines))


if __name__ == "__main__":
    main()
