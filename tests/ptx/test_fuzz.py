"""PTX texts with mistakes are run, or refused in one sentence; `tests.fuzz_ptx` tries many more."""

from __future__ import annotations

import random
from collections import Counter

from tests.fuzz_ptx import mutated, run


def test_texts_with_mistakes_are_run_or_refused() -> None:
    told = Counter(run(mutated(random.Random(f"test {number}"))) for number in range(150))
    assert told["run"] > 2
    assert told["SourceError"] > 50
    assert set(told) <= {"run", "SourceError", "EmulationError", "KernelError"}
