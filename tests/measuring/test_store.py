"""The measurement store: what is put is what is got, nothing lost, nothing doubled."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfmodel.basics.errors import StoreError
from perfmodel.device import Device
from perfmodel.measuring.protocol import PROTOCOLS, Timing
from perfmodel.measuring.store import Counts, Measurement, Store, measurement_key
from tests.measuring.stores import DEVICE, failure, filled, measurement

texts = st.text(max_size=8)
times = st.floats(1e-12, 1e6)
OWN = {each.name for each in fields(Device)}
"""The names of a device's own fields, each of a type of its own; what else a fingerprint holds may be anything."""
facts = st.dictionaries(
    texts.filter(lambda name: name not in OWN),
    st.none() | st.booleans() | st.integers() | texts | st.lists(st.integers()),
    max_size=3,
)
own_facts = st.fixed_dictionaries({}, optional={"key": texts, "driver": texts})
measurements = st.builds(
    Measurement,
    key=st.text(min_size=1, max_size=8),
    kernel=texts,
    content=texts,
    sizes=st.dictionaries(texts, st.integers(-(2**70), 2**70), max_size=3),
    tags=st.dictionaries(texts, texts, max_size=3),
    device=st.builds(lambda own, others: {**own, **others}, own_facts, facts),
    protocol=st.dictionaries(texts, st.none() | times, max_size=2),
    trials=st.lists(times, min_size=3, max_size=5).map(tuple),
    dropped=st.integers(0, 2),
    statistic=st.sampled_from(["min", "mean", "median"]),
    flags=st.lists(texts, max_size=2).map(tuple),
    created=texts,
    versions=st.dictionaries(texts, texts, max_size=2),
    conditions=st.dictionaries(texts, times | texts | st.lists(st.integers(), max_size=2), max_size=2),
)


@given(st.lists(measurements, max_size=6))
@settings(deadline=None)
def test_a_store_is_an_ordered_mapping_by_key(written: list[Measurement]) -> None:
    expected: dict[str, Measurement] = {}
    with Store() as store:
        for one in written:
            store.put(one)
            expected[one.key] = one
        assert list(store) == list(expected.values())
        assert len(store) == len(expected)
        assert store.get_many([*expected, "absent key"]) == expected
        assert all(store.get(key) == one for key, one in expected.items())
        assert store.check() == []


def test_measurements_outlive_the_process_and_come_in_order(path: Path) -> None:
    filled(path, count=3)
    with Store(path) as store:
        store.put(measurement("k1", 5.0))
        assert [(one.key, one.seconds) for one in store] == [("k0", 1e-3), ("k1", 5.0), ("k2", 1e-3 + 2e-6)]
        assert store.get("k9") is None


def test_more_keys_than_one_query_takes() -> None:
    with Store() as store:
        for index in range(1203):
            store.put(measurement(f"k{index}"))
        keys = [f"k{index}" for index in range(1300)] + ["k0", "k0"]
        assert set(store.get_many(iter(keys))) == {f"k{index}" for index in range(1203)}
        assert store.get_many([]) == {}


def test_the_time_is_the_one_that_the_timing_had() -> None:
    trials = (5.0, 3.0, 2.0, 4.0)
    for statistic in ("min", "mean", "median"):
        stored = replace(measurement(), trials=trials, dropped=1, statistic=statistic)
        assert stored.seconds == Timing(trials, 1, statistic).seconds


def test_numpy_numbers_are_stored_as_numbers() -> None:
    sizes: dict[str, Any] = {"n": np.int64(7)}
    with Store() as store:
        store.put(replace(measurement(), sizes=sizes, trials=(np.float64(2.0), np.float64(1.0))))
        assert store.get("k0") == replace(measurement(), sizes={"n": 7}, trials=(2.0, 1.0))


@pytest.mark.parametrize("trials", [(), (1.0,), (1.0, math.nan), (1.0, 0.0), (math.inf, 1.0), (-1.0, 1.0)])
def test_times_that_mean_nothing_are_not_stored(trials: tuple[float, ...]) -> None:
    with Store() as store:
        with pytest.raises(StoreError, match="kernel 'matmul_sq' cannot be put into the store in memory"):
            store.put(replace(measurement(), trials=trials))
        assert len(store) == 0


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"sizes": {"n": 1.5}}, "sizes: not all are of type int"),
        ({"tags": {"n": 1}}, "tags: not all are of type str"),
        ({"flags": (1,)}, "flags: not all are texts"),
        ({"trials": ("1.0", 2.0)}, "trials: not all are numbers"),
        ({"dropped": 1.5}, "dropped: "),
        ({"dropped": -1}, "dropped: less than none"),
        ({"kernel": "\ud800"}, "kernel: "),
        ({"kernel": None}, "kernel: not a str"),
        ({"conditions": {"host": object()}}, "conditions: a object cannot be stored"),
        ({"device": {"name": 5}}, "device: its name is not of type str"),
    ],
)
def test_what_is_no_measurement_is_not_stored(changes: dict[str, Any], words: str) -> None:
    with Store() as store:
        with pytest.raises(StoreError, match=words):
            store.put_many([measurement("k1"), replace(measurement(), **changes)])
        assert len(store) == 0


def test_failures_give_way_to_measurements_and_not_the_other_way(path: Path) -> None:
    with Store(path) as store:
        store.put_many([measurement("k1")], [failure("k0"), failure("k1"), failure("k2")])
        assert store.failures() == {"k0": failure("k0"), "k2": failure("k2")}
        store.put_many([], [failure("k0", "needs 8 GB")])
        assert store.failures(["k0", "k1", "k9"]) == {"k0": failure("k0", "needs 8 GB")}
        store.put(measurement("k0"))
    with Store(path) as store:
        assert store.failures() == {"k2": failure("k2")}
        assert set(store.get_many(["k0", "k1", "k2"])) == {"k0", "k1"}
        assert store.keys() == ["k1", "k0"]


def test_a_failure_says_why() -> None:
    with Store() as store, pytest.raises(StoreError, match="a failure says why"):
        store.put_many([], [failure(reason="")])


def test_all_are_put_or_none(path: Path) -> None:
    with Store(filled(path, 2)) as store:
        before = list(store)
        with pytest.raises(StoreError, match="cannot be put"):
            store.put_many([measurement("k0", 5.0), replace(measurement("k7"), trials=())], [failure("k8")])
        assert list(store) == before
        assert store.failures() == {}


def test_what_is_there_is_not_added(path: Path) -> None:
    with Store(filled(path, 2)) as store:
        before = list(store)
        store.put_many([], [failure("k2")])
        rows = [measurement("k0", 5.0), measurement("k2"), measurement("k3"), measurement("k3", 5.0)]
        assert store.add(rows, [failure("k1"), failure("k4"), failure("k2")]) == Counts(added=2, failures=1, known=4)
        assert list(store) == [*before, measurement("k2"), measurement("k3")]
        assert store.failures() == {"k4": failure("k4")}


def test_what_rows_share_is_kept_once(path: Path) -> None:
    """A device's fingerprint of 100,000 characters, in 200 rows, is in the file once."""
    device = DEVICE | {"vendor": "v" * 100_000}
    with Store(path) as store:
        store.put_many(replace(measurement(f"k{index}"), device=device) for index in range(200))
    assert path.stat().st_size < 400_000
    with Store(path) as store:
        assert all(row.device == device for row in store)


def test_a_vacuum_leaves_every_row_and_no_gaps(path: Path) -> None:
    with Store(path) as store:
        store.put_many([replace(measurement(f"k{i}"), device=DEVICE | {"vendor": "v" * 9999}) for i in range(9)])
        store.put_many([measurement(f"k{i}") for i in range(9)], [failure("k99")])
        expected = list(store)
        before, after = store.vacuum()
        assert after < before
        assert list(store) == expected
        assert store.failures() == {"k99": failure("k99")}
        assert store.check() == []
    assert path.stat().st_size == after


# --- devices


def test_devices_without_a_whole_fingerprint_are_passed_over(path: Path) -> None:
    with Store(filled(path, 3)) as store:
        assert store.devices() == []


# --- keys


@given(st.permutations(["n", "m", "k"]), st.permutations(list(DEVICE)))
def test_a_key_does_not_depend_on_order_or_on_how_numbers_are_held(sizes: list[str], device: list[str]) -> None:
    values = {"n": 1, "m": 2, "k": 3}
    expected = measurement_key("c", values, DEVICE, PROTOCOLS["unified"])
    shuffled: dict[str, Any] = {name: np.int32(values[name]) for name in sizes}
    assert measurement_key("c", shuffled, {name: DEVICE[name] for name in device}, PROTOCOLS["unified"]) == expected


def test_a_key_tells_apart_what_changes_a_time_and_nothing_else() -> None:
    protocol = PROTOCOLS["unified"]
    keys = [
        measurement_key("c", {"n": 1}, DEVICE, protocol),
        measurement_key("d", {"n": 1}, DEVICE, protocol),
        measurement_key("c", {"n": 2}, DEVICE, protocol),
        measurement_key("c", {"m": 1}, DEVICE, protocol),
        measurement_key("c", {"n": 1}, DEVICE | {"key": "other"}, protocol),
        measurement_key("c", {"n": 1}, DEVICE | {"driver": "1.1"}, protocol),
        measurement_key("c", {"n": 1}, DEVICE, replace(protocol, trials=31)),
    ]
    assert len(set(keys)) == len(keys)
    assert measurement_key("c", {"n": 1}, DEVICE | {"compute_units": 1}, replace(protocol, name="mine")) == keys[0]


def test_keys_of_earlier_versions_stay_valid() -> None:
    key = measurement_key("c", {"n": 1024}, DEVICE, PROTOCOLS["unified"])
    assert key == "9599609512309be1dc3660faf0a9b5c339f8f657c31ef5e23aff60eef7bf32bc"
