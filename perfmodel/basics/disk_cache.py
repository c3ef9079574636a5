"""Keeps on disk what takes long to find out: counts, what compilers make of kernels, machine code.

An entry is one file: the SHA-256 of its text, and the text, which is JSON. ``PERFMODEL_NO_CACHE=1`` switches all off.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import platformdirs

from perfmodel.basics import files

T = TypeVar("T")


class DiskCache:
    """A folder of entries, each named for the hash of all that it follows from.

    Args:
        name: of the folder, within the user's cache folder.
        most: so many entries are kept; of more, the older half is removed, as former versions' are never asked for.
        is_packed: whether entries are compressed, which takes longer to read.
    """

    def __init__(self, name: str, most: int, *, is_packed: bool = False) -> None:
        self._name, self._ending, self.most = name, ".json.xz" if is_packed else ".json", most
        self._number: dict[Path, int] = {}

    def folder(self) -> Path:
        return platformdirs.user_cache_path("perfmodel", appauthor=False) / self._name

    def kept(self, key: Any, make: Callable[[], T], read: Callable[[Any], T], plain: Callable[[T], Any]) -> T:
        """Returns what was made for a key, from the disk, or else makes it and keeps it there.

        A damaged entry is made again. It is no error if a folder can't be written.

        Args:
            key: all that decides on it, versions of who makes it among it, as values that JSON can hold.
            read: makes it of values that JSON can hold, which `plain` makes of it.

        Raises:
            TypeError: JSON cannot hold the key.
        """
        if not is_on():
            return make()
        path = self._path(key)
        with suppress(OSError, ValueError, RecursionError, lzma.LZMAError):  # absent or damaged
            return read(self._read(path))
        made = make()
        with suppress(OSError):
            self._write(path, plain(made))
        return made

    def has(self, key: Any) -> bool:
        """Returns True if there is an entry for a key, damaged or not."""
        return is_on() and self._path(key).exists()

    def _path(self, key: Any) -> Path:
        return self.folder() / f"{hashlib.sha256(json.dumps(key).encode()).hexdigest()}{self._ending}"

    def _read(self, path: Path) -> Any:
        content = path.read_bytes()
        digest, _, text = (lzma.decompress(content) if path.suffix == ".xz" else content).partition(b"\n")
        if hashlib.sha256(text).hexdigest().encode() != digest:
            raise ValueError(f"{path} is damaged")
        return json.loads(text)

    def _write(self, path: Path, value: Any) -> None:
        text = json.dumps(value, separators=(",", ":")).encode()
        content = hashlib.sha256(text).hexdigest().encode() + b"\n" + text
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write(path, lzma.compress(content, preset=1) if path.suffix == ".xz" else content)
        self._prune(path.parent)

    def _prune(self, folder: Path) -> None:
        """Removes the older half of too many entries.

        What is there is counted once, and then with what this process writes: looking at all of them takes longer than
        counting a small kernel.
        """
        pattern, number = f"*{self._ending}", self._number
        number[folder] = number[folder] + 1 if folder in number else len(list(folder.glob(pattern)))
        if number[folder] > self.most:
            found = sorted(folder.glob(pattern), key=lambda path: path.stat().st_mtime)
            for path in found[: len(found) // 2]:
                path.unlink(missing_ok=True)
            number[folder] = len(found) - len(found) // 2


def is_on() -> bool:
    """Returns False where the user wants nothing kept."""
    return os.environ.get("PERFMODEL_NO_CACHE") != "1"
