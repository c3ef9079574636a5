"""Predict, explain and rank kernels from a calibration; all vectorised over sizes, none needs a device."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from perfmodel.attribution import attribute
from perfmodel.errors import KernelError, nearest
from perfmodel.kernel import Kernel
from perfmodel.vocabulary import evaluate_all

if TYPE_CHECKING:
    import pandas as pd

    from perfmodel.calibration import Calibration

Floats = NDArray[np.float64]

WORK = ("operation", "access", "byte", "transaction")


class PredictionWarning(UserWarning):
    """A prediction for a kernel that the model has nothing to say of."""


@dataclass(frozen=True)
class Prediction:
    """Seconds at some sizes, and on demand their standard deviation: arrays of one shape."""

    calibration: Calibration
    features: Mapping[str, Floats]
    seconds: Floats

    @property
    def std(self) -> Floats:
        parameters, covariance = self.calibration.parameters, self.calibration.covariance
        jacobian = self.calibration.model.string.compile().jacobian(parameters, self.features)
        flat, seconds = jacobian.reshape(len(parameters), -1), self.seconds.reshape(-1)
        fitted = np.einsum("ik,ij,jk->k", flat, covariance, flat)
        unexplained = (self.calibration.residual_std * seconds) ** 2
        return np.asarray(np.sqrt(np.maximum(fitted, 0) + unexplained).reshape(self.seconds.shape))


def predict(calibration: Calibration, kernel: Kernel, sizes: Mapping[str, ArrayLike]) -> Prediction:
    """See `Calibration.predict`."""
    return _predicted(calibration, kernel, feature_values(calibration, kernel, sizes))


def _predicted(calibration: Calibration, kernel: Kernel, features: Mapping[str, Floats]) -> Prediction:
    _warn_of_uncounted_work(calibration, kernel, features)
    compiled = calibration.model.string.compile()
    shape = np.broadcast_shapes(*(f.shape for f in features.values()), ())
    return Prediction(calibration, features, np.broadcast_to(compiled(calibration.parameters, features), shape))


def _warn_of_uncounted_work(calibration: Calibration, kernel: Kernel, features: Mapping[str, Floats]) -> None:
    """Says so where a kernel works, but does nothing that the model has a cost for."""
    units = {name: getattr(found, "unit", None) for name, found in calibration.model.features.items()}
    work = [features[name] for name, unit in units.items() if unit in WORK]
    if work and not any(np.any(values) for values in work) and (kernel.counts.operations or kernel.counts.accesses):
        warnings.warn(
            f"kernel {kernel.name!r} does nothing that the model counts as work; the prediction holds its launch only",
            PredictionWarning,
            stacklevel=5,
        )


def feature_values(calibration: Calibration, kernel: Kernel, sizes: Mapping[str, ArrayLike]) -> dict[str, Floats]:
    """Every input feature of the calibration's model, each an array of the sizes' common shape."""
    counted = calibration.model.counted(kernel)
    return evaluate_all(calibration.model.features, counted, counted.bind(sizes))


@dataclass(frozen=True)
class Share:
    """One cost of a prediction.

    Attributes:
        seconds: what it would take by itself.
        share: its part of the predicted time; small for a cost that hides behind a larger one.
    """

    name: str
    seconds: float
    share: float


@dataclass(frozen=True)
class Item:
    """What a kernel has of something that a parameter is the price of (Pöppl and Herz, "Qualitative Evaluation").

    Attributes:
        unit: of what is counted, such as ``operation``; empty where the model string does not tell it.
        seconds: the number times the price, before anything hides it.
    """

    parameter: str
    number: float
    unit: str
    seconds: float


@dataclass(frozen=True)
class Explanation:
    """Where the time of one kernel at one size goes.

    Attributes:
        seconds, std: the prediction.
        costs: largest share first: the innermost named terms, and what stands outside of any.
        terms: seconds of every named term, as written in the model string.
        items: a line for each parameter that is a price, a time in seconds for one of something that the kernel has;
            the dearest first.
        bottleneck: the name of the cost with the largest share.
        extrapolation: features outside their range in the fit, with the factor by which they are outside.
    """

    kernel: str
    sizes: dict[str, int]
    seconds: float
    std: float
    costs: tuple[Share, ...]
    terms: dict[str, float]
    items: tuple[Item, ...]
    bottleneck: str
    extrapolation: dict[str, float]

    def __str__(self) -> str:
        at = ", ".join(f"{name}={value}" for name, value in self.sizes.items())
        lines = [f"{self.kernel} at {at}: {self.seconds:.4g} s ± {self.std:.2g} s, limited by {self.bottleneck}"]
        width = max((len(cost.name) for cost in self.costs), default=0)
        lines += [f"  {c.name:<{width}}  {c.seconds:10.4g} s  {c.share:7.1%}" for c in self.costs]
        lines += [
            f"  {name} is {factor:.3g} times outside its range in the fit"
            for name, factor in self.extrapolation.items()
        ]
        if self.items:
            from perfmodel.report.tables import grid  # which imports calibrations

            rows = [[item.parameter, f"{item.number:.4g}", item.unit, f"{item.seconds:.4g} s"] for item in self.items]
            lines += ["", grid(["cost type", "number", "of", "time by itself"], rows)]
        return "\n".join(lines)


def explain(calibration: Calibration, kernel: Kernel, sizes: Mapping[str, int]) -> Explanation:
    """See `Calibration.explain`.

    See `perfmodel.attribution` for what a share is.
    """
    features = feature_values(calibration, kernel, sizes)
    if any(f.ndim for f in features.values()):
        raise KernelError("explain takes one number for each size; call it for each size by itself")
    predicted = _predicted(calibration, kernel, features)
    string, parameters = calibration.model.string, calibration.parameters
    seconds = float(predicted.seconds)
    parts = attribute(string, parameters, features)
    costs = tuple(Share(part.name, part.value, part.contribution / (seconds or 1.0)) for part in parts)
    terms = {name: float(value) for name, value in string.compile().terms(parameters, features).items()}
    return Explanation(
        " ".join(filter(None, [kernel.name, kernel.variant])),
        {name: int(value) for name, value in kernel.bind(sizes).items()},
        seconds,
        float(predicted.std),
        costs,
        terms,
        _items(calibration, features, terms, costs, seconds),
        costs[0].name if costs else "",
        _extrapolation(calibration.ranges, features),
    )


def _items(
    calibration: Calibration,
    features: Mapping[str, Floats],
    terms: Mapping[str, float],
    costs: Sequence[Share],
    seconds: float,
) -> tuple[Item, ...]:
    """What the first cost that has a parameter, or else the whole, has in proportion to it."""
    compiled, found = calibration.model.string.compile(), []
    alone = {cost.name: cost.seconds for cost in costs}
    times = [name for name in terms if name in alone]

    def at(parameter: str, value: float) -> tuple[dict[str, float], float]:
        changed = {**calibration.parameters, parameter: value}
        known = {name: float(each) for name, each in compiled.terms(changed, features).items()}
        return known, float(compiled(changed, features))

    with np.errstate(all="ignore"):  # a capacity of zero has no meaning, and is no price
        for parameter, value in calibration.parameters.items():
            (without, rest), (twice, double) = at(parameter, 0.0), at(parameter, 2 * value)
            changed = [(terms[name], without[name], twice[name]) for name in times if terms[name] != without[name]]
            own, less, more = changed[0] if changed else (seconds, rest, double)
            if parameter in alone:  # of a term that is no time by itself
                own, less, more = alone[parameter], 0.0, 2 * alone[parameter]
            is_price = np.isfinite([less, more]).all() and np.isclose(more - own, own - less, rtol=1e-6, atol=0)
            if is_price and own > less and value < 1e-3:
                unit = calibration.units.get(parameter, "").partition("s/")[2]
                found.append(Item(parameter, (own - less) / value, unit, own - less))
    return tuple(sorted(found, key=lambda item: -item.seconds))


def _extrapolation(ranges: Mapping[str, tuple[float, float]], features: Mapping[str, Floats]) -> dict[str, float]:
    outside = {}
    for name, value in features.items():
        low, high = ranges.get(name, (-np.inf, np.inf))
        if high > 0 and float(value) > high:
            outside[name] = float(value) / high
        elif float(value) > 0 and float(value) < low:
            outside[name] = low / float(value)
        elif high == 0 and float(value) > 0:
            outside[name] = np.inf
    return outside


def rank(calibration: Calibration, kernels: Sequence[Kernel], sizes: Mapping[str, int]) -> pd.DataFrame:
    """See `Calibration.rank`.

    Returns:
        Columns ``kernel``, ``variant``, ``sizes``, ``predicted_s``, ``predicted_std_s`` and ``times_best``.

    Raises:
        KernelError: for no kernels.
    """
    import pandas as pd

    if not kernels:
        raise KernelError("there is no kernel to rank; the list is empty")
    known_sizes = {name for kernel in kernels for name in kernel.program.sizes}
    for name, size in sizes.items():
        if name not in known_sizes:
            raise KernelError(f"no kernel has a size {name!r}{nearest(name, known_sizes)}; give one that they have")
        if np.ndim(size):
            raise KernelError(f"rank takes one number for each size, not several of {name!r}; call it for each")
    rows: list[dict[str, Any]] = []
    for kernel in kernels:
        known = {name: size for name, size in sizes.items() if name in kernel.program.sizes}
        predicted = predict(calibration, kernel, known)
        rows.append(
            {
                "kernel": kernel.name,
                "variant": kernel.variant,
                "sizes": {name: int(size) for name, size in kernel.bind(known).items()},
                "predicted_s": float(predicted.seconds),
                "predicted_std_s": float(predicted.std),
            }
        )
    table = pd.DataFrame(rows).sort_values("predicted_s", kind="stable", ignore_index=True)
    table["times_best"] = table["predicted_s"] / table["predicted_s"].iloc[0]
    return table
