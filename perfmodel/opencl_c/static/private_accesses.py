"""Private variables that values are computed with are accesses, too; nothing is asked of where they lie."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from perfmodel.counting.counts import AccessCount
from perfmodel.counting.domains import Domains, Region
from perfmodel.counting.symbolic import ZERO
from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c import walks
from perfmodel.opencl_c.operations import KernelOperations
from perfmodel.opencl_c.types import Scalar, Vector, element_of


def private_accesses(
    assign: low.Assign, operations: KernelOperations, domains: Domains, region: Region, loops: Sequence[low.Loop]
) -> Iterator[AccessCount]:
    """Yields the accesses to private variables that a statement reads and writes, those that values are computed with.

    Args:
        region: where the statement is executed, within these loops.
    """
    names = tuple(loop.name for loop in loops)
    read = [
        part.register
        for part in walks.walk(assign.value)
        if isinstance(part, low.Read) and operations.is_private(part.register)
    ]
    written = [assign.register] if operations.is_private(assign.register) else []
    for direction, registers in (("load", read), ("store", written)):
        for register in registers:
            if isinstance(register.type, Scalar | Vector):
                executions = domains.executions(region)
                yield AccessCount(
                    space="private",
                    variable=register.name,
                    tags=frozenset(),
                    dtype=element_of(register.type).dtype,
                    bits=8 * register.type.size,
                    direction=direction,
                    local_strides={},
                    group_strides={},
                    loop_strides=dict.fromkeys(names, ZERO.quasipolynomial()),
                    executions=executions,
                    body=names,
                    rounds=executions,
                    footprint=None,
                    text=register.name,
                    instruction=register.name,
                )
