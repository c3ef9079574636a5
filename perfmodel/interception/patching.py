"""Patches a library while any log is open, and tells the logs what its programs launch and copy."""

from __future__ import annotations

import threading
import warnings
from abc import ABC, abstractmethod
from typing import Any, Protocol

from perfmodel.interception.arguments import InterceptionWarning
from perfmodel.interception.copies import CopyRecord
from perfmodel.interception.record import LaunchRecord


class Log(Protocol):
    """Receives what is told of each launch, while it is open."""

    limit_bytes: int
    profiles: bool

    def wants_contents(self, record: LaunchRecord) -> bool:
        """Says whether contents are to be kept of a launch that is about to happen."""

    def add(self, record: LaunchRecord) -> None: ...

    def add_copy(self, record: CopyRecord) -> None: ...


class Patching(ABC):
    """Opens and closes logs; subclasses patch a library while there is any."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._logs: tuple[Log, ...] = ()
        self._patched: list[tuple[Any, str, Any, Any]] = []

    def open(self, log: Log) -> None:
        with self._lock:
            is_first = not self._logs
            self._logs = (*self._logs, log)
            if is_first:
                try:
                    self._begin()
                except BaseException:
                    self._logs = ()
                    raise

    def close(self, log: Log) -> None:
        """Ends the latest block of this log."""
        with self._lock:
            last = len(self._logs) - 1 - self._logs[::-1].index(log)
            self._logs = self._logs[:last] + self._logs[last + 1 :]
            if not self._logs:
                self._end()

    @abstractmethod
    def _begin(self) -> None:
        """Patches the library, as a first log is open."""

    def _end(self) -> None:
        """Undoes what was patched, as no log is open any more."""
        for owner, name, original, ours in self._patched:
            if getattr(owner, name, None) is ours:  # else somebody patched it since: ours then only passes on
                setattr(owner, name, original)
        self._patched = []

    def _patch(self, owner: Any, name: str, ours: Any) -> None:
        original = getattr(owner, name)
        setattr(owner, name, ours)
        self._patched.append((owner, name, original, ours))

    def _add_copy(self, record: CopyRecord) -> None:
        for log in dict.fromkeys(self._logs):
            log.add_copy(record)


def warn_unrecorded(name: str, error: Exception | None) -> None:
    """Warns whoever called the caller that a launch is not recorded; it goes on whatever happens here."""
    warnings.warn(
        f"a launch of kernel {name!r} is not recorded rightly ({type(error).__name__}: {error})",
        InterceptionWarning,
        stacklevel=3,
    )
