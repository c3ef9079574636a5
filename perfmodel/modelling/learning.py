"""Learns from measured times one by one: each makes the next prediction better, and nothing is forgotten.

Logarithms of parameters have a normal prior: the covariance that a fit left, or that of prices which follow from a
specification. Measured times, whose logarithms are as uncertain as the model is wrong on kernels that no fit has seen,
make a posterior of it (the iterated extended Kalman filter: Bell and Cathey, 1993), which is the next one's prior.
Errors have heavy tails, as there are kernels that the model is wrong about altogether: those of Student's t, by weights
that follow from the residuals (Lange, Little and Taylor, 1989), so that such a kernel moves no price far.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from perfmodel.basics.errors import CalibrationError
from perfmodel.kernels.kernel import Kernel
from perfmodel.modelling.fitted import Fitted
from perfmodel.modelling.intervals import sensitivities
from perfmodel.modelling.prediction import STANDARD, feature_values
from perfmodel.modelling.rows import Row

Floats = NDArray[np.float64]
AnyFitted = TypeVar("AnyFitted", bound=Fitted)

UNKNOWN_SPREAD = 0.3
"""The standard deviation of the logarithm of a parameter that a fit left undetermined."""
LEAST_KNOWN = 3.0
"""A larger one says that the fit left it undetermined, as where it is next to nothing."""
UNKNOWN_ERROR = 0.3
"""The same of measured times by predictions, where no kernels were left out of a fit."""
MOST_STEPS = 20
LONGEST_STEP = 1.0
CLOSE = 1e-6
DEGREES = 4
"""Degrees of freedom of Student's t, as is usual. Of 400 kernels of an H100, by the H200's calibration and 100 times,
the errors were 4.5 % without the weights and 4.0 % with them; of an EPYC's families 18.1 and 17.4 %, by 400 times."""


def updated(
    calibration: AnyFitted, kernels: Sequence[Kernel], seconds: ArrayLike, sizes: Mapping[str, int]
) -> AnyFitted:
    """Returns the calibration with what some measured times say; see `Calibration.update`."""
    measured = np.atleast_1d(np.asarray(seconds, dtype=np.float64))
    if measured.shape != (len(kernels),):
        raise CalibrationError(f"{len(kernels)} kernels have {measured.size} times; give one for each")
    if not np.all(np.isfinite(measured) & (measured > 0)):
        raise CalibrationError("a measured time is no positive number of seconds; leave out what failed")
    bound = [kernel.at(**sizes) for kernel in kernels] if sizes else list(kernels)
    return posterior(calibration, bound, [feature_values(calibration, kernel, {}) for kernel in bound], measured)


def loosened(calibration: AnyFitted, spread: float) -> AnyFitted:
    """Returns the calibration with prices that are less sure, as those of another day or another device of its kind.

    Args:
        spread: the standard deviation of the logarithm of each price that comes on top; what is fixed stays so.
    """
    fixed = {name for name, mark in calibration.marks.items() if "fixed" in mark}
    added = [0.0 if name in fixed else (spread * value) ** 2 for name, value in calibration.parameters.items()]
    covariance = np.asarray(calibration.covariance) + np.diag(added)
    deviations = np.sqrt(np.diag(covariance))
    stderr = {
        name: float(each) if name not in fixed else calibration.stderr[name]
        for name, each in zip(calibration.parameters, deviations, strict=True)
    }
    return replace(calibration, covariance=covariance, stderr=stderr)


def posterior(
    calibration: AnyFitted,
    kernels: Sequence[Kernel],
    columns: Sequence[Mapping[str, ArrayLike]],
    measured: Floats,
) -> AnyFitted:
    """Returns the calibration with what the measured times of kernels say, each at its own sizes.

    Args:
        columns: the features of each kernel.
        measured: seconds of each, shape (kernels,).
    """
    features = {
        name: np.array([np.asarray(each[name]).item() for each in columns]) for name in calibration.model.features
    }
    names = list(calibration.parameters)
    values = np.array(list(calibration.parameters.values()))
    free = values > 0
    prior, before = _prior(calibration, free), np.log(np.where(free, values, 1.0))
    free &= np.diag(prior) > 0  # what is sure stays as it is, to the last digit
    noise = _noise(calibration, features, [kernel.name for kernel in kernels])
    now, gain, slopes = before, np.zeros((len(names), len(kernels))), np.zeros((len(kernels), len(names)))
    for _ in range(MOST_STEPS):
        parameters = dict(zip(names, np.where(free, np.exp(now), values).tolist(), strict=True))
        elasticities = sensitivities(calibration.model.string, parameters, features, len(kernels))
        predicted = np.broadcast_to(calibration.model.string.compile()(parameters, features), measured.shape)
        if not np.all(predicted > 0):
            raise CalibrationError("the model predicts no time for a kernel; nothing can be learned from it")
        slopes = np.array([elasticities[name] for name in names]).T
        scaled = np.log(measured / predicted) / np.sqrt(np.diag(noise))
        weights = np.minimum(1.0, (DEGREES + 1) / (DEGREES + scaled**2))
        weighted = noise / np.sqrt(np.outer(weights, weights))
        gain = prior @ slopes.T @ np.linalg.inv(slopes @ prior @ slopes.T + weighted)
        step = before + gain @ (np.log(measured / predicted) + slopes @ (now - before)) - now
        now = now + step * min(1.0, LONGEST_STEP / max(float(np.abs(step).max()), LONGEST_STEP))
        if np.abs(step).max() < CLOSE:
            break
    posterior = prior - gain @ slopes @ prior
    values = np.where(free, np.exp(now), values)
    covariance = (posterior + posterior.T) / 2 * np.outer(values, values)
    np.fill_diagonal(covariance, np.maximum(np.diag(covariance), 0))  # what rounding has made of nothing
    deviations = np.sqrt(np.diag(covariance))
    parameters = dict(zip(names, values.tolist(), strict=True))
    predicted = np.broadcast_to(calibration.model.string.compile()(parameters, features), measured.shape)
    rows = [
        Row(
            kernel=kernel.name,
            variant=kernel.variant,
            sizes={name: int(size) for name, size in kernel.bind({}).items()},
            key="",
            measured_s=float(time),
            predicted_s=float(found),
            flags=("learned",),
        )
        for kernel, time, found in zip(kernels, measured, predicted, strict=True)
    ]
    return replace(
        calibration,
        parameters=parameters,
        stderr={name: float(each) if each > 0 else float("nan") for name, each in zip(names, deviations, strict=True)},
        covariance=covariance,
        rows=(*calibration.rows, *rows),
    )


def _prior(calibration: Fitted, free: NDArray[np.bool_]) -> Floats:
    """Returns the covariance of the parameters' logarithms."""
    values = np.where(free, list(calibration.parameters.values()), 1.0)
    covariance = np.asarray(calibration.covariance) / np.outer(values, values)
    with np.errstate(invalid="ignore"):
        known = (np.diag(covariance) > 0) & (np.diag(covariance) <= LEAST_KNOWN**2)
    is_known = np.outer(known, known)
    fixed = np.array(["fixed" in calibration.marks.get(name, "") for name in calibration.parameters])
    spread = np.where(known | fixed | ~free, 0.0, UNKNOWN_SPREAD**2)
    return np.asarray(np.where(is_known, np.nan_to_num(covariance), 0.0) * np.outer(free, free) + np.diag(spread))


def _noise(calibration: Fitted, features: Mapping[str, Floats], families: Sequence[str]) -> Floats:
    """Returns the covariance of the logarithms of times by what the model predicts; kernels of a family share a part
    of their errors."""
    known, count = calibration.held_out, len(families)
    if known is None:
        return np.eye(count) * UNKNOWN_ERROR**2
    elasticities = sensitivities(calibration.model.string, calibration.parameters, features, count)
    usual = (known.quantile((1 + STANDARD) / 2) - known.quantile((1 - STANDARD) / 2)) / 2
    deviations = known.scale(elasticities) * usual
    alike = np.array([[1.0 if own == other else 0.0 for other in families] for own in families])
    correlation = known.shared * alike + (1 - known.shared) * np.eye(count)
    return np.asarray(correlation * np.outer(deviations, deviations))
