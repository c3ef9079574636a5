"""A process of its own for one case of a survey, which a stage may crash, hang or fill with memory."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from perfmodel.measuring.isolation import start
from perfmodel.measuring.isolation.interruption import LOOK_SECONDS
from perfmodel.measuring.isolation.memory import available, resident
from perfmodel.measuring.isolation.process import MEMORY_SHARE, ProcessLimits
from perfmodel.surveying.cases import Case
from perfmodel.surveying.stages import Stage, left_after

START_SECONDS = 60.0
"""A process may take so long to start, beside the limit of its first stage."""


class _BrokenLimitError(Exception):
    """Raised where a process broke a limit, or ended; its message says which."""


class CaseProcess:
    """Runs stages of a case in a new process, until all are done or one ends it.

    Args:
        request: what `perfmodel.surveying.stages.CaseStages` needs beside the case.
    """

    def __init__(self, case: Case, stages: Sequence[str], request: Mapping[str, Any], limits: ProcessLimits) -> None:
        self._stages, self._limits, self._heard = list(stages), limits, b""
        told = {**asdict(case), "folder": str(case.folder.resolve())}
        self._message = {**request, "case": told, "stages": self._stages, "parent": os.getpid()}

    def run(self) -> Iterator[Stage]:
        """Yields each stage as it is done; one that ended the process is the last, and has failed."""
        left, allowed = self._stages, START_SECONDS + self._limits.time_s
        with subprocess.Popen(
            start.command("perfmodel.surveying.child"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=start.environment(),
        ) as process:
            try:
                assert process.stdin is not None
                with suppress(BrokenPipeError), process.stdin:
                    process.stdin.write(json.dumps(self._message).encode() + b"\n")
                while left:
                    started = time.monotonic()
                    try:
                        stage = Stage(**json.loads(self._line(process, allowed)))
                    except _BrokenLimitError as broken:
                        yield Stage(name=left[0], seconds=time.monotonic() - started, failure=str(broken))
                        return
                    yield stage
                    left, allowed = left_after(left, stage), self._limits.time_s
            finally:
                process.kill()

    def _line(self, process: subprocess.Popen[bytes], seconds: float) -> bytes:
        """Returns the next line that the process writes."""
        assert process.stdout is not None
        end = time.monotonic() + seconds
        memory = self._limits.memory_bytes or int(MEMORY_SHARE * (available() + resident(process.pid)))
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._heard:
                if selector.select(max(0.0, min(LOOK_SECONDS, end - time.monotonic()))):
                    if not (part := os.read(process.stdout.fileno(), 2**16)):
                        raise _BrokenLimitError(_ending(process.wait()))
                    self._heard += part
                elif time.monotonic() >= end:
                    raise _BrokenLimitError(
                        f"it took more than {self._limits.time_s:g} s; allow more, or use smaller sizes"
                    )
                elif (used := resident(process.pid)) > memory:
                    raise _BrokenLimitError(f"it took {used >> 20} MiB of memory, more than it may; use smaller sizes")
        line, self._heard = self._heard.split(b"\n", 1)
        return line


def _ending(status: int) -> str:
    how = f"signal {-status}" if status < 0 else f"exit status {status}"
    return f"it ended its process ({how}); check the memory that the kernel accesses"
