"""Shows what a store holds, and one of its rows, as tables and as JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from perfmodel.basics.json_values import plain
from perfmodel.basics.tables import grid, percent, seconds
from perfmodel.measuring.protocol import Timing
from perfmodel.measuring.store import Failure, Group, Measurement, Store

TRIALS_A_LINE = 8


def groups_of(store: Store, device: str = "", kernel: str = "") -> list[Group]:
    """Returns the groups whose device's key or name, and whose kernel's name, contain these texts in any case."""
    return [
        group
        for group in store.groups()
        if any(device.lower() in str(group.device.get(name, "")).lower() for name in ("key", "name"))
        and kernel.lower() in group.kernel.lower()
    ]


def contents_text(store: Store, groups: Sequence[Group]) -> str:
    """Returns how many rows there are of each device, protocol and kernel, and the reasons of failures."""
    measured, failed = _totals(groups)
    parts = [
        f"{store.name}: {measured} measurements, {failed} failures, {n_bytes(store.n_bytes)}, schema {store.schema}"
    ]
    for title, of in (("device", _device), ("protocol", _protocol), ("kernel", lambda group: _line(group.kernel))):
        counts: dict[str, list[int]] = {}
        for group in groups:
            counts.setdefault(of(group), [0, 0])[bool(group.reason)] += group.count
        lines = [[name, str(times), str(failures)] for name, (times, failures) in counts.items()]
        if lines:
            parts.append(grid([title, "measurements", "failures"], lines))
    if reasons := _reasons(groups):
        lines = [[_line(reason), str(count)] for reason, count in reasons.most_common()]
        parts.append(grid(["reason of failure", "failures"], lines))
    return "\n\n".join(parts)


def as_json(store: Store, groups: Sequence[Group]) -> dict[str, Any]:
    """Returns what a store holds, as values that JSON can hold."""
    measured, failed = _totals(groups)
    return {
        "store": str(store.path),
        "bytes": store.n_bytes,
        "schema": store.schema,
        "measurements": measured,
        "failures": failed,
        "groups": [plain(asdict(group)) for group in groups],
    }


def row_text(row: Measurement | Failure) -> str:
    """Returns all that is known of one row, as text."""
    lines = {
        "key": row.key,
        "kernel": row.kernel,
        "tags": _pairs(row.tags),
        "sizes": _pairs(row.sizes),
        "content": row.content,
        "device": f"{row.device.get('name', '')} ({row.device.get('key', '')})",
        "driver": row.device.get("driver", ""),
        "protocol": _pairs(row.protocol),
    }
    if isinstance(row, Measurement):
        lines["time"] = f"{seconds(row.seconds)}, the {row.statistic} of {len(row.trials) - row.dropped} trials"
        lines["spread"] = percent(_timing(row).spread)
        lines["flags"] = ", ".join(row.flags)
    else:
        lines["failure"] = row.reason
    lines |= {"created": row.created, "versions": _pairs(row.versions), "conditions": _pairs(row.conditions)}
    width = max(map(len, lines))
    shown = [f"{name:{width}}  {_line(str(text)) or '-'}" for name, text in lines.items()]
    if isinstance(row, Measurement):
        trials = [seconds(trial) for trial in row.trials]
        wide = max(map(len, trials))
        starts = range(0, len(trials), TRIALS_A_LINE)
        shown.append(f"{'trials':{width}}  {row.dropped} dropped, then {len(trials) - row.dropped} that count:")
        shown += ["  ".join(f"{trial:>{wide}}" for trial in trials[i : i + TRIALS_A_LINE]) for i in starts]
    return "\n".join(shown)


def row_as_json(row: Measurement | Failure) -> dict[str, Any]:
    """Returns all that is known of one row, as values that JSON can hold."""
    derived = {"seconds": row.seconds, "spread": _timing(row).spread} if isinstance(row, Measurement) else {}
    found: dict[str, Any] = plain(asdict(row) | derived)
    return found


def n_bytes(number: int) -> str:
    """Returns bytes with three digits and a unit, such as 12.3 kB."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if number >= scale:
            return f"{number / scale:.3g} {unit}"
    return f"{number} bytes"


def _totals(groups: Sequence[Group]) -> tuple[int, int]:
    failed = sum(group.count for group in groups if group.reason)
    return sum(group.count for group in groups) - failed, failed


def _reasons(groups: Sequence[Group]) -> Counter[str]:
    found: Counter[str] = Counter()
    for group in groups:
        if group.reason:
            found[group.reason] += group.count
    return found


def _device(group: Group) -> str:
    key, name, driver = (str(group.device.get(part, "")) for part in ("key", "name", "driver"))
    return _line(f"{key}: {name}" + (f", driver {driver}" if driver else ""))


def _protocol(group: Group) -> str:
    how = dict(group.protocol)
    name = how.pop("name", "")
    return _line(f"{name}: {_pairs(how)}")


def _timing(row: Measurement) -> Timing:
    return Timing(row.trials, row.dropped, row.statistic)


def _pairs(values: dict[str, Any]) -> str:
    return " ".join(f"{name}={json.dumps(v) if isinstance(v, dict | list) else v}" for name, v in values.items())


def _line(text: str) -> str:
    """Returns a text that a terminal shows as one line and takes for nothing else."""
    return "".join(character if character.isprintable() else " " for character in text)
