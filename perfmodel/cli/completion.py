"""Lets a shell complete arguments: which completer is whose is said here, and looked up once a key is pressed."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

VARIABLE = "_ARGCOMPLETE"
"""An environment variable that is set while the shell asks for completions."""
SHELLS = ("bash", "zsh", "fish")
PROTOCOLS = ("perflex", "quick", "unified")


def complete(action: argparse.Action, completer: str | Sequence[str]) -> None:
    """Lets a shell complete an argument by words, or by the function of `perfmodel.cli.completers` of this name, which
    is called with the beginning of a word as ``prefix``."""

    def completed(**given: Any) -> list[str]:
        if not isinstance(completer, str):
            return list(completer)
        from perfmodel.cli import completers  # keeps start-up quick

        found: list[str] = getattr(completers, completer)(**given)
        return found

    action.completer = completed  # type: ignore[attr-defined]


def answer(parser: argparse.ArgumentParser) -> None:
    """Tells the shell what may stand under its cursor, and ends the process."""
    import argcomplete  # keeps start-up quick

    argcomplete.autocomplete(parser, always_complete_options=False)


def shell_code(shell: str) -> str:
    """Returns the code that makes a shell ask perfmodel for completions."""
    from argcomplete.shell_integration import shellcode  # keeps start-up quick

    return shellcode(["perfmodel"], shell=shell)
