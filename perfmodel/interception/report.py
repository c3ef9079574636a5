"""Launches as text and as JSON, a line for each kernel and its sizes."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from perfmodel.basics.errors import PerfmodelError
from perfmodel.basics.json_values import plain
from perfmodel.basics.tables import grid, seconds
from perfmodel.interception.launches import Launches, predicted
from perfmodel.modelling.calibration import Calibration

if TYPE_CHECKING:
    from perfmodel.opencl_c.emulation import Emulation

COUNTS = ("global_loads", "global_stores", "transactions", "local_accesses", "bank_conflicts", "barriers")


def as_text(groups: Sequence[Launches], calibration: Calibration | None = None, emulates: bool = False) -> str:
    """Returns a table of launches as text, and below it what could not be done."""
    if not groups:
        return "no launches"
    lines, problems = [], []
    for group in groups:
        entry = described(group, calibration, emulates)
        problems += entry["problems"]
        line = [entry["kernel"], str(entry["launches"]), _sizes(entry["global_size"])]
        line += [_sizes(entry["local_size"]) if entry["local_size"] else "any", str(entry["argument_bytes"])]
        line += [seconds(entry["measured_s"])]
        if calibration:
            line.append(seconds(entry["predicted_s"]))
        if emulates:
            counts = entry["first_group"] or {}
            line += [str(counts.get(name, "-")) for name in (*COUNTS, "findings")]
        lines.append(line)
    header = ["kernel", "launches", "global", "local", "argument bytes", "measured"]
    if calibration:
        header.append("predicted")
    if emulates:
        header += [name.replace("_", " ") for name in (*COUNTS, "findings")]
    notes = list(dict.fromkeys(problems))
    if emulates:
        notes.insert(0, "counts are of the first work-group")
    return "\n".join([grid(header, lines), *(["", *notes] if notes else [])])


def as_json(
    groups: Sequence[Launches], calibration: Calibration | None = None, emulates: bool = False
) -> dict[str, Any]:
    """Returns all launches, as values that JSON can hold."""
    return {"launches": [plain(described(group, calibration, emulates)) for group in groups]}


def described(group: Launches, calibration: Calibration | None = None, emulates: bool = False) -> dict[str, Any]:
    """Returns all that is known of launches of one kernel at its sizes."""
    first = group.first
    entry: dict[str, Any] = {
        "kernel": first.name,
        "launches": len(group.records),
        "global_size": first.global_size,
        "local_size": first.local_size,
        "global_offset": first.global_offset,
        "sizes": group.sizes,
        "argument_bytes": first.n_bytes,
        "measured_s": group.seconds,
        "device": first.device,
        "problems": [first.problem] if first.problem else [],
    }
    if calibration:
        entry["predicted_s"], problem = predicted(group, calibration)
        if problem and problem not in entry["problems"]:
            entry["problems"].append(problem)
    if emulates:
        entry["first_group"] = _emulated(group, entry["problems"])
    return entry


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


def _sizes(sizes: Sequence[int]) -> str:
    return "x".join(map(str, sizes))
