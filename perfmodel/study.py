"""A study reproduces results by a procedure of its own, rather than as a recipe on one device."""

from __future__ import annotations

import argparse
from abc import ABC, abstractmethod

from perfmodel import registry


class Study(ABC):
    """A catalogue entry that ``perfmodel reproduce`` runs, as it does recipes."""

    name: str
    summary: str

    @abstractmethod
    def reproduce(self, parsed: argparse.Namespace, command: str) -> None:
        """Runs the study with the options of ``perfmodel reproduce``, and prints what came out.

        Args:
            command: as it was typed, for the results.
        """


def studies() -> dict[str, Study]:
    """Returns every study found, perfmodel's own and those of installed packages, by name."""
    return {entry.name: entry for entry in registry.entries("models", Study)}
