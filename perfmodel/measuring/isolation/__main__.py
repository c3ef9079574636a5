"""Starts a process for another: it ends with its parent from the first moment on, whatever becomes of it later.

``python -m perfmodel.measuring.isolation SOCKET PARENT FUNCTION``: the number of a socket, that of the parent's
process, and what makes the answers to its requests.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

PR_SET_PDEATHSIG = 1


def main() -> None:
    end_with(int(sys.argv[2]))
    with suppress(OSError):  # where memory runs out, this process is ended rather than the campaign
        Path("/proc/self/oom_score_adj").write_text("500", encoding="ascii")
    from perfmodel.measuring.isolation.serving import serve  # after all that must come first

    serve(int(sys.argv[1]), sys.argv[3])


def end_with(parent: int) -> None:
    """Has this process end after its parent, also while a kernel hangs; on Linux even while it is stopped."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    threading.Thread(target=_leave_with, args=(parent,), daemon=True).start()


def _leave_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


if __name__ == "__main__":
    main()
