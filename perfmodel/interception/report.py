"""Writes what a program took as text and as JSON, with what emulation says of each kernel's first work-group."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from perfmodel.basics.errors import PerfmodelError
from perfmodel.basics.json_values import plain
from perfmodel.basics.tables import grid, wrapped
from perfmodel.interception.launches import Launches
from perfmodel.interception.program_times import ProgramTimes

if TYPE_CHECKING:
    from perfmodel.opencl_c.emulation import Emulation

COUNTS = ("global_loads", "global_stores", "transactions", "local_accesses", "bank_conflicts", "barriers")


def as_text(found: ProgramTimes, emulates: bool = False) -> str:
    """Returns tables and a time line as text, and below them what could not be done."""
    if not found.lines:
        return "no launches"
    notes = found.problems()
    parts = [str(found)]
    if emulates:
        groups = [line.launches for line in found.lines if line.launches]
        parts.append(_emulated_table(groups, notes))
    parts.append("\n".join(wrapped(note) for note in dict.fromkeys(notes)))
    return "\n\n".join(filter(None, parts))


def as_json(found: ProgramTimes, emulates: bool = False) -> dict[str, Any]:
    """Returns all that is known of a program, as values that JSON can hold."""
    data = found.as_json()
    if emulates:
        groups = [line.launches for line in found.lines if line.launches]
        for group, entry in zip(groups, data["launches"], strict=True):
            entry["first_group"] = plain(_emulated(group, entry["problems"]))
    return data


def _emulated_table(groups: Sequence[Launches], notes: list[str]) -> str:
    lines = []
    for group in groups:
        counted = _emulated(group, notes) or {}
        lines.append([group.first.name, *(str(counted.get(name, "-")) for name in (*COUNTS, "findings"))])
    table = grid(["kernel", *(name.replace("_", " ") for name in (*COUNTS, "findings"))], lines)
    return f"counts of the first work-group\n\n{table}"


def _emulated(group: Launches, problems: list[str]) -> dict[str, int] | None:
    if group.first.problem:
        return None
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            emulation = group.first.emulate()
    except PerfmodelError as error:
        problems.append(str(error).split("\n")[0])
        return None
    problems += [str(each.message) for each in caught]
    problems += [f"{group.first.name}: {finding}" for finding in emulation.findings]
    return counts(emulation)


def counts(emulation: Emulation) -> dict[str, int]:
    """Sums what work-items of the emulated groups did: loads and stores, transactions, barriers."""
    totals = dict.fromkeys(COUNTS, 0)
    for number, access in enumerate(emulation.kernel.accesses):
        of_groups = emulation.accesses[:, number]
        executions = int(of_groups["executions"].sum())
        if access.space == "local":
            totals["local_accesses"] += executions
            totals["bank_conflicts"] += int(of_groups["bank_conflicts"].sum())
        elif access.space in ("global", "constant"):
            if access.direction != "store":
                totals["global_loads"] += executions
            if access.direction != "load":
                totals["global_stores"] += executions
            totals["transactions"] += int(of_groups["transactions"].sum())
    totals["barriers"] = int(emulation.barriers.sum())
    return {**totals, "findings": len(emulation.findings)}
