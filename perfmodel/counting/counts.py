"""What a kernel does, as plain data: the one form in which every program kind hands its counts to the features."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from perfmodel.counting.quasipolynomial import QuasiPolynomial

# A stride in elements as a function of the sizes; None where the index is not affine in the axis.
Stride = Callable[[Mapping[str, Any]], Any] | None


@dataclass(frozen=True)
class OperationCount:
    """Operations of one kind and type in one instruction.

    Attributes:
        kind: ``add`` (also subtraction), ``mul``, ``madd`` (a multiply that feeds an add), ``div``, ``mod``, ``pow``,
            ``min``, ``max``, ``compare``, ``bitwise``, ``shift``, or the name of a special function (``exp`` …).
        dtype: numpy's name of the result's type, e.g. ``float32``.
        per_execution: how often they occur in one execution of the instruction.
        executions: executions of the instruction by work-items.
    """

    kind: str
    dtype: str
    per_execution: int
    executions: QuasiPolynomial


@dataclass(frozen=True)
class AccessCount:
    """One memory access of one instruction.

    Attributes:
        space: ``global`` (also what OpenCL calls constant) or ``local``.
        local_strides, group_strides: element strides by axis; an axis that the index does not use is absent.
        executions: accesses by work-items.
        footprint: distinct elements that this access touches over the launch, in local memory those of each
            work-group; None where it can't be derived.
    """

    space: str
    variable: str
    tags: frozenset[str]
    dtype: str
    direction: str
    local_strides: Mapping[int, Stride]
    group_strides: Mapping[int, Stride]
    executions: QuasiPolynomial
    footprint: QuasiPolynomial | None
    text: str


@dataclass(frozen=True)
class KernelCounts:
    """Everything counted of one program, as functions of its sizes.

    Attributes:
        barriers: local barriers times the work-items that meet them.
        launches: device kernels launched by one call.
    """

    operations: tuple[OperationCount, ...]
    accesses: tuple[AccessCount, ...]
    barriers: QuasiPolynomial
    launches: QuasiPolynomial
    work_groups: QuasiPolynomial
    work_items: QuasiPolynomial
