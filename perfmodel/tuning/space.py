"""Lists the configurations of a space: all combinations of parameters' values for which conditions hold."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from perfmodel.basics import json_values
from perfmodel.basics.errors import KernelError, PerfmodelError
from perfmodel.kernels.size_expression import conditions_of

Value = int | str
MOST = 1_000_000
"""More combinations than that are not listed."""


def space(parameters: Mapping[str, Sequence[Value]], conditions: Sequence[str] = ()) -> list[dict[str, Value]]:
    """Returns the configurations that fulfil all conditions, the last parameter's values alternating fastest.

    >>> space({"group": [64, 128], "work": [1, 2, 4]}, ["group * work <= 256"])

    Args:
        parameters: the values of each.
        conditions: comparisons of whole-number parameters, joined by ``and``: ``group % 32 == 0 and work < 8``.

    Raises:
        PerfmodelError: for a parameter without values, too many combinations, conditions that are not understood, and
            those that no configuration fulfils.
    """
    for name, values in parameters.items():
        if not values or len(set(values)) < len(values):
            what = "a value twice" if values else "no value"
            raise PerfmodelError(f"parameter {name!r} has {what}; give each of its values once")
    total = math.prod(map(len, parameters.values()))
    if not parameters or total > MOST:
        raise PerfmodelError(
            f"{len(parameters)} parameters have {total:,} combinations; give one at least, and no more than {MOST:,}"
        )
    every = [dict(zip(parameters, values, strict=True)) for values in itertools.product(*parameters.values())]
    numbers = [name for name, values in parameters.items() if all(isinstance(value, int) for value in values)]
    columns = {name: np.array([each[name] for each in every]) for name in numbers}
    holds = np.ones(total, dtype=bool)
    for text in conditions:
        for condition in conditions_of(text, "a condition on configurations", numbers):
            holds &= condition.holds(columns)
    if not holds.any():
        raise PerfmodelError(f"no configuration fulfils {' and '.join(conditions)}; allow more values")
    return [each for each, is_allowed in zip(every, holds.tolist(), strict=True) if is_allowed]


def parameters_in(file: Path) -> dict[str, list[Value]]:
    """Reads the parameters of a space, a JSON object of lists: ``{"group": [64, 128], "work": [1, 2, 4]}``.

    Raises:
        KernelError: for a file that cannot be read, or holds anything else.
    """
    try:
        found: Any = json_values.read(file)
    except OSError as error:
        raise KernelError(f"{file} cannot be read ({error.strerror}); give a file such as {_EXAMPLE}") from error
    except ValueError as error:
        raise KernelError(f"{file} holds no parameters ({error}); write such as {_EXAMPLE}") from error
    lists = found.values() if isinstance(found, dict) else [None]
    if not all(isinstance(each, list) and all(type(value) in (int, str) for value in each) for each in lists):
        raise KernelError(f"{file} is no object of lists of whole numbers and words; write such as {_EXAMPLE}")
    return dict(found)


_EXAMPLE = '{"group": [64, 128], "work": [1, 2, 4]}'
