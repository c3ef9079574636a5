"""Predicts kernels again, at the same sizes or others, from what a first prediction recorded."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np

from perfmodel.counting.recording import Recording, UnrecordableError
from perfmodel.kernels.kernel import Kernel
from perfmodel.modelling.formula import Formula
from perfmodel.vocabulary.named_features import is_idle, recorded

MOST_VALUES = 4096
"""So many predictions of one program are remembered."""
MOST_RECORDED = 64
"""So many functions of one program are remembered, for different values of sizes that are constant in them."""

Constant: TypeAlias = tuple[int | None, ...]
"""The values of sizes that are constant, None in the places of those that vary."""


@dataclass
class RecordedPredictions:
    """Holds the predictions of one program as a function of all its sizes: seconds, and whether the model has a cost
    for what is done.

    Attributes:
        is_exact: whether it is right up to some sizes; kept by their numbers of bits.
    """

    function: Callable[..., tuple[float, ...]]
    is_exact: Callable[[Sequence[float]], bool]
    exact: dict[tuple[int, ...], bool] = field(default_factory=dict)

    def seconds(self, numbers: tuple[int, ...]) -> float | None:
        """Returns the prediction at some sizes; None where that is not known."""
        bits = tuple(number.bit_length() for number in numbers)
        if bits not in self.exact:
            self.exact[bits] = self.is_exact([2.0**each for each in bits])
        if not self.exact[bits]:
            return None
        try:
            seconds, is_work = self.function(*numbers)
        except ArithmeticError:
            return None
        return seconds if is_work and math.isfinite(seconds) else None


@dataclass
class Remembered:
    """Holds what is remembered of one program with one choice of its other arguments.

    Attributes:
        values: seconds by sizes.
        functions: recorded predictions, by the sizes that are constant in them.
        unrecordable: which sizes vary where nothing can be recorded.
        before: the sizes of the prediction before.
    """

    values: dict[tuple[int, ...], float] = field(default_factory=dict)
    functions: dict[Constant, RecordedPredictions] = field(default_factory=dict)
    unrecordable: set[tuple[bool, ...]] = field(default_factory=set)
    before: tuple[int, ...] = ()

    def function(
        self, numbers: tuple[int, ...], record: Callable[[Constant], RecordedPredictions | None]
    ) -> RecordedPredictions | None:
        """Returns a recorded prediction that holds at some sizes, if need be with those that stay as they were before
        as constants."""
        for constant, found in self.functions.items():
            if all(each is None or each == number for each, number in zip(constant, numbers, strict=True)):
                return found
        general: Constant = (None,) * len(numbers)
        stayed = (number if number == each else None for number, each in zip(numbers, self.before, strict=False))
        for constant in (general, tuple(stayed)):
            vary = tuple(each is None for each in constant)
            if len(constant) < len(numbers) or vary in self.unrecordable:
                continue
            recorded = record(constant)
            if recorded is not None:
                if len(self.functions) >= MOST_RECORDED:
                    self.functions.clear()
                self.functions[constant] = recorded
                return recorded
            self.unrecordable.add(vary)
        return None


class Quick:
    """Remembers what one calibration's predictions come down to; it is empty after pickling."""

    def __init__(self) -> None:
        self._parameters: dict[str, float] = {}
        self._programs: WeakKeyDictionary[Any, dict[Any, Remembered]] = WeakKeyDictionary()

    def __reduce__(self) -> tuple[object, ...]:
        return (Quick, ())

    def seconds(
        self,
        model: Formula,
        parameters: Mapping[str, float],
        kernel: Kernel,
        sizes: Mapping[str, Any],
        otherwise: Callable[[], float | None],
        counted: Callable[[Kernel], Kernel],
    ) -> float | None:
        """Returns the prediction at one number for each size; None where the sizes are others, or `otherwise` is None.

        Args:
            otherwise: predicts what can't be recorded; None where that is not to be remembered.
            counted: returns a kernel in the form that it is counted in.

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
        known = of_program.get(others)
        if known is not None and numbers in known.values:
            return known.values[numbers]
        here = dict(zip(program.sizes, numbers, strict=True))
        kernel.check_at(here)
        known = known or of_program.setdefault(others, Remembered())
        found = known.function(numbers, partial(_recorded, model, parameters, counted, partial(kernel.at, **here)))
        known.before = numbers
        seconds = None if found is None else found.seconds(numbers)
        if seconds is None:
            seconds = otherwise()
        if seconds is not None:
            if len(known.values) >= MOST_VALUES:
                known.values.clear()
            known.values[numbers] = seconds
        return seconds


def _is_whole(size: Any) -> bool:
    return isinstance(size, int | np.integer) and not isinstance(size, bool)


def _recorded(
    model: Formula,
    parameters: Mapping[str, float],
    form: Callable[[Kernel], Kernel],
    at_sizes: Callable[[], Kernel],
    constant: Constant,
) -> RecordedPredictions | None:
    """Returns the predictions of a kernel as a function of those sizes that are not constant; None where there is
    none."""
    example = at_sizes()
    recording = Recording(example.program.sizes)
    counted = form(example)
    numbers = {name: each for name, each in zip(example.program.sizes, constant, strict=True) if each is not None}
    try:
        with np.errstate(all="ignore"):
            features = recorded(model.features, counted, recording, numbers)
            seconds = model.string.compile().applied(parameters, features, recording.call)
            is_work = _is_work(model, features, recording)
            if is_work is not True and is_idle(model.features, counted, numbers):
                counts = example.counts
                is_work = not (counts.operations or counts.accesses) or is_work  # there is nothing to have a cost for
            return RecordedPredictions(recording.function(seconds, is_work), recording.is_exact)
    except (UnrecordableError, SyntaxError, RecursionError, MemoryError):  # those of Python's own limits
        return None


def _is_work(model: Formula, features: Mapping[str, Any], recording: Recording) -> Any:
    """Returns whether the model has a cost for anything that the kernel does, as a recorded number, or at once."""
    found: Any = False
    for name in model.work:
        here = recording.call(np.not_equal, features[name], 0.0)
        if isinstance(here, np.bool_ | bool):
            if here:
                return True
        else:
            found = recording.call(np.bitwise_or, found, here)
    return found if model.work else True
