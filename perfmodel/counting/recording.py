"""Records what functions of sizes compute, and makes of it one Python function of whole numbers.

A hundred numpy operations on single numbers take ten times as long as their arithmetic. A function of a `Block` is
called once with a `Recording` in its place; what it does with the counts is written down as lines of Python.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from perfmodel.counting.evaluation import Block
from perfmodel.counting.quasipolynomial import Affine, Constraint, Piece, QuasiPolynomial
from perfmodel.expression import formulas

EXACT = 2.0**53
"""Sums of whole numbers below this are the same in floating point."""

_FORMS: dict[Any, str] = {
    np.add: "{0} + {1}",
    np.subtract: "{0} - {1}",
    np.multiply: "{0} * {1}",
    np.divide: "{0} / {1}",
    np.greater: "{0} > {1}",
    np.greater_equal: "{0} >= {1}",
    np.less: "{0} < {1}",
    np.less_equal: "{0} <= {1}",
    np.equal: "{0} == {1}",
    np.not_equal: "{0} != {1}",
    np.bitwise_and: "{0} & {1}",
    np.bitwise_or: "{0} | {1}",
    np.negative: "-{0}",
    np.square: "{0} * {0}",
    np.absolute: "abs({0})",
    np.minimum: "{0} if {0} <= {1} else {1}",
    np.maximum: "{0} if {0} >= {1} else {1}",
    formulas.ratio: "{0} / {1} if {1} else 1.0",
}
_NEUTRAL: dict[Any, float] = {np.add: 0.0, np.multiply: 1.0, np.bitwise_and: True}


class UnrecordableError(Exception):
    """Says that a function does more with sizes than elementwise arithmetic, so that it can't be written down."""


class Recorded(np.lib.mixins.NDArrayOperatorsMixin):
    """A number that follows from sizes, known by its name in the lines that compute it; numpy's functions take it."""

    def __init__(self, recording: Recording, name: str) -> None:
        self.recording, self.name = recording, name

    def __array_ufunc__(self, function: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        if method != "__call__" or options:
            raise UnrecordableError(f"{function.__name__} with options")
        return self.recording.call(function, *inputs)

    def __array_function__(self, function: Any, types: Any, arguments: Any, options: Any) -> Any:
        if options or function not in (np.where, np.clip):
            raise UnrecordableError(function.__name__)
        if function is np.where:
            return self.recording.chosen(*arguments)
        value, low, high = arguments
        return np.minimum(np.maximum(value, low), high)

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise UnrecordableError("an array is made of it")

    def __bool__(self) -> bool:
        raise UnrecordableError("what is done depends on it")

    __hash__ = object.__hash__


class Recording(Block):
    """Sizes whose values are open, given to functions of blocks in the place of a `Block`.

    Args:
        sizes: their names, in the order in which the function made of it takes their values.
    """

    def __init__(self, sizes: Sequence[str]) -> None:
        super().__init__({})
        self.lines: list[str] = []
        self._called: dict[Callable[..., Any], str] = {}
        self.shape = ()
        self._pieces: list[Piece] = []
        self._sizes = {size: f"n{place}" for place, size in enumerate(sizes)}
        self._names: dict[str, Recorded] = {}
        self._counts: dict[Any, Any] = {}
        self.update({size: Recorded(self, name) for size, name in self._sizes.items()})  # type: ignore[misc]

    def value_of(self, count: QuasiPolynomial) -> Any:
        if count.pieces not in self._counts:
            self._counts[count.pieces] = self._counted(count.pieces)
        return self._counts[count.pieces]

    def call(self, function: Callable[..., Any], *inputs: Any) -> Any:
        """Returns what an elementwise function gives, a number if it is given numbers only."""
        if not any(isinstance(each, Recorded) for each in inputs):
            return function(*inputs)
        for place, each in enumerate(inputs):
            if len(inputs) == 2 and isinstance(function, np.ufunc) and _is(each, _NEUTRAL.get(function)):
                return inputs[1 - place]
        texts = [self._text(each) for each in inputs]
        if function in _FORMS:
            return self._line(_FORMS[function].format(*texts))
        name = self._called.setdefault(function, f"f{len(self._called)}")
        return self._line(f"float({name}({', '.join(texts)}))")

    def chosen(self, condition: Any, then: Any, otherwise: Any) -> Any:
        if not isinstance(condition, Recorded):
            return then if condition else otherwise
        return self._line(f"{self._text(then)} if {condition.name} else {self._text(otherwise)}")

    def function(self, *results: Any) -> Callable[..., tuple[float, ...]]:
        """Returns a function of whole numbers that gives what was recorded, as numbers.

        It raises ArithmeticError where numpy would give an infinity or NaN.
        """
        lines = [*self.lines, f"return {', '.join(map(self._text, results))},"]
        text = f"def recorded({', '.join(self._sizes.values())}):\n" + "".join(f"    {line}\n" for line in lines)
        namespace: dict[str, Any] = {"inf": np.inf, "nan": np.nan}
        namespace |= {name: function for function, name in self._called.items()}
        exec(text, namespace)  # of names and numbers that stand here, and of no text of a user's
        found: Callable[..., tuple[float, ...]] = namespace["recorded"]
        return found

    def is_exact(self, limits: Sequence[float]) -> bool:
        """Returns True if sums of whole numbers are the same in floating point for all sizes from 0 to these limits."""
        by_name = dict(zip(self._sizes, limits, strict=True))
        return all(_magnitude(piece, by_name) < EXACT for piece in self._pieces)

    def _line(self, text: str) -> Recorded:
        if text not in self._names:
            self._names[text] = Recorded(self, f"v{len(self._names)}")
            self.lines.append(f"{self._names[text].name} = {text}")
        return self._names[text]

    def _text(self, value: Any) -> str:
        if isinstance(value, Recorded):
            return value.name
        if np.ndim(value):
            raise UnrecordableError("an array is combined with it")
        return repr(np.asarray(value).item())

    def _counted(self, pieces: Sequence[Piece]) -> Any:
        self._pieces += pieces
        text = "0.0"
        for piece in reversed(pieces):
            value = " + ".join(self._term(term) for term in piece.terms) or "0"
            holds = self._domain(piece.domain)
            if not holds:
                if piece.terms and not any(term.sizes or term.floors for term in piece.terms):
                    return np.float64(sum(term.coefficient for term in piece.terms) / piece.denominator)
                text = f"({value}) / {piece.denominator}"
            else:
                text = f"({value}) / {piece.denominator} if {holds} else {text}"
        return np.float64(0.0) if text == "0.0" else self._line(text)

    def _term(self, term: Any) -> str:
        factors = [name for size, exponent in term.sizes for name in [self._sizes[size]] * exponent]
        factors += [name for inner, exponent in term.floors for name in [self._floor(inner)] * exponent]
        return " * ".join([str(term.coefficient), *factors])

    def _floor(self, affine: Affine) -> str:
        return self._line(f"({self._affine(affine)}) // {affine.denominator}").name

    def _affine(self, affine: Affine) -> str:
        parts = [f"{c} * {self._sizes[size]}" for size, c in affine.sizes]
        parts += [f"{c} * {self._floor(inner)}" for inner, c in affine.floors]
        return " + ".join([*parts, str(affine.constant)])

    def _domain(self, domain: Sequence[Sequence[Constraint]]) -> str:
        """Returns a condition; empty if it always holds."""
        if any(not conjunction for conjunction in domain):
            return ""
        each = [" & ".join(map(self._constraint, conjunction)) for conjunction in domain]
        return " | ".join(each) or "False"

    def _constraint(self, constraint: Constraint) -> str:
        sign = "==" if constraint.is_equality else ">="
        return self._line(f"{self._affine(constraint.affine)} {sign} 0").name


def _is(value: Any, number: float | None) -> bool:
    return number is not None and not isinstance(value, Recorded) and not np.ndim(value) and value == number


def _magnitude(piece: Piece, limits: Mapping[str, float]) -> float:
    """Returns a bound on the absolute values of a polynomial's terms, added up, for sizes from 0 to some limits."""
    total = 0.0
    for term in piece.terms:
        product = abs(float(term.coefficient))
        for size, exponent in term.sizes:
            product *= limits[size] ** exponent
        for inner, exponent in term.floors:
            product *= _largest(inner, limits) ** exponent
        total += product
    for conjunction in piece.domain:
        for constraint in conjunction:
            total = max(total, _largest(constraint.affine, limits))
    return total


def _largest(affine: Affine, limits: Mapping[str, float]) -> float:
    inner = sum(abs(c) * _largest(floor, limits) for floor, c in affine.floors)
    outer = sum(abs(c) * limits[size] for size, c in affine.sizes)
    return (abs(affine.constant) + outer + inner) / affine.denominator + 1
