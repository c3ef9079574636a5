"""Tells files from pipes, sockets and devices: only of a file can it be said that reading it ends."""

from __future__ import annotations

import errno
import os
import stat

_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def other_than_file(path: str | os.PathLike[str]) -> str:
    """Returns what is at the path instead of a file, such as "a folder" or "a pipe"; empty for a file, and for nothing.

    Opening a pipe waits until somebody writes to it, and reading a device may never end.
    """
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116, which paths that can't be one must not spoil
    except (OSError, ValueError):
        return ""
    return "" if stat.S_ISREG(mode) else _KINDS.get(stat.S_IFMT(mode), "no file")


def check_file(path: str | os.PathLike[str]) -> None:
    """Raises OSError where reading might never begin or end; what is no pipe, socket or device, opening tells."""
    if (what := other_than_file(path)) not in ("", "a folder"):
        raise OSError(errno.EINVAL, f"it is {what} and no file")
