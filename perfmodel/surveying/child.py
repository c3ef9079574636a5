"""A process that takes one case of a survey through its stages; a line of JSON goes out after each.

``python -m perfmodel.surveying.child`` reads one line of JSON: the case, the stages to run, and what they need.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from perfmodel.basics.json_values import plain


def main() -> None:
    request: dict[str, Any] = json.loads(sys.stdin.readline())
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what drivers and printf say is no answer

    # What these load may print, too.
    from perfmodel.measuring.isolation.__main__ import end_with
    from perfmodel.surveying.cases import Case
    from perfmodel.surveying.stages import CaseStages, left_after

    end_with(request["parent"])
    said: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in request["case"].items()
    }
    said["folder"] = Path(said["folder"])
    case = Case(**said)
    stages = CaseStages(case, request["device"], request["calibration"], request["protocol"])
    left = request["stages"]
    while left:
        done = stages.run(left[0])
        print(json.dumps(plain(asdict(done))), file=answers, flush=True)
        left = left_after(left, done)


if __name__ == "__main__":
    main()
