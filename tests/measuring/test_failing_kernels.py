"""Kernels that hang, crash, don't compile or need too much memory, on a real device: the others are measured."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

import perfmodel as pm
from perfmodel.device import Device
from perfmodel.measuring.campaign import Campaign, ProcessLimits
from perfmodel.measuring.isolation.locks import FOLDER_VARIABLE
from perfmodel.measuring.protocol import Protocol
from perfmodel.modelling.feature_table import MeasurementWarning
from tests.simulated_kernels import kernel

SHORT = Protocol("short", trials=4, dropped=1, statistic="min")
HANGS = kernel("hangs", body="volatile int x = 1; while (x) a[0] += 1;")
CRASHES = kernel("crashes", body="__global float *b = (__global float *)(size_t)(16 + 0 * n); b[0] = n;")
ASSERTS = kernel("is_not_c", body="this is not C;")
TOO_LARGE = kernel("too_large", n=2**36, body="a[get_global_id(0)] = 1;")
FINE = [kernel(f"fine_{place}", n=64 + place, body="a[get_global_id(0)] *= n;") for place in range(4)]
EXPECTED = {
    "hangs": "kernel 'hangs' took more than 4 s",
    "crashes": "kernel 'crashes' ended its process",
    "is_not_c": "kernel 'is_not_c' does not compile",
    "too_large": "kernel 'too_large' needs 274877906944 bytes, more than",
}


@pytest.fixture(autouse=True)
def own_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "locks"))


def test_all_others_complete_and_each_failure_has_its_reason(cpu: Device, tmp_path: Path) -> None:
    path = tmp_path / "times.sqlite"
    mixed = [FINE[0], HANGS, FINE[1], CRASHES, FINE[2], ASSERTS, TOO_LARGE, FINE[3]]
    campaign = Campaign(mixed, [cpu], protocol=SHORT, store=path, limits=ProcessLimits(4.0))
    (found,) = campaign.run(progress=False).devices
    assert found.new == 4
    assert [math.isfinite(result.seconds) for result in found.results] == [k.name.startswith("fine") for k in mixed]
    assert len(found.failures) == 4
    with pm.Store(path) as store:
        assert {row.kernel for row in store} == {k.name for k in FINE}
        reasons = {failure.kernel: failure.reason for failure in store.failures().values()}
        assert store.check() == []
    assert set(reasons) == set(EXPECTED)
    for name, words in EXPECTED.items():
        assert reasons[name].startswith(words)
    (again,) = campaign.run(progress=False).devices  # what failed is known, and costs no second time limit
    assert (again.new, again.known) == (0, 8)
    assert again.failures == found.failures


def test_a_table_goes_on_without_the_kernel_that_crashes(cpu: Device) -> None:
    model = pm.Model("f_cl_wall_time", "p_g * f_thread_groups")
    with pytest.warns(MeasurementWarning, match="crashes n=64 was not measured: kernel 'crashes' ended its process"):
        table = pm.measure([FINE[0], CRASHES, FINE[1]], model, device=cpu, protocol=SHORT)
    assert [math.isfinite(seconds) for seconds in table["f_cl_wall_time"]] == [True, False, True]
    assert table["flags"].iloc[1][0].startswith("failed: kernel 'crashes' ended its process")
