"""Reads what Linux tells of this machine's processors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

DESCRIPTION = Path("/proc/cpuinfo")


def told_here(description: Path = DESCRIPTION) -> Iterator[dict[str, str]]:
    """Iterates over what Linux tells of each processor, by its words; over nothing where nobody says."""
    try:
        blocks = description.read_text(encoding="utf-8", errors="replace").split("\n\n")
    except OSError:
        return
    for block in blocks:  # servers have hundreds, and who asks for a name reads one
        if told := dict(re.findall(r"^(\w[\w ]*?)\s*:[ \t]*(.*?)\s*$", block, re.MULTILINE)):
            yield told


def name_here(description: Path = DESCRIPTION) -> str:
    """Returns the name of this machine's processor, as Linux and OpenCL drivers have it; empty where nobody says."""
    return next((each["model name"] for each in told_here(description) if each.get("model name")), "")


def numbers_here(description: Path = DESCRIPTION) -> str:
    """Returns the numbers that this machine's processor identifies itself with, of its family and its model.

    They tell processors apart whose names don't: virtual machines call several generations ``AMD EPYC``.

    Returns:
        ``"26 2"``; empty where nobody says.
    """
    for each in told_here(description):
        if {"cpu family", "model"} <= each.keys():
            return f"{each['cpu family']} {each['model']}"
    return ""
