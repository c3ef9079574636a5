"""A few of the hostile sources of ``tests/fuzz_opencl_c.py``, in this process."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.fuzz_opencl_c import tried

SEED, COUNT = 7, 150


def test_hostile_sources_end_in_a_result_or_in_an_error_of_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERFMODEL_NO_CACHE", "1")
    reached: Counter[str] = Counter()
    for index in range(COUNT):
        kind, steps, trouble = tried(SEED, index)
        assert not trouble, f"source {index} ({kind}):\n{trouble}"
        reached.update(set(steps))
    # Otherwise the sources would be so hostile that they test the parser only.
    assert reached["refused by SourceError"] > COUNT / 5
    assert min(reached["read"], reached["counted"], reached["emulated"]) > COUNT / 10
