"""Karan Kumar's analytical model: cycles of all threads, by clock, occupancy and a weight that one run gives.

Each kernel has its own weight (equation 4). It is fitted to runs at sizes that the evaluation set does not have: to
one run of each kernel as published, or to several; the model ``occupancy-plus`` adds what today's devices need. These
three see one size of a work-group, at which a kernel's occupancy is one number that its weight takes up. What the
factor is worth is seen where work-groups and registers vary: ``varied`` is occupancy-plus fitted to several of both,
``unfilled`` the same without the factor, and both are judged on others. docs/occupancy.md says what terms stand for.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from perfmodel.basics.errors import DeviceError
from perfmodel.device import Device
from perfmodel.kernels.kernel import Kernel
from perfmodel.models.probe import needs_small_sizes
from perfmodel.projection.device_profile import occupancy_condition
from perfmodel.recipes.recipe import Recipe, TagFilter

ONCE, SEVERAL, PLUS_NAME, UNFILLED, VARIED_NAME = "one-run", "several-runs", "occupancy-plus", "unfilled", "varied"
"""The models, by name."""
KERNELS = ("matvec", "dot_product", "vector_add", "matrix_add")
HOLDING = "normalization"
"""The kernel whose registers vary."""

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
"""The clock in Hz of the paper's device ("Results", Figure 7)."""

WIDTH = 32
"""The work-items of a sub-group: one that is partly active is charged whole, and so are both sides of a divergent
branch."""


def _operations(*kinds: str) -> str:
    names = [f"f_op_{dtype}_{kind}_granularity:subgroup" for kind in kinds for dtype in ("float32", "float64")]
    return f"{WIDTH} * ({' + '.join(names)})"


COMPUTATIONS = {
    "p_fma": _operations("madd"),
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
def _weight(kernels: Sequence[str]) -> str:
    return "adjusted = " + " + ".join(f"p_adjust_{name} * f_kernel_name:{{{name}}}" for name in kernels) + "\n"


def published(
    device: str | None,
    is_cached: bool = False,
    cycles: Sequence[str] = tuple(COMPUTATIONS),
    kernels: Sequence[str] = KERNELS,
) -> str:
    """Returns the model string of equations 1 to 4 for one kind of device.

    Args:
        device: as the feature `f_occupancy` is told: ``cc:8.6``, ``arch:gfx90a``; None for one that has no occupancy.
        is_cached: by equation 3 instead of 1.
        cycles: of which operations there are terms; a fit wants those that its kernels have.
        kernels: that have a weight.
    """
    memory = CACHED if is_cached else UNCACHED
    filled = f" * f_occupancy_{device}" if device else ""
    return (
        f"{_computed(cycles)}{memory}{_weight(kernels)}shared   = {SHARED}\n"
        f"adjusted * (computed + accessed + shared) / (p_clock{filled})"
    )


def profile(string: str, device: Device | None, **values: float) -> dict[str, float]:
    """Values at which a fit holds a device's cycles and clock: the paper's, but for the `values` given.

    Args:
        string: the model's, which has some of these parameters.
        device: says its clock; without one, it is the paper's.
        values: cycles by parameter, and ``p_clock`` in Hz.
    """
    clock = device.clock_mhz * 1e6 if device and device.clock_mhz else TITAN_V_CLOCK
    known = {**PAPER, "p_clock": clock, **values}
    used = set(re.findall(r"\bp_\w+", string))
    return {name: value for name, value in known.items() if name in used}


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

USED = ("p_fma", "p_add", "p_mul", "p_div")
"""Operations that the five kernels have."""


def plus(device: str | None, cycles: Sequence[str] = USED, kernels: Sequence[str] = KERNELS) -> str:
    """Returns the better model string for one kind of device, as for `published`; None for one that has no
    occupancy."""
    filled = f" * f_occupancy_{device}" if device else ""
    return (
        f"{_computed(cycles)}{KEPT}{_weight(kernels)}{BUSY}shared   = {SHARED}\n"
        "launch   = p_launch * f_sync_kernel_launch + p_group * f_thread_groups\n"
        f"launch + adjusted * busy * (computed + accessed + shared) / (p_clock{filled})\n"
    )


def models_for(device: str | None) -> dict[str, str]:
    """Returns the recipe's models for one kind of device, as for `published`; None for one that has no occupancy."""
    every: dict[str, Any] = {"cycles": USED, "kernels": (*KERNELS, HOLDING)}
    return {
        ONCE: published(device, **every),
        SEVERAL: published(device, **every),
        PLUS_NAME: plus(device, **every),
        UNFILLED: plus(None, **every),
        VARIED_NAME: plus(device, **every),
    }


Sizes = Mapping[str, Sequence[int]]
"""The sizes of each kernel."""


def _multiples(sizes: Sequence[int], of: int) -> tuple[int, ...]:
    """Returns sizes moved to the nearest multiple, as these kernels have no remainders."""
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
    HOLDING: "normalization in registers",
}

# Work-groups, by whether they are judged, and about how many elements (of matrix-vector multiplication, rows) a kernel
# has in them, by whether the device needs small sizes. Moved to multiples of the work-group; none is one of the
# paper's, as those are judged.
ALONG: Mapping[bool, Sequence[int]] = {False: (32, 64, 256, 704, 1024), True: (48, 128, 512, 768)}
ACROSS: Mapping[bool, Sequence[tuple[int, int]]] = {
    False: ((32, 1), (8, 8), (16, 16), (44, 16), (32, 32)),
    True: ((48, 1), (16, 8), (32, 16), (32, 24)),
}
HELD: Mapping[bool, str] = {False: "1,8,32,64", True: "4,16,64"}
FEW_HELD = "8"
HELD_IN: Mapping[bool, Sequence[int]] = {False: (64, 256), True: (128, 512)}
VARIED: Mapping[bool, Sizes] = {
    False: {
        "matvec": (8192, 30_000),
        "dot_product": (40_000_000, 360_000_000),
        "vector_add": (8_000_000, 62_000_000),
        "matrix_add": (4400, 9600),
        HOLDING: (200_000, 1_000_000),
    },
    True: {
        "matvec": (1024, 3072),
        "dot_product": (640_000, 4_800_000),
        "vector_add": (640_000, 4_800_000),
        "matrix_add": (800, 1600),
        HOLDING: (20_000, 100_000),
    },
}


def varied(is_small: bool, is_judged: bool) -> list[TagFilter]:
    """Returns kernels whose work-groups and registers vary, to fit to or, others, to judge by."""
    found: list[TagFilter] = []
    for kernel, sizes in VARIED[is_small].items():
        if kernel == "matrix_add":
            for width, height in ACROSS[is_judged]:
                several = _multiples(sizes, math.lcm(width, height))
                found.append([kernel, f"lsizes:{width}x{height}", _n(several)])
            continue
        for items in HELD_IN[is_judged] if kernel == HOLDING else ALONG[is_judged]:
            held = [f"held:{HELD[is_judged]}"] if kernel == HOLDING else []
            found.append([kernel, *held, f"lsize_0:{items}", _n(_multiples(sizes, items))])
    return found


def _n(sizes: Sequence[int]) -> str:
    return f"n:{','.join(map(str, sizes))}"


def _filters(sizes: Sizes) -> list[TagFilter]:
    return [[kernel, _n(of_kernel)] for kernel, of_kernel in sizes.items()]


class Occupancy(Recipe):
    """Fits each kernel's weight to one run of it, as published, and to several; adds what devices need; and varies
    work-groups.

    The last two models differ in the factor of occupancy alone.
    """

    name = "occupancy"
    summary = "five kernels by cycles, clock and occupancy, each weighted by one run of it, or by several (Kumar)"
    models: ClassVar = models_for(None)
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

    def models_on(self, device: Device | None, notes: list[str]) -> Mapping[str, str]:
        """Returns models with the occupancy of the device's own compute capability or architecture, where it has
        one."""
        try:
            return models_for(None if device is None else occupancy_condition(device))
        except DeviceError as error:
            notes.append(f"occupancy is left out of all models: {error}")
            return models_for(None)

    def measurement_tags(self, seconds_of: Callable[[TagFilter], float]) -> Sequence[TagFilter]:
        is_small = needs_small_sizes(seconds_of)
        launches = ["launch", "lsize_0:256", f"groups:{GROUPS[is_small]}"]
        runs = [*_filters(ONE_RUN[is_small]), *_filters(SEVERAL_RUNS[is_small])]
        return [*runs, launches, *varied(is_small, is_judged=False)]

    def evaluation_tags(self, seconds_of: Callable[[TagFilter], float]) -> Sequence[TagFilter]:
        is_small = needs_small_sizes(seconds_of)
        return [*_filters(EVALUATION[is_small]), *varied(is_small, is_judged=True)]

    def is_fitted_to(self, model: str, kernel: Kernel) -> bool:
        if model in (UNFILLED, VARIED_NAME):
            return True
        size = kernel.sizes.get("n")
        if kernel.name == "launch":
            return model == PLUS_NAME
        if not is_of_one_group(kernel):
            return False
        if kernel.name == HOLDING:  # of few numbers held, one run or those that there are
            last = [_multiples(sizes[HOLDING], GROUP)[-1] for sizes in VARIED.values()]
            return kernel.tags["held"] == FEW_HELD and (model != ONCE or size in last)
        runs = (ONE_RUN,) if model == ONCE else (ONE_RUN, SEVERAL_RUNS)
        return any(size in sizes[kernel.name] for each in runs for sizes in each.values())

    def fit_options(self, model: str, device: Device | None) -> Mapping[str, Any]:
        if model in (ONCE, SEVERAL):
            return {"parameters": profile(self.models[model], device)}
        units = float(device.compute_units) if device else 1.0
        held = {**profile(self.models[model], device), "p_units": units}
        slowest = PAPER["p_global"]
        # Of two caches that explain the runs, the one of about today's size; a hit takes no longer than a miss.
        fitted = {
            "p_l1": {"value": 50.0, "min": 0.0, "max": slowest},
            "p_l2": {"value": 400.0, "min": 0.0, "max": slowest},
            "p_cache": {"value": 4e7, "min": 1e6, "max": 2e8},
            "p_launch": {"value": 3e-6},
            "p_group": {"value": 5e-10},
        }
        return {"parameters": {**held, **fitted}, "residuals": "logarithmic"}

    def label(self, kernel: Kernel) -> str:
        if kernel.name == HOLDING:
            return f"{LABELS[HOLDING]}, other numbers and work-groups"
        return LABELS[kernel.name] + ("" if is_of_one_group(kernel) else ", other work-groups")


def is_of_one_group(kernel: Kernel) -> bool:
    """Returns True if a kernel has the work-group that all runs at the paper's sizes have."""
    sides = (SIDE, SIDE) if kernel.name == "matrix_add" else (GROUP,)
    return all(int(kernel.tags[f"lsize_{axis}"]) == side for axis, side in enumerate(sides))
