"""Compares what a sub-group waits for in a loop, by the rules of the features, with the machine code of small kernels.

    python -m benchmarks.cycles_alone --out docs/results/cycles-alone.txt

Each kernel is a loop over what is in local or global memory, with chains of operations; its one text is both CUDA C++
and OpenCL C. NVRTC and NVIDIA's assembler make machine code of it (the extras nvidia and sass; no GPU is needed), which
one warp goes through alone, at the published latencies of an H100. Beside its cycles for an iteration stand those that
follow from the features: waits for loads, operations one after the other, and the machine code's instructions, one a
cycle.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import perfmodel as pm
from benchmarks.cuda_kernels.twins import Twin
from benchmarks.loads_under_way import RESTRICT, assembled_here, by_text, tell
from perfmodel.sass.machine_code import MachineCode
from perfmodel.sass.waiting import GLOBAL, LOCAL, cycles_of_trip

ITERATIONS, ITEMS, GROUP = 192, 1024, 256
OPERATION = 4.4
"""Cycles of an operation that the next one waits for."""
LATENCIES = {**dict.fromkeys(GLOBAL, 40.7), **dict.fromkeys(LOCAL, 29.0), "MUFU": 23.0}
"""Cycles to the first-level cache and to local memory (Luo et al., arXiv:2402.13499), and of a special function."""
COSTS = {
    "f_mem_waits_global": 40.7,
    "f_mem_waits_local": 29.0,
    **dict.fromkeys(("f_mem_depth_global", "f_mem_depth_local"), OPERATION),
    **{f"f_op_float32_{kind}_carried": OPERATION for kind in ("add", "madd", "min")},
}
FRAME = """
#ifdef __OPENCL_VERSION__
#define RSQRT rsqrt
#define EXP native_exp
#else
#define RSQRT rsqrtf
#define EXP __expf
#endif
KERNEL twin(GLOBAL const float4 *RESTRICT a, GLOBAL const float *RESTRICT x, GLOBAL float *out, int m, int n)
{{
    LOCAL float4 t[256];
    LOCAL float s[256];
    const int i = ID_X, l = ITEM_X;
    t[l] = a[i]; s[l] = x[i];
    BARRIER;
    float r = 0, u = 0, v = 0, w = x[i];
    float4 p = a[i];
    for (int k = 0; k < m; k++) {{ {body} }}
    out[i] = r + u + v + w;
}}
"""
APART = "float dx = {0}[k].x - p.x, dy = {0}[k].y - p.y, dz = {0}[k].z - p.z;"
ATTRACTED = "c *= c * c; c *= {0}[k]; r += c * dx; u += c * dy; v += c * dz;"
LOOPS = {
    "sum": "r += s[k];",
    "sum of global memory": "r += x[k];",
    "four products": "float q = s[k];" + 4 * "q = q * q + 1.5f;" + "r += q;",
    "four products of global memory": "float q = x[k];" + 4 * "q = q * q + 1.5f;" + "r += q;",
    "two chains": "float q = s[k], z = t[k].x;" + 2 * "q = q * z + 1.5f; z = z * q + w;" + "r += q; u += z;",
    "nearest": APART.format("t") + "float d = dx * dx + dy * dy + dz * dz; r = d < r ? d : r;",
    "exponentials": "float q = s[k] - w; r += EXP(-q * q);",
    "potential": APART.format("t") + "r += RSQRT(dx * dx + dy * dy + dz * dz + 500.0f);",
    "attraction": APART.format("t") + "float c = RSQRT(dx * dx + dy * dy + dz * dz + 500.0f);" + ATTRACTED.format("s"),
    "attraction in four dimensions": APART.format("t")
    + "float dw = t[k].w - p.w, c = RSQRT(dx * dx + dy * dy + dz * dz + dw * dw + 500.0f);"
    + ATTRACTED.format("s")
    + "w += c * dw;",
    "attraction from global memory": APART.format("a")
    + "float c = RSQRT(dx * dx + dy * dy + dz * dz + 500.0f);"
    + ATTRACTED.format("x"),
}


def of_machine(code: MachineCode) -> tuple[float, float]:
    """Returns the cycles and the instructions of an iteration, in the loop of most instructions that loads."""
    looping = [piece.loop for piece in code.pieces if piece.loop and piece.memory.loads + piece.shared.loads]
    loop = max(looping, key=lambda each: len(each.own))
    counters = [each for each in loop.own if each.opcode in ("IADD3", "UIADD3", "VIADD")]
    numbers = [int(found, 16) for each in counters for found in re.findall(r"(?<![\w.])-?0x([0-9a-f]+)", each.operands)]
    iterations = min(number for number in numbers if number)  # that of a counter: addresses move by bytes
    return cycles_of_trip(loop.own, LATENCIES) / iterations, len(loop.own) / iterations


def of_rules(kernel: pm.Kernel, instructions: float) -> float:
    """Returns the cycles of an iteration that follow from the features of a work-item."""
    countable = by_text(kernel)
    found = {name: float(pm.feature(f"{name}_granularity:longest").eval(countable)) for name in COSTS}
    return instructions + sum(COSTS[name] * value for name, value in found.items()) / ITEMS / ITERATIONS


def compared() -> Iterator[tuple[str, float, float, float]]:
    """Iterates over loops' names, and cycles of an iteration: of machine code, by rules from PTX, from OpenCL C."""
    for name, body in LOOPS.items():
        twins = {
            language: Twin(
                body=FRAME.format(body=body).replace("RESTRICT", word),
                grid=(f"{ITEMS // GROUP}",),
                block=(GROUP,),
                args={"a": "n", "x": "n", "out": "n"},
                sizes={"n": ITEMS, "m": ITERATIONS},
            )
            for language, word in RESTRICT.items()
        }
        cuda = twins["cuda"].cuda()
        code = assembled_here(cuda)
        cycles, instructions = of_machine(code)
        yield name, cycles, of_rules(cuda, instructions), of_rules(twins["opencl"].opencl(), instructions)


if __name__ == "__main__":
    tell("Cycles of an iteration of a warp that runs alone", compared(), float)
