"""Carries a calibration over to a device that was never measured, by the facts of both devices.

A parameter is the price of something that a device does at a rate, or after a latency, which its specification tells;
how near to that a device comes, it shares with others. So a price on another device is that of the calibrated one,
times the ratio of what it scales with (`Meaning.scales`). Numbers of the device in the model string, such as the lanes
of vectors and the sizes of caches (``${l1_bytes=32768}``), become the other device's.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import numpy as np

from perfmodel.basics.errors import CalibrationError, PerfmodelWarning, nearest
from perfmodel.device.cpuinfo import name_here
from perfmodel.device.facts import OWN, DeviceFacts, architectures, device_facts, facts_called, years_apart
from perfmodel.device.processor_here import facts_here
from perfmodel.expression import compile_nodes
from perfmodel.modelling.fitted import Fitted
from perfmodel.modelling.meaning import parsed

AnyFitted = TypeVar("AnyFitted", bound=Fitted)

OWN_SPREAD = 0.3
"""The standard deviation of the logarithm of a price that follows from facts of another architecture, by itself."""
GUESSED_SPREAD = 0.7
"""The same where one of these facts is a guess, as is what a launch takes."""
GUESSED_CLOCK = 0.15
"""The standard deviation that a guessed clock adds: those of a line of processors, such as EPYC, differ by so much."""
ALIKE_SPREAD = 0.1
"""The same within an architecture, whose devices differ by little but their numbers; and that of what all prices have
in common on any other device, such as a clock that it does not keep."""
YEARLY_SPREAD = 0.05
"""The standard deviation of what all prices have in common, for each year between the architectures: compilers, drivers
and all that no fact tells. The spreads were chosen by intervals on every second device of docs/devices.md."""
OTHER_MAKER = 0.5
"""The same on GPUs of another maker, which have other compilers and drivers too."""
HELD = "(fixed)"
"""The mark of a parameter that no fit chose."""


SPECIFICATION = "specification"
"""A calibration's description of its device has facts under this name, where the device's own does not tell them."""
LIMITS = {"max_work_group_size": "group_items", "local_memory": "group_local_bytes"}
"""Drivers' names of limits, and the facts of GPUs that are these; a processor's are its driver's."""


class CarriedOverWarning(PerfmodelWarning):
    """Warns of predictions for a device of which nothing was measured."""


BY_DRIVER = ("launch", "wake")
"""Facts of a processor that are rather its driver's; on the machine at hand that is the one that perfmodel brings."""


def carried_over(calibration: AnyFitted, device: DeviceFacts | str) -> AnyFitted:
    """Returns a calibration for another device; see `Calibration.on`."""
    there = device if isinstance(device, DeviceFacts) else device_facts(device)
    here = facts_of(calibration)
    if here is None:
        raise CalibrationError(
            f"nothing is known of the specification of {calibration.device.get('name') or 'no device'}, so that its "
            f"calibration can't be carried over; take one of a device that 'perfmodel devices --known' lists, or say "
            "what the device is by calibration.with_device(facts)"
        )
    if here.kind != there.kind:
        raise CalibrationError(
            f"a calibration of a {here.kind} says nothing of {there.name}; take one of a {there.kind}"
        )
    if there.kind == "cpu" and there.name == name_here():
        there = there.with_facts("guess", **{name: here[name] for name in BY_DRIVER})
    ratios = _ratios(calibration, here, there)
    model = calibration.model.on({name: fact.value for name, fact in there.facts.items()})
    if not ratios:
        raise CalibrationError(
            "the calibration's model does not say what its parameters scale with; give them meanings with scales, or "
            "take a calibration of model gpu or cpu"
        )
    parameters = {
        name: value * (ratios[name].value if name in ratios else 1.0) for name, value in calibration.parameters.items()
    }
    values = np.array(list(parameters.values()))
    own = np.array([ratios[name].spread if name in ratios else 0.0 for name in parameters])
    spread = np.diag(own**2) + _common_spread(here, there) ** 2 * np.outer(own > 0, own > 0)
    covariance = spread * np.outer(values, values)
    names = calibration.model.string.names_in(model.string)
    return replace(
        calibration,
        model=model,
        parameters=parameters,
        stderr=dict(zip(parameters, np.sqrt(np.diag(covariance)).tolist(), strict=True)),
        covariance=covariance,
        ranges={names[name]: found for name, found in calibration.ranges.items() if name in names},
        device={**_described(there), "carried_over_from": str(calibration.device.get("key", ""))},
        rows=(),
        undetermined=(),
        marks={name: HELD for name, ratio in ratios.items() if not ratio.spread},
        report=f"carried over from {here.name} to {there.name} by their specifications; nothing was measured there",
    )


def carried_here(calibration: AnyFitted) -> AnyFitted:
    """Returns a calibration for this machine's processor.

    It stays as it is where it is of that processor, where the system does not tell which one that is, and where nothing
    says how to carry the calibration over.
    """
    there, origin = facts_here(), facts_of(calibration)
    if there is None or origin is None or not any(each.scales for each in calibration.model.meanings.values()):
        return calibration
    if there.name == calibration.device["name"] and there.architecture == origin.architecture:
        return calibration
    return carried_over(calibration, there)


def facts_of(calibration: Fitted) -> DeviceFacts | None:
    """Returns the facts of the device that a calibration is of: those that it says, or those of its device's name;
    None if there are none."""
    if SPECIFICATION in calibration.device:
        return DeviceFacts.from_json(calibration.device[SPECIFICATION], "of a calibration")
    return facts_called(str(calibration.device.get("name", "")))


def warn_of(calibration: Fitted) -> None:
    """Warns that a calibration rests on a specification, not on measurements, if it does."""
    origin, name = calibration.device.get("carried_over_from"), calibration.device.get("name")
    if not origin:
        return
    facts = facts_of(calibration)
    if facts and facts.kind == "cpu" and name == name_here():
        warning = (
            f"carried over from {origin} to this machine's {name} ({_basis(facts)}); calibrate it by 'perfmodel "
            "calibrate --device cpu', in a minute or two, and give the calibration that it writes"
        )
    else:
        warning = (
            f"nothing was measured on {name}: times follow from its specification and the calibration of {origin}, and "
            "their intervals are wide"
        )
    warnings.warn(warning, CarriedOverWarning, stacklevel=3)


def _basis(facts: DeviceFacts) -> str:
    """Returns what a calibration for a processor at hand rests on."""
    known = architectures()[facts.architecture]
    if "subgroup" in facts.guessed():
        return f"unknown, taken for {known}"
    guessed = ", ".join(name for name in OWN if name in facts.guessed())
    return f"{known}, by its specification{'; guessed: ' if guessed else ''}{guessed}"


def _described(there: DeviceFacts) -> dict[str, Any]:
    """Returns a device as its driver would describe it."""
    limits = {name: int(there[fact]) for name, fact in LIMITS.items() if fact in there.facts}
    named = {"key": there.key, "name": there.name, "kind": there.kind, "compute_units": int(there["units"])}
    return {**named, **limits, SPECIFICATION: there.as_json()}


class _Ratio(NamedTuple):
    """A ratio of a parameter on two devices, and the standard deviation of its logarithm."""

    value: float
    spread: float


def _common_spread(here: DeviceFacts, there: DeviceFacts) -> float:
    """Returns the standard deviation of what the logarithms of all prices have in common."""
    is_other_maker = here.kind == "gpu" and here.vendor != there.vendor
    return math.hypot(ALIKE_SPREAD, YEARLY_SPREAD * years_apart(here, there), OTHER_MAKER if is_other_maker else 0.0)


def _own_spread(facts: Collection[str], is_fact: bool, here: DeviceFacts, there: DeviceFacts) -> float:
    """Returns the standard deviation of the logarithm of a price by itself that follows from these facts; 0 where a
    parameter is a fact."""
    guessed = {*here.guessed(), *there.guessed()}.intersection(facts)
    if here.architecture == there.architecture:
        guessed = {name for name in guessed if here.facts[name] != there.facts[name]}  # what both share cancels
    if guessed - {"clock"}:
        return GUESSED_SPREAD
    if is_fact:
        return 0.0
    spread = ALIKE_SPREAD if here.architecture == there.architecture else OWN_SPREAD
    return math.hypot(spread, GUESSED_CLOCK) if guessed else spread


def _ratios(calibration: Fitted, here: DeviceFacts, there: DeviceFacts) -> Mapping[str, _Ratio]:
    """Returns by how much each parameter that scales with facts is larger there than here."""
    found: dict[str, _Ratio] = {}
    known = [device.values() for device in (here, there)]
    for name, meaning in calibration.model.meanings.items():
        if not meaning.scales:
            continue
        expression = parsed(name, meaning.scales, calibration.model.string)
        if unknown := [each for each in expression.features if each not in known[0]]:
            raise CalibrationError(
                f"parameter {name!r} scales with {unknown[0]!r}, which is no fact of a {here.kind}"
                f"{nearest(unknown[0], known[0])}"
            )
        compiled = compile_nodes([expression.value])
        own, other = (float(compiled({}, facts)[0]) for facts in known)
        if not (math.isfinite(own) and math.isfinite(other) and own > 0 and other > 0):
            raise CalibrationError(f"parameter {name!r} scales with {meaning.scales!r}, which is not positive")
        facts = [each.removeprefix("f_device_") for each in expression.features]
        is_fact = meaning.scales == f"f_device_{facts[0]}" and calibration.marks.get(name) == HELD
        found[name] = _Ratio(other / own, _own_spread(facts, is_fact, here, there))
    return found
