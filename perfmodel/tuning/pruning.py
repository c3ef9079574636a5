"""Selects, of many configurations, those worth measuring, by what a model predicts of each."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, Generic, Literal, TypeVar, overload

from perfmodel.basics.brief import brief
from perfmodel.basics.errors import FeatureError, KernelError, PerfmodelError
from perfmodel.basics.notebook import ShownAsText
from perfmodel.modelling.choosing import places, probability_fastest
from perfmodel.modelling.prediction import PredictionWarning

C = TypeVar("C")


@dataclass(frozen=True)
class Configuration(Generic[C]):
    """A configuration and what is known of it.

    Attributes:
        seconds: as predicted; NaN where nothing is.
        std_s: standard deviation of the prediction; NaN where `predict` gives none.
        place: the prediction's rank among all, from 1; predictions that are equal share it.
        unpredicted: why nothing is predicted; empty where something is.
        spills: why its work-items most likely have no room for their values in registers; empty where they do.
        pruned: why it is not to be measured; empty where it is.
    """

    config: C
    seconds: float
    std_s: float = math.nan
    place: int = 0
    unpredicted: str = ""
    pruned: str = ""
    spills: str = ""


@dataclass(frozen=True)
class Pruned(ShownAsText, Sequence[C]):
    """The configurations to measure, best predicted first: a sequence of them.

    Attributes:
        kept: the same with their predictions.
        left_out: the others, best predicted first.
    """

    kept: tuple[Configuration[C], ...]
    left_out: tuple[Configuration[C], ...]

    @property
    def probability_first(self) -> float:
        """The probability that the first configuration is the fastest of all; NaN without standard deviations."""
        predicted = [each for each in (*self.kept, *self.left_out) if not math.isnan(each.seconds)]
        if not predicted or any(math.isnan(each.std_s) for each in predicted):
            return math.nan
        return probability_fastest([each.seconds for each in predicted], [each.std_s for each in predicted])

    @overload
    def __getitem__(self, index: int) -> C: ...
    @overload
    def __getitem__(self, index: slice) -> list[C]: ...
    def __getitem__(self, index: int | slice) -> C | list[C]:
        if isinstance(index, slice):
            return [candidate.config for candidate in self.kept[index]]
        return self.kept[index].config

    def __len__(self) -> int:
        return len(self.kept)

    def __iter__(self) -> Iterator[C]:
        return (candidate.config for candidate in self.kept)

    def __repr__(self) -> str:
        best = self.kept[0] if self.kept else None
        said = f"first {best.config}, predicted {best.seconds:.4g} s" if best else ""
        return brief(self, f"{len(self.kept)} of {len(self.kept) + len(self.left_out)} configurations", said)

    def __str__(self) -> str:
        every = (*self.kept, *self.left_out)
        lines = [f"{len(self.kept)} of {len(every)} configurations are to be measured"]
        tied = sum(each.place == 1 for each in every)
        if tied > 1:
            lines.append(f"  the first {tied} are predicted equal")
        if not math.isnan(self.probability_first):
            lines.append(f"  the first is the fastest with a probability of {self.probability_first:.0%}")
        reasons = [candidate.pruned for candidate in self.left_out]
        lines += [f"  {reasons.count(reason)} left out: {reason}" for reason in dict.fromkeys(reasons)]
        unpredicted = [candidate.unpredicted for candidate in every if candidate.unpredicted]
        if unpredicted:
            lines.append(f"  {len(unpredicted)} without a prediction, the first because {unpredicted[0]}")
        return "\n".join(lines)


def prune(
    configs: Iterable[C],
    predict: Callable[[C], Any],
    *,
    top_k: int | None = None,
    within: float | None = None,
    unpredicted: Literal["last", "drop"] = "last",
) -> Pruned[C]:
    """Returns the configurations that are worth measuring, best predicted first; those predicted equal keep their
    order.

    There is one at least, whenever there is a configuration. A configuration has no prediction where `predict` raises a
    `KernelError` or `FeatureError`, or gives NaN, infinity, or no positive number.

    >>> for config in perfmodel.prune(configs, predict, top_k=10): ...

    Args:
        configs: anything that `predict` takes: mappings, tuples, kernels.
        predict: seconds of one configuration, or the seconds and their standard deviation, as
            ``calibration.predict(kernel, return_std=True)`` gives them.
        top_k: no more than so many.
        within: none that is predicted slower than so many times the best prediction.
        unpredicted: where configurations without a prediction go. ``"last"``: behind all others, where `top_k` may
            cut them off and `within` does not; ``"drop"``: they are left out, unless there is no prediction at all.

    Returns:
        A sequence of the configurations; its attributes have the predictions, and what was left out and why.

    Warns:
        PredictionWarning: if no configuration has a prediction; they are then taken in their own order.

    Raises:
        PerfmodelError: for limits that leave nothing, or a prediction that is no number.
    """
    check_limits(top_k, within, unpredicted)
    candidates = sorted((_candidate(config, predict) for config in configs), key=_order)
    in_places = places([each.seconds for each in candidates if not each.unpredicted])
    candidates[: len(in_places)] = [
        replace(each, place=place) for each, place in zip(candidates, in_places, strict=False)
    ]
    if candidates and candidates[0].unpredicted:
        warnings.warn(
            f"none of {len(candidates)} configurations has a prediction, so they keep their order; the first one: "
            f"{candidates[0].unpredicted}",
            PredictionWarning,
            stacklevel=2,
        )
    kept: list[Configuration[C]] = []
    left_out: list[Configuration[C]] = []
    for candidate in candidates:
        reason = _reason(candidate, candidates[0], len(kept), top_k, within, unpredicted)
        if reason:
            left_out.append(replace(candidate, pruned=reason))
        else:
            kept.append(candidate)
    return Pruned(tuple(kept), tuple(left_out))


def check_limits(top_k: int | None, within: float | None, unpredicted: str) -> None:
    """Raises PerfmodelError for what `prune` cannot go by."""
    if top_k is not None and (isinstance(top_k, bool) or not isinstance(top_k, Integral) or top_k < 1):
        raise PerfmodelError(f"top_k={top_k!r} is no number of configurations to keep; give 1 or more")
    if within is not None and not (isinstance(within, Real) and within >= 1):
        raise PerfmodelError(f"within={within!r} is no factor above the best prediction; give 1 or more, such as 1.5")
    if unpredicted not in ("last", "drop"):
        raise PerfmodelError(f"unpredicted={unpredicted!r} is not understood; give 'last' or 'drop'")


def _candidate(config: C, predict: Callable[[C], Any]) -> Configuration[C]:
    try:
        given = predict(config)
    except (KernelError, FeatureError) as error:
        return Configuration(config, math.nan, unpredicted=str(error))
    try:
        seconds, std = (float(each) for each in (given if isinstance(given, tuple) else (given, math.nan)))
    except (TypeError, ValueError) as error:
        raise PerfmodelError(
            f"predict gives {str(given)[:60]!r} for {str(config)[:200]}, which is no number; give its time in seconds"
        ) from error
    if 0 < seconds < math.inf:
        return Configuration(config, seconds, std)
    return Configuration(config, math.nan, unpredicted=f"{seconds:g} s is no time")


def _order(candidate: Configuration[Any]) -> tuple[bool, float]:
    return (bool(candidate.unpredicted), 0.0 if candidate.unpredicted else candidate.seconds)


def _reason(
    candidate: Configuration[Any],
    best: Configuration[Any],
    kept: int,
    top_k: int | None,
    within: float | None,
    unpredicted: str,
) -> str:
    """Returns the reason why a candidate is left out; empty for one that is kept, such as the best."""
    if candidate.unpredicted and unpredicted == "drop" and not best.unpredicted:
        return "it has no prediction"
    if within is not None and candidate.seconds > within * best.seconds:
        return f"it is predicted slower than {within:g} times the best"
    if top_k is not None and kept >= top_k:
        return f"there are top_k={top_k} before it"
    return ""
