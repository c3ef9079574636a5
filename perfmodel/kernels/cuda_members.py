"""Finds the members of a C++ type that are for the host alone, so that they can be left out where a compiler does not
understand them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from perfmodel.kernels.cuda_heads import closing, parted

_ACCESS = re.compile(r"\s*(?:(?:public|private|protected)\s*:(?!:)\s*)*")
_TYPE = re.compile(r"\b(?:struct|class|union|enum)\b")
_ARGUMENTS = re.compile(r"<[^<>]*>")
_INITIALIZED = re.compile(r"\)[^:;]*(?<!:):(?!:)")
_WITHOUT_ROOM = re.compile(
    r"\s*(?:template\s*<[^<>]*>\s*)?(?:using|typedef|friend|static_assert|(?:inline\s+)?static(?!\w))\b"
)
_VIRTUAL = re.compile(r"\b(?:virtual|override|final)\b")


@dataclass(frozen=True)
class _Member:
    """One member: ``start`` to ``end`` is all of it, ``body`` where its braces open, or its end where it has none."""

    start: int
    end: int
    head: str
    body: int

    @property
    def _bare(self) -> str:
        bare = parted(self.head)[0]
        while (shorter := _ARGUMENTS.sub(" ", bare)) != bare:
            bare = shorter
        return bare

    @property
    def is_type(self) -> bool:
        bare = self._bare
        return "(" not in bare and _TYPE.search(bare) is not None

    def is_function(self, type_name: str) -> bool:
        """Returns whether this is a function, and neither a pointer to one nor a macro that may stand for data."""
        before, opening, behind = self._bare.partition("(")
        if not opening or "=" in before or re.match(r"\s*(?:[\w:]+::)?\*", behind):
            return False
        return self.body < self.end or not re.fullmatch(r"\s*\w+\s*", before) or before.strip() == type_name


def for_the_host(
    plain: str, opening: int, type_name: str, wrong: Sequence[int], is_for_device: Callable[[str], bool]
) -> list[tuple[int, int]]:
    """Returns the places of a type's members for the host that begin or lie on lines with mistakes.

    Members that take room in the type stay, as do virtual functions but for their bodies.

    Args:
        plain: code without comments, strings and directives.
        opening: where the type's braces open.
        wrong: where lines with mistakes begin.
        is_for_device: tells by a function's head.
    """
    found: list[tuple[int, int]] = []
    lines = [(place, plain.find("\n", place) % (len(plain) + 1)) for place in wrong]
    for each in _members(plain, opening):
        if not any(start < each.end and each.start < max(end, start + 1) for start, end in lines):
            continue
        if each.is_type and each.body < each.end:
            name = re.search(r"(?:struct|class|union)\s+(\w+)", each.head)
            found += for_the_host(plain, each.body, name[1] if name else "", wrong, is_for_device)
        elif is_for_device(each.head):
            continue
        elif not each.is_function(type_name):
            found += [(each.start, each.end)] if _WITHOUT_ROOM.match(each.head) else []
        elif not _VIRTUAL.search(each.head):
            found.append((each.start, each.end))
        elif each.body < each.end and plain[each.body + 1 : each.end - 1].strip():
            found.append((each.body + 1, each.end - 1))
    return found


def _members(plain: str, opening: int) -> Iterator[_Member]:
    last = closing(plain, opening, "{}") - 1
    start = place = _behind_access(plain, opening + 1)
    while place < last:
        mark = plain[place]
        if mark == "(":
            place = closing(plain, place)
            continue
        if mark == "{":
            head = plain[start:place]
            end = closing(plain, place, "{}")
            if _INITIALIZED.search(head) and re.search(r"[\w>]\s*$", head):
                place = end  # the value of a field in a constructor's list
                continue
            member = _Member(start, end, head, place)
            if not member._bare.partition("(")[1] or "=" in member._bare.partition("(")[0]:
                semicolon = plain.find(";", end, last)
                member = _Member(start, semicolon + 1 if semicolon >= 0 else last, head, place)
            yield member
            start = place = _behind_access(plain, member.end)
            continue
        if mark == ";":
            if plain[start:place].strip():
                yield _Member(start, place + 1, plain[start:place], place + 1)
            start = place = _behind_access(plain, place + 1)
            continue
        place += 1


def _behind_access(plain: str, place: int) -> int:
    found = _ACCESS.match(plain, place)
    return found.end() if found else place
