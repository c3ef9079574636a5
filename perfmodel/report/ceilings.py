"""Finds the ceilings of a roofline among a calibration's own parameters: bytes and FLOP a second, a multiply-add being
two."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from perfmodel.expression.tree import Binary, FeatureName, Node, Parameter, walk
from perfmodel.modelling.calibration import Calibration

MOST = 3
"""So many ceilings of one kind are drawn, the highest ones."""

_WIDTH = re.compile(r"_(?:float|u?int|bits:)(\d+)(?=_|$)")


@dataclass(frozen=True)
class Ceiling:
    """A rate a second, of bytes or of FLOP, that a parameter is the reciprocal of."""

    parameter: str
    rate: float


def ceilings(calibration: Calibration) -> tuple[list[Ceiling], list[Ceiling]]:
    """Returns bandwidths of global memory and rates of operations, highest first; empty where no parameter is one.

    A cost of accesses gives a bandwidth where all that it prices are accesses of one width.
    """
    bandwidths, rates = [], []
    for parameter, features in _priced(calibration.model.string.value).items():
        value, unit = calibration.parameters[parameter], calibration.units[parameter]
        if value <= 0:
            continue
        is_global = all("_global" in name for name in features)
        if unit == "s/operation" and _flops(features):
            rates.append(Ceiling(parameter, _flops(features) / value))
        elif unit == "s/byte" and is_global:
            bandwidths.append(Ceiling(parameter, 1 / value))
        elif unit == "s/access" and is_global and (width := _width(features)):
            bandwidths.append(Ceiling(parameter, width / value))
    return _highest(bandwidths), _highest(rates)


def flops(operation: str) -> int:
    """Returns the floating-point operations of one operation by its name: two for ``float32_madd``, none for others."""
    words = re.split(r"[ _]", operation)
    return (2 if "madd" in words else 1) if words[0].startswith("float") else 0


def _priced(root: Node) -> dict[str, set[str]]:
    """Returns the features that each parameter is a factor of."""
    found: dict[str, set[str]] = {}
    for node in walk(root):
        match node:
            case Binary("*", Parameter(name), other) | Binary("*", other, Parameter(name)):
                found.setdefault(name, set()).update(n.name for n in walk(other) if isinstance(n, FeatureName))
    return {name: features for name, features in found.items() if features}


def _width(features: Iterable[str]) -> float | None:
    """Returns the bytes of one access, where all features are of the same; else None."""
    widths = {int(match[1]) if (match := _WIDTH.search(name)) else None for name in features}
    (only,) = widths if len(widths) == 1 else (None,)
    return only / 8 if only else None


def _flops(features: Iterable[str]) -> int:
    """Returns the floating-point operations of each of some features' operations, the least; 0 for other features."""
    return min(flops(name.removeprefix("f_op_")) if name.startswith("f_op_") else 0 for name in features)


def _highest(found: Iterable[Ceiling]) -> list[Ceiling]:
    return sorted(found, key=lambda ceiling: -ceiling.rate)[:MOST]
