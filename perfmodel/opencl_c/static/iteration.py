"""Names one iteration of a loop."""

from __future__ import annotations

from dataclasses import dataclass

from perfmodel.opencl_c import lowered as low


@dataclass(frozen=True)
class Iteration:
    """One iteration of a loop that is gone through one iteration after the other."""

    loop: low.Loop
    number: int

    def __str__(self) -> str:
        return f"iteration {self.number} of {self.loop.name}"
