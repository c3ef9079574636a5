"""Builds a source with a device's driver in a process of its own: ``python -m perfmodel.kernels.driver_builds``.

Compilers of drivers crash on some sources, and forked processes may use no device. The request comes as JSON on the
standard input, and what was made of it goes to the standard output.
"""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Sequence
from typing import NamedTuple

from perfmodel.basics.errors import DeviceError, KernelError

MOST_SECONDS = 120
"""A driver may take so long for one source."""


class Built(NamedTuple):
    """Holds what a driver made of a source, in its own format, and its compiler's log."""

    binary: bytes
    log: str


def built(device: str, source: str, name: str, options: Sequence[Sequence[str]]) -> list[Built] | None:
    """Returns what a driver makes of a source with a kernel of some name, once for each list of options; None where it
    refuses it, crashes, or takes too long.

    Args:
        device: its key.
    """
    request = json.dumps({"device": device, "source": source, "name": name, "options": [*map(list, options)]})
    command = [sys.executable, "-P", "-m", __name__]
    try:
        done = subprocess.run(command, input=request, capture_output=True, text=True, timeout=MOST_SECONDS, check=False)
        found = json.loads(done.stdout.rpartition("\n")[2])  # behind what drivers may say
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    return [Built(base64.b64decode(each["binary"]), each["log"]) for each in found] or None


def main() -> None:
    """Answers the one request of a process."""
    from perfmodel.device.device import find_device  # not for those that only ask

    wanted = json.load(sys.stdin)
    found = []
    try:
        session = find_device(wanted["device"]).session()
        for options in wanted["options"]:
            binary, log = session.binary(wanted["source"], wanted["name"], tuple(options))
            found.append({"binary": base64.b64encode(binary).decode(), "log": log})
    except (DeviceError, KernelError):
        found = []
    sys.stdout.write(f"\n{json.dumps(found)}")


if __name__ == "__main__":
    main()
