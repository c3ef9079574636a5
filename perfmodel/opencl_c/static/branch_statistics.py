"""Emulated groups tell what data decide in a kernel: how often branches are taken, and loops iterate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from perfmodel.counting.frequency import Frequency
from perfmodel.opencl_c import lowered as low

Executions: TypeAlias = tuple[int, int, int]
"""Executions by work-items, by sub-groups with an active work-item, and by groups."""


SUBGROUP, GROUP = 1, 2
"""Places of what a work-group's longest work-item does: it goes on in a loop as long as any of the group does, and
conditions hold for it as often as for its sub-group."""


@dataclass(frozen=True)
class Observed:
    """Holds what was seen of a branch, each for every time that it was met.

    Attributes:
        taken: how often its condition held, or how many iterations a loop had.
        otherwise: how often the condition did not hold; sub-groups may go both ways.
        behind: how often control came out behind it; None where that is not known.
    """

    taken: Frequency
    otherwise: Frequency
    behind: Frequency | None = None

    def with_replicas(self, others: Sequence[Observed]) -> Observed:
        behind = [other.behind for other in others if other.behind is not None]
        return Observed(
            self.taken.with_replicas([other.taken for other in others]),
            self.otherwise.with_replicas([other.otherwise for other in others]),
            None if self.behind is None else self.behind.with_replicas(behind),
        )

    @classmethod
    def by_probability(cls, probability: Fraction) -> Observed:
        """Returns what a probability alone says of a condition."""
        return cls(Frequency.same(probability), Frequency.same(1 - probability))


@dataclass(frozen=True)
class BranchRun:
    """Holds how groups ran: who they were; executions of each block; who met each branch, and who went which way."""

    entered: Executions
    blocks: Sequence[Executions]
    sides: Sequence[tuple[Executions, Executions, Executions]]


def observed(kernel: low.LoweredKernel, run: BranchRun, replicas: Sequence[BranchRun] = ()) -> dict[int, Observed]:
    """Returns what was seen of each branch, by its number.

    Args:
        replicas: how the groups of a sample ran with other weights, see `perfmodel.counting.resampling`.
    """
    found: dict[int, Observed] = {}
    _observe(kernel.body, run.entered, run, found)
    others = [observed(kernel, replica) for replica in replicas]
    return {number: each.with_replicas([other[number] for other in others]) for number, each in found.items()}


def _observe(body: Sequence[low.Statement], now: Executions, run: BranchRun, found: dict[int, Observed]) -> None:
    """Goes through statements that `now` come to."""
    for position, statement in enumerate(body):
        now = _arrived(statement, run) or now
        behind = _arrived(body[position + 1], run) if position + 1 < len(body) else None
        match statement:
            case low.If():
                _, taken, otherwise = run.sides[statement.number]
                found[statement.number] = _seen(now, taken, otherwise, behind, SUBGROUP)
                _observe(statement.then, taken, run, found)
                _observe(statement.otherwise, otherwise, run, found)
            case low.Loop():
                _, iterations, ended = run.sides[statement.number]
                if statement.is_do:
                    iterations = _sum(iterations, now)  # the first one is not tested
                found[statement.number] = _seen(now, iterations, ended, behind, GROUP)
                for part in (statement.test, statement.body, statement.step):
                    _observe(part, iterations, run, found)
            case low.Scope():
                _observe(statement.body, now, run, found)


def _arrived(statement: low.Statement, run: BranchRun) -> Executions | None:
    """Returns who came to a statement; None where that was not recorded."""
    match statement:
        case low.Straight():
            return run.blocks[statement.number]
        case low.If():
            return run.sides[statement.number][0]
        case low.Scope() if statement.body:
            return _arrived(statement.body[0], run)
    return None


def _seen(
    met: Executions, taken: Executions, otherwise: Executions, behind: Executions | None, longest: int
) -> Observed:
    """Returns what was seen of a branch, where the `longest` work-item does as one of the executions says."""

    def share(part: Executions) -> Frequency:
        item, subgroup, group = each = [Fraction(a, b) if b else Fraction(0) for a, b in zip(part, met, strict=True)]
        return Frequency(item, subgroup, group, each[longest])

    return Observed(share(taken), share(otherwise), None if behind is None else share(behind))


def _sum(left: Executions, right: Executions) -> Executions:
    return left[0] + right[0], left[1] + right[1], left[2] + right[2]
