"""Some emulated work-groups show what data decide in a kernel: how its branches go, and which addresses it touches."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from perfmodel.basics.errors import EmulationError
from perfmodel.counting import resampling
from perfmodel.counting.counts import LINE_BYTES
from perfmodel.counting.usual_budget import GIVEN_MORE
from perfmodel.kernels.bound_kernel import BoundKernel
from perfmodel.kernels.emulation import Profile, emulate
from perfmodel.kernels.sample_size import large_enough
from perfmodel.kernels.touched import TouchedByGroups, touched
from perfmodel.opencl_c.emulation import EndlessError, Machine
from perfmodel.opencl_c.emulation.code_generation import code_of
from perfmodel.opencl_c.static.branch_statistics import BranchRun, Observed, observed

MOST_STEPS_FOR_PLACES = 5_000
"""Work-groups are not emulated any further only to see which addresses they touch."""
MOST_WORK_FOR_DATA = 150_000
"""So many statements and accesses of few work-items are emulated with the usual budget to see what data decide, for
about a second, before some iterations of long loops stand for the others."""


@dataclass(frozen=True)
class Seen:
    """Holds what work-groups showed.

    Attributes:
        branches: what was seen of each branch, by its number.
        is_cut: some iterations of long loops stood for the others.
    """

    branches: Mapping[int, Observed]
    touched: TouchedByGroups
    is_cut: bool


def seen(kernel: BoundKernel, arrays: Mapping[str, Any] | None, groups: str, seed: int) -> Seen:
    """Returns what some work-groups of a kernel in OpenCL C show of branches and addresses.

    Args:
        arrays, groups, seed: see `perfmodel.emulate`.
    """
    program = kernel.program.as_opencl()
    budget = program.budget
    options: dict[str, Any] = {"groups": groups, "seed": seed, "work": budget * MOST_WORK_FOR_DATA}
    try:
        profile = large_enough(
            groups,
            lambda parts: _emulated(kernel, arrays, **options, samples=parts),
            lambda found: found.emulation.blocks[:, :, 1].sum(axis=1),
            lambda found: found.emulation.nominal_s,
            budget,
            code_of(program.lowered).can_be_cut,
        )
    except EndlessError as error:
        raise EmulationError(
            f"{error.place}: the loop of {error.loop!r} in kernel {kernel.name!r} goes on for longer than counting may "
            "take; give smaller sizes, the data that end it by kernel.as_observed(arrays) (--arg NAME=FILE.npy), or "
            f"more time {GIVEN_MORE}"
        ) from error
    emulation = profile.emulation
    items, ran = math.prod(emulation.local_size), len(emulation.groups)
    entered = items, math.ceil(items / emulation.machine.subgroup_size), 1

    def run(weights: Sequence[int]) -> BranchRun:
        """Returns how the groups ran together, some of them several times, as parts of their loops did."""
        of_groups, of_parts = weights[:ran], weights[ran:]
        blocks, sides = 2 * emulation.blocks, 2 * emulation.sides
        for times, (more_blocks, more_sides) in zip(of_parts, emulation.parts, strict=True):
            blocks, sides = blocks + (times - 2) * more_blocks, sides + (times - 2) * more_sides
        return BranchRun(
            entered=(2 * entered[0] * sum(of_groups), 2 * entered[1] * sum(of_groups), 2 * sum(of_groups)),
            blocks=np.tensordot(of_groups, blocks, 1).tolist(),
            sides=np.tensordot(of_groups, sides, 1).tolist(),
        )

    parts = len(emulation.parts)
    if groups == "sample" and ran < profile.work_groups:
        replicas = resampling.weights(ran + parts)
    else:
        replicas = [[1] * ran + weights for weights in resampling.weights(parts)]
    branches = observed(emulation.kernel, run([1] * ran + [2] * parts), [run(weights) for weights in replicas])
    return Seen(branches, touched(emulation, arrays or {}), bool(parts))


def places(kernel: BoundKernel) -> TouchedByGroups:
    """Returns what some work-groups of a kernel in OpenCL C touch, within a second or so."""
    profile = _emulated(kernel, None, groups="sample", extrapolate=True, steps=MOST_STEPS_FOR_PLACES)
    return touched(profile.emulation, ())


def _emulated(kernel: BoundKernel, arrays: Mapping[str, Any] | None, **options: Any) -> Profile:
    """Emulates work-groups by what they do alone, and counts blocks of cache lines beside those of transactions."""
    return emulate(kernel, arrays, machine=Machine(line_bytes=LINE_BYTES), checks=False, **options)
