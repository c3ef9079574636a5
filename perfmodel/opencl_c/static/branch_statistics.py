"""Block counts of a run tell what data decide in a kernel: how often branches are taken, and loops iterate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from perfmodel.counting.frequency import NEVER, Frequency
from perfmodel.opencl_c import lowered as low

Executions: TypeAlias = tuple[int, int, int]
"""Executions by work-items, by sub-groups with an active work-item, and by groups."""


@dataclass(frozen=True)
class Observed:
    """Holds what was seen of a branch.

    Attributes:
        taken: how often its condition held, or how many iterations a loop had, for each time that it was met.
        otherwise: how often the condition did not hold; sub-groups may do both.
    """

    taken: Frequency
    otherwise: Frequency = NEVER

    @classmethod
    def by_probability(cls, probability: Fraction) -> Observed:
        """Returns what a probability alone says of a condition."""
        return cls(Frequency.same(probability), Frequency.same(1 - probability))


def observed(kernel: low.LoweredKernel, executions: Sequence[Executions], entered: Executions) -> dict[int, Observed]:
    """Returns what was seen of each branch, by its number.

    Args:
        executions: of each block.
        entered: work-items, sub-groups and groups that were run.
    """
    found: dict[int, Observed] = {}
    _walk(kernel.body, executions, entered, found)
    return found


def _walk(
    body: Sequence[low.Statement], executions: Sequence[Executions], now: Executions, found: dict[int, Observed]
) -> None:
    """Goes through statements that `now` come to."""
    for position, statement in enumerate(body):
        match statement:
            case low.Straight():
                now = executions[statement.number]
            case low.If():
                taken, otherwise = _sides(statement, body[position + 1 :], executions, now)
                found[statement.number] = Observed(_share(taken, now), _share(otherwise, now))
                _walk(statement.then, executions, taken, found)
                _walk(statement.otherwise, executions, otherwise, found)
            case low.Loop():
                first = next(low.straights((*statement.body, *statement.step)), None)
                iterations = executions[first.number] if first is not None else (0, 0, 0)
                found[statement.number] = Observed(_share(iterations, now))
                for part in (statement.test, statement.body, statement.step):
                    _walk(part, executions, iterations, found)
            case low.Scope():
                _walk(statement.body, executions, now, found)


def _share(part: Executions, whole: Executions) -> Frequency:
    return Frequency(*(Fraction(a, b) if b else Fraction(0) for a, b in zip(part, whole, strict=True)))


def _sides(
    branch: low.If, after: Sequence[low.Statement], executions: Sequence[Executions], now: Executions
) -> tuple[Executions, Executions]:
    """Returns who went one way and who the other; a side that only leaves is known by who comes out behind it."""
    blocks = [next(low.straights(side), None) for side in (branch.then, branch.otherwise)]
    then, otherwise = (None if block is None else executions[block.number] for block in blocks)
    block = next(low.straights(tuple(after)), None)
    behind = (0, 0, 0) if block is None else executions[block.number]
    if then is None and otherwise is None:
        stayed = (min(behind[0], now[0]), *behind[1:])
        return (_rest(now, stayed), stayed) if branch.then else (stayed, _rest(now, stayed))
    if otherwise is None:
        assert then is not None
        leaves = bool(branch.then) and isinstance(branch.then[-1], low.Leave)
        return then, (now[0] - then[0], *(behind if leaves else now)[1:])
    if then is None:
        leaves = bool(branch.otherwise) and isinstance(branch.otherwise[-1], low.Leave)
        return (now[0] - otherwise[0], *(behind if leaves else now)[1:]), otherwise
    return then, otherwise


def _rest(now: Executions, stayed: Executions) -> Executions:
    """Returns those that leave; of their sub-groups and groups nothing is known, and nothing asked."""
    return (now[0] - stayed[0], *now[1:])
