"""A checked model string and what can be done with it: evaluate, differentiate, explain, print."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import ArrayLike

from perfmodel.basics.errors import ModelStringError, nearest
from perfmodel.expression.algebra import ZERO
from perfmodel.expression.derivative import gradient, is_affine
from perfmodel.expression.device_numbers import plain, with_numbers
from perfmodel.expression.latex import to_latex
from perfmodel.expression.parser import ParsedModel, parse_model
from perfmodel.expression.sympy_form import to_sympy
from perfmodel.expression.tape import Floats, Tape
from perfmodel.expression.text import to_text
from perfmodel.expression.tokens import Kind, tokenize
from perfmodel.expression.tree import Binary, FeatureName, Negation, Node, Parameter


@dataclass(frozen=True)
class ModelString:
    """A parsed model string; two are equal if their sources are.

    Attributes:
        source: the string, with the numbers of a device alone in their places.
        value: the last line, with terms resolved into shared nodes.
        terms: the named terms in order of definition.
        features: distinct canonical feature names in order of first appearance.
        parameters: distinct parameter names in order of first appearance.
        positions: the offset in `source` at which each feature and parameter first appears.
        written: the string as written, in which a number that is a fact of a device says so: ``${l1_bytes=32768}``.
    """

    source: str
    value: Node = field(repr=False, compare=False)
    terms: dict[str, Node] = field(repr=False, compare=False)
    features: tuple[str, ...] = field(repr=False, compare=False)
    parameters: tuple[str, ...] = field(repr=False, compare=False)
    positions: dict[str, int] = field(repr=False, compare=False)
    written: str = field(repr=False, compare=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return (parse, (self.written,))

    def with_numbers(self, facts: Mapping[str, float]) -> ModelString:
        """Returns the string with the numbers of another device, by the facts that they are.

        Raises:
            ModelStringError: for a fact that is not among them, or that is no whole number.
        """
        found = with_numbers(self.written, facts)
        return self if found == self.written else parse(found)

    def names_in(self, other: ModelString) -> dict[str, str]:
        """Returns what each feature is called in the same string with other numbers of a device."""
        pairs = zip(tokenize(self.source), tokenize(other.source), strict=True)
        return {token.text: there.text for token, there in pairs if token.kind is Kind.FEATURE}

    def derivative(self, parameter: str) -> Node:
        """Returns the exact derivative with respect to a parameter; of floor, ceil and step it is 0, at kinks
        one-sided.

        Raises:
            ModelStringError: the model has no such parameter.
        """
        if parameter not in self.parameters:
            message = f"the model has no parameter {parameter!r}{nearest(parameter, self.parameters)}"
            raise ModelStringError(message, self.source)
        return self._gradient.get(parameter, ZERO)

    @functools.cached_property
    def is_linear(self) -> bool:
        """True if the model is affine in all its parameters together, as written (nothing is expanded)."""
        return is_affine(self.value)

    def addends(self) -> dict[str, Node]:
        """Returns the summands of the value, in order; a term goes by its name, anything else by its text."""
        found: dict[str, Node] = {}
        pending = [(self.value, False)]
        while pending:
            node, negative = pending.pop()
            if isinstance(node, Binary) and node.operator in ("+", "-") and node not in self._names:
                pending.append((node.right, negative != (node.operator == "-")))
                pending.append((node.left, negative))
            elif isinstance(node, Negation) and node not in self._names:
                pending.append((node.operand, not negative))
            else:
                signed = Negation(node) if negative else node
                label = to_text(signed, self._names)
                found[label] = Binary("+", found[label], signed) if label in found else signed
        return found

    def parsed(self, source: str) -> ParsedModel:
        """Parses an expression that may name this model's terms, beside parameters and features.

        Raises:
            ModelStringError: it is not in the language, or names a parameter that the model has not.
        """
        if source in self._expressions:
            return self._expressions[source]
        found = parse_model(source, self.terms)
        for name, position in found.parameters.items():
            if name not in self.parameters:
                message = f"the model has no parameter {name!r}{nearest(name, self.parameters)}"
                raise ModelStringError(message, source, position)
        self._expressions[source] = found
        return found

    def latex(self) -> str:
        """Returns the model as LaTeX mathematics: an aligned line for each term, then the value; terms are not
        expanded."""
        return to_latex(self.value, self.terms)

    def to_sympy(self) -> Any:
        """Returns the value as a sympy expression; for models of a size that sympy can handle."""
        return to_sympy(self.value)

    def compile(self) -> CompiledString:
        """Returns the model compiled for fast evaluation; compiled once."""
        return self._compiled

    @functools.cached_property
    def _expressions(self) -> dict[str, ParsedModel]:
        """The expressions that were parsed over this model's terms: meanings of terms name the same ones again."""
        return {}

    @functools.cached_property
    def _compiled(self) -> CompiledString:
        return CompiledString(self)

    @functools.cached_property
    def _gradient(self) -> dict[str, Node]:
        return gradient(self.value)

    @functools.cached_property
    def _names(self) -> dict[Node, str]:
        return {node: name for name, node in self.terms.items()}


class CompiledString:
    """Evaluation of a model string with numpy.

    All methods take parameter values by name and feature values by name; arrays broadcast against each other, and all
    results are float64 of the broadcast shape. Names that the model does not use are ignored. Results that overflow,
    divide by zero or are not real are inf or nan, without warnings.

    Raises:
        FitError: a parameter has no value, or one that is not a number.
        FeatureError: a feature has no values, or such as are not numbers or do not broadcast.
    """

    def __init__(self, model: ModelString) -> None:
        self._model = model
        self._inputs: list[Parameter | FeatureName] = [
            *map(Parameter, model.parameters),
            *map(FeatureName, model.features),
        ]

    def __call__(self, parameters: Mapping[str, ArrayLike], features: Mapping[str, ArrayLike]) -> Floats:
        """Returns the model's value."""
        (value,) = self._value(parameters, features)
        return value

    def applied(self, parameters: Mapping[str, Any], features: Mapping[str, Any], call: Callable[..., Any]) -> Any:
        """Returns the model's value of values of any kind, each operation by ``call(function, *operands)``."""
        (value,) = self._value.applied(parameters, features, call)
        return value

    def jacobian(self, parameters: Mapping[str, ArrayLike], features: Mapping[str, ArrayLike]) -> Floats:
        """Returns derivatives of the value, shape (number of parameters, *broadcast shape), in the model's parameter
        order."""
        return self._jacobian.evaluate(parameters, features)

    def terms(self, parameters: Mapping[str, ArrayLike], features: Mapping[str, ArrayLike]) -> dict[str, Floats]:
        """Returns the value of every named term."""
        return dict(zip(self._model.terms, self._terms(parameters, features), strict=True))

    def addends(self, parameters: Mapping[str, ArrayLike], features: Mapping[str, ArrayLike]) -> dict[str, Floats]:
        """Returns the values of the summands (see `ModelString.addends`)."""
        names, tape = self._addends
        return dict(zip(names, tape(parameters, features), strict=True))

    @functools.cached_property
    def _value(self) -> Tape:
        return Tape([self._model.value], self._inputs)

    @functools.cached_property
    def _jacobian(self) -> Tape:
        return Tape([self._model.derivative(name) for name in self._model.parameters], self._inputs)

    @functools.cached_property
    def _terms(self) -> Tape:
        return Tape(list(self._model.terms.values()), self._inputs)

    @functools.cached_property
    def _addends(self) -> tuple[list[str], Tape]:
        addends = self._model.addends()
        return list(addends), Tape(list(addends.values()), self._inputs)


def parse(source: str) -> ModelString:
    """Parses a model string of one or more lines.

    Raises:
        ModelStringError: the string is not in the language or exceeds one of its limits; nothing else is ever raised.
    """
    if not isinstance(source, str):
        raise ModelStringError(
            f"a model string is text, not {type(source).__name__}; give one such as 'p_madd * f_op_float32_madd'"
        )
    text = plain(source)
    parsed = parse_model(text)
    return ModelString(
        source=text,
        value=parsed.value,
        terms=parsed.terms,
        features=tuple(parsed.features),
        parameters=tuple(parsed.parameters),
        positions=parsed.parameters | parsed.features,
        written=source,
    )
