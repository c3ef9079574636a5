"""Takes what a kernel does without out of a ``.cu`` file: code for the host, other kernels, what is not understood."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

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
_TEMPLATE = re.compile(r"\btemplate\s*(?=<)")
_ATTRIBUTE = re.compile(r"\b(?:alignas|noexcept|decltype|__\w+__)\s*\(")
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
        """The function's name, or the type's."""
        bare = _bare(self.head)
        found = re.search(r"(\w+)\s*(?:<[^()]*>\s*)?\(", bare) or re.search(
            r"\b(?:struct|class|union|enum)\s+(?:class\s+)?(\w+)", bare
        )
        found = found or re.search(r"(\w+)\s*$", self.tail)
        return found[1] if found else ""


def code_of_kernel(source: str, kernel: str) -> str:
    """Returns a source without functions for the host, and without other kernels than one.

    Args:
        kernel: the name, of a template with its arguments.
    """
    name = _base(kernel)
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
                return "::".join((*each.spaces, name)) + opening + arguments
    return kernel


def without(source: str, places: Sequence[tuple[str, int]], kernel: str) -> str | None:
    """Returns a source without the declarations at which a compiler found mistakes; None where none may be left out.

    A function or a type is left out only where the kernel doesn't mention it, nor anything that it mentions; so nothing
    else can take its place unnoticed.

    Args:
        places: files, as the source's ``#line`` has them, with lines.
    """
    name, at = _base(kernel), _offsets(source, places)
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
        if each.may_stand_for_others and (not each.name or each.name in needed):
            continue
        left_out.append((each.start, each.end))
    return _blanked(source, left_out) if left_out else None


def _needed(source: str, plain: str, found: Sequence[Declaration], kernel: str) -> set[str]:
    """Returns all words that a kernel mentions, and what it mentions in turn, macros among them."""
    said: dict[str, set[str]] = defaultdict(set)
    for each in found:
        said[each.name].update(_WORD.findall(plain[each.start : each.end]))
    for name, text in _macros(source):
        said[name].update(_WORD.findall(text))
    needed, left = {kernel}, [kernel]
    while left:
        new = said.get(left.pop(), set()) - needed
        needed |= new
        left += new
    return needed


def _base(kernel: str) -> str:
    """Returns a kernel's name without name spaces and a template's arguments."""
    return kernel.partition("<")[0].strip().rpartition("::")[2]


def _is_for_host(each: Declaration) -> bool:
    return each.is_function and not each.is_for_device


def _found(source: str) -> tuple[str, list[Declaration]]:
    """Returns a source without comments, strings and directives, and its declarations."""
    plain = _plain(source)
    macros = _macros_of_device(source)
    return plain, [
        replace(
            each, is_for_device=bool(_OF_DEVICE.search(each.head)) or not macros.isdisjoint(_WORD.findall(each.head))
        )
        for each in declarations(source)
    ]


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
    return pattern.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def _blanked(source: str, spans: Sequence[tuple[int, int]]) -> str:
    """Returns a source with blanks in these places; lines and directives stay."""
    directives = {place for match in _DIRECTIVE.finditer(_blank(source, _SKIPPED)) for place in range(*match.span())}
    kept = list(source)
    for start, end in spans:
        for place in range(start, end):
            if kept[place] != "\n" and place not in directives:
                kept[place] = " "
    return "".join(kept)


def without_refusals(source: str) -> str:
    """Returns a source without its ``#error`` lines, which headers that are not there may bring about."""
    return re.sub(r"^[ \t]*#[ \t]*error\b[^\n]*", lambda match: " " * len(match[0]), source, flags=re.MULTILINE)


def _offsets(source: str, places: Sequence[tuple[str, int]]) -> list[int]:
    """Returns where lines of files begin that are parts of a source."""
    wanted, found = set(places), []
    file, number, offset = UNNAMED, 0, 0
    for line in source.splitlines(keepends=True):
        number += 1
        if said := _LINE.match(line):
            file, number = said[2] or file, int(said[1]) - 1
        elif (file, number) in wanted:
            found.append(offset + len(line) - len(line.lstrip()))
        offset += len(line)
    return found


@lru_cache(maxsize=4)
def declarations(source: str) -> tuple[Declaration, ...]:
    """Returns a source's declarations outside of all functions and types, those in namespaces too."""
    return tuple(_declarations(_plain(source)))


def _declarations(plain: str) -> Iterator[Declaration]:
    """Yields the declarations of a text without comments, strings and directives, those in namespaces too."""
    start = place = 0
    spaces: list[str] = []
    while place < len(plain):
        mark = plain[place]
        if mark == ";":
            yield Declaration(start, place + 1, plain[start:place], False)
            start = place = place + 1
        elif mark == "}":
            start = place = place + 1
            del spaces[-1:]
        elif mark == "(":
            place = closing(plain, place)
        elif mark == "{":
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
        else:
            place += 1
    if plain[start:].strip():  # calls of macros without a semicolon
        yield Declaration(start, len(plain), plain[start:], False)


def parted(head: str) -> tuple[str, str]:
    """Returns the head of a declaration without its templates' parameters, attributes, and an operator's signs; and the
    parameters of its last template."""
    place, parameters = 0, ""
    while (found := _TEMPLATE.search(head, place)) is not None:
        depth = inside = 0
        for end in range(found.end(), len(head)):
            inside += (head[end] == "(") - (head[end] == ")")
            depth += 0 if inside else (head[end] == "<") - (head[end] == ">")
            if depth == 0 and not inside:
                break
        parameters, head = head[found.end() + 1 : end], head[: found.start()] + head[end + 1 :]
        place = found.start()
    head = re.sub(r"\[\[.*?\]\]|\boperator\s*[^\s\w(]+", " operator ", head)
    while (attribute := _ATTRIBUTE.search(head)) is not None:
        head = f"{head[: attribute.start()]} {head[closing(head, attribute.end() - 1) :]}"
    return head, parameters


def _bare(head: str) -> str:
    return parted(head)[0]


def closing(text: str, opening: int, pair: str = "()") -> int:
    """Returns the place behind the bracket that closes one."""
    depth = 0
    for place in range(opening, len(text)):
        depth += (text[place] == pair[0]) - (text[place] == pair[1])
        if depth == 0:
            return place + 1
    return len(text)
