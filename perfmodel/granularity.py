"""By whom executions are counted: every work-item, every sub-group, or every work-group that takes part."""

from __future__ import annotations

import re
from dataclasses import dataclass

from perfmodel.counting.counts import SUBGROUP_SIZE, Executions
from perfmodel.counting.quasipolynomial import QuasiPolynomial
from perfmodel.errors import FeatureError
from perfmodel.feature_name import Word

_CONDITION = re.compile(r"(workitem|workgroup|subgroup([1-9][0-9]{0,3})?)$")


@dataclass(frozen=True)
class Granularity:
    """``workitem``, ``subgroup`` (of `subgroup_size` work-items) or ``workgroup``."""

    name: str
    subgroup_size: int | None = None

    def executions(self, executions: Executions, feature: str) -> QuasiPolynomial:
        """The count of this granularity.

        Raises:
            FeatureError: for sub-groups, where the size of a work-group is not known before the launch.
        """
        found: QuasiPolynomial | None = getattr(executions, self.name)
        if found is None:
            raise FeatureError(
                f"feature {feature!r} is not defined for a kernel whose work-groups have no fixed size; "
                "fix it in the kernel, or use granularity:workgroup"
            )
        return found


WORKITEM = Granularity("workitem")


def parse_granularity(word: Word) -> Granularity:
    """``granularity:workitem``, ``:workgroup``, ``:subgroup``, or ``:subgroup64`` for sub-groups of 64 work-items.

    Raises:
        FeatureError: for anything else.
    """
    match = _CONDITION.match(word.condition or "")
    if match is None:
        raise FeatureError(
            f"granularity:{word.condition} is not understood; write granularity:workitem, granularity:subgroup, "
            "granularity:subgroup64 or granularity:workgroup",
            word.offset,
        )
    if match[1].startswith("subgroup"):
        return Granularity("subgroup", int(match[2] or SUBGROUP_SIZE))
    return Granularity(match[1])
