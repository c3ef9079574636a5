"""Iteration domains of a scheduled Loopy kernel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

import islpy as isl
import loopy as lp
from loopy.isl_helpers import static_min_of_pw_aff
from loopy.kernel.data import GroupInameTag, LocalInameTag
from loopy.symbolic import condition_to_set

from perfmodel.basics.errors import CountingError
from perfmodel.counting.domains import Domains, Region, statistic
from perfmodel.counting.frequency import Frequency


class LoopyDomains(Domains):
    """The iteration domains of a Loopy kernel's instructions.

    Args:
        kernel: a linearized Loopy kernel.
        statistics: expected trip counts by loop variable, and probabilities by predicate or instruction.
        subgroup_size: as for `Domains`.
    """

    patience = 24  # as there is nothing less to fall back on

    def __init__(self, kernel: Any, callables: Any, statistics: Mapping[str, float], subgroup_size: int | None) -> None:
        self.kernel = kernel
        self.statistics = statistics
        self._projections: dict[frozenset[str], Any] = {}
        self._independent: dict[frozenset[str], bool] = {}
        sizes = frozenset(a.name for a in kernel.args if isinstance(a, lp.ValueArg) and a.dtype.is_integral())
        assumptions = isl.Set.from_basic_set(kernel.assumptions).project_out_except(sizes, [isl.dim_type.param])
        axes = {
            iname: (kind, int(tag.axis))
            for iname in kernel.all_inames()
            for kind, tag_type in (("group", GroupInameTag), ("local", LocalInameTag))
            for tag in kernel.iname_tags_of_type(iname, tag_type)
        }
        starts = {iname: self._start(iname) for iname, (kind, _) in axes.items() if kind == "local"}
        groups, items = kernel.get_grid_size_upper_bounds(callables)
        super().__init__(sizes, assumptions, groups, items, axes, starts, subgroup_size)

    def _start(self, iname: str) -> int:
        """Returns the loop variable's value for work-item 0."""
        low = static_min_of_pw_aff(self.kernel.get_iname_bounds(iname).lower_bound_pw_aff, constants_only=True)
        return int(str(low.get_constant_val()))

    def region(self, inames: frozenset[str], predicates: Iterable[Any], instruction: str) -> Region:
        """Returns the points at which an instruction runs: in its loops, if all predicates hold, under the kernel's
        assumptions.

        Raises:
            CountingError: for a loop or predicate that depends on data and has no statistics.
        """
        points, known, factor, moving = self._loops(inames, instruction)
        for predicate in predicates:
            condition = condition_to_set(points.space, predicate)
            if condition is None:
                factor *= self._probability(predicate, instruction)
            else:
                points = points & condition
        return Region(points.intersect_params(self.assumptions), known, Frequency.same(factor), moving)

    def depends_on_data(self, predicate: Any, inames: frozenset[str], instruction: str) -> bool:
        """Returns True if a predicate is decided only when the kernel runs."""
        points, *_ = self._loops(inames, instruction)
        return condition_to_set(points.space, predicate) is None

    def _loops(self, inames: frozenset[str], instruction: str) -> tuple[Any, frozenset[str], Fraction, frozenset[str]]:
        """Returns the points of the loops whose bounds are known, their names, the expected trips of the other loops,
        and those of them that start at a value that depends on data."""
        factor, known, moving = Fraction(1), inames, set()
        points = self._projected(known)
        while hidden := set(points.get_var_names(isl.dim_type.param)) - self.sizes:
            loop = next((i for i in sorted(known) if _is_bound_by(points, i, hidden)), None)
            if loop is None or loop not in self.statistics:
                raise CountingError(
                    f"the loop over {loop or ', '.join(sorted(known))!r} around instruction {instruction!r} depends on "
                    f"{', '.join(sorted(hidden))}, known only when the kernel runs; give the expected trip count as "
                    f"Kernel(…, statistics={{{loop!r}: …}})"
                )
            factor *= statistic(self.statistics[loop], loop)
            if _is_bound_by(points, loop, hidden, from_below=True):
                moving.add(loop)
            known -= {loop}
            points = self._projected(known)
        return points.align_params(self.space), known, factor, frozenset(moving)

    def _projected(self, inames: frozenset[str]) -> Any:
        """Returns the points of some loops, whatever those around them do."""
        if inames not in self._projections:
            self._projections[inames] = self._projection(inames)
        return self._projections[inames]

    def are_independent(self, inames: frozenset[str]) -> bool:
        """Returns whether nothing that is known of these loops says the value of one of them, also by that of
        others."""
        if inames not in self._independent:
            points = self._projected(inames)
            self._independent[inames] = points.affine_hull().plain_is_universe()
        return self._independent[inames]

    def _projection(self, inames: frozenset[str]) -> Any:
        domain = self.kernel.get_inames_domain(inames).project_out_except(inames, [isl.dim_type.set])
        domain = isl.Set.from_basic_set(domain) if isinstance(domain, isl.BasicSet) else domain
        # A parameter that no constraint mentions any more bounds nothing.
        kept = [
            name
            for name in domain.get_var_names(isl.dim_type.param)
            if name in self.sizes or domain.involves_dims(*_place(domain, name), 1)
        ]
        return domain.project_out_except(kept, [isl.dim_type.param])

    def _probability(self, predicate: Any, instruction: str) -> Fraction:
        for key in (str(predicate), instruction):
            if key in self.statistics:
                probability = statistic(self.statistics[key], key)
                if probability > 1:
                    raise CountingError(f"the probability of {key!r} is {float(probability):g}; give one from 0 to 1")
                return probability
        raise CountingError(
            f"instruction {instruction!r} runs only if {predicate}, which depends on data; give the probability as "
            f"Kernel(…, statistics={{{str(predicate)!r}: …}})"
        )

    def meetings(self, loops: frozenset[str]) -> tuple[Any, Any, Any]:
        """Returns how often work-items, sub-groups and work-groups meet a barrier inside these loops, as isl
        polynomials."""
        return self.met(self.region(loops | self.groups_around(loops), (), "barrier"))

    def groups_around(self, loops: frozenset[str]) -> frozenset[str]:
        """Returns the group axes that the loops' bounds may depend on; outside all loops every group meets a
        barrier."""
        if not loops:
            return frozenset()
        around = next(i.within_inames for i in self.kernel.instructions if loops <= i.within_inames)
        return frozenset(self.along("group", around))


def _is_bound_by(points: Any, iname: str, hidden: set[str], from_below: bool = False) -> bool:
    """Returns True if a constraint ties the loop variable, or its start, to a value known only when the kernel runs."""
    return any(
        constraint.involves_dims(*_place(points, iname), 1)
        and not (from_below and constraint.get_coefficient_val(*_place(points, iname)).is_neg())
        and any(constraint.involves_dims(*_place(points, name), 1) for name in hidden)
        for basic in points.get_basic_sets()
        for constraint in basic.get_constraints()
    )


def _place(points: Any, name: str) -> tuple[Any, int]:
    kind, position = points.get_var_dict()[name]
    return kind, position
