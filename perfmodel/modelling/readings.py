"""Reads fitted parameters in units that people know, beside what a device has, as their model's meanings say."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from perfmodel.expression import compile_nodes
from perfmodel.modelling.fitted import Fitted
from perfmodel.modelling.meaning import Meaning, filled, parsed, place_of

CLOSE = 0.05
"""A value that is no further from a range than this is taken to be in it: clocks and microbenchmarks vary so much."""


@dataclass(frozen=True)
class Reading:
    """One parameter of a calibration for people.

    Attributes:
        words: what it stands for; empty where the model does not say, as are the other texts.
        value: its value with a unit, and its standard error; ``undetermined`` where the measurements don't tell.
        physical: the range of what the device has, in that unit.
        off: the value by the nearest end of that range: 1 within it, NaN where none is known.
        source: who gives that range.
        lacks: which mechanism the model, or its measurements, have not; empty where the value may be physical.
    """

    parameter: str
    words: str = ""
    value: str = ""
    physical: str = ""
    off: float = math.nan
    source: str = ""
    lacks: str = ""


def readings(calibration: Fitted) -> list[Reading]:
    """Returns a reading of each parameter of a calibration, in the model's order."""
    meanings = calibration.model.meanings
    return [
        _reading(calibration, name, meanings[name]) if name in meanings else Reading(name)
        for name in calibration.parameters
    ]


def _reading(calibration: Fitted, name: str, meaning: Meaning) -> Reading:
    mark, fitted = calibration.marks.get(name, ""), calibration.parameters[name]
    if "undetermined" in mark or not meaning.reads:
        return Reading(parameter=name, words=meaning.words, value="undetermined" if mark else "", lacks=meaning.lacks)
    if not fitted:
        return Reading(parameter=name, words=meaning.words, value=f"nothing {mark}".rstrip(), lacks=meaning.lacks)
    error = calibration.stderr[name] / fitted
    ((template, expression),) = meaning.reads.items()
    node = parsed(name, expression, calibration.model.string).value
    with np.errstate(all="ignore"):
        value = float(compile_nodes([node])(calibration.parameters, {})[0])
    sure = f" ± {100 * abs(error):.2g} %" if math.isfinite(error) else f" {mark}".rstrip()
    text = filled(template, value) + sure
    known = meaning.physical_on(calibration.device)
    if known is None:
        return Reading(parameter=name, words=meaning.words, value=text)
    physical = filled(template, known.high)
    if known.low < known.high:
        low = f"{filled(place_of(template), known.low).strip()} to" if known.low else "up to"
        physical = f"{low} {physical}"
    nearest = min(max(value, known.low), known.high)
    off = value / nearest if nearest else math.nan
    return Reading(
        parameter=name,
        words=meaning.words,
        value=text,
        physical=physical,
        off=off,
        source=known.source,
        lacks="" if abs(off - 1) <= CLOSE else meaning.lacks,
    )
