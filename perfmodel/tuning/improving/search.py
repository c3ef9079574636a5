"""Looks for changes of a kernel, one after the other, that are predicted to make it faster."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from perfmodel.basics.errors import PerfmodelError
from perfmodel.kernels.changes import MOST_ITEMS, Changed
from perfmodel.kernels.changes.of_loopy import transformed
from perfmodel.kernels.changes.of_opencl import (
    with_other_groups,
    with_other_launches,
    with_other_numbers,
    with_padded_tiles,
)
from perfmodel.kernels.kernel import Kernel
from perfmodel.kernels.loopy_program import LoopyProgram
from perfmodel.kernels.opencl_program import OpenCLProgram
from perfmodel.modelling.calibration import Calibration
from perfmodel.modelling.prediction import Prediction, predict

KEPT = 3
"""So many kernels, the best of each round, are changed further."""
ROUNDS = 4


@dataclass(frozen=True)
class Candidate:
    """A changed kernel with its prediction.

    Attributes:
        changes: in words, in their order.
        code: the lines that make it of the Loopy program ``program``; empty for other kernels.
    """

    kernel: Kernel
    changes: tuple[str, ...]
    code: tuple[str, ...]
    prediction: Prediction
    parts: tuple[str, ...] = ()

    @property
    def seconds(self) -> float:
        """The predicted seconds."""
        return float(self.prediction.seconds)

    @property
    def words(self) -> str:
        """All changes in one line."""
        return ", ".join(self.changes) or "as it is"


def candidates(
    calibration: Calibration,
    kernel: Kernel,
    most: int,
    parameters: Callable[[Kernel], Iterable[Changed]],
    differs: Callable[[Kernel], str],
    tell: Callable[[str], None],
) -> list[Candidate]:
    """Returns the kernel itself first, then changed ones, the fastest predicted first.

    Only what computes the same is changed further.

    Args:
        most: changed kernels to predict, at most.
        parameters: what gives the kernel with other values of its own parameters; tried in the first round.
        differs: says why a kernel may not stand for the original; empty if it may.
        tell: what is told how far the search is.

    Raises:
        PerfmodelError: the kernel itself has no prediction.
    """
    first = Candidate(kernel=kernel, changes=(), code=(), prediction=_predicted(calibration, kernel))
    limit = max(MOST_ITEMS, math.prod(kernel.launch().local_size))
    known = {kernel.program.content: first}
    latest = [first]
    for number in range(ROUNDS):
        found = []
        for before in latest:
            more = parameters(kernel) if number == 0 else ()
            for changed in [*more, *_changes(before)]:
                if len(known) > most:
                    break
                each = _candidate(calibration, before, changed, limit)
                if each is not None and each.kernel.program.content not in known:
                    known[each.kernel.program.content] = each
                    found.append(each)
                    best = min(each.seconds for each in known.values())
                    tell(f"{len(known) - 1} changed kernels predicted, the best so far {best:.3g} s")
        latest = _kept(found, latest, differs)
        if not latest:
            break
    return [first, *sorted(list(known.values())[1:], key=lambda each: each.seconds)]


def _changes(candidate: Candidate) -> Iterator[Changed]:
    program = candidate.kernel.program
    if isinstance(program, LoopyProgram):
        yield from transformed(candidate.kernel, program)
    elif isinstance(program, OpenCLProgram):
        for change in (with_other_numbers, with_other_groups, with_other_launches, with_padded_tiles):
            yield from change(candidate.kernel, program)


def _candidate(calibration: Calibration, before: Candidate, changed: Changed, limit: int) -> Candidate | None:
    """Returns a changed kernel with its prediction; None where it has none."""
    if changed.what in before.parts:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            prediction = _predicted(calibration, changed.kernel)
            if math.prod(changed.kernel.launch().local_size) > limit:
                return None
    except PerfmodelError:
        return None
    changes, code = (*before.changes, changed.words), (*before.code, *changed.code)
    return Candidate(
        kernel=changed.kernel, changes=changes, code=code, prediction=prediction, parts=(*before.parts, changed.what)
    )


def _predicted(calibration: Calibration, kernel: Kernel) -> Prediction:
    return predict(calibration, kernel, {})


def _kept(found: list[Candidate], before: list[Candidate], differs: Callable[[Kernel], str]) -> list[Candidate]:
    """Returns those that are changed further: the best that are the same, if they are not much slower than before."""
    limit = 1.5 * min(each.seconds for each in before)  # a change may pay only together with the next
    promising = sorted((each for each in found if each.seconds < limit), key=lambda each: each.seconds)
    same = (each for each in promising[: 3 * KEPT] if not differs(each.kernel))
    return list(itertools.islice(same, KEPT))
