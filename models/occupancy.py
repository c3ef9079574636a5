"""Karan Kumar's analytical model: cycles of all threads, by clock, occupancy and a weight that one run gives.

Each kernel has its own weight (equation 4). It is fitted to runs at sizes that the evaluation set does not have: to
one run of each kernel as published, or to several; the model ``occupancy-plus`` adds what today's devices need.
docs/occupancy.md says what the terms stand for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from perfmodel.device import Device
from perfmodel.kernel import Kernel
from perfmodel.models.probe import needs_small_sizes
from perfmodel.recipe import Recipe, TagFilter

KERNELS = ("matvec", "dot_product", "vector_add", "matrix_add")

# Cycles of one operation, and of one access by the level of memory that answers it ("The Analytical Model").
PAPER: Mapping[str, float] = {
    "p_fma": 2.0,
    "p_add": 24.0,
    "p_mul": 32.0,
    "p_div": 96.0,
    "p_global": 500.0,
    "p_l2": 250.0,
    "p_l1": 5.0,
    "p_shared": 5.0,
}
TITAN_V_CLOCK = 1.455e9
"""Hz, of the paper's device ("Results", Figure 7)."""

WIDTH = 32
"""Work-items of a sub-group: one that is partly active is charged whole, and so both sides of a divergent branch."""


def _operations(*kinds: str) -> str:
    names = [f"f_op_{dtype}_{kind}_granularity:subgroup" for kind in kinds for dtype in ("float32", "float64")]
    return f"{WIDTH} * ({' + '.join(names)})"


COMPUTATIONS = {
    "p_fma": _operations("madd", "fma"),
    "p_add": _operations("add"),
    "p_mul": _operations("mul"),
    "p_div": _operations("div"),
}


def _computed(cycles: Sequence[str]) -> str:
    return "computed = " + " + ".join(f"{name} * {COMPUTATIONS[name]}" for name in cycles) + "\n"


ACCESSES = f"{WIDTH} * f_mem_access_global_granularity:subgroup"
SHARED = f"p_shared * {WIDTH} * f_mem_access_local_granularity:subgroup"

# Equation 1 and, of a device with caches, equation 3. An access is a hit of the first level if its line was touched by
# its own work-group before, and of the second if by another one.
UNCACHED = f"accessed = p_global * {ACCESSES}\n"
CACHED = f"""\
asked    = f_mem_transactions_global_block:32
own      = min(f_mem_footprint_global_granularity:workgroup_block:32 / 32, asked)
all      = min(f_mem_footprint_global_block:32 / 32, own)
accessed = {ACCESSES} / max(asked, 1) * (p_l1 * (asked - own) + p_l2 * (own - all) + p_global * all)
"""
# One by the adjusting weight of the kernel, as fits find factors more surely than divisors; 0 for kernels that have
# none, of which only the launch is predicted.
WEIGHT = "adjusted = " + " + ".join(f"p_adjust_{name} * f_kernel_name:{{{name}}}" for name in KERNELS) + "\n"


def published(device: str, is_cached: bool = False, cycles: Sequence[str] = tuple(COMPUTATIONS)) -> str:
    """The model string of equations 1 to 4 for one kind of device.

    Args:
        device: as the feature `f_occupancy` is told: ``cc:8.6``, ``arch:gfx90a``.
        is_cached: by equation 3 instead of 1.
        cycles: of which operations there are terms; a fit wants those that its kernels have.
    """
    memory = CACHED if is_cached else UNCACHED
    return (
        f"{_computed(cycles)}{memory}{WEIGHT}shared   = {SHARED}\n"
        f"adjusted * (computed + accessed + shared) / (p_clock * f_occupancy_{device})"
    )


def profile(string: str, device: Device | None, **values: float) -> dict[str, tuple[float, float]]:
    """Bounds of a fit that hold a device's cycles and clock fixed: the paper's, but for the `values` given.

    Args:
        string: the model's, which has some of these parameters.
        device: says its clock; without one, it is the paper's.
        values: cycles by parameter, and ``p_clock`` in Hz.
    """
    clock = device.clock_mhz * 1e6 if device and device.clock_mhz else TITAN_V_CLOCK
    known = {**PAPER, "p_clock": clock, **values}
    used = set(re.findall(r"\bp_\w+", string))
    return {name: (value, value) for name, value in known.items() if name in used}


# Equation 3 once more, where a last-level cache keeps what the launch before left in it, if that fits; what all groups
# touch is then a hit of the second level. How long a hit takes is fitted here, against `p_global`.
KEPT = f"""\
asked    = f_mem_transactions_global_block:32
own      = min(f_mem_footprint_global_granularity:workgroup_block:32 / 32, asked)
all      = min(f_mem_footprint_global_block:32 / 32, own)
filled   = f_mem_footprint_global_block:32 / p_cache
missed   = all * filled ** 8 / (1 + filled ** 8)
accessed = {ACCESSES} / max(asked, 1) * (p_l1 * (asked - own) + p_l2 * (own - missed) + p_global * missed)
"""

# The paper's threads are those of the whole device: while some of its units have no work-group, or fewer than the
# busiest one, time goes with what the busiest does.
BUSY = "busy     = ceil(f_thread_groups / p_units) * p_units / f_thread_groups\n"

USED = ("p_fma", "p_add", "p_mul")
"""Operations that the four kernels have."""

PLUS = f"""\
{_computed(USED)}{KEPT}{WEIGHT}{BUSY}shared   = {SHARED}
launch   = p_launch * f_sync_kernel_launch + p_group * f_thread_groups
launch + adjusted * busy * (computed + accessed + shared) / (p_clock * f_occupancy_{{device}})
"""


def plus(device: str) -> str:
    """The better model string for one kind of device, as for `published`."""
    return PLUS.replace("{device}", device)


Sizes = Mapping[str, Sequence[int]]
"""By kernel."""


def _multiples(sizes: Sequence[int], of: int) -> tuple[int, ...]:
    """Each moved to the nearest multiple, as these kernels have no remainders."""
    return tuple(max(1, round(size / of)) * of for size in sizes)


GROUP, SIDE = 256, 16
"""Work-items of a work-group of the vector kernels, and along each side of one of matrix addition."""

# Tables 4 to 7, by whether the device needs small sizes.
EVALUATION: Mapping[bool, Sizes] = {
    False: {
        "matvec": (*range(1024, 32768, 2048), 32768),
        "dot_product": _multiples(range(100_000_000, 1_150_000_001, 50_000_000), GROUP),
        "vector_add": _multiples(range(10_000_000, 100_000_001, 5_000_000), GROUP),
        "matrix_add": _multiples(range(1000, 20_001, 1000), SIDE),
    },
    True: {
        "matvec": (256, *range(768, 4097, 512)),
        "dot_product": _multiples(range(1_000_000, 10_000_001, 1_500_000), GROUP),
        "vector_add": _multiples(range(1_000_000, 10_000_001, 1_500_000), GROUP),
        "matrix_add": _multiples(range(500, 3001, 500), SIDE),
    },
}
ONE_RUN: Mapping[bool, Sizes] = {
    False: {"matvec": (16384,), "dot_product": (480_000_000,), "vector_add": (48_000_000,), "matrix_add": (8192,)},
    True: {"matvec": (2048,), "dot_product": (4_800_000,), "vector_add": (4_800_000,), "matrix_add": (1600,)},
}
SEVERAL_RUNS: Mapping[bool, Sizes] = {
    False: {
        "matvec": (1536, 2560, 3584, 6144, 12288, 20480, 30720),
        "dot_product": (4_194_304, 80_000_000, 220_000_000, 420_000_000, 660_000_000, 880_000_000, 1_120_000_000),
        "vector_add": (1_048_576, 8_000_000, 22_400_000, 41_600_000, 64_000_000, 92_800_000),
        "matrix_add": (1024, 1600, 2208, 2560, 5120, 9600, 16960),
    },
    True: {
        "matvec": (512, 1024, 1536, 2048, 3072, 4608),
        "dot_product": (640_000, 1_600_000, 3_200_000, 4_800_000, 8_000_000, 12_000_000),
        "vector_add": (640_000, 1_600_000, 3_200_000, 4_800_000, 8_000_000, 12_000_000),
        "matrix_add": (320, 800, 1200, 1600, 2400, 3200),
    },
}
GROUPS = {False: "1024,16384,262144", True: "16,256,4096"}
LABELS = {
    "matvec": "matrix-vector multiplication",
    "dot_product": "dot product",
    "vector_add": "vector addition",
    "matrix_add": "matrix addition",
}
DEVICE = "cc:9.0"
"""Whose occupancy the recipes take. A kernel's is the same at all its sizes, so that on another device its weight takes
up what differs."""


def _filters(sizes: Sizes) -> list[TagFilter]:
    return [[kernel, f"n:{','.join(map(str, of_kernel))}"] for kernel, of_kernel in sizes.items()]


ONCE, SEVERAL, PLUS_NAME = "one-run", "several-runs", "occupancy-plus"


class Occupancy(Recipe):
    """The weight of each kernel from one run of it, as published, and from several; last, with what devices add."""

    name = "occupancy"
    summary = "four kernels by cycles, clock and occupancy, each weighted by one run of it, or by several (Kumar)"
    models: ClassVar = {
        ONCE: published(DEVICE, cycles=USED),
        SEVERAL: published(DEVICE, cycles=USED),
        PLUS_NAME: plus(DEVICE),
    }
    ranked = False
    baselines = False
    # Tables 4 to 7 and 8: means over sizes of |predicted / measured - 1|.
    published: ClassVar = {
        "Titan V": {
            "matrix-vector multiplication": 0.0352,
            "dot product": 0.0875,
            "vector addition": 0.0503,
            "matrix addition": 0.103,
        }
    }

    def measurement_tags(self, seconds_of: Callable[[TagFilter], float]) -> Sequence[TagFilter]:
        is_small = needs_small_sizes(seconds_of)
        launches = ["launch", "lsize_0:256", f"groups:{GROUPS[is_small]}"]
        return [*_filters(ONE_RUN[is_small]), *_filters(SEVERAL_RUNS[is_small]), launches]

    def evaluation_tags(self, seconds_of: Callable[[TagFilter], float]) -> Sequence[TagFilter]:
        return _filters(EVALUATION[needs_small_sizes(seconds_of)])

    def is_fitted_to(self, model: str, kernel: Kernel) -> bool:
        once = any(kernel.sizes.get("n") in sizes.get(kernel.name, ()) for sizes in ONE_RUN.values())
        return once if model == ONCE else kernel.name in KERNELS or model == PLUS_NAME

    def fit_options(self, model: str, device: Device | None) -> Mapping[str, Any]:
        if model != PLUS_NAME:
            return {"bounds": profile(self.models[model], device)}
        units = float(device.compute_units) if device else 1.0
        held = {**profile(self.models[model], device), "p_units": (units, units)}
        slowest = PAPER["p_global"]
        # Of two caches that explain the runs, the one of about today's size; a hit takes no longer than a miss.
        open_ = {"p_l1": (0.0, slowest), "p_l2": (0.0, slowest), "p_cache": (1e6, 2e8)}
        start = {"p_l1": 50.0, "p_l2": 400.0, "p_cache": 4e7, "p_launch": 3e-6, "p_group": 5e-10}
        return {"bounds": {**held, **open_}, "start": start, "residuals": "logarithmic"}

    def label(self, kernel: Kernel) -> str:
        return LABELS[kernel.name]
