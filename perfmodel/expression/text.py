"""Writes expressions: what model strings and LaTeX have in common, and model strings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from perfmodel.expression.tree import Binary, Call, FeatureName, Node, Number, Parameter, walk

SUM, PRODUCT, UNARY, POWER, ATOM = range(5)
BINDING = {"+": SUM, "-": SUM, "*": PRODUCT, "/": PRODUCT, "**": POWER}

# Parts deeper or larger than this get a line of their own, so that a text keeps to the language's own limits.
_LINE_DEPTH = 32
_LINE_SIZE = 200


@dataclass(frozen=True, slots=True)
class Piece:
    """A written part and its weakest operator outside brackets."""

    text: str
    binding: int = ATOM


class Notation(Protocol):
    """A notation writes a node whose children are written already."""

    def number(self, value: float) -> Piece: ...

    def name(self, name: str) -> Piece: ...

    def negation(self, operand: Piece) -> Piece: ...

    def binary(self, operator: str, left: Piece, right: Piece) -> Piece: ...

    def call(self, function: str, arguments: Sequence[str]) -> Piece: ...


def write(root: Node, notation: Notation, names: Mapping[Node, str]) -> str:
    """Writes one expression, in which a node that has a name is written as its name."""
    pieces: dict[Node, Piece] = {}
    for node in walk(root, leaves=names):
        if node in names:
            pieces[node] = notation.name(names[node])
        else:
            pieces[node] = _piece(node, notation, [pieces[child] for child in node.children])
    return pieces[root].text


def _piece(node: Node, notation: Notation, children: list[Piece]) -> Piece:
    match node:
        case Number(value):
            return notation.number(value)
        case Parameter(name) | FeatureName(name):
            return notation.name(name)
        case Binary(operator):
            return notation.binary(operator, *children)
        case Call(function):
            return notation.call(function, [child.text for child in children])
    return notation.negation(*children)


class _ModelNotation:
    def number(self, value: float) -> Piece:
        text = repr(abs(value)).removesuffix(".0")
        return Piece(f"-{text}", UNARY) if value < 0 else Piece(text)

    def name(self, name: str) -> Piece:
        return Piece(name)

    def negation(self, operand: Piece) -> Piece:
        return Piece(f"-{_inside(operand, UNARY)}", UNARY)

    def binary(self, operator: str, left: Piece, right: Piece) -> Piece:
        binding = BINDING[operator]
        sign = f" {operator} " if binding == SUM else operator
        least_left = ATOM if operator == "**" else binding
        least_right = UNARY if operator == "**" else binding + 1
        return Piece(f"{_inside(left, least_left)}{sign}{_inside(right, least_right)}", binding)

    def call(self, function: str, arguments: Sequence[str]) -> Piece:
        return Piece(f"{function}({', '.join(arguments)})")


def to_text(node: Node, names: Mapping[Node, str] | None = None) -> str:
    """Returns the model string of an expression.

    With `names` (of terms), one line that uses them. Without, lines that `parse` reads back: parts that are used
    more than once, or are very deep or long, become terms ``t1``, ``t2``, … . The text of a derivative may contain
    functions that are not part of the language.
    """
    if names is not None:
        return write(node, _ModelNotation(), names)
    lines = []
    own: dict[Node, str] = {}
    for part in _own_lines(node):
        text = write(part, _ModelNotation(), own)
        own[part] = f"t{len(own) + 1}"
        lines.append(f"{own[part]} = {text}\n")
    last = write(node, _ModelNotation(), own)
    if lines and last.startswith("-"):  # a line that begins with an operator would continue the one above
        last = f"({last})"
    return "".join(lines) + last


def _own_lines(root: Node) -> list[Node]:
    """Returns the parts that are written on lines of their own, in an order in which each uses earlier ones only."""
    uses = Counter(child for node in walk(root) for child in node.children)
    depth: dict[Node, int] = {}
    size: dict[Node, int] = {}
    parts = []
    for node in walk(root):
        depth[node] = _depth(node, depth)
        size[node] = 1 + sum(size[child] for child in node.children)
        if (
            node is not root
            and node.children
            and (uses[node] > 1 or depth[node] >= _LINE_DEPTH or size[node] >= _LINE_SIZE)
        ):
            parts.append(node)
            depth[node], size[node] = 0, 1
    return parts


def _depth(node: Node, depth: Mapping[Node, int]) -> int:
    """Returns how deeply the written node nests; a chain such as a + b + c does not."""
    if isinstance(node, Binary):
        flat = isinstance(node.left, Binary) and BINDING[node.left.operator] >= BINDING[node.operator] < POWER
        return max(depth[node.left] + (not flat), depth[node.right] + 1)
    return max((depth[child] + 1 for child in node.children), default=0)


def _inside(piece: Piece, least: int) -> str:
    return piece.text if piece.binding >= least else f"({piece.text})"
