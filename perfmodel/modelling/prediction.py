"""Predicts kernels from a calibration; all vectorised over sizes, none needs a device."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from perfmodel.basics.brief import brief
from perfmodel.basics.errors import PerfmodelError, PerfmodelWarning
from perfmodel.counting.evaluation import Block, blockwise
from perfmodel.counting.resampling import deviation
from perfmodel.kernels.kernel import Kernel
from perfmodel.kernels.replica import replicas
from perfmodel.modelling.counted_form import OF_CODE, counted_form
from perfmodel.modelling.fitted import Fitted
from perfmodel.modelling.intervals import OF_MACHINE_CODE, OF_OTHERS, between, sensitivities
from perfmodel.modelling.unpriced import unpriced
from perfmodel.vocabulary.named_features import CountedFeature, counted_functions, evaluate_all

Floats = NDArray[np.float64]

LEVEL = 0.9
"""The probability of the intervals that are shown."""
STANDARD = 0.6827
"""The probability that a value of a normal distribution lies within one standard deviation."""
SAMPLED = 0.2
"""A time's logarithm is off by so much, beside what samples differ by, where work-groups had to be run to count them:
that is by how much kernels whose work data decide are further off than others (the validating half of
benchmarks/programs: |ln| is 0.23 in the mean, and 0.14)."""


class PredictionWarning(PerfmodelWarning):
    """Warns of a prediction for a kernel that the model has nothing to say of."""


@dataclass(frozen=True)
class Prediction:
    """Seconds at some sizes, and on demand how sure they are: arrays of one shape."""

    calibration: Fitted
    features: Mapping[str, Floats]
    seconds: Floats
    kernel: Kernel
    sizes: Mapping[str, ArrayLike]

    @property
    def std(self) -> Floats:
        """Half of the 68 % interval, shape of `seconds`; NaN where that is not known."""
        low, high = self.interval(STANDARD)
        return np.where(np.isfinite(high), (high - low) / 2, np.nan)

    def interval(self, level: float) -> tuple[Floats, Floats]:
        """Returns an interval at each size, see `Calibration.interval`.

        Raises:
            PerfmodelError: for a level that is no probability.
        """
        if isinstance(level, bool) or not isinstance(level, int | float | np.floating) or not 0 < level < 1:
            raise PerfmodelError(f"level={level!r} is no probability; give one between 0 and 1, such as 0.9")
        known = self.calibration.held_out
        quantile = known.quantile if known else NormalDist().inv_cdf
        ends = between(self.seconds, self._of_model * self._foreignness, quantile, level, self._beside)
        is_unknown = np.isnan(self.scale)
        lower, upper = (np.where(is_unknown, open_, end) for open_, end in zip((0, np.inf), ends, strict=True))
        open_ended = np.any([np.zeros(is_unknown.shape, dtype=bool), *self.unpriced.values()], axis=0)
        return np.minimum(lower, upper), np.where(open_ended, np.inf, upper)

    @property
    def _foreignness(self) -> float:
        """The errors of a kernel that no generator made, relative to those of families left out, if these are known."""
        known = self.calibration.held_out
        if not known or known.held_out != "families" or self.kernel.is_of_generator:
            return 1.0
        is_code = any(np.any(self.features.get(name, 0.0)) for name in ("f_issue_known", OF_CODE))
        return OF_MACHINE_CODE if is_code else OF_OTHERS

    @cached_property
    def scale(self) -> Floats:
        """The scale of logarithmic errors of all kinds, in units of those of kernels that were left out of the fit; NaN
        if it is not known."""
        known = self.calibration.held_out
        usual = (known.quantile((1 + STANDARD) / 2) - known.quantile((1 - STANDARD) / 2)) / 2 if known else 1.0
        return np.asarray(np.hypot(self._of_model, self._beside / usual) if usual > 0 else self._of_model)

    @cached_property
    def _of_model(self) -> Floats:
        """The scale of the logarithmic errors that the model makes; NaN if it is not known."""
        known = self.calibration.held_out
        if known is None:
            return np.full(self.seconds.shape, self.calibration.residual_std)
        return np.asarray(known.scale(self._sensitivities).reshape(self.seconds.shape))

    @cached_property
    def _beside(self) -> Floats:
        """The standard deviation of each time's logarithm that comes beside the model's errors: of what its parameters
        leave open, of samples, and of what no sample shows."""
        own = self._parameter_deviation
        return np.asarray(np.hypot(np.where(np.isnan(own), 0.0, own), self._of_samples))

    @property
    def _of_samples(self) -> Floats:
        """The standard deviation of each time's logarithm that comes of counting samples."""
        return np.where(self.sampling > 0, np.hypot(self.sampling, SAMPLED), 0.0)

    @cached_property
    def sampling(self) -> Floats:
        """The standard error of the logarithm of each time that follows from counts of some work-groups only; 0 where
        all are counted."""
        compiled, parameters = self.calibration.model.string.compile(), self.calibration.parameters
        others = [np.broadcast_to(compiled(parameters, features), self.seconds.shape) for features in self._resampled()]
        return deviation(self.seconds, others)

    def _resampled(self) -> Iterator[Mapping[str, Floats]]:
        """Yields the features as other weights of the sampled work-groups would have them."""
        features = self.calibration.model.features
        widths = {f.subgroup_size for f in features.values() if isinstance(f, CountedFeature)}
        if not widths:
            return
        bound = self.kernel.bind(self.sizes)
        first = self.kernel.at(**{name: int(size.flat[0]) for name, size in bound.items() if size.size})
        for replica in replicas(first, max(widths, key=lambda width: width or 0)):
            yield evaluate_all(features, replica, bound)

    @cached_property
    def distance(self) -> Floats:
        """The distance from all measurements, see `perfmodel.modelling.intervals`; NaN where that is not known."""
        known = self.calibration.held_out
        if known is None:
            return np.full(self.seconds.shape, np.nan)
        return known.neighbourhood.distance(self._sensitivities).reshape(self.seconds.shape)

    @cached_property
    def unpriced(self) -> dict[str, NDArray[np.bool_]]:
        """Masks of sizes at which the kernel has something that costs nothing here, as no measurement had it, by
        feature."""
        string, parameters = self.calibration.model.string, self.calibration.parameters
        unseen = [name for name, (_, high) in self.calibration.ranges.items() if high == 0 and name in self.features]
        found = unpriced(string, parameters, self._flat, unseen)
        return {name: where.reshape(self.seconds.shape) for name, where in found.items()}

    @cached_property
    def _sensitivities(self) -> dict[str, Floats]:
        return sensitivities(self.calibration.model.string, self.calibration.parameters, self._flat, self.seconds.size)

    @cached_property
    def _flat(self) -> dict[str, Floats]:
        return {name: np.broadcast_to(each, self.seconds.shape).ravel() for name, each in self.features.items()}

    @property
    def _parameter_deviation(self) -> Floats:
        """Returns the relative standard deviation that the parameters' covariance gives."""
        parameters, covariance = self.calibration.parameters, self.calibration.covariance
        jacobian = self.calibration.model.string.compile().jacobian(parameters, self.features)
        flat = jacobian.reshape(len(parameters), -1)
        with np.errstate(all="ignore"):
            fitted = np.sqrt(np.maximum(np.einsum("ik,ij,jk->k", flat, covariance, flat), 0))
            return np.asarray(fitted.reshape(self.seconds.shape) / np.abs(self.seconds))

    def __repr__(self) -> str:
        seconds = np.asarray(self.seconds)
        shown = f"{float(seconds):.4g} s" if not seconds.ndim else f"seconds of shape {seconds.shape}"
        return brief(self, shown, f"by {self.calibration!r}")


def predict(calibration: Fitted, kernel: Kernel, sizes: Mapping[str, ArrayLike]) -> Prediction:
    """Predicts a kernel at some sizes; see `Calibration.predict`."""
    kernel = counted_form(calibration, kernel, sizes)
    return predicted(calibration, kernel, sizes, feature_values(calibration, kernel, sizes))


def predicted_seconds(calibration: Fitted, kernel: Kernel, sizes: Mapping[str, ArrayLike]) -> Floats:
    """Predicts a kernel's seconds only: at single sizes many times as fast as `predict`, once it did so; of arrays
    without the memory that all features at all sizes would take."""

    def slowly() -> float | None:
        features = feature_values(calibration, kernel, sizes)
        seconds = float(predicted(calibration, kernel, sizes, features).seconds)
        return None if _is_uncounted(calibration, kernel, features) else seconds

    def counted(example: Kernel) -> Kernel:
        return counted_form(calibration, example, {})

    found = calibration.quick.seconds(calibration.model, calibration.parameters, kernel, sizes, slowly, counted)
    if found is not None:
        return np.asarray(found)
    form = counted_form(calibration, kernel, sizes)
    of_array = _seconds_in_blocks(calibration, form, sizes)
    return predict(calibration, form, sizes).seconds if of_array is None else of_array


def _seconds_in_blocks(calibration: Fitted, counted: Kernel, sizes: Mapping[str, ArrayLike]) -> Floats | None:
    """Returns the seconds at arrays of sizes; None where features are better known at single ones, or count no work."""
    model, compiled = calibration.model, calibration.model.string.compile()
    is_work = not model.work
    bound = counted.bind(sizes)
    if not any(np.ndim(size) for size in bound.values()):
        return None
    functions = counted_functions(model.features, counted, bound)
    if len(functions) < len(model.features):
        return None

    def seconds(block: Block) -> Floats:
        nonlocal is_work
        features = {name: np.asarray(function(block)) for name, function in functions.items()}
        is_work = is_work or any(np.any(features[name]) for name in model.work)
        return compiled(calibration.parameters, features)

    (found,) = blockwise([seconds], bound)
    return found if is_work else None


def predicted(
    calibration: Fitted, kernel: Kernel, sizes: Mapping[str, ArrayLike], features: Mapping[str, Floats]
) -> Prediction:
    """Returns the prediction for features that are known."""
    if _is_uncounted(calibration, kernel, features):
        warnings.warn(
            f"kernel {kernel.name!r} does nothing that the model counts as work; the prediction holds its launch only",
            PredictionWarning,
            stacklevel=4,
        )
    compiled = calibration.model.string.compile()
    shape = np.broadcast_shapes(*(f.shape for f in features.values()), ())
    seconds = np.broadcast_to(compiled(calibration.parameters, features), shape)
    return Prediction(
        calibration=calibration,
        features=features,
        seconds=seconds,
        kernel=counted_form(calibration, kernel, sizes),
        sizes=sizes,
    )


def _is_uncounted(calibration: Fitted, kernel: Kernel, features: Mapping[str, Floats]) -> bool:
    """Returns True for a kernel that works, but does nothing that the model has a cost for."""
    work = calibration.model.work
    if not work or any(np.any(features[name]) for name in work):
        return False
    return bool(kernel.counts.operations or kernel.counts.accesses)


def feature_values(calibration: Fitted, kernel: Kernel, sizes: Mapping[str, ArrayLike]) -> dict[str, Floats]:
    """Returns every input feature of the calibration's model, each an array of the sizes' common shape."""
    counted = counted_form(calibration, kernel, sizes)
    return evaluate_all(calibration.model.features, counted, counted.bind(sizes))
