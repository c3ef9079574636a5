"""Names the mechanism behind a prediction in words, by the meanings that its model's terms and prices have."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from perfmodel.basics.errors import FeatureError, KernelError
from perfmodel.expression import compile_nodes
from perfmodel.expression.tree import Parameter, walk
from perfmodel.kernels.kernel import Kernel
from perfmodel.modelling.counted_form import counted_form
from perfmodel.modelling.fitted import Fitted
from perfmodel.modelling.meaning import Meaning, filled, parsed
from perfmodel.modelling.prediction import Floats
from perfmodel.vocabulary.named_features import evaluate_all

# A price is the mechanism of the term that it is in if it makes up so much of it.
MOST = 0.5
MOST_PRICE = 1e-3
"""Parameters of so many seconds and more are no prices, but capacities, shapes of overlaps and the like."""
STEP = 1e-4
"""Slopes are taken between prices that are smaller and larger by this part of them."""


@dataclass(frozen=True)
class Figure:
    """One number worth saying, in its text."""

    text: str
    value: float


@dataclass(frozen=True)
class Mechanism:
    """Says in words what limits a kernel.

    Attributes:
        cost: the cost that it is about.
        price: the parameter that makes up most of that cost; empty where the cost is one, or none does.
        figures: numbers that tell how the kernel stands.
        advice: what to change in the kernel; empty where nothing is known.
    """

    cost: str
    price: str
    words: str
    figures: tuple[Figure, ...]
    advice: str

    @property
    def state(self) -> str:
        """The words with their numbers, as text."""
        return ": ".join(filter(None, [self.words, ", ".join(figure.text for figure in self.figures)]))

    def __str__(self) -> str:
        return f"{self.state}; {self.advice}" if self.advice else self.state


def mechanism(
    calibration: Fitted,
    kernel: Kernel,
    sizes: Mapping[str, int],
    features: Mapping[str, Floats],
    cost: str,
) -> Mechanism | None:
    """Returns the mechanism behind a cost; None where its model has no words for it.

    Args:
        features: the values of the model's own features.
    """
    meanings = calibration.model.meanings
    own = meanings.get(cost)
    prices = _prices(calibration, features, cost)
    whole = sum(prices.values())
    dearest = max(prices, key=lambda name: prices[name], default="")
    is_most = dearest in meanings and prices[dearest] >= MOST * whole
    price = dearest if is_most else ""
    if own is None and not price:
        return None
    chain = {name: meanings[name] for name in (price, cost) if name in meanings}
    values = _values(calibration, kernel, sizes, features, chain)
    words = own.words if own else meanings[price].words
    if price and own:
        words += f", {100 * prices[price] / whole:.0f} % of that time for {meanings[price].words}"
    figures = [
        Figure(filled(template, values[name, expression]), values[name, expression])
        for name, meaning in chain.items()
        for template, expression in meaning.figures.items()
        if np.isfinite(values[name, expression])
    ]
    advice = (
        text
        for name, meaning in chain.items()
        for text, condition in meaning.advised()
        if not condition or values[name, condition] > 0
    )
    return Mechanism(
        cost=cost, price=price, words=words, figures=tuple(dict.fromkeys(figures)), advice=next(advice, "")
    )


def _prices(calibration: Fitted, features: Mapping[str, Floats], cost: str) -> dict[str, float]:
    """Returns the parts of a term by the parameter that is the price, in seconds; none of a term with one parameter.

    A part is the term's slope along that price, times the price. The parts add up to a term that is made of times
    alone, be it their sum, their maximum or their overlap (Euler's theorem on homogeneous functions).
    """
    term = calibration.model.string.terms.get(cost)
    inside = {node.name for node in walk(term) if isinstance(node, Parameter)} if term is not None else set()
    if len(inside) < 2:
        return {}
    names = [name for name in calibration.parameters if name in inside and calibration.parameters[name] < MOST_PRICE]
    steps = {name: np.full(2 * len(names), value) for name, value in calibration.parameters.items()}
    for place, name in enumerate(names):
        steps[name][2 * place : 2 * place + 2] *= 1 - STEP, 1 + STEP
    with np.errstate(all="ignore"):
        values = np.broadcast_to(calibration.model.string.compile().terms(steps, features)[cost], 2 * len(names))
    slopes = (values[1::2] - values[::2]) / (2 * STEP)
    return {name: float(slope) for name, slope in zip(names, slopes, strict=True) if slope > 0}


def _values(
    calibration: Fitted,
    kernel: Kernel,
    sizes: Mapping[str, int],
    features: Mapping[str, Floats],
    chain: Mapping[str, Meaning],
) -> dict[tuple[str, str], float]:
    """Returns the numbers that meanings name, by who names them and the expression; NaN where one can't be counted."""
    string, found = calibration.model.string, {}
    for name, meaning in chain.items():
        for expression in meaning.expressions():
            read = parsed(name, expression, string)
            try:
                known = {**features, **_counted(calibration, kernel, sizes, set(read.features) - set(features))}
                with np.errstate(all="ignore"):
                    (value,) = compile_nodes([read.value])(calibration.parameters, known)
                found[name, expression] = float(value)
            except (FeatureError, KernelError):
                found[name, expression] = float("nan")
    return found


def _counted(
    calibration: Fitted, kernel: Kernel, sizes: Mapping[str, int], names: Collection[str]
) -> Mapping[str, Floats]:
    """Returns features that the model itself has not."""
    if not names:
        return {}
    model = calibration.model
    wanted = {name: model.further_features[name] for name in names}
    # Beside one of the model's, they follow from the counts that it was predicted by, and nothing is counted again.
    widest = max(model.features, key=lambda name: getattr(model.features[name], "subgroup_size", None) or 0, default="")
    counted = counted_form(calibration, kernel, sizes)
    beside = {widest: model.features[widest]} if widest else {}
    return evaluate_all({**wanted, **beside}, counted, counted.bind(sizes))
