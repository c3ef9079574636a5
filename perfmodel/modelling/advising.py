"""Says what to change in a kernel, found by predicting the changed kernel."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from perfmodel.basics.brief import brief, number_of
from perfmodel.basics.errors import KernelError, PerfmodelError
from perfmodel.basics.json_values import plain
from perfmodel.basics.notebook import ShownAsText
from perfmodel.basics.side_by_side import Deadline
from perfmodel.basics.tables import seconds as with_unit
from perfmodel.counting.usual_budget import GIVEN_MORE
from perfmodel.kernels.changes import Changed
from perfmodel.kernels.kernel import Kernel
from perfmodel.modelling.alternatives import alternatives
from perfmodel.modelling.counted_form import counted_form
from perfmodel.modelling.fitted import Fitted
from perfmodel.modelling.prediction import Floats, predict
from perfmodel.vocabulary.named_features import evaluate_all, feature

LEAST_SAVING = 0.03
"""Changes that save less are not worth a word."""
MOST_CHANGES = 5
CHANGES_S = 1.5
"""After so many seconds no other changed kernel is predicted, with a larger budget of counting after so many times as
long."""


@dataclass(frozen=True)
class Change:
    """One change of a kernel, with what it is predicted to save.

    Attributes:
        seconds: the time of the changed kernel.
        saving: the part of the time that it saves.
        kernel: the changed kernel; None for a change that is only thought of, and whose way is open.
    """

    words: str
    seconds: float
    saving: float
    kernel: Kernel | None = None

    def __str__(self) -> str:
        what = f"{self.saving:.0%} ({with_unit(self.seconds)})"
        return f"{self.words} would save {what}" if self.kernel else f"with {self.words} it would save {what}"


@dataclass(frozen=True)
class Advice(ShownAsText):
    """Holds what to change in a kernel, what saves most first; kernels that there are before others.

    Attributes:
        untried: the number of changed kernels that were not predicted, as that took too long.
    """

    seconds: float
    changes: tuple[Change, ...]
    untried: int = 0

    def as_json(self) -> list[dict[str, Any]]:
        """Returns the changes as values that JSON can hold."""
        return [
            {
                "words": each.words,
                "seconds": plain(each.seconds),
                "saving": plain(each.saving),
                "kernel": each.kernel.label if each.kernel else None,
            }
            for each in self.changes
        ]

    def __repr__(self) -> str:
        return brief(self, number_of(len(self.changes), "change"), *(str(each) for each in self.changes[:1]))

    def __str__(self) -> str:
        lines = [f"  {each}" for each in self.changes]
        if self.untried:
            others = number_of(self.untried, "other change")
            were = "was" if self.untried == 1 else "were"
            lines.append(f"  {others} {were} not predicted, to save time {GIVEN_MORE}")
        if not self.changes:
            return "\n".join(["what to change: nothing that was tried saves 3 %", *lines])
        return "\n".join(["what to change, by its own prediction:", *lines])


def advise(calibration: Fitted, kernel: Kernel, sizes: Mapping[str, int]) -> Advice:
    """Returns what to change in a kernel; see `Calibration.advise`."""
    kernel = kernel.at(**{name: int(size) for name, size in sizes.items()})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the prediction of the kernel itself has said them
        seconds = float(predict(calibration, kernel, {}).seconds)
        changed = list(alternatives(kernel))
        predicted = Deadline(CHANGES_S * kernel.program.budget).done(partial(_seconds, calibration), changed)
        best: dict[str, Change] = {}
        for each, then in predicted:
            if then is not None:
                change = Change(each.words, then, _saving(then, seconds), each.kernel)
                best[each.what] = max(best.get(each.what, change), change, key=lambda one: one.saving)
        tried = [*best.values(), *_imagined(calibration, kernel, seconds)]
    notable = [each for each in tried if each.saving >= LEAST_SAVING]
    ordered = sorted(notable, key=lambda each: (each.kernel is None, -each.saving))
    return Advice(seconds, tuple(ordered[:MOST_CHANGES]), len(changed) - len(predicted))


def _seconds(calibration: Fitted, changed: Changed) -> float | None:
    """Returns the predicted time of a changed kernel; None where there is none."""
    with suppress(PerfmodelError):
        return float(predict(calibration, changed.kernel, {}).seconds)
    return None


def _saving(then: float, seconds: float) -> float:
    return 1 - then / seconds if seconds else 0.0


Known = Callable[[str], Floats]
"""Gives the values of a feature, by its name."""


def _halved(values: Floats, _: Known) -> Floats:
    return np.asarray(values / 2)


def _none(values: Floats, _: Known) -> Floats:
    return np.asarray(values * 0)


def _without_conflicts(values: Floats, known: Known) -> Floats:
    """Returns passes over local memory's banks as they are where each access of a sub-group takes one."""
    return np.asarray(np.minimum(values, known("f_mem_access_local_granularity:subgroup")))


def _doubled(values: Floats, known: Known) -> Floats:
    """Returns twice the work-items or work-groups, where each waits for loads more than once, so that two can share."""
    if float(known("f_mem_rounds_global_granularity:longest")) < 2 * float(known("f_work_items")):
        raise KernelError("a work-item does next to nothing that two could share")
    return np.asarray(values * 2)


IMAGINED: tuple[tuple[str, tuple[str, ...], Callable[[Floats, Known], Floats]], ...] = (
    (
        "half the transactions of global memory (neighbours that access neighbours)",
        ("f_mem_transactions_global", "f_mem_scattered_global"),
        _halved,
    ),
    ("half the bytes that miss the caches (larger tiles, smaller types)", ("f_mem_missed",), _halved),
    ("local memory without bank conflicts", ("f_mem_transactions_local",), _without_conflicts),
    (
        "half the accesses to local memory (more in registers)",
        ("f_mem_access_local", "f_mem_transactions_local"),
        _halved,
    ),
    ("half the waits for loads (independent loads side by side)", ("f_mem_rounds_global",), _halved),
    ("twice the work-items, each with half of the work", ("f_work_items", "f_thread_groups"), _doubled),
    ("half the arithmetic", ("f_op_",), _halved),
    ("no branches that part sub-groups", ("f_branch_divergent",), _none),
    ("no barriers", ("f_sync_barrier",), _none),
    ("no contention of atomic operations", ("f_mem_contended",), _none),
)
"""Changes that are only thought of: their words, the features that they change by how their names begin, and how."""


def _imagined(calibration: Fitted, kernel: Kernel, seconds: float) -> Iterator[Change]:
    """Yields what the time would be if some of what the kernel does were less."""
    counted = counted_form(calibration, kernel, {})
    features = evaluate_all(calibration.model.features, counted, counted.bind({}))
    compiled = calibration.model.string.compile()

    def known(name: str) -> Floats:
        if name in features:
            return features[name]
        return evaluate_all({name: feature(name)}, counted, counted.bind({}))[name]

    for words, beginnings, changed in IMAGINED:
        chosen = {name: values for name, values in features.items() if name.startswith(beginnings)}
        if not any(np.any(values) for values in chosen.values()):
            continue
        try:
            less = {name: changed(values, known) for name, values in chosen.items()}
        except PerfmodelError:
            continue
        then = float(compiled(calibration.parameters, {**features, **less}))
        yield Change(words, then, _saving(then, seconds))
