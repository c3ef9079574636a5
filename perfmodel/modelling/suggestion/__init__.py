"""Suggests a model string: a search of the feature vocabulary that is judged by kernels that no fit has seen.

First come sums of non-negative terms, by floating forward selection; then terms for overlaps, by the same search with
a smooth maximum of memory's and the chip's own time; in the end `perfmodel.modelling.fitting` fits both in all their
forms. Whatever is compared is the error on whole families of kernels that were left out of the fit.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from perfmodel.basics.brief import brief, number_of
from perfmodel.basics.errors import FeatureError, FitError, PerfmodelError
from perfmodel.kernels.kernel import Kernel, as_kernels
from perfmodel.modelling.calibration import Calibration, Model
from perfmodel.modelling.fitting import FitWarning
from perfmodel.modelling.rows import Row
from perfmodel.modelling.suggestion.candidates import columns, distinct, offered
from perfmodel.modelling.suggestion.forms import Form, cross_validated_forms, resource
from perfmodel.modelling.suggestion.search import MEMORY, ON_CHIP, Array, Found, Search, folds, penalty, typical_error

if TYPE_CHECKING:
    import pandas as pd


__all__ = ["Step", "Suggestion", "suggest"]

OUTPUT = "f_cl_wall_time"
TERMS = 12
FEWEST_ROWS, FEWEST_GROUPS = 10, 4
# Held out at a time: each group in the search of sums, several together where a fit takes longer.
SUM_FOLDS, OVERLAP_FOLDS, FORM_FOLDS = 40, 10, 6
SHARPNESS = 4.0
"""The exponent with which overlapped terms are chosen; that of the model is fitted."""


@dataclass(frozen=True)
class BestSum:
    """The best sum of so many terms.

    Attributes:
        added, removed: the features by which it differs from that of one term less.
        error: see `perfmodel.modelling.suggestion.search.typical_error`; `ratios`: predicted / measured; both of
            held-out rows.
    """

    terms: tuple[str, ...]
    added: tuple[str, ...]
    removed: tuple[str, ...]
    error: float
    ratios: Any


@dataclass(frozen=True)
class Suggestion:
    """Holds what a search found.

    Attributes:
        model: the suggested one; `calibration`: fitted to all kernels.
        path: the best sums, from one term on.
        forms: what the last comparison was between; `chosen`: its winner.
        candidates: names of the features that were searched.
        groups: what was held out: the family or variant of each kernel that took part.
        evaluation: kernels that took no part, predicted at the end.
    """

    model: Model
    calibration: Calibration
    path: tuple[BestSum, ...]
    forms: tuple[Form, ...]
    chosen: Form
    candidates: tuple[str, ...]
    groups: tuple[str, ...]
    evaluation: tuple[Row, ...]

    @property
    def error_by_group(self) -> dict[str, float]:
        """The chosen form's typical error on each group while that was held out."""
        groups = np.array(self.groups)
        return {g: typical_error(self.chosen.ratios[groups == g]) for g in dict.fromkeys(self.groups)}

    def __repr__(self) -> str:
        searched = f"of {number_of(len(self.candidates), 'feature')} searched"
        return brief(self, f"typical error {self.chosen.error:.1%}", searched, repr(self.model))


Times = Sequence[float]


def suggest(
    kernels: Sequence[Kernel],
    times: Times | pd.DataFrame,
    *,
    evaluation: tuple[Sequence[Kernel], Times | pd.DataFrame] | None = None,
    terms: int = TERMS,
    tell: Callable[[str], None] = lambda message: None,
) -> Suggestion:
    """Searches the vocabulary for a model of the kernels' times.

    Args:
        times: of each kernel: seconds, or rows as `perfmodel.measure` returns them; those with flags are left out.
        evaluation: other kernels and their times; predicted at the end, and seen by no fit and no choice.
        terms: how many the model may have at most.
        tell: is given a line before each step.

    Raises:
        FitError: if the kernels are too few or too much alike to be held out in turns.
        PerfmodelError: if an evaluation kernel is among the others.
    """
    kernels = as_kernels(kernels)
    checks, check_times = _checks(kernels, evaluation)
    check_terms(terms)
    everything = _table(kernels, times)
    taking_part = _used(everything)
    used = [kernel for kernel, takes_part in zip(kernels, taking_part, strict=True) if takes_part]
    measured = everything[OUTPUT].to_numpy(dtype=np.float64)[taking_part]
    groups = _groups(used, len(kernels) - len(used))

    tell(f"counting {len(used)} kernels")
    features = offered(used)
    found = distinct(columns(used, features), measured, groups)
    names = list(found)
    path, choices = _searched(found, [resource(n, features[n]) for n in names], measured, groups, terms, tell)
    tell("comparing sums and overlaps")
    named = {chosen_for: [names[c] for c in choice.terms] for chosen_for, choice in choices.items()}
    forms = cross_validated_forms(
        named, features, found, measured, folds(groups, FORM_FOLDS), penalty(len(found), len(used))
    )
    chosen = min(forms, key=lambda form: form.penalized)
    model = Model(OUTPUT, chosen.string)
    calibration = model.fit(everything.assign(**columns(kernels, model.features)))
    return Suggestion(
        model=model,
        calibration=calibration,
        path=tuple(_steps(path, names)),
        forms=tuple(forms),
        chosen=chosen,
        candidates=tuple(names),
        groups=tuple(groups),
        evaluation=tuple(
            _evaluated(calibration, kernel, time) for kernel, time in zip(checks, check_times, strict=True)
        ),
    )


def check_terms(terms: int) -> None:
    """Raises FitError for a number of terms that no model has."""
    if terms < 1:
        raise FitError(f"a model of {terms} terms is none; let it have at least one")


def _checks(
    kernels: Sequence[Kernel], evaluation: tuple[Sequence[Kernel], Times | pd.DataFrame] | None
) -> tuple[Sequence[Kernel], list[float]]:
    if evaluation is None:
        return (), []
    checks = as_kernels(evaluation[0])
    if both := set(kernels) & set(checks):
        raise PerfmodelError(
            f"the model would be judged on {min(map(repr, both))}, which it is fitted to; take it out of one of the two"
        )
    return checks, [float(time) for time in _table(checks, evaluation[1])[OUTPUT]]


def _table(kernels: Sequence[Kernel], times: Times | pd.DataFrame) -> pd.DataFrame:
    import pandas as pd  # slow to import

    if len(times) != len(kernels):
        raise FitError(f"there are {len(kernels)} kernels and {len(times)} times; give one for each")
    if isinstance(times, pd.DataFrame):
        if OUTPUT not in times.columns:
            raise FitError(f"the table has no column {OUTPUT!r}; measure the kernels")
        return times
    return pd.DataFrame(
        {
            "kernel": [kernel.name for kernel in kernels],
            "variant": [kernel.variant for kernel in kernels],
            "sizes": [kernel.sizes for kernel in kernels],
            OUTPUT: list(times),
        },
        index=[kernel.label for kernel in kernels],
    )


def _used(table: pd.DataFrame) -> Any:
    """Returns a mask of the rows that a fit lets take part, shape (N,)."""
    if not len(table):
        raise FitError("there is no kernel to learn from; give kernels and their times")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        rows = Model(OUTPUT, "p_time").fit(table).rows
    return np.array([row.predicted_s is not None for row in rows])


def _groups(kernels: Sequence[Kernel], left_out: int) -> list[str]:
    """Returns the group of each kernel, by which kernels are held out: families, or where there are few, their
    variants.

    Args:
        left_out: how many kernels beside these have doubtful times.
    """
    families = [kernel.name for kernel in kernels]
    groups = families
    if len(set(families)) < FEWEST_GROUPS:
        groups = [f"{kernel.name} {kernel.variant}".rstrip() for kernel in kernels]
    if len(kernels) < FEWEST_ROWS or len(set(groups)) < FEWEST_GROUPS:
        of = f"family {families[0]!r} only" if len(set(families)) == 1 else f"{len(set(families))} families"
        beside = f", beside {left_out} whose times are flagged," if left_out else ""
        raise FitError(
            f"{len(kernels)} kernels of {of} in {len(set(groups))} variants{beside} cannot show which terms hold for "
            f"others; give at least {FEWEST_ROWS}, of at least {FEWEST_GROUPS} families or variants"
        )
    return groups


def _searched(
    found: Mapping[str, Array],
    resources: Sequence[int],
    measured: Array,
    groups: Sequence[str],
    terms: int,
    tell: Callable[[str], None],
) -> tuple[list[Found], dict[str, Found]]:
    """Returns the best sums of each number of terms; and the best terms for a ``sum`` and, if any can, for an
    ``overlap``."""
    path: list[Found] = []
    most = min(terms, len(measured) // 3)
    if found:
        tell(f"searching {len(found)} features for a sum of terms")
        relative = np.stack([column / measured for column in found.values()], axis=1)
        path = Search(relative, resources, folds(groups, SUM_FOLDS)).path(most)
    if not path:
        raise FitError("no feature is defined for all of these kernels and above zero for several groups; give others")
    choices = {"sum": _best(path)}
    if {MEMORY, ON_CHIP} <= set(resources):
        tell("searching for terms that overlap")
        overlapped = Search(relative, resources, folds(groups, OVERLAP_FOLDS), SHARPNESS)
        choices["overlap"] = _best(overlapped.path(most, [sums.terms for sums in path]))
    return path, choices


def _best(path: Sequence[Found]) -> Found:
    return min(path, key=lambda found: found.penalized)


def _steps(path: Sequence[Found], names: Sequence[str]) -> list[BestSum]:
    steps: list[BestSum] = []
    for found in path:
        terms = tuple(names[c] for c in found.terms)
        before = steps[-1].terms if steps else ()
        added = tuple(term for term in terms if term not in before)
        steps.append(
            BestSum(
                terms=terms,
                added=added,
                removed=tuple(t for t in before if t not in terms),
                error=found.error,
                ratios=found.ratios,
            )
        )
    return steps


def _evaluated(calibration: Calibration, kernel: Kernel, time: float) -> Row:
    row = Row(
        kernel=kernel.name,
        variant=kernel.variant,
        sizes=kernel.sizes,
        measured_s=time if np.isfinite(time) else None,
        predicted_s=None,
        label=kernel.label,
    )
    try:
        return replace(row, predicted_s=float(calibration.predict(kernel)))
    except FeatureError:
        return row
