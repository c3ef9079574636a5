"""Predicts the configurations of ``triton.autotune``, so that it measures only the best of them."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from perfmodel.basics.brief import brief
from perfmodel.basics.errors import FeatureError, KernelError, PerfmodelError
from perfmodel.device.occupancy import limits_of
from perfmodel.kernels.kernel import Kernel
from perfmodel.kernels.ptx_program import PtxProgram
from perfmodel.kernels.triton_compiler import unwrapped
from perfmodel.modelling.calibration import Calibration
from perfmodel.tuning.side_by_side import check_workers, side_by_side

Kernels = TypeVar("Kernels")
Found = tuple[float, str]
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
    """

    def __init__(self, calibration: Calibration, *, target: str = "sm_90", workers: int | None = None) -> None:
        if not isinstance(calibration, Calibration):
            raise PerfmodelError(f"{calibration!r:.60} predicts nothing; give a calibration")
        check_workers(workers)
        self.calibration, self.target = calibration, target
        self.workers = workers or os.cpu_count() or 1
        self.seconds: dict[str, float] = {}
        self.unpredicted: dict[str, str] = {}
        self._kernel: Any = None
        self._known: dict[Any, Found] = {}

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
        own = self._own(call)
        key = _key(own)
        if key not in self._known:
            self._known[key] = self._predicted(own)
        return self._known[key][0]

    def predict_all(self, configs: Sequence[Any], arguments: Mapping[str, Any], **call: Any) -> list[Any]:
        """Returns all configurations, once they are predicted: Triton's ``early_config_prune``."""
        calls = [self._own({**arguments, **call, **config.all_kwargs()}) for config in configs]
        keys = [_key(own) for own in calls]
        missing = {key: own for key, own in zip(keys, calls, strict=True) if key not in self._known}
        self._known |= dict(
            zip(missing, side_by_side(self._predicted, list(missing.values()), self.workers), strict=True)
        )
        names = [str(config) for config in configs]
        found = [self._known[key] for key in keys]
        self.seconds = {name: seconds for name, (seconds, _) in zip(names, found, strict=True)}
        self.unpredicted = {name: reason for name, (_, reason) in zip(names, found, strict=True) if reason}
        return list(configs)

    def _own(self, call: Mapping[str, Any]) -> dict[str, Any]:
        if self._kernel is None:
            raise PerfmodelError("the predictions are of no kernel; put @predictions.of above its @triton.jit")
        return {name: value for name, value in call.items() if name not in _OF_A_CALL}

    def _predicted(self, call: dict[str, Any]) -> Found:
        """Returns the seconds of a call, or infinity and why there is no prediction."""
        given = dict(call)
        grid = given.pop("grid", None)
        try:
            parameters = unwrapped(self._kernel)[0].params
            names = [parameter.name for parameter in parameters if not parameter.is_constexpr]
            args = {name: given.pop(name) for name in names if name in given}
            if grid is None:
                raise KernelError("the call says no grid; call the kernel as kernel[grid](…)")
            kernel = Kernel.from_triton(self._kernel, grid, args, target=self.target, **given)
            self._check(kernel)
            seconds = float(self.calibration.predict(kernel))
        except (KernelError, FeatureError) as error:
            return math.inf, str(error)
        return (seconds, "") if 0 < seconds < math.inf else (math.inf, f"{seconds:g} s is no time")

    def _check(self, kernel: Kernel) -> None:
        """Raises KernelError for a kernel that the target has not the shared memory for."""
        program = kernel.program
        assert isinstance(program, PtxProgram)
        shared = program.shape(kernel.bound)[2]
        digits = "".join(letter for letter in self.target if letter.isdigit())
        limits = limits_of(f"{digits[:-1]}.{digits[-1]}")
        if shared > limits.local_bytes_per_group:
            raise KernelError(
                f"its blocks take {shared} bytes of shared memory, and there are {limits.local_bytes_per_group}"
            )

    def __repr__(self) -> str:
        return brief(self, getattr(self._kernel, "__name__", "of no kernel yet"), f"{len(self._known)} predicted")


def _key(call: Mapping[str, Any]) -> Any:
    """Returns what decides on a prediction: of arrays their types and shapes."""

    def plain(value: Any) -> Any:
        shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
        return (tuple(shape), str(dtype)) if shape is not None and dtype is not None else repr(value)

    return tuple((name, plain(value)) for name, value in sorted(call.items()) if name != "grid")
