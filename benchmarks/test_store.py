"""How long the store takes for a look-up among 10,000 measurements, and for writing one."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from perfmodel.store import Measurement, Store

ROWS = 10_000
ROW = Measurement(
    key="",
    kernel="matmul_sq",
    content="c" * 64,
    sizes={"n": 1024},
    tags={"variant": "tiled", "dtype": "float32"},
    device={"key": "device-abcdef", "driver": "1.0", "name": "device", "compute_units": 132},
    protocol={"name": "unified", "trials": 30, "dropped": 4, "statistic": "min"},
    trials=tuple(1e-3 + index * 1e-7 for index in range(30)),
    dropped=4,
    statistic="min",
    flags=(),
    created="2026-11-20T12:00:00+00:00",
    versions={"perfmodel": "0.1.0"},
)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with Store(tmp_path_factory.mktemp("store") / "store.sqlite") as store:
        for index in range(ROWS):
            store.put(replace(ROW, key=f"{index:064x}"))
        yield store


def test_get(store: Store, benchmark: BenchmarkFixture) -> None:
    keys = itertools.cycle(f"{index * 37 % ROWS:064x}" for index in range(ROWS))
    found = benchmark(lambda: store.get(next(keys)))
    assert found is not None
    assert found.kernel == ROW.kernel


def test_get_many(store: Store, benchmark: BenchmarkFixture) -> None:
    keys = [f"{index * 7:064x}" for index in range(1000)]
    assert len(benchmark(store.get_many, keys)) == 1000


def test_put(tmp_path: Path, benchmark: BenchmarkFixture) -> None:
    with Store(tmp_path / "store.sqlite") as fresh:
        numbers = itertools.count()
        benchmark(lambda: fresh.put(replace(ROW, key=f"{next(numbers):064x}")))
        assert len(fresh) == next(numbers)
