"""Formulas of models are checked here: an output feature by an expression over features (2018 slides, "Model")."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from copy import copy
from functools import cached_property, lru_cache
from html import escape
from typing import Self

from perfmodel.basics.brief import brief, number_of
from perfmodel.basics.errors import FeatureError, ModelStringError
from perfmodel.basics.notebook import folded, table, titled
from perfmodel.expression import ModelString, parse
from perfmodel.kernels.kernel import Kernel
from perfmodel.modelling.fitting.declared import Declared, Given, declared
from perfmodel.modelling.meaning import Meaning, declared_meanings, features_of
from perfmodel.modelling.units import parameter_units
from perfmodel.vocabulary.named_features import Feature, MeasuredFeature, feature, summary_of

WORK = ("operation", "access", "byte", "transaction")
"""Units of features that count what a kernel does, beside its launch."""


class Formula:
    """A formula is what a model says: an output feature by features and parameters. A `Model` can also be fitted.

    Its arguments and attributes are those of `perfmodel.modelling.calibration.Model`.
    """

    def __init__(
        self,
        output: str,
        expression: str | ModelString,
        features: Mapping[str, Feature] | None = None,
        *,
        parameters: Given | None = None,
        meanings: Mapping[str, Meaning | str] | None = None,
    ) -> None:
        self.string: ModelString = expression if isinstance(expression, ModelString) else _shared(expression)
        self.declared: dict[str, Declared] = declared(parameters, self.string)
        self.output_name = output
        self.output: Feature = feature(output, features)
        own = {name: ("", self.string.source, self.string.positions[name]) for name in self.string.features}
        self.features: dict[str, Feature] = {name: _input(name, features, *place) for name, place in own.items()}
        self.parameters: tuple[str, ...] = self.string.parameters
        self.meanings: dict[str, Meaning] = declared_meanings(meanings, self.string)
        self.further_features: dict[str, Feature] = {
            name: _input(name, features, *place)
            for name, place in features_of(self.meanings, self.string).items()
            if name not in own
        }
        unused = set(features or {}) - {output, *self.features, *self.further_features}
        if unused:
            raise FeatureError(
                f"feature {min(unused)!r} is given but not used in the model; name it there or leave it out"
            )

    @cached_property
    def work(self) -> tuple[str, ...]:
        """The input features that count work: operations, and accesses in any unit."""
        return tuple(name for name, found in self.features.items() if getattr(found, "unit", None) in WORK)

    @cached_property
    def is_of_compiled(self) -> bool:
        """True if kernels are counted as compiled for the model: one of its features is known of those only."""
        return any(getattr(found, "of_compiled", False) for found in self.features.values())

    def counted(self, kernel: Kernel) -> Kernel:
        """Returns the kernel in the form that the model's features are of; see `Kernel.as_compiled`."""
        return kernel.as_compiled() if self.is_of_compiled else kernel

    @cached_property
    def columns(self) -> dict[str, str]:
        """The column of a feature table that each input feature is read from.

        A kernel as compiled has other counts than the same kernel as written, so that the columns of a model that
        counts kernels as compiled end in ``@compiled``; models of both forms then share a table.
        """
        return {name: f"{name}@compiled" if self.is_of_compiled else name for name in self.features}

    @property
    def is_linear(self) -> bool:
        """True if the model is affine in its parameters, so that it is fitted directly."""
        return self.string.is_linear

    @property
    def latex(self) -> str:
        return self.string.latex()

    def with_meanings(self, meanings: Mapping[str, Meaning | str]) -> Self:
        """Returns the same model with these meanings of its terms and parameters, and no others.

        Raises:
            FitError, ModelStringError: for what cannot be said of them.
        """
        custom = {self.output_name: self.output, **self.features}
        return type(self)(self.output_name, self.string, custom, parameters=self.declared, meanings=meanings)

    def on(self, facts: Mapping[str, float]) -> Self:
        """Returns the same model with another device's facts where its string has numbers of one, and what the
        features that name them are there.

        Raises:
            ModelStringError: for a fact that is not among them, or that is no whole number.
        """
        string = self.string.with_numbers(facts)
        if string is self.string:
            return self
        custom = {name: self.features[name] for name in string.features if name in self.features}
        custom |= {name: self.further_features[name] for name in self.further_features if name not in custom}
        custom = {self.output_name: self.output, **custom}
        return type(self)(self.output_name, string, custom, parameters=self.declared, meanings=self.meanings)

    def with_parameters(self, parameters: Given) -> Self:
        """Returns the same model with more, or something else, said of its parameters; None for one takes that back.

        >>> model.with_parameters({"p_launch": 5e-6, "p_byte": (0, 1e-9), "p_store": "2 * p_byte"})

        Raises:
            FitError: for what cannot be said of them.
        """
        if not parameters:
            return self
        told = copy(self)
        told.declared = declared({**self.declared, **parameters}, self.string)
        return told

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Formula):
            return NotImplemented
        return (self.output_name, self.string, self.features) == (other.output_name, other.string, other.features)

    def __hash__(self) -> int:
        return hash((self.output_name, self.string.source))

    def __repr__(self) -> str:
        lines = [line for line in self.string.source.splitlines() if line.strip() and not line.lstrip().startswith("#")]
        size = f"{number_of(len(self.features), 'feature')}, {number_of(len(self.parameters), 'parameter')}"
        return brief(self, self.output_name, size if len(lines) > 1 else "", lines[-1])

    def __str__(self) -> str:
        said = [f"{name}: {each}" for name, each in self.declared.items()]
        return "\n".join([f"{self.output_name} by", *textwrap.dedent(self.string.source).strip().splitlines(), *said])

    def _repr_html_(self) -> str:
        units = parameter_units(self.string, self.features)
        features = [[name, summary_of(name)] for name in self.features]
        words = {name: meaning.words for name, meaning in self.meanings.items()}
        parameters = [
            [name, units[name], str(self.declared.get(name, "")), words.get(name, "")] for name in self.parameters
        ]
        return titled(
            self.output_name,
            " by",
            f"<p>$\\displaystyle {escape(self.latex)}$</p>",
            folded(f"{len(features)} features", ["feature", "counts"], features),
            table(["parameter", "unit", "declared", "stands for"], parameters),
        )

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {self.latex}$"


def _shared(source: str) -> ModelString:
    """Returns the same string for the same text: several calibrations of one model share what is derived of it."""
    return _parsed(source) if isinstance(source, str) else parse(source)  # which says what is wrong with it


_parsed = lru_cache(16)(parse)


def _input(name: str, custom: Mapping[str, Feature] | None, whose: str, source: str, position: int) -> Feature:
    """Returns a feature that stands in a model string, or in the meaning of one of its names."""
    of = f"in the meaning of {whose!r}, " if whose else ""
    try:
        found = feature(name, custom)
    except FeatureError as error:
        raise ModelStringError(f"{of}{error}", source, position + error.offset) from error
    if isinstance(found, MeasuredFeature):
        message = f"{of}{name!r} is known only by running the kernel; it can be the output of a model, not an input"
        raise ModelStringError(message, source, position)
    return found
