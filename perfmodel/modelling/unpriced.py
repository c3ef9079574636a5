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
    as of the busiest of several pipes.

    Args:
        features: a column of shape (K,) for every feature of the model.
        unseen: features that no measurement had.
    """
    compiled = model.compile()

    def values(of: Mapping[str, Floats]) -> list[Floats]:
        with np.errstate(all="ignore"):
            return [*compiled.terms(parameters, of).values(), compiled(parameters, of)]

    present = {name: features[name] > 0 for name in unseen if np.any(features[name] > 0)}
    whole = values(features) if present else []
    found = {}
    for name, has in present.items():
        changed = [values({**features, name: features[name] * factor}) for factor in (0.0, FAR_MORE)]
        pairs = [pair for each in changed for pair in zip(whole, each, strict=True)]
        found[name] = has & ~np.any([np.broadcast_to(one != other, has.shape) for one, other in pairs], axis=0)
    return {name: where for name, where in found.items() if np.any(where)}
