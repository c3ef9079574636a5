"""Studies: results that are reproduced by a procedure of their own, rather than by a recipe on one device."""

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
        """Does it, with the options of ``perfmodel reproduce``, and prints what came out.

        Args:
            command: as it was typed, for the results.
        """


def studies() -> dict[str, Study]:
    """Every study found, perfmodel's own and those of installed packages, by name."""
    return {entry.name: entry for entry in registry.entries("models", Study)}
