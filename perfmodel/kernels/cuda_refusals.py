"""Says in one sentence why NVIDIA's compiler refuses a kernel, and what to do about it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from perfmodel.basics.errors import SourceError
from perfmodel.kernels.cuda_conditions import CONDITION
from perfmodel.kernels.cuda_declarations import base_name, outline_of
from perfmodel.kernels.cuda_host import is_of_a_library, may_be_needed
from perfmodel.kernels.cuda_source import types_of

NAMES = "__nv_name_map"
"""NVIDIA's compiler gives this as the place of a name that it was asked for."""
_MOST_NAMED = 4
_UNDEFINED = re.compile(r'identifier "(\w+)" is undefined$')
_NO_MEMBER = re.compile(r'namespace "[^"]*" has no member')
_UNCLEAR = {
    'name followed by "::" must be a class or namespace name': (
        r"\w+(?=\s*::)",
        "is no class or name space that is known",
    ),
    "qualified name is not allowed": (r"[\w:]+", "is no type that is known"),
}
"""Words of the compiler's that name nothing: what to name instead, and what of it."""


class MissingHeadersError(SourceError):
    """Raised for a kernel that the compiler refuses, as headers may be missing.

    Attributes:
        headers: that were not found, by the ways that the source says.
    """

    def __init__(self, reason: str, headers: Sequence[str]) -> None:
        super().__init__(reason)
        self.headers = tuple(headers)


def refused(log: str, source: str, kernel: str, file: str, not_found: Sequence[str]) -> SourceError:
    """Returns an error that says what is wrong with a kernel.

    Args:
        log: of the compiler.
        kernel: its name, of a template with its arguments.
        file: what the compiler calls the source.
        not_found: headers that are not there.
    """
    name = base_name(kernel)
    own = [source[each.start : each.end] for each in outline_of(source).declarations if each.name == name]
    if any("__global__" in each and "<<<" in each for each in own):
        return SourceError(
            f"kernel {name!r} launches kernels itself, which is not emulated; give those that it launches"
        )
    said = _said(log, file) or "the source is not understood"
    undefined = _UNDEFINED.search(said)
    if undefined and re.search(rf"\btexture\s*<[^;]*>\s*{undefined[1]}\b", source):
        return SourceError(
            f"{said}: references to textures are gone since CUDA 12, and textures are not emulated; give the kernel "
            "an array"
        )
    if undefined and (under := _conditions_of_all(source, undefined[1])):
        conditions = " and ".join(map(repr, under))
        return SourceError(f"{said}: it is defined under {conditions}, which does not hold; give the option -D… for it")
    missing = sorted(filter(may_be_needed, not_found), key=is_of_a_library)[:_MOST_NAMED]
    option = ""
    may_be_option = not missing or (undefined is not None and undefined[1].isupper())
    if undefined and undefined[1] != name and may_be_option and all(map(is_of_a_library, missing)):
        option = f"; if builds define it, give the option -D{undefined[1]}=…"
    return MissingHeadersError(f"{said}{option}{_remedy(missing)}", missing)


def not_named(source: str, name: str, file: str, why: str, kernels: Sequence[str]) -> str:
    """Returns why a source has no kernel of a name, or several of them.

    Args:
        why: the compiler's words. kernels: those of the source by name.
    """
    plain = base_name(name)
    if "instance of overloaded function" in why:
        types = dict.fromkeys(types_of(source, plain))
        ways = ", ".join(repr(f"{name}({each})") for each in types)
        return f"{file} has several kernels {name!r}; name one with the types of its arguments, of {ways}"
    if "instance of function template" in why:
        return (
            f"kernel {name!r} of {file} is a template with further arguments; give them all: '{name.split('<')[0]}<…>'"
        )
    for each in outline_of(source).declarations:
        if each.name == plain and "__global__" in each.head and (under := _conditions(source, each.end)):
            conditions = " and ".join(map(repr, under))
            return (
                f"kernel {name!r} of {file} stands under {conditions}, which does not hold; give the option -D… for it"
            )
    return f"{file} has no kernel {name!r} ({why}); it has: {', '.join(kernels) or 'none'}"


def _conditions_of_all(source: str, name: str) -> list[str]:
    """Returns the conditions that the first definition of a name stands under, as a macro or a type; none where one of
    them stands under none, or there is none."""
    said = re.compile(
        rf"^[ \t]*#[ \t]*define[ \t]+{name}\b|\btypedef\b[^;{{}}]*\b{name}\s*;|\busing\s+{name}\s*="
        rf"|\b(?:struct|class|enum)\s+{name}\s*[{{:]",
        re.MULTILINE,
    )
    found = [_conditions(source, each.start()) for each in said.finditer(source)]
    return found[0] if found and all(found) else []


def _conditions(source: str, place: int) -> list[str]:
    """Returns the conditions that a place of a source stands under, without the guards of headers."""
    found: list[str] = []
    for match in CONDITION.finditer(source, 0, place):
        word = match[1]
        if word.startswith("if"):
            found.append(" ".join(match[0].split()))
        elif word == "endif":
            del found[-1:]
        elif found:
            found[-1] = f"{found[-1].partition(', then ')[0]}, then {' '.join(match[0].split())}"
    guards = {f"#ifndef {name}" for name in re.findall(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", source, re.MULTILINE)}
    found = [each for each in found if each not in guards]
    return [each for each in found if not each.startswith("#ifndef") or ", then" in each][-2:] or found[-2:]


def _remedy(missing: Sequence[str]) -> str:
    """Returns what to do about headers that were not found, to be said behind an error."""
    if not missing:
        return ""
    # A source reads no files but those in its folder and in the given ones, wherever its ways lead.
    above = any(".." in each.split("/") for each in missing)
    which = ", for ../ a folder that holds both the header and the source" if above else ""
    own = ", or pip install 'perfmodel[nvidia]'" if any(each.startswith("curand") for each in missing) else ""
    return f"; not found: {', '.join(missing)}; give their folders (--include{which}){own}"


def _said(log: str, file: str) -> str:
    """Returns the first error of the compiler's log, in one line."""
    lines = [line.rstrip() for line in log.splitlines() if line.strip()]
    wrong = [line for line in lines if "error" in line] or lines or [""]
    wrong = [line for line in wrong if ": error" in line and not line.startswith(NAMES)] or wrong
    telling = ("is undefined", *_UNCLEAR)
    first = next((line for line in wrong if line.endswith(telling) or _NO_MEMBER.search(line)), wrong[0])
    said = first.replace("error:", "").replace("  ", " ").strip()
    place = lines.index(first) if first in lines else len(lines)
    for unclear, (pattern, what) in _UNCLEAR.items():
        if said.endswith(unclear) and len(lines) > place + 2 and (mark := lines[place + 2].find("^")) >= 0:
            word = re.match(pattern, lines[place + 1][mark:])
            said = said.replace(unclear, f'"{word[0]}" {what}') if word else said
    return said.removeprefix("/") if said.startswith(file) else said
