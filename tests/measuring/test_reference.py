"""A device that is slowed down for a while: what was measured then is measured again, or marked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import perfmodel as pm
from perfmodel.device import Device
from perfmodel.kernels.launch import Launch
from perfmodel.measuring.campaign import work
from perfmodel.measuring.isolation import bench
from perfmodel.measuring.isolation.locks import FOLDER_VARIABLE
from perfmodel.measuring.isolation.process import Asked, ProcessLimits
from perfmodel.measuring.isolation.reference import NAME, Reference, is_disturbed
from perfmodel.measuring.protocol import Protocol, Timing, time_launch

TRUE_SECONDS = 1e-3
MADDS = pm.Model("f_cl_wall_time", "p_madd * f_op_float32_madd")


@pytest.fixture
def kernels() -> list[pm.Kernel]:
    return pm.KernelCollection(pm.ALL_GENERATORS).generate_kernels(["matmul_sq", "n:64,128,192,256"])


@pytest.fixture
def slowed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[Callable[[int], float]], list[str]]:
    """Replaces measuring by a clock under a load that depends on how many kernels ran; returns the names of those run.

    Every kernel is a batch by itself, as if it took a second.
    """
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "locks"))
    monkeypatch.setattr(bench, "FRESH_SECONDS", 0.0)
    monkeypatch.setattr(work, "WAIT_SECONDS", 0.01)
    monkeypatch.setattr("perfmodel.measuring.campaign.run.BATCH_SECONDS", 0.0)

    def install(load: Callable[[int], float]) -> list[str]:
        ran: list[str] = []

        class Loaded:
            is_usable = True

            def __init__(self, device: Device, timer: str, is_given_up: Asked) -> None:
                pass

            def time(self, launch: Launch, protocol: Protocol, limits: ProcessLimits, is_given_up: Asked) -> Timing:
                seconds = TRUE_SECONDS * load(sum(name != NAME for name in ran))
                ran.append(launch.kernel_name)
                return Timing((seconds,) * 5, 1, "min")

            def close(self) -> None:
                pass

        monkeypatch.setattr(bench, "_benches", {})
        monkeypatch.setattr(bench, "MeasuringProcess", Loaded)
        return ran

    return install


def test_an_undisturbed_campaign_measures_each_kernel_once(
    kernels: list[pm.Kernel], cpu: Device, slowed: Callable[..., list[str]]
) -> None:
    ran = slowed(lambda count: 1.0)
    table = pm.measure(kernels, MADDS, device=cpu)
    assert ran.count("matmul_sq") == 4
    assert list(table["flags"]) == [()] * 4


def test_what_a_burst_of_load_spoilt_is_measured_again(
    kernels: list[pm.Kernel], cpu: Device, slowed: Callable[..., list[str]]
) -> None:
    """The first three kernels run at half speed, so that the best reference time is seen only after them."""
    ran = slowed(lambda count: 2.0 if count < 3 else 1.0)
    table = pm.measure(kernels, MADDS, device=cpu)
    assert list(table["f_cl_wall_time"]) == [TRUE_SECONDS] * 4
    assert list(table["flags"]) == [()] * 4
    assert 4 < ran.count("matmul_sq") <= 8


def test_all_since_the_last_good_reference_is_measured_again(
    kernels: list[pm.Kernel], cpu: Device, slowed: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All four kernels are one batch, and the load comes with the last of them: nobody knows when it came."""
    ran = slowed(lambda count: 2.0 if count == 4 else 1.0)
    monkeypatch.setattr("perfmodel.measuring.campaign.run.BATCH_SECONDS", 1e6)
    table = pm.measure(kernels, MADDS, device=cpu)
    assert ran.count("matmul_sq") > 4
    assert set(table["f_cl_wall_time"]) == {TRUE_SECONDS}


def test_load_that_does_not_end_is_marked_in_table_and_store(
    kernels: list[pm.Kernel], cpu: Device, slowed: Callable[..., list[str]]
) -> None:
    """After the second kernel the device stays slow: the others are marked, and nothing is measured for ever."""
    ran = slowed(lambda count: 1.0 if count < 3 else 3.0)
    with pm.Store() as store:
        table = pm.measure(kernels, MADDS, device=cpu, store=store)
        assert [row.flags for row in store][:2] == [(), ()]
        assert [("disturbed" in row.flags) for row in store][-1]
        assert all(row.conditions["reference_s"] > 0 and row.conditions["host"] for row in store)
    assert "disturbed" in table["flags"].iloc[3]
    assert table["flags"].iloc[0] == ()
    assert ran.count("matmul_sq") <= 4 * work.ATTEMPTS


def test_what_is_marked_is_measured_again_where_that_is_asked_for(
    kernels: list[pm.Kernel], cpu: Device, slowed: Callable[..., list[str]]
) -> None:
    with pm.Store() as store:
        slowed(lambda count: 1.0 if count < 3 else 3.0)
        pm.measure(kernels, MADDS, device=cpu, store=store)
        ran = slowed(lambda count: 1.0)
        assert "disturbed" in pm.measure(kernels, MADDS, device=cpu, store=store)["flags"].iloc[3]
        assert not ran
        table = pm.measure(kernels, MADDS, device=cpu, store=store, retry=True)
        assert list(table["flags"]) == [()] * 4
        assert 0 < ran.count("matmul_sq") < 4


def test_the_reference_takes_some_milliseconds_here(cpu: Device) -> None:
    found = Reference(cpu, lambda launch, protocol: time_launch(launch, cpu, protocol))
    seconds = [found.seconds() for _ in range(5)]
    assert 3e-4 < found.best < 3e-2
    assert found.best <= min(seconds)
    assert is_disturbed(2 * found.best, found.best)
    assert not is_disturbed(found.best, found.best)
