"""Model strings as LaTeX mathematics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from perfmodel.expression.functions import FUNCTIONS
from perfmodel.expression.text import ATOM, PRODUCT, SUM, UNARY, Piece, write
from perfmodel.expression.tree import Node

_ESCAPES = str.maketrans({"_": r"\_", "{": r"\{", "}": r"\}", "<": "{<}", ">": "{>}", "=": "{=}", ":": "{:}"})
_ESCAPES.update(str.maketrans({";": "{;}", ",": "{,}", "*": "{*}", "/": "{/}", "+": "{+}", "-": "{-}"}))


def to_latex(value: Node, terms: Mapping[str, Node]) -> str:
    """Returns the value, below one aligned line for each term; terms are written as their names wherever they are
    used."""
    names: dict[Node, str] = {}
    lines = []
    for name, node in terms.items():
        lines.append(f"{_upright(name)} &= {write(node, _LatexNotation(), names)}")
        names[node] = name
    last = write(value, _LatexNotation(), names)
    if not lines:
        return last
    return "\\begin{aligned}\n" + " \\\\\n".join([*lines, f"& {last}"]) + "\n\\end{aligned}"


class _LatexNotation:
    def number(self, value: float) -> Piece:
        mantissa, _, exponent = repr(abs(value)).removesuffix(".0").partition("e")
        sign = "-" if value < 0 else ""
        if exponent:
            factor = "" if mantissa == "1" else rf"{mantissa} \times "
            return Piece(f"{sign}{factor}10^{{{int(exponent)}}}", PRODUCT)
        return Piece(f"{sign}{mantissa}", UNARY if sign else ATOM)

    def name(self, name: str) -> Piece:
        prefix, _, rest = name.partition("_")
        if prefix in ("p", "f") and rest:
            return Piece(f"{prefix}_{{{_upright(rest)}}}")
        return Piece(_upright(name))

    def negation(self, operand: Piece) -> Piece:
        return Piece(f"-{_operand(operand)}", UNARY)

    def binary(self, operator: str, left: Piece, right: Piece) -> Piece:
        match operator:
            case "/":
                return Piece(rf"\frac{{{left.text}}}{{{right.text}}}", PRODUCT)
            case "**":
                return Piece(f"{{{_inside(left, ATOM)}}}^{{{right.text}}}", UNARY)
            case "*":
                return Piece(rf"{_inside(left, PRODUCT)} \cdot {_operand(right)}", PRODUCT)
        return Piece(f"{left.text} {operator} {_operand(right)}", SUM)

    def call(self, function: str, arguments: Sequence[str]) -> Piece:
        before, after = FUNCTIONS[function].brackets()
        return Piece(f"{before}{', '.join(arguments)}{after}")


def _upright(name: str) -> str:
    return rf"\mathrm{{{name.translate(_ESCAPES)}}}"


def _operand(piece: Piece) -> str:
    """Returns what follows an operator: in brackets if it is a sum, or if two signs would meet."""
    return _inside(piece, ATOM if piece.text.startswith("-") else PRODUCT)


def _inside(piece: Piece, least: int) -> str:
    return piece.text if piece.binding >= least else rf"\left({piece.text}\right)"
