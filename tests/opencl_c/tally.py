"""Tallies what a kernel does, in one form for all who count it: the static counts at some sizes, and an emulation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

import perfmodel as pm
from perfmodel.kernels.arguments import Array
from perfmodel.kernels.opencl_file import declared_arguments
from perfmodel.kernels.opencl_program import OpenCLProgram
from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c import lowered_kernel, walks
from perfmodel.opencl_c.emulation import Argument, Emulation, LocalBytes, Machine, emulate
from perfmodel.opencl_c.lowered import LoweredKernel
from perfmodel.opencl_c.operations import KernelOperations
from perfmodel.opencl_c.static.scratch import scratch_arrays
from perfmodel.opencl_c.types import Pointer, numpy_type
from tests.opencl_c.kernel_files import Launch

SUBGROUP = 8
"""Work-items of a sub-group: fewer than most groups here have, so that some are partly active."""

Tally: TypeAlias = Counter[tuple[str, ...]]
"""Numbers by ("operations", kind, type), ("work-items" | "sub-groups" | "bytes", space, direction), ("barriers",) and
("footprint", array, direction), the last in bytes of each group, summed over groups.
"""


def spaces_of(kernel: LoweredKernel) -> dict[low.Access, str]:
    """Returns the space that each access is counted in."""
    scratch, found = scratch_arrays(kernel), {}
    for access in kernel.accesses:
        found[access] = "global" if access.space == "constant" else access.space
        if access.space == "private" and access.variable in scratch:
            found[access] = "scratch"
    return found


def emulated(kernel: LoweredKernel, run: Emulation) -> Tally:
    """Returns the tally of all groups that ran."""
    found: Tally = Counter()
    operations = KernelOperations(kernel)
    for block in operations.blocks:
        times = int(run.blocks[:, block.number, 0].sum())
        for (kind, dtype), number in operations.of(block).values.items():
            found["operations", kind, dtype] += number * times
    nodes = (node for statement in walks.simple_statements(kernel.body) for node in walks.accesses_of(statement))
    directions = {node.access: low.direction_of(node) for node in nodes}
    updated = {access.variable for access, direction in directions.items() if direction == "atomic"}
    for access, space in spaces_of(kernel).items():
        seen = run.accesses[:, access.number]
        key = space, directions.get(access, access.direction)
        found["work-items", *key] += int(seen["executions"].sum())
        found["sub-groups", *key] += int(seen["subgroups"].sum())
        found["bytes", *key] += int(seen["bytes"].sum())
    found["barriers",] = int(run.barriers.sum())
    arguments = {parameter.name for parameter in kernel.parameters}
    for place, (space, variable) in enumerate(run.variables):
        if space != "local" and variable in arguments:
            # An emulation doesn't tell what atomics touch from what stores do.
            for direction in ("any",) if variable in updated else ("load", "store", "any"):
                found["footprint", variable, direction] += int(run.footprints[f"{direction}_bytes"][:, place].sum())
    return +found


def counted(kernel: pm.Kernel, subgroup_size: int = SUBGROUP) -> Tally:
    """Returns the static counts at the kernel's own sizes."""
    found: Tally = Counter()
    counts, sizes = kernel.counts_for(subgroup_size), kernel.bind({})

    def number(quantity: Any) -> int:
        assert quantity is not None
        value = float(np.asarray(quantity(sizes)))
        assert value == int(value)
        return int(value)

    for operation in counts.operations:
        times = number(operation.executions.workitem)
        found["operations", operation.kind, operation.dtype] += operation.per_execution * times
    for access in counts.accesses:
        if access.instruction == access.variable:  # a register, which no emulation counts
            continue
        key = access.space, access.direction
        found["work-items", *key] += number(access.executions.workitem)
        found["sub-groups", *key] += number(access.executions.subgroup)
        found["bytes", *key] += access.bits // 8 * number(access.executions.workitem)
    found["barriers",] = number(counts.barriers.workgroup)
    updated = {footprint.variable for footprint in counts.footprints if footprint.direction == "atomic"}
    for footprint in counts.footprints:
        if footprint.by_group is not None and (footprint.direction == "any" or footprint.variable not in updated):
            key = footprint.variable, footprint.direction
            found["footprint", *key] += np.dtype(footprint.dtype).itemsize * number(footprint.by_group)
    return +found


def only(found: Tally, *kinds: str) -> Tally:
    """Returns the parts of a tally of these kinds."""
    return Counter({key: number for key, number in found.items() if key[0] in kinds})


def without_unknown(found: Tally, kernel: pm.Kernel, subgroup_size: int = SUBGROUP) -> Tally:
    """Returns an emulation's tally without the footprints that static counts don't know."""
    unknown = {
        ("footprint", footprint.variable, footprint.direction)
        for footprint in kernel.counts_for(subgroup_size).footprints
        if footprint.by_group is None
    }
    return Counter({key: number for key, number in found.items() if key not in unknown})


# --- kernels of files


def argument(given: dict[str, Any], random: np.random.Generator) -> Argument:
    """Returns an argument for a launch of a test kernel: random numbers in arrays, so that outputs are seen to be
    written."""
    if "local_bytes" in given:
        return LocalBytes(given["local_bytes"])
    if "struct" in given:
        return np.array(given["bytes"], np.uint8)
    if "scalar" in given:
        return np.array(given["value"], given["scalar"])[()]
    dtype, size = np.dtype(given["array"]), given["size"]
    first, last = given.get("range", (0, 10) if dtype.kind != "f" else (0, 1))
    numbers: NDArray[Any] = random.random(size) * (last - first) + first
    if dtype.kind != "f":
        numbers = random.integers(first, last, size, endpoint=True, dtype=dtype)
    return numbers.astype(dtype)


def arguments_of(launch: Launch) -> dict[str, Argument]:
    random = np.random.default_rng(0)
    return {given["name"]: argument(given, random) for given in launch.arguments}


def kernel_of(launch: Launch, statistics: Mapping[str, float] | None = None) -> pm.Kernel:
    """Returns a launch of a test kernel as a kernel bound to its sizes."""
    options = [*launch.options, *(f"-I{folder}" for folder in launch.folders)]
    given = {each["name"]: each for each in launch.arguments}
    lowered = lowered_kernel(launch.source, launch.kernel, options)
    extents = {p.name: given[p.name].get("local_bytes", 1) for p in lowered.parameters if isinstance(p.type, Pointer)}
    declared = [
        Array(each.name, given[each.name]["array"], given[each.name]["size"], given[each.name].get("output", False))
        if isinstance(each, Array)
        else each
        for each in declared_arguments(lowered, extents)
    ]
    values = {name: each["value"] for name, each in given.items() if "scalar" in each}
    for parameter in lowered.parameters:
        if "struct" in given[parameter.name]:
            data = np.array(given[parameter.name]["bytes"], np.uint8)
            values[parameter.name] = data.view(numpy_type(parameter.type))[0]
    program = OpenCLProgram(
        launch.source,
        launch.kernel,
        launch.global_size,
        launch.local_size,
        declared,
        options,
        statistics=statistics,
    )
    return pm.Kernel(program, **values)


def everything(
    kernel: LoweredKernel,
    global_size: Sequence[int],
    local_size: Sequence[int],
    arguments: Mapping[str, Argument],
    subgroup_size: int = SUBGROUP,
) -> Emulation:
    """Emulates all groups."""
    machine = Machine(subgroup_size=subgroup_size)
    return emulate(kernel, global_size, local_size, arguments, groups="all", machine=machine)
