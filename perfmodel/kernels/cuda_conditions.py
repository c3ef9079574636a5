"""Finds conditions of the preprocessor in a ``.cu`` file, and the parts that a GPU's architecture excludes by them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from perfmodel.basics.errors import SourceError
from perfmodel.opencl_c.reading.integer_expressions import evaluate
from perfmodel.opencl_c.reading.tokens import NEWLINE, SPACE, tokens_of

CONDITION = re.compile(r"^[ \t]*#[ \t]*(ifdef|ifndef|if|elif|else|endif)\b([^\n]*)", re.MULTILINE)
ARCHITECTURE = "__CUDA_ARCH__"
USUAL = 90
"""The architecture that code is compiled for where nothing else is asked for: a Hopper's."""
_IS_DEFINED = re.compile(rf"defined\s*(?:\(\s*{ARCHITECTURE}\s*\)|{ARCHITECTURE}\b)")
_NAME = re.compile(r"[A-Za-z_]\w*")


@dataclass
class _Branches:
    """Says of a conditional part whether one of its branches so far is compiled, None where something else than the
    architecture decides, and where the one begins that is left out."""

    is_taken: bool | None
    left_from: int | None


def excluded(code: str) -> list[tuple[int, int]]:
    """Returns from where to where the branches go that the usual GPU does not compile, where numbers and its
    architecture alone decide on that, in their order; some may lie within others.

    Args:
        code: a source whose comments and texts are blank.
    """
    around: list[_Branches] = []
    left_out: list[tuple[int, int]] = []
    for match in CONDITION.finditer(code):
        word = match[1]
        if word.startswith("if"):
            around.append(_Branches(is_taken=False, left_from=None))
        elif not around:
            continue
        inner = around[-1]
        if inner.left_from is not None:
            left_out.append((inner.left_from, match.start()))
            inner.left_from = None
        if word == "endif":
            around.pop()
            continue
        holds = True if word == "else" else _holds(word, match[2])
        if inner.is_taken or (inner.is_taken is False and holds is False):
            inner.left_from = match.end()
        elif inner.is_taken is False:
            inner.is_taken = holds
    return sorted(left_out)


def _holds(word: str, condition: str) -> bool | None:
    """Returns whether a condition holds for the usual GPU; None where something else decides."""
    if word in ("ifdef", "ifndef"):
        return word == "ifdef" if condition.strip() == ARCHITECTURE else None
    said = _IS_DEFINED.sub("1", condition).replace(ARCHITECTURE, str(10 * USUAL))
    if _NAME.search(said) or "\\" in said:
        return None
    tokens = [token for token in tokens_of(said, "") if token.kind not in (SPACE, NEWLINE)]
    try:
        return bool(evaluate(tokens, tokens[0])) if tokens else None
    except SourceError:  # the compiler says what is wrong with it
        return None
