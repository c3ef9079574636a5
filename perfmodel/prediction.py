"""Predict and rank kernels from a calibration; all vectorised over sizes, none needs a device."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

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
    return predicted(calibration, kernel, feature_values(calibration, kernel, sizes))


def predicted(calibration: Calibration, kernel: Kernel, features: Mapping[str, Floats]) -> Prediction:
    """The prediction for features that are known."""
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
        found = predict(calibration, kernel, known)
        rows.append(
            {
                "kernel": kernel.name,
                "variant": kernel.variant,
                "sizes": {name: int(size) for name, size in kernel.bind(known).items()},
                "predicted_s": float(found.seconds),
                "predicted_std_s": float(found.std),
            }
        )
    table = pd.DataFrame(rows).sort_values("predicted_s", kind="stable", ignore_index=True)
    table["times_best"] = table["predicted_s"] / table["predicted_s"].iloc[0]
    return table
