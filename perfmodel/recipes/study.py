"""A study reproduces results by a procedure of its own, rather than as a recipe on one device."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path

from perfmodel.basics import registry


@dataclass(frozen=True)
class StudyOptions:
    """Holds the options of ``perfmodel reproduce``.

    Attributes:
        out: the folder for results.
        store: the path of the store that times come from and go to.
        devices: selectors separated by commas; None for all devices that are known.
        protocol: the name of a protocol.
        measure_only: whether to stop after measuring.
        command: the command as it was typed, for the results.
    """

    out: Path
    store: str
    devices: str | None
    protocol: str
    measure_only: bool
    command: str


class Study(ABC):
    """A catalogue entry that ``perfmodel reproduce`` runs, as it does recipes."""

    name: str
    summary: str

    @abstractmethod
    def reproduce(self, options: StudyOptions) -> None:
        """Reproduces the results, prints what came out, and writes it into a folder."""


def studies() -> dict[str, Study]:
    """Returns every study found, perfmodel's own and those of installed packages, by name."""
    return {entry.name: entry for entry in registry.entries("models", Study)}
