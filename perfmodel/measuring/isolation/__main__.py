"""Starts a process for another: it ends with its parent from the first moment on, whatever becomes of it later.

``python -m perfmodel.measuring.isolation SOCKET PARENT FUNCTION``: the number of a socket, that of the parent's
process, and what makes the answers to its requests.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path

from perfmodel.basics.lifetime import end_with


def main() -> None:
    end_with(int(sys.argv[2]))
    with suppress(OSError):  # where memory runs out, this process is ended rather than the campaign
        Path("/proc/self/oom_score_adj").write_text("500", encoding="ascii")
    from perfmodel.measuring.isolation.serving import serve  # after all that must come first

    serve(int(sys.argv[1]), sys.argv[3])


if __name__ == "__main__":
    main()
