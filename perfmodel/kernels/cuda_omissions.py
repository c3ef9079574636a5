"""Takes what a kernel does without out of a ``.cu`` file: code for the host, other kernels, what is not understood."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Sequence

from perfmodel.kernels.cuda_declarations import TYPE, UNNAMED, WORD, Declaration, Outline, base_name, blanks
from perfmodel.kernels.cuda_members import for_the_host

_START = re.compile(r"\b(?:template|extern|static|inline|__global__|__device__|__host__)\b")
_OPERATOR = "operator"
_OF_LAMBDA = re.compile(r"(?<=\])[ \t]*(?:__(?:host|device)__[ \t]*)+(?=[({])")
_LINE = re.compile(r'^\s*#line (\d+)(?: "(.*)")?')


def code_of_kernel(outline: Outline, kernel: str) -> Outline:
    """Returns what is left of a source without functions for the host, and without other kernels than one.

    Args:
        kernel: the name, of a template with its arguments.
    """
    name = base_name(kernel)
    kernels = [each for each in outline.declarations if each.is_function and "__global__" in each.head]
    is_seen = any(each.name == name for each in kernels)  # or a macro makes it
    others = {each for each in kernels if is_seen and each.name != name}
    return outline.without(
        [(each.start, each.end) for each in outline.declarations if each in others or _is_for_the_host(each)]
    )


def _is_for_the_host(each: Declaration) -> bool:
    """Returns whether this is a function for the host, or the declaration of one that says so."""
    return not each.is_for_device and (each.is_function or ("__host__" in each.head and "(" in each.bare))


def without(outline: Outline, places: Sequence[tuple[str, int]], kernel: str) -> Outline | None:
    """Returns what is left of a source without the declarations at which a compiler found mistakes; None where none may
    be left out.

    A function or a type is left out only where the kernel doesn't mention it, nor anything that it mentions; so nothing
    else can take its place unnoticed. Of a type that it does mention, members for the host may be left out.

    Args:
        places: files, as the source's ``#line`` has them, with lines.
    """
    name, at = base_name(kernel), _offsets(outline.source, places)
    plain, is_needed = outline.plain, _need_of(outline, name)
    left_out = []
    for each in outline.declarations:
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
        if each.may_stand_for_others and is_needed(each):
            if TYPE.search(each.bare):
                opening = each.start + len(each.head)
                left_out += for_the_host(plain, opening, each.name, wrong, outline.is_for_device)
            continue
        left_out.append((each.start, each.end))
    return outline.without(left_out) if left_out else None


def without_unmentioned(outline: Outline, kernel: str) -> Outline | None:
    """Returns what is left of a source without all that a kernel mentions nowhere, nor anything that it mentions; None
    where that is all of it.

    Calls of macros stay, as they may make what has other names.
    """
    is_needed = _need_of(outline, base_name(kernel))
    macros = {macro for macro, _ in outline.macros}
    spare = [each for each in outline.declarations if each.name not in macros and not is_needed(each)]
    left = outline.without([(each.start, each.end) for each in spare])
    return None if left.source == outline.source else left


def without_refusals(source: str) -> str:
    """Returns a source without its ``#error`` lines, which headers that are not there may bring about."""
    return re.sub(r"^[ \t]*#[ \t]*error\b[^\n]*", lambda match: blanks(match[0]), source, flags=re.MULTILINE)


def with_plain_lambdas(source: str) -> str:
    """Returns a source whose lambdas say nothing of the host and the device, as all code is for the device anyway."""
    return _OF_LAMBDA.sub(lambda match: blanks(match[0]), source)


def _need_of(outline: Outline, kernel: str) -> Callable[[Declaration], bool]:
    """Returns what tells which declarations a kernel needs.

    Operators are mentioned by none by name: one is taken to be where all types of the source that its head names are.
    """
    types = {each.name for each in outline.declarations if not each.is_function}
    needed = _mentioned(outline, kernel, types)

    def is_needed(each: Declaration) -> bool:
        if each.name != _OPERATOR:
            return not each.name or each.name in needed
        return types.intersection(WORD.findall(each.head)) <= needed

    return is_needed


def _mentioned(outline: Outline, kernel: str, types: set[str]) -> set[str]:
    """Returns all words that a kernel mentions, and what it mentions in turn, macros among them."""
    said: dict[str, set[str]] = defaultdict(set)
    operators: list[tuple[set[str], set[str]]] = []
    for each in outline.declarations:
        words = set(WORD.findall(outline.plain[each.start : each.end]))
        if each.name == _OPERATOR:
            operators.append((types.intersection(WORD.findall(each.head)), words))
        else:
            said[each.name].update(words)
    for name, text in outline.macros:
        said[name].update(WORD.findall(text))
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
