"""Declares parameters before they are fitted: held at a value, within bounds, or tied to others."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.basics.errors import FitError, ModelStringError, nearest
from perfmodel.expression import ModelString, compile_nodes, parse
from perfmodel.expression.derivative import gradient
from perfmodel.expression.tree import Node
from perfmodel.modelling.fitting.structure import substituted

Given = Mapping[str, Any]
"""A number, a pair of bounds, an expression, or the words of `WORDS`, by the name of the parameter."""

WORDS = ("value", "vary", "min", "max", "expr")


@dataclass(frozen=True)
class Declared:
    """Holds what is said of one parameter before a fit.

    Attributes:
        bounds: infinite where open, equal where they hold it; None leaves them to the fit.
        start: where the search begins; None leaves that to the fit.
        tie: the expression of other parameters that it follows; empty for one that is fitted or held.
    """

    bounds: tuple[float, float] | None = None
    start: float | None = None
    tie: str = ""

    @property
    def held(self) -> float | None:
        """Returns the value at which the parameter is held; None where it is not."""
        return self.bounds[0] if self.bounds and self.bounds[0] == self.bounds[1] else None

    @property
    def given(self) -> float | list[float | None] | str | dict[str, float | None]:
        """Returns the shortest form that `declared` reads as the same, of values that JSON can hold."""
        if self.tie or self.held is not None:
            return self.tie or self.bounds[0]  # type: ignore[index]
        low, high = (bound if math.isfinite(bound) else None for bound in self.bounds or (-math.inf, math.inf))
        if self.start is None:
            return [low, high]
        return {"value": self.start} | ({"min": low, "max": high} if self.bounds else {})

    def __str__(self) -> str:
        if self.tie or self.held is not None:
            return f"= {self.tie}" if self.tie else f"held at {self.held:g}"
        said = [f"within [{self.bounds[0]:g}, {self.bounds[1]:g}]"] if self.bounds else []
        return ", ".join([*said, *([f"from {self.start:g}"] if self.start is not None else [])])


def declared(given: Given | None, model: ModelString) -> dict[str, Declared]:
    """Reads and checks what is said of a model's parameters.

    Args:
        given: by the name of each parameter: a number holds it there, a pair is its lower and upper bound (None where
            open), and a text ties it to others, an expression in the language of model strings. For a start too, a
            mapping with the words of lmfit: ``value``, ``vary``, ``min``, ``max``, ``expr``. None says nothing. An
            `lmfit.Parameters` will do.

    Raises:
        FitError: for no parameter of the model, bounds in the wrong order, a start outside, ties that go in a circle.
        ModelStringError: for a tie that is no expression.
    """
    if given is not None and not isinstance(given, Mapping):
        raise FitError(f"what is said of parameters is a dictionary by their names, not {type(given).__name__}")
    found = {}
    for name, said in (given or {}).items():
        check_parameter(name, model, "something is said")
        if said is not None:
            found[name] = said if isinstance(said, Declared) else _read(name, said)
    Ties.of(found, model)
    return {name: found[name] for name in model.parameters if found.get(name, Declared()) != Declared()}


def check_parameter(name: str, model: ModelString, context: str) -> None:
    """Raises FitError unless the model has the parameter."""
    if name not in model.parameters:
        raise FitError(
            f"{context} of {name!r}, which is no parameter of the model"
            f"{nearest(name, model.parameters) or '; its parameters are ' + ', '.join(model.parameters)}"
        )


@dataclass(frozen=True)
class Ties:
    """Ties say which parameters follow others, and how.

    Attributes:
        texts: the expressions as written.
        nodes: the same over parameters that are not tied themselves, in the model's order.
        names: all parameters of the model.
    """

    texts: Mapping[str, str]
    nodes: Mapping[str, Node]
    names: tuple[str, ...]

    @classmethod
    def of(cls, said: Mapping[str, Declared], model: ModelString) -> Ties:
        """Reads the ties among what is said of a model's parameters; see `declared` for what is raised."""
        written = {name: _parsed(name, each.tie, model) for name, each in said.items() if each.tie}
        behind = {name: [other for other in each.parameters if other in written] for name, each in written.items()}
        nodes: dict[str, Node] = {}
        try:
            for name in TopologicalSorter(behind).static_order():
                nodes[name] = substituted(written[name].value, nodes)
        except CycleError as error:
            circle = ", ".join(sorted(set(error.args[1])))
            raise FitError(f"the ties of {circle} go round in a circle; leave one of them untied") from error
        ordered = [name for name in model.parameters if name in nodes]
        texts = {name: said[name].tie for name in ordered}
        return cls(texts, {name: nodes[name] for name in ordered}, model.parameters)

    def without(self, model: ModelString) -> ModelString:
        """Returns the model over the parameters that are not tied; itself where none is."""
        if not self.nodes:
            return model
        left = tuple(name for name in self.names if name not in self.nodes)
        return ModelString(
            source=model.source,
            value=substituted(model.value, self.nodes),
            terms={},
            features=model.features,
            parameters=left,
            positions={},
            written=model.written,
        )

    def completed(self, values: Mapping[str, float]) -> dict[str, float]:
        """Returns all parameters, in the model's order, for values of those that are not tied."""
        if not self.nodes:
            return {name: values[name] for name in self.names}
        tied = compile_nodes(list(self.nodes.values()))(values, {})
        known = {**values, **{name: float(value) for name, value in zip(self.nodes, tied, strict=True)}}
        return {name: known[name] for name in self.names}

    def slopes(self, values: Mapping[str, float]) -> NDArray[np.float64]:
        """Derivatives of all parameters by those that are not tied, shape (all, not tied)."""
        left = [name for name in self.names if name not in self.nodes]
        slopes = np.zeros((len(self.names), len(left)))
        for row, name in enumerate(self.names):
            if name not in self.nodes:
                slopes[row, left.index(name)] = 1.0
                continue
            by = self._gradients[name]
            for other, value in zip(by, compile_nodes(list(by.values()))(values, {}), strict=True):
                slopes[row, left.index(other)] = float(value)
        return slopes

    @cached_property
    def _gradients(self) -> dict[str, dict[str, Node]]:
        return {name: gradient(node) for name, node in self.nodes.items()}


def _read(name: str, said: Any) -> Declared:
    if isinstance(said, str):
        return Declared(tie=said or " ")  # which cannot be read, instead of one that says nothing
    if all(hasattr(said, word) for word in WORDS):  # of lmfit
        said = {word: getattr(said, word) for word in WORDS}
    if isinstance(said, Mapping):
        return _of_words(name, said)
    if isinstance(said, tuple | list):
        if len(said) != 2:
            raise FitError(f"{name!r} is given {len(said)} numbers; give its lower and its upper bound")
        return Declared(bounds=_bounds(name, *said))
    value = _number(name, "value", said)
    return Declared(bounds=(value, value))


def _of_words(name: str, said: Mapping[str, Any]) -> Declared:
    if unknown := [word for word in said if word not in WORDS]:
        raise FitError(f"{unknown[0]!r} says nothing of {name!r}; say {', '.join(WORDS[:-1])} or {WORDS[-1]}")
    low, high = (None if said.get(word) in (None, sign * math.inf) else said[word] for word, sign in _OPEN.items())
    start = said.get("value")
    start = None if start is None or start == -math.inf else _number(name, "value", start)
    if said.get("expr"):
        if low is not None or high is not None:
            raise FitError(f"{name!r} is tied and has bounds; bound the parameters that it is tied to")
        return Declared(tie=str(said["expr"]))
    vary = said.get("vary", True)
    if not isinstance(vary, bool | np.bool_):
        raise FitError(f"whether {name!r} is to vary is {vary!r:.40}; say True or False")
    if not vary:
        if start is None:
            raise FitError(f"{name!r} is not to vary and has no value; give the value at which it is held")
        return Declared(bounds=(start, start))
    bounds = _bounds(name, low, high) if said.keys() & {"min", "max"} else None
    if start is not None and bounds and not bounds[0] <= start <= bounds[1]:
        raise FitError(
            f"the start of {name!r} is {start:g}, outside its bounds [{bounds[0]:g}, {bounds[1]:g}]; move either"
        )
    return Declared(bounds, None if bounds and bounds[0] == bounds[1] else start)


_OPEN = {"min": -1, "max": 1}


def _bounds(name: str, lower: Any, upper: Any) -> tuple[float, float]:
    low = -math.inf if lower is None else _number(name, "lower bound", lower, finite=False)
    high = math.inf if upper is None else _number(name, "upper bound", upper, finite=False)
    if not low <= high or low == math.inf or high == -math.inf:
        raise FitError(f"the bounds of {name!r} are [{low:g}, {high:g}]; give the lower one first")
    return low, high


def _number(name: str, what: str, given: Any, finite: bool = True) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float | np.integer | np.floating):
        raise FitError(f"the {what} of {name!r} is {given!r:.40}, which is no number")
    try:
        value = float(given)
    except OverflowError:
        value = math.inf
    if math.isnan(value) or (finite and math.isinf(value)):
        raise FitError(f"the {what} of {name!r} is {value:g}; give a finite number")
    return value


def _parsed(name: str, tie: str, model: ModelString) -> ModelString:
    found = _expression(name, tie)
    if found.features:
        raise FitError(f"the tie of {name!r} names the feature {found.features[0]!r}; tie parameters to parameters")
    for other in found.parameters:
        check_parameter(other, model, f"the tie of {name!r} is made")
    return found


def _expression(name: str, tie: str) -> ModelString:
    try:
        return parse(tie)
    except ModelStringError as error:
        before = tie.split("\n")[: error.line - 1]
        position = sum(len(line) + 1 for line in before) + error.column - 1
        raise ModelStringError(f"the tie of {name!r} cannot be read: {error.reason}", tie, position) from error
