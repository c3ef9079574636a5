"""Leads Kernel Tuner's search by predictions: a strategy for its ``tune_kernel``."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np

from perfmodel.basics.errors import KernelError, PerfmodelError
from perfmodel.kernels.inclusion import included
from perfmodel.kernels.kernel import Kernel
from perfmodel.modelling.calibration import Calibration
from perfmodel.opencl_c import lowered_kernel
from perfmodel.opencl_c.types import Pointer
from perfmodel.tuning.pruning import Pruned, check_limits, prune
from perfmodel.tuning.tuner import BETTER, DOUBT, Tuner

MS = 1e3
Configuration = dict[str, Any]
Result = dict[str, Any]


class Searchspace(Protocol):
    """The part of Kernel Tuner's search space that is needed: the configurations that its restrictions allow, by
    values."""

    tune_params: Mapping[str, Sequence[Any]]
    list: Sequence[tuple[Any, ...]]


class Runner(Protocol):
    """The part of Kernel Tuner's runner that is needed: it measures, and knows what `tune_kernel` was asked to tune."""

    kernel_source: Any
    kernel_options: Any

    def run(self, parameter_space: Iterable[tuple[Any, ...]], tuning_options: Any) -> list[Result | None]:
        """Returns a result for each configuration; with the key ``__error__`` for a failure, None beyond the budget."""

    def add_strategy_time(self, seconds: float) -> None: ...


class PredictedFirst:
    """A strategy that measures the configurations that are predicted fastest, in this order, and no others.

    The order is that of predicted times, whatever the tuning's objective is.

    >>> kernel_tuner.tune_kernel(…, strategy=PredictedFirst(calibration, top_k=20))

    Kernel Tuner's own limits, ``strategy_options={"max_fevals": …, "time_limit": …}``, hold as well. Where all that was
    chosen fails, the next ones are measured until one does not. Where one configuration is left, it is run without
    the warm-up that Kernel Tuner would otherwise measure and forget.

    Args:
        predict: a calibration, which then predicts the kernel as Kernel Tuner would build it (in OpenCL C only); or a
            function from a configuration, its values by the parameters' names, to seconds.
        top_k, within, unpredicted: see `perfmodel.prune`.
        learn: measure so many at a time, and choose the next ones by what the times of those before tell of all that
            `top_k` and `within` keep; 0 for none of that. It ends as `Tuner` does.
        better, doubt: see `Tuner`, for `learn`.

    Attributes:
        pruned: what the last tuning chose and left out, each with its prediction; None before.

    Raises:
        PerfmodelError: for limits that leave nothing; when it tunes, for a calibration and another language.
    """

    def __init__(
        self,
        predict: Calibration | Callable[[Configuration], Any],
        *,
        top_k: int | None = None,
        within: float | None = None,
        unpredicted: Literal["last", "drop"] = "last",
        learn: int = 0,
        better: float = BETTER,
        doubt: float = DOUBT,
    ) -> None:
        check_limits(top_k, within, unpredicted)
        if not isinstance(predict, Calibration) and not callable(predict):
            raise PerfmodelError(f"{predict!r:.60} predicts nothing; give a calibration, or a function to seconds")
        self.pruned: Pruned[tuple[Any, ...]] | None = None
        self._predict, self._top_k, self._within, self._unpredicted = predict, top_k, within, unpredicted
        self._learn, self._better, self._doubt = learn, better, doubt

    def tune(self, searchspace: Searchspace, runner: Runner, tuning_options: Any) -> list[Result]:
        """Returns the results of what was measured, in the order of measuring; called by Kernel Tuner."""
        names, predict = list(searchspace.tune_params), self._predictor(runner)
        started = time.perf_counter()
        self.pruned = prune(
            searchspace.list,
            lambda values: predict(dict(zip(names, values, strict=True))),
            top_k=self._top_k,
            within=self._within,
            unpredicted=self._unpredicted,
        )
        runner.add_strategy_time(time.perf_counter() - started)
        # A warm-up is the first configuration, measured and forgotten: of use only where there is another to compare.
        if len(self.pruned) == 1 and hasattr(runner, "warmed_up"):
            runner.warmed_up = True
        if self._learn and not all(each.unpredicted for each in self.pruned.kept):
            results = self._learned(runner, tuning_options)
        else:
            results = runner.run(list(self.pruned), tuning_options)
        for candidate in self.pruned.left_out:
            if any(result is None or "__error__" not in result for result in results):
                break
            results += runner.run([candidate.config], tuning_options)
        return [result for result in results if result is not None]

    def _learned(self, runner: Runner, tuning_options: Any) -> list[Result | None]:
        """Returns the results of what is measured, some at a time, as each tells of the others."""
        assert self.pruned is not None
        tuner = Tuner(self.pruned.kept, better=self._better, doubt=self._doubt)
        results: list[Result | None] = []
        while not tuner.is_done:
            asked = tuner.ask(self._learn)
            found = runner.run(asked, tuning_options)
            results += found
            if len(found) < len(asked) or None in found:  # beyond the budget
                break
            for config, result in zip(asked, found, strict=True):
                assert result is not None
                tuner.tell(config, None if "__error__" in result else result["time"] / MS)
        return results

    def _predictor(self, runner: Runner) -> Callable[[Configuration], Any]:
        if not isinstance(self._predict, Calibration):
            return self._predict
        language = str(runner.kernel_source.lang)
        if language.upper() != "OPENCL":
            raise PerfmodelError(
                f"a calibration predicts OpenCL C, and Kernel Tuner tunes {language} here; give PredictedFirst a "
                "function from a configuration to seconds"
            )
        calibration = self._predict
        # What predictions of one kernel's configurations have in common does not change their order.
        own = math.sqrt(1 - calibration.held_out.shared) if calibration.held_out else 1.0

        def predicted(configuration: Configuration) -> tuple[float, float]:
            kernel = calibration.model.counted(configured_kernel(runner, configuration))  # by the source, one of many
            seconds, std = calibration.predict(kernel, return_std=True)
            return float(seconds), own * float(std)

        return predicted


def configured_kernel(runner: Runner, configuration: Configuration) -> Kernel:
    """Returns the kernel that Kernel Tuner would build and launch for a configuration.

    Raises:
        KernelError, SourceError: as `Kernel.from_opencl`.
    """
    from kernel_tuner.util import default_block_size_names, setup_block_and_grid  # an optional dependency

    asked = runner.kernel_options
    block_names = asked.block_size_names or default_block_size_names
    divisors = (asked.grid_div_x, asked.grid_div_y, asked.grid_div_z)
    local_size, groups = setup_block_and_grid(asked.problem_size, divisors, configuration, block_names)
    axes = max((axis for axis in (1, 2, 3) if local_size[axis - 1] * groups[axis - 1] > 1), default=1)
    options = list(getattr(getattr(getattr(runner, "dev", None), "dev", None), "compiler_options", None) or [])
    name, source, files = runner.kernel_source.prepare_list_of_files(
        asked.kernel_name, configuration, groups, local_size, block_names
    )
    source = _with_files(source, [Path(file) for file in files.values()])
    arguments = [_chosen(argument, configuration) for argument in asked.arguments]
    extents, scalars = _arguments(name, source, options, arguments)
    global_size = [count * size for count, size in zip(groups, local_size, strict=True)]
    kernel = Kernel.from_opencl(source, name, global_size[:axes], list(local_size[:axes]), extents, options)
    return kernel.at(**scalars)


def _with_files(source: str, files: Sequence[Path]) -> str:
    """Returns the source with all that it includes; `files`, which Kernel Tuner wrote for this configuration, are
    removed."""
    try:
        return included(source, [Path(), *{file.parent for file in files}])
    finally:
        for file in files:
            file.unlink(missing_ok=True)


def _chosen(argument: Any, configuration: Configuration) -> Any:
    """Returns an argument that depends on the configuration (Kernel Tuner's `Tunable`), as it is for this one."""
    select = getattr(argument, "select_for_configuration", None)
    return argument if select is None else select(configuration)


def _arguments(
    name: str, source: str, options: Sequence[str], arguments: Sequence[Any]
) -> tuple[dict[str, int | str], dict[str, Any]]:
    """Returns elements of each array and the value of each scalar, by the names that they have in the source."""
    parameters = lowered_kernel(source, name, options).parameters
    if len(parameters) != len(arguments):
        raise KernelError(
            f"kernel {name!r} has {len(parameters)} arguments in its source, and tune_kernel is given "
            f"{len(arguments)}; give one for each"
        )
    extents: dict[str, int | str] = {}
    scalars: dict[str, Any] = {}
    for parameter, argument in zip(parameters, arguments, strict=True):
        if isinstance(parameter.type, Pointer):
            extents[parameter.name] = int(argument.nbytes) // parameter.type.target.size
        else:
            scalars[parameter.name] = np.asarray(argument).item()
    return extents, scalars
