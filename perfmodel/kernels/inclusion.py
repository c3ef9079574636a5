"""Puts included files in the place of their ``#include`` lines, so that a source can be built anywhere."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from perfmodel.basics.errors import KernelError

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*["<]([^">\n]+)[">].*$', re.MULTILINE)
_CONDITION = re.compile(r"^[ \t]*#[ \t]*(?:else|elif|endif)\b(?:.*[^\\\n])?$", re.MULTILINE)
_INCLUDE_OR_CONDITION = re.compile(f"{_INCLUDE.pattern}|{_CONDITION.pattern}", re.MULTILINE)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"", re.DOTALL)
_FIRST_DIRECTIVES = re.compile(r"^[ \t]*#.*$", re.MULTILINE)
_GUARD = re.compile(r"\s*#[ \t]*(?:ifndef|if[ \t]+![ \t]*defined)[ \t(]+(\w+)")
_ONCE = "#pragma once"
_BRANCHING = re.compile(r"^[ \t]*#[ \t]*(if|ifdef|ifndef|endif)\b", re.MULTILINE)
MOST_INCLUDES, DEEPEST_INCLUDE = 5000, 40
MOST_ABOVE, MOST_FOLDERS = 3, 2000
"""Headers that are not found are looked for in what so many folders above a source hold, so many of them in all."""


def included(
    text: str,
    folders: Sequence[Path],
    file: str = "",
    is_marked: bool = False,
    stays: Callable[[str], bool] = lambda header: False,
) -> str:
    """Returns the text with included files in place of their ``#include`` lines, so that it can be built anywhere.

    ``#line`` keeps the lines' numbers as they are in the files.

    Args:
        is_marked: whether ``#line`` stands behind conditions too, as a compiler passes over those that are between
            ``#if`` and ``#endif``; and whether a guarded header that no condition decides on stands there once only.
        stays: tells the headers whose ``#include`` lines stay as they are.

    Raises:
        KernelError: for files that include each other without end.
    """
    own = _Inclusion(folders, is_marked, stays).expanded(text, file, set()) if folders else text
    return f"{_line(1, file)}\n{own}" if file else own


@dataclass(frozen=True)
class _File:
    """A file of which the includes are put in their places.

    Attributes:
        known: headers that it has for certain, its own among them.
        comments: where those begin and end that may have an ``#include`` in them.
        free: the parts that no condition decides on; none where that is not asked.
    """

    content: str
    name: str
    known: set[Path]
    comments: Sequence[tuple[int, int]]
    free: Sequence[tuple[int, int]]

    def is_in_comment(self, place: int) -> bool:
        return any(start <= place < end for start, end in self.comments)

    def is_free(self, place: int) -> bool:
        return any(start <= place < end for start, end in self.free)

    def line_behind(self, place: int) -> str:
        """Returns the directive that says which line of the file follows that of a place."""
        return _line(self.content.count("\n", 0, place) + 2, self.name)


class _Inclusion:
    """Puts the headers of one source in their places, each with its own.

    Args:
        folders, is_marked, stays: see `included`.
    """

    def __init__(self, folders: Sequence[Path], is_marked: bool, stays: Callable[[str], bool]) -> None:
        self.folders, self.is_marked, self.stays = folders, is_marked, stays
        self.seen: list[Path] = []
        self.open: list[Path] = []
        self.is_guarded = cache(_is_guarded)  # a header is asked about wherever it is included
        self.found_beside = cache(self._found_beside)

    def expanded(self, content: str, name: str, known: set[Path]) -> str:
        """Returns a file's content with its includes.

        Args:
            known: see `_File`; gains those that it includes for certain.
        """
        comments = _comments_with_includes(content)
        free = _free_of_conditions(content, self.is_guarded(content)) if self.is_marked else []
        file = _File(content=content, name=name, known=known, comments=comments, free=free)
        has_marks = self.is_marked and _INCLUDE.search(content)
        directives = _INCLUDE_OR_CONDITION if has_marks else _INCLUDE
        return directives.sub(lambda match: self._in_its_place(file, match), content)

    def _in_its_place(self, file: _File, match: re.Match[str]) -> str:
        """Returns what stands in the place of an ``#include`` line, or of a condition that is marked."""
        if not match[1]:
            return f"{match[0]}\n{file.line_behind(match.start())}"
        if file.is_in_comment(match.start()):
            return match[0].replace("#", "", 1)
        if self.stays(match[1]):
            return match[0]
        header = self.found_beside(self.open[-1].parent if self.open else None, match[1].replace("\\", "/"))
        if header is None:
            return match[0]  # whether that matters, the reader says with line and column
        known = file.known if file.is_free(match.start()) else set(file.known)
        return f"{self._header(header, known)}\n{file.line_behind(match.start())}"

    def _found_beside(self, beside: Path | None, path: str) -> Path | None:
        """Returns the file that an ``#include`` means: beside the one that it stands in, or in one of the folders."""
        folders = [beside, *self.folders] if beside else self.folders
        searched = (_within(self.folders, folder / path) for folder in folders)
        return next((each for each in searched if each is not None), None)

    def _header(self, path: Path, known: set[Path]) -> str:
        """Returns a header with its includes; nothing where it has nothing for those who include it again."""
        content = path.read_text(encoding="utf-8-sig", errors="replace")
        is_once = _ONCE in content
        if path in known or (path in self.open and (is_once or self.is_guarded(content))):
            return ""
        if is_once and path in self.seen and not self.is_marked:
            return ""
        content = content.replace(_ONCE, "")
        guard = self._guard(path) if is_once and self.is_marked else ""
        if self.is_marked and (guard or self.is_guarded(content)):
            known.add(path)
        self.seen.append(path)
        self.open.append(path)
        if len(self.seen) > MOST_INCLUDES or len(self.open) > DEEPEST_INCLUDE:
            raise KernelError(f"{path.name!r} includes itself, directly or by others; include it by a macro's name")
        found = f"{_line(1, path.name)}\n{self.expanded(content, path.name, known)}"
        self.open.pop()
        return f"#ifndef {guard}\n#define {guard}\n{found}\n#endif" if guard else found

    def _guard(self, path: Path) -> str:
        """Returns a macro in the place of ``#pragma once``, for a header that may stand under conditions of which only
        the compiler knows."""
        place = self.seen.index(path) if path in self.seen else len(self.seen)
        return f"ONCE_{place}_{re.sub(r'[^0-9A-Za-z]', '_', path.name)}"


def _comments_with_includes(content: str) -> list[tuple[int, int]]:
    """Returns where comments begin and end that may have an ``#include`` in them."""
    if "/*" not in content:
        return []
    return [found.span() for found in _COMMENT.finditer(content) if found[0].startswith("/*") and "#" in found[0]]


def _free_of_conditions(content: str, is_guarded: bool) -> list[tuple[int, int]]:
    """Returns the parts of a file that no condition decides on but its own guard."""
    depth, start = (-1 if is_guarded else 0), 0
    free: list[tuple[int, int]] = []
    for found in _BRANCHING.finditer(content):
        if depth <= 0:
            free.append((start, found.start()))
        depth += -1 if found[1] == "endif" else 1
        start = found.end()
    return [*free, (start, len(content))] if depth <= 0 else free


def _is_guarded(content: str) -> bool:
    """Returns whether a header has nothing for those who include it a second time, by a macro that it defines."""
    first = _FIRST_DIRECTIVES.search(content)
    guard = _GUARD.match(content, first.start()) if first else None
    if guard is None:
        return False
    is_defined, is_taken_back = (
        re.search(rf"^[ \t]*#[ \t]*{word}[ \t]+{guard[1]}\b", content, re.MULTILINE) for word in ("define", "undef")
    )
    return bool(is_defined) and not is_taken_back


def _within(folders: Sequence[Path], path: Path) -> Path | None:
    """Returns a file's one path where it lies in one of some folders; None where there is none, or beyond them."""
    place = Path(os.path.normpath(path))
    is_inside = any(path.resolve().is_relative_to(folder.resolve()) for folder in folders)
    return place if is_inside and path.is_file() else None


def _line(number: int, file: str) -> str:
    name = re.sub(r'["\\\n]', "_", file)
    return f'#line {number} "{name}"' if name else f"#line {number}"


def folders_near(source: Path, headers: Sequence[str]) -> list[Path]:
    """Returns the folders in which headers lie that a source includes, of those around it: what it and up to three
    folders above hold, as far as a home or a repository goes.

    Args:
        headers: by the ways that the source says.
    """
    left, looked_in = list(headers), set[str]()
    found: dict[Path, None] = {}
    for top in source.resolve().parents[: 1 + MOST_ABOVE]:
        if top in (Path.home(), Path(top.anchor)):
            break
        for folder, inner, _ in os.walk(top):
            inner[:] = [each for each in sorted(inner) if not each.startswith(".")]
            if folder in looked_in:
                inner.clear()
                continue
            looked_in.add(folder)
            here = [each for each in left if ".." not in each.split("/") and (Path(folder) / each).is_file()]
            left = [each for each in left if each not in here]
            if here:
                found[Path(os.path.relpath(folder))] = None
            if not left or len(looked_in) > MOST_FOLDERS:
                return list(found)
        if (top / ".git").exists():
            break
    return list(found)
