"""Keeps a process in which NVIDIA's compiler runs, so that a source on which it crashes ends that one alone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Any

from perfmodel.basics.errors import KernelError
from perfmodel.kernels import nvrtc

_ENDING_S = 5
"""A process that closes what it answers by is over after so many seconds."""
_TOO_LONG = "NVIDIA's compiler takes too long for the kernel; give a smaller one"


class RefusedError(Exception):
    """Raised where the compiler refuses a source; its message is the compiler's log."""


class CrashedError(Exception):
    """Raised where the compiler ends its process."""


class CompilerProcess:
    """A process with a compiler, which starts with the first source, and anew after a crash and in forked processes.

    Args:
        path: of the compiler's library.

    Raises:
        OSError: where the library cannot be loaded.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._lock = path, Lock()
        self._process: subprocess.Popen[str] | None = None
        self._of_others: list[subprocess.Popen[str]] = []
        self._owner = 0
        self._too_long: set[str] = set()
        self.version = nvrtc.version(nvrtc.load(str(path)))

    def made(
        self,
        source: str,
        file: str,
        name: str,
        options: Sequence[str],
        headers: Mapping[str, str],
        most_s: int | None = None,
    ) -> tuple[str, str]:
        """Returns the PTX of a kernel and its name there; see `perfmodel.kernels.nvrtc.answer`.

        Args:
            most_s: seconds of a processor that it may take, where the system knows such limits.

        Raises:
            RefusedError, CrashedError: where there is none.
            KernelError: where the compiler fails at something else, or takes longer than it may.
        """
        request = {
            "source": source,
            "file": file,
            "name": name,
            "options": [*options],
            "headers": {**headers},
            "most_s": most_s,
        }
        text = json.dumps(request)
        if text in self._too_long:
            raise KernelError(_TOO_LONG)
        with self._lock:
            found = self._answer(text)
        if "error" in found:
            raise KernelError(f"NVIDIA's compiler fails ({found['error']}); look at the source and its options")
        if "log" in found:
            raise RefusedError(found["log"])
        return found["ptx"], found["name"]

    def _answer(self, request: str) -> dict[str, str]:
        if self._owner != os.getpid():
            self._leave()
        if self._process is None:
            self._start()
        try:
            line = self._exchanged(request)
        except OSError:
            line = ""
        except BaseException:  # Ctrl-C: the answer that is under way is not to be taken for the next one
            self._end()
            raise
        if not line:
            status = self._status()
            self._end()
            if status == -getattr(signal, "SIGXCPU", 0):
                self._too_long.add(request)
                raise KernelError(_TOO_LONG)
            raise CrashedError
        return dict(json.loads(line))

    def _exchanged(self, request: str) -> str:
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            return ""
        process.stdin.write(f"{request}\n")
        process.stdin.flush()
        return process.stdout.readline()

    def _start(self) -> None:
        command = [sys.executable, "-I", "-S", nvrtc.__file__, str(self._path)]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        self._process = subprocess.Popen(command, **pipes, encoding="utf-8")
        self._owner = os.getpid()

    def _leave(self) -> None:
        """Leaves a process to that which it belongs to, of which this one is a fork."""
        process, self._process = self._process, None
        if process is not None and process.stdin is not None and process.stdout is not None:
            process.stdin.close()
            process.stdout.close()
            self._of_others.append(process)  # as long as it is known, nobody waits for it

    def _status(self) -> int | None:
        """Returns the status of a process that has said its last word; None if it does not end."""
        try:
            return None if self._process is None else self._process.wait(_ENDING_S)
        except subprocess.TimeoutExpired:
            return None

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None and process.stdin is not None and process.stdout is not None:
            process.kill()
            process.wait()
            process.stdin.close()
            process.stdout.close()

    def __del__(self) -> None:
        if self._owner == os.getpid():
            self._end()
