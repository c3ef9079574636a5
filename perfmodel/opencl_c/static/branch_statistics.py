"""Block counts of a run tell what data decide in a kernel: probabilities of branches, iterations of loops."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from perfmodel.opencl_c import lowered as low


def observed(kernel: low.LoweredKernel, executions: Sequence[int], work_items: int) -> dict[int, Fraction]:
    """Returns, by a branch's number, how probable its condition is, or how many iterations a loop has on average.

    Args:
        executions: of each block, by work-items.
        work_items: that were run.
    """
    found: dict[int, Fraction] = {}
    _walk(kernel.body, executions, work_items, found)
    return found


def _walk(body: Sequence[low.Statement], executions: Sequence[int], now: int, found: dict[int, Fraction]) -> None:
    """Goes through statements that `now` work-items come to."""
    for position, statement in enumerate(body):
        match statement:
            case low.Straight():
                now = executions[statement.number]
            case low.If():
                taken = _taken(statement, body[position + 1 :], executions, now)
                found[statement.number] = Fraction(taken, now) if now else Fraction(0)
                _walk(statement.then, executions, taken, found)
                _walk(statement.otherwise, executions, now - taken, found)
            case low.Loop():
                first = next(low.straights((*statement.body, *statement.step)), None)
                iterations = executions[first.number] if first is not None else 0
                found[statement.number] = Fraction(iterations, now) if now else Fraction(0)
                for part in (statement.test, statement.body, statement.step):
                    _walk(part, executions, iterations, found)
            case low.Scope():
                _walk(statement.body, executions, now, found)


def _taken(branch: low.If, after: Sequence[low.Statement], executions: Sequence[int], now: int) -> int:
    """Returns work-items for which a condition held; the side that only leaves is known by who comes out behind it."""
    then, otherwise = next(low.straights(branch.then), None), next(low.straights(branch.otherwise), None)
    if then is not None:
        return executions[then.number]
    if otherwise is not None:
        return now - executions[otherwise.number]
    behind = next(low.straights(tuple(after)), None)
    leaves_if_true = bool(branch.then)
    if behind is None:
        return 0
    stayed = min(executions[behind.number], now)
    return now - stayed if leaves_if_true else stayed
