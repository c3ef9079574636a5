"""The command ``completion`` prints what a shell needs to complete the others."""

from __future__ import annotations

from perfmodel.cli import completion
from perfmodel.cli.options import Command


def add(command: Command) -> None:
    added = command(
        lambda parsed: print(completion.shell_code(parsed.shell)),
        "completion",
        "source <(perfmodel completion bash)",
    )
    added.add_argument("shell", choices=completion.SHELLS, help="the shell that reads it")
