"""Shows what emulated work-groups of a kernel did, in whatever language: as text, as JSON, and in one line."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from perfmodel.basics.brief import brief
from perfmodel.basics.json_values import plain
from perfmodel.basics.notebook import ShownAsText
from perfmodel.basics.tables import grid
from perfmodel.basics.version import VERSION
from perfmodel.kernels.bound_kernel import BoundKernel
from perfmodel.opencl_c.emulation import Finding

if TYPE_CHECKING:
    import pandas as pd

_TOLD_APART_BY = ("text", "variable", "condition")
"""Columns that come first where a table is shown, as a wide one is cut into several that begin with the first."""
_TABLES = ("operations", "accesses", "branches", "footprints")


class EmulationProfile(ShownAsText, ABC):
    """Holds what the emulated groups of a launch did. Print it, or take its tables; all counts are per work-group.

    Attributes:
        work_groups: of the whole launch.
        called: what a work-group is called in the kernel's language.
    """

    kernel: BoundKernel
    global_size: tuple[int, ...]
    local_size: tuple[int, ...]
    work_groups: int
    called = "group"

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Mistakes of the kernel that showed: out-of-bounds accesses, races, uninitialised reads …"""
        return ()

    @property
    @abstractmethod
    def barriers(self) -> float:
        """The number of barriers that a group meets, on average."""

    @property
    @abstractmethod
    def is_extrapolated(self) -> bool:
        """Returns True if iterations of loops were counted without being run, so that results are not known."""

    @property
    @abstractmethod
    def emulated_groups(self) -> list[int]:
        """The numbers of the groups that were emulated."""

    @abstractmethod
    def headings(self) -> list[str]:
        """Returns the lines before the tables."""

    def details(self) -> dict[str, Any]:
        """Returns what else its JSON says of the emulation."""
        return {}

    def as_json(self) -> dict[str, Any]:
        """Returns the emulation profile as values that JSON can hold."""
        document: dict[str, Any] = {
            "perfmodel": VERSION,
            "kernel": self.kernel.name,
            "global_size": self.global_size,
            "local_size": self.local_size,
            "work_groups": self.work_groups,
            "emulated_groups": self.emulated_groups,
            **self.details(),
            **{name: json.loads(getattr(self, name).to_json(orient="records")) for name in _TABLES},
            "barriers": self.barriers,
            "findings": [
                {"kind": f.kind, "line": f.place.line, "column": f.place.column, "message": f.message, "count": f.count}
                for f in self.findings
            ],
        }
        found: dict[str, Any] = plain(document)
        return found

    def __str__(self) -> str:
        lines = self.headings()
        for name in _TABLES:
            table = getattr(self, name)
            if len(self.emulated_groups) == 1:
                table = table.drop(columns=["least", "most"], errors="ignore")
            if len(table):
                table = table[sorted(table.columns, key=lambda column: column not in _TOLD_APART_BY)]
                rows = [[_cell(value) for value in row] for row in table.itertuples(index=False)]
                lines += ["", grid([column.replace("_", " ") for column in table.columns], rows)]
        lines += ["", f"barriers: {self.barriers:g}"]
        lines += ["", *(f"{finding}" for finding in self.findings)] if self.findings else []
        return "\n".join(lines)

    def __repr__(self) -> str:
        emulated = f"{len(self.emulated_groups)} of {self.work_groups} {self.called}s"
        return brief(self, emulated, repr(self.kernel))


def frame(columns: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> pd.DataFrame:
    """Returns a table of the profile."""
    import pandas as pd  # slow to import

    return pd.DataFrame(rows, columns=list(columns))


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return "" if np.isnan(value) else f"{value:.2f}" if 0 < abs(value) < 10 and value % 1 else f"{value:.0f}"
    return str(value)
