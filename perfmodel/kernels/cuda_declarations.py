"""Takes what a kernel does without out of a ``.cu`` file: code for the host, other kernels, what is not understood."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace
from functools import lru_cache

from perfmodel.kernels.cuda_heads import called, closing, parted
from perfmodel.kernels.cuda_members import for_the_host

UNNAMED = "kernel.cu"
"""A source is called so of which no line says its name."""
_SKIPPED = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'', re.DOTALL)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", re.MULTILINE)
_OF_DEVICE = re.compile(r"\b(?:__device__|__global__|constexpr)\b")
_TYPE = re.compile(r"\b(?:struct|class|union|enum)\b")
_START = re.compile(r"\b(?:template|extern|static|inline|__global__|__device__|__host__)\b")
_CONDITION = re.compile(r"^[ \t]*#[ \t]*(if|ifdef|ifndef|elif|else|endif)\b[^\n]*", re.MULTILINE)
_WORD = re.compile(r"[A-Za-z_]\w*")
_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)((?:[^\n\\]|\\.|\\\n)*)", re.MULTILINE)
_ANY = re.compile(r"[^\n]")
_GOES_ON = re.compile(r"\s*[;{(]")
_VARIABLE = re.compile(r"(\w+)\s*(?:\[[^\]]*\]\s*)*$")
_MARK = re.compile(r"[;{}(]")
_OPERATOR = "operator"
_OF_LAMBDA = re.compile(r"(?<=\])[ \t]*(?:__(?:host|device)__[ \t]*)+(?=[({])")
_LINE = re.compile(r'^\s*#line (\d+)(?: "(.*)")?')


@dataclass(frozen=True)
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

    @property
    def may_stand_for_others(self) -> bool:
        """True where something else of its name might take its place, so that leaving it out changes what code is."""
        return self.is_for_device or _TYPE.search(_bare(self.head)) is not None

    @property
    def name(self) -> str:
        """The name of a function, a type or a variable."""
        bare = _bare(self.head)
        before, is_given, _ = bare.partition("=")
        if is_given and "(" not in before and (variable := _VARIABLE.search(before)):
            return variable[1]
        if function := called(bare[max(bare.find("__global__"), 0) :]):
            return function[0]
        found = re.search(r"\b(?:struct|class|union|enum)\s+(?:class\s+)?(\w+)", bare)
        found = found or re.search(r"(\w+)\s*$", self.tail) or _VARIABLE.search(bare)
        return found[1] if found else ""


def code_of_kernel(source: str, kernel: str) -> str:
    """Returns a source without functions for the host, and without other kernels than one.

    Args:
        kernel: the name, of a template with its arguments.
    """
    name = base_name(kernel)
    found = _found(source)[1]
    kernels = [each for each in found if each.is_function and "__global__" in each.head]
    is_seen = any(each.name == name for each in kernels)  # or a macro makes it
    others = [each for each in kernels if is_seen and each.name != name]
    return _blanked(source, [(each.start, each.end) for each in found if _is_for_host(each) or each in others])


def full_name(source: str, kernel: str) -> str:
    """Returns a kernel's name with the name spaces that it is in, unless it is given with some already."""
    name, opening, arguments = kernel.partition("<")
    if "::" not in name:
        for each in declarations(source):
            if each.is_function and "__global__" in each.head and each.name == name.strip():
                own = re.search(rf"((?:\w+\s*::\s*)*)\b{re.escape(each.name)}\s*\(", each.head)
                qualifiers = re.findall(r"\w+", own[1]) if own else ()
                return "::".join((*each.spaces, *qualifiers, name)) + opening + arguments
    return kernel


def without(source: str, places: Sequence[tuple[str, int]], kernel: str) -> str | None:
    """Returns a source without the declarations at which a compiler found mistakes; None where none may be left out.

    A function or a type is left out only where the kernel doesn't mention it, nor anything that it mentions; so nothing
    else can take its place unnoticed. Of a type that it does mention, members for the host may be left out.

    Args:
        places: files, as the source's ``#line`` has them, with lines.
    """
    name, at, macros = base_name(kernel), _offsets(source, places), _macros_of_device(source)
    plain, found = _found(source)
    needed = _needed(source, plain, found, name)
    left_out = []
    for each in found:
        wrong = [place for place in at if each.start <= place < each.end]
        if not wrong:
            continue
        begin = _START.search(plain, each.start, each.end)
        before = plain[each.start : begin.start()].strip() if each.is_function and begin else ""
        if begin and before.endswith(")") and max(wrong) < begin.start():
            left_out.append((each.start, begin.start()))  # a macro's call before it
            continue
        if each.name == name and "__global__" in each.head:
            continue
        is_needed = _is_needed(each, found, needed)
        if each.may_stand_for_others and is_needed:
            if _TYPE.search(_bare(each.head)):
                opening = each.start + len(each.head)
                left_out += for_the_host(plain, opening, each.name, wrong, lambda head: _is_of_device(head, macros))
            continue
        left_out.append((each.start, each.end))
    return _blanked(source, left_out) if left_out else None


def without_unmentioned(source: str, kernel: str) -> str | None:
    """Returns a source without all that a kernel mentions nowhere, nor anything that it mentions; None for the same.

    Calls of macros stay, as they may make what has other names.
    """
    name = base_name(kernel)
    plain, found = _found(source)
    needed = _needed(source, plain, found, name)
    macros = {macro for macro, _ in _macros(source)}
    spare = [each for each in found if each.name not in macros and not _is_needed(each, found, needed)]
    left = _blanked(source, [(each.start, each.end) for each in spare])
    return None if left == source else left


def _needed(source: str, plain: str, found: Sequence[Declaration], kernel: str) -> set[str]:
    """Returns all words that a kernel mentions, and what it mentions in turn, macros among them.

    Operators are mentioned by none by name: one is taken to be where all types of the source that its head names are.
    """
    said: dict[str, set[str]] = defaultdict(set)
    types = {each.name for each in found if not each.is_function}
    operators: list[tuple[set[str], set[str]]] = []
    for each in found:
        words = set(_WORD.findall(plain[each.start : each.end]))
        if each.name == _OPERATOR:
            operators.append((types.intersection(_WORD.findall(each.head)), words))
        else:
            said[each.name].update(words)
    for name, text in _macros(source):
        said[name].update(_WORD.findall(text))
    needed, left = {kernel}, [kernel]
    while left:
        new = said.get(left.pop(), set()) - needed
        needed |= new
        left += new
        if not left:
            new = {word for named, words in operators if named <= needed for word in words} - needed
            needed |= new
            left += new
    return needed


def _is_needed(each: Declaration, found: Sequence[Declaration], needed: set[str]) -> bool:
    if each.name != _OPERATOR:
        return not each.name or each.name in needed
    words = _WORD.findall(each.head)
    return all(other.name in needed for other in found if not other.is_function and other.name in words)


def base_name(kernel: str) -> str:
    """Returns a kernel's name without name spaces, a template's arguments, and the types by which it is one of many."""
    name = re.sub(r"^\(void \(\*\)\(.*?\)\)", "", kernel, flags=re.DOTALL)
    return name.partition("<")[0].strip().rpartition("::")[2]


def _is_for_host(each: Declaration) -> bool:
    return each.is_function and not each.is_for_device


def _found(source: str) -> tuple[str, list[Declaration]]:
    """Returns a source without comments, strings and directives, and its declarations."""
    plain = _plain(source)
    macros = _macros_of_device(source)
    return plain, [replace(each, is_for_device=_is_of_device(each.head, macros)) for each in declarations(source)]


def _is_of_device(head: str, macros: Set[str]) -> bool:
    return bool(_OF_DEVICE.search(head)) or not macros.isdisjoint(_WORD.findall(head))


def _macros_of_device(source: str) -> set[str]:
    """Returns the macros that say of a function that it is for the device, also by way of other macros."""
    macros = _macros(source)
    found = {name for name, text in macros if _OF_DEVICE.search(text)}
    while more := {name for name, text in macros if not found.isdisjoint(_WORD.findall(text))} - found:
        found |= more
    return found


def _macros(source: str) -> list[tuple[str, str]]:
    return _MACRO.findall(_blank(source, _SKIPPED))


def _plain(source: str) -> str:
    """Returns a source with blanks in the place of comments, strings and directives."""
    code = _blank(source, _SKIPPED)
    return _blank(_with_one_branch(code), _DIRECTIVE)


def _with_one_branch(code: str) -> str:
    """Returns code with the first branch only of conditional parts that open brackets without closing them."""
    begun: list[list[int]] = []  # of each conditional part that is open: where its branches begin, and their depths
    depths: list[list[int]] = []
    left_out: list[tuple[int, int]] = []
    place = depth = 0
    for match in _CONDITION.finditer(code):
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
    kept = list(code)
    for start, end in left_out:
        kept[start:end] = [mark if mark == "\n" else " " for mark in kept[start:end]]
    return "".join(kept)


def _blank(text: str, pattern: re.Pattern[str]) -> str:
    return pattern.sub(lambda match: _ANY.sub(" ", match[0]), text)


def _blanked(source: str, spans: Sequence[tuple[int, int]]) -> str:
    """Returns a source with blanks in these places; lines and directives stay."""
    stays = [match.span() for match in _DIRECTIVE.finditer(_blank(source, _SKIPPED))]
    kept: list[str] = []
    place = 0
    for start, end in sorted(spans):
        kept.append(source[place:start])
        place = max(place, start)
        for opening, closing_ in stays[bisect_left(stays, (place, 0)) :]:
            if opening >= end:
                break
            kept += [_ANY.sub(" ", source[place:opening]), source[opening:closing_]]
            place = closing_
        kept.append(_ANY.sub(" ", source[place:end]))
        place = max(place, end)
    return "".join([*kept, source[place:]])


def without_refusals(source: str) -> str:
    """Returns a source without its ``#error`` lines, which headers that are not there may bring about."""
    return re.sub(r"^[ \t]*#[ \t]*error\b[^\n]*", lambda match: " " * len(match[0]), source, flags=re.MULTILINE)


def with_plain_lambdas(source: str) -> str:
    """Returns a source whose lambdas say nothing of the host and the device, as all code is for the device anyway."""
    return _OF_LAMBDA.sub(lambda match: " " * len(match[0]), source)


def _offsets(source: str, places: Sequence[tuple[str, int]]) -> list[int]:
    """Returns where lines of files begin that are parts of a source."""
    wanted, found = set(places), []
    file, number, offset = UNNAMED, 0, 0
    for line in source.split("\n"):
        number += 1
        if said := _LINE.match(line):
            file, number = said[2] or file, int(said[1]) - 1
        elif (file, number) in wanted:
            found.append(offset + len(line) - len(line.lstrip()))
        offset += len(line) + 1
    return found


@lru_cache(maxsize=4)
def declarations(source: str) -> tuple[Declaration, ...]:
    """Returns a source's declarations outside of all functions and types, those in namespaces too."""
    return tuple(_declarations(_plain(source), _whole_macros(source)))


def _whole_macros(source: str) -> set[str]:
    """Returns the macros whose calls are declarations, and need no semicolon behind them."""
    macros = {name: re.sub(r"^\([^()]*\)", "", text).rstrip("\\ \t\n") for name, text in _macros(source)}
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
            bare = _bare(head)
            is_type = "(" not in bare and _TYPE.search(bare) is not None
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


def _bare(head: str) -> str:
    return parted(head)[0]
