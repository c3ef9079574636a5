"""Writes model strings of chosen terms: their sum, and overlaps of what memory and what the chip itself has to do."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from perfmodel.basics.errors import FitError
from perfmodel.expression import parse
from perfmodel.modelling.fitting import FitWarning, fit
from perfmodel.modelling.fitting.left_out import LeftOut, leave_out
from perfmodel.modelling.suggestion.search import MEMORY, ON_CHIP, OVERHEAD, Array, Rows, typical_error
from perfmodel.vocabulary.feature_name import parse_name
from perfmodel.vocabulary.named_features import Feature

GROUPS = {OVERHEAD: "overhead", MEMORY: "memory", ON_CHIP: "onchip"}
OVERLAPS = ("smooth_max(memory, onchip, p_edge)", "overlap(memory, onchip, p_overlap)")
_OPERATORS = {"<=": "_le", ">=": "_ge", "<": "_lt", ">": "_gt", "..": "_to_", "/": "_of_"}


@dataclass(frozen=True)
class Form:
    """A model string that puts chosen terms together in one way.

    Attributes:
        string: the model string.
        chosen_for: what its terms are the best for: ``sum`` or ``overlap``.
        last_line: of the string, which tells forms of the same terms apart.
        terms: names of its features.
        ratios: predicted / measured of each row while its fold was held out.
        error: `typical_error` of these.
        penalized: the same, higher by the penalty for each parameter.
        parameters: how many are fitted.
    """

    string: str
    chosen_for: str
    terms: tuple[str, ...]
    ratios: Array
    error: float
    penalized: float
    parameters: int

    @property
    def last_line(self) -> str:
        return self.string.splitlines()[-1]


def resource(name: str, feature: Feature) -> int:
    """Returns the resource whose time a feature costs, by its family and unit: memory, the chip itself, or overhead."""
    words = [word.key for word in parse_name(name).words]
    unit = getattr(feature, "unit", "")
    if unit == "operation" or (words[0] == "mem" and "local" in words):
        return ON_CHIP
    return MEMORY if words[0] == "mem" or unit in ("access", "byte") else OVERHEAD


def strings(terms: Mapping[str, int]) -> list[str]:
    """Returns the model strings of these features, given with their resources: the sum first, then overlaps if any can
    be."""
    parameters: dict[str, str] = {}
    for name in terms:
        parameter = parameter_name(name)
        parameters[name] = f"{parameter}_{len(parameters)}" if parameter in parameters.values() else parameter
    lines, present = [], []
    for group, title in GROUPS.items():
        costs = [f"{parameters[name]} * {name}" for name, of in terms.items() if of == group]
        if costs:
            present.append(title)
            lines.append(f"{title} = " + "\n    + ".join(costs))
    ends = [" + ".join(present)]
    if {"memory", "onchip"} <= set(present):
        ends += [" + ".join([*present[:-2], overlap]) for overlap in OVERLAPS]
    return ["\n".join([*lines, end]) for end in ends]


def parameter_name(feature: str) -> str:
    """Returns a parameter's name, ``p_op_float32_madd`` for ``f_op_float32_madd``; ``f_x_afr:>1`` gives
    ``p_x_afr_gt1``."""
    for operator, word in _OPERATORS.items():
        feature = feature.replace(operator, word)
    return "p_" + re.sub(r"[^A-Za-z0-9]+", "_", feature[2:]).strip("_")


def cross_validated(
    string: str,
    chosen_for: str,
    columns: Mapping[str, Array],
    measured: Array,
    held_out: Sequence[Rows],
    penalty: float,
) -> Form:
    """Fits a model string, and again without each fold, by which it is judged; the error is infinite if it can't be
    fitted."""
    model = parse(string)
    features = {name: columns[name] for name in model.features}
    ratios = np.zeros(len(measured))
    options: dict[str, Any] = {"parameters": None, "nonnegative": True, "residuals": "relative"}
    found: list[LeftOut] = []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FitWarning)
            fitted = fit(model, features, measured, **options)
        folds = np.argmax(held_out, axis=0)
        found = list(leave_out(model, features, measured, folds, fitted.parameters, **options))
    except FitError:
        pass
    for fold in found:
        ratios[fold.rows] = fold.predicted / measured[fold.rows]
    error = typical_error(ratios) if len(found) == len(held_out) else np.inf
    parameters = len(model.parameters)
    return Form(
        string=string,
        chosen_for=chosen_for,
        terms=model.features,
        ratios=ratios,
        error=error,
        penalized=error * (1 + penalty) ** parameters,
        parameters=parameters,
    )


def cross_validated_forms(
    choices: Mapping[str, Sequence[str]],
    features: Mapping[str, Feature],
    columns: Mapping[str, Array],
    measured: Array,
    held_out: Sequence[Rows],
    penalty: float,
) -> list[Form]:
    """Returns every form of the terms chosen for a sum, and every overlap of those chosen for that."""
    texts: dict[str, str] = {}
    for chosen_for, names in choices.items():
        own = strings({name: resource(name, features[name]) for name in names})
        for text in own if chosen_for == "sum" else own[1:]:
            texts.setdefault(text, chosen_for)
    return [
        cross_validated(text, chosen_for, columns, measured, held_out, penalty) for text, chosen_for in texts.items()
    ]
