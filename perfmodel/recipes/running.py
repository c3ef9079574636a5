"""Runs a recipe on one device: both sets measured in one campaign, models fitted to one and judged by the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from perfmodel.basics.brief import number_of
from perfmodel.basics.errors import FitError, KernelError, PerfmodelError
from perfmodel.basics.progress import showing
from perfmodel.collection.collection import ALL_GENERATORS, KernelCollection
from perfmodel.device import Device
from perfmodel.kernels.kernel import Kernel
from perfmodel.kernels.remembered_program import remembering
from perfmodel.measuring.campaign import NOT_REACHED, STOPPED, UNMEASURED, check_budget
from perfmodel.measuring.store import Store
from perfmodel.modelling.baselines import fit_baselines
from perfmodel.modelling.by_programs import of_programs
from perfmodel.modelling.calibration import Calibration, Model
from perfmodel.modelling.feature_table import feature_columns, measure
from perfmodel.modelling.predictor import CalibratedModel, Predictor
from perfmodel.modelling.rows import CALIBRATION, EVALUATION, Row
from perfmodel.modelling.summary import summarize
from perfmodel.recipes.outcome import Cost, Outcome
from perfmodel.recipes.recipe import Recipe, TagFilter
from perfmodel.vocabulary.named_features import Feature, MeasuredFeature, feature

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class _Set:
    """Kernels of one role with their measurements, a row of the table each."""

    role: str
    kernels: list[Kernel]
    table: pd.DataFrame


@dataclass(frozen=True)
class _Case:
    """A recipe on one device, with what its models say there.

    Attributes:
        conditions: device, store and protocol, as `measure` takes them.
        target: the device; None where the output is no time of a device.
        notes: what whoever reads the results must know.
        steps: seconds that each step took.
    """

    recipe: Recipe
    models: dict[str, Model]
    conditions: dict[str, Any]
    target: Device | None
    tell: Callable[[str], None]
    notes: list[str]
    steps: dict[str, float]

    @classmethod
    def of(
        cls,
        chosen: Recipe,
        device: Device | str | None,
        store: Store,
        protocol: str | None,
        tell: Callable[[str], None],
    ) -> _Case:
        notes: list[str] = []
        output = feature(chosen.output)
        found = output.select_device(device, store.devices()) if isinstance(output, MeasuredFeature) else device
        target = found if isinstance(found, Device) else None
        models = {
            name: Model(chosen.output, expression, meanings=chosen.meanings.get(name))
            for name, expression in chosen.models_on(target, notes).items()
        }
        conditions = {"device": found, "store": store, "protocol": protocol or chosen.protocol}
        return cls(chosen, models, conditions, target, tell, notes, {})

    def kernels(self, roles: Sequence[str]) -> dict[str, list[Kernel]]:
        self.tell("choosing sizes for this device, and making the kernels' code")
        with _timed(self.steps, "choosing sizes"):
            return kernels_of(self.recipe, self.models.values(), self.conditions, self.notes, roles)

    def measured(self, kernels: Mapping[str, list[Kernel]], budget_s: float | None) -> dict[str, _Set]:
        with _timed(self.steps, "measuring"):
            return _measured(kernels, self.models.values(), self.conditions, budget_s, self.notes)

    def calibrations(self, fitted: _Set) -> dict[str, Calibration]:
        options = {name: self.recipe.fit_options(name, self.target) for name in self.models}
        return _calibrations(self.recipe, self.models, options, fitted, self.notes)


def calibrate(
    chosen: Recipe,
    *,
    device: Device | str | None = None,
    store: Store,
    protocol: str | None = None,
    budget_s: float | None = None,
    tell: Callable[[str], None] = lambda message: None,
) -> tuple[dict[str, Calibration], tuple[str, ...]]:
    """Returns the calibrations of a recipe's models, by name, and notes on them; nothing is judged.

    Args:
        store, budget_s, tell: as for `run`; the evaluation set is neither made nor measured.

    Raises:
        PerfmodelError: if the measurement set is empty, and as `measure` and `Model.fit` do.
    """
    check_budget(budget_s)
    case = _Case.of(chosen, device, store, protocol, tell)
    kernels = case.kernels([CALIBRATION])
    tell(f"counting and measuring {len(kernels[CALIBRATION])} kernels to calibrate with")
    fitted = case.measured(kernels, budget_s)[CALIBRATION]
    tell(f"fitting {number_of(len(case.models), 'model')}")
    return case.calibrations(fitted), tuple(case.notes)


def run(
    chosen: Recipe,
    *,
    device: Device | str | None = None,
    store: Store,
    protocol: str | None = None,
    budget_s: float | None = None,
    command: str = "",
    tell: Callable[[str], None] = lambda message: None,
) -> Outcome:
    """Runs a recipe: measures both sets, calibrates with the one and predicts the other.

    Both sets are measured in one campaign, so that the same state of the device stands behind both; the fit is given
    the calibration set alone.

    Args:
        store: keeps every time; what it has is not measured again.
        budget_s: seconds for measuring new kernels of the two sets, see `measure`. Those that it doesn't reach take no
            part in anything; running again with the same store goes on with them.
        tell: is given a line before each step.

    Raises:
        PerfmodelError: if the evaluation set overlaps the measurement set, if one of them is empty, and as `measure`
            and `Model.fit` do.
    """
    check_budget(budget_s)
    case = _Case.of(chosen, device, store, protocol, tell)
    models, notes, steps = case.models, case.notes, case.steps
    as_written = [model for model in models.values() if not model.is_of_compiled]
    features = {name: f for model in as_written for name, f in model.features.items()}

    kernels = case.kernels([CALIBRATION, EVALUATION])
    tell(f"counting {len(kernels[EVALUATION])} kernels, kept from the fit, to check predictions with")
    with _timed(steps, "counting"):
        counting = of_programs(
            lambda kernel: _counting_seconds(kernel, models.values()), kernels[EVALUATION], "counting", None
        )
    tell(f"counting and measuring {len(kernels[CALIBRATION])} kernels to calibrate with, and measuring those others")
    sets = case.measured(kernels, budget_s)
    fitted, judged = sets[CALIBRATION], sets[EVALUATION]
    tell(f"fitting {number_of(len(models), 'model')}")
    with _timed(steps, "fitting"):
        calibrations = case.calibrations(fitted)
        baselines = _baselines(chosen, fitted, calibrations, features, notes) if chosen.baselines else []
    rows: list[Row] = []
    predicting: dict[str, float] = {}
    for predictor in (*(CalibratedModel(name, found) for name, found in calibrations.items()), *baselines):
        rows += _rows(chosen, predictor, fitted)
        with _timed(predicting, predictor.name):
            rows += _rows(chosen, predictor, judged)
    measuring = sum(sum(found.trials) for found in store.get_many(judged.table["key"]).values())
    counted = dict(zip(kernels[EVALUATION], counting, strict=True))
    return Outcome(
        recipe=chosen,
        command=command,
        device=fitted.table.attrs["device"],
        protocol=fitted.table.attrs["protocol"],
        calibrations=calibrations,
        rows=tuple(rows),
        summary=summarize(rows, list(predicting), ranked=chosen.ranked),
        baselines={baseline.name: baseline for baseline in baselines},
        notes=tuple(notes),
        cost=Cost(measuring, sum(counted[kernel] for kernel in judged.kernels), predicting) if measuring else None,
        steps=steps,
    )


@contextmanager
def _timed(steps: dict[str, float], step: str) -> Iterator[None]:
    started = time.perf_counter()
    yield
    steps[step] = time.perf_counter() - started


def kernels_of(
    chosen: Recipe,
    models: Iterable[Model],
    conditions: Mapping[str, Any],
    notes: list[str],
    roles: Sequence[str] = (CALIBRATION, EVALUATION),
) -> dict[str, list[Kernel]]:
    """Returns the sets of a recipe, by role, each kernel once; what can't run on the device at all is noted and left
    out.

    The kernels' code is made in several processes, and kept for later runs.

    Args:
        conditions: device, store and protocol, as `measure` takes them.
        roles: of the sets that are wanted.
    """
    collection = KernelCollection(ALL_GENERATORS)
    seconds_of = timer(collection, models, chosen.output, conditions)

    def generated(filters: Sequence[TagFilter]) -> list[Kernel]:
        kernels: list[Kernel] = []
        for tags in filters:
            try:
                kernels += _with_code(collection.generate_kernels(tags, conditions["device"]), notes)
            except KernelError as error:
                notes.append(f"the kernels of {' '.join(tags)} were left out: {error}")
        return list(dict.fromkeys(kernels))

    tags_of = {CALIBRATION: chosen.measurement_tags, EVALUATION: chosen.evaluation_tags}
    with remembering():
        filters = {role: tags_of[role](seconds_of) for role in roles}
        with showing("making code") as told:
            collection.make_programs(chain(*filters.values()), told)
        found = {role: generated(filters[role]) for role in roles}
    _check_sets(chosen, found, notes)
    return found


def timer(
    collection: KernelCollection, models: Iterable[Model], output: str, conditions: Mapping[str, Any]
) -> Callable[[TagFilter], float]:
    """Returns a function that times the first kernel of a filter, in seconds, as `Recipe.measurement_tags` takes it.

    Args:
        output: the feature that is the time.
        conditions: device, store and protocol, as `measure` takes them.
    """

    def seconds_of(tags: TagFilter) -> float:
        kernels = collection.generate_kernels(tags, conditions["device"])
        return float(measure(kernels, models, **conditions)[output].iloc[0])

    return seconds_of


def _with_code(kernels: Iterable[Kernel], notes: list[str]) -> list[Kernel]:
    """Returns the kernels that code can be made for, and notes why it can't for others."""
    found: list[Kernel] = []
    failed: dict[str, str] = {}
    for kernel in kernels:
        try:
            hash(kernel.program.content)
            found.append(kernel)
        except KernelError as error:
            failed.setdefault(str(error), kernel.label)
    new = {error: label for error, label in failed.items() if not any(note.endswith(error) for note in notes)}
    notes += [f"{label} and others of its program were left out: {error}" for error, label in new.items()]
    return found


def _check_sets(chosen: Recipe, kernels: Mapping[str, Sequence[Kernel]], notes: Sequence[str]) -> None:
    if both := set.intersection(*map(set, kernels.values())) if len(kernels) > 1 else set():
        raise PerfmodelError(
            f"recipe {chosen.name!r} would judge itself on {min(map(repr, both))}, which it is calibrated with; "
            "take it out of one of the two sets"
        )
    for role, found in kernels.items():
        if not found:
            raise PerfmodelError(
                f"recipe {chosen.name!r} has no {role} kernels for this device{_in_brackets(notes)}; choose another one"
            )


def _in_brackets(notes: Sequence[str]) -> str:
    return f" ({'; '.join(notes)})" if notes else ""


def _counting_seconds(kernel: Kernel, models: Iterable[Model]) -> float:
    started = time.perf_counter()
    feature_columns([kernel], models)
    return time.perf_counter() - started


def _measured(
    kernels: Mapping[str, list[Kernel]],
    models: Iterable[Model],
    conditions: Mapping[str, Any],
    budget_s: float | None,
    notes: list[str],
) -> dict[str, _Set]:
    """Returns the sets without the kernels that the budget didn't reach, or that only the store could have had."""
    everything = [(role, kernel) for role, found in kernels.items() for kernel in found]
    table = measure([kernel for _, kernel in everything], models, budget_s=budget_s, **conditions)
    reached = [not UNMEASURED & set(flags) for flags in table["flags"]]
    if missing := reached.count(False):
        flags = {flag for of_kernel in table["flags"] for flag in of_kernel}
        here, refusal = conditions["device"].key, conditions["store"].refusal
        why = (
            f"as the budget of {budget_s:g} s did not reach them; run again with the same store to go on"
            if NOT_REACHED in flags
            else f"as the store has no times of them on {here}, and {refusal}"
            if STOPPED in flags and refusal
            else f"as measuring on {here} was stopped; run again with the same store to go on"
            if STOPPED in flags
            else f"as the store has no times of them on {here}, which is not on this machine"
        )
        notes.append(f"{missing} of {len(reached)} kernels were left out, {why}")

    def part(role: str) -> _Set:
        chosen = [i for i, (of_role, _) in enumerate(everything) if of_role == role and reached[i]]
        return _Set(role, [everything[i][1] for i in chosen], table.iloc[chosen])

    return {role: part(role) for role in kernels}


def _calibrations(
    chosen: Recipe,
    models: Mapping[str, Model],
    options: Mapping[str, Mapping[str, Any]],
    fitted: _Set,
    notes: Sequence[str],
) -> dict[str, Calibration]:
    def table(model: str) -> pd.DataFrame:
        return fitted.table[[chosen.is_fitted_to(model, kernel) for kernel in fitted.kernels]]

    try:
        return {name: model.fit(table(name), **options[name]) for name, model in models.items()}
    except FitError as error:
        if not notes:
            raise
        raise FitError(f"{error}{_in_brackets(notes)}") from error


def _baselines(
    chosen: Recipe,
    fitted: _Set,
    calibrations: Mapping[str, Calibration],
    features: Mapping[str, Feature],
    notes: list[str],
) -> list[Predictor]:
    """Returns the baselines, given exactly the measurements that took part in the models' fits."""
    rows = next(iter(calibrations.values())).rows
    used = [i for i, row in enumerate(rows) if row.predicted_s is not None]
    times = fitted.table[chosen.output].to_numpy(dtype=np.float64)[used]
    found, missing = fit_baselines([fitted.kernels[i] for i in used], times.tolist(), features)
    notes += missing
    if taken := {baseline.name for baseline in found} & set(calibrations):
        raise PerfmodelError(f"recipe {chosen.name!r} has a model called {min(taken)!r}, as a baseline; rename it")
    return found


def _rows(chosen: Recipe, predictor: Predictor, part: _Set) -> list[Row]:
    rows = []
    estimates = predictor.predict(part.kernels)
    times = part.table[chosen.output].to_numpy(dtype=np.float64)
    for kernel, estimate, time_, flags in zip(part.kernels, estimates, times, part.table["flags"], strict=True):
        rows.append(
            Row(
                model=predictor.name,
                kernel=kernel.name,
                variant=kernel.variant,
                sizes=kernel.sizes,
                role=part.role,
                measured_s=float(time_) if np.isfinite(time_) else None,
                predicted_s=estimate.seconds,
                predicted_std_s=estimate.std,
                flags=tuple(flags),
                label=chosen.label(kernel) if part.role == EVALUATION else kernel.name,
                interval_68_s=estimate.interval_68,
                interval_90_s=estimate.interval_90,
            )
        )
    return rows
