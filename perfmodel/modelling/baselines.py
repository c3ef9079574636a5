"""Fits the baselines that a model has to beat, a roofline and a random forest, to the model's own measurements."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.basics.errors import FeatureError, KernelError
from perfmodel.kernels.kernel import Kernel
from perfmodel.modelling.predictor import PredictedTime, Predictor
from perfmodel.vocabulary.named_features import Feature, evaluate_all, feature

TREES = 300
WITHOUT_SCIKIT_LEARN = "the random forest is left out, as scikit-learn is missing: pip install perfmodel[baselines]"


def fit_baselines(
    kernels: Sequence[Kernel], seconds: Sequence[float], features: Mapping[str, Feature]
) -> tuple[list[Predictor], list[str]]:
    """Fits those of both baselines that can be had here; returns them, and a sentence for each that is missing.

    Args:
        kernels, seconds: the measurements that the models were fitted to.
        features: of all these models, by name.
    """
    roofline = Roofline.fit(kernels, seconds)
    try:
        return [roofline, RandomForest.fit(kernels, seconds, features)], []
    except ImportError:
        return [roofline], [WITHOUT_SCIKIT_LEARN]


# What the resources of a roofline are asked for; operations, one peak for each kind and type, are another one.
DEMANDS = {
    "distinct global bytes": "f_mem_footprint_global",
    "local accesses": "f_mem_access_local",
    "work-groups": "f_thread_groups",
}


@dataclass(frozen=True)
class Work:
    """Holds how much of each resource one kernel needs, by the resource's name."""

    demands: Mapping[str, float]
    operations: Mapping[str, float]

    @classmethod
    def of(cls, kernel: Kernel) -> Work | None:
        """Counts a kernel's work; returns None for a kernel that can't be counted."""
        try:
            bound = kernel.bind({})
            values = evaluate_all({name: feature(f) for name, f in DEMANDS.items()}, kernel, bound)
            operations: dict[str, float] = {}
            for operation in kernel.counts.operations:
                name = f"{operation.dtype} {operation.kind}"
                executions = float(operation.executions.workitem(bound))
                operations[name] = operations.get(name, 0.0) + operation.per_execution * executions
        except (KernelError, FeatureError):
            return None
        return cls({name: float(value) for name, value in values.items()}, operations)


@dataclass(frozen=True)
class Roofline:
    """Predicts the time of a launch plus that of the resource that takes longest at its peak rate (Williams, Waterman
    and Patterson 2009).

    Attributes:
        launch_s: the shortest time measured.
        peaks: by resource or operation, the highest rate per second that any kernel reached. Operations that none of
            them had cost nothing.
    """

    launch_s: float
    peaks: Mapping[str, float]
    name: str = "roofline"

    @classmethod
    def fit(cls, kernels: Sequence[Kernel], seconds: Sequence[float]) -> Roofline:
        peaks: dict[str, float] = {}
        for kernel, time in zip(kernels, seconds, strict=True):
            if work := Work.of(kernel):
                for name, amount in (*work.demands.items(), *work.operations.items()):
                    if amount > 0:
                        peaks[name] = max(amount / time, peaks.get(name, 0.0))
        return cls(min(seconds), peaks)

    def predict(self, kernels: Sequence[Kernel]) -> list[PredictedTime]:
        return [PredictedTime(self.seconds(work) if (work := Work.of(kernel)) else None) for kernel in kernels]

    def seconds(self, work: Work) -> float:
        resources = (*([item] for item in work.demands.items()), list(work.operations.items()))
        return self.launch_s + max(
            sum(amount / self.peaks.get(name, math.inf) for name, amount in resource) for resource in resources
        )

    def parameter_lines(self) -> list[str]:
        width = max(map(len, ("launch", *self.peaks)))
        return [
            f"{'launch':<{width}}  {self.launch_s:.4g} s",
            *(f"{name:<{width}}  {rate:.4g} /s" for name, rate in self.peaks.items()),
        ]


TOTALS = (
    *("f_op", "f_mem_access_global_load", "f_mem_access_global_store", "f_mem_bytes_global", "f_mem_access_local"),
    *("f_sync_barrier_local", "f_thread_groups", "f_work_items"),
)


@dataclass(frozen=True)
class RandomForest:
    """A regression forest from the logarithms of features to that of the time; it knows no form of the model."""

    features: Mapping[str, Feature]
    forest: Any
    measurements: int
    name: str = "random-forest"

    @classmethod
    def fit(cls, kernels: Sequence[Kernel], seconds: Sequence[float], features: Mapping[str, Feature]) -> RandomForest:
        """Fits a forest; the same measurements always give the same forest.

        Raises:
            ImportError: without scikit-learn.
        """
        from sklearn.ensemble import RandomForestRegressor  # an optional dependency

        every = {**features, **{name: feature(name) for name in TOTALS}}
        forest = RandomForestRegressor(n_estimators=TREES, random_state=0)
        forest.fit(_logarithms(every, kernels), np.log(seconds))
        return cls(every, forest, len(kernels))

    def predict(self, kernels: Sequence[Kernel]) -> list[PredictedTime]:
        if not kernels:
            return []
        return [PredictedTime(float(time)) for time in np.exp(self.forest.predict(_logarithms(self.features, kernels)))]

    def parameter_lines(self) -> list[str]:
        return [f"{TREES} trees, {len(self.features)} features, {self.measurements} measurements"]


def _logarithms(features: Mapping[str, Feature], kernels: Sequence[Kernel]) -> NDArray[np.float64]:
    """Returns the features' logarithms, shape (kernels, features)."""
    rows = [evaluate_all(features, kernel, kernel.bind({})) for kernel in kernels]
    columns = np.array([[float(row[name]) for name in features] for row in rows], dtype=np.float64)
    return np.asarray(np.log1p(columns))
