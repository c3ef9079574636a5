"""The feature table: what kernels do, beside how long they take."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from typing import TYPE_CHECKING

from perfmodel.basics.brief import number_of
from perfmodel.basics.errors import MeasurementError, PerfmodelWarning
from perfmodel.device import Device
from perfmodel.kernels.kernel import Kernel, as_kernels
from perfmodel.kernels.program import runtime_of
from perfmodel.kernels.telling_apart import variants
from perfmodel.measuring.campaign import Campaign, DeviceResult, ProcessLimits, Result, check_budget, protocol_called
from perfmodel.measuring.protocol import Protocol
from perfmodel.measuring.store import Store, looked_into
from perfmodel.modelling.by_programs import of_programs
from perfmodel.modelling.calibration import Model
from perfmodel.vocabulary.named_features import Feature, MeasuredFeature, evaluate_all, number

if TYPE_CHECKING:
    import pandas as pd


class MeasurementWarning(PerfmodelWarning):
    """Warns of a kernel that could not be measured; its row has no time, and its flags say so."""


def measure(
    kernels: Kernel | Iterable[Kernel],
    model: Model | Iterable[Model],
    *,
    device: Device | str | None = None,
    store: Store | str | os.PathLike[str] | None = None,
    protocol: Protocol | str = "unified",
    progress: bool | None = None,
    budget_s: float | None = None,
    limits: ProcessLimits | None = None,
    retry: bool = False,
) -> pd.DataFrame:
    """Measures kernels, and returns their feature table: one row a kernel, one column a feature.

    Args:
        model: whose features are wanted; several models share one output feature and the measurements.
        device: a device, its key, or part of its name; the best device found if left out. One that is not on this
            machine, but that the store has times of, gives those.
        store: where times are kept; what it already holds is not measured again. None keeps nothing.
        protocol: how often a kernel runs and what its time is: a name of `PROTOCOLS`, or your own.
        progress: whether to show a progress bar; by default on a terminal, for what lasts over two seconds.
        budget_s: no further kernel is measured once measuring took so many seconds; at least one is, unless this is 0.
            The kernels' families then alternate, so that what is reached is a part of each. What the store holds
            costs nothing: calling again goes on.
        limits: time and memory that one measurement may take; each runs in a process of its own, which is replaced
            when it breaks them or crashes.
        retry: whether to measure again what failed before, and what was disturbed or noisy.

    Returns:
        Columns ``kernel``, ``variant``, ``sizes``, the output feature, every input feature (of each model in the form
        of kernels that the model counts, see `Model.columns`), ``flags`` and ``key`` (of the store); the index is a
        label for each row, ``attrs`` hold the device's fingerprint and the protocol.
        A kernel that can't be measured has the time NaN and the flag ``failed: reason``, one that the budget didn't
        reach NaN and `NOT_REACHED`, one that neither the store nor this machine has a time of NaN and `NOT_HERE`, one
        that was left when the device's driver had failed again and again NaN and `STOPPED`.

    Raises:
        FeatureError, CountingError: for a feature that a kernel can't give; nothing is measured then.
        DeviceError, StoreError: as their names say.
        MeasurementError: if there is no kernel, or none could be measured, or the budget is negative.
    """
    import pandas as pd  # slow to import

    kernels, models = as_kernels(kernels), _models(model)
    if not kernels:
        raise MeasurementError("there is no kernel to measure; the tags or the list are empty")
    check_budget(budget_s)
    chosen = protocol_called(protocol)
    output, output_name = models[0].output, models[0].output_name
    columns = feature_columns(kernels, models, progress=progress)
    results: Sequence[Result]
    if isinstance(output, MeasuredFeature):
        with looked_into(store) as known:  # before a file is made
            target: Device = output.select_device(device, known.devices(), runtime_of(k.program for k in kernels))
        with nullcontext(store) if isinstance(store, Store) else Store(store) as opened:
            campaign = Campaign(kernels, [target], protocol=chosen, store=opened, limits=limits, retry=retry)
            results = _measured(campaign, progress, budget_s).results
        attrs = {"device": target.fingerprint(), "protocol": asdict(chosen), "output": output_name}
    else:
        results = [Result(number(output, kernel), (), "") for kernel in kernels]
        attrs = {"device": {}, "protocol": {}, "output": output_name}
    table = pd.DataFrame(
        {
            "kernel": [k.name for k in kernels],
            "variant": variants(kernels),
            "sizes": [k.sizes for k in kernels],
            output_name: [result.seconds for result in results],
            **columns,
            "flags": [result.flags for result in results],
            "key": [result.key for result in results],
        },
        index=[k.label for k in kernels],
    )
    table.attrs.update(attrs)
    return table


def feature_columns(
    kernels: Sequence[Kernel], models: Iterable[Model], progress: bool | None = False
) -> dict[str, list[float]]:
    """Returns the input features of all models by column, a number a kernel; each model's of the form that it counts.

    Kernels of many programs are counted in several processes.

    Args:
        progress: as for `measure`.
    """
    wanted: dict[bool, dict[str, Feature]] = {}
    counted: dict[bool, Model] = {}
    for model in models:
        columns = {model.columns[name]: found for name, found in model.features.items()}
        wanted.setdefault(model.is_of_compiled, {}).update(columns)
        counted[model.is_of_compiled] = model

    def values(kernel: Kernel) -> list[float]:
        found: list[float] = []
        for form, features in wanted.items():
            evaluated = evaluate_all(features, counted[form].counted(kernel), kernel.bind({}))
            found += [float(evaluated[column]) for column in features]
        return found

    rows = of_programs(values, kernels, "counting", progress)
    names = [column for features in wanted.values() for column in features]
    return {name: [row[place] for row in rows] for place, name in enumerate(names)}


def _models(model: Model | Iterable[Model]) -> list[Model]:
    models = [model] if isinstance(model, Model) else [] if isinstance(model, str) else list(model)
    if not models or not all(isinstance(m, Model) for m in models):
        raise MeasurementError("measure needs a Model, or several; it says which features are wanted")
    outputs = sorted({m.output_name for m in models})
    if len(outputs) > 1:
        raise MeasurementError(f"models measured together have one output feature, not {', '.join(outputs)}")
    return models


def _measured(campaign: Campaign, progress: bool | None, budget_s: float | None) -> DeviceResult:
    """Returns the results of the kernels on the campaign's only device; warns of each failure."""
    (found,) = campaign.run(progress=progress, budget_s=budget_s).devices
    for label, reason in found.failures.items():
        warnings.warn(f"{label} was not measured: {reason}", MeasurementWarning, stacklevel=3)
    if found.stopped:
        warnings.warn(
            f"{number_of(found.unmeasured, 'kernel')} {'was' if found.unmeasured == 1 else 'were'} not measured: "
            f"{found.stopped}",
            MeasurementWarning,
            stacklevel=3,
        )
    if not any(result.seconds > 0 for result in found.results):
        why = found.stopped or f"the first one {found.results[0].flags[0]}"
        raise MeasurementError(f"no kernel could be measured; {why}")
    return found
