"""Says hints of errors and warnings as the command line takes them, where they name what Python does."""

from __future__ import annotations

import re

HINTS = (
    (r"give it as (\w+)=…(?: \(--arg \w+=…\))?", r"give it by --arg \1=…"),
    (r"give its value, as (\w+)=…", r"give its value by --arg \1=…"),
    (r"give data of your own by kernel\.as_observed\(arrays\), or --arg", r"give data of your own by --arg"),
    (r"\(kernel\.with_budget\(10\), --budget 10\)", r"(--budget 10)"),
    (r", or predict it by kernel\.as_emulated\(\)", r""),
    (r"make it a Kernel by perfmodel\.Kernel\.from_opencl\(…\)", r"give --global, --local and --arg"),
)
"""Words of messages to those who write Python, each with those of the command line."""


def on_command_line(message: str) -> str:
    """Returns a message whose hints are options instead of calls."""
    for pattern, option in HINTS:
        message = re.sub(pattern, option, message)
    return message
