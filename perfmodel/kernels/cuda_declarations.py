"""Finds what a ``.cu`` file declares outside of functions and types, without compiling it."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import islice

from perfmodel.kernels.cuda_conditions import CONDITION, excluded
from perfmodel.kernels.cuda_heads import called, closing, parted

UNNAMED = "kernel.cu"
"""A source is called so of which no line says its name."""
_SKIPPED = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'', re.DOTALL)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", re.MULTILINE)
_FOR_BOTH = "constexpr"
_OF_DEVICE = ("__device__", "__global__", _FOR_BOTH)
TYPE = re.compile(r"\b(?:struct|class|union|enum)\b")
_TYPE_NAME = re.compile(r"\b(?:struct|class|union|enum)\s+(?:class\s+)?(\w+)")
WORD = re.compile(r"[A-Za-z_]\w*")
_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)((?:[^\n\\]|\\.|\\\n)*)", re.MULTILINE)
_ANY = re.compile(r"[^\n]")
_GOES_ON = re.compile(r"\s*[;{(]")
_VARIABLE = re.compile(r"(\w+)\s*(?:\[[^\]]*\]\s*)*$")
_MARK = re.compile(r"[;{}(]")


@dataclass(frozen=True, eq=False)
class Declaration:
    """One declaration outside of all functions and types: from ``start`` to ``end``, of which ``head`` comes before its
    body, in these name spaces; ``tail`` is what follows a type's body. It is for the device where it says so, itself or
    by a macro."""

    start: int
    end: int
    head: str
    is_function: bool
    spaces: tuple[str, ...] = ()
    tail: str = ""
    is_for_device: bool = False

    @cached_property
    def bare(self) -> str:
        """The head without templates' parameters and attributes."""
        return parted(self.head)[0]

    @property
    def may_stand_for_others(self) -> bool:
        """True where something else of its name might take its place, so that leaving it out changes what code is."""
        return self.is_for_device or TYPE.search(self.bare) is not None

    @cached_property
    def name(self) -> str:
        """The name of a function, a type or a variable."""
        bare = self.bare
        before, is_given, _ = bare.partition("=")
        if is_given and "(" not in before and (variable := _VARIABLE.search(before)):
            return variable[1]
        if function := called(bare[max(bare.find("__global__"), 0) :]):
            return function[0]
        found = _TYPE_NAME.search(bare) or re.search(r"(\w+)\s*$", self.tail) or _VARIABLE.search(bare)
        return found[1] if found else ""


@dataclass(frozen=True)
class Outline:
    """Holds what a source consists of.

    Attributes:
        plain: the source with blanks in the place of comments, strings and directives.
        directives: where these begin and end, in their order.
        macros: their names, with what they stand for.
        declarations: those outside of all functions and types, those in namespaces too.
    """

    source: str
    plain: str
    directives: Sequence[tuple[int, int]]
    macros: Sequence[tuple[str, str]]
    declarations: Sequence[Declaration]
    _of_device: re.Pattern[str]

    def is_for_device(self, head: str) -> bool:
        """Returns whether the head of a declaration says that it is for the device, itself or by a macro; constant
        expressions are for both, unless they are said to be for the host."""
        says = set(self._of_device.findall(head))
        return bool(says - {_FOR_BOTH}) or (bool(says) and "__host__" not in head)

    def without(self, spans: Sequence[tuple[int, int]]) -> Outline:
        """Returns the outline of a source with blanks in these places, apart from each other; lines and directives
        stay."""
        spans = sorted(spans)
        source, plain = _blanked(self.source, spans, self.directives), _blanked(self.plain, spans, ())
        ends = [end for _, end in spans]
        left = []
        for each in self.declarations:
            place = bisect_right(ends, each.start)
            start, end = spans[place] if place < len(spans) else (each.end, each.end)
            if start >= each.end:
                left.append(each)
            elif each.start < start or end < each.end:
                head = plain[each.start : each.start + len(each.head)]
                left.append(replace(each, head=head, is_for_device=self.is_for_device(head)))
        return replace(self, source=source, plain=plain, declarations=left)


@lru_cache(maxsize=4)
def outline_of(source: str) -> Outline:
    """Returns the outline of a source, which is found out once."""
    code = _blank(source, _SKIPPED)
    plain = _blank(_with_one_branch(_blanked(code, excluded(code), ())), _DIRECTIVE)
    macros = _MACRO.findall(code)
    outline = Outline(
        source=source,
        plain=plain,
        directives=[match.span() for match in _DIRECTIVE.finditer(code)],
        macros=macros,
        declarations=(),
        _of_device=re.compile(rf"\b(?:{'|'.join((*_OF_DEVICE, *_macros_of_device(macros)))})\b"),
    )
    found = _across_branches(_declarations(plain, _whole_macros(macros)), code)
    known = [replace(each, is_for_device=outline.is_for_device(each.head)) for each in found]
    return replace(outline, declarations=known)


def _macros_of_device(macros: Sequence[tuple[str, str]]) -> set[str]:
    """Returns the macros that say of a function that it is for the device, also by way of other macros."""
    words = [(name, set(WORD.findall(text))) for name, text in macros]
    found = {name for name, said in words if not said.isdisjoint(_OF_DEVICE)}
    while more := {name for name, said in words if not found.isdisjoint(said)} - found:
        found |= more
    return found


def full_name(source: str, kernel: str) -> str:
    """Returns a kernel's name with the name spaces that it is in, unless it is given with some already."""
    name, opening, arguments = kernel.partition("<")
    if "::" not in name:
        for each in outline_of(source).declarations:
            if each.is_function and "__global__" in each.head and each.name == name.strip():
                own = re.search(rf"((?:\w+\s*::\s*)*)\b{re.escape(each.name)}\s*\(", each.head)
                qualifiers = re.findall(r"\w+", own[1]) if own else ()
                return "::".join((*each.spaces, *qualifiers, name)) + opening + arguments
    return kernel


def base_name(kernel: str) -> str:
    """Returns a kernel's name without name spaces, a template's arguments, and the types by which it is one of many."""
    name = re.sub(r"^\(void \(\*\)\(.*?\)\)", "", kernel, flags=re.DOTALL)
    return name.partition("<")[0].strip().rpartition("::")[2]


def _with_one_branch(code: str) -> str:
    """Returns code with the first branch only of conditional parts that open brackets without closing them."""
    begun: list[list[int]] = []  # of each conditional part that is open: where its branches begin, and their depths
    depths: list[list[int]] = []
    left_out: list[tuple[int, int]] = []
    place = depth = 0
    for match in CONDITION.finditer(code):
        depth += code.count("{", place, match.start()) - code.count("}", place, match.start())
        place = match.end()
        if match[1].startswith("if"):
            begun.append([match.end()])
            depths.append([depth])
        elif begun and match[1] == "endif":
            branches, (before, *ends) = begun.pop(), depths.pop()
            first = ends[0] if ends else depth
            if first != before:
                left_out += [(branches[1], match.start())] if len(branches) > 1 else []
                depth = first
        elif begun:
            begun[-1].append(match.end())
            depths[-1].append(depth)
            depth = depths[-1][0]
    return _blanked(code, sorted(left_out), ())


def _across_branches(found: Iterable[Declaration], code: str) -> Iterator[Declaration]:
    """Yields declarations, of which one that begins before branches and ends in the first goes on to their end.

    Functions stay as they are: what they are called may differ by the branch.
    """
    steps = {"if": 1, "ifdef": 1, "ifndef": 1, "endif": -1}
    conditions = [(match.start(), steps.get(match[1], 0)) for match in CONDITION.finditer(code)]
    joined: Declaration | None = None
    until = 0
    for each in found:
        begins = each.start + len(each.head) - len(each.head.lstrip())
        if joined is not None and begins < until:
            joined = replace(joined, end=each.end)
            continue
        if joined is not None:
            yield joined
        joined, until = each, 0 if each.is_function else _end_of_branches(conditions, begins, each.end)
    if joined is not None:
        yield joined


def _end_of_branches(conditions: Sequence[tuple[int, int]], begins: int, end: int) -> int:
    """Returns where branches end that a declaration begins before, and ends in; 0 where there are none."""
    depth = 0
    for place, step in islice(conditions, bisect_left(conditions, (begins, -1)), None):
        if place >= end and depth == 0:
            return 0
        depth = max(depth + step, 0)
        if place >= end and depth == 0:
            return place
    return 0


def _blank(text: str, pattern: re.Pattern[str]) -> str:
    return pattern.sub(lambda match: blanks(match[0]), text)


def _blanked(source: str, spans: Sequence[tuple[int, int]], stays: Sequence[tuple[int, int]]) -> str:
    """Returns a source with blanks in some places, in their order, but for what stays there, and for ends of lines."""
    kept: list[str] = []
    place = 0
    for start, end in spans:
        kept.append(source[place:start])
        place = max(place, start)
        for opening, closing_ in islice(stays, bisect_left(stays, (place, 0)), None):
            if opening >= end:
                break
            kept += [blanks(source[place:opening]), source[opening:closing_]]
            place = closing_
        kept.append(blanks(source[place:end]))
        place = max(place, end)
    return "".join([*kept, source[place:]])


def blanks(text: str) -> str:
    """Returns as many blanks, on as many lines."""
    return _ANY.sub(" ", text) if "\n" in text else " " * len(text)


def _whole_macros(defined: Sequence[tuple[str, str]]) -> set[str]:
    """Returns the macros whose calls are declarations, and need no semicolon behind them."""
    macros = {name: re.sub(r"^\([^()]*\)", "", text).rstrip("\\ \t\n") for name, text in defined}
    found = {name for name, text in macros.items() if text.endswith((";", "}"))}
    lasts = {name: last[1] for name, text in macros.items() if (last := re.search(r"(\w+)\s*\([^()]*\)$", text))}
    while more := {name for name, last in lasts.items() if last in found} - found:
        found |= more
    return found


def _declarations(plain: str, macros: Set[str]) -> Iterator[Declaration]:
    """Yields the declarations of a text without comments, strings and directives, those in namespaces too.

    Args:
        macros: those whose calls are declarations.
    """
    start = place = 0
    spaces: list[str] = []
    while (found := _MARK.search(plain, place)) is not None:
        place, mark = found.start(), found[0]
        if mark == ";":
            yield Declaration(start, place + 1, plain[start:place], False)
            start = place = place + 1
        elif mark == "}":
            start = place = place + 1
            del spaces[-1:]
        elif mark == "(":
            is_whole = plain[start:place].strip() in macros
            place = closing(plain, place)
            if is_whole and not _GOES_ON.match(plain, place):
                yield Declaration(start, place, plain[start:place], False)
                start = place
        else:
            head = plain[start:place]
            space = re.search(r"\bnamespace\b\s*([\w:]*)", head)
            if space or re.fullmatch(r"\s*extern\s*", head):
                spaces.append(space[1] if space else "")
                start = place = place + 1
                continue
            end = closing(plain, place, "{}")
            bare = parted(head)[0]
            is_type = "(" not in bare and TYPE.search(bare) is not None
            has_value = "=" in re.sub(r"\(.*\)", "", bare, flags=re.DOTALL)
            if not is_type and not has_value:
                yield Declaration(
                    start=start, end=end, head=head, is_function="(" in bare, spaces=tuple(filter(None, spaces))
                )
                start = end
            else:
                semicolon = plain.find(";", end)
                body, end = end, len(plain) if semicolon < 0 else semicolon + 1
                yield Declaration(start, end, head, False, tail=plain[body:end].rstrip("; \n"))
                start = end
            place = end
    if plain[start:].strip():  # calls of macros without a semicolon
        yield Declaration(start, len(plain), plain[start:], False)
