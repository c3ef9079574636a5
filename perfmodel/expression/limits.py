"""The limits that keep a hostile model string from taking time or memory, and checks of constants and exponents.

Costs are known while the tree is built, so that a string is refused before it becomes expensive: the size as if every
shared term were written out is the sum of the children's sizes, and needs no expansion.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from perfmodel.basics.errors import ModelStringError
from perfmodel.expression.functions import LANGUAGE
from perfmodel.expression.tape import compile_nodes
from perfmodel.expression.text import to_text
from perfmodel.expression.tree import Binary, Call, FeatureName, Node, Parameter

MAX_NODES = 5_000
MAX_EXPANDED = 100_000
MAX_NESTING = 64
MAX_EXPONENT = 64.0


@dataclass(frozen=True, slots=True)
class Facts:
    """Holds what a node's children tell about it; `size` counts the nodes with shared terms written out."""

    position: int
    size: int
    has_parameter: bool
    has_feature: bool

    @property
    def constant(self) -> bool:
        return not (self.has_parameter or self.has_feature)


class Ledger:
    """The nodes of one model string with their facts, children before parents."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.facts: dict[Node, Facts] = {}

    def enter(self, node: Node, position: int) -> Node:
        """Enters a new node with what its children tell of it.

        Raises:
            ModelStringError: the model string has become too large.
        """
        children = [self.facts[child] for child in node.children]
        facts = Facts(
            position,
            1 + sum(child.size for child in children),
            isinstance(node, Parameter) or any(child.has_parameter for child in children),
            isinstance(node, FeatureName) or any(child.has_feature for child in children),
        )
        if len(self.facts) == MAX_NODES:
            raise ModelStringError(
                f"the model has more than {MAX_NODES} operations, numbers and names: shorten it", self.source, position
            )
        if facts.size > MAX_EXPANDED:
            message = f"written out, with terms instead of their names, the model has more than {MAX_EXPANDED} parts"
            raise ModelStringError(f"{message}: use terms fewer times", self.source, position)
        self.facts[node] = facts
        return node

    def check(self, names: Mapping[Node, str]) -> None:
        """Checks that constants are finite real numbers and exponents are small; `names` are the terms for messages.

        Raises:
            ModelStringError: a constant overflows, divides by zero or is not real; an exponent is too large or contains
                a feature.
        """
        constants = [node for node, facts in self.facts.items() if facts.constant]
        values = {node: float(value) for node, value in zip(constants, compile_nodes(constants)({}, {}), strict=True)}
        for node in self.facts:
            problem = self._exponent_problem(node, values) or _constant_problem(node, values)
            if problem:
                text = to_text(node, {term: name for term, name in names.items() if term is not node})
                shown = text if len(text) <= 60 else f"{text[:60]}…"
                raise ModelStringError(f"in '{shown}', {problem}", self.source, self.facts[node].position)

    def _exponent_problem(self, node: Node, values: Mapping[Node, float]) -> str | None:
        for exponent, least in _exponents(node):
            if self.facts[exponent].has_feature:
                return (
                    "the exponent contains a feature, which would overflow for usual counts: "
                    "use parameters and numbers only"
                )
            value = values.get(exponent, least)
            if math.isfinite(value) and not least <= value <= MAX_EXPONENT:
                return f"the exponent {value:g} is not between {least:g} and {MAX_EXPONENT:g}"
        return None


def _exponents(node: Node) -> list[tuple[Node, float]]:
    """Returns the exponents of a node with the smallest value allowed for each."""
    if isinstance(node, Binary) and node.operator == "**":
        return [(node.right, -MAX_EXPONENT)]
    if isinstance(node, Call):
        least = 1.0 if node.function == "overlap" else -MAX_EXPONENT
        return [(node.arguments[index], least) for index in LANGUAGE[node.function].exponents]
    return []


def _constant_problem(node: Node, values: Mapping[Node, float]) -> str | None:
    if isinstance(node, Binary) and node.operator == "/" and values.get(node.right) == 0:
        return "the divisor is 0"
    value = values.get(node, 0.0)
    if math.isnan(value):
        return "the value is not a real number"
    return "the value is not finite" if math.isinf(value) else None
