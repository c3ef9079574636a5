"""Ctrl-C as a flag that every wait looks at, rather than an exception that may fall anywhere.

Python raises KeyboardInterrupt wherever the main thread happens to be: between a measurement and its being stored, or
in a destructor, where it is lost.
"""

from __future__ import annotations

import _thread
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

LOOK_SECONDS = 0.1
"""A wait looks at the flag again after at most so many seconds."""
PATIENCE_SECONDS = 3.0
"""A Ctrl-C at which nothing looked for so long is an exception after all, as it would be in the first place."""


class Interruption:
    """A flag that says whether somebody wants an end."""

    def __init__(self) -> None:
        self._is_asked = self._is_heeded = False

    def is_asked(self) -> bool:
        return self._is_asked

    def check(self) -> None:
        """Raises KeyboardInterrupt if an end is wanted; called where nothing is half done."""
        if self._is_asked:
            self._is_heeded = True
            raise KeyboardInterrupt

    def ask(self) -> None:
        """Sets the flag, also within a signal handler: no lock is taken, which the interrupted code may hold."""
        self._is_asked = True
        _thread.start_new_thread(self._insist, ())

    def heed(self) -> None:
        self._is_heeded = True

    def _insist(self) -> None:
        time.sleep(PATIENCE_SECONDS)
        if not self._is_heeded:
            os.kill(os.getpid(), signal.SIGINT)  # not `raise_signal`, which would not wake the main thread


_present: Interruption | None = None


@contextmanager
def noticed() -> Iterator[Interruption]:
    """Yields a flag that Ctrl-C sets, and raises KeyboardInterrupt at the end, if not before.

    A second one acts as it would without this. Where signals can't be had, as outside the main thread, or are somebody
    else's, the flag is never set. Within another `noticed`, the flag is that one's.
    """
    global _present
    if _present is not None:
        yield _present
        _present.check()
        return
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield Interruption()
        return
    interruption = _present = Interruption()

    def handler(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, before)
        interruption.ask()

    signal.signal(signal.SIGINT, handler)
    try:
        yield interruption
    except Exception:
        interruption.check()  # what fails because of an interruption is one
        raise
    finally:
        interruption.heed()
        signal.signal(signal.SIGINT, before)
        _present = None
    interruption.check()
