"""Refuses some before clang sees it: features by their names, and nesting that could exhaust clang's stack.

Functions that are refused, by their names or by clang, are taken out of the text, so that others can be read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

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
_NO_FUNCTION = re.compile(r"=|\btypedef\b")
"""Words of variables' and types' declarations."""
_KERNEL = re.compile(r"\b(?:__)?kernel\b")
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
    definitions = list(_definitions(text.text))
    while found is not None and found.lastgroup:
        _, feature, remedy = _FEATURES[int(found.lastgroup[1:])]
        reason = f"the kernel uses {feature} ({found.group()}), which perfmodel does not support; {remedy}"
        fault = text.fault(reason, found.start())
        own = _definition_at(definitions, found.start())
        if own is None:
            raise fault
        refused[own.name] = fault
        own.take_out(text, found.start())
        found = _NAMES.search(text.text, own.end)
    return refused


def take_out_mistaken(text: Expanded, mistakes: Sequence[tuple[int, str]], refused: dict[str, SourceError]) -> None:
    """Takes functions that clang finds mistakes in out of a text, and writes down why they are refused.

    A function that names another one that is refused is so for the same reason, as its own mistakes may follow; so may
    those that stand outside of functions, beside others that stand in them.

    Args:
        mistakes: their offsets, and what is wrong there, in the order of the text.
        refused: why functions are refused that are out of the text already, by their names.

    Raises:
        SourceError: all mistakes stand outside of functions.
    """
    definitions = list(_definitions(text.text))
    taken_out: set[int] = set()
    for offset, reason in mistakes:
        own = _definition_at(definitions, offset)
        if own is None or own.head in taken_out:
            continue
        words = set(re.findall(r"\w+", text.text[own.head : own.end]))
        cause = next((why for name, why in refused.items() if name in words), None)
        refused[own.name] = cause or text.fault(reason, offset)
        own.take_out(text, offset)
        taken_out.add(own.head)
    if not taken_out:
        offset, reason = mistakes[0]
        raise text.fault(reason, offset)


class _Definition(NamedTuple):
    """A function that a text defines or declares: its name, and where its head begins, its body begins, and it ends."""

    name: str
    head: int
    body: int
    end: int

    def take_out(self, text: Expanded, offset: int) -> None:
        """Leaves a definition's declaration in a text, or that there is such a kernel if its head is what is wrong.

        A declaration leaves nothing, so that taking out comes to an end.
        """
        written = text.text
        is_definition = written[self.body] == "{"
        if is_definition and offset >= self.body:
            start, left = self.body, ";"
        else:
            is_kernel = is_definition and _KERNEL.search(written, self.head, self.body)
            start, left = self.head, f"kernel void {self.name}();" if is_kernel else ""
        if len(left) > self.end - start:  # it would move all that follows
            left = ""
        blank = re.sub(r"[^\n]", " ", written[start + len(left) : self.end])
        text.text = written[:start] + left + blank + written[self.end :]


def _definition_at(definitions: Iterable[_Definition], offset: int) -> _Definition | None:
    return next((each for each in definitions if each.head <= offset < each.end), None)


def _definitions(text: str) -> Iterator[_Definition]:
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
                yield from _named(text, head, start, match.end())
                head = match.end()
        elif mark == ";" and not depth:
            yield from _named(text, head, match.start(), match.end())
            head = match.end()


def _named(text: str, head: int, body: int, end: int) -> Iterator[_Definition]:
    before = _ATTRIBUTE.sub("", text[head:body])
    if not _NO_FUNCTION.search(before) and (named := _HEAD.search(before)):
        yield _Definition(named.group(1), head, body, end)


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
