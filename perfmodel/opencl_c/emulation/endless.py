"""A loop that takes all steps that an emulation has ends it with this error."""

from __future__ import annotations

from perfmodel.basics.errors import EmulationError


class EndlessError(EmulationError):
    """Raised where a loop goes on for longer than an emulation may take.

    Attributes:
        loop: what the loop is called. place: where it begins.
    """

    def __init__(self, kernel: str, loop: str, place: str) -> None:
        super().__init__(
            f"{place}: the emulation of kernel '{kernel}' took all its steps, the last ones in the loop of '{loop}'; "
            "raise steps=... if it is meant to run that long"
        )
        self.loop, self.place = loop, place
