"""Reads how much memory of this machine is free, and how much a process holds."""

from __future__ import annotations

from pathlib import Path

import psutil

GROUPS = Path("/sys/fs/cgroup")


def available() -> int:
    """Returns the bytes that programs here can still get, of the machine or of the control group that limits them."""
    return min(int(psutil.virtual_memory().available), *_left_in_groups(GROUPS))


def resident(pid: int) -> int:
    """Returns the bytes of memory that a process holds; zero if there is none of this number."""
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return 0


def _left_in_groups(root: Path) -> list[int]:
    """Returns the bytes that limits of control groups leave: version 2's and version 1's, as containers see their
    own."""
    left = []
    for limit, used, reclaimable in (
        ("memory.max", "memory.current", "inactive_file"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "total_inactive_file"),
    ):
        try:
            text = (root / limit).read_text(encoding="ascii").strip()
            if text == "max":
                continue
            statistics = (root / limit).with_name("memory.stat").read_text(encoding="ascii").split()
            cache = int(statistics[statistics.index(reclaimable) + 1]) if reclaimable in statistics else 0
            left.append(max(0, int(text) - int((root / used).read_text(encoding="ascii")) + cache))
        except (OSError, ValueError):  # no such group here
            continue
    return left or [2**63]
