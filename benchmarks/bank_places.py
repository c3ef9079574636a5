"""Compares what accesses of local memory take by the places that lanes go to, measured and predicted.

    python -m benchmarks.bank_places --device cuda --predict h200 \
        --store docs/results/bank-places-nvidia-h200-aa3198/measurements.sqlite.xz

Each lane of a warp loads 4, 8 or 16 bytes of local memory, or stores them: all at one place, or side by side; or at so
many places that lanes share, in turn (the first lane at the first place, the second at the second) or in runs (the
first lanes all at the first); and these places lie in the same banks, or side by side. Rows of the table are kernels in
CUDA; the last columns are cycles of a compute unit for each warp's access. Times come from the store; kernels that it
lacks are measured if the device is here. They join no fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import perfmodel as pm
from benchmarks.kernels_compared import compared
from perfmodel.basics.tables import grid

UNITS, GROUPS, GROUP, TURNS, ACCESSES, CLOCK = 132, 4, 256, 256, 8, 1.98e9
SOURCE = """
extern "C" __global__ void places(float *out, int step)
{
    __shared__ __align__(16) float own[12288];
    const int lane = threadIdx.x % 32;
    for (int k = threadIdx.x; k < 12288; k += blockDim.x) own[k] = k;
    __syncthreads();
    unsigned at = (unsigned)__cvta_generic_to_shared(own) + 4 * (PLACE);
    float sum = lane, other = 1;
    #pragma unroll 1
    for (int turn = 0; turn < TURNS; turn++, at += step) {
        float a, b, c, d;
        EACH
    }
    __syncthreads();
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum + other + own[threadIdx.x];
}
"""
SHARED = (2, 4, 8, 16)
USES = {1: "sum += a;", 2: "sum = sum * a + b;", 4: "sum = sum * a + b; other = other * c + d;"}
"""Each number is used, as compilers load no others."""
FORMS = {1: ("f32", "a"), 2: ("v2.f32", "a, b"), 4: ("v4.f32", "a, b, c, d")}


def places(words: int) -> Iterator[tuple[str, str]]:
    """Yields where lanes go, in words, by what it is called."""
    yield "one place", "0"
    yield "side by side", f"lane * {words}"
    yield "each in the same banks", "lane * 32"
    for count, (how, number) in product(SHARED, {"in turn": "lane % {}", "in runs": "lane * {} / 32"}.items()):
        place = number.format(count)
        yield f"{count} {how}, in the same banks", f"{place} * 32"
        yield f"{count} {how}, side by side", f"{place} * {words}"


def kernels() -> Iterator[tuple[str, str, pm.Kernel]]:
    """Yields what each lane accesses, where it goes, and the kernel."""
    for words, (form, names) in FORMS.items():
        for direction, (place, where) in product(("load", "store"), places(words)):
            registers = names.split(", ")
            operands = f"{{{', '.join(f'%{number}' for number in range(words))}}}" if words > 1 else "%0"
            each = []
            for number in range(ACCESSES):
                address = f"[%{words}+{number * 4096}]"
                if direction == "load":
                    given = ", ".join(f'"=f"({name})' for name in registers)
                    each.append(f'asm volatile("ld.shared.{form} {operands}, {address};" : {given} : "r"(at));')
                    each.append(USES[words])
                else:
                    given = ", ".join('"f"(sum)' for _ in registers)
                    each.append(f'asm volatile("st.shared.{form} {address}, {operands};" :: {given}, "r"(at));')
            text = SOURCE.replace("PLACE", where).replace("TURNS", str(TURNS)).replace("EACH", "\n        ".join(each))
            groups = UNITS * GROUPS
            kernel = pm.Kernel.from_cuda(text, "places", groups, GROUP, {"out": groups * GROUP}, step=0)
            yield f"{direction} {4 * words} bytes", place, kernel


def main() -> None:
    found = list(kernels())
    times = compared([kernel for *_, kernel in found], "what accesses of local memory take, measured and predicted")
    accesses = GROUPS * GROUP / 32 * TURNS * ACCESSES
    lines = []
    for (access, place, _), took, said in zip(found, times.measured, times.predicted, strict=True):
        cycles = [CLOCK * time / accesses for time in (took, said)]
        lines.append([access, place, f"{1e6 * took:.4g}", *(f"{each:.2f}" for each in cycles), f"{said / took:.2f}"])
    print(f"{times.device}\n")
    print(grid(["access", "lanes", "microseconds", "cycles", "predicted", "ratio"], lines))


if __name__ == "__main__":
    main()
