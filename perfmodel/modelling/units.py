"""Tells the unit of each parameter of a model whose value is in seconds, for reports."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from perfmodel.expression import ModelString
from perfmodel.expression.tree import Binary, Call, FeatureName, Negation, Node, Number, Parameter
from perfmodel.vocabulary.named_features import Feature


def parameter_units(model: ModelString, features: Mapping[str, Feature]) -> dict[str, str]:
    """Returns ``s/operation``, ``1/s`` and the like by parameter; an empty text where there is no unit or none can be
    told."""
    units: dict[str, str] = {}
    pending: list[tuple[Node, str]] = [(model.value, "s")]
    seen: set[tuple[Node, str]] = set()
    while pending:
        node, unit = pending.pop()
        if (node, unit) in seen:
            continue
        seen.add((node, unit))
        match node:
            case Parameter(name):
                units.setdefault(name, unit)
            case Binary(operator, left, right) if operator in "+-":
                pending += [(left, unit), (right, unit)]
            case Binary("*", left, right):
                pending += _factor(left, right, unit, features) + _factor(right, left, unit, features)
            case Binary("/", left, right):
                below, above = _counted(right, features), _counted(left, features)
                pending.append((left, unit if below == "" else f"{unit}*{below}" if unit and below else ""))
                pending.append((right, f"{above}/{unit}" if unit and above else ""))
            case Negation(operand):
                pending.append((operand, unit))
            case Call(function, arguments):
                pending += _ARGUMENT_UNITS.get(function, _unknown)(arguments, unit)
    return {name: units.get(name, "") for name in model.parameters}


def _factor(factor: Node, other: Node, unit: str, features: Mapping[str, Feature]) -> list[tuple[Node, str]]:
    """Returns a factor's unit, the product's divided by the other factor's, which is known where that holds features
    only."""
    if isinstance(factor, FeatureName):
        return []
    counted = _counted(other, features)
    if counted is None:
        return [(factor, "")]
    return [(factor, f"{unit}/{counted}" if unit and counted else unit)]


def _counted(node: Node, features: Mapping[str, Feature]) -> str | None:
    """Returns the unit of an expression in features: empty for plain numbers, None where no one unit can be told."""
    match node:
        case Number():
            return ""
        case FeatureName(name):
            return str(getattr(features.get(name), "unit", name))
        case Negation(operand):
            return _counted(operand, features)
        case Binary("+" | "-", left, right):
            return _common([left, right], features)
        case Binary("*", left, right):
            units = [_counted(left, features), _counted(right, features)]
            return None if None in units or all(units) else units[0] or units[1]
        case Binary("/", left, right):
            above, below = _counted(left, features), _counted(right, features)
            return above if below == "" else "" if above == below is not None else None
        case Call("ceil" | "floor" | "abs" | "min" | "max", arguments):
            return _common(arguments, features)
        case Call("group_utilization" | "step", _):
            return ""
        case _:
            return None


def _common(nodes: Iterable[Node], features: Mapping[str, Feature]) -> str | None:
    units = {_counted(node, features) for node in nodes} - {""}
    return None if None in units or len(units) > 1 else next(iter(units), "")


_Children = list[tuple[Node, str]]


def _like_the_result(arguments: tuple[Node, ...], unit: str) -> _Children:
    return [(argument, unit) for argument in arguments]


def _smooth_max(arguments: tuple[Node, ...], unit: str) -> _Children:
    a, b, edge = arguments
    return [(a, unit), (b, unit), (edge, f"1/{unit}" if unit else "")]


def _overlap(arguments: tuple[Node, ...], unit: str) -> _Children:
    return [*((argument, unit) for argument in arguments[:-1]), (arguments[-1], "")]


def _unknown(arguments: tuple[Node, ...], unit: str) -> _Children:
    return [(argument, "") for argument in arguments]


_ARGUMENT_UNITS: dict[str, Callable[[tuple[Node, ...], str], _Children]] = {
    "min": _like_the_result,
    "max": _like_the_result,
    "abs": _like_the_result,
    "smooth_max": _smooth_max,
    "overlap": _overlap,
}
