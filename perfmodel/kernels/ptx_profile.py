"""Holds what emulated blocks of a PTX kernel did, to be printed and looked at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.counting.counts import AccessCount, KernelCounts
from perfmodel.counting.quasipolynomial import QuasiPolynomial
from perfmodel.counting.resampling import SAMPLES
from perfmodel.kernels.arguments import check_known
from perfmodel.kernels.bound_kernel import BoundKernel
from perfmodel.kernels.emulation_profile import EmulationProfile, frame
from perfmodel.ptx.counting.counter import counts_of
from perfmodel.ptx.emulation.emulation import Emulation
from perfmodel.ptx.emulation.launch import Sample

if TYPE_CHECKING:
    import pandas as pd


def emulate(
    kernel: BoundKernel,
    arrays: Mapping[str, Any] | None = None,
    groups: Any = "first",
    width: int = 32,
    seed: int = 0,
    steps: int | None = None,
    extrapolate: bool = False,
    samples: int = SAMPLES,
) -> PtxProfile:
    """Emulates blocks of a PTX kernel; see `perfmodel.emulate`."""
    program: Any = kernel.program
    kernel.bind({})
    options = {"arrays": arrays, "groups": groups, "width": width, "seed": seed, "steps": steps}
    options |= {"extrapolate": extrapolate, "samples": samples}
    return PtxProfile(
        kernel, program.emulated(kernel.bound, **options), frozenset({**program.arrays, **(arrays or {})})
    )


class PtxProfile(EmulationProfile):
    """Holds what the emulated blocks of a launch of PTX did.

    Attributes:
        emulation: the raw counts.
    """

    called = "block"

    def __init__(self, kernel: BoundKernel, emulation: Emulation, given: frozenset[str] = frozenset()) -> None:
        self.kernel, self.emulation, self._given = kernel, emulation, given
        launch = kernel.launch()
        self._arrays = {each.name: (str(each.dtype), each.size) for each in launch.arrays()}
        self.global_size, self.local_size = launch.global_size, launch.local_size
        self.work_groups = emulation.launch.blocks

    def array(self, name: str) -> NDArray[Any]:
        """Returns what an array holds after the emulated blocks, in the type of its argument.

        Raises:
            KernelError: for an array that the kernel doesn't have.
        """
        check_known(self.kernel.name, [name], self._arrays, "array")
        return self.emulation.array(name).view(np.dtype(self._arrays[name][0]))

    @cached_property
    def counts(self) -> KernelCounts:
        """The counts of one block, the mean of those that were emulated."""
        blocks = self.emulation.sample.blocks
        mean = replace(self.emulation, sample=Sample(blocks, (1 / len(blocks),) * len(blocks)))
        return counts_of(mean, self._arrays, self._given, self.emulation.width)

    @cached_property
    def operations(self) -> pd.DataFrame:
        """Returns operations by kind and type, as a DataFrame; ``use`` is ``values`` for what features count,
        ``indices`` for arithmetic of addresses, loops and conditions."""
        found: dict[tuple[str, str, str], float] = {}
        for use, operations in (("values", self.counts.operations), ("indices", self.counts.index_operations or ())):
            for each in operations:
                key = (use, each.kind, each.dtype)
                found[key] = found.get(key, 0.0) + each.per_execution * _number(each.executions.workitem)
        return frame(["use", "kind", "dtype", "count"], [(*key, n) for key, n in sorted(found.items(), reverse=True)])

    @cached_property
    def accesses(self) -> pd.DataFrame:
        """Returns a DataFrame with a row for each access; those that a compiler made of one in the source are one."""
        columns = ["space", "direction", "type", "bits", "text", "count", "subgroups", "strides"]
        return frame(columns, [self._access(each) for each in self.counts.accesses])

    def _access(self, access: AccessCount) -> tuple[Any, ...]:
        subgroups = access.executions.subgroup
        strides = [str(access.local_strides.get(axis, 0) or "?") for axis in range(len(self.local_size))]
        return (
            access.space,
            access.direction,
            access.dtype,
            access.bits,
            access.text,
            _number(access.executions.workitem),
            0.0 if subgroups is None else _number(subgroups),
            " ".join(strides),
        )

    @cached_property
    def branches(self) -> pd.DataFrame:
        """Returns how often sub-groups met each branch, and how often they diverged at it, as a DataFrame."""
        rows = []
        for branch in self.counts.branches:
            met = branch.met.subgroup
            pair = [0.0 if each is None else _number(each) for each in (met, branch.divergent)]
            rows.append((branch.kind, branch.text, *pair))
        return frame(["branch", "place", "subgroups", "divergent"], rows)

    @cached_property
    def footprints(self) -> pd.DataFrame:
        """Returns the distinct bytes that a block touches of each array, as a DataFrame."""
        rows = []
        for each in self.counts.footprints:
            item = np.dtype(each.dtype).itemsize
            touched = dict(each.touched or ())
            own = touched.get(1) if each.by_group is None else _number(each.by_group) * item
            rows.append((each.variable, each.direction, float("nan") if own is None else own))
        return frame(["variable", "direction", "bytes"], rows)

    @property
    def barriers(self) -> float:
        return _number(self.counts.barriers.workgroup)

    @property
    def is_extrapolated(self) -> bool:
        return self.emulation.skipped > 0

    @property
    def emulated_groups(self) -> list[int]:
        return list(self.emulation.sample.blocks)

    def headings(self) -> list[str]:
        shape = [" × ".join(map(str, each)) for each in (self.emulation.launch.grid, self.local_size)]
        return [
            f"{self.kernel.name}: {shape[0]} blocks of {shape[1]} threads",
            f"{len(self.emulated_groups)} of them emulated in {self.emulation.seconds:.3g} s; counts are per block",
        ]


def _number(count: QuasiPolynomial) -> float:
    return float(count({}))
