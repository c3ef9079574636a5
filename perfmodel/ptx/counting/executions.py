"""Executions whose numbers are known: added up, and compared with those of all lanes."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from perfmodel.counting.counts import SUBGROUP_SIZE, Executions
from perfmodel.counting.quasipolynomial import Piece, QuasiPolynomial, Term

PARTLY = 0.95
"""Sub-groups of which fewer lanes than this part take part do not do what strides say of all of them."""


def constant(value: float) -> QuasiPolynomial:
    """Returns a count that is the same for all sizes."""
    exact = Fraction(value).limit_denominator(10**6) if value < 2**40 else Fraction(round(value))
    return QuasiPolynomial((Piece(((),), (Term(exact.numerator, (), ()),), exact.denominator),), str(exact))


def added(several: Sequence[Executions], with_subgroups: bool) -> Executions:
    def total(name: str) -> QuasiPolynomial:
        return constant(sum(float(getattr(each, name)({})) for each in several))

    longest = constant(sum(float(each.longest[0]({})) for each in several))
    sums = total("workitem"), total("subgroup") if with_subgroups else None, total("workgroup")
    return Executions(*sums, (longest,), _spread(several, sums))


def _spread(
    several: Sequence[Executions], sums: tuple[QuasiPolynomial, QuasiPolynomial | None, QuasiPolynomial]
) -> tuple[tuple[float, float, float], ...]:
    """Returns how many times as much there is of a sum in each replica of its parts."""
    found = []
    for number in range(max((len(each.spread) for each in several), default=0)):
        again = [each.replica(number) for each in several]
        factors = []
        for name, total in zip(("workitem", "subgroup", "workgroup"), sums, strict=True):
            whole = 0.0 if total is None else float(total({}))
            replica = sum(float(getattr(each, name)({})) for each in again) if whole else 0.0
            factors.append(replica / whole if whole else 1.0)
        found.append((factors[0], factors[1], factors[2]))
    return tuple(found)


def is_partly(executions: Executions) -> bool:
    """Returns whether many lanes of sub-groups take no part in something, so that strides say too much of it."""
    if executions.subgroup is None:
        return False
    return float(executions.workitem({})) < PARTLY * SUBGROUP_SIZE * float(executions.subgroup({}))
