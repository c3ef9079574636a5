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
    return Executions(total("workitem"), total("subgroup") if with_subgroups else None, total("workgroup"), (longest,))


def is_partly(executions: Executions) -> bool:
    """Returns whether many lanes of sub-groups take no part in something, so that strides say too much of it."""
    if executions.subgroup is None:
        return False
    return float(executions.workitem({})) < PARTLY * SUBGROUP_SIZE * float(executions.subgroup({}))
