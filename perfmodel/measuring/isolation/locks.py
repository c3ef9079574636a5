"""Allows one measurement on a device at a time, whoever asks: campaigns, Dask workers and notebooks of one machine.

Locks of the operating system on files: they are gone with the process that holds them, however it ends.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from perfmodel.basics.errors import MeasurementError
from perfmodel.device import Device

FOLDER_VARIABLE = "PERFMODEL_LOCKS"
LOOK_SECONDS = 0.02


@contextmanager
def held(device: Device, is_given_up: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Holds the device for its caller; a processor's measurements also keep all others of the machine waiting.

    Args:
        is_given_up: asked while waiting; once it says yes, waiting ends with an error.

    Raises:
        MeasurementError: waiting was given up.
    """
    folder = _folder()
    whole = device.key.rpartition("/")[0] or device.key
    # The devices that OpenCL and CUDA make of one GPU have keys that differ in these parts.
    whole = re.sub(r"^cuda-|-[0-9a-f]{6}(?=\.|$)", "", whole)
    name = hashlib.sha256(whole.encode()).hexdigest()[:16]
    with ExitStack() as stack:
        # Other devices' measurements need processors a little, so they may not run beside a processor's.
        stack.enter_context(_locked(folder / "machine.lock", device.kind == "cpu", is_given_up))
        stack.enter_context(_locked(folder / f"device-{name}.lock", True, is_given_up))
        yield


@contextmanager
def _locked(path: Path, alone: bool, is_given_up: Callable[[], bool]) -> Iterator[None]:
    try:
        import fcntl  # not on every system
    except ImportError:  # no such locks on this system: measurements then rely on being the only ones
        yield
        return
    with path.open("ab") as file:
        while True:
            try:
                fcntl.flock(file, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if is_given_up():
                    raise MeasurementError(
                        "another program measures on the device; run again when it has ended"
                    ) from None
                time.sleep(LOOK_SECONDS)
        yield


def _folder() -> Path:
    """Returns a folder private to the user: the one that PERFMODEL_LOCKS names, or one among temporary files."""
    if named := os.environ.get(FOLDER_VARIABLE):
        folder = Path(named)
    else:
        folder = Path(tempfile.gettempdir(), f"perfmodel-locks-{os.getuid() if hasattr(os, 'getuid') else 0}")
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        if hasattr(os, "getuid") and folder.stat().st_uid != os.getuid():
            raise PermissionError("it belongs to somebody else")
        return folder
    except OSError as error:
        raise MeasurementError(
            f"{folder} cannot hold the locks of devices ({error}); name a folder of yours in {FOLDER_VARIABLE}"
        ) from error
