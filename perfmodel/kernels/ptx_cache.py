"""Keeps what compilers made of kernels on disk, so that each source is compiled once."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import platformdirs

from perfmodel.basics import files

MOST_ENTRIES = 2048


def kept(key: Sequence[Any], compile_: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Returns what a compiler makes of a source: from the disk, or by compiling it.

    Args:
        key: all that decides on it, the compiler's version among it, as values that JSON can hold.
        compile_: makes it, as a dictionary that JSON can hold, with the text as ``ptx`` and the kernel's name there.
    """
    if os.environ.get("PERFMODEL_NO_CACHE") == "1":
        return compile_()
    name = hashlib.sha256(json.dumps(list(key)).encode()).hexdigest()
    path = platformdirs.user_cache_path("perfmodel", appauthor=False) / "ptx" / f"{name}.json"
    with suppress(OSError, ValueError):
        found = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(found, dict) and {"ptx", "name"} <= found.keys():
            return found
    made = compile_()
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write(path, json.dumps(made))
        _prune(path.parent)
    return made


def _prune(folder: Path) -> None:
    """Removes the older half of too many entries."""
    found = sorted(folder.glob("*.json"), key=lambda path: path.stat().st_mtime)
    if len(found) > MOST_ENTRIES:
        for path in found[: len(found) // 2]:
            path.unlink(missing_ok=True)
