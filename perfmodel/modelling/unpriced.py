"""Finds what kernels have that a model has no price for: its parameter is zero, as no measurement showed it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from perfmodel.expression import ModelString

Floats = NDArray[np.float64]

FAR_MORE = 1e9
"""So many times as much of something would be seen, if the model had a price for it."""


def unpriced(
    model: ModelString, parameters: Mapping[str, float], features: Mapping[str, Floats], unseen: Iterable[str]
) -> dict[str, NDArray[np.bool_]]:
    """Returns where K kernels have something of a feature on which no term of the model depends, by feature; masks of
    shape (K,).

    A feature that no measurement had is priced all the same where it shares a parameter with others that they had: a
    minimum of two whole numbers costs as much as their sum. So is one that would count if there were far more of it,
    as of the busiest of several pipes. One that would not count at any price is none that lacks one: where machine code
    says what is done, the source says nothing.

    Args:
        features: a column of shape (K,) for every feature of the model.
        unseen: features that no measurement had.
    """
    compiled = model.compile()

    def values(of: Mapping[str, Floats], prices: Mapping[str, float]) -> list[Floats]:
        with np.errstate(all="ignore"):
            return [*compiled.terms(prices, of).values(), compiled(prices, of)]

    def counts(name: str, prices: Mapping[str, float], whole: list[Floats]) -> NDArray[np.bool_]:
        """Returns where anything changes with a feature at some prices, at which terms and the time are `whole`."""
        changed = [values({**features, name: features[name] * factor}, prices) for factor in (0.0, FAR_MORE)]
        pairs = [pair for each in changed for pair in zip(whole, each, strict=True)]
        shape = np.shape(features[name])
        return np.asarray(np.any([np.broadcast_to(one != other, shape) for one, other in pairs], axis=0))

    present = {name: features[name] > 0 for name in unseen if np.any(features[name] > 0)}
    whole = values(features, parameters) if present else []
    found = {name: has & ~counts(name, parameters, whole) for name, has in present.items()}
    found = {name: where for name, where in found.items() if np.any(where)}
    any_price = dict.fromkeys(parameters, 1.0)
    at_any = values(features, any_price) if found else []
    found = {name: where & counts(name, any_price, at_any) for name, where in found.items()}
    return {name: where for name, where in found.items() if np.any(where)}
