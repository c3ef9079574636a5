"""Offers candidate features: what the kernels' own counts have, as columns of numbers that differ from all simpler
ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from perfmodel.basics.errors import FeatureError
from perfmodel.kernels.kernel import Kernel
from perfmodel.vocabulary.feature_name import parse_name
from perfmodel.vocabulary.named_features import Feature, candidates, evaluate_all

Array = NDArray[np.float64]

COLLINEAR = 1e-6
"""Columns of unit norm that differ by less say the same."""


def offered(kernels: Sequence[Kernel]) -> dict[str, Feature]:
    """Returns every feature that the counts of any of the kernels offer, the simplest names first."""
    counts = {id(kernel.program): kernel.counts for kernel in kernels}
    found = {name: f for each in counts.values() for name, f in candidates(each).items()}
    return {name: found[name] for name in sorted(found, key=_complexity)}


def columns(kernels: Sequence[Kernel], features: Mapping[str, Feature]) -> dict[str, Array]:
    """Returns each feature's values for the kernels, shape (N,); NaN where it is not defined."""
    alike: dict[object, list[int]] = {}
    for row, kernel in enumerate(kernels):
        others = tuple((name, value) for name, value in kernel.bound.items() if name not in kernel.program.sizes)
        alike.setdefault((id(kernel.program), others, tuple(kernel.tags.items())), []).append(row)
    result = {name: np.full(len(kernels), np.nan) for name in features}
    for rows in alike.values():
        kernel = kernels[rows[0]]
        sizes = {name: np.array([kernels[row].sizes[name] for row in rows]) for name in kernel.sizes}
        for name, values in _values(kernel, features, sizes).items():
            result[name][rows] = values
    return result


def _values(kernel: Kernel, features: Mapping[str, Feature], sizes: Mapping[str, Array]) -> dict[str, Array]:
    """Evaluates all features at once, as they share counts; where one is not defined, each by itself."""
    bound = kernel.bind(sizes)
    try:
        return evaluate_all(features, kernel, bound)
    except FeatureError:
        if len(features) == 1:
            return {}
    return {key: value for name, f in features.items() for key, value in _values(kernel, {name: f}, sizes).items()}


def distinct(found: Mapping[str, Array], measured: Array, groups: Sequence[str]) -> dict[str, Array]:
    """Returns the columns that a fit of relative residuals can tell apart, of each bunch the first.

    Those with undefined values are left out, and those above zero in no group or one: while that is held out, nothing
    says what the feature costs, so that it cannot be judged.
    """
    names = np.array(groups)
    kept: dict[str, Array] = {}
    units = np.empty((0, len(measured)))
    for name, column in found.items():
        relative = column / measured
        if not np.isfinite(relative).all() or len(set(names[relative != 0])) < 2:
            continue
        unit = relative / np.linalg.norm(relative)
        if np.all(np.linalg.norm(units - unit, axis=1) > COLLINEAR):
            kept[name] = column
            units = np.vstack([units, unit])
    return kept


def _complexity(name: str) -> tuple[int, int, str]:
    words = parse_name(name).words
    conditions = [word.condition for word in words if word.condition is not None]
    return len(words) + sum(1 + condition.count(";") for condition in conditions), len(name), name
