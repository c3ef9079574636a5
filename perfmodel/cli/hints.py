"""Says hints of errors and warnings as the command line takes them, where they name what Python does."""

from __future__ import annotations

import re
from collections.abc import Callable

from perfmodel.counting.usual_budget import GIVEN_MORE

HINTS: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    (r"give it as (\w+)=… \(--arg \w+=…\)", r"give it by --arg \1=…"),
    (r"give (it|them) as ((?:\w+=…(?:, )?)+)", lambda found: f"give {found[1]} by {_as_options(found[2])}"),
    (r"give its value, as (\w+)=…", r"give its value by --arg \1=…"),
    (r"give data of your own by kernel\.as_observed\(arrays\), or --arg", r"give data of your own by --arg"),
    (re.escape(GIVEN_MORE), r"(--effort 10)"),
    (r"give (it|them) in args, as \{([^{}]*)\}", lambda found: f"give {found[1]} by {_as_options(found[2])}"),
    (r"(has \d+ kernels \(.*\)); name one$", r"\1; name one by --kernel"),
    (r"is given by features=\{…\} or its file \(--load FILE\)", r"is given by --load FILE"),
    (r"that Calibration\.save wrote", r"that calibrate wrote"),
    (r", or predict it by kernel\.as_emulated\(\)", r""),
    (r"make it a Kernel by perfmodel\.Kernel\.from_opencl\(…\)", r"give --global, --local and --arg"),
)
"""Words of messages to those who write Python, each with those of the command line."""


LISTS = (
    r" \((?:known|it has|there are):? ([^()]*(?:\([^()]*\)[^()]*)*)\)",
    r"; families are ([^;]*)",
    r"; (?:there are|or one of) ([^;]*)",
)
"""Lists of names in messages."""
LONGEST_LIST = 150
"""Characters; a longer list is cut, and left out where a name is suggested."""


def _as_options(words: str) -> str:
    """Returns what Python is given, ``'x': …, 'y': …`` or ``x=…, y=…``, as options, ``--arg x=… --arg y=…``."""
    return " ".join(f"--arg {name}=…" for name in re.findall(r"\w+", words))


def on_command_line(message: str) -> str:
    """Returns a message whose hints are options instead of calls, without lists that hide what it says."""
    for pattern, option in HINTS:
        message = re.sub(pattern, option, message)
    for pattern in LISTS:
        message = re.sub(pattern, lambda found: _shortened(found, "did you mean" in message), message)  # noqa: B023
    return message


def _shortened(found: re.Match[str], is_answered: bool) -> str:
    whole, names = found[0], found[1]
    if len(names) <= LONGEST_LIST:
        return whole
    if is_answered:
        return ""
    cut = names[:LONGEST_LIST].rpartition(", ")[0]
    return whole.replace(names, f"{cut}, …")
