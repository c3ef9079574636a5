"""Predicts the configurations of ``triton.autotune``, so that it measures only the best of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from perfmodel.basics.brief import brief
from perfmodel.basics.errors import KernelError, PerfmodelError
from perfmodel.basics.side_by_side import check_workers, side_by_side
from perfmodel.device.occupancy import limits_of
from perfmodel.kernels.kernel import Kernel
from perfmodel.kernels.triton_compiler import undecorated
from perfmodel.modelling.calibration import Calibration
from perfmodel.tuning.foreseeing import Foreseen, Foresight, foreseen, together
from perfmodel.tuning.limits import Limits
from perfmodel.tuning.tuner import Tuner, tuner_of

Kernels = TypeVar("Kernels")
_OF_A_CALL = ("warmup", "pre_hook", "ir_override")
"""Words of Triton's for a call and its configurations that decide on no time."""


class TritonPredictions:
    """Predicts how long configurations of a Triton kernel take, for ``prune_configs_by`` of ``triton.autotune``.

    Each configuration is compiled and predicted, in processes side by side, and none is run.

    >>> predictions = TritonPredictions(Calibration.shipped(device="H200"))
    >>> @triton.autotune(configs, key=["M", "N", "K"], prune_configs_by=predictions.best(5))
    ... @predictions.of
    ... @triton.jit
    ... def matmul(…): …

    Args:
        calibration: of the device that Triton tunes for.
        target: the architecture to compile for.
        workers: processes that predict at the same time; as many as there are processors, if left out. They are
            forked, and use no device; 1 predicts in this process.

    Attributes:
        seconds: as predicted for each configuration of the last call, infinite where nothing is.
        unpredicted: why nothing is, by configuration.
        tuner: a search through these, which learns from times that it is told (`Tuner`), by the configurations' texts;
            None before there is a prediction.
    """

    def __init__(self, calibration: Calibration, *, target: str = "sm_90", workers: int | None = None) -> None:
        if not isinstance(calibration, Calibration):
            raise PerfmodelError(f"{calibration!r:.60} predicts nothing; give a calibration")
        check_workers(workers)
        self.calibration, self.target = calibration, target
        self.workers = workers
        digits = "".join(letter for letter in target if letter.isdigit())
        self.limits = replace(Limits.of(calibration.device), unit=limits_of(f"{digits[:-1]}.{digits[-1:]}"))
        self.seconds: dict[str, float] = {}
        self.unpredicted: dict[str, str] = {}
        self._kernel: Any = None
        self.tuner: Tuner[str] | None = None
        self._known: dict[Any, Foreseen] = {}

    def of(self, kernel: Kernels) -> Kernels:
        """Returns a kernel under ``@triton.jit`` as it is; its configurations are those that are predicted."""
        self._kernel = kernel
        return kernel

    def best(self, top_k: int | float) -> dict[str, Any]:
        """Returns what ``prune_configs_by`` takes, to measure so many configurations, or such a part of them."""
        return {"early_config_prune": self.predict_all, "perf_model": self, "top_k": top_k}

    def __call__(self, **call: Any) -> float:
        """Returns the seconds of a call, with the constants of a configuration among its arguments: Triton's
        ``perf_model``."""
        return self._looked_up([self._own(call)])[1][0]

    def predict_all(self, configs: Sequence[Any], arguments: Mapping[str, Any], **call: Any) -> list[Any]:
        """Returns all configurations, once they are predicted: Triton's ``early_config_prune``."""
        known, seconds = self._looked_up([self._own({**arguments, **call, **each.all_kwargs()}) for each in configs])
        names = [str(config) for config in configs]
        self.seconds = dict(zip(names, seconds, strict=True))
        reasons = zip(names, known.every, seconds, strict=True)
        self.unpredicted = {
            name: each.refused or f"{time:g} s is no time" for name, each, time in reasons if time == math.inf
        }
        self.tuner = None if all(time == math.inf for time in seconds) else tuner_of(names, known)
        return list(configs)

    def _looked_up(self, calls: Sequence[dict[str, Any]]) -> tuple[Foresight, list[float]]:
        """Returns what is known of calls, and their seconds, infinite where there are none; what was not met before is
        found out side by side."""
        keys = [_key(call) for call in calls]
        missing = {key: call for key, call in zip(keys, calls, strict=True) if key not in self._known}
        self._known |= dict(
            zip(missing, side_by_side(self._foreseen, list(missing.values()), self.workers), strict=True)
        )
        known = together([self._known[key] for key in keys], self.calibration)
        return known, [float(time) if 0 < time < math.inf else math.inf for time in known.seconds]

    def _own(self, call: Mapping[str, Any]) -> dict[str, Any]:
        if self._kernel is None:
            raise PerfmodelError("the predictions are of no kernel; put @predictions.of above its @triton.jit")
        return {name: value for name, value in call.items() if name not in _OF_A_CALL}

    def _foreseen(self, call: dict[str, Any]) -> Foreseen:
        return foreseen(lambda: self._compiled(call), self.calibration, self.limits)

    def _compiled(self, call: dict[str, Any]) -> Kernel:
        given = dict(call)
        grid = given.pop("grid", None)
        parameters = undecorated(self._kernel).fn.params
        names = [parameter.name for parameter in parameters if not parameter.is_constexpr]
        args = {name: given.pop(name) for name in names if name in given}
        if grid is None:
            raise KernelError("the call says no grid; call the kernel as kernel[grid](…)")
        return Kernel.from_triton(self._kernel, grid, args, target=self.target, **given)

    def __repr__(self) -> str:
        return brief(self, getattr(self._kernel, "__name__", "of no kernel yet"), f"{len(self._known)} predicted")


def _key(call: Mapping[str, Any]) -> Any:
    """Returns what decides on a prediction: of arrays their types and shapes."""

    def plain(value: Any) -> Any:
        shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
        return (tuple(shape), str(dtype)) if shape is not None and dtype is not None else repr(value)

    return tuple((name, plain(value)) for name, value in sorted(call.items()) if name != "grid")
