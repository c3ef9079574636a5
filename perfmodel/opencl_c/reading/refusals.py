"""Some is refused before clang sees it: features by their names, and nesting that could exhaust clang's stack."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from perfmodel.basics.errors import SourceError
from perfmodel.opencl_c.reading.preprocessing import Expanded

_FEATURES = (
    (
        r"queue_t|ndrange_t|clk_event_t|enqueue_kernel|enqueue_marker",
        "enqueueing from the device",
        "launch kernels from the host",
    ),
    (r"reserve_id_t|(?:read|write)_pipe|(?:work_group_)?reserve_(?:read|write)_pipe", "pipes", "use a buffer"),
    (r"asm|__asm|__asm__", "assembly", "use built-in functions"),
)
_NAMES = re.compile(
    r"\b(?:" + "|".join(f"(?P<_{number}>{names})" for number, (names, _, _) in enumerate(_FEATURES)) + r")\b"
)

BRACKETS = 120
RUN = 1500
EXPRESSION = 20_000
ELSES = 400
DECLARATIONS = 2000
_MARKS = re.compile(r"""[(\[{]|[)\]}]|[;,]|\belse\b|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[\w.]+|[^\s\w]""")
_ATTRIBUTE = re.compile(r"__attribute__\s*\(\(.*?\)\s*\)", re.DOTALL)
_HEAD = re.compile(r"(\w+)\s*\(")
"""The name of a function whose head has no attributes."""
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_BEFORE_CONDITIONS = frozenset(("if", "while", "for", "switch"))


def without_unsupported(text: Expanded) -> dict[str, SourceError]:
    """Takes the bodies of functions that use features which are not supported out of a text, so that other kernels of
    the source can be read.

    Returns:
        Why these functions are refused, by their names.

    Raises:
        SourceError: such a feature stands outside of functions' bodies.
    """
    refused: dict[str, SourceError] = {}
    found = _NAMES.search(text.text)
    if found is None:
        return refused
    bodies = list(_bodies(text.text))
    while found is not None and found.lastgroup:
        _, feature, remedy = _FEATURES[int(found.lastgroup[1:])]
        reason = f"the kernel uses {feature} ({found.group()}), which perfmodel does not support; {remedy}"
        fault = text.fault(reason, found.start())
        own = next(((name, start, end) for name, start, end in bodies if start < found.start() < end), None)
        if own is None:
            raise fault
        name, start, end = own
        refused[name] = fault
        blank = re.sub(r"[^\n]", " ", text.text[start + 1 : end])
        text.text = text.text[:start] + ";" + blank + text.text[end:]
        found = _NAMES.search(text.text, end)
    return refused


def _bodies(text: str) -> Iterator[tuple[str, int, int]]:
    """Iterates over the functions that a text defines: their names, and where their bodies start and end."""
    depth, head, start = 0, 0, 0
    for match in _MARKS.finditer(text):
        mark = match.group()
        if mark == "{":
            if not depth:
                start = match.start()
            depth += 1
        elif mark == "}":
            depth -= 1
            if not depth:
                named = _HEAD.search(_ATTRIBUTE.sub("", text[head:start]))
                if named:
                    yield named.group(1), start, match.end()
                head = match.end()
        elif mark == ";" and not depth:
            head = match.end()


@dataclass
class _Bracket:
    """A bracket that is open: where, how deep clang is there, and whether a value or something else stands in it."""

    sign: str
    offset: int
    run: int
    is_value: bool


def check_nesting(text: Expanded) -> None:
    """Refuses what clang could not stand: it parses by recursion, and a process whose stack overflows is gone.

    Operators one after the other (``-~-~x``), casts, and statements that hold one another take it deeper; a binary
    operator between two values brings it back to where the brackets around began. Brackets that do not match and
    declarations by the thousand take it time beyond measure.
    """
    opened: list[_Bracket] = []
    run = tokens = elses = declarations = 0
    before, is_value = "", False
    for match in _MARKS.finditer(text.text):
        mark, offset = match.group(), match.start()
        base = opened[-1].run if opened else 0
        tokens += 1
        run += 4 if mark == "sizeof" else 1
        if mark in _CLOSING:
            run += 2
            opened.append(_Bracket(mark, offset, run, is_value and before not in _BEFORE_CONDITIONS))
            if len(opened) > BRACKETS:
                raise text.fault(f"brackets are nested more than {BRACKETS} deep: use variables or functions", offset)
            is_value = False
        elif mark in (")", "]", "}"):
            closed = _close(text, opened, mark, offset)
            run, is_value = closed.run, closed.is_value or mark == "]"
            elses = elses if opened else 0
        elif mark[0].isalnum() or mark[0] in "_.'\"":
            is_value = mark not in ("else", "return", "do", "case", "sizeof")
            elses += mark == "else"
            if elses > ELSES:
                raise text.fault(f"one function has more than {ELSES} branches of else: use a switch", offset)
        else:
            if is_value and mark not in "?:=!~.":
                run = base
            if opened and mark != "*":
                opened[-1].is_value |= opened[-1].sign == "("
            is_value = False
        if mark == ";" and not opened:
            declarations += 1
            if declarations > DECLARATIONS:
                raise text.fault(f"the source has more than {DECLARATIONS} declarations: part it", offset)
        if mark in ("{", "}", ";", ","):
            tokens = 0
            if mark in (";", ",") or not opened:
                run = base if opened else 0
        if run > RUN or tokens > EXPRESSION:
            most = f"{EXPRESSION} tokens" if tokens > EXPRESSION else f"{RUN} tokens within one another"
            raise text.fault(f"one expression has more than {most}: use variables for its parts", offset)
        before = mark
    if opened:
        sign = opened[-1].sign
        raise text.fault(f"the {sign} is never closed: end it with {_CLOSING[sign]}", opened[-1].offset)


def _close(text: Expanded, opened: list[_Bracket], mark: str, offset: int) -> _Bracket:
    if not opened:
        raise text.fault(f"the {mark} closes nothing", offset)
    bracket = opened.pop()
    if _CLOSING[bracket.sign] != mark:
        line = text.place(bracket.offset).line
        sign = bracket.sign
        raise text.fault(f"the {mark} stands where a {_CLOSING[sign]} should close the {sign} of line {line}", offset)
    return bracket
