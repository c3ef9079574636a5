"""Strips kernels down to one of their global accesses, to measure what it costs among its own loops and addresses.

The arithmetic, the barriers, local memory and all other accesses go; the loops, the launch and the addresses of the
chosen access stay (Stevens & Klöckner, the journal version of the 2018 slides, "work removal").
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TypeVar

from perfmodel.basics.errors import KernelError, PerfmodelWarning, nearest
from perfmodel.counting.counts import AccessCount
from perfmodel.kernels.bound_kernel import BoundKernel

KEPT_TAG = "kept"

K = TypeVar("K", bound=BoundKernel)


class WorkRemovalWarning(PerfmodelWarning):
    """Warns of an access that could not be isolated."""


def with_one_access(kernel: K, keep: AccessCount | str) -> K:
    """Returns a kernel with one global access of `kernel` left, with its loops, launch and addresses.

    What is loaded is summed up in a register, and the sum is stored if it is negative. It never is with the positive
    numbers that kernels are measured with, but no compiler can know; so the loads stay, and no store disturbs them.
    What is stored is the number one.

    Args:
        kernel: of a Loopy program.
        keep: one of ``kernel.counts.accesses``, or its text as ``perfmodel count`` shows it (``"a[i, k]"``), or the
            name of an array that has one access only; with ``load`` or ``store`` in front if there are both.

    Returns:
        A kernel at the same sizes, with the tag `kept` beside its tags. Of the array, its counts have the kept access
        and nothing else; the store of the sum has no executions.

    Raises:
        KernelError: if there is no such access, it is not unique, or its address or whether it runs depends on data.
    """
    access = _found(kernel, keep)
    unit = getattr(kernel.program, "translation_unit", None)
    if unit is None:
        raise KernelError(f"kernel {kernel.name!r} is no Loopy program; work can be removed from those only")
    from perfmodel.kernels.kept_access import stripped  # brings Loopy, which is slow to import

    program, statistics = stripped(unit, access)
    kept = type(kernel)(program, {**kernel.tags, KEPT_TAG: f"{access.direction} {access.text}"}, statistics)
    # Loopy makes arguments of the offsets that it finds itself; our arrays begin at their buffers' start.
    offsets = dict.fromkeys(set(kept.program.arguments) - set(kernel.program.arguments), 0)
    return kept.at(**kernel.bound, **offsets)


def with_each_access(kernel: K) -> list[K]:
    """Returns one kernel for each distinct global access pattern of `kernel`, as `with_one_access` makes it.

    Accesses have one pattern if type, direction, all strides, executions and the number of distinct elements are the
    same functions of the sizes; the first of them that can be isolated, in the order of the program, stands for all. If
    none can, because an address or whether it is made depends on data, a `WorkRemovalWarning` says so.
    """
    patterns: dict[object, list[AccessCount]] = {}
    for access in _global_accesses(kernel):
        patterns.setdefault(_pattern(access), []).append(access)
    isolated = (_first_isolated(kernel, accesses) for accesses in patterns.values())
    return [found for found in isolated if found is not None]


def _first_isolated(kernel: K, accesses: Sequence[AccessCount]) -> K | None:
    """Returns the kernel of the first access that can be isolated; None if none can."""
    reasons = []
    for access in accesses:
        try:
            return with_one_access(kernel, access)
        except KernelError as error:
            reasons.append(str(error))
    warnings.warn(f"left out: {reasons[0]}", WorkRemovalWarning, stacklevel=5)
    return None


def _global_accesses(kernel: BoundKernel) -> list[AccessCount]:
    return [access for access in kernel.counts.accesses if access.space == "global"]


def _pattern(access: AccessCount) -> object:
    strides = (access.local_strides, access.group_strides)
    return (
        access.dtype,
        access.bits,
        access.direction,
        tuple(tuple(sorted((axis, str(stride)) for axis, stride in axes.items())) for axes in strides),
        tuple(map(str, access.loop_strides.values())),
        str(access.executions.workitem),
        str(access.footprint),
    )


def _found(kernel: BoundKernel, keep: AccessCount | str) -> AccessCount:
    candidates = _global_accesses(kernel)
    if isinstance(keep, AccessCount):
        if keep not in candidates:
            raise KernelError(f"{keep.direction} {keep.text} is no global access of kernel {kernel.name!r}")
        return keep
    words = keep.split(None, 1)
    direction = words[0] if len(words) == 2 and words[0] in ("load", "store") else None
    text = words[1] if direction else keep.strip()
    chosen = {
        (access.text, _pattern(access)): access
        for access in candidates
        if text in (access.text, access.variable) and direction in (None, access.direction)
    }
    names = sorted({f"{access.direction} {access.text}" for access in candidates})
    if len(chosen) != 1:
        problem = f"has {len(chosen)} accesses" if chosen else "has no global access"
        raise KernelError(
            f"kernel {kernel.name!r} {problem} {keep!r}{'' if chosen else nearest(keep, names)}; keep one of "
            f"{', '.join(names)}"
        )
    return next(iter(chosen.values()))
