"""Compares what instructions take of a GPU's schedulers and pipes, alone and two kinds in turn, measured and predicted.

    python -m benchmarks.issue_rates --device cuda --predict h200 \
        --store docs/results/issue-rates-nvidia-h200-aa3198/measurements.sqlite.xz

Each thread of a kernel in CUDA goes through eight chains of one instruction, or through eight of each of two kinds in
turn; compute units are full of them, so that what limits is the issue. Times come from the store; kernels that it lacks
are measured if the device is here. These show what `perfmodel.sass.pipes` and the model's `pipes` say; they join no
fit.
"""

from __future__ import annotations

from collections.abc import Iterator

import perfmodel as pm
from benchmarks.kernels_compared import compared
from perfmodel.basics.tables import grid

GROUP, GROUPS, TRIPS, CHAINS = 1024, 264, 2048, 8
OPERATIONS = {
    "FFMA": ("f", "fma.rn.f32 {0}, {0}, 0f3F7FF000, 0f3A000000;"),
    "FMNMX": ("f", "max.f32 {0}, {0}, %1;"),
    "IADD3": ("r", "add.s32 {0}, {0}, %1;"),
    "SHF": ("r", "shf.l.wrap.b32 {0}, {0}, %1, 7;"),
    "IMAD": ("r", "mad.lo.s32 {0}, {0}, 77, %1;"),
    "IMAD.HI": ("r", "mul.hi.u32 {0}, {0}, %1;"),
    "IMAD.WIDE": ("l", "{{ .reg .b32 t, u; mov.b64 {{t, u}}, {0}; mul.wide.u32 {0}, t, u; }}"),
    "IADD of 64 bits": ("l", "add.s64 {0}, {0}, %1;"),
    "IMAD of 64 bits": ("l", "mad.lo.s64 {0}, {0}, %1, {0};"),
    "I2F, F2I of 64 bits": ("l", "{{ .reg .f32 t; cvt.rn.f32.u64 t, {0}; cvt.rzi.u64.f32 {0}, t; }}"),
    "IDP": ("r", "dp4a.u32.u32 {0}, {0}, %1, {0};"),
    "HFMA2": ("r", "fma.rn.f16x2 {0}, {0}, %1, {0};"),
    "FADD": ("f", "add.rn.f32 {0}, {0}, %1;"),
    "FMUL": ("f", "mul.rn.f32 {0}, {0}, %1;"),
    "LEA": ("r", "{{ .reg .b32 t; shl.b32 t, {0}, 3; add.s32 {0}, t, %1; }}"),
    "PRMT": ("r", "prmt.b32 {0}, {0}, %1, 0x6521;"),
    "ISETP, SEL": ("r", "{{ .reg .pred p; setp.lt.s32 p, {0}, %1; selp.b32 {0}, {0}, 77, p; }}"),
    "DMUL": ("d", "mul.rn.f64 {0}, {0}, %1;"),
    "DSETP": ("d", "{{ .reg .pred p; setp.lt.f64 p, {0}, %1; selp.f64 {0}, {0}, %1, p; }}"),
    "DFMA": ("d", "fma.rn.f64 {0}, {0}, 0d3FEFFE0000000000, 0d3F40000000000000;"),
    "DADD": ("d", "add.rn.f64 {0}, {0}, 0d3F40000000000000;"),
    "MUFU": ("f", "ex2.approx.ftz.f32 {0}, {0};"),
    "POPC": ("r", "popc.b32 {0}, {0};"),
    "FRND": ("f", "cvt.rni.f32.f32 {0}, {0};"),
    "FLO": ("r", "bfind.u32 {0}, {0};"),
    "MUFU of doubles": ("d", "rcp.approx.ftz.f64 {0}, {0};"),
    "I2F, F2I of doubles": ("r", "{{ .reg .f64 t; cvt.rn.f64.s32 t, {0}; cvt.rzi.s32.f64 {0}, t; }}"),
    "F2F of halves": ("f", "{{ .reg .b16 t; cvt.rn.f16.f32 t, {0}; cvt.f32.f16 {0}, t; }}"),
    "I2F, F2I": ("r", "{{ .reg .f32 t; cvt.rn.f32.s32 t, {0}; cvt.rzi.s32.f32 {0}, t; }}"),
    "F2F of doubles": ("f", "{{ .reg .f64 t; cvt.f64.f32 t, {0}; cvt.rn.f32.f64 {0}, t; }}"),
    "SHFL": ("r", "shfl.sync.idx.b32 {0}, {0}, %1, 31, -1;"),
    "LDS": ("r", "ld.shared.u32 {0}, [{0}];"),
}
MIXED = {
    "FFMA": ("SHF", "IADD3", "IMAD", "IMAD.WIDE", "FADD", "HFMA2", "DFMA", "MUFU", "FRND", "SHFL", "LDS"),
    "DFMA": ("SHF", "IADD3", "IMAD", "DADD", "MUFU", "F2F of doubles", "LDS"),
    "SHF": ("IMAD", "MUFU", "FMNMX", "I2F, F2I", "LDS", "IMAD.WIDE", "IMAD.HI", "IADD of 64 bits"),
    "IADD3": ("IMAD", "IMAD.WIDE", "IMAD.HI", "FMNMX", "MUFU"),
    "ISETP, SEL": ("IMAD", "IMAD.HI"),
}
TYPES = {"f": "float", "r": "unsigned", "l": "unsigned long long", "d": "double"}
SOURCE = """
extern "C" __global__ void rates(unsigned *out, unsigned m)
{
    __shared__ unsigned own[GROUP];
    own[threadIdx.x] = (unsigned) __cvta_generic_to_shared(own + threadIdx.x);
    DECLARED
    #pragma unroll 4
    for (unsigned k = 0; k < m; k++) {
        STEPS
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = SUM;
}
"""


def source(kinds: tuple[str, ...]) -> str:
    """Returns the text of a kernel that executes instructions of these kinds in turn."""
    declared, steps, sums = [], [], []
    for number, kind in enumerate(kinds):
        letter, step = OPERATIONS[kind]
        names = [f"v{number}_{chain}" for chain in range(CHAINS)]
        first = "own[threadIdx.x]" if kind == "LDS" else "threadIdx.x + {}"
        declared += [f"{TYPES[letter]} {name} = {first.format(chain)};" for chain, name in enumerate(names)]
        steps.append(
            [(letter, name, following, step) for name, following in zip(names, names[1:] + names[:1], strict=True)]
        )
        sums += [f"(unsigned) {name}" for name in names]
    text = []
    for chains in zip(*steps, strict=True):
        for letter, name, following, step in chains:
            text.append(f'asm volatile("{step.format("%0")}" : "+{letter}"({name}) : "{letter}"({following}));')
    return (
        SOURCE.replace("GROUP", str(GROUP))
        .replace("DECLARED", "\n    ".join(declared))
        .replace("STEPS", "\n        ".join(text))
        .replace("SUM", " + ".join(sums))
    )


def kernels() -> Iterator[tuple[str, pm.Kernel]]:
    """Yields what is executed in turn, and the kernel."""
    mixes = [(kind,) for kind in OPERATIONS] + [(one, other) for one, others in MIXED.items() for other in others]
    for kinds in mixes:
        arrays = {"out": GROUPS * GROUP}
        yield " + ".join(kinds), pm.Kernel.from_cuda(source(kinds), "rates", GROUPS, GROUP, arrays, m=TRIPS)


def main() -> None:
    found = list(kernels())
    names = [kinds for kinds, _ in found]
    times = compared([kernel for _, kernel in found], "what instructions take of schedulers and pipes")
    seconds = dict(zip(names, times.measured, strict=True))
    lines = []
    for kinds, said in zip(names, times.predicted, strict=True):
        took = seconds[kinds]
        alone = [seconds[kind] for kind in kinds.split(" + ")]
        each = [f"{time / seconds['FFMA']:.2f}" for time in (took, max(alone), sum(alone), said)]
        lines.append([kinds, *each, f"{said / took:.2f}"])
    print(f"{times.device}, times as many times that of as many single-precision multiply-adds\n")
    print(grid(["instructions", "measured", "longer alone", "both alone", "predicted", "predicted / measured"], lines))


if __name__ == "__main__":
    main()
