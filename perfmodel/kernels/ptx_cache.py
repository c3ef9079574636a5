"""Keeps what compilers made of kernels on disk, so that each source is compiled once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from perfmodel.basics.disk_cache import DiskCache

_ENTRIES = DiskCache("ptx", most=2048)


def kept(key: Sequence[Any], compile_: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Returns what a compiler makes of a source: from the disk, or by compiling it.

    Args:
        key: all that decides on it, the compiler's version among it, as values that JSON can hold.
        compile_: makes it, as a dictionary that JSON can hold, with the text as ``ptx`` and the kernel's name there.
    """
    return _ENTRIES.kept(key, compile_, read=lambda found: dict(found), plain=lambda made: made)
