"""Predicts kernels again, at the same sizes or others, from what a first prediction recorded."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from perfmodel.counting.recording import Recording, UnrecordableError
from perfmodel.kernels.kernel import Kernel
from perfmodel.modelling.formula import Formula
from perfmodel.vocabulary.named_features import recorded

MOST_VALUES = 4096
"""So many predictions of one program are remembered."""


@dataclass
class Recorded:
    """Holds the predictions of one program with one choice of its other arguments.

    Attributes:
        function: of all sizes: seconds, and whether the model has a cost for what is done; None where there is none.
        is_exact: whether it is right up to some sizes; kept by their numbers of bits.
        values: seconds by sizes.
    """

    function: Callable[..., tuple[float, ...]] | None
    is_exact: Callable[[Sequence[float]], bool]
    exact: dict[tuple[int, ...], bool] = field(default_factory=dict)
    values: dict[tuple[int, ...], float] = field(default_factory=dict)


class Quick:
    """Remembers what one calibration's predictions come down to; it is empty after pickling."""

    def __init__(self) -> None:
        self._parameters: dict[str, float] = {}
        self._programs: WeakKeyDictionary[Any, dict[Any, Recorded]] = WeakKeyDictionary()

    def __reduce__(self) -> tuple[object, ...]:
        return (Quick, ())

    def seconds(
        self,
        model: Formula,
        parameters: Mapping[str, float],
        kernel: Kernel,
        sizes: Mapping[str, Any],
        otherwise: Callable[[], float | None],
    ) -> float | None:
        """Returns the prediction at one number for each size; None where the sizes are others, or `otherwise` is None.

        Args:
            otherwise: predicts what can't be recorded; None where that is not to be remembered.

        Raises:
            KernelError, FeatureError: for sizes or kernels outside what they allow.
        """
        program = kernel.program
        bound = kernel.bound | {name: size for name, size in sizes.items() if _is_whole(size)}
        numbers = tuple(int(bound.pop(name, -1)) for name in program.sizes)
        if len(sizes) > sum(name in program.sizes and _is_whole(size) for name, size in sizes.items()):
            return None
        if min(numbers, default=0) < 0 or max(numbers, default=0) >= 2**63:
            return None
        if self._parameters != parameters:
            self._parameters = dict(parameters)
            self._programs.clear()
        of_program = self._programs.setdefault(program, {})
        others = tuple(bound.items())
        found = of_program.get(others)
        if found is not None and numbers in found.values:
            return found.values[numbers]
        kernel.check_at(dict(zip(program.sizes, numbers, strict=True)))
        if found is None:
            found = of_program[others] = _recorded(model, parameters, kernel)
        seconds = _evaluated(found, numbers)
        if seconds is None:
            seconds = otherwise()
        if seconds is not None:
            if len(found.values) >= MOST_VALUES:
                found.values.clear()
            found.values[numbers] = seconds
        return seconds


def _is_whole(size: Any) -> bool:
    return isinstance(size, int | np.integer) and not isinstance(size, bool)


def _evaluated(found: Recorded, numbers: tuple[int, ...]) -> float | None:
    if found.function is None:
        return None
    bits = tuple(number.bit_length() for number in numbers)
    if bits not in found.exact:
        found.exact[bits] = found.is_exact([2.0**each for each in bits])
    if not found.exact[bits]:
        return None
    try:
        seconds, is_work = found.function(*numbers)
    except ArithmeticError:
        return None
    return seconds if is_work and math.isfinite(seconds) else None


def _recorded(model: Formula, parameters: Mapping[str, float], kernel: Kernel) -> Recorded:
    recording = Recording(kernel.program.sizes)
    try:
        with np.errstate(all="ignore"):
            features = recorded(model.features, model.counted(kernel), recording)
            seconds = model.string.compile().applied(parameters, features, recording.call)
            counts = kernel.counts
            is_idle = not (counts.operations or counts.accesses)  # there is nothing to have a cost for
            is_work = is_idle or _is_work(model, features, recording)
            return Recorded(recording.function(seconds, is_work), recording.is_exact)
    except (UnrecordableError, SyntaxError, RecursionError, MemoryError):  # those of Python's own limits
        return Recorded(None, recording.is_exact)


def _is_work(model: Formula, features: Mapping[str, Any], recording: Recording) -> Any:
    """Returns whether the model has a cost for anything that the kernel does, as a recorded number."""
    found: Any = False
    for name in model.work:
        found = recording.call(np.bitwise_or, found, recording.call(np.not_equal, features[name], 0.0))
    return found if model.work else True
