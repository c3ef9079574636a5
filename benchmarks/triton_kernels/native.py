"""Times the exam as Triton compiles and launches it, beside the same PTX by way of the driver's compiler."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.triton_kernels.cases import EXAM, Case, of_triton
from benchmarks.triton_kernels.judging import NATIVE
from perfmodel.measuring.protocol import PROTOCOLS, reduced

DELAY_CYCLES = 2_000_000
"""So long the device is kept busy, a millisecond, until Triton has queued the launch and the events around it."""
_WHOLE = {"int8": (-99, 99), "int32": (0, 99), "int64": (0, 99)}


def measure(wanted: Sequence[Case], folder: Path) -> None:
    """Writes a line for each kernel of the exam: seconds, or why there are none."""
    path = folder / NATIVE
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    known = {json.loads(line)["name"] for line in lines}
    for case in wanted:
        if case.origin != EXAM or case.name in known:
            continue
        row: dict[str, Any] = {"name": case.name, "seconds": None, "why": ""}
        try:
            row["seconds"] = _seconds(case)
        except Exception as error:  # Triton and PyTorch raise all kinds; the other kernels are measured still
            row["why"] = f"{type(error).__name__}: {error}"[:300]
        print(json.dumps(row), flush=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


def _seconds(case: Case) -> float:
    fn, constants = of_triton(case)
    given = case.arrays() if case.arrays else {}
    numbers = {name: value for name, value in case.arguments.items() if not isinstance(value, str)}
    arguments = {
        name: _tensor(value, {**numbers, **constants}, given.get(name)) if isinstance(value, str) else value
        for name, value in case.arguments.items()
    }
    protocol = PROTOCOLS["unified"]
    trials = []
    for _ in range(protocol.trials):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda._sleep(DELAY_CYCLES)
        start.record()
        fn[case.grid](**arguments, **constants)
        end.record()
        torch.cuda.synchronize()
        trials.append(start.elapsed_time(end) / 1000)
    return reduced(trials, protocol.dropped, protocol.statistic)


def _tensor(words: str, numbers: dict[str, Any], content: np.ndarray | None) -> torch.Tensor:
    """Returns an array on the GPU, from words as ``random:float16:n*k``."""
    if content is not None:
        return torch.from_numpy(content).cuda()
    what, type_, extent = words.split(":")
    known = re.sub(r"[A-Za-z]\w*", lambda name: str(numbers[name[0]]), extent)
    size = int(np.prod([int(each) for each in known.split("*")], dtype=np.int64))
    dtype = getattr(torch, type_)
    if what == "zeros":
        return torch.zeros(size, dtype=dtype, device="cuda")
    if type_ in _WHOLE:
        return torch.randint(*_WHOLE[type_], (size,), dtype=dtype, device="cuda")
    return torch.rand(size, dtype=torch.float32, device="cuda").add_(0.5).to(dtype)
