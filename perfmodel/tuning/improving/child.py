"""Runs pairs of launches and says how their results differ: a line of JSON each, read from standard input.

``python -m perfmodel.tuning.improving.child DEVICE PARENT``: a device's fingerprint, and the number of the parent.
"""

from __future__ import annotations

import json
import os
import sys

from perfmodel.basics.errors import PerfmodelError
from perfmodel.collection.verification import verify_against
from perfmodel.device import Device
from perfmodel.kernels.launch import Launch
from perfmodel.measuring.isolation.__main__ import end_with
from perfmodel.measuring.isolation.child import as_launch


def main() -> None:
    end_with(int(sys.argv[2]))
    device = Device.from_fingerprint(json.loads(sys.argv[1]))
    with os.fdopen(os.dup(1), "w") as answers:
        os.dup2(2, 1)  # what drivers print is no answer
        for line in sys.stdin:
            original, changed = map(as_launch, json.loads(line))
            print(json.dumps({"differs": _difference(original, changed, device)}), file=answers, flush=True)
    os._exit(0)  # a driver that would hang while it is unloaded can't


def _difference(original: Launch, changed: Launch, device: Device) -> str:
    try:
        verify_against(original, changed, device)
    except PerfmodelError as error:
        return str(error).split("\n")[0]
    except Exception as error:  # what pyopencl raises of a kernel that cannot be built
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    return ""


if __name__ == "__main__":
    main()
